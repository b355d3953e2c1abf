/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop with NEON. */
#if defined(__aarch64__)
#include "convert_scalar.h"
#include "scan_neon.h"
#include "utf8_neon.h"

#include "delimited_loop.h"

static bool supported(void) {
    return true;
}

extern const sl_simd sl_simd_neon;
const sl_simd sl_simd_neon = {.name = "neon", .supported = supported, SL_KERNELS};

#endif
