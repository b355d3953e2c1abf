/* SPDX-License-Identifier: Apache-2.0 */
/* Hints about a table in its first lines; see table.h. */
#include "column_types.h"
#include "table.h"

#define LINES_COMPARED 50u
#define RECORDS_WATCHED 400u

/* ---- decimal commas ---- */

/* Is it a number, date or the like, which contains no semicolon and no comma but a decimal one? */
static bool is_typed(sl_text field) {
    const char *comma = memchr(field.bytes, ',', field.length);
    return sl_value_look(field) == SL_LOOKS_TYPED && !memchr(field.bytes, ';', field.length) &&
           (!comma || sl_has_decimal_comma(field));
}

/* The share of fields that are typed in the first lines of a table, all of which must have as many
 * fields as its first line; 0: they do not. */
static double typed_share(const sl_table *table, sl_text head, bool whole) {
    const size_t count = sl_table_split(table, table->first.line, NULL, 0);
    sl_text fields[32], line;
    size_t seen = 0, typed = 0, lines = 0;
    for (size_t at = table->first.text_start;
         lines < LINES_COMPARED && sl_table_next_line(table, head, whole, &at, &line);) {
        if (sl_line_is_blank(line))
            continue;
        lines++;
        if (count < 2 || sl_table_split(table, line, fields, 32) != count)
            return 0;
        for (size_t i = 0; i < count && i < 32; i++, seen++)
            typed += is_typed(fields[i]);
    }
    return seen > 0 ? (double)typed / (double)seen : 0;
}

void sl_prefer_semicolons(sl_table *table, sl_text head, bool whole) {
    sl_table other = *table;
    other.first.delimiter = ';';
    double share = typed_share(&other, head, whole);
    if (table->first.delimiter != ',' || share <= 0 || share < typed_share(table, head, whole))
        return;
    table->first.delimiter = ';';
    table->first.fields = sl_table_split(table, table->first.line, NULL, 0);
}

bool sl_heads_short_lines(const sl_table *table, const sl_text *fields, const sl_evidence *found) {
    for (size_t i = 0; i < table->first.fields; i++) {
        if (sl_value_look(fields[i]) != SL_LOOKS_WORD)
            return false;
    }
    return table->first.fields >= 2 && found->lines > 0 && found->longer == 0;
}

/* The type of the lines from `at` on, if they are one column; SL_TYPE_TEXT if one of them contains
 * a delimiter, or there are fewer than two. */
static sl_type type_of_lines(const sl_table *table, sl_text head, bool whole, size_t at) {
    sl_column_guess guess = SL_COLUMN_GUESS;
    sl_schema_column type = {0};
    sl_text line;
    size_t count = 0;
    while (count < LINES_COMPARED && sl_table_next_line(table, head, whole, &at, &line)) {
        if (sl_line_is_blank(line))
            continue;
        if (line.length > 64 || memchr(line.bytes, ';', line.length) ||
            memchr(line.bytes, ',', line.length))
            return SL_TYPE_TEXT;
        sl_column_guess_add(&guess, line);
        count++;
    }
    sl_column_guess_decide(&guess, &type);
    return count >= 2 ? type.type : SL_TYPE_TEXT;
}

bool sl_are_dates(const sl_table *table, sl_text head, bool whole) {
    sl_type type = type_of_lines(table, head, whole, table->first.text_start);
    return type == SL_TYPE_DATE || type == SL_TYPE_DATETIME;
}

bool sl_is_column(const sl_table *table, sl_text head, bool whole, bool typed) {
    return table->first.delimiter == 0 &&
           type_of_lines(table, head, whole, typed ? table->first.text_start : table->first.end) !=
               SL_TYPE_TEXT;
}

/* ---- quotes ---- */

#define COLUMNS_WATCHED 64u

static bool is_quoted(sl_text line, sl_text field, char quote) {
    const char *end = field.bytes + field.length;
    return field.bytes > line.bytes && field.bytes[-1] == quote && end < line.bytes + line.length &&
           *end == quote;
}

/* Would the field be read as something else without its quotes? */
static bool needs_quotes(sl_text field, char delimiter, char quote) {
    return memchr(field.bytes, delimiter, field.length) ||
           memchr(field.bytes, quote, field.length) || memchr(field.bytes, '\n', field.length);
}

/* What the first records show about a column, if a certain byte quotes fields. */
typedef struct watched {
    unsigned filled, quoted; /* fields */
    bool name;               /* the field of the first record is quoted */
} watched;

/* Are all or all but the first one of the column's fields quoted? With single quotes, the first one
 * must be quoted too, because 'a' may be data. */
static bool is_quoted_column(const watched *column, char quote) {
    return (column->filled >= 2 && column->quoted == column->filled) ||
           (quote == '"' && !column->name && column->quoted >= 2 &&
            column->quoted + 1 == column->filled);
}

/* Does this byte quote fields of the table? It does if each field that begins with it also ends
 * with it, nearly all records then have the same number of fields, and either a column is quoted
 * throughout, or a quoted field contains a delimiter, a line end or a doubled quote. */
static bool quotes_fields(const sl_table *table, sl_text head, bool whole, char quote) {
    sl_table one = *table;
    sl_text line, fields[COLUMNS_WATCHED];
    watched columns[COLUMNS_WATCHED] = {{0}};
    size_t records = 0, fitting = 0, count = 0, open;
    bool needed = false;
    const char delimiter = table->first.delimiter;
    one.quote = quote;
    for (size_t at = (size_t)(table->first.line.bytes - head.bytes);
         records < RECORDS_WATCHED && sl_table_next_line(&one, head, whole, &at, &line);) {
        if (sl_line_is_blank(line))
            continue;
        if (sl_line_quotes(line, delimiter, quote, table->escape != 0, &open) != SL_QUOTES_CLOSED)
            return false;
        size_t n = sl_table_split(&one, line, fields, COLUMNS_WATCHED);
        count = records++ == 0 ? n : count;
        fitting += n == count;
        for (size_t i = 0; i < n && i < COLUMNS_WATCHED; i++) {
            bool quoted = is_quoted(line, fields[i], quote);
            if (quote != '"' && (is_quoted(line, fields[i], '"') ||
                                 (fields[i].length > 0 && *fields[i].bytes == '"')))
                return false;
            columns[i].filled += quoted || fields[i].length > 0;
            columns[i].quoted += quoted;
            columns[i].name = columns[i].name || (quoted && records == 1);
            needed = needed || (quoted && needs_quotes(fields[i], delimiter, quote));
        }
    }
    for (size_t i = 0; i < COLUMNS_WATCHED && !needed; i++)
        needed = is_quoted_column(&columns[i], quote);
    return needed && records >= 2 && 10 * fitting >= 9 * records;
}

bool sl_find_quote(sl_table *table, sl_text head, bool whole) {
    const char usual = table->quote;
    if (table->blanks || table->first.delimiter == 0)
        return false;
    if (!usual && quotes_fields(table, head, whole, '"'))
        table->quote = '"';
    else if (quotes_fields(table, head, whole, '\''))
        table->quote = '\'';
    table->first.fields = sl_table_split(table, table->first.line, NULL, 0);
    return table->quote != usual;
}

bool sl_keeps_quotes(const sl_table *table, sl_text head, bool whole) {
    sl_text fields[COLUMNS_WATCHED], line;
    size_t at = table->first.text_start;
    if (table->quote || table->blanks)
        return false;
    for (size_t i = 0; i < LINES_COMPARED && sl_table_next_line(table, head, whole, &at, &line);
         i++) {
        size_t count = sl_table_split(table, line, fields, COLUMNS_WATCHED);
        for (size_t k = 0; k < count && k < COLUMNS_WATCHED; k++) {
            if (fields[k].length > 0 && is_quoted(line, fields[k], '"'))
                return true;
        }
    }
    return false;
}
