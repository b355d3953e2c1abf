/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of option values that need more than a kind and a range. */
#include "option_checks.h"

#include "format/declared.h"

#include "job/load_config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "format/head.h"
#include "format/key_fields.h"
#include "format/schema.h"
#include "report/json.h"
#include "util/log.h"
#include "util/text.h"

#include "options.h"

#define SKEW_MAX 10

/* Writes the problem with a value. Returns false. */
__attribute__((format(printf, 3, 4))) static bool wrong(char *problem, size_t room,
                                                        const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, room, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_key(const bson_t *key) {
    bool good = bson_count_keys(key) > 0;
    bson_iter_t iter;
    for (bool more = good && bson_iter_init(&iter, key); more && bson_iter_next(&iter);) {
        good = good && (BSON_ITER_HOLDS_UTF8(&iter)
                            ? sl_list_has("hashed|2dsphere|2d|text", '|',
                                          sl_text_of(bson_iter_utf8(&iter, NULL)))
                            : BSON_ITER_HOLDS_NUMBER(&iter) && bson_iter_as_int64(&iter) != 0);
    }
    return good;
}

/* The options of an index, with the kinds of their values. */
typedef enum value_kind { FLAG, NUMBER, TEXT, DOCUMENT } value_kind;

static const struct index_option {
    const char *name;
    value_kind kind;
} index_options[] = {{"unique", FLAG},
                     {"sparse", FLAG},
                     {"hidden", FLAG},
                     {"partialFilterExpression", DOCUMENT},
                     {"expireAfterSeconds", NUMBER},
                     {"name", TEXT},
                     {"collation", DOCUMENT},
                     {"weights", DOCUMENT},
                     {"default_language", TEXT},
                     {"language_override", TEXT},
                     {"min", NUMBER}, /* of 2d */
                     {"max", NUMBER},
                     {"bits", NUMBER},
                     {"wildcardProjection", DOCUMENT}};

/* Is the option known, with a value of its kind? */
static bool is_index_option(const bson_iter_t *option) {
    for (size_t i = 0; i < sizeof index_options / sizeof index_options[0]; i++) {
        if (strcmp(bson_iter_key(option), index_options[i].name) == 0)
            return index_options[i].kind == FLAG     ? BSON_ITER_HOLDS_BOOL(option)
                   : index_options[i].kind == NUMBER ? BSON_ITER_HOLDS_NUMBER(option)
                   : index_options[i].kind == TEXT   ? BSON_ITER_HOLDS_UTF8(option)
                                                     : BSON_ITER_HOLDS_DOCUMENT(option);
    }
    return false;
}

/* Writes the first option that is not known, or whose value is of another kind. */
static bool options_are_known(const bson_t *index, char *wrong_one, size_t room) {
    bson_iter_t iter;
    for (bool more = bson_iter_init(&iter, index); more && bson_iter_next(&iter);) {
        if (strcmp(bson_iter_key(&iter), "key") == 0 || is_index_option(&iter))
            continue;
        snprintf(wrong_one, room, "%s", bson_iter_key(&iter));
        return false;
    }
    return true;
}

/* Parses a key, or an object with a key and options, to {key: ..., ...}. */
static bson_t *parse_index(const char *text) {
    bson_error_t why;
    bson_t *json = sl_json_parse(text, strlen(text), &why), *index = NULL, key;
    if (json && sl_look_inside(json, "key", &key)) {
        index = is_key(&key) ? bson_copy(json) : NULL;
    } else if (json && is_key(json)) {
        index = bson_new();
        BSON_APPEND_DOCUMENT(index, "key", json);
    }
    bson_destroy(json);
    return index;
}

/* Can the field be part of an index, or of a shard key? No part of its dotted path may be empty or
 * begin with $, except the last one of a wildcard index. */
static bool is_key_path(const char *name, bool of_index) {
    for (const char *part = name;; part++) {
        size_t length = strcspn(part, ".");
        if (length == 0 || (part[0] == '$' && !(of_index && strcmp(part, "$**") == 0)))
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

/* The first field of the index that the server would refuse, or NULL. */
static const char *wrong_path(const bson_t *index) {
    bson_iter_t iter, key;
    for (bool more = bson_iter_init_find(&iter, index, "key") && bson_iter_recurse(&iter, &key);
         more && bson_iter_next(&key);) {
        if (!is_key_path(bson_iter_key(&key), true))
            return bson_iter_key(&key);
    }
    return NULL;
}

bson_t *sl_option_index(const char *text) {
    char unknown[100];
    bson_t *index = parse_index(text);
    if (index && options_are_known(index, unknown, sizeof unknown))
        return index;
    bson_destroy(index);
    return NULL;
}

bool sl_check_index(const char *text, char *problem, size_t room) {
    char unknown[100];
    bson_t *index = parse_index(text);
    const char *path = index ? wrong_path(index) : NULL;
    bool good = index && !path && options_are_known(index, unknown, sizeof unknown);
    if (path) {
        wrong(problem, room,
              "%s: \"%s\" is not the path of a field: no part between dots may be empty or begin "
              "with $. A column with such a name is stored without these dots and $",
              text, path);
    } else if (!index) {
        wrong(problem, room,
              "%s is not an index; write it like {\"st\": 1, \"ts\": -1} or {\"st\": \"hashed\"}; "
              "with options, like {\"key\": {\"st\": 1}, \"unique\": true}",
              text);
    } else if (!good) {
        wrong(problem, room,
              "%s: \"%s\" is not an option of an index, or has a wrong value; known:", text,
              unknown);
        for (size_t i = 0; i < sizeof index_options / sizeof index_options[0]; i++)
            strncat(strncat(problem, i ? ", " : " ", room - strlen(problem) - 1),
                    index_options[i].name, room - strlen(problem) - 1);
    }
    bson_destroy(index);
    return good;
}

/* The reason why the server would refuse the shard key, and the field that is wrong; NULL for a
 * good key. It is checked here because --drop drops the collection before the server sees the
 * key. */
static const char *shard_key_flaw(const bson_t *key, const char **field) {
    bson_iter_t iter, other;
    bool hashed = false;
    bson_iter_init(&iter, key);
    while (bson_iter_next(&iter)) {
        *field = bson_iter_key(&iter);
        bool is_hashed =
            BSON_ITER_HOLDS_UTF8(&iter) && strcmp(bson_iter_utf8(&iter, NULL), "hashed") == 0;
        bool ascending = BSON_ITER_HOLDS_NUMBER(&iter) && bson_iter_as_double(&iter) == 1;
        if (!is_hashed && !ascending)
            return "is neither 1 nor \"hashed\"";
        if (is_hashed && hashed)
            return "is a second \"hashed\" field, and only one is allowed";
        if (!is_key_path(*field, false))
            return "is not the name of a field";
        if (bson_iter_init_find(&other, key, *field) &&
            bson_iter_offset(&other) != bson_iter_offset(&iter))
            return "is named twice";
        hashed = hashed || is_hashed;
    }
    return NULL;
}

bson_t *sl_option_shard_key(const char *text, bool *unique) {
    bson_t *index = sl_option_index(text), key;
    bool good = index && sl_look_inside(index, "key", &key) &&
                bson_count_keys(index) == 1u + bson_has_field(index, "unique");
    *unique = good && sl_look_flag(index, "unique");
    bson_t *copy = good ? bson_copy(&key) : NULL;
    bson_destroy(index);
    return copy;
}

bool sl_check_shard_key(const char *text, char *problem, size_t room) {
    static const char advice[] = "write it like {\"st\": 1, \"ts\": 1} or {\"st\": \"hashed\"}; if "
                                 "the values are unique, like "
                                 "{\"key\": {\"st\": 1}, \"unique\": true}";
    const char *field = "";
    bool unique;
    if (strcmp(text, "none") == 0)
        return true;
    bson_t *key = sl_option_shard_key(text, &unique);
    const char *flaw = key ? shard_key_flaw(key, &field) : NULL;
    bson_iter_t iter;
    for (bool more = unique && !flaw && bson_iter_init(&iter, key);
         more && bson_iter_next(&iter);) {
        if (BSON_ITER_HOLDS_UTF8(&iter))
            flaw = "is hashed, and the server allows no unique hashed key",
            field = bson_iter_key(&iter);
    }
    if (!key)
        wrong(problem, room, "%s is not a key; %s", text, advice);
    else if (flaw)
        wrong(problem, room, "%s cannot be a shard key: \"%s\" %s; %s", text, field, flaw, advice);
    bson_destroy(key);
    return key && !flaw;
}

bool sl_check_sink(const char *text, char *problem, size_t room) {
    return strcmp(text, "cluster") == 0 || strcmp(text, "null") == 0 ||
           (strncmp(text, "bson:", 5) == 0 && text[5]) ||
           wrong(problem, room, "\"%s\" is not one of cluster, null, bson:FILE", text);
}

/* The server compares the names of its own databases without regard to case. */
static bool is_server_database(const char *name) {
    static const char *const names[] = {"admin", "config", "local"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

bool sl_check_database(const char *text, char *problem, size_t room) {
    size_t length = strlen(text);
    if (is_server_database(text))
        return wrong(problem, room,
                     "\"%s\" is a database of the server itself, where data cannot be loaded; "
                     "choose another name",
                     text);
    return (length > 0 && length < 64 && strcspn(text, "/\\. \"$*<>:|?") == length) ||
           wrong(problem, room,
                 "\"%s\" is not a database name: use 1 to 63 bytes without blanks and without the "
                 "characters /\\.\"$*<>:|?",
                 text);
}

bool sl_check_collection(const char *text, char *problem, size_t room) {
    return sl_is_collection_name(text) ||
           wrong(problem, room,
                 "\"%s\" is not a collection name: it must not be empty, longer than "
                 "199 bytes, begin or end with a dot, begin with system., or contain a $",
                 text);
}

bool sl_option_parse_part(const char *text, unsigned *part, unsigned *parts) {
    char rest;
    return strspn(text, "0123456789/") == strlen(text) && strlen(text) < 10 &&
           sscanf(text, "%u/%u%c", part, parts, &rest) == 2 && *part >= 1 && *part <= *parts &&
           *parts <= SL_PARTS_MAX;
}

bool sl_check_embed(const char *text, char *problem, size_t room) {
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    return (length > 0 && length <= SL_EMBED_FIELD_MAX && equals[1] && text[0] != '$' &&
            !memchr(text, '.', length)) ||
           wrong(problem, room,
                 "\"%s\" is not FIELD=FILE; write it like items=test_item.csv. A field has up "
                 "to %d bytes, no dot, and does not begin with $",
                 text, SL_EMBED_FIELD_MAX);
}

bool sl_check_part(const char *text, char *problem, size_t room) {
    unsigned part, parts;
    return sl_option_parse_part(text, &part, &parts) ||
           wrong(problem, room,
                 "\"%s\" is not a part; write it like 2/4, the second of four parts (%d at most)",
                 text, SL_PARTS_MAX);
}

bool sl_check_shard_names(const char *text, char *problem, size_t room) {
    const char *at = text;
    size_t length = strcspn(at, ",");
    while (length > 0 && at[length])
        length = strcspn(at += length + 1, ",");
    return length > 0 || wrong(problem, room,
                               "\"%s\" contains an empty shard name; write it like a or a,b", text);
}

bool sl_check_key_names(const char *text, char *problem, size_t room) {
    sl_key_names names;
    const char *why = sl_key_names_read(text, &names);
    sl_key_names_clear(&names);
    return !why || wrong(problem, room, "\"%s\": %s; write it like a or a,b.c", text, why);
}

/* At most seven digits, which a double holds exactly, so that the skew is printed as it was
 * given. */
bool sl_check_skew(const char *text, char *problem, size_t room) {
    char *end;
    double skew = strtod(text, &end);
    size_t length = strlen(text);
    return (length > 0 && length <= 8 && strspn(text, "0123456789.") == length && !*end &&
            end != text && skew <= SKEW_MAX) ||
           wrong(problem, room,
                 "\"%s\" is not a skew: a number from 0 to %d, of 8 characters at most", text,
                 SKEW_MAX);
}

bool sl_option_parse_timestamp(const char *text, uint64_t *timestamp) {
    unsigned long long seconds, ordinal = 0;
    int end = 0;
    bool ok = strspn(text, "0123456789:") == strlen(text) && strlen(text) < 22 &&
              sscanf(text, "%llu%n:%llu%n", &seconds, &end, &ordinal, &end) >= 1 &&
              (text[end] == '\0' || strcmp(text + end, ":") == 0) && seconds > 0 &&
              seconds <= UINT32_MAX && ordinal <= UINT32_MAX;
    *timestamp = ok ? (uint64_t)seconds << 32 | ordinal : 0;
    return ok;
}

bool sl_check_timestamp(const char *text, char *problem, size_t room) {
    uint64_t timestamp;
    return sl_option_parse_timestamp(text, &timestamp) ||
           wrong(problem, room, "\"%s\" is not a timestamp: SECONDS or SECONDS:ORDINAL", text);
}

double sl_option_share(const char *text) {
    char *end;
    size_t digits = strspn(text, "0123456789.");
    double share = digits > 0 ? strtod(text, &end) : 0;
    if (digits == 0 || end != text + digits)
        return 0;
    if (strcmp(end, "%") == 0)
        share /= 100;
    else if (*end)
        return 0;
    return share > 0 && share < 1 ? share : 0;
}

bool sl_check_share(const char *text, char *problem, size_t room) {
    return sl_option_share(text) > 0 ||
           wrong(problem, room,
                 "\"%s\" is not a share: write it like 5%% or 0.05, above 0 and below "
                 "100%%; to load everything, leave --sample out",
                 text);
}

/* "1,2,4" with each number from 1 to `most`; `unit` is the noun for the message. */
static bool check_numbers(const char *text, uint64_t most, const char *unit, char *problem,
                          size_t room) {
    uint64_t number;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (!sl_text_to_count((sl_text){at, length}, &number) || number < 1 || number > most)
            return wrong(problem, room,
                         "\"%.*s\" is not a number of %s from 1 to %llu; write them like 1,2,4",
                         (int)length, at, unit, (unsigned long long)most);
        at += length;
        if (!*at)
            return true;
    }
}

bool sl_check_thread_counts(const char *text, char *problem, size_t room) {
    return check_numbers(text, SL_THREADS_MAX, "threads", problem, room);
}

bool sl_check_batch_sizes(const char *text, char *problem, size_t room) {
    return check_numbers(text, SL_BATCH_SIZE_MAX, "documents", problem, room);
}

/* A list of these words, "one|two"; the word "number" allows any number from 1 to 50. */
static bool check_words(const char *text, const char *words, char *problem, size_t room) {
    const sl_text number = sl_text_of("number");
    for (const char *at = text;; at++) {
        sl_text item = {at, strcspn(at, ",")};
        uint64_t value;
        bool is_number = sl_text_to_count(item, &value) && value >= 1 && value <= 50;
        if (sl_text_equal(item, number) || !sl_list_has(words, '|', is_number ? number : item)) {
            size_t used = (size_t)snprintf(problem, room, "\"%.*s\" is not one of ",
                                           (int)item.length, item.bytes);
            for (; *words && used + 3 < room; words++)
                used += (size_t)snprintf(problem + used, room - used, "%c%s",
                                         *words == '|' ? ',' : *words, *words == '|' ? " " : "");
            return false;
        }
        at += item.length;
        if (!*at)
            return true;
    }
}

bool sl_check_compressors(const char *text, char *problem, size_t room) {
    return check_words(text, SL_COMPRESSORS, problem, room);
}

bool sl_check_routes(const char *text, char *problem, size_t room) {
    return check_words(text, "mongos|direct", problem, room);
}

bool sl_check_write_concerns(const char *text, char *problem, size_t room) {
    return check_words(text, "majority|number", problem, room);
}

char sl_option_delimiter(const char *text) {
    char delimiter = 0;
    return sl_delimiter_named(text, &delimiter) ? delimiter : 0; /* "auto" names none */
}

bool sl_check_delimiter(const char *text, char *problem, size_t room) {
    return strcmp(text, "auto") == 0 || sl_option_delimiter(text) != 0 ||
           wrong(problem, room,
                 "%s is not a delimiter; give auto, tab, comma, semicolon, pipe, blank, one ASCII "
                 "character other than quotes and backslashes, or a code such as \\x01",
                 text);
}

char sl_option_quote(const char *text) {
    char quote = SL_QUOTE_AUTO;
    if (strcmp(text, "none") == 0)
        return SL_QUOTE_NONE;
    return sl_quote_named(text, &quote) ? quote : SL_QUOTE_AUTO; /* "auto" is no quote */
}

bool sl_check_quote(const char *text, char *problem, size_t room) {
    return strcmp(text, "auto") == 0 || sl_option_quote(text) != SL_QUOTE_AUTO ||
           wrong(
               problem, room,
               "%s is not a quote; give auto, none, or one printable ASCII character other than a "
               "backslash",
               text);
}

const char *sl_option_declared(const char *text) {
    const size_t word = strcspn(text, ",");
    const bool kind = sl_list_has("auto|text", '|', (sl_text){text, word});
    if (!kind)
        return text;
    return text[word] == ',' ? text + word + 1 : NULL;
}

bool sl_check_types(const char *text, char *problem, size_t room) {
    sl_declared *declared;
    sl_error error = {0};
    if (!sl_declared_create(sl_option_declared(text), &declared, &error))
        return wrong(problem, room, "%s",
                     strstr(error.message, ": ") ? strstr(error.message, ": ") + 2 : error.message);
    sl_declared_destroy(declared);
    return true;
}

char sl_option_escape(const char *text) {
    if (strcmp(text, "none") == 0)
        return 0;
    return strcmp(text, "backslash") == 0 ? '\\' : text[0];
}

bool sl_check_escape(const char *text, char *problem, size_t room) {
    char escape = sl_option_escape(text);
    return (escape == 0 || strcmp(text, "backslash") == 0 ||
            (text[1] == '\0' && escape > ' ' && escape < 0x7F && !strchr("\",;|", escape))) ||
           wrong(problem, room,
                 "%s is not an escape character; give none, backslash, or one printable ASCII "
                 "character other than quotes and delimiters",
                 text);
}

/* ---- mistyped names ---- */

/* Equal in the name of an option and in that of its environment variable. */
static bool same_letter(char a, char b) {
    return tolower((unsigned char)(a == '_' ? '-' : a)) == tolower((unsigned char)b);
}

const char *sl_option_nearest(const sl_program *program, const char *name, size_t length) {
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
                size_t change = diagonal + !same_letter(name[i - 1], row->name[j - 1]);
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

/* A name that begins with that of an option, such as a plural, or lacks several of its last letters
 * may be another word. */
static bool is_mistyped(const char *name, size_t length, const char *option) {
    const size_t other = strlen(option);
    size_t same = 0;
    while (same < length && same < other && same_letter(name[same], option[same]))
        same++;
    return same < other && (same < length || other == length + 1);
}

void sl_option_check_variables(const sl_program *program) {
    const size_t prefix = strlen(program->environment_prefix);
    for (char **variable = environ; variable && *variable; variable++) {
        const char *name = *variable + prefix + 1;
        const size_t length = strcspn(*variable, "=");
        if (length <= prefix + 1 || strncmp(*variable, program->environment_prefix, prefix) != 0 ||
            name[-1] != '_')
            continue;
        const char *near = sl_option_nearest(program, name, length - prefix - 1);
        if (near && is_mistyped(name, length - prefix - 1, near))
            sl_log_warning(
                "the environment variable %.*s has no effect; did you mean that of --%s?",
                (int)length, *variable, near);
    }
}
