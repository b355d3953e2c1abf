/* SPDX-License-Identifier: Apache-2.0 */
/* Lossless decimal numbers; see convert.h.
 *
 * A text is read as digits * 10^exponent without zeros at the end of `digits`, which is unique for
 * each number. Up to 15 digits with a small exponent need one exact division or multiplication. For
 * 16 and 17 digits the conversion is done with the 64 bits of an x86 long double, and repeated by
 * strtod if 64 bits are too few to round correctly. */
#include "convert.h"
#include "util/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 40 /* bytes of a number */

typedef struct decimal {
    bool negative;
    bool point;
    bool exponent_given;
    uint64_t digits; /* without zeros at the end */
    unsigned count;  /* of digits; 0: the number is 0 */
    int exponent;    /* of ten */
} decimal;

/* Reads the exponent after the E. */
static bool read_exponent(const char *at, const char *end, int *exponent) {
    bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    if (at == end || end - at > 3)
        return false;
    int value = 0;
    for (; at < end; at++) {
        if (!sl_is_digit(*at))
            return false;
        value = value * 10 + (*at - '0');
    }
    *exponent = negative ? -value : value;
    return true;
}

/* Reads a number of up to 17 significant digits. */
static bool decompose(const char *field, size_t length, decimal *d) {
    const char *at = field, *end = field + length, *point = NULL;
    int exponent = 0;
    *d = (decimal){.negative = length > 0 && *field == '-'};
    at += d->negative;
    const char *first = at;
    while (at < end && *at == '0') /* no digits of the mantissa */
        at++;
    if (at < end && *at == '.') {
        point = at++;
        while (at < end && *at == '0')
            at++;
    }
    uint64_t digits = 0;
    const char *mantissa = at;
    for (; at < end; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (digit <= 9)
            digits = digits * 10 + digit; /* may overflow: then there are too many digits */
        else if (*at == '.' && !point)
            point = at;
        else
            break;
    }
    const char *stop = at; /* the end of the digits */
    size_t whole = (size_t)((point ? point : stop) - first);
    size_t fraction = point ? (size_t)(stop - point) - 1 : 0;
    size_t count = (size_t)(stop - mantissa) - (point && point >= mantissa);
    if (whole + fraction == 0 || (point && fraction == 0) || (whole > 1 && *first == '0'))
        return false;
    size_t zeros = 0;
    for (const char *last = stop; count > zeros && (last[-1] == '0' || last[-1] == '.'); last--)
        zeros += last[-1] == '0';
    if (count - zeros > 17)
        return false;
    if (count > 19) { /* read again without the zeros at the end */
        digits = 0;
        size_t left = count - zeros;
        for (const char *digit = mantissa; left > 0; digit++) {
            if (*digit != '.') {
                digits = digits * 10 + (unsigned)(*digit - '0');
                left--;
            }
        }
    } else {
        for (size_t i = 0; i < zeros; i++)
            digits /= 10;
    }
    if (at < end) {
        d->exponent_given = true;
        if ((*at != 'E' && *at != 'e') || !read_exponent(at + 1, end, &exponent))
            return false;
    }
    d->point = point != NULL;
    d->digits = digits;
    d->count = (unsigned)(count - zeros);
    d->exponent = d->count == 0 ? 0 : (int)zeros - (int)fraction + exponent;
    return true;
}

static bool is_same(const decimal *d, const char *text) {
    decimal other;
    return decompose(text, strlen(text), &other) && other.digits == d->digits &&
           other.exponent == d->exponent;
}

/* Is `d` one of two numbers of `precision` digits that are equally close to the value? Programs
 * round such a value up, or to the even digit. */
static bool is_tie(const decimal *d, double value, int precision) {
    char text[96], digits[24];
    snprintf(text, sizeof text, "%.70e", value); /* "d.ddd...e-05" */
    text[1] = text[0];                           /* the digits are at text + 1 now */
    const char *rest = text + 1 + precision;
    if (*rest != '5' || strspn(rest + 1, "0") != (size_t)(70 - precision))
        return false;
    snprintf(digits, sizeof digits, "%.*s", precision, text + 1);
    unsigned long long down = strtoull(digits, NULL, 10);
    int exponent = atoi(strchr(text, 'e') + 1) - precision + 1;
    char candidate[LONGEST];
    for (unsigned up = 0; up < 2; up++) {
        snprintf(candidate, sizeof candidate, "%llue%d", down + up, exponent);
        if (is_same(d, candidate))
            return true;
    }
    return false;
}

/* Is `d` the value's shortest decimal form? */
static bool is_shortest(const decimal *d, double value) {
    for (int precision = 15; precision <= 17; precision++) {
        char text[LONGEST];
        snprintf(text, sizeof text, "%.*e", precision - 1, value);
        if (strtod(text, NULL) == value)
            return is_same(d, text) || is_tie(d, value, precision);
    }
    return false;
}

static bool convert_slowly(const decimal *d, double *value) {
    char text[LONGEST];
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)d->digits, d->exponent);
    *value = strtod(text, NULL);
    return isfinite(*value) && is_shortest(d, *value);
}

typedef enum verdict { REFUSED, ACCEPTED, UNDECIDED } verdict;

#if LDBL_MANT_DIG == 64
static const long double powers[28] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                       1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                       1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                       1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

/* Converts to the nearest double. False when 64 bits do not determine it: the number is too close
 * to the middle between two doubles. */
static bool round_once(uint64_t digits, int exponent, double *value) {
    long double wide = (long double)digits;
    wide = exponent < 0 ? wide / powers[-exponent] : wide * powers[exponent];
    uint64_t mantissa;
    memcpy(&mantissa, &wide, sizeof mantissa);
    int64_t beyond = (int64_t)(mantissa & 0x7FF) - 0x400; /* the 11 bits that a double lacks */
    *value = (double)wide;
    return beyond < -1 || beyond > 1;
}

/* Is the value exactly in the middle between d->digits and one of its neighbours? Computed as
 * mantissa * 5^-exponent * 2^binary = 2 * digits +- 1, in whole numbers. */
static bool is_exact_tie(const decimal *d, double value) {
    int binary;
    uint64_t mantissa = (uint64_t)ldexp(frexp(value, &binary), 53);
    int zeros = __builtin_ctzll(mantissa);
    unsigned __int128 product = mantissa >> zeros;
    for (int i = d->exponent; i < 0; i++)
        product *= 5; /* at most 53 + 63 bits */
    binary += zeros - 53 - d->exponent + 1;
    if (d->exponent > 0 || binary > 0 || binary < -60)
        return false;
    return product == (unsigned __int128)(2 * d->digits + 1) << -binary ||
           product == (unsigned __int128)(2 * d->digits - 1) << -binary;
}

/* For 16 and 17 digits. Is there a shorter number that converts to the same double? If there is
 * one, then one of the two neighbours whose last digit is 0 also converts to this double, because
 * it lies between the shorter number and d->digits. So only these neighbours are converted. */
static verdict convert_fast(const decimal *d, double *value) {
    double below, above;
    uint64_t tens = d->digits - d->digits % 10;
    if (d->exponent < -27 || d->exponent > 27 || !round_once(d->digits, d->exponent, value) ||
        !round_once(tens, d->exponent, &below) || !round_once(tens + 10, d->exponent, &above))
        return UNDECIDED;
    if (below == *value || above == *value)
        return REFUSED;
    long double back = *value;
    back = d->exponent < 0 ? back * powers[-d->exponent] : back / powers[d->exponent];
    long double apart = fabsl(back - (long double)d->digits);
    if (apart > 0.49L && apart < 0.51L)
        return is_exact_tie(d, *value) ? ACCEPTED : UNDECIDED;
    return apart < 0.5L ? ACCEPTED : REFUSED;
}
#else
static verdict convert_fast(const decimal *d, double *value) {
    (void)d;
    (void)value;
    return UNDECIDED;
}
#endif

static bool is_infinite(const char *field, size_t length, double *value) {
    static const char *const words[] = {"Infinity", "inf", "Inf", "\xE2\x88\x9E"};
    bool negative = length > 0 && *field == '-';
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (sl_text_equal((sl_text){field + negative, length - negative}, sl_text_of(words[i]))) {
            *value = negative ? -INFINITY : INFINITY;
            return true;
        }
    }
    return false;
}

bool sl_convert_lossless(const char *field, size_t length, double *value) {
    decimal d;
    int64_t whole;
    if (length == 0 || length >= LONGEST)
        return false;
    if (!decompose(field, length, &d))
        return is_infinite(field, length, value);
    if (!d.point && !sl_convert_whole(field, length, &whole))
        return false;
    bool ok = true;
    if (d.count <= 15 && d.exponent >= -22 && d.exponent <= 22) {
        *value = (double)d.digits;
        *value = d.exponent < 0 ? *value / sl_powers_of_ten[-d.exponent]
                                : *value * sl_powers_of_ten[d.exponent];
    } else {
        verdict fast = d.count > 15 ? convert_fast(&d, value) : UNDECIDED;
        ok = fast == UNDECIDED ? convert_slowly(&d, value) : fast == ACCEPTED;
    }
    if (d.negative)
        *value = -*value;
    return ok;
}

bool sl_convert_whole(const char *field, size_t length, int64_t *value) {
    size_t sign = length > 0 && *field == '-';
    return (length <= 1 || field[sign] != '0') && sl_convert_integer(field, length, value);
}
