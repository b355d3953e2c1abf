/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the Extended JSON parser with AVX-512, in vectors of 32 bytes: most strings are
 * shorter, and copies of 64 bytes cross cache lines. Comparisons give masks directly. */
#if defined(__x86_64__)
#include "extjson_parser.h"

#include <immintrin.h>

#define EXTJSON_STEP 32u

static inline uint64_t extjson_step(const char *from, uint8_t *to, uint64_t *high) {
    __m256i part = _mm256_loadu_si256((const __m256i *)(const void *)from);
    _mm256_storeu_si256((__m256i *)(void *)to, part);
    *high = (uint32_t)_mm256_movemask_epi8(part);
    return _mm256_cmpeq_epi8_mask(part, _mm256_set1_epi8('"')) |
           _mm256_cmpeq_epi8_mask(part, _mm256_set1_epi8('\\')) |
           _mm256_cmple_epu8_mask(part, _mm256_set1_epi8(0x1F));
}

#include "extjson_loop.h"

EXTJSON_KERNEL(avx512);

#endif
