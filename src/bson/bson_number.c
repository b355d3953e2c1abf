/* SPDX-License-Identifier: Apache-2.0 */
#include "bson_number.h"

#include <math.h>
#include <stdbool.h>

#include "bson_writer.h"
#include "util/text.h"

__extension__ typedef unsigned __int128 coefficient;

#define LIMIT ((uint64_t)1 << 63)         /* of the integers */
#define DOUBLE_DIGITS ((uint64_t)1 << 53) /* an odd number above it is no double */
#define BIAS 6176                         /* of the exponent of a decimal128 */
#define EXPONENT_MAX 6111

/* (-1)^negative * digits * 10^exponent; a multiple of 10 only if `digits` is 0. */
typedef struct decimal {
    bool negative;
    coefficient digits;
    int exponent;
} decimal;

static sl_number integer_of(int64_t value) {
    return (sl_number){SL_NUMBER_INTEGER, .value.integer = value};
}

static sl_number double_of(double value) {
    if (isnan(value))
        return (sl_number){.kind = SL_NUMBER_NONE};
    /* Both limits are exact doubles; 2^63 itself is not an int64. */
    if (value >= -0x1p63 && value < 0x1p63 && value == trunc(value))
        return integer_of((int64_t)value);
    return (sl_number){SL_NUMBER_DOUBLE, .value.real = value};
}

static bool is_integer(const decimal *d, int64_t *value) {
    coefficient digits = d->digits;
    int exponent = d->exponent;
    for (; exponent > 0 && digits <= LIMIT; exponent--)
        digits *= 10;
    if (exponent != 0 || digits > LIMIT || (digits == LIMIT && !d->negative))
        return false;
    *value = digits == LIMIT ? INT64_MIN : d->negative ? -(int64_t)digits : (int64_t)digits;
    return true;
}

/* A double is an odd number below 2^53 times a power of two. */
static bool is_double(const decimal *d, double *value) {
    coefficient odd = d->digits;
    int two = d->exponent, five = d->exponent;
    for (; odd % 2 == 0; two++)
        odd /= 2;
    for (; five < 0 && odd % 5 == 0; five++)
        odd /= 5;
    for (; five > 0 && odd < DOUBLE_DIGITS; five--)
        odd *= 5;
    if (five != 0 || odd >= DOUBLE_DIGITS)
        return false;
    *value = ldexp((double)(uint64_t)odd, two);
    if (d->negative)
        *value = -*value;
    return true;
}

static bson_decimal128_t encode(decimal d) {
    for (; d.exponent > EXPONENT_MAX; d.exponent--)
        d.digits *= 10;
    return (bson_decimal128_t){.low = (uint64_t)d.digits,
                               .high = (uint64_t)d.negative << 63 |
                                       (uint64_t)(d.exponent + BIAS) << 49 |
                                       (uint64_t)(d.digits >> 64)};
}

/* The layout is decimal128 of IEEE 754-2008 with a binary integer as coefficient. A coefficient of
 * more than 34 digits means zero. */
static decimal decode(const bson_decimal128_t *value) {
    const coefficient digits_max = (coefficient)10000000000000000 * 1000000000000000000 - 1;
    decimal d = {.negative = value->high >> 63};
    if ((value->high >> 61 & 3) == 3)
        return d;
    d.exponent = (int)(value->high >> 49 & 0x3FFF) - BIAS;
    d.digits = (coefficient)(value->high & 0x1FFFFFFFFFFFF) << 64 | value->low;
    if (d.digits > digits_max)
        d.digits = 0;
    for (; d.digits != 0 && d.digits % 10 == 0; d.exponent++)
        d.digits /= 10;
    return d;
}

static sl_number decimal_of(const bson_decimal128_t *value) {
    unsigned special = value->high >> 58 & 0x1F;
    sl_number number = {.kind = SL_NUMBER_NONE};
    if (special == 0x1F)
        return number;
    if (special == 0x1E)
        return double_of(value->high >> 63 ? -(double)INFINITY : (double)INFINITY);
    decimal d = decode(value);
    if (d.digits == 0)
        return integer_of(0);
    if (is_integer(&d, &number.value.integer)) {
        number.kind = SL_NUMBER_INTEGER;
    } else if (is_double(&d, &number.value.real)) {
        number.kind = SL_NUMBER_DOUBLE;
    } else {
        number.kind = SL_NUMBER_DECIMAL;
        number.value.decimal = encode(d);
    }
    return number;
}

sl_number sl_number_of(const bson_iter_t *iter) {
    bson_decimal128_t decimal128;
    switch (bson_iter_type(iter)) {
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        return integer_of(bson_iter_as_int64(iter));
    case BSON_TYPE_DOUBLE:
        return double_of(bson_iter_double(iter));
    case BSON_TYPE_DECIMAL128:
        if (bson_iter_decimal128(iter, &decimal128))
            return decimal_of(&decimal128);
        break;
    default:
        break;
    }
    return (sl_number){.kind = SL_NUMBER_NONE};
}

/* ---- dates in texts ---- */

/* Reads `count` digits at *p, a number of at most `most`, and the byte `then` after it (0:
 * none). */
static bool read_part(const char **p, const char *end, int count, int64_t most, char then,
                      int64_t *value) {
    if (end - *p < count + (then != 0))
        return false;
    *value = 0;
    for (int i = 0; i < count; i++) {
        if (!sl_is_digit((*p)[i]))
            return false;
        *value = *value * 10 + ((*p)[i] - '0');
    }
    *p += count;
    return *value <= most && (then == 0 || *(*p)++ == then);
}

/* The days from 1970-01-01 to a date of the Gregorian calendar; `month` from 1. The
 * computation lets years begin in March, so that a leap day is the last day of its year. */
static int64_t days_from_1970(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool is_day(int64_t year, int64_t month, int64_t day) {
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month >= 1 && day >= 1 && day <= days[month - 1] + (leap && month == 2);
}

/* The offset at `p`, in minutes: Z, +hhmm or +hh:mm. */
static bool read_offset(const char *p, const char *end, int64_t *minutes) {
    int64_t hour, minute;
    *minutes = 0;
    if (end - p == 1 && *p == 'Z')
        return true;
    if (end - p < 5 || (*p != '+' && *p != '-'))
        return false;
    bool west = *p++ == '-';
    if (!read_part(&p, end, 2, 23, 0, &hour))
        return false;
    p += *p == ':';
    if (!read_part(&p, end, 2, 59, 0, &minute) || p != end)
        return false;
    *minutes = (west ? -1 : 1) * (hour * 60 + minute);
    return true;
}

uint8_t *sl_bson_put_iso_date(uint8_t *to, const char *text, size_t length) {
    const char *p = text, *end = p + length;
    int64_t year, month, day, hour, minute, second = 0, fraction = 0, offset;
    if (!read_part(&p, end, 4, 9999, '-', &year) || !read_part(&p, end, 2, 12, '-', &month) ||
        !read_part(&p, end, 2, 31, 'T', &day) || !read_part(&p, end, 2, 23, ':', &hour) ||
        !read_part(&p, end, 2, 59, 0, &minute) || !is_day(year, month, day))
        return NULL;
    if (p < end && *p == ':') {
        p++;
        if (!read_part(&p, end, 2, 60, 0, &second))
            return NULL;
        if (p < end && *p == '.') {
            int digits = 0;
            for (p++; p < end && sl_is_digit(*p); p++, digits++)
                fraction = digits < 3 ? fraction * 10 + (*p - '0') : fraction;
            if (digits < 1 || digits > 3)
                return NULL;
            fraction *= digits == 1 ? 100 : digits == 2 ? 10 : 1;
        }
    }
    if (!read_offset(p, end, &offset))
        return NULL;
    int64_t days = days_from_1970(year, month, day);
    int64_t seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second;
    return sl_bson_put_int64(to, seconds * 1000 + fraction);
}
