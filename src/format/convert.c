/* SPDX-License-Identifier: Apache-2.0 */
/* Converters that are not on the fast path, and messages for refused fields. */
#include "convert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const uint16_t sl_month_starts[3][101] = {
    {0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, [13 ... 100] = 365},
    {0, 0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, [13 ... 100] = 366},
    {0},
};

const char *const sl_month_names[12] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

/* Two digits below `limit`. */
static bool two_digits(const char *field, unsigned limit, unsigned *value) {
    if (!sl_is_digit(field[0]) || !sl_is_digit(field[1]))
        return false;
    *value = (unsigned)(field[0] - '0') * 10 + (unsigned)(field[1] - '0');
    return *value < limit;
}

bool sl_convert_datetime(const char *field, size_t length, int64_t *milliseconds) {
    if (length == 10)
        return sl_convert_date(field, length, milliseconds);
    int64_t days;
    unsigned hour, minute, second = 0, fraction = 0;
    if (length < 16 || (field[10] != 'T' && field[10] != ' ') || field[13] != ':' ||
        !sl_convert_date_prefix(field, &days) || !two_digits(field + 11, 24, &hour) ||
        !two_digits(field + 14, 60, &minute))
        return false;
    size_t at = 16;
    if (length - at >= 3 && field[at] == ':') {
        if (!two_digits(field + at + 1, 60, &second))
            return false;
        at += 3;
        if (at < length && field[at] == '.') {
            size_t start = ++at;
            while (at < length && sl_is_digit(field[at]))
                at++;
            if (at == start || at - start > 9)
                return false;
            for (size_t i = 0; i < 3; i++)
                fraction =
                    fraction * 10 + (start + i < at ? (unsigned)(field[start + i] - '0') : 0);
        }
    }
    if (at < length && field[at] == 'Z')
        at++;
    *milliseconds =
        days * SL_DAY_MS + (int64_t)(hour * 3600 + minute * 60 + second) * 1000 + fraction;
    return at == length;
}

bool sl_convert_integer(const char *field, size_t length, int64_t *value) {
    bool negative = length > 0 && field[0] == '-';
    uint64_t magnitude;
    if (length - negative > 19 ||
        !sl_text_to_u64((sl_text){field + negative, length - negative}, &magnitude) ||
        magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *value = (int64_t)(negative ? 0 - magnitude : magnitude);
    return true;
}

/* The nearest double, which may be infinite, or 0 for a tiny number. */
static bool read_double(const char *field, size_t length, double *value) {
    char copy[61];
    if (length == 0 || length >= sizeof copy)
        return false;
    for (size_t i = 0; i < length; i++) { /* excludes hexadecimal, "inf", "nan" and blanks */
        if (!sl_is_digit(field[i]) && !strchr("+-.eE", field[i]))
            return false;
        copy[i] = field[i];
    }
    copy[length] = '\0';
    char *end;
    *value = strtod(copy, &end);
    return end == copy + length;
}

/* Does the number have a digit other than 0 before its exponent? */
static bool is_above_0(const char *field, size_t length) {
    size_t i = 0;
    while (i < length && (!sl_is_digit(field[i]) || field[i] == '0') && (field[i] | 0x20) != 'e')
        i++;
    return i < length && sl_is_digit(field[i]);
}

bool sl_convert_double(const char *field, size_t length, double *value) {
    return read_double(field, length, value) && isfinite(*value) &&
           (*value != 0 || !is_above_0(field, length));
}

bool sl_text_is_plain(const char *text, size_t length) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t odd = 0;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t word = sl_load_8(text + i);
        odd |= word | (word - ones);
    }
    if (i < length) {
        uint64_t behind = UINT64_MAX << 8 * (length - i);
        uint64_t word = (sl_load_8(text + i) & ~behind) | (ones & behind);
        odd |= word | (word - ones);
    }
    return (odd & 0x8080808080808080u) == 0;
}

uint8_t *sl_put_windows_1252(uint8_t *to, const char *text, size_t length) {
    /* The bytes 0x80 to 0x9F, in which windows-1252 differs from Latin-1. */
    static const uint16_t codes[32] = {
        0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
        0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178,
    };
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)text[i];
        to = sl_utf8_put(to, byte >= 0x80 && byte < 0xA0 ? codes[byte - 0x80] : byte);
    }
    return to;
}

const char *sl_quoted(sl_text field, char out[SL_QUOTED_ROOM]) {
    char printable[SL_QUOTED_ROOM - 8];
    sl_text_printable(field, printable, sizeof printable);
    snprintf(out, SL_QUOTED_ROOM, "\"%s\"", printable);
    return out;
}

void sl_explain_date(sl_text field, bool with_time, char *out, size_t room) {
    char quoted[SL_QUOTED_ROOM];
    sl_quoted(field, quoted);
    unsigned century, year, month, day;
    const char *p = field.bytes;
    bool shaped = field.length >= 10 && (with_time || field.length == 10) &&
                  two_digits(p, 100, &century) && two_digits(p + 2, 100, &year) && p[4] == '-' &&
                  two_digits(p + 5, 100, &month) && p[7] == '-' && two_digits(p + 8, 100, &day);
    if (shaped)
        year += century * 100;
    if (shaped && year == 0)
        snprintf(out, room, "%s: there is no year 0; years go from 0001 to 9999", quoted);
    else if (shaped && (month < 1 || month > 12))
        snprintf(out, room, "%s: there is no month %u", quoted, month);
    else if (shaped && !sl_civil_days(year, month, day, &(int64_t){0}))
        snprintf(out, room, "%s: %u %s %u does not exist", quoted, day, sl_month_names[month - 1],
                 year);
    else if (with_time)
        snprintf(out, room, "%s is not a date with time of the form YYYY-MM-DD hh:mm:ss", quoted);
    else
        snprintf(out, room, "%s is not a date of the form YYYY-MM-DD", quoted);
}

void sl_explain_integer(sl_text field, int64_t minimum, int64_t maximum, char *out, size_t room) {
    char quoted[SL_QUOTED_ROOM];
    sl_quoted(field, quoted);
    size_t sign = field.length > 0 && field.bytes[0] == '-';
    bool digits = field.length > sign;
    for (size_t i = sign; i < field.length; i++)
        digits &= sl_is_digit(field.bytes[i]);
    int64_t value;
    if (!digits)
        snprintf(out, room, "%s is not a whole number", quoted);
    else if (!sl_convert_integer(field.bytes, field.length, &value))
        snprintf(out, room, "%s: a whole number has at most 19 digits and 64 bits", quoted);
    else if (value < minimum)
        snprintf(out, room, "%s is too small: the least value here is %" PRId64, quoted, minimum);
    else if (value > maximum)
        snprintf(out, room, "%s is too large: the greatest value here is %" PRId64, quoted,
                 maximum);
    else
        snprintf(out, room, "%s has more digits than the greatest value here, %" PRId64, quoted,
                 maximum);
}

void sl_explain_double(sl_text field, char *out, size_t room) {
    char quoted[SL_QUOTED_ROOM];
    double value;
    sl_quoted(field, quoted);
    if (!read_double(field.bytes, field.length, &value))
        snprintf(out, room, "%s is not a number", quoted);
    else
        snprintf(out, room, "%s is too %s for a double: use the type decimal128", quoted,
                 value == 0 ? "close to 0" : "large");
}

void sl_explain_text(sl_text field, char *out, size_t room) {
    char quoted[SL_QUOTED_ROOM];
    sl_quoted(field, quoted);
    size_t bad = field.length;
    sl_utf8_valid(field.bytes, field.length, &bad);
    const char *zero = memchr(field.bytes, '\0', field.length);
    if (zero && (size_t)(zero - field.bytes) < bad)
        snprintf(out, room, "byte 0x00 at offset %zu of the field %s: text holds no NUL bytes",
                 (size_t)(zero - field.bytes), quoted);
    else
        snprintf(out, room, "byte 0x%02x at offset %zu of the field %s is not UTF-8",
                 bad < field.length ? (unsigned)(uint8_t)field.bytes[bad] : 0u, bad, quoted);
}
