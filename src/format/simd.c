/* SPDX-License-Identifier: Apache-2.0 */
/* The list of instruction sets, the selection of one, and the constants of the converters that use
 * vectors. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels.h"

const sl_simd *const sl_simds[] = {
#if defined(__x86_64__)
    &sl_simd_avx2, &sl_simd_sse2,
#elif defined(__aarch64__)
    &sl_simd_neon,
#endif
    &sl_simd_portable, NULL};

bool sl_simd_supported(const sl_simd *simd) {
    return !simd->supported || simd->supported();
}

const char *sl_simd_name(const sl_simd *simd) {
    return simd->name;
}

sl_simd_utf8 *sl_simd_utf8_valid(const sl_simd *simd) {
    return simd->utf8_valid;
}

bool sl_simd_choose(const sl_simd **out, sl_error *error) {
    const char *requested = getenv("SHARDLOAD_SIMD");
    bool any = !requested || *requested == '\0';
    char names[80] = "";
    for (size_t i = 0; sl_simds[i]; i++) {
        const sl_simd *simd = sl_simds[i];
        if (!sl_simd_supported(simd))
            continue;
        if (any || strcmp(simd->name, requested) == 0) {
            *out = simd;
            return true;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", simd->name);
    }
    char shown[40];
    sl_text_printable(sl_text_of(requested), shown, sizeof shown);
    return sl_error_set(error, SL_EXIT_USAGE, "SHARDLOAD_SIMD=%s: this processor supports %s",
                        shown, names);
}

/* ---- constants (kernels.h) ---- */

/* clang-format off */
#define MOVE(p, i) ((p) == 16 || (i) > (p) ? (i) : (i) == 0 ? 0x80 : (i)-1)
#define FOUR(p, i) MOVE(p, i), MOVE(p, (i) + 1), MOVE(p, (i) + 2), MOVE(p, (i) + 3)
#define POINT(p, power) {{FOUR(p, 0), FOUR(p, 4), FOUR(p, 8), FOUR(p, 12)}, {power, -(power)}}
/* clang-format on */

const sl_vector_constants sl_vectors = {
    .zeros = {[0 ... 15] = '0'},
    .points = {[0 ... 15] = 0x1E},
    .nines = {[0 ... 15] = 9},
    .tens = {10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1},
    .hundreds = {100, 1, 100, 1, 100, 1, 100, 1},
    .thousands = {10000, 1, 10000, 1, 10000, 1, 10000, 1},
    .ends = {[0 ... 15] = 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    .point = {POINT(0, 1e15), POINT(1, 1e14), POINT(2, 1e13), POINT(3, 1e12), POINT(4, 1e11),
              POINT(5, 1e10), POINT(6, 1e9), POINT(7, 1e8), POINT(8, 1e7), POINT(9, 1e6),
              POINT(10, 1e5), POINT(11, 1e4), POINT(12, 1e3), POINT(13, 1e2), POINT(14, 1e1),
              POINT(15, 1e0), POINT(16, 1e0)},
    .date_form = "0000-00-00",
    .date_greatest = {9, 9, 9, 9, 0, 1, 9, 0, 3, 9, 255, 255, 255, 255, 255, 255},
    .date_tens = {10, 1, 10, 1, 0, 10, 1, 0, 10, 1},
    .date_hundreds = {100, 1, 1, 1, 1},
    .time_form = "00:00:00",
    .time_greatest = {2, 9, 0, 5, 9, 0, 5, 9, 255, 255, 255, 255, 255, 255, 255, 255},
    .time_tens = {10, 1, 0, 10, 1, 0, 10, 1},
    .time_seconds = {3600, 60, 60, 1},
};
