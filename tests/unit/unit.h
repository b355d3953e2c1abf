/* SPDX-License-Identifier: Apache-2.0 */
/* A unit test is written as TEST(name) { ... }, which also registers it. unit.c has the main
 * function, which runs the tests of a file in the order of their lines. */
#ifndef SHARDLOAD_TESTS_UNIT_H
#define SHARDLOAD_TESTS_UNIT_H

/* cmocka.h needs setjmp.h, stdarg.h and stddef.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bson/bson.h>
#include <cmocka.h>

#ifdef assert_int_in_range /* cmocka 2, which calls the name of cmocka 1 deprecated */
#undef assert_in_range
#define assert_in_range assert_int_in_range
#endif

#define TEST(test)                                                                                 \
    static void test(void **state);                                                                \
    __attribute__((constructor)) static void add_##test(void) {                                    \
        unit_add(__BASE_FILE__, __LINE__,                                                          \
                 (struct CMUnitTest){#test, test, NULL, unit_release, NULL});                      \
    }                                                                                              \
    static void test(__attribute__((unused)) void **state)

/* Functions that are called before the first test of the file and after the last one. */
#define BEFORE_AND_AFTER_ALL(before, after)                                                        \
    __attribute__((constructor)) static void add_before_and_after(void) {                          \
        unit_surround(__BASE_FILE__, before, after);                                               \
    }

/* RUN_TESTS { ... } runs the tests of a file in another way than one after the other, and returns
 * the number of those that failed. `added`: the file's TESTs, if it has any. */
#define RUN_TESTS                                                                                  \
    static unit_runner run_file;                                                                   \
    __attribute__((constructor)) static void add_runner(void) {                                    \
        unit_run_with(__BASE_FILE__, run_file);                                                    \
    }                                                                                              \
    static int run_file(__attribute__((unused)) const struct CMUnitTest *added,                    \
                        __attribute__((unused)) size_t added_count)

/* Fails unless the JSON texts are equal. Blanks do not count: in an empty document, versions of
 * libbson print different numbers of them. */
static inline void assert_same_json(const char *json, const char *expected) {
    const char *a = json, *b = expected;
    for (; *a && *a == *b; a++, b++) {
        a += strspn(a + 1, " ");
        b += strspn(b + 1, " ");
    }
    if (*a || *b)
        fail_msg("%s\nexpected: %s", json, expected);
}

/* Fails unless the values are equal up to this share of `expected`. (cmocka compares floats.) */
static inline void assert_near(double value, double expected, double share) {
    if (!(fabs(value - expected) <= share * fabs(expected)))
        fail_msg("%.17g, expected %.17g", value, expected);
}

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (!strstr(text, part))                                                                   \
            fail_msg("\"%s\" is not in: %s", part, text);                                          \
    } while (0)

/* ---- objects of a test, which are released after it, also if it fails, the last one first ---- */

/* Calls `release` with the object after the test. */
void unit_release_later(void (*release)(void *), void *object);

/* Defines such a function, which calls `destroy` of a type of objects. */
#define RELEASER(name, destroy)                                                                    \
    static void name(void *object) {                                                               \
        destroy(object);                                                                           \
    }

/* Frees the memory after the test; returns it. Fails the test if it is NULL. */
void *unit_keep(void *memory);

/* The same for a document, and for the document that a text in Extended JSON describes. */
bson_t *unit_keep_bson(bson_t *document);
bson_t *unit_json(const char *text);

/* A document as relaxed Extended JSON. Valid until the end of the test. */
const char *unit_json_of(const bson_t *document);

/* A folder that belongs to the test, and the path of a file in it. Valid until its end. */
const char *unit_folder(void);
const char *unit_path(const char *name);

/* Writes a file, and reads one; the content is followed by a NUL that `length` does not include. */
void unit_write(const char *path, const void *bytes, size_t length);
char *unit_read(const char *path, size_t *length);

/* Fails unless the test's folder contains exactly `count` files. */
void unit_assert_files(unsigned count);

/* Runs the function in `count` threads at once, with the addresses of `items` of `size` bytes each
 * (0: one item for all), and waits for their end. */
void unit_run_threads(unsigned count, void *(*function)(void *), void *items, size_t size);

/* The teardown function of TEST, for tests that are not made by it: releases all objects. */
int unit_release(void **state);

/* ---- the program ---- */

typedef int unit_runner(const struct CMUnitTest *added, size_t added_count);

/* `path`: of the file to which the test belongs. */
void unit_add(const char *path, int line, struct CMUnitTest test);
void unit_surround(const char *path, CMFixtureFunction before, CMFixtureFunction after);
void unit_run_with(const char *path, unit_runner *run);

#endif
