/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the options*.c files: the values of a parsed command line, and how a value is checked
 * and stored. */
#ifndef SHARDLOAD_OPTIONS_INTERNAL_H
#define SHARDLOAD_OPTIONS_INTERNAL_H

#include <limits.h>
#include <string.h>

#include "options.h"

/* Ordered by precedence: a later origin overrides an earlier one. */
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
    sl_error *error; /* while parsing: the problems found so far */
};

/* The index of the row with that name, or SIZE_MAX. */
size_t sl_options_row(const sl_options *options, const char *name, size_t length);

/* Does the command that was given take the option of this row? */
static inline bool sl_options_applies(const sl_options *options, size_t index) {
    return options->program->rows[index].commands & options->command->bit;
}

/* ---- values ---- */

/* Checks one value against row `index` and stores it; it replaces a value whose origin has lower
 * precedence. `where` is the option's name in messages, such as the name of an environment
 * variable. A wrong value adds a problem to options->error. */
void sl_options_store(sl_options *options, size_t index, const char *text, sl_option_origin from,
                      const char *where);

/* Overwrites a text on the command line, in the environment or in memory with its redacted form.
 * Other processes and reports get only this form of a value. */
void sl_options_wipe(char *text, sl_option_secrecy secrecy);

#define SL_NAME_ROOM 100
/* An option's or a command's name for a message: cut to 80 bytes, and without credentials, if a
 * connection string was given by mistake. Returns out. */
const char *sl_options_shown_name(const char *name, size_t length, char out[SL_NAME_ROOM]);

/* The option with a name similar to a mistyped one, or NULL. */
const char *sl_options_nearest(const sl_program *program, const char *name, size_t length);

/* ---- the origins of values ---- */

/* The file of --config, and environment variables such as SHARDLOAD_URI. */
void sl_options_read_config(sl_options *options, const char *path);
void sl_options_read_environment(sl_options *options);

/* The command line. Its values are collected first and stored last, because the
 * configuration file, which they override, is itself named on the command line. */
typedef struct sl_option_word {
    size_t row;
    char *text; /* a copy: sl_secret_free */
} sl_option_word;

/* Appends the option values among words[2] to words[count - 1] to `out`, which has room for
 * `count`; the other words become arguments. Wipes secrets from the words. Returns the number of
 * values. */
size_t sl_options_read_words(sl_options *options, int count, char **words, sl_option_word *out);

/* Stores the values, and frees them. */
void sl_options_store_words(sl_options *options, const sl_option_word *values, size_t count);

/* For a process that is about to become another one of the same program: moves the passwords and
 * connection strings among the `*count` words to the environment, because the list of processes
 * shows words to all users. False without memory. */
bool sl_options_words_to_environment(const sl_program *program, const char **words, size_t *count);

#define SL_VARIABLE_ROOM 128
/* Writes the name of a row's environment variable: SHARDLOAD_WORK_DIR. Returns out. */
const char *sl_options_variable(const sl_program *program, size_t row, char out[SL_VARIABLE_ROOM]);

/* ---- options_help.c: --help, the manual page, completions ---- */

void sl_print_program_help(const sl_program *program);
/* `all`: all options with their full texts; otherwise the common ones of a command with many. */
void sl_print_command_help(const sl_program *program, const sl_command *command, bool all);
void sl_print_manual(const sl_program *program);
/* The completion for bash, zsh or fish; prints nothing and returns false for another shell. */
bool sl_print_completion(const sl_program *program, const char *shell);

#endif
