/* SPDX-License-Identifier: Apache-2.0 */
/* The delimited loop's converters with SSE4.1: sixteen bytes at once; a weighted sum of each pair
 * of neighbours, then of each pair of sums. */
#ifndef SHARDLOAD_CONVERT_SSE41_H
#define SHARDLOAD_CONVERT_SSE41_H

#include <immintrin.h>

#include "convert.h"
#include "vectors.h"

#define ANY(bytes) _mm_loadu_si128((const __m128i *)(const void *)(bytes))
#define CONSTANT(name) _mm_load_si128((const __m128i *)(const void *)sl_vectors.name)

/* The bytes of a field, each XOR '0', as the last of sixteen; zeros before them. */
static inline __m128i convert_align(const char *field, size_t length) {
    return _mm_shuffle_epi8(_mm_xor_si128(ANY(field), CONSTANT(zeros)),
                            ANY(sl_vectors.ends + length));
}

/* Is each byte at most the limit's? */
static inline bool convert_within(__m128i bytes, __m128i limit) {
    __m128i above = _mm_subs_epu8(bytes, limit);
    return _mm_testz_si128(above, above) != 0;
}

/* The number with these sixteen digits. */
static inline uint64_t convert_sum(__m128i digits) {
    __m128i twos = _mm_maddubs_epi16(digits, CONSTANT(tens));
    __m128i fours = _mm_madd_epi16(twos, CONSTANT(hundreds));
    __m128i eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), CONSTANT(thousands));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    return (both & UINT32_MAX) * 100000000 + (both >> 32);
}

/* As sl_convert_digits. */
static inline bool convert_digits(const char *field, size_t length, uint64_t *value) {
    if (__builtin_expect(length - 1 >= 10, 0))
        return false;
    __m128i digits = convert_align(field, length);
    *value = convert_sum(digits);
    return convert_within(digits, CONSTANT(nines));
}

/* The day number of a date whose digits are at the places of YYYY-MM-DD. */
static inline bool convert_days(__m128i date, int64_t *days) {
    __m128i parts =
        _mm_madd_epi16(_mm_maddubs_epi16(date, CONSTANT(date_tens)), CONSTANT(date_hundreds));
    uint64_t year_month = (uint64_t)_mm_cvtsi128_si64(parts);
    return sl_civil_days((unsigned)year_month, (unsigned)(year_month >> 32),
                         (unsigned)_mm_extract_epi32(parts, 2), days);
}

/* As sl_convert_date. */
static inline bool convert_date(const char *field, size_t length, int64_t *milliseconds) {
    int64_t days;
    __m128i date = _mm_xor_si128(ANY(field), CONSTANT(date_form));
    if (__builtin_expect(length != 10 || !convert_within(date, CONSTANT(date_greatest)) ||
                             !convert_days(date, &days),
                         0))
        return false;
    *milliseconds = days * SL_DAY_MS;
    return true;
}

/* As sl_convert_seconds. */
static inline bool convert_seconds(const char *field, int64_t *milliseconds) {
    int64_t days;
    __m128i date = _mm_xor_si128(ANY(field), CONSTANT(date_form));
    __m128i time = _mm_xor_si128(ANY(field + 11), CONSTANT(time_form));
    __m128i above = _mm_or_si128(_mm_subs_epu8(date, CONSTANT(date_greatest)),
                                 _mm_subs_epu8(time, CONSTANT(time_greatest)));
    __m128i parts =
        _mm_madd_epi16(_mm_maddubs_epi16(time, CONSTANT(time_tens)), CONSTANT(time_seconds));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(parts);
    uint64_t seconds = (both & UINT32_MAX) + (both >> 32);
    if (__builtin_expect((field[10] != 'T' && field[10] != ' ') || !_mm_testz_si128(above, above) ||
                             seconds >= 86400 || !convert_days(date, &days),
                         0))
        return false;
    *milliseconds = (days * 86400 + (int64_t)seconds) * 1000;
    return true;
}

/* As sl_convert_short_decimal. The index of the point among the sixteen bytes, 16 if there is none,
 * selects the shuffle that removes the point, and the divisor. */
static inline bool convert_decimal(const char *field, size_t length, double *value) {
    const size_t sign = *field == '-'; /* no branch on it: signs are hard to predict */
    field += sign;
    length -= sign;
    if (__builtin_expect(length - 1 >= 16, 0))
        return false;
    __m128i bytes = convert_align(field, length);
    __m128i points = _mm_cmpeq_epi8(bytes, CONSTANT(points));
    size_t point = (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(points) | 1u << 16);
    const sl_point *row = &sl_vectors.point[point];
    __m128i digits = _mm_shuffle_epi8(bytes, ANY(row->moves));
    uint64_t number = convert_sum(digits);
    /* Refused: no digit after the point, sixteen digits, -0, and zeros before a digit (007). */
    if (__builtin_expect(
            point == 15 || point + length == 32 || (number == 0 && sign && point == 16) ||
                (*field == '0' && point + length > 17) || !convert_within(digits, CONSTANT(nines)),
            0))
        return false;
    *value = (double)(int64_t)number / row->divisors[sign];
    return true;
}

#undef ANY
#undef CONSTANT

#endif
