/* SPDX-License-Identifier: Apache-2.0 */
/* Options: a program's command line is parsed, and its command run. Values come from four origins:
 * the table's defaults, the configuration file, the environment and the command line; each origin
 * overrides those before it. Problems are collected, and reported together. */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <fts.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "source/source.h"
#include "util/context.h"
#include "util/grow.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/read_file.h"
#include "util/text.h"
#include "util/yaml_reader.h"

#include "option_checks.h"
#include "options.h"

typedef struct option_value {
    char **texts; /* as given; one, or several for a list */
    size_t count;
    bool flag;
    uint64_t number;
    double seconds;
    sl_option_origin from;
} option_value;

struct sl_options {
    const sl_program *program;
    const sl_command *command;
    option_value *values; /* one per row */
    size_t rows;
    const char **arguments;
    size_t argument_count;
    char *config_path;
    sl_error *error; /* while parsing: the problems found so far */
};

#define NAME_ROOM 100     /* of an option in messages, see shown_name */
#define VARIABLE_ROOM 128 /* of the name of an environment variable */

/* The index of the row with that name, or SIZE_MAX. */
static size_t row_named(const sl_options *options, const char *name, size_t length) {
    for (size_t i = 0; i < options->rows; i++) {
        const char *row = options->program->rows[i].name;
        if (strlen(row) == length && memcmp(row, name, length) == 0)
            return i;
    }
    return SIZE_MAX;
}

/* Does the command that was given take the option of this row? */
static bool applies(const sl_options *options, size_t index) {
    return options->program->rows[index].commands & options->command->bit;
}

/* The row of a word of other programs; NULL if it is none. */
static const sl_other_word *other_word(const sl_program *program, const char *word, size_t length) {
    const sl_other_word *row = program->other_words;
    for (; row && row->word; row++) {
        if (strlen(row->word) == length && memcmp(row->word, word, length) == 0)
            return row;
    }
    return NULL;
}

/* ---- values: checked against their rows of the table, stored, and read by name ---- */

/* ---- problems ---- */

bool sl_option_problem(sl_error *error, const char *format, ...) {
    size_t used = error->code ? strlen(error->message) : 0;
    if (error->code != SL_EXIT_RESOURCES) /* without memory, the other problems may be wrong */
        error->code = SL_EXIT_USAGE;
    if (used > 0 && used + 1 < sizeof error->message)
        error->message[used++] = '\n';
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(error->message + used, sizeof error->message - used, format, arguments);
    va_end(arguments);
    return false;
}

bool sl_option_failed(sl_error *error, const char *prefix, const sl_error *why) {
    sl_option_problem(error, "%s" SL_LINES, prefix, why->message);
    if (why->code == SL_EXIT_RESOURCES)
        error->code = SL_EXIT_RESOURCES;
    return false;
}

bool sl_option_memory(sl_error *error, const char *activity) {
    sl_error why;
    sl_error_memory(&why, activity);
    return sl_option_failed(error, "", &why);
}

/* An option's or a command's name for a message: cut to 80 bytes, and without credentials, if a
 * connection string was given by mistake. Returns out. */
static const char *shown_name(const char *name, size_t length, char out[NAME_ROOM]) {
    const char *scheme = memmem(name, length, "://", 3);
    bool secret = scheme || (memchr(name, ':', length) && memchr(name, '@', length));
    if (secret)
        length = scheme ? (size_t)(scheme - name) : 0;
    snprintf(out, NAME_ROOM, "%.*s%s", length < 80 ? (int)length : 80, name,
             secret        ? "***"
             : length > 80 ? "..."
                           : "");
    return out;
}

/* ---- text to value ---- */

/* "P%" in choices allows any percentage from 0 to 100 with at most two decimals. */
static bool percentage(const char *choices, const char *text, uint64_t *hundredths) {
    size_t length = strlen(text);
    if (!sl_list_has(choices, '|', sl_text_of("P%")) || length < 2 || text[length - 1] != '%')
        return false;
    char *end;
    double percent = strtod(text, &end);
    if (end != text + length - 1 || !(percent >= 0 && percent <= 100))
        return false;
    *hundredths = (uint64_t)(percent * 100 + 0.5);
    const double more = percent * 100 - (double)*hundredths;
    return more > -1e-6 && more < 1e-6;
}

static bool in_range(const sl_option_row *row, uint64_t number) {
    return number >= row->minimum && (row->maximum == 0 || number <= row->maximum);
}

/* The text of one option to be converted, and its names for messages. */
typedef struct reading {
    const sl_option_row *row;
    const char *text;
    const char *shown; /* the text, or *** for a secret */
    const char *where; /* the option as its origin names it */
    sl_error *error;
} reading;

static bool read_flag(const reading *r, option_value *into) {
    into->flag = sl_list_has("true|yes|1|on", '|', sl_text_of(r->text));
    return into->flag || sl_list_has("false|no|0|off", '|', sl_text_of(r->text)) ||
           sl_option_problem(r->error, "%s: \"%s\" is neither true nor false", r->where, r->shown);
}

static bool read_count(const reading *r, option_value *into) {
    const sl_option_row *row = r->row;
    if (row->choices &&
        (percentage(row->choices, r->text, &into->number) ||
         (sl_list_has(row->choices, '|', sl_text_of(r->text)) && strcmp(r->text, "P%") != 0)))
        return true;
    if (sl_text_to_count(sl_text_of(r->text), &into->number) && in_range(row, into->number))
        return true;
    char range[96] = "";
    if (row->maximum)
        snprintf(range, sizeof range, " from %llu to %llu", (unsigned long long)row->minimum,
                 (unsigned long long)row->maximum);
    else if (row->minimum)
        snprintf(range, sizeof range, " of at least %llu", (unsigned long long)row->minimum);
    return sl_option_problem(
        r->error, "%s: \"%s\" is not a whole number%s%s%s%s", r->where, r->shown, range,
        row->choices ? ", nor one of " : "", row->choices ? row->choices : "",
        row->choices && strchr(row->choices, '%') ? " (at most two decimals)" : "");
}

static bool read_bytes(const reading *r, option_value *into) {
    const sl_option_row *row = r->row;
    if (sl_text_to_bytes(sl_text_of(r->text), &into->number) && in_range(row, into->number))
        return true;
    char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    return sl_option_problem(r->error,
                             "%s: \"%s\" is not a size%s%s%s%s; write it like 500000, 64KiB or 8MB",
                             r->where, r->shown, row->maximum ? " from " : " of at least ",
                             sl_human_bytes((double)row->minimum, low), row->maximum ? " to " : "",
                             row->maximum ? sl_human_bytes((double)row->maximum, high) : "");
}

static bool read_value(const reading *r, option_value *into) {
    switch (r->row->kind) {
    case SL_OPTION_FLAG:
        return read_flag(r, into);
    case SL_OPTION_COUNT:
        return read_count(r, into);
    case SL_OPTION_BYTES:
        return read_bytes(r, into);
    case SL_OPTION_SECONDS:
        return sl_text_to_seconds(sl_text_of(r->text), &into->seconds) ||
               sl_option_problem(r->error,
                                 "%s: \"%s\" is not a time; write it like 90s, 15m, 4h or 2d",
                                 r->where, r->shown);
    case SL_OPTION_CHOICE:
    case SL_OPTION_LIST:
        return !r->row->choices || sl_list_has(r->row->choices, '|', sl_text_of(r->text)) ||
               sl_option_problem(r->error, "%s: \"%s\" is not one of %s", r->where, r->shown,
                                 r->row->choices);
    case SL_OPTION_STRING:
        break;
    }
    return true;
}

/* ---- storing ---- */

static bool keep_text(option_value *into, const char *text, bool append) {
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

/* Hides the URIs in the value of an option that takes none. Returns whether there was a secret. */
static bool hide_uris(char *text) {
    if (!sl_is_connection_string(text) || !strchr(text, '@'))
        return sl_hide_secrets(text);
    sl_hide_uri(text); /* to its end: the password may contain blanks */
    return true;
}

/* Refuses a user or password in the value of such an option. Returns false with the problem
 * added. */
static bool is_open(const char *text, const char *where, sl_error *error) {
    char *copy = strdup(text);
    if (!copy)
        return sl_option_memory(error, "reading options");
    bool found = hide_uris(copy);
    sl_secret_free(copy);
    return !found || sl_option_problem(error,
                                       "%s: its value contains a connection string with a user or "
                                       "password; give it with --uri",
                                       where);
}

/* Checks one value against row `index` and stores it; it replaces a value whose origin has lower
 * precedence. `where` is the option's name in messages, such as the name of an environment
 * variable. A wrong value adds a problem to options->error. */
static void store_text(sl_options *options, size_t index, const char *text, sl_option_origin from,
                       const char *where) {
    const sl_option_row *row = &options->program->rows[index];
    option_value *into = &options->values[index];
    const reading r = {row, text, row->secret ? "***" : text, where, options->error};
    char problem[300];
    if (row->secret == SL_OPEN && !is_open(text, where, options->error))
        return;
    if (!read_value(&r, into))
        return;
    if (row->check && !row->check(text, problem, sizeof problem)) {
        sl_option_problem(options->error, "%s: %s", where, problem);
        return;
    }
    bool append = row->kind == SL_OPTION_LIST && into->from == from;
    if (!keep_text(into, text, append)) {
        sl_option_memory(options->error, "reading options");
        return;
    }
    into->from = from;
}

/* As store_text; a value of a `joined` option is appended to the earlier one of the same origin. */
static void store_value(sl_options *options, size_t index, const char *text, sl_option_origin from,
                        const char *where) {
    const option_value *held = &options->values[index];
    char *joined = NULL;
    if (options->program->rows[index].joined && held->from == from && held->count > 0 &&
        asprintf(&joined, "%s,%s", held->texts[0], text) < 0) {
        sl_option_memory(options->error, "reading options");
        return;
    }
    store_text(options, index, joined ? joined : text, from, where);
    free(joined);
}

bool sl_option_accepts(const sl_options *options, const char *name, const char *value,
                       const char *where, sl_error *error) {
    const sl_option_row *row = &options->program->rows[row_named(options, name, strlen(name))];
    char problem[300];
    return read_value(&(reading){row, value, value, where, error}, &(option_value){0}) &&
           (!row->check || row->check(value, problem, sizeof problem) ||
            sl_option_problem(error, "%s: %s", where, problem));
}

/* Overwrites a text on the command line, in the environment or in memory with its redacted form.
 * Other processes and reports get only this form of a value. */
static void wipe(char *text, sl_option_secrecy secrecy) {
    size_t length = strlen(text);
    if (secrecy == SL_OPEN) {
        hide_uris(text);
    } else if (secrecy == SL_CREDENTIALS) {
        sl_hide_uri(text);
    } else if (length > 0) {
        explicit_bzero(text, length);
        *text = '*';
    }
}

/* ---- values by name ---- */

const sl_command *sl_options_command(const sl_options *options) {
    return options->command;
}

const char *sl_options_config_path(const sl_options *options) {
    return options->config_path;
}

size_t sl_options_argument_count(const sl_options *options) {
    return options->argument_count;
}

const char *const *sl_options_arguments(const sl_options *options) {
    return options->arguments;
}

const char *sl_options_argument(const sl_options *options, size_t index) {
    return options->arguments[index];
}

static _Noreturn void unknown_name(const char *name) {
    sl_print_to(stderr, "shardload: internal error: option %s\n", name);
    abort();
}

/* `kinds` has a bit for each kind that is allowed. */
static const option_value *value_of(const sl_options *options, const char *name, unsigned kinds) {
    size_t index = row_named(options, name, strlen(name));
    if (index == SIZE_MAX || !(kinds & (1u << options->program->rows[index].kind)))
        unknown_name(name);
    return &options->values[index];
}

sl_option_origin sl_option_origin_of(const sl_options *options, const char *name) {
    return value_of(options, name, ~0u)->from;
}

bool sl_option_given(const sl_options *options, const char *name) {
    return sl_option_origin_of(options, name) != SL_FROM_DEFAULT;
}

bool sl_option_flag(const sl_options *options, const char *name) {
    return value_of(options, name, 1u << SL_OPTION_FLAG)->flag;
}

const char *sl_option_string(const sl_options *options, const char *name) {
    const option_value *found =
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
    const option_value *found = value_of(options, name, 1u << SL_OPTION_COUNT);
    return found->count && strcmp(found->texts[0], word) == 0;
}

uint64_t sl_option_weaker_number(const sl_options *options, const char *name) {
    return value_of(options, name, 1u << SL_OPTION_COUNT)->number; /* a word does not change it */
}

bool sl_option_is_percentage(const sl_options *options, const char *name) {
    const option_value *found = value_of(options, name, 1u << SL_OPTION_COUNT);
    return found->count && strchr(found->texts[0], '%');
}

size_t sl_option_list_count(const sl_options *options, const char *name) {
    return value_of(options, name, 1u << SL_OPTION_LIST)->count;
}

const char *const *sl_option_list(const sl_options *options, const char *name) {
    return (const char *const *)value_of(options, name, 1u << SL_OPTION_LIST)->texts;
}

const char *sl_option_list_item(const sl_options *options, const char *name, size_t index) {
    return sl_option_list(options, name)[index];
}

void sl_options_refuse(const sl_options *options, sl_option_origin least, const char *words,
                       const char *why, sl_error *error) {
    for (size_t length; *words; words += length + (words[length] == '|')) {
        const sl_text word = {words, length = strcspn(words, "|")};
        bool known = false;
        for (size_t i = 0; i < options->rows; i++) {
            const sl_option_row *row = &options->program->rows[i];
            const bool named = sl_text_equal(word, sl_text_of(row->name)) ||
                               sl_text_equal(word, sl_text_of(row->group));
            known = known || named;
            if (named && applies(options, i) && options->values[i].from >= least)
                sl_option_problem(error, "--%s %s", row->name, why);
        }
        if (!known)
            unknown_name(words);
    }
}

void sl_options_each(const sl_options *options, sl_option_visitor *visit, void *context) {
    for (size_t i = 0; i < options->rows; i++) {
        if (!applies(options, i))
            continue;
        const sl_option_row *row = &options->program->rows[i];
        const option_value *found = &options->values[i];
        const bool flag = row->kind == SL_OPTION_FLAG; /* given as yes, 1, on ... */
        if (found->count == 0 || flag)
            visit(context, row, !flag ? NULL : found->flag ? "true" : "false", found->from);
        for (size_t k = 0; k < found->count && !flag; k++) {
            /* A value of SL_OPEN has no credentials: is_open has refused them. */
            bool open = row->secret == SL_OPEN;
            char *hidden = row->secret == SL_CREDENTIALS ? strdup(found->texts[k]) : NULL;
            if (hidden)
                wipe(hidden, row->secret);
            visit(context, row, open ? found->texts[k] : hidden ? hidden : "***", found->from);
            free(hidden);
        }
    }
}

/* Adds an item to an option that is already recorded; the option becomes an array. */
static void record_item(bson_t *options, bson_iter_t *recorded, const char *name,
                        const char *value) {
    bson_t others = BSON_INITIALIZER, list = BSON_INITIALIZER;
    bson_iter_t items;
    if (BSON_ITER_HOLDS_ARRAY(recorded) && bson_iter_recurse(recorded, &items)) {
        while (bson_iter_next(&items))
            BSON_APPEND_UTF8(&list, bson_iter_key(&items), bson_iter_utf8(&items, NULL));
    } else {
        BSON_APPEND_UTF8(&list, "0", bson_iter_utf8(recorded, NULL));
    }
    char room[SL_ARRAY_KEY_ROOM];
    BSON_APPEND_UTF8(&list, sl_array_key(bson_count_keys(&list), room), value);
    bson_copy_to_excluding_noinit(options, &others, name, NULL);
    BSON_APPEND_ARRAY(&others, name, &list);
    bson_destroy(&list);
    bson_destroy(options);
    bson_steal(options, &others);
}

typedef struct recorded_options {
    bson_t all, given;
} recorded_options;

static void record_option(void *context, const sl_option_row *row, const char *value,
                          sl_option_origin origin) {
    const char *name = row->name;
    recorded_options *to = context;
    bson_t *options = &to->all;
    bson_iter_t iter;
    char shown[PATH_MAX], room[SL_ARRAY_KEY_ROOM];
    if (value && !sl_utf8_valid(value, strlen(value), NULL)) { /* a path may be any bytes */
        sl_text_printable(sl_text_of(value), shown, sizeof shown);
        value = shown;
    }
    if (bson_iter_init_find(&iter, options, name)) { /* called once per item of a list */
        record_item(options, &iter, name, value);
        return;
    }
    if (value)
        BSON_APPEND_UTF8(options, name, value);
    else
        BSON_APPEND_NULL(options, name);
    if (origin != SL_FROM_DEFAULT)
        BSON_APPEND_UTF8(&to->given, sl_array_key(bson_count_keys(&to->given), room), name);
}

void sl_options_append(const sl_options *options, bson_t *record) {
    recorded_options recorded = {BSON_INITIALIZER, BSON_INITIALIZER};
    sl_options_each(options, record_option, &recorded);
    BSON_APPEND_DOCUMENT(record, "options", &recorded.all);
    BSON_APPEND_ARRAY(record, "optionsGiven", &recorded.given);
    bson_destroy(&recorded.all);
    bson_destroy(&recorded.given);
}

/* The values of a list as one text, which a message prints between quotes. */
static char *joined(char *const *texts, size_t count) {
    static const char between[] = "\", \"";
    size_t room = 1;
    for (size_t i = 0; i < count; i++)
        room += strlen(texts[i]) + sizeof between;
    char *out = malloc(room), *at = out;
    for (size_t i = 0; out && i < count; i++)
        at += sprintf(at, "%s%s", i > 0 ? between : "", texts[i]);
    return out;
}

/* The same text for equal values: numbers and flags in one notation, and FIELD of FIELD=FILE.
 * malloc'd. */
static char *normalized(const sl_option_row *row, char *const *texts, size_t count) {
    option_value value = {.flag = false};
    sl_error ignored = {0};
    char digits[24];
    bool number = row->kind == SL_OPTION_COUNT || row->kind == SL_OPTION_BYTES;
    if (row->kind == SL_OPTION_LIST)
        return joined(texts, count);
    if (row->effect == SL_EFFECT_FIELD)
        return strndup(texts[0], strcspn(texts[0], "="));
    if (!(number || row->kind == SL_OPTION_FLAG) ||
        !read_value(&(reading){row, texts[0], texts[0], row->name, &ignored}, &value))
        return strdup(texts[0]);
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value.number);
    return strdup(number ? digits : value.flag ? "yes" : "no");
}

void sl_options_each_changing(const sl_options *options, sl_option_visitor *visit, void *context) {
    for (size_t i = 0; i < options->rows; i++) {
        const sl_option_row *row = &options->program->rows[i];
        const option_value *found = &options->values[i];
        const char *fallback = row->kind == SL_OPTION_FLAG ? "false" : row->fallback;
        if (row->effect <= SL_EFFECT_NONE || !applies(options, i) || found->count == 0)
            continue;
        char *value = normalized(row, found->texts, found->count);
        char *usual = fallback ? normalized(row, &(char *){(char *)fallback}, 1) : NULL;
        if (!value || strcmp(value, usual ? usual : "") != 0)
            visit(context, row, value ? value : "?", found->from); /* "?": without memory */
        free(usual);
        free(value);
    }
}

/* ---- values from the words of the command line ---- */

/* Does an argument contain a connection string, or credentials without a scheme
 * (user:password@host), and is not the name of a file? Wipes a URI in it. */
static bool holds_credentials(char *word) {
    const char *colon = strchr(word, ':');
    return sl_is_connection_string(word) || sl_hide_secrets(word) ||
           (colon && strchr(colon, '@') && access(word, F_OK) != 0);
}

static void take_argument(sl_options *options, char *word) {
    if (!holds_credentials(word)) {
        options->arguments[options->argument_count++] = word;
        return;
    }
    wipe(word, SL_CREDENTIALS);
    sl_option_problem(options->error,
                      "%s: this looks like a connection string, not like a source; give it "
                      "with --uri",
                      word);
}

/* A value of the command line. They are collected first and stored last, because the configuration
 * file, which they override, is itself named on the command line. */
typedef struct given_word {
    size_t row;
    char *text; /* a copy: sl_secret_free */
} given_word;

/* The words that have not been read yet. */
typedef struct words_left {
    char **next, **end;
} words_left;

/* Is the word an option of the command? Its name has `*length` bytes. */
static bool is_option(const sl_options *options, const char *word, size_t *length) {
    *length = strcspn(word, "=");
    for (size_t i = 0; i < options->rows && word[0] == '-'; i++) {
        const sl_option_row *row = &options->program->rows[i];
        if (applies(options, i) && (word[1] == '-' ? row_named(options, word + 2, *length - 2) == i
                                                   : *length == 2 && word[1] == row->letter))
            return true;
    }
    return *length == 8 && strncmp(word, "--config", 8) == 0;
}

/* The next word, as the value of an option. NULL, with the problem added unless the value is a
 * secret, which may be missing: there is none, or it is an option. A command line may be one. */
static char *next_value(const sl_options *options, const sl_option_row *row, words_left *left) {
    size_t length;
    const bool ends = left->next == left->end;
    if (!ends && (row->file == SL_FILE_READ_WORDS || !is_option(options, *left->next, &length)))
        return *left->next++;
    if (row->secret == SL_SECRET)
        return NULL;
    if (ends)
        sl_option_problem(options->error, "--%s needs a value (%s)", row->name, row->argument);
    else
        sl_option_problem(options->error,
                          "--%s has no value: %.*s, which follows, is an option. If it is the "
                          "value, give --%s=%.*s",
                          row->name, (int)length, *left->next, row->name, (int)length, *left->next);
    return NULL;
}

static void take_config(sl_options *options, char *text, words_left *left) {
    static const sl_option_row row = {.name = "config", SL_ROW_FILE("FILE", READ)};
    if (!text && !(text = next_value(options, &row, left)))
        return;
    free(options->config_path);
    if (!(options->config_path = strdup(text)))
        sl_option_memory(options->error, "reading options");
}

/* Reports an option of another program, and skips its value. False if it is none. */
static bool is_of_another(sl_options *options, const char *word, size_t length, const char *text,
                          words_left *left) {
    const sl_other_word *other = other_word(options->program, word, length);
    if (!other)
        return false;
    sl_option_problem(options->error, "%s: there is no such option; %s", other->word,
                      other->advice);
    left->next += other->has_value && !text && left->next < left->end;
    return true;
}

/* The row of "--name" or "--name=text"; `*text` is NULL without "=". SIZE_MAX, with the problem
 * added, when no option has that name; the value of an option of another program is skipped. */
static size_t find_long(sl_options *options, char *word, size_t length, char **text,
                        words_left *left) {
    *text = word[2 + length] == '=' ? word + 3 + length : NULL;
    size_t index = row_named(options, word + 2, length);
    if (index == SIZE_MAX && !is_of_another(options, word, length + 2, *text, left)) {
        const char *near = sl_option_nearest(options->program, word + 2, length);
        char shown[NAME_ROOM];
        sl_option_problem(options->error, "%s: there is no such option%s%s%s",
                          shown_name(word, length + 2, shown), near ? "; did you mean --" : "",
                          near ? near : "", near ? "?" : "");
    }
    return index;
}

/* The same for "-c", "-ctext" and "-c=text". */
static size_t find_short(sl_options *options, char *word, char **text, words_left *left) {
    size_t index = SIZE_MAX;
    *text = word[2] ? word + 2 + (word[2] == '=') : NULL;
    for (size_t k = 0; k < options->rows; k++) {
        if (options->program->rows[k].letter == word[1])
            index = k;
    }
    if (index == SIZE_MAX && !is_of_another(options, word, 2, *text, left))
        sl_option_problem(options->error, "-%c: there is no such option", word[1]);
    return index;
}

/* Reports an option of another command. Its value is skipped too, so that it is not read as a
 * source. */
static void refuse(sl_options *options, const sl_option_row *row, char *text, words_left *left) {
    sl_option_problem(options->error, "--%s does not belong to %s %s", row->name,
                      options->program->name, options->command->name);
    if (row->kind != SL_OPTION_FLAG && !text && left->next < left->end)
        text = *left->next++;
    if (text)
        wipe(text, row->secret);
}

/* Reads an option and its value. False when there is no value to store. */
static bool take_option(sl_options *options, char *word, words_left *left, given_word *out) {
    char *text;
    size_t index;
    if (word[1] == '-') {
        size_t length = strcspn(word + 2, "=");
        if (length == 6 && memcmp(word + 2, "config", 6) == 0) {
            take_config(options, word[8] == '=' ? word + 9 : NULL, left);
            return false;
        }
        index = find_long(options, word, length, &text, left);
    } else {
        index = find_short(options, word, &text, left);
    }
    if (index == SIZE_MAX)
        return false;
    const sl_option_row *row = &options->program->rows[index];
    if (!applies(options, index)) {
        refuse(options, row, text, left);
        return false;
    }
    if (!text && row->kind == SL_OPTION_FLAG)
        text = "true";
    else if (!text && !(text = next_value(options, row, left)) && row->secret != SL_SECRET)
        return false;
    if (!text)
        text = "";
    *out = (given_word){index, strdup(text)};
    if (!out->text)
        return sl_option_memory(options->error, "reading options");
    if (*text && row->kind != SL_OPTION_FLAG)
        wipe(text, row->secret);
    return true;
}

/* Appends the option values among words[2] to words[count - 1] to `out`, which has room for
 * `count`; the other words become arguments. Wipes secrets from the words. Returns the number of
 * values. */
static size_t read_words(sl_options *options, int count, char **all, given_word *out) {
    words_left left = {all + (count < 2 ? count : 2), all + count};
    bool only_arguments = false;
    size_t found = 0;
    while (left.next < left.end) {
        char *word = *left.next++;
        if (only_arguments || word[0] != '-' || word[1] == '\0')
            take_argument(options, word);
        else if (strcmp(word, "--") == 0)
            only_arguments = true;
        else if (take_option(options, word, &left, &out[found]))
            found++;
    }
    return found;
}

/* Stores the values, and frees them. */
static void store_words(sl_options *options, const given_word *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const sl_option_row *row = &options->program->rows[values[i].row];
        const option_value *held = &options->values[values[i].row];
        char where[160];
        snprintf(where, sizeof where, "--%s", row->name);
        if (row->effect > SL_EFFECT_NONE && row->kind == SL_OPTION_STRING && !row->joined &&
            held->from == SL_FROM_COMMAND_LINE && held->count > 0 &&
            strcmp(held->texts[0], values[i].text) != 0)
            sl_option_problem(options->error,
                              "%s is given as \"%s\" and as \"%s\": it takes one value (%s)", where,
                              held->texts[0], values[i].text, row->argument);
        else
            store_value(options, values[i].row, values[i].text, SL_FROM_COMMAND_LINE, where);
        sl_secret_free(values[i].text);
    }
}

/* ---- the words of another process of the program ---- */

/* Writes the name of a row's environment variable: SHARDLOAD_WORK_DIR. Returns out. */
static const char *variable_of(const sl_program *program, size_t row, char out[VARIABLE_ROOM]) {
    int length =
        snprintf(out, VARIABLE_ROOM, "%s_%s", program->environment_prefix, program->rows[row].name);
    for (int k = 0; k < length; k++)
        out[k] = out[k] == '-' ? '_' : (char)toupper((unsigned char)out[k]);
    return out;
}

bool sl_options_words_to_environment(const sl_options *own, const char **list, size_t *count) {
    const sl_program *program = own->program;
    sl_error ignored = {0}; /* the other process reports wrong options */
    sl_options options = {.program = program, .error = &ignored};
    size_t kept = 0, i = 0;
    bool ok = true;
    while (program->rows[options.rows].name)
        options.rows++;
    for (; ok && i < *count && strcmp(list[i], "--") != 0; i++) {
        char *word = (char *)(uintptr_t)list[i], *text = NULL, name[VARIABLE_ROOM];
        words_left none = {NULL, NULL};
        size_t index = SIZE_MAX;
        if (word[0] == '-' && word[1])
            index = word[1] == '-' ? find_long(&options, word, strcspn(word + 2, "="), &text, &none)
                                   : find_short(&options, word, &text, &none);
        const sl_option_row *row = index == SIZE_MAX ? NULL : &program->rows[index];
        const char *next =
            row && row->kind != SL_OPTION_FLAG && !text && i + 1 < *count ? list[++i] : NULL;
        const char *value = text ? text : next;
        if (row && (row->secret == SL_CREDENTIALS || row->secret == SL_SECRET) && value && *value) {
            ok = setenv(variable_of(program, index, name), value, 1) == 0;
            continue;
        }
        list[kept++] = word;
        if (next)
            list[kept++] = next;
    }
    for (; i < *count; i++)
        list[kept++] = list[i];
    *count = kept;
    return ok;
}

/* ---- the environment and configuration files ----
 *
 * Values from environment variables, and from the YAML file of --config: one mapping from
 * long option names to scalars or, for lists, sequences of scalars. */

#define CONFIG_BYTES_MAX ((size_t)1 << 20)

static void store_node(sl_options *options, sl_yaml *r, size_t index, const yaml_node_t *node,
                       const char *where) {
    const yaml_node_t *element;
    if (node->type == YAML_SCALAR_NODE) {
        store_value(options, index, (char *)node->data.scalar.value, SL_FROM_CONFIG, where);
        return;
    }
    if (node->type != YAML_SEQUENCE_NODE || options->program->rows[index].kind != SL_OPTION_LIST) {
        sl_option_problem(options->error, "%s: expected a plain value", where);
        return;
    }
    for (size_t i = 0; (element = sl_yaml_item(r, node, i)); i++) {
        if (element->type == YAML_SCALAR_NODE)
            store_value(options, index, (char *)element->data.scalar.value, SL_FROM_CONFIG, where);
        else
            sl_option_problem(options->error, "%s: expected plain values in the list", where);
    }
}

/* Options of the program's other commands are ignored, so that one file serves all commands. */
static bool store_pair(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *value,
                       void *context) {
    sl_options *options = context;
    const char *name = key->type == YAML_SCALAR_NODE ? (char *)key->data.scalar.value : "?";
    size_t length = strlen(name), index = row_named(options, name, length);
    char where[400], shown[NAME_ROOM];
    snprintf(where, sizeof where, "%s:%zu: %s", r->file, key->start_mark.line + 1,
             shown_name(name, length, shown));
    if (index == SIZE_MAX) {
        const char *near = sl_option_nearest(options->program, name, length);
        sl_option_problem(options->error, "%s is not an option%s%s%s", where,
                          near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    } else if (applies(options, index)) {
        store_node(options, r, index, value, where);
    }
    return true;
}

static void read_config(sl_options *options, const char *path) {
    char shown[NAME_ROOM], prefix[NAME_ROOM + 16];
    sl_error why;
    sl_yaml r = {.file = path, .code = SL_EXIT_USAGE, .error = &why};
    const yaml_node_t *root;
    snprintf(prefix, sizeof prefix, "--config %s: ", shown_name(path, strlen(path), shown));
    if (!sl_read_file(path, CONFIG_BYTES_MAX, SL_EXIT_USAGE, &r.text, &why)) {
        sl_option_failed(options->error, prefix, &why);
        return;
    }
    const bool read = sl_yaml_read(&r, &root);
    if (!read || (root && !sl_yaml_each(&r, root, "a mapping from option names to values",
                                        store_pair, options)))
        sl_option_failed(options->error, "--config ", &why);
    if (read)
        yaml_document_delete(&r.document);
    explicit_bzero((char *)r.text.bytes, r.text.length); /* it may hold a password */
    free((char *)r.text.bytes);
}

/* ---- environment variables ---- */

/* Does the program start commands? They inherit the environment, which must not be overwritten. */
static bool starts_commands(const sl_options *options) {
    for (size_t i = 0; i < options->rows; i++) {
        if (options->program->rows[i].secret == SL_COMMAND_LINE)
            return true;
    }
    return false;
}

static void read_environment(sl_options *options) {
    bool keep = starts_commands(options);
    for (size_t i = 0; i < options->rows; i++) {
        if (!applies(options, i))
            continue;
        char variable[VARIABLE_ROOM];
        char *text = getenv(variable_of(options->program, i, variable));
        if (text && *text) {
            store_value(options, i, text, SL_FROM_ENVIRONMENT, variable);
            if (!keep)
                wipe(text, options->program->rows[i].secret);
        }
    }
}

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
        bool all = i + 1 < count && strcmp(words[i + 1], "all") == 0;
        /* -h HOST of another program; `shardload -h load` is help */
        bool other = i > 1 && i + 1 < count && !all && words[i + 1][0] != '-' &&
                     other_word(program, "-h", 2);
        if (strcmp(words[i], "--help") == 0 || (strcmp(words[i], "-h") == 0 && !other) ||
            (i == 1 && is_help(words[1]))) {
            sl_print_command_help(program, command, all);
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
    const sl_other_word *other = name ? other_word(program, name, strlen(name)) : NULL;
    char shown[NAME_ROOM];
    sl_error_set(error, SL_EXIT_USAGE, "%s%s%s%s%s; `%s --help` lists the commands",
                 name ? "there is no command \"" : "which command?",
                 name ? shown_name(name, strlen(name), shown) : "", name ? "\"" : "",
                 other ? "; " : "", other ? other->advice : "", program->name);
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
        if (row->fallback && applies(options, i))
            store_value(options, i, row->fallback, SL_FROM_DEFAULT, row->name);
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

    given_word *values = calloc((size_t)count, sizeof *values);
    sl_options *options = create(program, command, count, error);
    if (!values || !options) {
        free(values);
        sl_options_destroy(options);
        sl_error_memory(error, "reading options");
        return SL_OPTIONS_FAILED;
    }
    size_t found = read_words(options, count, words, values);
    store_defaults(options);
    if (options->config_path)
        read_config(options, options->config_path);
    sl_option_check_variables(program);
    read_environment(options);
    store_words(options, values, found);
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
    size_t row = row_named(options, name, strlen(name));
    char shown[NAME_ROOM];
    if (row != SIZE_MAX && applies(options, row)) {
        store_value(options, row, value, SL_FROM_COMMAND_LINE, name);
        return;
    }
    const char *near = sl_option_nearest(options->program, name, strlen(name));
    sl_option_problem(options->error, "%s: there is no such option of `%s`%s%s%s",
                      shown_name(name, strlen(name), shown), options->command->name,
                      near && strcmp(near, name) != 0 ? "; did you mean " : "",
                      near && strcmp(near, name) != 0 ? near : "",
                      near && strcmp(near, name) != 0 ? "?" : "");
}

void sl_options_forget_secrets(const sl_options *options) {
    for (size_t i = 0; i < options->rows; i++) {
        sl_option_secrecy secrecy = options->program->rows[i].secret;
        for (size_t k = 0; secrecy != SL_COMMAND_LINE && k < options->values[i].count; k++)
            wipe(options->values[i].texts[k], secrecy);
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

/* ---- files that options name ----
 *
 * No output of a command replaces one of its inputs. They are compared by device and inode
 * where both exist, so that links and other spellings of a path are found; by folder and name where
 * an output does not exist yet. */

/* A path, divided. */
typedef struct sl_location {
    char folder[PATH_MAX]; /* resolved; "" if it cannot be */
    char name[NAME_MAX + 1];
} sl_location;

/* There may be a hundred thousand inputs, but only a few other files. */
typedef struct sl_named_file {
    sl_option_file file;
    const char *option;    /* "report"; "" for an argument */
    char *path;            /* as given */
    struct stat facts;     /* st_mode is 0 if it does not exist */
    sl_location *location; /* not of inputs, nor of "-" */
} sl_named_file;

typedef struct sl_named_files {
    const sl_options *options;
    sl_named_file *items;
    size_t count, room;
} sl_named_files;

/* ---- collecting ---- */

/* Divides a path: leaves its folder, and copies its name. Slashes at the end do not count. */
static void split(char path[PATH_MAX], char name[NAME_MAX + 1]) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    char *slash = strrchr(path, '/');
    snprintf(name, NAME_MAX + 1, "%s", slash ? slash + 1 : path);
    if (slash)
        slash[slash == path] = '\0';
    else
        strcpy(path, ".");
}

/* Resolves the folder of a path as far as it exists. */
static void resolve(const char *path, sl_location *location) {
    char above[PATH_MAX], last[NAME_MAX + 1];
    size_t length = strlen(path);
    *location = (sl_location){0};
    if (length == 0 || length >= sizeof above)
        return;
    memcpy(above, path, length + 1);
    split(above, location->name);
    if (realpath(above, location->folder))
        return;
    /* The folder may be a work directory that does not exist yet. */
    split(above, last);
    length = realpath(above, location->folder) ? strlen(location->folder) : 0;
    if (length == 0 || length + strlen(last) + 2 > sizeof location->folder)
        location->folder[0] = '\0';
    else
        snprintf(location->folder + length, sizeof location->folder - length, "%s%s",
                 length > 1 ? "/" : "", last);
}

static bool add(sl_named_files *files, sl_option_file file, const char *option, const char *path,
                size_t length, sl_error *error) {
    sl_named_file *items = sl_grow(files->items, files->count, &files->room, sizeof *items);
    if (!items)
        return sl_error_memory(error, "comparing the files");
    files->items = items;
    sl_named_file *named = &files->items[files->count];
    *named = (sl_named_file){.file = file, .option = option, .path = strndup(path, length)};
    if (!named->path)
        return sl_error_memory(error, "comparing the files");
    files->count++;
    bool standard = file != SL_FILE_WORK_DIRECTORY && strcmp(named->path, "-") == 0;
    if ((standard ? fstat(file == SL_FILE_WRITTEN ? STDOUT_FILENO : STDIN_FILENO, &named->facts)
                  : stat(named->path, &named->facts)) != 0)
        named->facts = (struct stat){0};
    if (standard || file == SL_FILE_READ)
        return true;
    named->location = malloc(sizeof *named->location);
    if (!named->location)
        return sl_error_memory(error, "comparing the files");
    resolve(named->path, named->location);
    return true;
}

/* Adds each part of a text between separators. */
static bool add_parts(sl_named_files *files, const char *option, const char *text,
                      const char *separators, sl_error *error) {
    for (size_t length; *text; text += length + (text[length] != '\0')) {
        length = strcspn(text, separators);
        if (length > 0 && !add(files, SL_FILE_READ, option, text, length, error))
            return false;
    }
    return true;
}

/* The parameters of a connection string that name files, such as tlsCAFile. */
static bool add_uri(sl_named_files *files, const char *option, const char *uri, sl_error *error) {
    const char *at = strchr(uri, '?');
    while (at && *++at) {
        const char *equals = at + strcspn(at, "=&;");
        const char *end = equals + strcspn(equals, "&;");
        if (*equals == '=' && equals - at > 4 && strncasecmp(equals - 4, "file", 4) == 0) {
            char path[PATH_MAX];
            size_t length = 0;
            for (const char *from = equals + 1; from < end && length + 1 < sizeof path; from++) {
                char digits[3] = {from[1], from[0] == '%' && from[1] ? from[2] : '\0', '\0'};
                bool code = *from == '%' && isxdigit((unsigned char)digits[0]) &&
                            isxdigit((unsigned char)digits[1]);
                path[length++] = code ? (char)strtol(digits, NULL, 16) : *from;
                from += code ? 2 : 0;
            }
            if (!add(files, SL_FILE_READ, option, path, length, error))
                return false;
        }
        at = *end ? end : NULL;
    }
    return true;
}

static bool add_value(sl_named_files *files, const sl_option_row *row, const char *text,
                      sl_error *error) {
    const bool prints = row->prints & files->options->command->bit;
    if (row->secret == SL_CREDENTIALS)
        return add_uri(files, row->name, text, error);
    if (row->file == SL_FILE_NONE)
        return true;
    if (row->file == SL_FILE_READ_WORDS)
        return add_parts(files, row->name, text, " \t\n'\"=", error);
    if (row->file_after) {
        text = strstr(text, row->file_after);
        if (!text)
            return true;
        text += strlen(row->file_after);
    }
    if (row->file == SL_FILE_WRITTEN && !prints && strcmp(text, "-") == 0)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--%s -: this command prints its results to standard output: name a "
                            "file (./- is a file, too)",
                            row->name);
    return add(files, row->file, row->name, text, strlen(text), error);
}

static bool collect(sl_named_files *files, sl_error *error) {
    const sl_options *options = files->options;
    bool ok = true;
    for (size_t i = 0; ok && i < options->rows; i++) {
        for (size_t k = 0; ok && k < options->values[i].count; k++)
            ok = add_value(files, &options->program->rows[i], options->values[i].texts[k], error);
    }
    if (ok && options->config_path)
        ok = add(files, SL_FILE_READ, "config", options->config_path, strlen(options->config_path),
                 error);
    for (size_t i = 0; ok && i < options->argument_count; i++) {
        const char *text = options->arguments[i];
        ok = add(files, SL_FILE_READ, "", text, strlen(text), error);
        /* `shardquery compare` accepts several reports, with commas between them. */
        if (ok && files->items[files->count - 1].facts.st_mode == 0 && strchr(text, ','))
            ok = add_parts(files, "", text, ",", error);
    }
    return ok;
}

/* ---- comparing ---- */

static bool is_regular(const sl_named_file *named) {
    return S_ISREG(named->facts.st_mode);
}

static bool same_file(const struct stat *one, const struct stat *other) {
    return one->st_ino == other->st_ino && one->st_dev == other->st_dev;
}

static bool refuse_output(const sl_named_file *output, const char *what, const char *of,
                          sl_error *error) {
    return sl_error_set(error, SL_EXIT_USAGE,
                        "--%s %s is %s%s, which would be replaced: name another file",
                        output->option, output->path, what, of);
}

/* Does the command read the files with this name in a folder? */
static bool is_included(const sl_named_files *files, const char *name) {
    size_t row = row_named(files->options, "include", strlen("include"));
    const char *include = row != SIZE_MAX && files->options->values[row].count > 0
                              ? files->options->values[row].texts[0]
                              : NULL;
    return name[0] != '.' && (!include || fnmatch(include, name, 0) == 0);
}

/* Does a file count, or a folder with its files? `own`: see find_in. */
static bool counts(const sl_named_files *files, const FTSENT *entry, bool own) {
    if (entry->fts_level == FTS_ROOTLEVEL || (own && entry->fts_level > 1))
        return true;
    if (own)
        return sl_source_is_own_file(entry->fts_name);
    return entry->fts_info == FTS_D ? entry->fts_name[0] != '.'
                                    : is_included(files, entry->fts_name);
}

/* Finds one of the named files, read or written ones, in a folder or below it: with `own` among the
 * files of a work directory, otherwise among the files that a command would read. NULL for none. */
static const sl_named_file *find_in(const sl_named_files *files, const char *folder,
                                    sl_option_file wanted, bool own) {
    const sl_named_file *found = NULL;
    bool any = false;
    for (size_t i = 0; i < files->count; i++)
        any |= files->items[i].file == wanted && is_regular(&files->items[i]);
    char *const paths[] = {(char *)(uintptr_t)folder, NULL};
    FTS *walk =
        any ? fts_open(paths, FTS_NOCHDIR | (own ? FTS_PHYSICAL : FTS_LOGICAL), NULL) : NULL;
    for (FTSENT *entry; walk && !found && (entry = fts_read(walk));) {
        bool counted = counts(files, entry, own);
        if (!counted && entry->fts_info == FTS_D)
            fts_set(walk, entry, FTS_SKIP);
        for (size_t i = 0; counted && entry->fts_info == FTS_F && !found && i < files->count; i++) {
            const sl_named_file *named = &files->items[i];
            if (named->file == wanted && same_file(&named->facts, entry->fts_statp))
                found = named;
        }
    }
    if (walk)
        fts_close(walk);
    return found;
}

/* Is the output in the folder `path`, or below it? */
static bool is_below(const sl_named_file *output, const char *path) {
    char resolved[PATH_MAX];
    if (!output->location || !output->location->folder[0] || !realpath(path, resolved))
        return false;
    const char *folder = output->location->folder;
    size_t length = strlen(resolved);
    return strncmp(folder, resolved, length) == 0 &&
           (length == 1 || folder[length] == '/' || folder[length] == '\0');
}

static bool compare_with_input(const sl_named_files *files, const sl_named_file *output,
                               const sl_named_file *input, sl_error *error) {
    if (is_regular(output) && is_regular(input) && same_file(&output->facts, &input->facts))
        return refuse_output(output, input->option[0] ? "the file of --" : "the input ",
                             input->option[0] ? input->option : input->path, error);
    return !S_ISDIR(input->facts.st_mode) || !is_below(output, input->path) ||
           !is_included(files, output->location->name) ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--%s %s lies in the source folder %s: the next run with that folder would "
                        "read it; name a file elsewhere",
                        output->option, output->path, input->path);
}

static bool compare_outputs(const sl_named_file *output, const sl_named_file *other,
                            sl_error *error) {
    const sl_location *one = output->location, *two = other->location;
    bool same = is_regular(output) && is_regular(other) && same_file(&output->facts, &other->facts);
    same = same || (one && two && one->folder[0] && strcmp(one->folder, two->folder) == 0 &&
                    strcmp(one->name, two->name) == 0);
    return !same || refuse_output(output, "the file of --", other->option, error);
}

/* Is it one of the files that commands create in the work directory, or in a folder there? */
static bool is_of_work_directory(const sl_named_file *named, const sl_named_file *work) {
    char path[PATH_MAX + NAME_MAX + 2], file[PATH_MAX + NAME_MAX + 2];
    sl_location location;
    if (strcmp(named->path, "-") == 0)
        return false;
    resolve(named->path, &location);
    if (!work->location->folder[0] || !location.folder[0])
        return false;
    if (!realpath(work->path, path))
        snprintf(path, sizeof path, "%s/%s", work->location->folder, work->location->name);
    snprintf(file, sizeof file, "%s/%s", location.folder, location.name);
    size_t start = strlen(path);
    if (strncmp(file, path, start) != 0 || file[start] != '/')
        return false;
    file[start + 1 + strcspn(file + start + 1, "/")] = '\0';
    return sl_source_is_own_file(file + start + 1);
}

static bool refuse_in_work_directory(const sl_named_file *named, const sl_named_file *work,
                                     sl_error *error) {
    return sl_error_set(error, SL_EXIT_USAGE,
                        "--%s %s: %s%s%s%s is a file there that this command would replace by its "
                        "own: name another directory",
                        work->option, work->path, named->option[0] ? "--" : "", named->option,
                        named->option[0] ? " " : "", named->path);
}

static bool check_work_directory(const sl_named_files *files, const sl_named_file *work,
                                 sl_error *error) {
    for (size_t i = 0; i < files->count; i++) {
        const sl_named_file *named = &files->items[i];
        if (named == work || !is_of_work_directory(named, work))
            continue;
        /* The same record as in run.json may be written there, too. */
        bool record = strcmp(named->option, "report") == 0 &&
                      strcmp(named->location->name, SL_WORK_RECORD) == 0;
        if (named->file != SL_FILE_WRITTEN)
            return refuse_in_work_directory(named, work, error);
        if (!record)
            return refuse_output(named, "a file of the work directory", "", error);
    }
    const sl_named_file *input =
        S_ISDIR(work->facts.st_mode) ? find_in(files, work->path, SL_FILE_READ, true) : NULL;
    return !input || refuse_in_work_directory(input, work, error);
}

static bool check_output(const sl_named_files *files, const sl_named_file *output,
                         sl_error *error) {
    bool ok = true;
    for (size_t i = 0; ok && i < files->count; i++) {
        const sl_named_file *other = &files->items[i];
        if (other->file == SL_FILE_READ)
            ok = compare_with_input(files, output, other, error);
        else if (other->file == SL_FILE_WRITTEN && other < output)
            ok = compare_outputs(output, other, error);
    }
    return ok;
}

static bool check_folder(const sl_named_files *files, const sl_named_file *input, sl_error *error) {
    const sl_named_file *output = find_in(files, input->path, SL_FILE_WRITTEN, false);
    return !output || refuse_output(output, "a file of the source folder ", input->path, error);
}

/* Are standard output and standard error, which every command may print to, another file than its
 * inputs? A text that is printed into an input would be read as records, or replace some. */
static bool check_streams(const sl_named_files *files, sl_error *error) {
    static const char *const names[] = {[STDOUT_FILENO] = "output", [STDERR_FILENO] = "error"};
    for (int stream = STDOUT_FILENO; stream <= STDERR_FILENO; stream++) {
        struct stat facts;
        bool regular = fstat(stream, &facts) == 0 && S_ISREG(facts.st_mode);
        for (size_t i = 0; regular && i < files->count; i++) {
            const sl_named_file *input = &files->items[i];
            if (input->file == SL_FILE_READ && same_file(&input->facts, &facts))
                return sl_error_set(error, SL_EXIT_USAGE,
                                    "standard %s is the input %s, which would be changed: redirect "
                                    "it to another file",
                                    names[stream], input->path);
        }
    }
    return true;
}

bool sl_option_files_check(const sl_options *options, sl_error *error) {
    sl_named_files files = {.options = options};
    bool ok = collect(&files, error);
    for (size_t i = 0; ok && i < files.count; i++) {
        const sl_named_file *named = &files.items[i];
        ok = named->file == SL_FILE_WRITTEN          ? check_output(&files, named, error)
             : named->file == SL_FILE_WORK_DIRECTORY ? check_work_directory(&files, named, error)
             : S_ISDIR(named->facts.st_mode)         ? check_folder(&files, named, error)
                                                     : true;
    }
    ok = ok && check_streams(&files, error);
    for (size_t i = 0; i < files.count; i++) {
        free(files.items[i].path);
        free(files.items[i].location);
    }
    free(files.items);
    return ok;
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

/* Is the flag an option of the command, and given? */
static bool flag_of_command(const sl_options *options, const char *name) {
    const size_t index = row_named(options, name, strlen(name));
    return index != SIZE_MAX && applies(options, index) && options->values[index].flag;
}

void sl_options_set_verbosity(const sl_options *options) {
    bool quiet = flag_of_command(options, "quiet");
    if (sl_context_current())
        sl_context_set_verbosity(sl_context_current(), quiet ? SL_QUIET
                                                       : flag_of_command(options, "verbose")
                                                           ? SL_VERBOSE
                                                           : SL_NORMAL);
}

/* A quiet command prints a line whenever its exit code is not 0. */
static void say_why(int code) {
    char first[SL_HUMAN_ROOM];
    if (code == SL_EXIT_OK || !sl_context_is_quiet())
        return;
    sl_context_first_error(sl_context_current(), first, sizeof first);
    if (!first[0])
        sl_log_error("exit code %d, which docs/exit-codes.md explains: the same command without "
                     "--quiet prints the reason",
                     code);
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
    sl_options_set_verbosity(options);
    if (sl_option_files_check(options, &error)) {
        code = sl_options_command(options)->run(options);
        say_why(code);
    } else {
        code = (int)error.code;
        sl_print_to(stderr, "%s: " SL_LINES "\n", program->name, error.message);
    }
    sl_options_destroy(options);
    return checked_output(program, code);
}
