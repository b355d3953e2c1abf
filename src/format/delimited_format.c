/* SPDX-License-Identifier: Apache-2.0 */
/* The format `delimited`: any text of fields between delimiters. Columns and types come from a
 * schema; without one, the columns come from the table itself (table.h), and their types may be
 * inferred (typing.h). */
#include "delimited.h"
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
    bool header = schema->header == SL_CHOICE_YES ||
                  (schema->header == SL_CHOICE_UNSET && names_columns(schema, names, count));
    bool fits = header || field_count(schema, first->fields, &count, error);
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

/* Have the dialects a column of the same name? */
static bool share_a_column(const sl_dialect *one, const sl_dialect *other) {
    for (size_t i = 0; i < one->column_count; i++) {
        for (size_t k = 0; k < other->column_count; k++) {
            if (strcmp(one->columns[i].published, other->columns[k].published) == 0)
                return true;
        }
    }
    return false;
}

static bool may_be_pieces(const sl_dialect *one, const sl_dialect *other) {
    bool header = one->header_length > 0, other_header = other->header_length > 0;
    return one->inferable && other->inferable && one->delimiter == other->delimiter &&
           one->blanks == other->blanks && one->column_count == other->column_count &&
           one->column_count > 1 &&
           (header != other_header || (header && !share_a_column(one, other)));
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
    .may_be_pieces = may_be_pieces,
    .splitter = splitter,
    .splits_alike = splits_alike,
};
