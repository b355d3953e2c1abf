/* SPDX-License-Identifier: Apache-2.0 */
/* A unit test is written as TEST(name) { ... }, which also registers it. unit.c has the main
 * function, which runs the tests in the order of their lines. */
#ifndef SHARDLOAD_TESTS_UNIT_H
#define SHARDLOAD_TESTS_UNIT_H

/* cmocka.h needs the first three. */
#include <setjmp.h>
#include <stdarg.h>
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
        unit_add(#test, test, __LINE__);                                                           \
    }                                                                                              \
    static void test(__attribute__((unused)) void **state)

/* Functions that are called before the first test and after the last one. */
#define BEFORE_AND_AFTER_ALL(before, after)                                                        \
    __attribute__((constructor)) static void add_before_and_after(void) {                          \
        unit_surround(before, after);                                                              \
    }

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

void unit_add(const char *name, CMUnitTestFunction function, int line);
void unit_surround(CMFixtureFunction before, CMFixtureFunction after);

#endif
