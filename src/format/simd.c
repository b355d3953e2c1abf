/* SPDX-License-Identifier: Apache-2.0 */
/* The list of instruction sets, and the selection of one. */
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
