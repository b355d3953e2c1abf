/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of code that exists per instruction set: repeats the tests for each set of this
 * processor. */
#ifndef SIMD_ROWS_H
#define SIMD_ROWS_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/simd.h"

/* Makes new plans use the instruction set after `simd` (NULL: the first), and returns it. After the
 * last one, returns NULL and restores the default. */
static inline const sl_simd *next_simd(const sl_simd *simd) {
    size_t i = 0;
    while (simd && sl_simds[i++] != simd)
        continue;
    while (sl_simds[i] && !sl_simd_supported(sl_simds[i]))
        i++;
    if (sl_simds[i])
        setenv("SHARDLOAD_SIMD", sl_simd_name(sl_simds[i]), 1);
    else
        unsetenv("SHARDLOAD_SIMD");
    return sl_simds[i];
}

static inline int use_simd(void **state) {
    return setenv("SHARDLOAD_SIMD", sl_simd_name(*state), 1);
}

/* Runs all tests once per instruction set, which the plans that they create use. */
static inline int run_with_each_simd(const struct CMUnitTest *tests, size_t count) {
    static struct CMUnitTest rows[200];
    static char names[200][128];
    size_t used = 0;
    for (const sl_simd *simd = next_simd(NULL); simd; simd = next_simd(simd)) {
        for (size_t i = 0; i < count; i++) {
            assert(used < sizeof rows / sizeof rows[0]);
            snprintf(names[used], sizeof names[used], "%s, %s", tests[i].name, sl_simd_name(simd));
            rows[used] = tests[i];
            rows[used].name = names[used];
            rows[used].setup_func = use_simd;
            rows[used++].initial_state = (void *)(uintptr_t)simd;
        }
    }
    return _cmocka_run_group_tests("tests", rows, used, NULL, NULL);
}

#endif
