/* SPDX-License-Identifier: Apache-2.0 */
/* Options: a program's command line is parsed, and its command run. Values come from four origins:
 * the table's defaults, the configuration file, the environment and the command line; each origin
 * overrides those before it. Problems are collected, and reported together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/print.h"
#include "util/text.h"

#include "options_internal.h"

/* ---- help, version, manual page, completion ---- */

static bool is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static bool is_version(const char *word) {
    return strcmp(word, "--version") == 0;
}

static void print_version(const sl_program *program) {
    sl_print("%s %s\n", program->name, program->version);
}

/* Prints the help, version, manual page or completion of the program. False when the command line
 * asks for none of them. */
static bool print_page(const sl_program *program, int count, char **words) {
    if (count >= 2 && is_version(words[1]))
        print_version(program);
    else if (count == 2 && is_help(words[1]))
        sl_print_program_help(program);
    else if (count == 2 && strcmp(words[1], "--man") == 0)
        sl_print_manual(program);
    else if (count >= 2 && count <= 3 && strcmp(words[1], "--completion") == 0)
        return sl_print_completion(program, count == 3 ? words[2] : "bash");
    else
        return false;
    return true;
}

/* The same for the help of one command. */
static bool print_command_page(const sl_program *program, const sl_command *command, int count,
                               char **words) {
    for (int i = 1; i < count && strcmp(words[i], "--") != 0; i++) {
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0 ||
            (i == 1 && is_help(words[1]))) {
            sl_print_command_help(program, command);
            return true;
        }
        if (is_version(words[i])) {
            print_version(program);
            return true;
        }
    }
    return false;
}

/* ---- parsing ---- */

/* NULL with the error set when the command line names no command, or one that does not exist. */
static const sl_command *find_command(const sl_program *program, int count, char **words,
                                      sl_error *error) {
    const char *name = count >= 2 ? (is_help(words[1]) ? words[2] : words[1]) : NULL;
    for (const sl_command *command = program->commands; name && command->name; command++) {
        if (strcmp(command->name, name) == 0)
            return command;
    }
    char shown[SL_NAME_ROOM];
    sl_error_set(error, SL_EXIT_USAGE, "%s%s%s; `%s --help` lists the commands",
                 name ? "there is no command \"" : "which command?",
                 name ? sl_options_shown_name(name, strlen(name), shown) : "", name ? "\"" : "",
                 program->name);
    return NULL;
}

/* Creates options without values, with room for `count` arguments. NULL without memory. */
static sl_options *create(const sl_program *program, const sl_command *command, int count,
                          sl_error *error) {
    sl_options *options = calloc(1, sizeof *options);
    if (!options)
        return NULL;
    *options = (sl_options){.program = program, .command = command, .error = error};
    while (program->rows[options->rows].name)
        options->rows++;
    options->values = calloc(options->rows, sizeof *options->values);
    options->arguments = calloc((size_t)count, sizeof *options->arguments);
    if (options->values && options->arguments)
        return options;
    sl_options_destroy(options);
    return NULL;
}

static void store_defaults(sl_options *options) {
    for (size_t i = 0; i < options->rows; i++) {
        const sl_option_row *row = &options->program->rows[i];
        if (row->fallback && sl_options_applies(options, i))
            sl_options_store(options, i, row->fallback, FROM_DEFAULT, row->name);
    }
}

sl_options_result sl_options_parse(const sl_program *program, int count, char **words,
                                   sl_options **result, sl_error *error) {
    *result = NULL;
    *error = (sl_error){0};
    if (print_page(program, count, words))
        return SL_OPTIONS_SHOWN;
    const sl_command *command = find_command(program, count, words, error);
    if (!command)
        return SL_OPTIONS_FAILED;
    if (print_command_page(program, command, count, words))
        return SL_OPTIONS_SHOWN;

    sl_option_word *values = calloc((size_t)count, sizeof *values);
    sl_options *options = create(program, command, count, error);
    if (!values || !options) {
        free(values);
        sl_options_destroy(options);
        sl_error_memory(error, "reading options");
        return SL_OPTIONS_FAILED;
    }
    size_t found = sl_options_read_words(options, count, words, values);
    store_defaults(options);
    if (options->config_path)
        sl_options_read_config(options, options->config_path);
    sl_options_read_environment(options);
    sl_options_store_words(options, values, found);
    free(values);
    if (!command->takes_arguments && options->argument_count > 0)
        sl_option_problem(error, "%s %s takes no arguments: remove \"%s\"", program->name,
                          command->name, options->arguments[0]);
    if (error->code) {
        size_t used = strlen(error->message);
        snprintf(error->message + used, sizeof error->message - used,
                 "\n`%s %s --help` explains the options", program->name, command->name);
        sl_options_destroy(options);
        return SL_OPTIONS_FAILED;
    }
    *result = options;
    return SL_OPTIONS_RUN;
}

bool sl_options_create(const sl_program *program, const sl_command *command,
                       const char *const *arguments, sl_options **result, sl_error *error) {
    size_t count = 0;
    while (arguments && arguments[count])
        count++;
    sl_options *options = create(program, command, (int)count + 1, error);
    *result = options;
    if (!options)
        return sl_error_memory(error, "reading options");
    for (; options->argument_count < count; options->argument_count++)
        options->arguments[options->argument_count] = arguments[options->argument_count];
    store_defaults(options);
    return true;
}

void sl_options_set(sl_options *options, const char *name, const char *value) {
    size_t row = sl_options_row(options, name, strlen(name));
    char shown[SL_NAME_ROOM];
    if (row != SIZE_MAX && sl_options_applies(options, row)) {
        sl_options_store(options, row, value, FROM_COMMAND_LINE, name);
        return;
    }
    const char *near = sl_options_nearest(options->program, name, strlen(name));
    sl_option_problem(options->error, "%s: there is no such option of `%s`%s%s%s",
                      sl_options_shown_name(name, strlen(name), shown), options->command->name,
                      near && strcmp(near, name) != 0 ? "; did you mean " : "",
                      near && strcmp(near, name) != 0 ? near : "",
                      near && strcmp(near, name) != 0 ? "?" : "");
}

void sl_options_forget_secrets(const sl_options *options) {
    for (size_t i = 0; i < options->rows; i++) {
        sl_option_secrecy secrecy = options->program->rows[i].secret;
        for (size_t k = 0; secrecy != SL_COMMAND_LINE && k < options->values[i].count; k++)
            sl_options_wipe(options->values[i].texts[k], secrecy);
    }
}

void sl_options_destroy(sl_options *options) {
    if (!options)
        return;
    for (size_t i = 0; options->values && i < options->rows; i++) {
        for (size_t k = 0; k < options->values[i].count; k++)
            sl_secret_free(options->values[i].texts[k]);
        free(options->values[i].texts);
    }
    free(options->values);
    free(options->arguments);
    free(options->config_path);
    free(options);
}

/* ---- running a program ---- */

/* Returns the exit code, or that of the failed write instead of success when output was lost. */
static int checked_output(const sl_program *program, int code) {
    bool bad = ferror(stdout);
    if (fflush(stdout) == 0 && !bad)
        return code;
    int why = errno;
    sl_print_to(stderr, "%s: cannot write standard output: %s\n", program->name, strerror(why));
    return code == SL_EXIT_OK ? (int)sl_exit_of_errno(why, SL_EXIT_USAGE) : code;
}

int sl_options_main(const sl_program *program, int count, char **words) {
    sl_options *options;
    sl_error error = {0};
    switch (sl_options_parse(program, count, words, &options, &error)) {
    case SL_OPTIONS_SHOWN:
        return checked_output(program, SL_EXIT_OK);
    case SL_OPTIONS_FAILED:
        sl_print_to(stderr, "%s: " SL_LINES "\n", program->name, error.message);
        return error.code;
    case SL_OPTIONS_RUN:
        break;
    }
    int code = 0;
    if (sl_option_files_check(options, &error))
        code = sl_options_command(options)->run(options);
    else
        code = (int)error.code,
        sl_print_to(stderr, "%s: " SL_LINES "\n", program->name, error.message);
    sl_options_destroy(options);
    return checked_output(program, code);
}
