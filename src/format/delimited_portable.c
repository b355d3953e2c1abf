/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop in plain C. */
#include "convert_scalar.h"
#include "scan_portable.h"
#include "utf8_scalar.h"

#include "delimited_loop.h"

static bool supported(void) {
    return true;
}

extern const sl_simd sl_simd_portable;
const sl_simd sl_simd_portable = {.name = "portable", .supported = supported, SL_KERNELS};
