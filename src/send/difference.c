/* SPDX-License-Identifier: Apache-2.0 */
/* A description of the differences between two documents with the same _id. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "util/text.h"

#include "compare.h"

#define DEPTH_MAX 8 /* levels of nesting; deeper documents are compared as one value */
#define PATH_ROOM 300
#define VALUE_ROOM 80

typedef struct sl_words {
    char *out;
    size_t room;
    size_t used;
} sl_words;

static void append(sl_words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a difference, after a semicolon. `used` may exceed `room`: the text is truncated then. */
static void append(sl_words *words, const char *format, ...) {
    va_list arguments;
    if (words->used >= words->room)
        return;
    if (words->used > 0)
        words->used += (size_t)snprintf(words->out + words->used, words->room - words->used, "; ");
    if (words->used >= words->room)
        return;
    va_start(arguments, format);
    words->used +=
        (size_t)vsnprintf(words->out + words->used, words->room - words->used, format, arguments);
    va_end(arguments);
}

/* Same type and same bytes? */
static bool same_value(const bson_iter_t *a, const bson_iter_t *b) {
    bson_t left = BSON_INITIALIZER, right = BSON_INITIALIZER;
    bson_append_iter(&left, "", 0, a);
    bson_append_iter(&right, "", 0, b);
    bool same = bson_equal(&left, &right);
    bson_destroy(&left);
    bson_destroy(&right);
    return same;
}

static char *value_text(const bson_iter_t *value, char out[VALUE_ROOM]) {
    char *json = sl_json_value(value);
    sl_text_printable(sl_text_of(json ? json : "(not shown)"), out, VALUE_ROOM);
    free(json);
    return out;
}

static const char *type_name(const bson_iter_t *value) {
    switch (bson_iter_type(value)) {
    case BSON_TYPE_INT32:
        return "int32";
    case BSON_TYPE_INT64:
        return "int64";
    case BSON_TYPE_DOUBLE:
        return "double";
    case BSON_TYPE_DECIMAL128:
        return "decimal128";
    default:
        return "another type";
    }
}

static void compare_documents(sl_words *words, const char *prefix, bson_iter_t expected,
                              bson_iter_t found, unsigned depth);

static void compare_values(sl_words *words, const char *path, const bson_iter_t *expected,
                           const bson_iter_t *found, unsigned depth) {
    bson_iter_t inner_expected, inner_found;
    char is[VALUE_ROOM], should[VALUE_ROOM];
    if (same_value(expected, found))
        return;
    bool nested = bson_iter_type(expected) == bson_iter_type(found) &&
                  (BSON_ITER_HOLDS_DOCUMENT(expected) || BSON_ITER_HOLDS_ARRAY(expected));
    if (nested && depth < DEPTH_MAX && bson_iter_recurse(expected, &inner_expected) &&
        bson_iter_recurse(found, &inner_found)) {
        compare_documents(words, path, inner_expected, inner_found, depth + 1);
        return;
    }
    value_text(found, is);
    value_text(expected, should);
    if (strcmp(is, should) != 0)
        append(words, "%s is %s, not %s", path, is, should);
    else
        append(words, "%s is %s as %s, not as %s", path, is, type_name(found), type_name(expected));
}

/* Both iterators are before the first field of their documents. */
static void compare_documents(sl_words *words, const char *prefix, bson_iter_t expected,
                              bson_iter_t found, unsigned depth) {
    char path[PATH_ROOM], key[PATH_ROOM];
    size_t before = words->used;
    for (bson_iter_t one = expected; bson_iter_next(&one);) {
        bson_iter_t other = found;
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", bson_iter_key(&one));
        if (bson_iter_find(&other, bson_iter_key(&one)))
            compare_values(words, path, &one, &other, depth);
        else
            append(words, "%s is missing", path);
    }
    for (bson_iter_t one = found; bson_iter_next(&one);) {
        bson_iter_t other = expected;
        if (bson_iter_find(&other, bson_iter_key(&one)))
            continue;
        sl_text_printable(sl_text_of(bson_iter_key(&one)), key, sizeof key);
        append(words, "%s%s%s is not expected", prefix, *prefix ? "." : "", key);
    }
    if (words->used == before)
        append(words, "%s%sthe fields are in another order", prefix, *prefix ? ": " : "");
}

char *sl_difference(const uint8_t *expected, const bson_t *found, char *out, size_t room) {
    sl_words words = {.out = out, .room = room};
    bson_iter_t one, other;
    out[0] = '\0';
    if (bson_iter_init_from_data(&one, expected, sl_bson_length(expected)) &&
        bson_iter_init(&other, found))
        compare_documents(&words, "", one, other, 0);
    if (words.used >= room && room > 4)
        memcpy(out + room - 4, "...", 4);
    return out;
}
