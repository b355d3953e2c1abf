/* SPDX-License-Identifier: Apache-2.0 */
/* Hints about a table in its first lines; see table_hints.h. */
#include "table_hints.h"
#include "column_types.h"

#define LINES_COMPARED 50u

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

bool sl_are_dates(const sl_table *table, sl_text head, bool whole) {
    sl_column_guess guess = SL_COLUMN_GUESS;
    sl_schema_column type = {0};
    sl_text line;
    size_t at = table->first.text_start;
    for (size_t i = 0; i < LINES_COMPARED && sl_table_next_line(table, head, whole, &at, &line);)
        i += !sl_line_is_blank(line) && (sl_column_guess_add(&guess, line), true);
    sl_column_guess_decide(&guess, &type);
    return type.type == SL_TYPE_DATE || type.type == SL_TYPE_DATETIME;
}

bool sl_keeps_quotes(const sl_table *table, sl_text head, bool whole) {
    sl_text fields[32], line;
    size_t at = table->first.text_start;
    if (table->first.delimiter != '|' && table->first.delimiter != '\t')
        return false;
    for (size_t i = 0; i < LINES_COMPARED && sl_table_next_line(table, head, whole, &at, &line);
         i++) {
        const char *from = line.bytes, *end = line.bytes + line.length;
        size_t count = sl_table_split(table, line, fields, 32);
        for (size_t k = 0; k < count && k < 32; k++) {
            from = fields[k].bytes;
            if (fields[k].length > 0 && from > line.bytes && from[-1] == '"' &&
                from + fields[k].length < end && from[fields[k].length] == '"')
                return true;
        }
    }
    return false;
}
