/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: comparing what a query gave with what it must give, in words.
 *
 * Both sides are walked together. Integers are exact: a count that is off by one in ten thousand
 * million is wrong. As soon as one side is a double (or a decimal), the tolerance applies, since
 * shards add up their parts in no fixed order. */
#include <shardload/query.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/json.h>
#include <shardload/md5.h>
#include <shardload/text.h>

#define TOLERANCE 1e-9
#define VALUE_ROOM 100
#define PATH_ROOM 120
#define DEPTH_MAX 200 /* what is deeper is compared byte by byte: the stack has an end */

__attribute__((format(printf, 2, 3))) static void differ(sl_differences *differences,
                                                         const char *format, ...) {
    if (differences->count < SL_DIFFERENCES_KEPT) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(differences->text[differences->count], sizeof differences->text[0], format,
                  arguments);
        va_end(arguments);
    }
    differences->count++;
}

/* ---- values ---- */

static bool is_integer(const bson_iter_t *value) {
    return BSON_ITER_HOLDS_INT32(value) || BSON_ITER_HOLDS_INT64(value);
}

static bool is_number(const bson_iter_t *value) {
    return is_integer(value) || BSON_ITER_HOLDS_DOUBLE(value) || BSON_ITER_HOLDS_DECIMAL128(value);
}

static double number(const bson_iter_t *value) {
    bson_decimal128_t decimal;
    if (!bson_iter_decimal128(value, &decimal))
        return bson_iter_as_double(value);
    char digits[BSON_DECIMAL128_STRING];
    bson_decimal128_to_string(&decimal, digits);
    return strtod(digits, NULL);
}

static bool numbers_equal(const bson_iter_t *a, const bson_iter_t *b) {
    if (is_integer(a) && is_integer(b))
        return bson_iter_as_int64(a) == bson_iter_as_int64(b);
    double x = number(a);
    double y = number(b);
    if (x == y || (isnan(x) && isnan(y)))
        return true;
    return isfinite(x) && isfinite(y) && fabs(x - y) <= TOLERANCE * fmax(fabs(x), fabs(y));
}

/* The same type and the same bytes? */
static bool scalars_equal(const bson_iter_t *a, const bson_iter_t *b) {
    bson_t one = BSON_INITIALIZER;
    bson_t other = BSON_INITIALIZER;
    bool equal = bson_append_iter(&one, "", 0, a) && bson_append_iter(&other, "", 0, b) &&
                 bson_equal(&one, &other);
    bson_destroy(&one);
    bson_destroy(&other);
    return equal;
}

/* A value for a person: short, and safe on a terminal. */
static char *value_text(const bson_iter_t *value, char out[VALUE_ROOM]) {
    char *json = sl_json_value(value);
    sl_text_printable(sl_text_of(json ? json : "a value that cannot be shown"), out, VALUE_ROOM);
    free(json);
    return out;
}

/* ---- the walk ---- */

static void compare_value(const char *path, const bson_iter_t *expected, const bson_iter_t *got,
                          unsigned depth, sl_differences *differences);

static void step(const char *path, const char *key, char out[PATH_ROOM]) {
    char name[PATH_ROOM / 2];
    sl_text_printable(sl_text_of(key), name, sizeof name);
    const char *joint = path[strlen(path) - 1] == ' ' ? "" : ".";
    if (strlen(path) + strlen(name) + 2 <= PATH_ROOM) {
        size_t used = (size_t)snprintf(out, PATH_ROOM, "%s", path);
        snprintf(out + used, PATH_ROOM - used, "%s%s", joint, name);
    } else {
        snprintf(out, PATH_ROOM, "%s", path); /* deep enough to find it */
    }
}

static bool find(bson_iter_t *value, const bson_iter_t *parent, const char *key) {
    return bson_iter_recurse(parent, value) && bson_iter_find(value, key);
}

static void compare_container(const char *path, const bson_iter_t *expected, const bson_iter_t *got,
                              unsigned depth, sl_differences *differences) {
    char where[PATH_ROOM];
    char text[VALUE_ROOM];
    bson_iter_t child;
    bson_iter_t twin;
    bson_iter_recurse(expected, &child);
    while (bson_iter_next(&child)) {
        step(path, bson_iter_key(&child), where);
        if (find(&twin, got, bson_iter_key(&child)))
            compare_value(where, &child, &twin, depth + 1, differences);
        else
            differ(differences, "%s: missing, expected %s", where, value_text(&child, text));
    }
    bson_iter_recurse(got, &child);
    while (bson_iter_next(&child)) {
        if (!find(&twin, expected, bson_iter_key(&child))) {
            step(path, bson_iter_key(&child), where);
            differ(differences, "%s: got %s, expected no such key", where,
                   value_text(&child, text));
        }
    }
}

static void compare_value(const char *path, const bson_iter_t *expected, const bson_iter_t *got,
                          unsigned depth, sl_differences *differences) {
    bson_type_t type = bson_iter_type(expected);
    bool equal;
    if (is_number(expected) && is_number(got)) {
        equal = numbers_equal(expected, got);
    } else if (depth < DEPTH_MAX && type == bson_iter_type(got) &&
               (type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY)) {
        compare_container(path, expected, got, depth, differences);
        return;
    } else {
        equal = scalars_equal(expected, got);
    }
    if (!equal) {
        char wanted[VALUE_ROOM];
        char actual[VALUE_ROOM];
        differ(differences, "%s: expected %s, got %s", path, value_text(expected, wanted),
               value_text(got, actual));
    }
}

bool sl_answer_compare(const bson_t *expected, const bson_t *got, sl_differences *differences) {
    memset(differences, 0, sizeof *differences);
    bson_iter_t wanted;
    bson_iter_t actual;
    if (!bson_iter_init(&wanted, expected) || !bson_iter_init(&actual, got)) {
        differ(differences, "not a list of documents");
        return false;
    }
    char text[VALUE_ROOM];
    uint64_t row = 1;
    bool more_wanted = bson_iter_next(&wanted);
    bool more_actual = bson_iter_next(&actual);
    for (; more_wanted && more_actual; row++) {
        char path[PATH_ROOM];
        snprintf(path, sizeof path, "row %" PRIu64 ", ", row);
        compare_value(path, &wanted, &actual, 0, differences);
        more_wanted = bson_iter_next(&wanted);
        more_actual = bson_iter_next(&actual);
    }
    if (more_wanted || more_actual) {
        bson_iter_t *rest = more_wanted ? &wanted : &actual;
        value_text(rest, text);
        uint64_t rows = 1;
        while (bson_iter_next(rest))
            rows++;
        if (more_wanted)
            differ(differences,
                   "expected %" PRIu64 " more row%s, the first of them row %" PRIu64 ": %s", rows,
                   rows == 1 ? "" : "s", row, text);
        else
            differ(differences,
                   "got %" PRIu64 " row%s too many, the first of them row %" PRIu64 ": %s", rows,
                   rows == 1 ? "" : "s", row, text);
    }
    return differences->count == 0;
}

/* The answer with each {_id, value: {...}} as the document under `value`. */
static bool unwrap(const bson_t *answer, bson_t *out) {
    bson_iter_t row;
    bool ok = bson_iter_init(&row, answer);
    while (ok && bson_iter_next(&row)) {
        bson_iter_t value;
        bool wrapped = find(&value, &row, "value") && BSON_ITER_HOLDS_DOCUMENT(&value);
        ok = bson_append_iter(out, bson_iter_key(&row), -1, wrapped ? &value : &row);
    }
    return ok;
}

bool sl_answers_agree(const bson_t *first, const bson_t *other, sl_differences *differences) {
    bson_t a = BSON_INITIALIZER, b = BSON_INITIALIZER;
    bool same = unwrap(first, &a) && unwrap(other, &b) && sl_answer_compare(&a, &b, differences);
    bson_destroy(&a);
    bson_destroy(&b);
    return same;
}

char *sl_answer_hash(const bson_t *documents, char out[SL_ANSWER_HASH_ROOM]) {
    sl_md5 md5;
    uint8_t digest[SL_MD5_BYTES];
    sl_md5_begin(&md5);
    sl_md5_add(&md5, bson_get_data(documents), documents->len);
    sl_md5_end(&md5, digest);
    for (size_t i = 0; i < SL_MD5_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return out;
}

bool sl_answer_expected(const bson_t *answers, const sl_query *query, bson_t *array) {
    bson_iter_t object, one;
    if (answers && bson_iter_init_find(&object, answers, "answers") &&
        bson_iter_recurse(&object, &one) && bson_iter_find(&one, query->name) &&
        BSON_ITER_HOLDS_ARRAY(&one)) {
        uint32_t length;
        const uint8_t *bytes;
        bson_iter_array(&one, &length, &bytes);
        return bson_init_static(array, bytes, length);
    }
    return query->expected &&
           bson_init_static(array, bson_get_data(query->expected), query->expected->len);
}
