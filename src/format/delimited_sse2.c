/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop with SSE2. */
#if defined(__x86_64__)
#include "convert_scalar.h"
#include "scan_sse2.h"
#include "utf8_scalar.h"

#include "delimited_loop.h"

static bool supported(void) {
    return true;
}

extern const sl_simd sl_simd_sse2;
const sl_simd sl_simd_sse2 = {.name = "sse2", .supported = supported, SL_KERNELS};

#endif
