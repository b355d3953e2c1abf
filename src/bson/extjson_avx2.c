/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the Extended JSON parser with AVX2. */
#if defined(__x86_64__)
#include "extjson_parser.h"

#include <immintrin.h>

#define EXTJSON_STEP 32u

static inline uint64_t extjson_step(const char *from, uint8_t *to, uint64_t *high) {
    __m256i part = _mm256_loadu_si256((const __m256i *)(const void *)from);
    _mm256_storeu_si256((__m256i *)(void *)to, part);
    __m256i stop = _mm256_or_si256(_mm256_cmpeq_epi8(part, _mm256_set1_epi8('"')),
                                   _mm256_cmpeq_epi8(part, _mm256_set1_epi8('\\')));
    stop = _mm256_or_si256(stop,
                           _mm256_cmpeq_epi8(_mm256_min_epu8(part, _mm256_set1_epi8(0x1F)), part));
    *high = (uint32_t)_mm256_movemask_epi8(part);
    return (uint32_t)_mm256_movemask_epi8(stop);
}

#include "extjson_loop.h"

EXTJSON_KERNEL(avx2);

#endif
