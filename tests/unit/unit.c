/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of the unit tests. */
#include "unit.h"

#define TESTS_MAX 100

static struct CMUnitTest tests[TESTS_MAX]; /* sorted by line */
static int lines[TESTS_MAX];
static size_t count;
static CMFixtureFunction before_all, after_all;

void unit_add(const char *name, CMUnitTestFunction function, int line) {
    if (count == TESTS_MAX)
        abort();
    size_t at = count++;
    for (; at > 0 && lines[at - 1] > line; at--) {
        tests[at] = tests[at - 1];
        lines[at] = lines[at - 1];
    }
    tests[at] = (struct CMUnitTest){.name = name, .test_func = function};
    lines[at] = line;
}

void unit_surround(CMFixtureFunction before, CMFixtureFunction after) {
    before_all = before;
    after_all = after;
}

int main(void) {
    return _cmocka_run_group_tests("tests", tests, count, before_all, after_all);
}
