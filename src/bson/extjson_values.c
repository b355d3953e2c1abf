/* SPDX-License-Identifier: Apache-2.0 */
/* Values of Extended JSON that the main loop does not convert itself: numbers, words, escapes; and
 * the numbers and dates within texts. */
#include "extjson_parser.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

/* ---- numbers ---- */

/* A number of the JSON grammar. */
typedef struct number {
    const char *start, *end;
    bool negative;
    bool real;        /* has a fraction or an exponent */
    bool exact;       /* `digits` holds all significant digits */
    uint64_t digits;  /* the significant digits, without the point */
    int64_t exponent; /* the value is digits * 10^exponent */
} number;

/* Adds the digits at `p`; returns the address after them. */
static const char *add_digits(number *n, const char *p, bool fraction) {
    for (; sl_is_digit(*p); p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (n->digits < UINT64_MAX / 10 - 1) {
            n->digits = n->digits * 10 + digit;
            n->exponent -= fraction;
        } else {
            n->exact = n->exact && digit == 0;
            n->exponent += !fraction;
        }
    }
    return p;
}

/* Reads the number at `p`. On failure, returns NULL and sets *where and *reason. */
static const char *read_number(number *n, const char *p, const char **where, const char **reason) {
    *n = (number){.start = p, .negative = *p == '-', .exact = true};
    p += n->negative;
    *where = p;
    *reason = "a value is expected";
    if (!sl_is_digit(*p))
        return NULL;
    *reason = "a number that begins with 0 and continues with a digit";
    if (*p == '0' && sl_is_digit(p[1]))
        return NULL;
    p = add_digits(n, p, false);
    if (*p == '.') {
        n->real = true;
        *where = ++p;
        *reason = "a digit is expected after the decimal point";
        if (!sl_is_digit(*p))
            return NULL;
        p = add_digits(n, p, true);
    }
    if (*p == 'e' || *p == 'E') {
        n->real = true;
        p++;
        bool negative = *p == '-';
        p += *p == '-' || *p == '+';
        *where = p;
        *reason = "a digit is expected in an exponent";
        if (!sl_is_digit(*p))
            return NULL;
        int64_t exponent = 0;
        for (; sl_is_digit(*p); p++)
            exponent = exponent < 100000000 ? exponent * 10 + (*p - '0') : exponent;
        n->exponent += negative ? -exponent : exponent;
    }
    return n->end = p;
}

/* The double nearest to the number; false when it is out of range. A byte that is not part of a
 * number follows it. */
static bool to_double(const number *n, double *value) {
    if (n->exact && n->digits <= UINT64_C(1) << 53 && n->exponent >= -22 && n->exponent <= 22) {
        double digits = (double)n->digits; /* exact, so the result is rounded once */
        *value = n->exponent < 0 ? digits / sl_powers_of_ten[-n->exponent]
                                 : digits * sl_powers_of_ten[n->exponent];
        *value = n->negative ? -*value : *value;
        return true;
    }
    *value = strtod(n->start, NULL);
    return isfinite(*value);
}

const char *sl_extjson_number(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to) {
    number n;
    const char *where, *reason;
    if (*p == '-' && (p[1] | 0x20) == 'i')
        return sl_extjson_word_value(x, p, type, to);
    if (!read_number(&n, p, &where, &reason))
        return sl_extjson_expected(x, where, reason);
    if (n.real) {
        double value;
        if (!to_double(&n, &value))
            return extjson_fail_with(x, p, "a number beyond the range of a double", p,
                                     (size_t)(n.end - p));
        *type = SL_BSON_DOUBLE;
        *to = sl_bson_put_double(*to, value);
        return n.end;
    }
    if (!n.exact || n.exponent != 0 || n.digits > (uint64_t)INT64_MAX + n.negative)
        return extjson_fail_with(x, p,
                                 "an integer beyond 64 bits; write it with a decimal point, or as "
                                 "$numberDecimal",
                                 p, (size_t)(n.end - p));
    int64_t value = (int64_t)(n.negative ? 0 - n.digits : n.digits);
    bool small = value == (int32_t)value;
    *type = small ? SL_BSON_INT32 : SL_BSON_INT64;
    *to = small ? sl_bson_put_int32(*to, (int32_t)value) : sl_bson_put_int64(*to, value);
    return n.end;
}

/* Digits with an optional sign. */
static bool int64_of(const char *text, size_t length, int64_t *value) {
    bool sign = length > 0 && (*text == '-' || *text == '+');
    bool negative = sign && *text == '-';
    uint64_t digits;
    if (!sl_text_to_u64((sl_text){text + sign, length - sign}, &digits) ||
        digits > (uint64_t)INT64_MAX + negative)
        return false;
    *value = (int64_t)(negative ? 0 - digits : digits);
    return true;
}

uint8_t *sl_extjson_put_int64(uint8_t *to, const char *text, size_t length) {
    int64_t value;
    return int64_of(text, length, &value) ? sl_bson_put_int64(to, value) : NULL;
}

uint8_t *sl_extjson_put_int32(uint8_t *to, const char *text, size_t length) {
    int64_t value;
    return int64_of(text, length, &value) && value == (int32_t)value
               ? sl_bson_put_int32(to, (int32_t)value)
               : NULL;
}

/* Writes the double for NaN, Infinity and -Infinity, in any case. Returns the word's length, or
 * 0. */
static size_t word_double(const char *text, size_t length, double *value) {
    static const struct {
        const char *word;
        size_t length;
        double value;
    } words[] = {{"nan", 3, (double)NAN}, {"infinity", 8, INFINITY}, {"-infinity", 9, -INFINITY}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (length >= words[i].length && strncasecmp(text, words[i].word, words[i].length) == 0) {
            *value = words[i].value;
            return words[i].length;
        }
    }
    return 0;
}

uint8_t *sl_extjson_put_double(uint8_t *to, const char *text, size_t length) {
    number n;
    const char *where, *reason;
    double value;
    size_t word = word_double(text, length, &value);
    bool right = word > 0 ? word == length
                          : read_number(&n, text, &where, &reason) && n.end == text + length &&
                                to_double(&n, &value);
    return right ? sl_bson_put_double(to, value) : NULL;
}

const char *sl_extjson_word_value(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to) {
    double value;
    size_t length;
    if (memcmp(p, "true", 4) == 0) {
        *type = SL_BSON_BOOL;
        *(*to)++ = 1;
        return p + 4;
    }
    if (memcmp(p, "false", 5) == 0) {
        *type = SL_BSON_BOOL;
        *(*to)++ = 0;
        return p + 5;
    }
    if (memcmp(p, "null", 4) == 0) {
        *type = SL_BSON_NULL;
        return p + 4;
    }
    if ((length = word_double(p, 9, &value)) > 0) {
        *type = SL_BSON_DOUBLE;
        *to = sl_bson_put_double(*to, value);
        return p + length;
    }
    return sl_extjson_expected(x, p, "a value is expected");
}

/* ---- escapes ---- */

static bool read_hex4(const char *p, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = sl_hex_digit(p[i]);
        if (digit < 0)
            return false;
        *code = *code << 4 | (uint32_t)digit;
    }
    return true;
}

const char *sl_extjson_escape(sl_extjson *x, const char *p, uint8_t **to) {
    static const char plain[][2] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'n', '\n'},
                                    {'t', '\t'}, {'r', '\r'},  {'b', '\b'}, {'f', '\f'}};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (p[1] == plain[i][0]) {
            *(*to)++ = (uint8_t)plain[i][1];
            return p + 2;
        }
    }
    if (p[1] != 'u')
        return extjson_fail_with(x, p, "an escape that JSON does not have", p, 2);
    uint32_t code, second = 0;
    if (!read_hex4(p + 2, &code))
        return sl_extjson_expected(x, p, "four hexadecimal digits are expected after \\u");
    if (code < 0xD800 || code > 0xDFFF) {
        *to = sl_utf8_put(*to, code);
        return p + 6;
    }
    if (code > 0xDBFF || p[6] != '\\' || p[7] != 'u' || !read_hex4(p + 8, &second) ||
        second < 0xDC00 || second > 0xDFFF)
        return extjson_fail_with(x, p, "half of a surrogate pair, which is not a character", p, 6);
    *to = sl_utf8_put(*to, 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00));
    return p + 12;
}

/* ---- dates ---- */

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

/* The days from 1970-01-01 to a date of the Gregorian calendar; `month` from 1. Years begin in
 * March, so that the leap day is the last one. */
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

uint8_t *sl_extjson_put_date(uint8_t *to, const char *text, size_t length) {
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
