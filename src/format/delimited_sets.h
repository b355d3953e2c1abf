/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the versions of the delimited loop (delimited_loop.c): the structural scan
 * of 64 bytes, the check for UTF-8, and the converters of numbers and dates. The version is that of
 * SL_SET_AVX2, SL_SET_SSE2 or SL_SET_NEON, or plain C. Private to delimited_loop.c. */
#ifndef SHARDLOAD_DELIMITED_SETS_H
#define SHARDLOAD_DELIMITED_SETS_H

#if defined(SL_SET_AVX2)
#include <immintrin.h>
#elif defined(SL_SET_SSE2)
#include <emmintrin.h>
#elif defined(SL_SET_NEON)
#include <arm_neon.h>
#endif

#include "convert.h"
#include "kernels.h"

/* ---- the structural scan (scan.h) ---- */

#if defined(SL_SET_AVX2)

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

#elif defined(SL_SET_SSE2)

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

#elif defined(SL_SET_NEON)

/* The mask of four comparisons: each byte keeps one bit, and three pairwise additions collect eight
 * bits in a byte. */
static inline uint64_t sl_scan_mask(const uint8x16_t equal[4]) {
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bit = vld1q_u8(bits);
    uint8x16_t first = vpaddq_u8(vandq_u8(equal[0], bit), vandq_u8(equal[1], bit));
    uint8x16_t second = vpaddq_u8(vandq_u8(equal[2], bit), vandq_u8(equal[3], bit));
    uint8x16_t all = vpaddq_u8(first, second);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

static inline sl_scan sl_scan_64(const char *bytes, char delimiter, char quote) {
    uint8x16_t marks[4], lines[4], quoted[4], high = vdupq_n_u8(0), odd = high;
    for (unsigned i = 0; i < 4; i++) {
        uint8x16_t part = vld1q_u8((const uint8_t *)bytes + 16 * i);
        lines[i] = vceqq_u8(part, vdupq_n_u8('\n'));
        marks[i] = vorrq_u8(lines[i], vceqq_u8(part, vdupq_n_u8((uint8_t)delimiter)));
        if (quote) {
            quoted[i] = vceqq_u8(part, vdupq_n_u8((uint8_t)quote));
            marks[i] = vorrq_u8(marks[i], quoted[i]);
            odd = vorrq_u8(odd, vceqq_u8(part, vdupq_n_u8('\\')));
        }
        high = vorrq_u8(high, part);
        odd = vorrq_u8(odd, vceqzq_u8(part));
    }
    return (sl_scan){.marks = sl_scan_mask(marks),
                     .lines = sl_scan_mask(lines),
                     .quotes = quote ? sl_scan_mask(quoted) : 0,
                     .high = vmaxvq_u8(high) > 0x7F,
                     .odd = vmaxvq_u8(odd) != 0};
}

#else /* eight bytes to a word */

/* A bit for each zero byte of the word. */
static inline uint64_t sl_scan_zero_bytes(uint64_t word) {
    const uint64_t low = 0x7F7F7F7F7F7F7F7Fu;
    uint64_t zero = ~(((word & low) + low) | word | low);
    return (zero >> 7) * 0x0102040810204080u >> 56;
}

static inline sl_scan sl_scan_64(const char *bytes, char delimiter, char quote) {
    const uint64_t ones = 0x0101010101010101u, highs = 0x80 * ones;
    const uint64_t delimiters = ones * (uint8_t)delimiter;
    uint64_t high = 0, odd = 0;
    sl_scan scan = {0};
    for (unsigned i = 0; i < SL_SCAN_BYTES; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        uint64_t lines = sl_scan_zero_bytes(word ^ ones * '\n');
        uint64_t marks = lines | sl_scan_zero_bytes(word ^ delimiters);
        if (quote) {
            uint64_t here = sl_scan_zero_bytes(word ^ ones * (uint8_t)quote);
            marks |= here;
            scan.quotes |= here << i;
            odd |= sl_scan_zero_bytes(word ^ ones * '\\');
        }
        scan.lines |= lines << i;
        scan.marks |= marks << i;
        high |= word;
        odd |= (word - ones) & ~word & highs; /* not 0 if and only if one of the bytes is 0 */
    }
    scan.high = (high & highs) != 0;
    scan.odd = odd != 0;
    return scan;
}

#endif

/* ---- UTF-8 ---- */

#if defined(SL_SET_AVX2) || defined(SL_SET_NEON)

/* Checked a vector at a time.
 *
 * Whether a byte may follow another byte depends on three nibbles: both nibbles of the first byte,
 * and the upper one of the second. For each nibble a table gives the set of faults that are
 * possible with it; the intersection of the three sets is the pair's faults. This finds all faults
 * of two neighbouring bytes: a lead byte without a continuation, a continuation without a lead
 * byte, overlong forms, surrogates, numbers above U+10FFFF. The remaining check is for the third
 * byte of three-byte and the third and fourth of four-byte characters. They are continuations that
 * follow continuations, for which the tables give TWO_CONTINUATIONS: this is correct if and only if
 * a lead byte of a three- or four-byte character is two positions before, or a lead byte of a
 * four-byte character three positions before.
 *
 * Each set defines: utf8_vec, UTF8_VEC (bytes), utf8_load, utf8_set, utf8_zero, utf8_or, utf8_and,
 * utf8_xor, utf8_less (saturating minus), utf8_upper (nibble of each byte), utf8_lookup (in 16
 * bytes, by numbers below 16), utf8_before(now, last, n) (for each byte of `now`, the byte n
 * positions before it), utf8_any (bit set), utf8_any_high. */

#if defined(SL_SET_AVX2)

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

#else

typedef uint8x16_t utf8_vec;
#define UTF8_VEC sizeof(utf8_vec)
#define utf8_load(bytes) vld1q_u8((const uint8_t *)(bytes))
#define utf8_set(byte) vdupq_n_u8(byte)
#define utf8_zero() vdupq_n_u8(0)
#define utf8_or(a, b) vorrq_u8(a, b)
#define utf8_and(a, b) vandq_u8(a, b)
#define utf8_xor(a, b) veorq_u8(a, b)
#define utf8_less(a, b) vqsubq_u8(a, b)
#define utf8_upper(a) vshrq_n_u8(a, 4)
#define utf8_lookup(table, numbers) vqtbl1q_u8(vld1q_u8(table), numbers)
#define utf8_before(now, last, n) vextq_u8(last, now, 16 - (n))
#define utf8_any(a) (vmaxvq_u8(a) != 0)
#define utf8_any_high(a) (vmaxvq_u8(a) > 0x7F)

#endif

enum {
    TOO_SHORT = 1,          /* 11______ and then no continuation */
    TOO_LONG = 2,           /* 0_______ and then a continuation */
    OVERLONG_2 = 4,         /* 1100000_ 10______ */
    OVERLONG_3 = 8,         /* 11100000 100_____ */
    SURROGATE = 16,         /* 11101101 101_____ */
    OVERLONG_4 = 32,        /* 11110000 1000____, and 11110101 and up with 1000____ */
    TOO_LARGE = 64,         /* 11110100 and up with 1001____ or 101_____ */
    TWO_CONTINUATIONS = 128 /* 10______ 10______ */
};
#define TOO_LARGE_1000 OVERLONG_4
#define ANY_LOW (TOO_SHORT | TOO_LONG | TWO_CONTINUATIONS) /* independent of the lower nibble */

static const uint8_t utf8_first_upper[16] = {
    [0 ... 7] = TOO_LONG,
    [8 ... 11] = TWO_CONTINUATIONS,
    [12] = TOO_SHORT | OVERLONG_2,
    [13] = TOO_SHORT,
    [14] = TOO_SHORT | OVERLONG_3 | SURROGATE,
    [15] = TOO_SHORT | OVERLONG_4 | TOO_LARGE | TOO_LARGE_1000,
};

static const uint8_t utf8_first_lower[16] = {
    [0] = ANY_LOW | OVERLONG_2 | OVERLONG_3 | OVERLONG_4,
    [1] = ANY_LOW | OVERLONG_2,
    [2 ... 3] = ANY_LOW,
    [4] = ANY_LOW | TOO_LARGE,
    [5 ... 12] = ANY_LOW | TOO_LARGE | TOO_LARGE_1000,
    [13] = ANY_LOW | TOO_LARGE | TOO_LARGE_1000 | SURROGATE,
    [14 ... 15] = ANY_LOW | TOO_LARGE | TOO_LARGE_1000,
};

#define CONTINUATION (TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS)
static const uint8_t utf8_second_upper[16] = {
    [0 ... 7] = TOO_SHORT,
    [8] = CONTINUATION | OVERLONG_3 | OVERLONG_4 | TOO_LARGE_1000,
    [9] = CONTINUATION | OVERLONG_3 | TOO_LARGE,
    [10 ... 11] = CONTINUATION | SURROGATE | TOO_LARGE,
    [12 ... 15] = TOO_SHORT,
};
#undef CONTINUATION
#undef ANY_LOW
#undef TOO_LARGE_1000

/* The faults of the bytes of `now`, which follows `last` in the text; zero: none. */
static inline utf8_vec utf8_faults(utf8_vec now, utf8_vec last) {
    utf8_vec before = utf8_before(now, last, 1);
    utf8_vec first = utf8_and(utf8_lookup(utf8_first_upper, utf8_upper(before)),
                              utf8_lookup(utf8_first_lower, utf8_and(before, utf8_set(0x0F))));
    utf8_vec pair = utf8_and(first, utf8_lookup(utf8_second_upper, utf8_upper(now)));
    utf8_vec third = utf8_less(utf8_before(now, last, 2), utf8_set(0xE0 - 0x80));
    utf8_vec fourth = utf8_less(utf8_before(now, last, 3), utf8_set(0xF0 - 0x80));
    return utf8_xor(pair, utf8_and(utf8_or(third, fourth), utf8_set(0x80)));
}

static bool utf8_valid(const char *text, size_t length) {
    utf8_vec faults = utf8_zero(), last = utf8_zero();
    bool open = false; /* `last` has bytes above 0x7F, so it may end within a character */
    size_t at = 0;
    for (; at + UTF8_VEC <= length; at += UTF8_VEC) {
        utf8_vec now = utf8_load(text + at);
        bool high = utf8_any_high(now);
        if (high | open)
            faults = utf8_or(faults, utf8_faults(now, last));
        open = high;
        last = now;
    }
    char rest[UTF8_VEC] = {0}; /* padded with NULs, which detects an incomplete last character */
    memcpy(rest, text + at, length - at);
    faults = utf8_or(faults, utf8_faults(utf8_load(rest), last));
    return !utf8_any(faults);
}

#else

static bool utf8_valid(const char *text, size_t length) {
    return sl_utf8_valid(text, length, NULL);
}

#endif

/* ---- converters ---- */

#if defined(SL_SET_AVX2)

/* Sixteen bytes at once; a weighted sum of each pair of neighbours, then of each pair of sums. */

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

#else

#define convert_digits sl_convert_digits
#define convert_date sl_convert_date
#define convert_seconds sl_convert_seconds
#define convert_decimal sl_convert_short_decimal

#endif

#endif
