/* SPDX-License-Identifier: Apache-2.0 */
/* The format `delimited`: any text of fields between delimiters. Columns and types come from a
 * schema; without one, the columns come from the table itself (table.h), and their types may be
 * inferred (typing.h). */
#include "delimited.h"
#include "dialects.h"
#include "quoted.h"
#include "table.h"
#include "typing.h"

#include <stdlib.h>

static bool plan_create(const sl_format_options *options, sl_plan **out, sl_error *error) {
    sl_plan *plan;
    *out = NULL;
    if (!sl_delimited_plan_create(options, options->schema_text ? 1 : 0, &plan, error))
        return false;
    const char *source = options->schema_name ? options->schema_name : "schema";
    bool ok =
        options->schema_text
            ? sl_schema_read(sl_text_of(options->schema_text), source, &plan->schemas[0], error)
            : !options->infer_types || sl_typing_create(&plan->typing, error);
    if (ok)
        *out = plan;
    else
        sl_delimited_plan_destroy(plan);
    return ok;
}

/* Does the first line name at least one column of the schema? `*required`: and all that it
 * requires? */
static bool names_columns(const sl_schema *schema, const sl_text *names, size_t count,
                          bool *required) {
    bool any = false;
    *required = true;
    for (size_t k = 0; k < schema->column_count; k++) {
        bool found = false;
        for (size_t i = 0; i < count && !found; i++)
            found = sl_schema_column_is_named(&schema->columns[k], names[i]);
        *required = *required && (found || !schema->columns[k].required);
        any = any || found;
    }
    return any;
}

/* Is the first line, with these fields, a header? A line that names no column of the schema is a
 * record; if the schema declares a header, that is an error. */
static bool find_header(const sl_schema *schema, const sl_first_line *first, const sl_text *names,
                        bool *header, sl_error *error) {
    bool required, named = names_columns(schema, names, first->fields, &required);
    *header =
        schema->header == SL_CHOICE_YES || (schema->header == SL_CHOICE_UNSET && named && required);
    if (!*header || named)
        return true;
    char shown[80];
    sl_text_printable(first->line, shown, sizeof shown);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "its first line, `%s`, names no column of the schema %s, which declares a "
                        "header. If the line is a record, remove `header: true` from the schema",
                        shown, schema->name);
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

static bool sniff_table(const sl_plan *plan, sl_text head, bool whole, sl_dialect **dialect,
                        sl_error *error) {
    sl_table table;
    bool ok = sl_table_find(&plan->options, head, whole, &table, error);
    if (ok && table.first.delimiter == 0) /* one column: a delimiter is one field too many */
        table.first.delimiter = plan->options.delimiter ? plan->options.delimiter : ',';
    ok = ok && sl_dialect_bind_table(plan, &table, dialect, error);
    sl_table_clear(&table);
    return ok;
}

static bool sniff_by_schema(const sl_plan *plan, sl_text head, sl_dialect **dialect,
                            sl_error *error) {
    const sl_schema *schema = plan->schemas[0];
    char delimiters[] = "\t|,;";
    if (schema->delimiter) {
        delimiters[0] = schema->delimiter;
        delimiters[1] = '\0';
    }
    sl_table table = {.blanks = (uint8_t)schema->blanks};
    sl_first_line *first = &table.first;
    size_t skip = sl_after_lines(head, (uint64_t)schema->skip_lines);
    if (!sl_first_line_read(head, skip, delimiters, schema->quote, first, error))
        return false;
    table.quote = sl_quote_of(schema->quote, first->delimiter);
    first->fields = sl_table_split(&table, first->line, NULL, 0);
    size_t count = first->fields;
    sl_text *names = sl_table_fields(&table, error);
    if (!names)
        return false;
    bool header;
    bool fits = find_header(schema, first, names, &header, error) &&
                (header || field_count(schema, first->fields, &count, error));
    if (first->delimiter == 0) /* one column: a line with a delimiter has one field too many */
        first->delimiter = schema->delimiter ? schema->delimiter : ',';
    fits = fits && (!header || sl_table_set_names(&table, names, count, error)) &&
           sl_dialect_bind(plan, schema, first, header ? table.names : NULL, count, dialect, error);
    if (fits)
        memcpy((*dialect)->note, table.note, sizeof table.note);
    sl_table_clear(&table);
    if (fits && schema->blanks) {
        (*dialect)->blanks = (uint8_t)schema->blanks;
        (*dialect)->quote = 0;
    }
    free(names);
    return fits;
}

static bool sniff(const sl_plan *plan, const char *name, sl_text head, bool whole,
                  sl_dialect **dialect, sl_error *error) {
    (void)name;
    if (!(plan->schema_count == 0 ? sniff_table(plan, head, whole, dialect, error)
                                  : sniff_by_schema(plan, head, dialect, error)))
        return false;
    (*dialect)->quoted_lines = sl_quoted_divides(*dialect, head, plan->options.quoted_lines);
    return true;
}

bool sl_delimited_sniff_quoted(const sl_plan *plan, sl_text head, bool whole, char quote,
                               sl_dialect **dialect, sl_error *error) {
    sl_plan quoted = *plan; /* borrows what it points to */
    quoted.options.quote = quote ? quote : SL_QUOTE_NONE;
    return sniff(&quoted, NULL, head, whole, dialect, error);
}

static const sl_splitter *splitter(const sl_dialect *dialect, bool *lines) {
    *lines = false;
    return dialect->quoted_lines ? &sl_quoted_splitter : NULL;
}

static bool splits_alike(const sl_dialect *a, const sl_dialect *b) {
    return a->delimiter == b->delimiter && a->quote == b->quote;
}

void sl_delimited_plan_destroy(sl_plan *plan) {
    if (!plan)
        return;
    for (size_t i = 0; i < plan->schema_count; i++)
        sl_schema_destroy(plan->schemas[i]);
    free(plan->schemas);
    sl_typing_destroy(plan->typing);
    free(plan);
}

const sl_format sl_format_delimited = {
    .name = "delimited",
    .summary = "text with a delimiter: columns as in a schema, or as found in the text",
    SL_DELIMITED_FUNCTIONS,
    .splitter = splitter,
    .splits_alike = splits_alike,
};
