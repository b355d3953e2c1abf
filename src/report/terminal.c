/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a page as text for a terminal: the same blocks as in HTML, with pictures of Unicode block
 * characters, or of ASCII characters. */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/print.h"
#include "util/text_table.h"

#include "scale.h"
#include "sections.h"
#include "terminal.h"

#define COLUMNS_LEAST 40
#define COLUMNS_MOST 200

void sl_put_letters(const sl_screen *screen, const char *text, size_t width, bool right) {
    char shown[1000];
    sl_text_printable(sl_text_of(text), shown, sizeof shown);
    size_t letters = sl_letters(sl_text_of(shown)), most = width;
    const char *end = shown;
    bool cut = letters > width;
    if (cut && width > 3)
        most = width - 3;
    for (size_t i = 0; *end; end++) {
        if (((unsigned char)*end & 0xC0) != 0x80 && i++ == most)
            break;
    }
    int blanks = cut ? 0 : (int)(width - letters);
    sl_print_to(screen->out, "%*s%.*s%s%*s", right ? blanks : 0, "", (int)(end - shown), shown,
                cut && width > 3 ? "..." : "", right ? 0 : blanks, "");
}

void sl_put_repeated(const sl_screen *screen, const char *text, size_t count) {
    while (count-- > 0)
        fputs(text, screen->out);
}

void sl_put_bar(const sl_screen *screen, double length) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double whole = floor(length);
    if (!(length > 0))
        return;
    if (screen->ascii) {
        sl_put_repeated(screen, "#", (size_t)(length + 0.5));
        return;
    }
    sl_put_repeated(screen, "█", (size_t)whole);
    fputs(eighths[(int)((length - whole) * 8)], screen->out);
}

/* ---- text ---- */

static void put_rule(const sl_screen *screen, const char *text, const char *unicode,
                     const char *ascii) {
    size_t letters = sl_letters(sl_text_of(text));
    fputs("\n", screen->out);
    sl_put_letters(screen, text, letters < screen->columns ? letters : screen->columns, false);
    fputs("\n", screen->out);
    sl_put_repeated(screen, screen->ascii ? ascii : unicode,
                    letters < screen->columns ? letters : screen->columns);
    fputs("\n", screen->out);
}

/* Writes text in lines of the screen's width, indented by `indent` spaces. */
static void put_words(const sl_screen *screen, const char *text, unsigned indent) {
    char shown[2000];
    sl_text_printable(sl_text_of(text), shown, sizeof shown);
    size_t column = 0;
    for (char *word = strtok(shown, " "); word; word = strtok(NULL, " ")) {
        size_t letters = sl_letters(sl_text_of(word));
        if (column > 0 && column + 1 + letters > screen->columns) {
            fputs("\n", screen->out);
            column = 0;
        }
        if (column == 0)
            sl_print_to(screen->out, "%*s", (int)indent, "");
        column += column == 0 ? indent + letters : letters + 1;
        sl_print_to(screen->out, "%s%s", column == indent + letters ? "" : " ", word);
    }
    fputs("\n", screen->out);
}

/* ---- tables ---- */

static void put_facts(const sl_screen *screen, const sl_page_table *facts) {
    size_t width = 0;
    for (size_t i = 0; i < facts->count; i += 2) {
        size_t letters = sl_letters(sl_text_of(facts->cells[i]));
        width = letters > width ? letters : width;
    }
    width = width > 40 ? 40 : width;
    for (size_t i = 0; i + 1 < facts->count; i += 2) {
        fputs("  ", screen->out);
        sl_put_letters(screen, facts->cells[i], width, false);
        fputs("  ", screen->out);
        sl_put_letters(screen, facts->cells[i + 1], 14, true);
        fputs("\n", screen->out);
    }
}

/* False without memory. */
static bool put_table(const sl_screen *screen, const char *title, const sl_page_table *table) {
    sl_text_table *text = sl_text_table_create(NULL);
    sl_text_table_limit(text, screen->columns);
    sl_text_table_rule(text, screen->ascii ? "-" : "─");
    for (size_t i = 0; i < table->columns; i++)
        sl_text_table_column(text, &(sl_text_column){table->titles[i], .left = table->left[i]});
    for (size_t i = 0; i < table->count; i++)
        sl_text_table_cell(text, "%s", table->cells[i]);
    fputs("\n", screen->out);
    if (title)
        put_words(screen, title, 0);
    bool ok = sl_text_table_print(text, screen->out, 2);
    sl_text_table_destroy(text);
    return ok;
}

/* ---- the page ---- */

static void put_picture(const sl_screen *screen, const sl_block *block) {
    fputs("\n", screen->out);
    put_words(screen, block->text, 0);
#define DRAW(kind, name)                                                                           \
    case SL_BLOCK_##kind:                                                                          \
        sl_terminal_##name(screen, block->of.name);                                                \
        break;
    switch (block->kind) {
        SL_PICTURES(DRAW)
    default:
        break;
    }
#undef DRAW
}

/* False without memory. */
static bool put_block(const sl_screen *screen, const sl_block *block) {
    static const char *const marks[] = {"", "", "! ", "!! "};
    char verdict[2000];
    switch (block->kind) {
    case SL_BLOCK_CHAPTER:
        put_rule(screen, block->text, "═", "=");
        return true;
    case SL_BLOCK_HEADING:
        put_rule(screen, block->text, "─", "-");
        return true;
    case SL_BLOCK_VERDICT:
        snprintf(verdict, sizeof verdict, "%s%s", marks[block->tone], block->text);
        put_words(screen, verdict, 0);
        return true;
    case SL_BLOCK_TEXT:
        put_words(screen, block->text, 0);
        return true;
    case SL_BLOCK_FACTS:
        put_facts(screen, block->of.table);
        return true;
    case SL_BLOCK_TABLE:
        return put_table(screen, block->text, block->of.table);
    default:
        put_picture(screen, block);
        return true;
    }
}

bool sl_report_text(const sl_report *report, const sl_report_terminal *terminal, FILE *out,
                    sl_error *error) {
    const char *title = NULL;
    sl_screen screen = {out, terminal->columns ? terminal->columns : 80, terminal->ascii};
    screen.columns = screen.columns < COLUMNS_LEAST  ? COLUMNS_LEAST
                     : screen.columns > COLUMNS_MOST ? COLUMNS_MOST
                                                     : screen.columns;
    sl_page *page = sl_page_create();
    bool ok = page ? sl_sections_fill(page, report, &title, error)
                   : sl_error_memory(error, "making a report");
    if (ok) {
        put_rule(&screen, title, "═", "=");
        for (const sl_block *block = sl_page_first(page); block; block = block->next)
            ok = put_block(&screen, block) && ok;
        if (!ok)
            sl_error_memory(error, "drawing a table");
        if (fflush(out) != 0 || ferror(out))
            ok = sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                              "the report cannot be written: %s", strerror(errno));
    }
    sl_page_destroy(page);
    return ok;
}
