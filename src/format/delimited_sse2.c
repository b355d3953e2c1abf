/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop with SSE2, which every 64-bit x86 processor has. */
#if defined(__x86_64__)
#include <emmintrin.h>

#include "convert_scalar.h"
#include "scan.h"
#include "utf8_scalar.h"

static inline sl_scan sl_scan_64(const char *bytes, char delimiter, char quote) {
    const __m128i line_feeds = _mm_set1_epi8('\n');
    const __m128i delimiters = _mm_set1_epi8(delimiter);
    __m128i high = _mm_setzero_si128(), odd = high;
    sl_scan scan = {0};
    for (unsigned i = 0; i < SL_SCAN_BYTES; i += 16) {
        __m128i part = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
        __m128i lines = _mm_cmpeq_epi8(part, line_feeds);
        __m128i marks = _mm_or_si128(lines, _mm_cmpeq_epi8(part, delimiters));
        if (quote) {
            __m128i here = _mm_cmpeq_epi8(part, _mm_set1_epi8(quote));
            marks = _mm_or_si128(marks, here);
            scan.quotes |= (uint64_t)(unsigned)_mm_movemask_epi8(here) << i;
            odd = _mm_or_si128(odd, _mm_cmpeq_epi8(part, _mm_set1_epi8('\\')));
        }
        scan.lines |= (uint64_t)(unsigned)_mm_movemask_epi8(lines) << i;
        scan.marks |= (uint64_t)(unsigned)_mm_movemask_epi8(marks) << i;
        high = _mm_or_si128(high, part);
        odd = _mm_or_si128(odd, _mm_cmpeq_epi8(part, _mm_setzero_si128()));
    }
    scan.high = _mm_movemask_epi8(high) != 0;
    scan.odd = _mm_movemask_epi8(odd) != 0;
    return scan;
}

#include "delimited_loop.h"

const sl_simd sl_simd_sse2 = {.name = "sse2", SL_KERNELS};

#endif
