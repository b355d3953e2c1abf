/* SPDX-License-Identifier: Apache-2.0 */
/* A unit test is written as TEST(name) { ... }, which also registers it. unit.c has the main
 * function, which runs the tests of a file in the order of their lines. */
#ifndef SHARDLOAD_TESTS_UNIT_H
#define SHARDLOAD_TESTS_UNIT_H

/* cmocka.h needs setjmp.h, stdarg.h and stddef.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef assert_int_in_range /* cmocka 2, which calls the name of cmocka 1 deprecated */
#undef assert_in_range
#define assert_in_range assert_int_in_range
#endif

#define TEST(test)                                                                                 \
    static void test(void **state);                                                                \
    __attribute__((constructor)) static void add_##test(void) {                                    \
        unit_add(__BASE_FILE__, __LINE__, #test, test);                                            \
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

typedef int unit_runner(const struct CMUnitTest *added, size_t added_count);

/* `path`: of the file to which the test belongs. */
void unit_add(const char *path, int line, const char *name, CMUnitTestFunction function);
void unit_surround(const char *path, CMFixtureFunction before, CMFixtureFunction after);
void unit_run_with(const char *path, unit_runner *run);

#endif
