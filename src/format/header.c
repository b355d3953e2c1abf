/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether the first line of a table is a header; see table.h.
 *
 * The first line is a header if a column has a word in it and typed values (numbers, dates) below
 * it. It is a record if it contains a typed value or, without such a column, a word for a missing
 * value (NA), or words that occur in their columns again.
 * Years as names (country,2019,2020) make a header although they are numbers. */
#include "column_types.h"
#include "table.h"

#include <stdlib.h>

#define LINES_COMPARED 20u             /* with the first line */
#define RECORD_MOST ((size_t)16 << 10) /* bytes of a record with quoted line ends */

/* ---- lines ---- */

/* The position of the line end of the record that begins at `at`; its first line ends at
 * `line_end`. Returns `line_end` if the quotes do not form a record, or the record is too long. */
static size_t record_end(const sl_table *table, sl_text head, size_t at, size_t line_end) {
    const char delimiter = table->first.delimiter, escape = table->escape, quote = table->quote;
    size_t stop = head.length - at < RECORD_MOST ? head.length : at + RECORD_MOST;
    if (delimiter == 0 || !quote || !memchr(head.bytes + at, quote, line_end - at))
        return line_end;
    while (at < stop) {
        if (head.bytes[at] == quote) {
            at = sl_closing_quote(head.bytes, at + 1, stop, quote, escape);
            if (++at < stop && head.bytes[at] != delimiter && !memchr("\r\n", head.bytes[at], 2))
                return line_end;
        }
        while (at < stop && head.bytes[at] != delimiter && head.bytes[at] != '\n')
            at++;
        if (at < stop && head.bytes[at] == '\n')
            return at;
        at++;
    }
    return line_end;
}

bool sl_table_next_line(const sl_table *table, sl_text head, bool whole, size_t *at,
                        sl_text *line) {
    if (*at >= head.length)
        return false;
    const char *begin = head.bytes + *at;
    const char *end = memchr(begin, '\n', head.length - *at);
    if (!end && !whole)
        return false;
    if (end)
        end = head.bytes + record_end(table, head, *at, (size_t)(end - head.bytes));
    *line = (sl_text){begin, end ? (size_t)(end - begin) : head.length - *at};
    *at += line->length + 1;
    if (line->length > 0 && begin[line->length - 1] == '\r')
        line->length--;
    return true;
}

size_t sl_blanks_split(sl_text line, unsigned least, sl_text *fields, size_t limit) {
    size_t count = 0, at = 0;
    while (line.length > 0 && line.bytes[line.length - 1] == ' ')
        line.length--;
    while (at < line.length && line.bytes[at] == ' ')
        at++;
    while (at < line.length) {
        size_t begin = at, run = 0;
        while (at < line.length && run < least) {
            run = line.bytes[at] == ' ' ? run + 1 : 0;
            at++;
        }
        size_t end = run == least ? at - run : at;
        while (at < line.length && line.bytes[at] == ' ')
            at++;
        if (count < limit)
            fields[count] = (sl_text){line.bytes + begin, end - begin};
        count++;
    }
    return count;
}

size_t sl_table_split(const sl_table *table, sl_text line, sl_text *fields, size_t limit) {
    return table->blanks
               ? sl_blanks_split(line, table->blanks, fields, limit)
               : sl_header_split(line, table->first.delimiter, table->quote, fields, limit);
}

/* ---- is the first line a header? ---- */

/* What the lines compared so far show about a column. */
typedef struct compared {
    sl_look first;
    bool word;      /* a value below the first line is a word */
    bool typed;     /* a value is typed */
    bool not_years; /* a typed value is not a year */
} compared;

static bool is_year(sl_text field, uint64_t *year) {
    return field.length == 4 && sl_text_to_u64(field, year) && *year >= 1900 && *year <= 2100;
}

/* Do at least two fields hold years in sequence (2019, 2020), none of them the first field, and the
 * other fields no typed values? */
static bool names_years(const sl_text *fields, const compared *columns, size_t count) {
    uint64_t last = 0, year;
    size_t years = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_year(fields[i], &year)) {
            if (i == 0 || (years > 0 && year != last + 1))
                return false;
            last = year;
            years++;
        } else if (columns[i].first == SL_LOOKS_TYPED) {
            return false;
        }
    }
    return years >= 2;
}

static void compare_fields(const sl_text *fields, const sl_text *first, compared *columns,
                           size_t count, sl_evidence *found) {
    uint64_t year;
    for (size_t i = 0; i < count; i++) {
        found->repeated += fields[i].length > 0 && columns[i].first != SL_LOOKS_MISSING &&
                           sl_text_equal(fields[i], first[i]);
        if (columns[i].word)
            continue;
        sl_look look = sl_value_look(fields[i]);
        columns[i].word = look == SL_LOOKS_WORD;
        columns[i].typed = columns[i].typed || look == SL_LOOKS_TYPED;
        columns[i].not_years =
            columns[i].not_years || (look == SL_LOOKS_TYPED && !is_year(fields[i], &year));
    }
}

bool sl_evidence_collect(const sl_table *table, sl_text head, bool whole, const sl_text *first,
                         sl_evidence *found, sl_error *error) {
    size_t count = table->first.fields;
    sl_text *fields = malloc(count * sizeof *fields);
    compared *columns = calloc(count, sizeof *columns);
    *found = (sl_evidence){0};
    if (!fields || !columns) {
        free(fields);
        free(columns);
        return sl_error_memory(error, "reading a header");
    }
    for (size_t i = 0; i < count; i++)
        columns[i].first = sl_value_look(first[i]);
    sl_text line;
    for (size_t at = table->first.end; sl_table_next_line(table, head, whole, &at, &line);) {
        if (sl_line_is_blank(line))
            continue;
        bool near = found->lines++ < LINES_COMPARED;
        size_t split = sl_table_split(table, line, fields, near ? count : 0);
        found->longer += split > count;
        if (split != count)
            continue;
        found->fitting++;
        if (near && !sl_text_equal(line, table->first.line))
            compare_fields(fields, first, columns, count, found);
    }
    for (size_t i = 0; i < count; i++)
        found->missing =
            found->missing || (columns[i].first == SL_LOOKS_MISSING && first[i].length);
    bool years = names_years(first, columns, count);
    for (size_t i = 0; i < count; i++) {
        bool typed = columns[i].typed && !columns[i].word;
        found->typed = found->typed || typed;
        found->contrast = found->contrast || (typed && columns[i].first == SL_LOOKS_WORD);
        found->years = found->years || (years && columns[i].first == SL_LOOKS_TYPED && typed &&
                                        columns[i].not_years);
    }
    free(fields);
    free(columns);
    return true;
}

/* Does the first line hold a typed value? */
bool sl_fields_have_typed(const sl_text *fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (sl_value_look(fields[i]) == SL_LOOKS_TYPED)
            return true;
    }
    return false;
}

bool sl_evidence_of_header(const sl_table *table, const sl_text *fields, const sl_evidence *found) {
    if (sl_fields_have_typed(fields, table->first.fields))
        return found->years;
    return found->contrast || (found->repeated < 2 && !found->missing);
}
