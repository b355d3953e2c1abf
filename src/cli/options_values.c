/* SPDX-License-Identifier: Apache-2.0 */
/* Options: values read by name. */
#include <stdlib.h>
#include <string.h>

#include "util/print.h"
#include "util/text.h"

#include "options_internal.h"

static const char *const origin_names[] = {"default", "config", "environment", "command line"};

const sl_command *sl_options_command(const sl_options *options) {
    return options->command;
}

size_t sl_options_argument_count(const sl_options *options) {
    return options->argument_count;
}

const char *sl_options_argument(const sl_options *options, size_t index) {
    return options->arguments[index];
}

/* `kinds` has a bit for each kind that is allowed. */
static const sl_option_value *value_of(const sl_options *options, const char *name,
                                       unsigned kinds) {
    size_t index = sl_options_row(options, name, strlen(name));
    if (index == SIZE_MAX || !(kinds & (1u << options->program->rows[index].kind))) {
        sl_print_to(stderr, "shardload: internal error: option %s\n", name);
        abort();
    }
    return &options->values[index];
}

bool sl_option_given(const sl_options *options, const char *name) {
    return value_of(options, name, ~0u)->from != FROM_DEFAULT;
}

bool sl_option_flag(const sl_options *options, const char *name) {
    return value_of(options, name, 1u << SL_OPTION_FLAG)->flag;
}

const char *sl_option_string(const sl_options *options, const char *name) {
    const sl_option_value *found =
        value_of(options, name, 1u << SL_OPTION_STRING | 1u << SL_OPTION_CHOICE);
    return found->count ? found->texts[0] : NULL;
}

uint64_t sl_option_number(const sl_options *options, const char *name) {
    return value_of(options, name, 1u << SL_OPTION_COUNT | 1u << SL_OPTION_BYTES)->number;
}

double sl_option_seconds(const sl_options *options, const char *name) {
    return value_of(options, name, 1u << SL_OPTION_SECONDS)->seconds;
}

bool sl_option_is_word(const sl_options *options, const char *name, const char *word) {
    const sl_option_value *found = value_of(options, name, 1u << SL_OPTION_COUNT);
    return found->count && strcmp(found->texts[0], word) == 0;
}

uint64_t sl_option_weaker_number(const sl_options *options, const char *name) {
    return value_of(options, name, 1u << SL_OPTION_COUNT)->number; /* a word does not change it */
}

bool sl_option_is_percentage(const sl_options *options, const char *name) {
    const sl_option_value *found = value_of(options, name, 1u << SL_OPTION_COUNT);
    return found->count && strchr(found->texts[0], '%');
}

size_t sl_option_list_count(const sl_options *options, const char *name) {
    return value_of(options, name, 1u << SL_OPTION_LIST)->count;
}

const char *sl_option_list_item(const sl_options *options, const char *name, size_t index) {
    return value_of(options, name, 1u << SL_OPTION_LIST)->texts[index];
}

void sl_options_each(const sl_options *options,
                     void (*visit)(void *context, const char *name, const char *value,
                                   const char *origin),
                     void *context) {
    for (size_t i = 0; i < options->rows; i++) {
        if (!sl_options_applies(options, i))
            continue;
        const sl_option_row *row = &options->program->rows[i];
        const sl_option_value *found = &options->values[i];
        const char *origin = origin_names[found->from];
        if (found->count == 0)
            visit(context, row->name, row->kind == SL_OPTION_FLAG ? "false" : NULL, origin);
        for (size_t k = 0; k < found->count; k++) {
            char *redacted = row->secret == SL_CREDENTIALS ? sl_redact_uri(found->texts[k]) : NULL;
            visit(context, row->name, row->secret ? (redacted ? redacted : "***") : found->texts[k],
                  origin);
            free(redacted);
        }
    }
}

size_t sl_options_row(const sl_options *options, const char *name, size_t length) {
    for (size_t i = 0; i < options->rows; i++) {
        const char *row = options->program->rows[i].name;
        if (strlen(row) == length && memcmp(row, name, length) == 0)
            return i;
    }
    return SIZE_MAX;
}
