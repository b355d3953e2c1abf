/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop's converters with SSE4.1: sixteen bytes at once; a weighted sum of each pair
 * of neighbours, then of each pair of sums. */
#ifndef SHARDLOAD_CONVERT_SSE41_H
#define SHARDLOAD_CONVERT_SSE41_H

#include <immintrin.h>

#include "convert.h"
#include "decimal.h"

/* Constants in memory: compilers would otherwise compute them again for each field. */
#define CONSTANT static const __attribute__((aligned(16)))
#define LOAD(constant) _mm_load_si128((const __m128i *)(const void *)(constant))

/* As sl_convert_digits. */
static inline bool convert_digits(const char *field, size_t length, uint64_t *value) {
    /* The sixteen bytes from index `length` on are the shuffle that moves the digits to the end and
     * pads with zeros. */
    CONSTANT uint8_t shifts[32] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                   0x80, 0x80, 0x80, 0x80, 0x80, 0,    1,    2,    3,    4,    5,
                                   6,    7,    8,    9,    10,   11,   12,   13,   14,   15};
    CONSTANT char zeros[16] = "0000000000000000";
    CONSTANT uint8_t nines[16] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    CONSTANT uint8_t tens[16] = {10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1};
    CONSTANT uint16_t hundreds[8] = {100, 1, 100, 1, 100, 1, 100, 1};
    CONSTANT uint16_t thousands[8] = {10000, 1, 10000, 1, 10000, 1, 10000, 1};
    if (__builtin_expect(length - 1 >= 10, 0))
        return false;
    __m128i digits = _mm_loadu_si128((const __m128i *)(const void *)field);
    __m128i shift = _mm_loadu_si128((const __m128i *)(const void *)(shifts + length));
    digits = _mm_shuffle_epi8(_mm_xor_si128(digits, LOAD(zeros)), shift);
    __m128i above = _mm_subs_epu8(digits, LOAD(nines));
    __m128i fours = _mm_madd_epi16(_mm_maddubs_epi16(digits, LOAD(tens)), LOAD(hundreds));
    __m128i eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), LOAD(thousands));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    *value = (both & UINT32_MAX) * 100000000 + (both >> 32);
    return _mm_testz_si128(above, above) != 0;
}

/* As sl_convert_date. */
static inline bool convert_date(const char *field, size_t length, int64_t *milliseconds) {
    CONSTANT char form[16] = "0000-00-00";
    CONSTANT uint8_t greatest[16] = {9, 9, 9, 9, 0, 1, 9, 0, 3, 9, 255, 255, 255, 255, 255, 255};
    CONSTANT uint8_t tens[16] = {10, 1, 10, 1, 0, 10, 1, 0, 10, 1};
    CONSTANT uint16_t hundreds[8] = {100, 1, 1, 1, 1};
    __m128i digits = _mm_loadu_si128((const __m128i *)(const void *)field);
    digits = _mm_xor_si128(digits, LOAD(form));
    __m128i above = _mm_subs_epu8(digits, LOAD(greatest));
    if (__builtin_expect(length != 10 || !_mm_testz_si128(above, above), 0))
        return false;
    __m128i parts = _mm_madd_epi16(_mm_maddubs_epi16(digits, LOAD(tens)), LOAD(hundreds));
    uint64_t year_month = (uint64_t)_mm_cvtsi128_si64(parts);
    int64_t days;
    if (__builtin_expect(!sl_civil_days((unsigned)year_month, (unsigned)(year_month >> 32),
                                        (unsigned)_mm_extract_epi32(parts, 2), &days),
                         0))
        return false;
    *milliseconds = days * SL_DAY_MS;
    return true;
}

/* As sl_convert_short_decimal: removes the point and moves the digits to the end in one shuffle. */
static inline bool convert_decimal(const char *field, size_t length, double *value) {
    CONSTANT char zeros[16] = "0000000000000000";
    CONSTANT uint8_t nines[16] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    CONSTANT int8_t indexes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    CONSTANT uint8_t tens[16] = {10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1};
    CONSTANT uint16_t hundreds[8] = {100, 1, 100, 1, 100, 1, 100, 1};
    CONSTANT uint16_t thousands[8] = {10000, 1, 10000, 1, 10000, 1, 10000, 1};
    size_t sign = length > 1 && *field == '-';
    field += sign;
    length -= sign;
    if (__builtin_expect(length - 1 >= 16, 0))
        return false;
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)field);
    unsigned points = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('.')));
    points &= (1u << length) - 1;
    unsigned whole = points ? (unsigned)__builtin_ctz(points) : (unsigned)length;
    unsigned digits = (unsigned)length - (points != 0), fraction = digits - whole;
    if (__builtin_expect(digits == 0 || (points && fraction == 0) || (*field == '0' && whole > 1),
                         0))
        return false;
    /* Byte k of the digits, counted from the first, comes from byte k, or k + 1 after the point;
     * bytes before the first digit become 0. */
    __m128i from = _mm_sub_epi8(LOAD(indexes), _mm_set1_epi8((char)(16 - digits)));
    from = _mm_sub_epi8(from, _mm_cmpgt_epi8(from, _mm_set1_epi8((char)((int)whole - 1))));
    __m128i number = _mm_shuffle_epi8(_mm_xor_si128(bytes, LOAD(zeros)), from);
    __m128i above = _mm_subs_epu8(number, LOAD(nines));
    __m128i fours = _mm_madd_epi16(_mm_maddubs_epi16(number, LOAD(tens)), LOAD(hundreds));
    __m128i eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), LOAD(thousands));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    uint64_t all = (both & UINT32_MAX) * 100000000 + (both >> 32);
    if (__builtin_expect(_mm_testz_si128(above, above) == 0 || all >= UINT64_C(1000000000000000) ||
                             (all == 0 && sign && !points),
                         0))
        return false;
    double magnitude = (double)all / sl_powers_of_ten[fraction];
    *value = sign ? -magnitude : magnitude;
    return true;
}

#undef CONSTANT
#undef LOAD

#endif
