/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop with AVX2. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "convert_sse41.h"
#include "scan.h"
#include "utf8_avx2.h"

static inline uint64_t sl_scan_mask(__m256i low, __m256i high) {
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32 |
           (uint32_t)_mm256_movemask_epi8(low);
}

static inline sl_scan sl_scan_64(const char *bytes, char delimiter, char quote) {
    const __m256i line_feeds = _mm256_set1_epi8('\n');
    const __m256i delimiters = _mm256_set1_epi8(delimiter);
    __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)bytes);
    __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(bytes + 32));
    __m256i lines_a = _mm256_cmpeq_epi8(a, line_feeds), lines_b = _mm256_cmpeq_epi8(b, line_feeds);
    __m256i marks_a = _mm256_or_si256(lines_a, _mm256_cmpeq_epi8(a, delimiters));
    __m256i marks_b = _mm256_or_si256(lines_b, _mm256_cmpeq_epi8(b, delimiters));
    __m256i odd = _mm256_cmpeq_epi8(_mm256_min_epu8(a, b), _mm256_setzero_si256());
    sl_scan scan = {.lines = sl_scan_mask(lines_a, lines_b)};
    if (quote) {
        const __m256i around = _mm256_set1_epi8(quote), backslash = _mm256_set1_epi8('\\');
        __m256i quote_a = _mm256_cmpeq_epi8(a, around), quote_b = _mm256_cmpeq_epi8(b, around);
        marks_a = _mm256_or_si256(marks_a, quote_a);
        marks_b = _mm256_or_si256(marks_b, quote_b);
        odd = _mm256_or_si256(
            odd, _mm256_or_si256(_mm256_cmpeq_epi8(a, backslash), _mm256_cmpeq_epi8(b, backslash)));
        scan.quotes = sl_scan_mask(quote_a, quote_b);
    }
    scan.marks = sl_scan_mask(marks_a, marks_b);
    scan.high = _mm256_movemask_epi8(_mm256_or_si256(a, b)) != 0;
    scan.odd = _mm256_movemask_epi8(odd) != 0;
    return scan;
}

#include "delimited_loop.h"

static bool supported(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") &&
           __builtin_cpu_supports("pclmul");
}

const sl_simd sl_simd_avx2 = {.name = "avx2", .supported = supported, SL_KERNELS};

#endif
