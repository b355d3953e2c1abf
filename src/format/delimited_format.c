/* SPDX-License-Identifier: Apache-2.0 */
/* The format `delimited`: any text of fields between delimiters. Columns and types come from a
 * schema; without one, the columns come from the header, and all are text. */
#include "convert.h"
#include "delimited.h"
#include "typing.h"

#include <stdlib.h>

static bool plan_create(const sl_format_options *options, sl_plan **plan, sl_error *error) {
    if (!sl_delimited_plan_create(options, options->schema_text ? 1 : 0, plan, error))
        return false;
    if (!options->schema_text && options->infer_types &&
        !sl_typing_create(&(*plan)->typing, error)) {
        sl_delimited_plan_destroy(*plan);
        *plan = NULL;
        return false;
    }
    if (options->schema_text &&
        !sl_schema_read(sl_text_of(options->schema_text),
                        options->schema_name ? options->schema_name : "schema",
                        &(*plan)->schemas[0], error)) {
        sl_delimited_plan_destroy(*plan);
        *plan = NULL;
        return false;
    }
    return true;
}

/* Does the first line name at least one column of the schema, and all required ones? */
static bool names_columns(const sl_schema *schema, const sl_text *names, size_t count) {
    bool any = false;
    for (size_t k = 0; k < schema->column_count; k++) {
        bool found = false;
        for (size_t i = 0; i < count && !found; i++)
            found = sl_schema_column_is_named(&schema->columns[k], names[i]);
        if (schema->columns[k].required && !found)
            return false;
        any |= found;
    }
    return any;
}

/* The number of columns of a text without header whose first line has `fields` fields: one of the
 * schema's counts, or all its columns. False with error when `fields` is another number. */
static bool field_count(const sl_schema *schema, size_t fields, size_t *count, sl_error *error) {
    *count = schema->column_count;
    for (size_t i = 0; schema->field_counts[i] != 0; i++) {
        if (schema->field_counts[i] == fields && fields <= schema->column_count)
            *count = fields;
    }
    if (*count == fields)
        return true;
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "the first line has %zu fields and names no columns; the schema %s has %zu "
                        "columns",
                        fields, schema->name, schema->column_count);
}

/* Checks a text for which there is no schema: the first line must be a header, and at least half of
 * the lines after it must have as many fields as it has names. */
static bool check_table(sl_text head, bool whole, const sl_first_line *first, const sl_text *names,
                        sl_error *error) {
    char shown[60];
    sl_text_printable(first->line, shown, sizeof shown);
    if (first->delimiter == 0 || strchr("{[<", first->line.bytes[0]))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "this is not delimited text: its first line is `%s`; expected a header "
                            "of names separated by tabs, pipes, commas or semicolons",
                            shown);
    for (size_t i = 0; i < first->fields; i++) {
        double number;
        if (names[i].length < 60 && sl_convert_double(names[i].bytes, names[i].length, &number))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "the first line, `%s`, holds numbers, not the names of columns; a "
                                "text without header needs a schema",
                                shown);
    }
    size_t lines = 0, fitting = 0;
    for (size_t at = first->end; at < head.length;) {
        const char *end = memchr(head.bytes + at, '\n', head.length - at);
        if (!end && !whole)
            break; /* the line may be incomplete */
        size_t length = end ? (size_t)(end - head.bytes) - at : head.length - at;
        sl_text line = {head.bytes + at, length};
        lines += length > 0;
        fitting += length > 0 && sl_header_split(line, first->delimiter, NULL, 0) == first->fields;
        at += length + 1;
    }
    if (2 * fitting >= lines)
        return true;
    sl_lines rule = {first->delimiter, first->delimiter != '|' && first->delimiter != '\t',
                     first->fields, sl_delimited_quotes_advice};
    if (!sl_lines_check(head, whole, &rule, NULL)) /* a table; check_head refuses its line ends */
        return true;
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "this is not delimited text: `%s` would be a header of %zu columns, but "
                        "only %zu of the next %zu lines have as many fields",
                        shown, first->fields, fitting, lines);
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error) {
    (void)name;
    const sl_schema *schema = plan->schema_count > 0 ? plan->schemas[0] : NULL;
    char delimiters[] = "\t|,;";
    if (schema && schema->delimiter) {
        delimiters[0] = schema->delimiter;
        delimiters[1] = '\0';
    }
    sl_first_line first;
    if (!sl_first_line_read(head, delimiters, &first, error))
        return false;
    sl_text *names = calloc(first.fields, sizeof *names);
    if (!names)
        return sl_error_memory(error, "reading a header");
    size_t count = sl_header_split(first.line, first.delimiter, names, first.fields);
    bool header = !schema || schema->header == SL_CHOICE_YES ||
                  (schema->header == SL_CHOICE_UNSET && names_columns(schema, names, count));
    bool fits = schema ? header || field_count(schema, first.fields, &count, error)
                       : check_table(head, whole, &first, names, error);
    if (first.delimiter == 0) /* one column: a line with a delimiter has one field too many */
        first.delimiter = schema && schema->delimiter ? schema->delimiter : ',';
    fits =
        fits && sl_dialect_bind(plan, schema, &first, header ? names : NULL, count, dialect, error);
    free(names);
    return fits;
}

const sl_format sl_format_delimited = {
    .name = "delimited",
    .summary = "text with a delimiter: columns as in a schema, or named by the header and all text",
    .plan_create = plan_create,
    .plan_destroy = sl_delimited_plan_destroy,
    .sniff = sniff,
    .check_head = sl_delimited_check_head,
    .dialect_destroy = sl_delimited_dialect_destroy,
    .record_kind = sl_delimited_record_kind,
    .describe = sl_delimited_describe,
    .header = sl_delimited_header,
    .parse = sl_delimited_parse,
};
