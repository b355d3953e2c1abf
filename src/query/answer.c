/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the expected and the actual answer of a query, value by value, and describes the
 * differences.
 *
 * Two integers must be equal: a count of 10,000,000,000 that is off by one is wrong. The tolerance
 * applies when one side is a double or a decimal, because the order in which the results of shards
 * are added up is not fixed. */
#include "query.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "report/json.h"
#include "util/hash.h"
#include "util/text.h"

#define TOLERANCE 1e-9
#define VALUE_ROOM 100
#define PATH_ROOM 120
#define DEPTH_MAX 200 /* bounds the recursion: deeper values are compared byte by byte */

__attribute__((format(printf, 2, 3))) static void add_difference(sl_differences *differences,
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

static bool is_number(const bson_iter_t *value) {
    return BSON_ITER_HOLDS_NUMBER(value) || BSON_ITER_HOLDS_DECIMAL128(value);
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
    if (BSON_ITER_HOLDS_INT(a) && BSON_ITER_HOLDS_INT(b))
        return bson_iter_as_int64(a) == bson_iter_as_int64(b);
    double x = number(a);
    double y = number(b);
    if (x == y || (isnan(x) && isnan(y)))
        return true;
    return isfinite(x) && isfinite(y) && fabs(x - y) <= TOLERANCE * fmax(fabs(x), fabs(y));
}

/* The value as JSON for a message: cut to VALUE_ROOM - 1 bytes and safe to print. */
static char *value_text(const bson_iter_t *value, char out[VALUE_ROOM]) {
    char *json = sl_json_value(value);
    sl_text_printable(sl_text_of(json ? json : "a value that cannot be shown"), out, VALUE_ROOM);
    free(json);
    return out;
}

/* ---- documents ---- */

static void compare_value(const char *path, const bson_iter_t *expected, const bson_iter_t *actual,
                          unsigned depth, sl_differences *differences);

/* The path of a key below `path`; `path` itself when there is no room for the key. */
static void extend_path(const char *path, const char *key, char out[PATH_ROOM]) {
    char name[PATH_ROOM / 2];
    sl_text_printable(sl_text_of(key), name, sizeof name);
    const char *separator = path[strlen(path) - 1] == ' ' ? "" : ".";
    if (strlen(path) + strlen(name) + 2 <= PATH_ROOM) {
        size_t used = (size_t)snprintf(out, PATH_ROOM, "%s", path);
        snprintf(out + used, PATH_ROOM - used, "%s%s", separator, name);
    } else {
        snprintf(out, PATH_ROOM, "%s", path);
    }
}

static bool find_key(bson_iter_t *value, const bson_iter_t *parent, const char *key) {
    return bson_iter_recurse(parent, value) && bson_iter_find(value, key);
}

static void compare_container(const char *path, const bson_iter_t *expected,
                              const bson_iter_t *actual, unsigned depth,
                              sl_differences *differences) {
    char where[PATH_ROOM];
    char text[VALUE_ROOM];
    bson_iter_t child;
    bson_iter_t counterpart;
    bson_iter_recurse(expected, &child);
    while (bson_iter_next(&child)) {
        extend_path(path, bson_iter_key(&child), where);
        if (find_key(&counterpart, actual, bson_iter_key(&child)))
            compare_value(where, &child, &counterpart, depth + 1, differences);
        else
            add_difference(differences, "%s: missing, expected %s", where,
                           value_text(&child, text));
    }
    bson_iter_recurse(actual, &child);
    while (bson_iter_next(&child)) {
        if (!find_key(&counterpart, expected, bson_iter_key(&child))) {
            extend_path(path, bson_iter_key(&child), where);
            add_difference(differences, "%s: got %s, expected no such key", where,
                           value_text(&child, text));
        }
    }
}

static void compare_value(const char *path, const bson_iter_t *expected, const bson_iter_t *actual,
                          unsigned depth, sl_differences *differences) {
    bson_type_t type = bson_iter_type(expected);
    bool equal;
    if (is_number(expected) && is_number(actual)) {
        equal = numbers_equal(expected, actual);
    } else if (depth < DEPTH_MAX && type == bson_iter_type(actual) &&
               (type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY)) {
        compare_container(path, expected, actual, depth, differences);
        return;
    } else {
        equal = sl_values_equal(expected, actual);
    }
    if (!equal) {
        char expected_text[VALUE_ROOM];
        char actual_text[VALUE_ROOM];
        add_difference(differences, "%s: expected %s, got %s", path,
                       value_text(expected, expected_text), value_text(actual, actual_text));
    }
}

bool sl_answer_compare(const bson_t *expected, const bson_t *actual, sl_differences *differences) {
    memset(differences, 0, sizeof *differences);
    bson_iter_t expected_row;
    bson_iter_t actual_row;
    if (!bson_iter_init(&expected_row, expected) || !bson_iter_init(&actual_row, actual)) {
        add_difference(differences, "not a list of documents");
        return false;
    }
    char text[VALUE_ROOM];
    uint64_t row = 1;
    bool more_expected = bson_iter_next(&expected_row);
    bool more_actual = bson_iter_next(&actual_row);
    for (; more_expected && more_actual; row++) {
        char path[PATH_ROOM];
        snprintf(path, sizeof path, "row %" PRIu64 ", ", row);
        compare_value(path, &expected_row, &actual_row, 0, differences);
        more_expected = bson_iter_next(&expected_row);
        more_actual = bson_iter_next(&actual_row);
    }
    if (more_expected || more_actual) {
        bson_iter_t *surplus = more_expected ? &expected_row : &actual_row;
        value_text(surplus, text);
        uint64_t rows = 1;
        while (bson_iter_next(surplus))
            rows++;
        if (more_expected)
            add_difference(differences, "expected %s, the first of them row %" PRIu64 ": %s",
                           sl_plural(rows, "more row"), row, text);
        else
            add_difference(differences, "got %s too many, the first of them row %" PRIu64 ": %s",
                           sl_plural(rows, "row"), row, text);
    }
    return differences->count == 0;
}

/* Copies the answer to `out`; the document under `value` replaces each {_id, value: {...}}. */
static bool unwrap(const bson_t *answer, bson_t *out) {
    bson_iter_t row;
    bool ok = bson_iter_init(&row, answer);
    while (ok && bson_iter_next(&row)) {
        bson_iter_t value;
        bool wrapped = find_key(&value, &row, "value") && BSON_ITER_HOLDS_DOCUMENT(&value);
        ok = bson_append_iter(out, bson_iter_key(&row), -1, wrapped ? &value : &row);
    }
    return ok;
}

bool sl_answers_agree(const bson_t *first, const bson_t *second, sl_differences *differences) {
    bson_t a = BSON_INITIALIZER, b = BSON_INITIALIZER;
    bool same = unwrap(first, &a) && unwrap(second, &b) && sl_answer_compare(&a, &b, differences);
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
        BSON_ITER_HOLDS_ARRAY(&one))
        return sl_container_at(&one, array);
    return query->expected &&
           bson_init_static(array, bson_get_data(query->expected), query->expected->len);
}

static bool has_query(sl_suite *const *suites, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < suites[i]->count; k++) {
            if (strcmp(suites[i]->queries[k].name, name) == 0)
                return true;
        }
    }
    return false;
}

bool sl_answers_check(const bson_t *answers, sl_suite *const *suites, size_t count,
                      sl_error *error) {
    bson_iter_t object, one;
    size_t found = 0;
    if (!bson_iter_init_find(&object, answers, "answers") || !BSON_ITER_HOLDS_DOCUMENT(&object) ||
        !bson_iter_recurse(&object, &one))
        return sl_error_set(error, SL_EXIT_SOURCE, "it contains no object \"answers\"");
    while (bson_iter_next(&one)) {
        char name[100];
        sl_text_printable(sl_text_of(bson_iter_key(&one)), name, sizeof name);
        if (!has_query(suites, count, bson_iter_key(&one)))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "the suite %.60s has no query %s; leave it out of the file, or "
                                "name another suite",
                                count > 0 ? suites[count - 1]->name : "", name);
        if (!BSON_ITER_HOLDS_ARRAY(&one))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "the answer of %s is not an array of documents", name);
        found++;
    }
    return found > 0 || sl_error_set(error, SL_EXIT_SOURCE,
                                     "it contains no answer; leave the option out to check the "
                                     "answers in the suite");
}

const char *sl_answer_text(sl_answer answer) {
    static const char *const texts[] = {"not checked", "ok", "WRONG", "FAILED",
                                        "not supported here"};
    return texts[answer];
}
