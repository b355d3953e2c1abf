/* SPDX-License-Identifier: Apache-2.0 */
/* Options: one value is checked against its row of the table, and stored; values are read by
 * name. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "util/print.h"
#include "util/text.h"

#include "options_internal.h"

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

const char *sl_options_shown_name(const char *name, size_t length, char out[SL_NAME_ROOM]) {
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

/* The name with the least edit distance (insertions, deletions, replacements), if that is at most a
 * third of the name's length. */
const char *sl_options_nearest(const sl_program *program, const char *name, size_t length) {
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

/* ---- text to value ---- */

/* "P%" in choices allows any percentage from 0 to 100. */
static bool percentage(const char *choices, const char *text, uint64_t *hundredths) {
    size_t length = strlen(text);
    if (!sl_list_has(choices, '|', sl_text_of("P%")) || length < 2 || text[length - 1] != '%')
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

/* The text of one option to be converted, and its names for messages. */
typedef struct reading {
    const sl_option_row *row;
    const char *text;
    const char *shown; /* the text, or *** for a secret */
    const char *where; /* the option as its origin names it */
    sl_error *error;
} reading;

static bool read_flag(const reading *r, sl_option_value *into) {
    into->flag = sl_list_has("true|yes|1|on", '|', sl_text_of(r->text));
    return into->flag || sl_list_has("false|no|0|off", '|', sl_text_of(r->text)) ||
           sl_option_problem(r->error, "%s: \"%s\" is neither true nor false", r->where, r->shown);
}

static bool read_count(const reading *r, sl_option_value *into) {
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
    return sl_option_problem(r->error, "%s: \"%s\" is not a whole number%s%s%s", r->where, r->shown,
                             range, row->choices ? ", nor one of " : "",
                             row->choices ? row->choices : "");
}

static bool read_bytes(const reading *r, sl_option_value *into) {
    const sl_option_row *row = r->row;
    if (sl_text_to_bytes(sl_text_of(r->text), &into->number) && in_range(row, into->number))
        return true;
    char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    return sl_option_problem(
        r->error, "%s: \"%s\" is not a size%s%s%s%s; write it like 500000, 64KiB or 8MB", r->where,
        r->shown, row->maximum ? " from " : "",
        row->maximum ? sl_human_bytes((double)row->minimum, low) : "", row->maximum ? " to " : "",
        row->maximum ? sl_human_bytes((double)row->maximum, high) : "");
}

static bool read_value(const reading *r, sl_option_value *into) {
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
        return sl_list_has(r->row->choices, '|', sl_text_of(r->text)) ||
               sl_option_problem(r->error, "%s: \"%s\" is not one of %s", r->where, r->shown,
                                 r->row->choices);
    case SL_OPTION_STRING:
    case SL_OPTION_LIST:
        break;
    }
    return true;
}

/* ---- storing ---- */

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

void sl_options_store(sl_options *options, size_t index, const char *text, sl_option_origin from,
                      const char *where) {
    const sl_option_row *row = &options->program->rows[index];
    sl_option_value *into = &options->values[index];
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

void sl_options_wipe(char *text, sl_option_secrecy secrecy) {
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
static size_t index_of(const sl_options *options, const char *name, unsigned kinds) {
    size_t index = sl_options_row(options, name, strlen(name));
    if (index == SIZE_MAX || !(kinds & (1u << options->program->rows[index].kind))) {
        sl_print_to(stderr, "shardload: internal error: option %s\n", name);
        abort();
    }
    return index;
}

static const sl_option_value *value_of(const sl_options *options, const char *name,
                                       unsigned kinds) {
    return &options->values[index_of(options, name, kinds)];
}

bool sl_option_given(const sl_options *options, const char *name) {
    return value_of(options, name, ~0u)->from != FROM_DEFAULT;
}

const char *sl_option_group(const sl_options *options, const char *name) {
    return options->program->rows[index_of(options, name, ~0u)].group;
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

void sl_options_refuse(const sl_options *options, const char *names, const char *why,
                       sl_error *error) {
    for (size_t length; *names; names += length + (names[length] == '|')) {
        char name[64];
        length = strcspn(names, "|");
        snprintf(name, sizeof name, "%.*s", (int)length, names);
        if (sl_option_given(options, name))
            sl_option_problem(error, "--%s %s", name, why);
    }
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
            /* A value of SL_OPEN has no credentials: is_open has refused them. */
            bool open = row->secret == SL_OPEN;
            char *hidden = row->secret == SL_CREDENTIALS ? strdup(found->texts[k]) : NULL;
            if (hidden)
                sl_options_wipe(hidden, row->secret);
            visit(context, row->name, open ? found->texts[k] : hidden ? hidden : "***", origin);
            free(hidden);
        }
    }
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
    sl_option_value value = {.flag = false};
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

void sl_options_each_changing(const sl_options *options,
                              void (*visit)(void *context, const sl_option_row *row,
                                            const char *value),
                              void *context) {
    for (size_t i = 0; i < options->rows; i++) {
        const sl_option_row *row = &options->program->rows[i];
        const sl_option_value *found = &options->values[i];
        const char *fallback = row->kind == SL_OPTION_FLAG ? "false" : row->fallback;
        if (row->effect <= SL_EFFECT_NONE || !sl_options_applies(options, i) || found->count == 0)
            continue;
        char *value = normalized(row, found->texts, found->count);
        char *usual = fallback ? normalized(row, &(char *){(char *)fallback}, 1) : NULL;
        if (!value || strcmp(value, usual ? usual : "") != 0)
            visit(context, row, value ? value : "?"); /* without memory: equal to no other value */
        free(usual);
        free(value);
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
