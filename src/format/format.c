/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats, and the defaults of fields that a format does not set. */
#include "format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS(id, name, help) &sl_format_##id,
const sl_format *const sl_formats[] = {SL_FORMATS(ADDRESS) NULL};

const sl_format *sl_format_named(const char *name) {
    for (size_t i = 0; sl_formats[i]; i++) {
        if (strcmp(sl_formats[i]->name, name) == 0)
            return sl_formats[i];
    }
    return NULL;
}

bool sl_format_plan_create(const sl_format *format, const sl_format_options *options,
                           sl_plan **plan, sl_error *error) {
    *plan = NULL;
    if (options->schema_text && !format->takes_schema)
        return sl_error_set(error, SL_EXIT_USAGE, "--format %s takes no --schema", format->name);
    return !format->plan_create || format->plan_create(options, plan, error);
}

void sl_format_plan_destroy(const sl_format *format, sl_plan *plan) {
    if (format->plan_destroy)
        format->plan_destroy(plan);
    else
        free(plan);
}

void sl_format_dialect_destroy(const sl_format *format, sl_dialect *dialect) {
    if (format->dialect_destroy)
        format->dialect_destroy(dialect);
    else
        free(dialect);
}

const char *sl_format_record_kind(const sl_format *format, const sl_dialect *dialect) {
    return format->record_kind ? format->record_kind(dialect) : format->kind;
}

char *sl_format_describe(const sl_format *format, const sl_dialect *dialect, char *out,
                         size_t room) {
    if (format->describe)
        return format->describe(dialect, out, room);
    snprintf(out, room, "%s", sl_format_record_kind(format, dialect));
    return out;
}

sl_text sl_format_header(const sl_format *format, const sl_dialect *dialect) {
    return format->header ? format->header(dialect) : (sl_text){"", 0};
}
