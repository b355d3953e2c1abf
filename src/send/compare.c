/* SPDX-License-Identifier: Apache-2.0 */
/* The merge of expected and found documents, both ascending by _id.
 *
 * An _id is unique on each shard only. Where the shard key is another field, the cluster can hold
 * several documents of one _id. So the documents found under an expected _id are classified when
 * the next _id arrives: if one of them equals the expected document, the others are extra;
 * otherwise the first one counts as the expected document with different content. */
#include "compare.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_number.h"
#include "report/json.h"
#include "util/text.h"

int64_t sl_expected_id(const uint8_t *document) {
    uint64_t id;
    memcpy(&id, document + 9, sizeof id); /* after length, type and "_id" */
    return (int64_t)BSON_UINT64_FROM_LE(id);
}

/* The _id as a whole number, of any numeric type. False for an _id that no document of a load can
 * have: of another type, or not a whole number. */
static bool id_of(const bson_t *document, int64_t *id) {
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, "_id"))
        return false;
    sl_number number = sl_number_of(&iter);
    *id = number.value.integer;
    return number.kind == SL_NUMBER_INTEGER;
}

/* Classifies the next expected document, after all documents under its _id have been found. */
static void judge_next(sl_comparison *comparison) {
    const uint8_t *expected = comparison->expected;
    if (comparison->held)
        comparison->report(comparison->context, comparison->matched ? SL_EXTRA : SL_DIFFERENT,
                           comparison->matched ? NULL : expected, comparison->held);
    else if (!comparison->matched)
        comparison->report(comparison->context, SL_MISSING, expected, NULL);
    sl_compare_clear(comparison);
    comparison->expected += sl_bson_length(expected);
}

static bool is_equal(const uint8_t *expected, const bson_t *found) {
    return found->len == sl_bson_length(expected) &&
           memcmp(bson_get_data(found), expected, found->len) == 0;
}

void sl_compare_found(sl_comparison *comparison, const bson_t *found) {
    int64_t id;
    bool is_number = id_of(found, &id);
    while (is_number && comparison->expected < comparison->end &&
           sl_expected_id(comparison->expected) < id)
        judge_next(comparison);
    is_number = is_number && comparison->expected < comparison->end &&
                sl_expected_id(comparison->expected) == id;
    if (is_number && !comparison->matched && is_equal(comparison->expected, found))
        comparison->matched = true;
    else if (is_number && !comparison->matched && !comparison->held)
        comparison->held = bson_copy(found);
    else
        comparison->report(comparison->context, SL_EXTRA, NULL, found);
}

void sl_compare_end(sl_comparison *comparison) {
    while (comparison->expected < comparison->end)
        judge_next(comparison);
}

void sl_compare_clear(sl_comparison *comparison) {
    bson_destroy(comparison->held);
    comparison->held = NULL;
    comparison->matched = false;
}

/* ---- differences in words ---- */

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
