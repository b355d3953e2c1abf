/* SPDX-License-Identifier: Apache-2.0 */
#include "text_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "log.h"
#include "memory_stream.h"
#include "print.h"

#define CELL_ROOM 80
#define LONG_CELL_ROOM 1000
#define TEXT_WIDTH_LEAST 12 /* text columns are not cut to less */

typedef struct column {
    char *title;
    size_t width; /* of the widest cell, in characters */
    bool left;
    sl_unit unit;
} column;

struct sl_text_table {
    column columns[SL_TEXT_COLUMNS_MAX];
    size_t column_count;
    char **cells;
    size_t cell_count;
    size_t cell_room;
    const char *rule; /* or NULL */
    size_t limit;     /* of a line, in characters; 0: none */
    bool failed;      /* a column or cell could not be added */
};

sl_text_table *sl_text_table_create(const sl_text_column *columns) {
    sl_text_table *table = calloc(1, sizeof *table);
    if (table)
        table->rule = "-";
    if (columns)
        sl_text_table_columns(table, columns);
    return table;
}

void sl_text_table_destroy(sl_text_table *table) {
    if (!table)
        return;
    for (size_t i = 0; i < table->column_count; i++)
        free(table->columns[i].title);
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}

void sl_text_table_rule(sl_text_table *table, const char *rule) {
    if (table)
        table->rule = rule;
}

void sl_text_table_limit(sl_text_table *table, size_t width) {
    if (table)
        table->limit = width;
}

static char *printable(const sl_text_table *table, const char *text) {
    char shown[LONG_CELL_ROOM];
    sl_text_printable(sl_text_of(text), shown, table->limit > 0 ? sizeof shown : CELL_ROOM);
    return strdup(shown);
}

void sl_text_table_column(sl_text_table *table, const sl_text_column *added) {
    if (!table)
        return;
    bool fits = table->column_count < SL_TEXT_COLUMNS_MAX;
    char *title = fits ? printable(table, added->title) : NULL;
    if (!title) {
        table->failed = true;
        return;
    }
    size_t width = sl_letters(sl_text_of(title));
    table->columns[table->column_count++] = (column){
        .title = title,
        .width = width > added->least ? width : added->least,
        .left = added->left,
        .unit = added->unit,
    };
}

void sl_text_table_columns(sl_text_table *table, const sl_text_column *columns) {
    for (; columns->title; columns++)
        sl_text_table_column(table, columns);
}

/* Takes over `text`; NULL: no memory. */
static void add_cell(sl_text_table *table, char *text) {
    if (text && table->cell_count == table->cell_room) {
        size_t room = table->cell_room ? 2 * table->cell_room : 64;
        char **cells = realloc(table->cells, room * sizeof *cells);
        table->cells = cells ? cells : table->cells;
        table->cell_room = cells ? room : table->cell_room;
    }
    if (!text || table->cell_count == table->cell_room) {
        free(text);
        table->failed = true;
        return;
    }
    column *own = &table->columns[table->cell_count % table->column_count];
    size_t width = sl_letters(sl_text_of(text));
    own->width = width > own->width ? width : own->width;
    table->cells[table->cell_count++] = text;
}

void sl_text_table_cell(sl_text_table *table, const char *format, ...) {
    char *text = NULL;
    if (!table || table->failed || table->column_count == 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    add_cell(table, length < 0 ? NULL : printable(table, text));
    if (length >= 0)
        free(text);
}

void sl_text_table_number(sl_text_table *table, double value) {
    char number[SL_HUMAN_ROOM];
    if (table && table->column_count > 0)
        sl_text_table_cell(
            table, "%s",
            sl_value_text(value, table->columns[table->cell_count % table->column_count].unit,
                          number));
}

void sl_text_table_figure(sl_text_table *table, bool known, double value, int decimals) {
    char figure[SL_FIGURE_ROOM];
    sl_text_table_cell(table, "%s", known ? sl_figure_text(value, decimals, figure) : "-");
}

void sl_text_table_end_row(sl_text_table *table) {
    while (table && !table->failed && table->column_count > 0 &&
           table->cell_count % table->column_count != 0)
        sl_text_table_cell(table, "%s", "");
}

/* ---- printing ---- */

/* Computes the widths; shortens the widest text column while the line is longer than the limit. */
static void fit(const sl_text_table *table, unsigned indent, size_t *widths) {
    size_t all = indent;
    for (size_t i = 0; i < table->column_count; i++) {
        widths[i] = table->columns[i].width;
        if (table->limit > 0 && widths[i] > table->limit)
            widths[i] = table->limit;
        all += widths[i] + (i > 0 ? 2 : 0);
    }
    while (table->limit > 0 && all > table->limit) {
        size_t widest = table->column_count;
        for (size_t i = 0; i < table->column_count; i++) {
            if (table->columns[i].left && widths[i] > TEXT_WIDTH_LEAST &&
                (widest == table->column_count || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest == table->column_count)
            return; /* lines that are too long are better than truncated figures */
        widths[widest]--;
        all--;
    }
}

/* The number of bytes of the first `letters` characters. */
static size_t bytes_of(const char *text, size_t letters) {
    const char *end = text;
    for (size_t i = 0; *end; end++) {
        if (((unsigned char)*end & 0xC0) != 0x80 && i++ == letters)
            break;
    }
    return (size_t)(end - text);
}

/* `texts`: of the columns, in order. Blanks at the end of the line are not printed. */
static void print_line(const sl_text_table *table, const size_t *widths, unsigned indent,
                       char *const *texts, FILE *out) {
    size_t blanks = indent;
    for (size_t i = 0; i < table->column_count; i++) {
        const char *text = texts ? texts[i] : table->columns[i].title;
        size_t letters = sl_letters(sl_text_of(text)), width = widths[i];
        bool cut = letters > width;
        size_t shown = bytes_of(text, cut && width > 3 ? width - 3 : width);
        size_t padding = cut ? 0 : width - letters;
        blanks += table->columns[i].left ? 0 : padding;
        if (*text) {
            sl_print_to(out, "%*s%.*s%s", (int)blanks, "", (int)shown, text,
                        cut && width > 3 ? "..." : "");
            blanks = 0;
        }
        blanks += (table->columns[i].left ? padding : 0) + 2;
    }
    fputs("\n", out);
}

static void print_rule(const sl_text_table *table, const size_t *widths, unsigned indent,
                       FILE *out) {
    sl_print_to(out, "%*s", (int)indent, "");
    for (size_t i = 0; i < table->column_count; i++) {
        for (size_t k = 0; k < widths[i]; k++)
            fputs(table->rule, out);
        fputs(i + 1 == table->column_count ? "\n" : "  ", out);
    }
}

static void print_rows(const sl_text_table *table, FILE *out, unsigned indent) {
    size_t widths[SL_TEXT_COLUMNS_MAX];
    fit(table, indent, widths);
    print_line(table, widths, indent, NULL, out);
    if (table->rule)
        print_rule(table, widths, indent, out);
    for (size_t i = 0; i + table->column_count <= table->cell_count; i += table->column_count)
        print_line(table, widths, indent, table->cells + i, out);
}

void sl_text_table_print(sl_text_table *table, FILE *out, unsigned indent) {
    if (!table || table->failed || !out)
        sl_context_lost_output();
    else if (table->column_count > 0)
        print_rows(table, out, indent);
    sl_text_table_destroy(table);
}

void sl_text_table_log(sl_text_table *table) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = sl_memory_stream(&text, &length);
    sl_text_table_rule(table, NULL);
    sl_text_table_print(table, out, 2);
    if (out && fclose(out) != 0)
        sl_context_lost_output();
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) && rest;)
        sl_log_result("%s", line);
    free(text);
}
