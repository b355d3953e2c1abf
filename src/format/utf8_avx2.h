/* SPDX-License-Identifier: Apache-2.0 */
/* The vector operations of utf8_lookup.h with AVX2. */
#ifndef SHARDLOAD_UTF8_AVX2_H
#define SHARDLOAD_UTF8_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef __m256i utf8_vec;
#define UTF8_VEC sizeof(utf8_vec)
#define utf8_load(bytes) _mm256_loadu_si256((const __m256i *)(const void *)(bytes))
#define utf8_set(byte) _mm256_set1_epi8((char)(byte))
#define utf8_zero() _mm256_setzero_si256()
#define utf8_or(a, b) _mm256_or_si256(a, b)
#define utf8_and(a, b) _mm256_and_si256(a, b)
#define utf8_xor(a, b) _mm256_xor_si256(a, b)
#define utf8_less(a, b) _mm256_subs_epu8(a, b)
#define utf8_upper(a) _mm256_and_si256(_mm256_srli_epi16(a, 4), utf8_set(0x0F))
#define utf8_lookup(table, numbers)                                                                \
    _mm256_shuffle_epi8(                                                                           \
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(table))),      \
        numbers)
/* `alignr` shifts within 128-bit halves, so each half of `now` is paired with the half before
 * it. */
#define utf8_before(now, last, n)                                                                  \
    _mm256_alignr_epi8(now, _mm256_permute2x128_si256(last, now, 0x21), 16 - (n))
#define utf8_any(a) (!_mm256_testz_si256(a, a))
#define utf8_any_high(a) (_mm256_movemask_epi8(a) != 0)

#include "utf8_lookup.h"

#endif
