/* SPDX-License-Identifier: Apache-2.0 */
/* The format `mot`: vehicle test results, test items and their lookup tables as published for Great
 * Britain since 2010 (user guide "MOT testing data", Driver and Vehicle Standards Agency).
 *
 * The columns are the same in all years; delimiters, quoting, header, codes and the notation of a
 * missing value differ. The dialects, recognised by a file's contents, never by its name:
 *
 *   A      pipes, no header, one-letter codes, NULL for missing dates; blanks at the end of fields
 *   B C2 F pipes, header, empty fields
 *   D      commas, header, quotes where needed, a quote escaped by a backslash
 *   E      commas, header, every text quoted
 *   G      as D, with completed_date as 15th column
 *
 * Tabs are accepted in place of pipes. The engine in delimited.c does the parsing. */
#include "convert.h"
#include "fields.h"
#include "util/embedded.h"

#include <stdlib.h>

#define LINES_JUDGED 200u /* of a text without header */

static const char delimiters[] = "|,\t";

static bool is_mot(const char *schema_name) {
    return strncmp(schema_name, "mot-", 4) == 0;
}

static bool plan_create(const sl_format_options *options, sl_plan **out, sl_error *error) {
    size_t count = 0;
    for (const sl_embedded *file = sl_embedded_schemas; file->name; file++)
        count += is_mot(file->name);
    sl_plan *plan;
    if (!sl_delimited_plan_create(options, count, &plan, error))
        return false;
    count = 0;
    for (const sl_embedded *file = sl_embedded_schemas; file->name; file++) {
        if (is_mot(file->name) && !sl_schema_read((sl_text){file->text, file->length}, file->name,
                                                  &plan->schemas[count++], error)) {
            sl_delimited_plan_destroy(plan);
            return false;
        }
    }
    *out = plan;
    return true;
}

/* The number of names that are columns of the schema. 0 if the schema is exact and the header has
 * other columns. */
static size_t known_names(const sl_schema *schema, const sl_text *names, size_t count) {
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        known += sl_schema_find(schema, names[i], NULL) < schema->column_count;
    return schema->exact && (known < count || count < schema->column_count) ? 0 : known;
}

/* The schema that has the most of a header's names as columns: at least two, and at least half of
 * them. NULL: none. */
static const sl_schema *schema_by_names(const sl_plan *plan, const sl_text *names, size_t count) {
    const sl_schema *best = NULL;
    size_t best_known = 1;
    for (size_t s = 0; s < plan->schema_count; s++) {
        size_t known = known_names(plan->schemas[s], names, count);
        if (known > best_known && 2 * known >= count) {
            best = plan->schemas[s];
            best_known = known;
        }
    }
    return best;
}

/* The schema whose number of fields is the most frequent among the head's complete lines. */
static const sl_schema *schema_by_fields(const sl_plan *plan, sl_text head,
                                         const sl_first_line *first, size_t *columns) {
    const sl_schema *best = NULL;
    size_t best_lines = 0, most_fields = 0;
    size_t tally[SL_COLUMNS_MAX + 1] = {0};
    const char quote = sl_quote_of(SL_QUOTE_AUTO, first->delimiter);
    sl_text line;
    for (size_t at = first->text_start; sl_next_line(head, at == first->text_start, &at, &line);) {
        size_t fields = sl_fields_split(line, first->delimiter, quote, 0, NULL, 0);
        if (fields <= SL_COLUMNS_MAX)
            tally[fields]++;
        if (fields > most_fields)
            most_fields = fields;
    }
    for (size_t s = 0; s < plan->schema_count; s++) {
        const sl_schema *schema = plan->schemas[s];
        for (size_t i = 0; schema->field_counts[i] != 0; i++) {
            uint32_t fields = schema->field_counts[i];
            if (tally[fields] > best_lines) {
                best = schema;
                best_lines = tally[fields];
                *columns = fields;
            }
        }
    }
    if (best || first->delimiter == ',')
        return best;
    /* All lines may have extra delimiters in the column that spills. */
    for (size_t s = 0; s < plan->schema_count; s++) {
        const sl_schema *schema = plan->schemas[s];
        for (size_t k = 0; k < schema->column_count; k++) {
            if (schema->columns[k].spill && most_fields > schema->field_counts[0]) {
                *columns = schema->field_counts[0];
                return schema;
            }
        }
    }
    return NULL;
}

static bool not_mot(sl_text line, sl_error *error) {
    char shown[100];
    sl_text_printable(line, shown, sizeof shown);
    sl_error_set(error, SL_EXIT_SOURCE,
                 "this is not MOT data: its first line is `%s`; expected a header that "
                 "begins with test_id, or a line of 14 fields that begins with a number",
                 shown);
    return false;
}

/* Results and items come in the publisher's dialects; lookup tables have only one. */
static void guess_letter(sl_dialect *d, const sl_schema *schema, sl_text first_line) {
    const char *letter;
    if (schema->field_counts[0] == 0)
        letter = "";
    else if (d->header_length == 0)
        letter = "A";
    else if (d->delimiter != ',')
        letter = "B/F";
    else if (first_line.bytes[0] == '"')
        letter = "E";
    else
        letter = d->column_count >= 15 ? "G" : "D";
    snprintf(d->letter, sizeof d->letter, "%s", letter);
}

/* Are the field's bytes ASCII letters, at least one and at most three? */
static bool is_code(sl_text field) {
    for (size_t i = 0; i < field.length; i++) {
        char letter = (char)(field.bytes[i] | 0x20);
        if (letter < 'a' || letter > 'z')
            return false;
    }
    return field.length >= 1 && field.length <= 3;
}

/* Can the field be a value of this column? */
static bool is_of_column(const sl_schema_column *column, sl_text field) {
    char copy[40] = {0}; /* with the bytes that converters read after a field */
    int64_t value;
    field = sl_field_trim(field, SL_TRIM_BOTH);
    if (sl_list_has("rfr_type_code|test_type|test_result", '|', sl_text_of(column->name)))
        return is_code(field);
    for (size_t i = 0; i < column->missing.count; i++) {
        if (sl_text_equal(field, sl_text_of(column->missing.words[i])))
            return true;
    }
    if (field.length == 0 || field.length > 20)
        return field.length == 0 ? !column->required : column->type == SL_TYPE_TEXT;
    memcpy(copy, field.bytes, field.length);
    switch (column->type) {
    case SL_TYPE_INT:
        return sl_convert_integer(copy, field.length, &value);
    case SL_TYPE_DATE:
    case SL_TYPE_DATETIME:
        return sl_convert_datetime(copy, field.length, &value);
    case SL_TYPE_FLAG:
        return sl_text_equal(field, sl_text_of(column->yes));
    default:
        return true;
    }
}

/* For a text without header: do the values of one of its first lines fit the columns? The number of
 * fields alone proves nothing. In a line with extra delimiters only the fields before the column
 * that may hold them are compared. */
static bool values_fit(const sl_schema *schema, sl_text head, const sl_first_line *first,
                       size_t columns) {
    sl_text fields[SL_COLUMNS_MAX], line;
    size_t at = first->text_start;
    for (unsigned lines = 0; lines < LINES_JUDGED && sl_next_line(head, true, &at, &line);
         lines++) {
        size_t count =
            sl_fields_split(line, first->delimiter, sl_quote_of(SL_QUOTE_AUTO, first->delimiter), 0,
                            fields, columns);
        bool fits = count >= columns;
        for (size_t i = 0; fits && i < columns; i++) {
            if (count > columns && schema->columns[i].spill)
                break;
            fits = is_of_column(&schema->columns[i], fields[i]);
        }
        if (fits)
            return true;
    }
    return false;
}

static bool begins_with_number(sl_text line, char delimiter) {
    sl_text field;
    uint64_t number;
    sl_fields_split(line, delimiter, sl_quote_of(SL_QUOTE_AUTO, delimiter), 0, &field, 1);
    return line.bytes[0] != '"' && sl_text_to_u64(field, &number);
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error) {
    (void)name;
    (void)whole;
    if (plan->options.schema_text)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "the format mot has built-in schemas; use the "
                            "format delimited with a schema");
    sl_first_line first;
    if (!sl_first_line_read(head, 0, delimiters, SL_QUOTE_AUTO, &first, error))
        return false;
    size_t columns = first.fields;
    sl_text *names = calloc(columns, sizeof *names);
    if (!names)
        return sl_error_memory(error, "reading a header");
    sl_fields_split(first.line, first.delimiter, sl_quote_of(SL_QUOTE_AUTO, first.delimiter), 0,
                    names, columns);
    bool header = !begins_with_number(first.line, first.delimiter);
    const sl_schema *schema = header ? schema_by_names(plan, names, columns)
                                     : schema_by_fields(plan, head, &first, &columns);
    if (schema && !header && !values_fit(schema, head, &first, columns))
        schema = NULL;
    bool bound = schema ? sl_dialect_bind(plan, schema, &first, header ? names : NULL, columns,
                                          dialect, error)
                        : not_mot(first.line, error);
    free(names);
    if (!bound)
        return false;
    sl_dialect *d = *dialect;
    d->escape = '\\';
    d->stray_quotes = true; /* inch marks are data; fields of this data never contain line ends */
    guess_letter(d, schema, first.line);
    if (d->trim == SL_TRIM_NOTHING && strcmp(d->letter, "A") == 0)
        d->trim = SL_TRIM_END;
    return true;
}

const sl_format sl_format_mot = {
    .name = "mot",
    .summary = "vehicle test results, test items and lookup tables, in every published dialect",
    SL_DELIMITED_FUNCTIONS,
};
