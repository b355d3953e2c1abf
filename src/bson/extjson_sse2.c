/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the Extended JSON parser with SSE2. */
#if defined(__x86_64__)
#include "extjson_parser.h"

#include <emmintrin.h>

#define EXTJSON_STEP 16u

static inline uint64_t extjson_step(const char *from, uint8_t *to, uint64_t *high) {
    __m128i part = _mm_loadu_si128((const __m128i *)(const void *)from);
    _mm_storeu_si128((__m128i *)(void *)to, part);
    __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(part, _mm_set1_epi8('"')),
                                _mm_cmpeq_epi8(part, _mm_set1_epi8('\\')));
    stop = _mm_or_si128(stop, _mm_cmpeq_epi8(_mm_min_epu8(part, _mm_set1_epi8(0x1F)), part));
    *high = (unsigned)_mm_movemask_epi8(part);
    return (unsigned)_mm_movemask_epi8(stop);
}

#include "extjson_loop.h"

EXTJSON_KERNEL(sse2);

#endif
