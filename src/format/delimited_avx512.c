/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop with AVX-512. In the structural scan, comparisons give masks directly, and
 * compressing the numbers from 0 to 63 gives sixteen positions at a time. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "convert_sse41.h"
#define SL_SCAN_OWN_POSITIONS
#include "scan.h"
#include "utf8_avx2.h"

static inline sl_scan sl_scan_64(const char *bytes, char delimiter, char quote) {
    __m512i part = _mm512_loadu_si512(bytes);
    sl_scan scan = {.lines = _mm512_cmpeq_epi8_mask(part, _mm512_set1_epi8('\n'))};
    uint64_t odd = _mm512_testn_epi8_mask(part, part);
    scan.marks = scan.lines | _mm512_cmpeq_epi8_mask(part, _mm512_set1_epi8(delimiter));
    if (quote) {
        scan.quotes = _mm512_cmpeq_epi8_mask(part, _mm512_set1_epi8(quote));
        scan.marks |= scan.quotes;
        odd |= _mm512_cmpeq_epi8_mask(part, _mm512_set1_epi8('\\'));
    }
    scan.high = _mm512_movepi8_mask(part) != 0;
    scan.odd = odd != 0;
    return scan;
}

static inline uint32_t *sl_scan_positions(uint32_t *to, uint64_t mask, uint32_t at) {
    static const uint8_t numbers[64] __attribute__((aligned(64))) = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
        22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
        44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    const __m512i base = _mm512_set1_epi32((int)at);
    uint32_t *end = to + sl_scan_count(mask);
    __m512i set = _mm512_maskz_compress_epi8(mask, _mm512_load_si512(numbers));
    do {
        __m512i wide = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(set));
        _mm512_storeu_si512(to, _mm512_add_epi32(wide, base));
        set = _mm512_shuffle_i32x4(set, set, 0x39); /* the next sixteen */
        to += 16;
    } while (__builtin_expect(to < end, 0));
    return end;
}

#include "delimited_loop.h"

static bool supported(void) {
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("pclmul");
}

const sl_simd sl_simd_avx512 = {.name = "avx512", .supported = supported, SL_KERNELS};

#endif
