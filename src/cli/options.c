/* SPDX-License-Identifier: Apache-2.0 */
/* Options: parsing by table. Words of the command line, environment variables and the keys of a
 * configuration file all end in `take`, which checks one value against its row; what is wrong is
 * collected, and reported when everything has been looked at. The three ways in stand in one file
 * because they share that one way on. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include <shardload/print.h>
#include <shardload/text.h>
#include <shardload/yaml_limits.h>

#include "options_internal.h"
#include "secrets.h"

/* ---- collecting what is wrong ---- */

static void complain(sl_options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(sl_options *options, const char *format, ...) {
    sl_error *error = options->error;
    size_t used = options->wrong ? strlen(error->message) : 0;
    options->wrong = true;
    error->code = SL_EXIT_USAGE;
    if (used > 0 && used + 1 < sizeof error->message)
        error->message[used++] = '\n';
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(error->message + used, sizeof error->message - used, format, arguments);
    va_end(arguments);
}

#define SL_NAME_ROOM 100

/* Text where a name is expected, safe to show: a connection string in it is reduced to its
 * beginning. */
static const char *shown_name(const char *name, size_t length, char out[SL_NAME_ROOM]) {
    const char *scheme = memmem(name, length, "://", 3);
    bool secret = scheme || (memchr(name, ':', length) && memchr(name, '@', length));
    if (secret)
        length = scheme ? (size_t)(scheme - name) : 0;
    snprintf(out, SL_NAME_ROOM, "%.*s%s", length < 80 ? (int)length : 80, name,
             secret        ? "***"
             : length > 80 ? "..."
                           : "");
    return out;
}

/* The option nearest to a mistyped name, or NULL when nothing is near: fewest single-character
 * edits, at most a third of its length. */
static const char *nearest_name(const sl_program *program, const char *name, size_t length) {
    const char *best = NULL;
    size_t best_distance = length / 3 + 1;
    for (const sl_option_row *row = program->rows; row->name; row++) {
        size_t other = strlen(row->name);
        size_t line[64];
        if (other >= 64 || length >= 64)
            continue;
        for (size_t j = 0; j <= other; j++)
            line[j] = j;
        for (size_t i = 1; i <= length; i++) {
            size_t diagonal = line[0];
            line[0] = i;
            for (size_t j = 1; j <= other; j++) {
                size_t above = line[j];
                size_t change = diagonal + (name[i - 1] != row->name[j - 1]);
                size_t insert = (line[j - 1] < above ? line[j - 1] : above) + 1;
                line[j] = change < insert ? change : insert;
                diagonal = above;
            }
        }
        if (line[other] < best_distance) {
            best_distance = line[other];
            best = row->name;
        }
    }
    return best;
}

/* ---- one value against its row ---- */

static bool word_in(const char *choices, const char *word) {
    size_t length = strlen(word);
    for (const char *at = choices; at && *at;) {
        size_t one = strcspn(at, "|");
        if (one == length && memcmp(at, word, length) == 0)
            return true;
        at += one + (at[one] == '|');
    }
    return false;
}

static bool keep_text(sl_option_value *into, const char *text, bool append) {
    if (!append) {
        for (size_t i = 0; i < into->count; i++)
            sl_secret_free(into->texts[i]);
        into->count = 0;
    }
    char **texts = realloc(into->texts, (into->count + 1) * sizeof *texts);
    if (!texts)
        return false;
    into->texts = texts;
    texts[into->count] = strdup(text);
    return texts[into->count] && ++into->count > 0;
}

/* A percentage is the one word that a row cannot list: "P%" in choices stands for it. */
static bool percentage(const char *choices, const char *text, uint64_t *hundredths) {
    size_t length = strlen(text);
    if (!word_in(choices, "P%") || length < 2 || text[length - 1] != '%')
        return false;
    char *end;
    double percent = strtod(text, &end);
    if (end != text + length - 1 || !(percent >= 0 && percent <= 100))
        return false;
    *hundredths = (uint64_t)(percent * 100 + 0.5);
    return true;
}

static bool in_range(const sl_option_row *row, uint64_t number) {
    return number >= row->minimum && (row->maximum == 0 || number <= row->maximum);
}

static void take(sl_options *options, size_t index, const char *text, sl_option_origin from,
                 const char *where) {
    const sl_option_row *row = &options->program->rows[index];
    sl_option_value *into = &options->values[index];
    const char *shown = row->secret ? "***" : text;
    if (!row->secret && sl_is_connection_string(text) && strchr(text, '@')) {
        complain(options,
                 "%s: its value looks like a connection string with a password; give it "
                 "with --uri",
                 where);
        return;
    }
    switch (row->kind) {
    case SL_OPTION_FLAG: {
        bool on = word_in("true|yes|1|on", text);
        if (!on && !word_in("false|no|0|off", text)) {
            complain(options, "%s: \"%s\" is neither true nor false", where, shown);
            return;
        }
        into->flag = on;
        break;
    }
    case SL_OPTION_STRING:
    case SL_OPTION_LIST:
        break;
    case SL_OPTION_COUNT:
        if (row->choices && (percentage(row->choices, text, &into->number) ||
                             (word_in(row->choices, text) && strcmp(text, "P%") != 0)))
            break;
        if (!sl_text_to_count(sl_text_of(text), &into->number) || !in_range(row, into->number)) {
            char range[96] = "";
            if (row->maximum)
                snprintf(range, sizeof range, " from %llu to %llu",
                         (unsigned long long)row->minimum, (unsigned long long)row->maximum);
            else if (row->minimum)
                snprintf(range, sizeof range, " of at least %llu",
                         (unsigned long long)row->minimum);
            complain(options, "%s: \"%s\" is not a whole number%s%s%s", where, shown, range,
                     row->choices ? ", nor one of " : "", row->choices ? row->choices : "");
            return;
        }
        break;
    case SL_OPTION_BYTES:
        if (!sl_text_to_bytes(sl_text_of(text), &into->number) || !in_range(row, into->number)) {
            char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
            complain(options, "%s: \"%s\" is not a size%s%s%s%s; write it like 500000, 64KiB or 8MB",
                     where, shown, row->maximum ? " from " : "",
                     row->maximum ? sl_human_bytes((double)row->minimum, low) : "",
                     row->maximum ? " to " : "",
                     row->maximum ? sl_human_bytes((double)row->maximum, high) : "");
            return;
        }
        break;
    case SL_OPTION_SECONDS:
        if (!sl_text_to_seconds(sl_text_of(text), &into->seconds)) {
            complain(options, "%s: \"%s\" is not a time; write it like 90s, 15m, 4h or 2d", where,
                     shown);
            return;
        }
        break;
    case SL_OPTION_CHOICE:
        if (!word_in(row->choices, text)) {
            complain(options, "%s: \"%s\" is not one of %s", where, shown, row->choices);
            return;
        }
        break;
    }
    char problem[300];
    if (row->check && !row->check(text, problem, sizeof problem)) {
        complain(options, "%s: %s", where, problem);
        return;
    }
    bool append = row->kind == SL_OPTION_LIST && into->from == from;
    if (!keep_text(into, text, append)) {
        complain(options, "out of memory while reading options");
        return;
    }
    into->from = from;
}

/* ---- the sources of values, from the weakest to the strongest ---- */

size_t sl_options_row(const sl_options *options, const char *name, size_t length) {
    for (size_t i = 0; i < options->rows; i++) {
        const char *row = options->program->rows[i].name;
        if (strlen(row) == length && memcmp(row, name, length) == 0)
            return i;
    }
    return SIZE_MAX;
}

static void take_defaults(sl_options *options) {
    for (size_t i = 0; i < options->rows; i++) {
        const sl_option_row *row = &options->program->rows[i];
        if (row->fallback && sl_options_applies(options, i))
            take(options, i, row->fallback, FROM_DEFAULT, row->name);
    }
}

#define CONFIG_BYTES_MAX ((size_t)1 << 20)

/* Reads the configuration file; free text->bytes. */
static bool read_config(sl_options *options, const char *path, sl_text *text) {
    char shown[SL_NAME_ROOM];
    FILE *file = fopen(path, "r");
    if (!file) {
        complain(options, "--config %s: %s", shown_name(path, strlen(path), shown),
                 strerror(errno));
        return false;
    }
    setvbuf(file, NULL, _IONBF, 0); /* no copy of a password is left behind */
    char *bytes = malloc(CONFIG_BYTES_MAX + 1);
    size_t length = bytes ? fread(bytes, 1, CONFIG_BYTES_MAX + 1, file) : 0;
    bool ok = bytes && !ferror(file) && length <= CONFIG_BYTES_MAX;
    if (!ok)
        complain(options, "--config %s: %s", shown_name(path, strlen(path), shown),
                 !bytes         ? "out of memory"
                 : ferror(file) ? strerror(errno)
                                : "larger than 1 MiB: this is no configuration");
    fclose(file);
    *text = (sl_text){bytes, length};
    if (!ok)
        free(bytes);
    return ok;
}

/* The file is one mapping from long names to scalars or, for lists, sequences of scalars. Keys of
 * the program's other commands are allowed, so that one file serves them all. */
static void take_config(sl_options *options, const char *path) {
    sl_text text;
    sl_error too_much;
    if (!read_config(options, path, &text))
        return;
    if (!sl_yaml_within_limits(text, path, SL_EXIT_USAGE, &too_much)) {
        complain(options, "--config " SL_LINES, too_much.message);
        free((char *)text.bytes);
        return;
    }
    yaml_parser_t parser;
    yaml_document_t document;
    yaml_parser_initialize(&parser);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.bytes, text.length);
    if (!yaml_parser_load(&parser, &document)) {
        complain(options, "%s:%zu:%zu: %s", path, parser.problem_mark.line + 1,
                 parser.problem_mark.column + 1, parser.problem ? parser.problem : "cannot be read");
        goto done;
    }
    yaml_node_t *root = yaml_document_get_root_node(&document);
    if (root && root->type != YAML_MAPPING_NODE)
        complain(options, "%s:%zu: expected a mapping from option names to values", path,
                 root->start_mark.line + 1);
    for (yaml_node_pair_t *pair = root && root->type == YAML_MAPPING_NODE
                                      ? root->data.mapping.pairs.start
                                      : NULL;
         pair && pair < root->data.mapping.pairs.top; pair++) {
        yaml_node_t *key = yaml_document_get_node(&document, pair->key);
        yaml_node_t *item = yaml_document_get_node(&document, pair->value);
        char where[400];
        const char *name = key->type == YAML_SCALAR_NODE ? (char *)key->data.scalar.value : "?";
        char shown[SL_NAME_ROOM];
        snprintf(where, sizeof where, "%s:%zu: %s", path, key->start_mark.line + 1,
                 shown_name(name, strlen(name), shown));
        size_t index = sl_options_row(options, name, strlen(name));
        if (index == SIZE_MAX) {
            const char *near = nearest_name(options->program, name, strlen(name));
            complain(options, "%s is not an option%s%s%s", where, near ? "; did you mean " : "",
                     near ? near : "", near ? "?" : "");
        } else if (!sl_options_applies(options, index)) {
            continue;
        } else if (item->type == YAML_SCALAR_NODE) {
            take(options, index, (char *)item->data.scalar.value, FROM_CONFIG, where);
        } else if (item->type == YAML_SEQUENCE_NODE &&
                   options->program->rows[index].kind == SL_OPTION_LIST) {
            for (yaml_node_item_t *one = item->data.sequence.items.start;
                 one < item->data.sequence.items.top; one++) {
                yaml_node_t *element = yaml_document_get_node(&document, *one);
                if (element->type == YAML_SCALAR_NODE)
                    take(options, index, (char *)element->data.scalar.value, FROM_CONFIG, where);
                else
                    complain(options, "%s: expected plain values in the list", where);
            }
        } else {
            complain(options, "%s: expected a plain value", where);
        }
    }
    yaml_document_delete(&document);
done:
    yaml_parser_delete(&parser);
    explicit_bzero((char *)text.bytes, text.length); /* a password may be in it */
    free((char *)text.bytes);
}

static void scrub(char *text, sl_option_secrecy secret);

static void take_environment(sl_options *options) {
    for (size_t i = 0; i < options->rows; i++) {
        if (!sl_options_applies(options, i))
            continue;
        char variable[128];
        int length = snprintf(variable, sizeof variable, "%s_%s",
                              options->program->environment_prefix, options->program->rows[i].name);
        for (int k = 0; k < length; k++)
            variable[k] = variable[k] == '-' ? '_' : (char)toupper((unsigned char)variable[k]);
        char *text = getenv(variable);
        if (text && *text) {
            take(options, i, text, FROM_ENVIRONMENT, variable);
            scrub(text, options->program->rows[i].secret);
        }
    }
}

/* Overwrites a secret in the command line or the environment with what others may read of it. */
static void scrub(char *text, sl_option_secrecy secret) {
    size_t length = strlen(text);
    char *shown = secret == SL_CREDENTIALS ? sl_redact_uri(text) : NULL;
    if (secret == SL_OPEN || length == 0)
        return;
    explicit_bzero(text, length);
    memccpy(text, shown ? shown : "*", '\0', length);
    free(shown);
}

/* An argument that is a connection string, or credentials without a scheme (user:password@host)
 * that are not the name of a file. */
static bool holds_credentials(const char *word) {
    const char *colon = strchr(word, ':');
    return sl_is_connection_string(word) ||
           (colon && strchr(colon, '@') && access(word, F_OK) != 0);
}

/* Values of the command line are kept aside until the weaker sources have been taken, because the
 * configuration file's name is itself an option. */
typedef struct given {
    size_t row;
    char *text;
    const char *word; /* as written, for messages */
} given;

static void read_words(sl_options *options, int count, char **words, given *out, size_t *taken) {
    const sl_program *program = options->program;
    bool only_arguments = false;
    for (int i = 2; i < count; i++) {
        char *word = words[i];
        if ((only_arguments || word[0] != '-') && holds_credentials(word)) {
            scrub(word, SL_CREDENTIALS);
            complain(options,
                     "%s: this looks like a connection string, not like a source; give it "
                     "with --uri",
                     word);
            continue;
        }
        if (only_arguments || word[0] != '-' || word[1] == '\0') {
            options->arguments[options->argument_count++] = word;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            only_arguments = true;
            continue;
        }
        size_t index = SIZE_MAX;
        char *text = NULL;
        if (word[1] == '-') {
            size_t length = strcspn(word + 2, "=");
            if (word[2 + length] == '=')
                text = word + 3 + length;
            if (length == 6 && memcmp(word + 2, "config", 6) == 0) {
                if (!text && i + 1 < count)
                    text = words[++i];
                free(options->config_path);
                options->config_path = text ? strdup(text) : NULL;
                if (!options->config_path)
                    complain(options, "--config needs a file name");
                continue;
            }
            index = sl_options_row(options, word + 2, length);
            if (index == SIZE_MAX) {
                const char *near = nearest_name(program, word + 2, length);
                char shown[SL_NAME_ROOM];
                complain(options, "%s: there is no such option%s%s%s",
                         shown_name(word, length + 2, shown), near ? "; did you mean --" : "",
                         near ? near : "", near ? "?" : "");
                continue;
            }
        } else {
            for (size_t k = 0; k < options->rows; k++) {
                if (program->rows[k].letter == word[1])
                    index = k;
            }
            if (index == SIZE_MAX) {
                complain(options, "-%c: there is no such option", word[1]);
                continue;
            }
            if (word[2])
                text = word + 2 + (word[2] == '=');
        }
        const sl_option_row *row = &program->rows[index];
        if (!sl_options_applies(options, index)) {
            complain(options, "--%s does not belong to %s %s", row->name, program->name,
                     options->command->name);
            if (row->kind != SL_OPTION_FLAG && !text && i + 1 < count)
                text = words[++i]; /* its value, so that it is not taken for a source */
            if (text)
                scrub(text, row->secret);
            continue;
        }
        if (!text && row->kind == SL_OPTION_FLAG)
            text = "true";
        if (!text && row->secret == SL_SECRET && i + 1 >= count)
            text = "";
        if (!text) {
            if (i + 1 >= count) {
                complain(options, "--%s needs a value (%s)", row->name, row->argument);
                continue;
            }
            text = words[++i];
        }
        out[(*taken)++] = (given){index, text, word};
    }
}

/* ---- the whole ---- */

static bool is_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static bool is_version(const char *word) {
    return strcmp(word, "--version") == 0;
}

sl_options_result sl_options_parse(const sl_program *program, int count, char **words,
                                   sl_options **result, sl_error *error) {
    *result = NULL;
    if (count >= 2 && is_version(words[1])) {
        sl_print("%s %s\n", program->name, program->version);
        return SL_OPTIONS_SHOWN;
    }
    static const struct {
        const char *word;
        void (*print)(const sl_program *program);
    } pages[] = {
        {"--help", sl_print_program_help}, {"-h", sl_print_program_help},
        {"help", sl_print_program_help}, {"--man", sl_print_manual},
        {"--completion", sl_print_completion},
    };
    for (size_t i = 0; count == 2 && i < sizeof pages / sizeof pages[0]; i++) {
        if (strcmp(words[1], pages[i].word) == 0) {
            pages[i].print(program);
            return SL_OPTIONS_SHOWN;
        }
    }
    const char *verb = count >= 2 ? (is_help(words[1]) ? words[2] : words[1]) : NULL;
    const sl_command *command = program->commands;
    while (verb && command->name && strcmp(command->name, verb) != 0)
        command++;
    if (!verb || !command->name) {
        char shown[SL_NAME_ROOM];
        sl_error_set(error, SL_EXIT_USAGE, "%s%s%s; `%s --help` lists the commands",
                     verb ? "there is no command \"" : "which command?",
                     verb ? shown_name(verb, strlen(verb), shown) : "", verb ? "\"" : "",
                     program->name);
        return SL_OPTIONS_FAILED;
    }
    for (int i = 1; i < count && strcmp(words[i], "--") != 0; i++) {
        if (strcmp(words[i], "--help") == 0 || strcmp(words[i], "-h") == 0 ||
            (i == 1 && is_help(words[1]))) {
            sl_print_command_help(program, command);
            return SL_OPTIONS_SHOWN;
        }
        if (is_version(words[i])) {
            sl_print("%s %s\n", program->name, program->version);
            return SL_OPTIONS_SHOWN;
        }
    }

    given *values = calloc((size_t)count, sizeof *values);
    sl_options *options = calloc(1, sizeof *options);
    if (!values || !options)
        goto no_memory;
    options->program = program;
    options->command = command;
    options->error = error;
    while (program->rows[options->rows].name)
        options->rows++;
    options->values = calloc(options->rows, sizeof *options->values);
    options->arguments = calloc((size_t)count, sizeof *options->arguments);
    if (!options->values || !options->arguments)
        goto no_memory;

    size_t taken = 0;
    read_words(options, count, words, values, &taken);
    take_defaults(options);
    if (options->config_path)
        take_config(options, options->config_path);
    take_environment(options);
    for (size_t i = 0; i < taken; i++) {
        char where[160];
        snprintf(where, sizeof where, "--%s", program->rows[values[i].row].name);
        take(options, values[i].row, values[i].text, FROM_COMMAND_LINE, where);
        scrub(values[i].text, sl_is_connection_string(values[i].text)
                                  ? SL_CREDENTIALS
                                  : program->rows[values[i].row].secret);
    }
    if (!command->takes_arguments && options->argument_count > 0)
        complain(options, "%s %s takes no arguments, but there is \"%s\"", program->name,
                 command->name, options->arguments[0]);
    free(values);
    if (options->wrong) {
        size_t used = strlen(error->message);
        snprintf(error->message + used, sizeof error->message - used,
                 "\n`%s %s --help` explains the options", program->name, command->name);
        sl_options_destroy(options);
        return SL_OPTIONS_FAILED;
    }
    *result = options;
    return SL_OPTIONS_RUN;

no_memory:
    free(values);
    sl_options_destroy(options);
    sl_error_memory(error, "reading options");
    return SL_OPTIONS_FAILED;
}

void sl_options_forget_secrets(const sl_options *options) {
    for (size_t i = 0; i < options->rows; i++) {
        for (size_t k = 0; k < options->values[i].count; k++)
            scrub(options->values[i].texts[k], options->program->rows[i].secret);
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

/* A program that was started with its standard input, output or error closed would get their numbers
 * for the next files it opens, and print or write documents into those. Reading what is put there
 * instead finds nothing, and writing to it fails. */
static void occupy_standard_files(void) {
    int file;
    do
        file = open("/dev/null", O_RDONLY);
    while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0)
        close(file);
}

/* What was printed and is lost must not look like success. */
static int checked_output(const sl_program *program, int code) {
    bool bad = ferror(stdout);
    if (fflush(stdout) == 0 && !bad)
        return code;
    sl_print_to(stderr, "%s: cannot write standard output: %s\n", program->name, strerror(errno));
    return code == SL_EXIT_OK ? SL_EXIT_USAGE : code;
}

int sl_options_main(const sl_program *program, int count, char **words) {
    sl_options *options;
    sl_error error = {0};
    occupy_standard_files();
    switch (sl_options_parse(program, count, words, &options, &error)) {
    case SL_OPTIONS_SHOWN:
        return checked_output(program, SL_EXIT_OK);
    case SL_OPTIONS_FAILED:
        sl_print_to(stderr, "%s: " SL_LINES "\n", program->name, error.message);
        return error.code;
    case SL_OPTIONS_RUN:
        break;
    }
    int code = sl_options_command(options)->run(options);
    sl_options_destroy(options);
    return checked_output(program, code);
}
