/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the options: what options.c parses, options_values.c hands out and options_help.c
 * explains. */
#ifndef SHARDLOAD_OPTIONS_INTERNAL_H
#define SHARDLOAD_OPTIONS_INTERNAL_H

#include <shardload/options.h>

typedef enum sl_option_origin {
    FROM_DEFAULT,
    FROM_CONFIG,
    FROM_ENVIRONMENT,
    FROM_COMMAND_LINE,
} sl_option_origin;

typedef struct sl_option_value {
    char **texts; /* as given; one, or several for a list */
    size_t count;
    bool flag;
    uint64_t number;
    double seconds;
    sl_option_origin from;
} sl_option_value;

struct sl_options {
    const sl_program *program;
    const sl_command *command;
    sl_option_value *values; /* one per row */
    size_t rows;
    const char **arguments;
    size_t argument_count;
    char *config_path;
    sl_error *error; /* while parsing: what is wrong so far */
    bool wrong;
};

/* The row of that name, or SIZE_MAX. */
size_t sl_options_row(const sl_options *options, const char *name, size_t length);

/* Does the row belong to the command in hand? */
static inline bool sl_options_applies(const sl_options *options, size_t index) {
    return options->program->rows[index].commands & options->command->bit;
}

/* options_pages.c: a manual page in roff; a completion for bash. */
void sl_print_manual(const sl_program *program);
void sl_print_completion(const sl_program *program);

void sl_print_program_help(const sl_program *program);
void sl_print_command_help(const sl_program *program, const sl_command *command);

#endif
