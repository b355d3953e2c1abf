/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a page as text for a terminal: the same blocks as in HTML, with pictures of Unicode block
 * characters, or of ASCII characters. */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/print.h"
#include "util/text_table.h"

#include "sections.h"

#define COLUMNS_LEAST 40
#define COLUMNS_MOST 200

typedef struct screen_out {
    FILE *out;
    size_t columns;
    bool ascii;
} screen_out;

/* Writes text in exactly `width` characters, safe on a terminal: padded with spaces, or shortened
 * with "...". */
static void put_letters(const screen_out *screen, const char *text, size_t width, bool right) {
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

/* Writes all of a text. */
static void put_text(const screen_out *screen, const char *text) {
    put_letters(screen, text, sl_letters(sl_text_of(text)), false);
}

/* The larger of `width` and the width of a text. */
static size_t wider(size_t width, const char *text) {
    size_t letters = sl_letters(sl_text_of(text));
    return letters > width ? letters : width;
}

static void put_repeated(const screen_out *screen, const char *text, size_t count) {
    while (count-- > 0)
        fputs(text, screen->out);
}

/* Writes a bar of `length` characters, to an eighth of a character. */
static void put_bar(const screen_out *screen, double length) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double whole = floor(length);
    if (!(length > 0))
        return;
    if (screen->ascii) {
        put_repeated(screen, "#", (size_t)(length + 0.5));
        return;
    }
    put_repeated(screen, "█", (size_t)whole);
    fputs(eighths[(int)((length - whole) * 8)], screen->out);
}

/* ---- pictures ---- */

#define LABEL_MOST 28
#define CHART_ROWS 8

/* Nine levels, from empty to full. */
static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const shades[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};

static const char *level_of(const screen_out *screen, double share) {
    int level = share > 0 ? (int)(share * 8 + 0.5) : 0;
    level = level > 8 ? 8 : level == 0 && share > 0 ? 1 : level;
    return screen->ascii ? shades[level] : blocks[level];
}

/* The mean of a curve between two times. */
static double mean_between(const sl_curve *curve, double from, double to) {
    double sum = 0;
    for (size_t i = 0; i < curve->count; i++) {
        double begin = curve->x[i] > from ? curve->x[i] : from;
        double end = curve->x[i + 1] < to ? curve->x[i + 1] : to;
        if (end > begin)
            sum += curve->y[i] * (end - begin);
    }
    return to > from ? sum / (to - from) : 0;
}

/* Draws the sum of the curves as columns of eight rows, with axes. */
static void put_chart(const screen_out *screen, const sl_curves *curves, double end) {
    size_t width = screen->columns - 14;
    double values[200], maximum = 0;
    char text[SL_HUMAN_ROOM];
    for (size_t i = 0; i < width; i++) {
        values[i] = 0;
        for (size_t k = 0; k < curves->count; k++)
            values[i] += mean_between(&curves->items[k], end * (double)i / (double)width,
                                      end * (double)(i + 1) / (double)width);
        maximum = values[i] > maximum ? values[i] : maximum;
    }
    sl_ticks ticks = sl_ticks_for(maximum, 2, curves->unit);
    for (unsigned row = CHART_ROWS; row-- > 0;) {
        bool ticked = row == CHART_ROWS - 1;
        put_letters(screen, ticked ? sl_tick_text(ticks.top, &ticks, curves->unit, text) : "", 9,
                    true);
        fputs(screen->ascii ? " |" : " │", screen->out);
        for (size_t i = 0; i < width; i++) {
            double share = values[i] / ticks.top * CHART_ROWS - row;
            if (screen->ascii)
                fputs(share >= 0.5 ? "#" : share > 0 && row == 0 ? "." : " ", screen->out);
            else
                fputs(level_of(screen, share < 0 ? 0 : share > 1 ? 1 : share), screen->out);
        }
        fputs("\n", screen->out);
    }
    put_letters(screen, "0", 9, true);
    fputs(screen->ascii ? " +" : " └", screen->out);
    put_repeated(screen, screen->ascii ? "-" : "─", width);
    fputs("\n           0", screen->out);
    put_letters(screen, sl_human_seconds(end, text), width - 1, true);
    fputs("\n", screen->out);
}

/* Writes the names of phases below the time axis, where they fit. */
static void put_bands(const screen_out *screen, const sl_curves *curves, double end) {
    size_t width = screen->columns - 14, column = 0;
    if (curves->band_count == 0)
        return;
    fputs("           ", screen->out);
    for (size_t i = 0; i < curves->band_count; i++) {
        size_t from = (size_t)(curves->bands[i].from / end * (double)width);
        size_t to = (size_t)(curves->bands[i].to / end * (double)width);
        size_t letters = sl_letters(sl_text_of(curves->bands[i].name));
        if (to < from + letters + 2 || from < column)
            continue;
        sl_print_to(screen->out, "%*s|", (int)(from - column), "");
        put_letters(screen, curves->bands[i].name, letters, false);
        column = from + 1 + letters;
    }
    fputs("\n", screen->out);
}

/* Draws one line per curve: its name, its values over time, its mean. */
static void put_lines(const screen_out *screen, const sl_curves *curves, double end) {
    size_t label = 0;
    double maximum = 0;
    char text[SL_HUMAN_ROOM];
    for (size_t k = 0; k < curves->count; k++) {
        const sl_curve *curve = &curves->items[k];
        label = wider(label, curve->name);
        for (size_t i = 0; i < curve->count; i++)
            maximum = curve->y[i] > maximum ? curve->y[i] : maximum;
    }
    label = label > LABEL_MOST ? LABEL_MOST : label;
    /* 26 columns are for spaces and the mean with its unit. */
    size_t width = screen->columns > label + 32 ? screen->columns - label - 26 : 8;
    for (size_t k = 0; k < curves->count; k++) {
        const sl_curve *curve = &curves->items[k];
        fputs("  ", screen->out);
        put_letters(screen, curve->name, label, false);
        fputs("  ", screen->out);
        for (size_t i = 0; i < width; i++) {
            double mean = mean_between(curve, end * (double)i / (double)width,
                                       end * (double)(i + 1) / (double)width);
            fputs(level_of(screen, maximum > 0 ? mean / maximum : 0), screen->out);
        }
        double mean = curve->count ? mean_between(curve, curve->x[0], curve->x[curve->count]) : 0;
        sl_print_to(screen->out, "  mean %s\n", sl_value_text(mean, curves->unit, text));
    }
}

static void terminal_curves(const screen_out *screen, const sl_curves *curves) {
    double end = sl_curves_end(curves);
    if (!(end > 0) || curves->count == 0)
        return;
    bool sum = curves->count == 1 || (curves->stacked && curves->unit != SL_UNIT_SHARE);
    if (sum) {
        put_chart(screen, curves, end);
        put_bands(screen, curves, end);
    }
    if (curves->count > 1)
        put_lines(screen, curves, end);
}

/* ---- bars and strips ---- */

static void terminal_bars(const screen_out *screen, const sl_bars *bars) {
    size_t label = 0, words = 0;
    double maximum = 0;
    for (size_t i = 0; i < bars->count; i++) {
        const sl_bar *bar = &bars->items[i];
        size_t letters = sl_letters(sl_text_of(bar->text)) + (bar->high >= 0 ? 24 : 0);
        label = wider(label, bar->label);
        words = letters > words ? letters : words;
        maximum = bar->value > maximum ? bar->value : maximum;
    }
    label = label > screen->columns / 3 ? screen->columns / 3 : label;
    size_t room = screen->columns > label + words + 10 ? screen->columns - label - words - 6 : 4;
    for (size_t i = 0; i < bars->count; i++) {
        const sl_bar *bar = &bars->items[i];
        char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
        fputs("  ", screen->out);
        put_letters(screen, bar->label, label, false);
        fputs("  ", screen->out);
        put_bar(screen, maximum > 0 && bar->value > 0 ? bar->value / maximum * (double)room : 0);
        fputs(" ", screen->out);
        put_text(screen, bar->text);
        if (bar->low >= 0 && bar->high >= 0)
            sl_print_to(screen->out, " (%s to %s)", sl_value_text(bar->low, bars->unit, low),
                        sl_value_text(bar->high, bars->unit, high));
        fputs("\n", screen->out);
    }
}

/* Draws each part on its own line, from its start to its end. */
static void put_strip(const screen_out *screen, const sl_strips *strips, const sl_strip *strip,
                      size_t label, double maximum) {
    char text[SL_HUMAN_ROOM], low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    size_t room = screen->columns - label - 18;
    double begun = 0, scale = maximum > 0 ? (double)room / maximum : 0;
    if (*strip->label) {
        put_text(screen, strip->label);
        fputs("\n", screen->out);
    }
    for (size_t i = 0; i < strip->count; i++) {
        const sl_part *part = &strip->parts[i];
        size_t from = (size_t)(begun * scale);
        double length = part->value * scale;
        fputs("  ", screen->out);
        put_letters(screen, strips->names[part->name], label, false);
        sl_print_to(screen->out, "  %*s", (int)from, "");
        put_bar(screen, length);
        sl_print_to(screen->out, " %s\n", sl_value_text(part->value, strips->unit, text));
        begun += part->value;
    }
    if (strips->unit != SL_UNIT_SHARE)
        sl_print_to(screen->out, "  total %s", sl_value_text(begun, strips->unit, text));
    if (strip->low >= 0 && strip->high >= 0)
        sl_print_to(screen->out, " (%s to %s)", sl_value_text(strip->low, strips->unit, low),
                    sl_value_text(strip->high, strips->unit, high));
    fputs("\n", screen->out);
}

static void terminal_strips(const screen_out *screen, const sl_strips *strips) {
    size_t label = 0;
    double maximum = sl_strips_maximum(strips);
    for (size_t i = 0; i < strips->name_count; i++)
        label = wider(label, strips->names[i]);
    label = label > 16 ? 16 : label;
    for (size_t i = 0; i < strips->count; i++)
        put_strip(screen, strips, &strips->items[i], label, maximum);
    if (strips->limit > 0) {
        put_text(screen, strips->limit_name);
        fputs("\n", screen->out);
    }
}

/* ---- grids ---- */

static void put_dense(const screen_out *screen, const sl_grid *grid, size_t label) {
    size_t room = screen->columns - label - 4;
    size_t columns = grid->column_count < room ? grid->column_count : room;
    char text[SL_HUMAN_ROOM];
    for (size_t row = 0; row < grid->row_count; row++) {
        fputs("  ", screen->out);
        put_letters(screen, grid->rows[row], label, false);
        fputs("  ", screen->out);
        for (size_t i = 0; i < columns; i++) {
            const sl_cell *cell =
                &grid->cells[row * grid->column_count + i * grid->column_count / columns];
            fputs(level_of(screen, sl_grid_strength(grid, cell->value)), screen->out);
        }
        fputs("\n", screen->out);
    }
    sl_print_to(screen->out, "  maximum: %s per second\n",
                sl_value_text(grid->maximum, SL_UNIT_COUNT, text));
}

static void put_cells(const screen_out *screen, const sl_grid *grid, size_t label) {
    size_t width = 12;
    fputs("  ", screen->out);
    put_letters(screen, grid->row_name, label, false);
    put_letters(screen, grid->column_name, width, true);
    fputs("\n  ", screen->out);
    put_letters(screen, "", label, false);
    for (size_t i = 0; i < grid->column_count; i++)
        put_letters(screen, grid->columns[i], width, true);
    fputs("\n", screen->out);
    for (size_t row = 0; row < grid->row_count; row++) {
        fputs("  ", screen->out);
        put_letters(screen, grid->rows[row], label, true);
        for (size_t i = 0; i < grid->column_count; i++) {
            const sl_cell *cell = &grid->cells[row * grid->column_count + i];
            put_letters(screen, cell->text ? cell->text : "-", width - 3, true);
            sl_print_to(screen->out, " %s%s",
                        cell->value >= 0 ? level_of(screen, sl_grid_strength(grid, cell->value))
                                         : " ",
                        cell->mark ? (strstr(cell->mark, "recommended") ? ">" : "*") : " ");
        }
        fputs("\n", screen->out);
    }
    fputs("  > recommended, * expected to be the fastest\n", screen->out);
}

static void terminal_grid(const screen_out *screen, const sl_grid *grid) {
    size_t label = sl_letters(sl_text_of(grid->row_name));
    for (size_t i = 0; i < grid->row_count; i++)
        label = wider(label, grid->rows[i]);
    label = label > 16 ? 16 : label;
    if (grid->row_count == 0 || grid->column_count == 0)
        return;
    if (grid->dense)
        put_dense(screen, grid, label);
    else
        put_cells(screen, grid, label);
}

/* ---- text ---- */

static void put_rule(const screen_out *screen, const char *text, const char *unicode,
                     const char *ascii) {
    size_t letters = sl_letters(sl_text_of(text));
    fputs("\n", screen->out);
    put_letters(screen, text, letters < screen->columns ? letters : screen->columns, false);
    fputs("\n", screen->out);
    put_repeated(screen, screen->ascii ? ascii : unicode,
                 letters < screen->columns ? letters : screen->columns);
    fputs("\n", screen->out);
}

/* Writes text in lines of the screen's width, indented by `indent` spaces. */
static void put_words(const screen_out *screen, const char *text, unsigned indent) {
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

static void put_facts(const screen_out *screen, const sl_page_table *facts) {
    size_t width = 0;
    for (size_t i = 0; i < facts->count; i += 2)
        width = wider(width, facts->cells[i]);
    width = width > 40 ? 40 : width;
    for (size_t i = 0; i + 1 < facts->count; i += 2) {
        fputs("  ", screen->out);
        put_letters(screen, facts->cells[i], width, false);
        fputs("  ", screen->out);
        put_letters(screen, facts->cells[i + 1], 14, true);
        fputs("\n", screen->out);
    }
}

static void put_table(const screen_out *screen, const char *title, const sl_page_table *table) {
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
    sl_text_table_print(text, screen->out, 2);
}

/* ---- the page ---- */

static void put_picture(const screen_out *screen, const sl_page_block *block) {
    fputs("\n", screen->out);
    put_words(screen, block->text, 0);
#define DRAW(kind, name)                                                                           \
    case SL_BLOCK_##kind:                                                                          \
        terminal_##name(screen, block->of.name);                                                   \
        break;
    switch (block->kind) {
        SL_PICTURES(DRAW)
    default:
        break;
    }
#undef DRAW
}

static void put_block(const screen_out *screen, const sl_page_block *block) {
    static const char *const marks[] = {"", "", "! ", "!! "};
    char verdict[2000];
    switch (block->kind) {
    case SL_BLOCK_CHAPTER:
        put_rule(screen, block->text, "═", "=");
        break;
    case SL_BLOCK_HEADING:
        put_rule(screen, block->text, "─", "-");
        break;
    case SL_BLOCK_VERDICT:
        snprintf(verdict, sizeof verdict, "%s%s", marks[block->tone], block->text);
        put_words(screen, verdict, 0);
        break;
    case SL_BLOCK_TEXT:
        put_words(screen, block->text, 0);
        break;
    case SL_BLOCK_FACTS:
        put_facts(screen, block->of.table);
        break;
    case SL_BLOCK_TABLE:
        put_table(screen, block->text, block->of.table);
        break;
    default:
        put_picture(screen, block);
        break;
    }
}

bool sl_report_text(const sl_report *report, const sl_report_terminal *terminal, FILE *out,
                    sl_error *error) {
    const char *title = NULL;
    screen_out screen = {out, terminal->columns ? terminal->columns : 80, terminal->ascii};
    screen.columns = screen.columns < COLUMNS_LEAST  ? COLUMNS_LEAST
                     : screen.columns > COLUMNS_MOST ? COLUMNS_MOST
                                                     : screen.columns;
    sl_page *page = sl_page_create();
    bool ok = page ? sl_sections_fill(page, report, &title, error)
                   : sl_error_memory(error, "making a report");
    if (ok) {
        put_rule(&screen, title, "═", "=");
        for (const sl_page_block *block = sl_page_first(page); block; block = block->next)
            put_block(&screen, block);
        if (fflush(out) != 0 || ferror(out))
            ok = sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                              "the report cannot be written: %s", strerror(errno));
    }
    sl_page_destroy(page);
    return ok;
}
