/* SPDX-License-Identifier: Apache-2.0 */
/* Options: one table per program, from which parsing, --help, environment variables and the keys of
 * a configuration file come.
 *
 * Precedence: command line, then environment (PREFIX_NAME), then --config FILE.yaml, then the
 * table's default. All wrong options are reported together. */
#ifndef SHARDLOAD_OPTIONS_H
#define SHARDLOAD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <bson/bson.h>

#include "util/error.h"

typedef struct sl_options sl_options;

/* Ordered by precedence: a later origin overrides an earlier one. */
typedef enum sl_option_origin {
    SL_FROM_DEFAULT,
    SL_FROM_CONFIG,
    SL_FROM_ENVIRONMENT,
    SL_FROM_COMMAND_LINE,
} sl_option_origin;

typedef enum sl_option_kind {
    SL_OPTION_FLAG, /* --drop; in files and environment true/false/yes/no/1/0 */
    SL_OPTION_STRING,
    SL_OPTION_LIST,    /* may be given several times; a YAML sequence */
    SL_OPTION_COUNT,   /* a whole number (500, 10k, 100M) from minimum to maximum, or one of the
                          words in choices, among which "P%" allows any percentage
                          with at most two decimals */
    SL_OPTION_BYTES,   /* 64MiB; from minimum to maximum */
    SL_OPTION_SECONDS, /* 90s, 4h */
    SL_OPTION_CHOICE,  /* one of the words in choices */
} sl_option_kind;

typedef enum sl_option_secrecy {
    SL_OPEN,        /* a value with a user or password in a URI is refused */
    SL_CREDENTIALS, /* a connection string, which may hold a password */
    SL_SECRET, /* a password; without a value, or with an empty one, the program prompts for it */
    SL_COMMAND_LINE, /* a command for a shell, or options: may hold a password anywhere */
} sl_option_secrecy;

/* What the value names. options.c compares the files of all options. */
typedef enum sl_option_file {
    SL_FILE_NONE,       /* not a file */
    SL_FILE_READ,       /* a file or a folder that the command reads; other words are allowed */
    SL_FILE_READ_WORDS, /* a command line, whose words may be such files */
    SL_FILE_WRITTEN,
    SL_FILE_WORK_DIRECTORY,
} sl_option_file;

/* Whether a load with another value of the option stores other documents, or a restore makes other
 * collections. Such options must have the same value in all runs of a load or restore (--resume),
 * and in all loaders that share it (--part). */
typedef enum sl_option_effect {
    SL_EFFECT_UNSTATED,  /* in no row */
    SL_EFFECT_NONE,      /* the same documents */
    SL_EFFECT_DOCUMENTS, /* other documents */
    SL_EFFECT_FILE,      /* the value names a file, whose text changes the documents */
    SL_EFFECT_FIELD,     /* FIELD=FILE: the field changes the documents; the file is a source, and
                            compared as such */
} sl_option_effect;

typedef struct sl_option_row {
    const char *name; /* long name without --; NULL ends a table */
    char letter;      /* short name, or 0 */
    sl_option_kind kind;
    const char *argument; /* name of the value in --help; NULL for a flag */
    const char *fallback; /* default as text, or NULL for none */
    const char *choices;  /* "a|b|c", or NULL; of a list: of each item */
    uint64_t minimum;     /* for COUNT and BYTES */
    uint64_t maximum;     /* 0 means no limit */
    unsigned commands;    /* bit mask of the commands that accept it */
    const char *group;    /* heading in --help */
    const char *help;     /* one or two sentences */
    sl_option_secrecy secret;
    /* An additional check of a value, or NULL. On false `problem` is a message, which is printed
     * after the option's name. */
    bool (*check)(const char *text, char *problem, size_t room);
    sl_option_file file;
    const char *file_after; /* the file's name follows this text; NULL: the value is the name */
    unsigned prints;        /* bit mask of the commands for which the file - is standard output */
    sl_option_effect effect;
    bool common; /* shown by the short --help */
    bool joined; /* may be given several times: the values are joined with commas */
    bool once;   /* for one load or its files: not in the command for corrected records */
} sl_option_row;

/* Short forms for the fields that most rows of an option table set:
 *
 *     {.name = "repeat", SL_ROW_COUNT("N", 1, 1000), SL_ROW_OF(RUN, "Queries", NONE), ...} */
#define SL_ROW_COMMON .common = true
#define SL_ROW_FLAG .kind = SL_OPTION_FLAG
#define SL_ROW_TEXT(value) .kind = SL_OPTION_STRING, .argument = value
#define SL_ROW_FILE(value, nature) SL_ROW_TEXT(value), .file = SL_FILE_##nature
#define SL_ROW_LIST(value) .kind = SL_OPTION_LIST, .argument = value
#define SL_ROW_TIME .kind = SL_OPTION_SECONDS, .argument = "TIME"
#define SL_ROW_CHOICE(value, words) .kind = SL_OPTION_CHOICE, .argument = value, .choices = words
#define SL_ROW_COUNT(value, low, high)                                                             \
    .kind = SL_OPTION_COUNT, .argument = value, .minimum = low, .maximum = high
#define SL_ROW_BYTES(low, high)                                                                    \
    .kind = SL_OPTION_BYTES, .argument = "SIZE", .minimum = low, .maximum = high
/* The commands that take the option, its heading in --help, and its sl_option_effect without
 * prefix: NONE, DOCUMENTS, FILE or FIELD. */
#define SL_ROW_OF(mask, heading, changes)                                                          \
    .commands = mask, .group = heading, .effect = SL_EFFECT_##changes

/* Compressors: the choices of --compressor and --wire-compression. */
#define SL_COMPRESSORS "none|snappy|zlib|zstd"

typedef struct sl_command {
    const char *name;     /* NULL ends a table */
    unsigned bit;         /* its bit in sl_option_row.commands */
    const char *synopsis; /* "[options] SOURCE..." */
    const char *summary;  /* one line */
    const char *details;  /* paragraphs and examples for `--help` */
    bool takes_arguments; /* accepts words that are not options */
    /* Runs the command; returns the exit code. */
    int (*run)(const sl_options *options);
} sl_command;

/* A word of other programs for the same purpose, and the words that replace it. */
typedef struct sl_other_word {
    const char *word;   /* a command, or an option with "-" or "--"; NULL ends a table */
    const char *advice; /* ends the sentence "...; " */
    bool has_value;     /* an option whose next word is its value */
} sl_other_word;

typedef struct sl_program {
    const char *name;
    const char *version;
    const char *summary;
    const char *environment_prefix; /* "SHARDLOAD" */
    const sl_command *commands;
    const sl_option_row *rows;
    const char *epilogue;             /* exit codes and further documentation; for --help */
    const sl_other_word *other_words; /* may be NULL */
} sl_program;

typedef enum sl_options_result {
    SL_OPTIONS_RUN,    /* *options is set; run its command */
    SL_OPTIONS_SHOWN,  /* --help or --version was printed: exit 0 */
    SL_OPTIONS_FAILED, /* error is set (SL_EXIT_USAGE), one line per wrong option */
} sl_options_result;

/* Parses the command line. Every command also accepts --help, --version and --config FILE. Secrets
 * are overwritten in `words`, so that the list of processes does not show them, and in the
 * environment, unless the program has a SL_COMMAND_LINE option, whose commands inherit it. */
sl_options_result sl_options_parse(const sl_program *program, int count, char **words,
                                   sl_options **options, sl_error *error);
/* Options of a command without a command line, environment and configuration file: the defaults,
 * and `arguments` (ended by NULL, borrowed). Problems of later values are added to `error`. False
 * without memory. */
bool sl_options_create(const sl_program *program, const sl_command *command,
                       const char *const *arguments, sl_options **options, sl_error *error);
/* Sets an option by its name, as on the command line. */
void sl_options_set(sl_options *options, const char *name, const char *value);
void sl_options_destroy(sl_options *options); /* NULL is fine */

/* Adds a line to an error of class SL_EXIT_USAGE, so that all wrong options are reported together.
 * The format is that of sl_error_set. Always returns false. */
bool sl_option_problem(sl_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds the message of another error as a line, after `prefix`. The class becomes SL_EXIT_RESOURCES
 * if that is the class of `why`. Always returns false. */
bool sl_option_failed(sl_error *error, const char *prefix, const sl_error *why);
/* Adds the line "out of memory while <activity>"; the class becomes SL_EXIT_RESOURCES. Always
 * returns false. */
bool sl_option_memory(sl_error *error, const char *activity);

/* Refuses the options whose name or group is one of the words ("a|b"): adds a problem, the option's
 * name and `why`, for each. A value is refused if its origin is `least` or a later one. So with
 * SL_FROM_COMMAND_LINE, values of files and of the environment are accepted: they may be meant for
 * other commands. A word that is neither a name nor a group aborts. */
void sl_options_refuse(const sl_options *options, sl_option_origin least, const char *words,
                       const char *why, sl_error *error);

const sl_command *sl_options_command(const sl_options *options);

/* The words that are not options. */
const char *sl_options_config_path(const sl_options *options); /* NULL: none */
size_t sl_options_argument_count(const sl_options *options);
const char *const *sl_options_arguments(const sl_options *options);
const char *sl_options_argument(const sl_options *options, size_t index);

/* Values by name. A name that is not in the table, or of another kind, is a programming error and
 * aborts. Strings live as long as the options. */
sl_option_origin sl_option_origin_of(const sl_options *options, const char *name);
bool sl_option_given(const sl_options *options, const char *name); /* false for a default */
bool sl_option_flag(const sl_options *options, const char *name);
const char *sl_option_string(const sl_options *options, const char *name); /* or CHOICE; or NULL */
uint64_t sl_option_number(const sl_options *options, const char *name);    /* COUNT, BYTES */
double sl_option_seconds(const sl_options *options, const char *name);
/* Was a COUNT option given as the word `word` ("auto")? */
bool sl_option_is_word(const sl_options *options, const char *name, const char *word);
/* For a COUNT option given as a word: the number from a source of lower precedence, or 0. So "auto"
 * on the command line can start from the number in the configuration file. */
uint64_t sl_option_weaker_number(const sl_options *options, const char *name);
/* Was a COUNT option that allows "P%" given as a percentage? Its number is then in hundredths of a
 * percent. */
bool sl_option_is_percentage(const sl_options *options, const char *name);
size_t sl_option_list_count(const sl_options *options, const char *name);
const char *const *sl_option_list(const sl_options *options, const char *name);
const char *sl_option_list_item(const sl_options *options, const char *name, size_t index);

/* Would the option (a STRING or CHOICE) accept this value, which is from a file and not from the
 * command line? If not, adds a problem, whose text begins with `where`. */
bool sl_option_accepts(const sl_options *options, const char *name, const char *value,
                       const char *where, sl_error *error);

/* Compares all files that the command reads and writes: those of its options, by `file` of their
 * rows, of --config and of --uri, its arguments, and the files in folders. Refuses (SL_EXIT_USAGE)
 * an output that is an input, another output or a file of the work directory, or that lies in a
 * folder all of whose files are read; and an input that is a file of the work directory. Nothing is
 * written. Call it before a command runs. */
bool sl_option_files_check(const sl_options *options, sl_error *error);

typedef void sl_option_visitor(void *context, const sl_option_row *row, const char *value,
                               sl_option_origin origin);

/* Calls `visit` for every option of the command with its value as text (NULL when it has none,
 * secrets redacted); for a list, once for each of its items. */
void sl_options_each(const sl_options *options, sl_option_visitor *visit, void *context);

/* Appends two fields to a record: "options", the values of all options of the command without
 * secrets, null for none, and "optionsGiven", the names of those that are not defaults. */
void sl_options_append(const sl_options *options, bson_t *record);

/* Calls `visit` for every option of the command that changes documents and has another value than
 * its default, with this value as text: equal values are equal texts (100M and 100000000). */
void sl_options_each_changing(const sl_options *options, sl_option_visitor *visit, void *context);

/* --quiet and --verbose, for the context of the calling thread (context.h). */
void sl_options_set_verbosity(const sl_options *options);

/* Replaces the secrets among the values by their redacted form. Call it after their last use. */
void sl_options_forget_secrets(const sl_options *options);

/* Parses the words of a program's command line, runs the command, prints errors; returns the exit
 * code. */
int sl_options_main(const sl_program *program, int count, char **words);

/* For a process that is about to become another one of the same program: moves the passwords and
 * connection strings among the `*count` words to the environment, because the list of processes
 * shows words to all users. False without memory. */
bool sl_options_words_to_environment(const sl_options *own, const char **words, size_t *count);

/* ---- options_help.c: --help, the manual page, completions ---- */

void sl_print_program_help(const sl_program *program);
/* `all`: prints every option; otherwise only the common ones, if the command has many. */
void sl_print_command_help(const sl_program *program, const sl_command *command, bool all);
void sl_print_manual(const sl_program *program);
/* The completion for bash, zsh or fish; prints nothing and returns false for another shell. */
bool sl_print_completion(const sl_program *program, const char *shell);

#endif
