/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop with AVX-512. */
#if defined(__x86_64__)
#include "convert_sse41.h"
#include "scan_avx512.h"
#include "utf8_avx2.h"

#include "delimited_loop.h"

static bool supported(void) {
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("pclmul");
}

extern const sl_simd sl_simd_avx512;
const sl_simd sl_simd_avx512 = {.name = "avx512", .supported = supported, SL_KERNELS};

#endif
