/* SPDX-License-Identifier: Apache-2.0 */
/* Converters: check the text of one field and convert it to a value.
 *
 * The fast converters are inline and nearly free of branches. They return only whether they
 * succeed; the explain functions, which are never on the fast path, write the reason afterwards.
 * All read up to 16 bytes from the field's start, whatever its length; SL_SLACK allows for it.
 * Calendar: proleptic Gregorian, years 1 to 9999, UTC. */
#ifndef SHARDLOAD_CONVERT_H
#define SHARDLOAD_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "util/text.h"

#define SL_DAY_MS INT64_C(86400000)

/* Entry of a year: 4 * (day number of the day before January 1) + the year's row in
 * sl_month_starts. */
extern const int32_t sl_years[10000];

/* The number of days of the year before each month. Rows: common years, leap years, the invalid
 * year 0. Invalid months have no days. */
extern const uint16_t sl_month_starts[3][101];

/* Are all eight bytes at most 9? The bytes are those of a field, each XOR '0'. */
static inline bool sl_swar_digits(uint64_t digits) {
    return (((digits + 0x7676767676767676u) | digits) & 0x8080808080808080u) == 0;
}

/* The number with these eight digits; the first digit is in the lowest byte. */
static inline uint64_t sl_swar_number(uint64_t digits) {
    digits = (digits * (1 + (10 << 8))) >> 8 & 0x00FF00FF00FF00FFu;
    digits = (digits * (1 + (100 << 16))) >> 16 & 0x0000FFFF0000FFFFu;
    return (digits * (1 + (UINT64_C(10000) << 32))) >> 32;
}

/* Converts one to ten decimal digits. */
static inline bool sl_convert_digits(const char *field, size_t length, uint64_t *value) {
    const uint64_t zeros = 0x3030303030303030u;
    if (__builtin_expect(length - 1 >= 10, 0))
        return false;
    uint64_t first = sl_load_8(field) ^ zeros;
    if (length <= 8) {
        first <<= 64 - 8 * length; /* missing leading digits become zeros */
        *value = sl_swar_number(first);
        return sl_swar_digits(first);
    }
    uint64_t second = (sl_load_8(field + 8) ^ zeros) << (128 - 8 * length); /* one or two digits */
    *value = sl_swar_number(first) * (length == 9 ? 10 : 100) + (second >> 48 & 0xFF) * 10 +
             (second >> 56);
    return sl_swar_digits(first) && sl_swar_digits(second);
}

/* Converts a date to its day number; day 0 is 1970-01-01. False when there is no such date. The
 * year is at most 9999, the month at most 99. */
static inline bool sl_civil_days(unsigned year, unsigned month, unsigned day, int64_t *days) {
    const int32_t entry = sl_years[year];
    const uint16_t *starts = &sl_month_starts[entry & 3][month];
    *days = (entry >> 2) + (int32_t)(starts[0] + day);
    return day - 1 < (unsigned)(starts[1] - starts[0]);
}

/* Converts YYYY-MM-DD, the first ten bytes of a field, to a day number. */
static inline bool sl_convert_date_prefix(const char *field, int64_t *days) {
    uint64_t start = sl_load_8(field);
    uint16_t tail;
    memcpy(&tail, field + 8, sizeof tail);
    start ^= 0x2D30302D30303030u; /* "0000-00-" */
    tail = (uint16_t)(tail ^ 0x3030u);
    uint64_t bad = (start + 0x7F76767F76767676u) | start | ((tail + 0x7676u) | tail);
    if (__builtin_expect((bad & 0x8080808080808080u) != 0, 0))
        return false;
    uint32_t pairs = (uint32_t)start * 10 + ((uint32_t)start >> 8);
    unsigned year = (pairs & 0xFF) * 100 + (pairs >> 16 & 0xFF);
    unsigned month = (unsigned)(start >> 40 & 0xFF) * 10 + (unsigned)(start >> 48 & 0xFF);
    unsigned day = (tail & 0xFFu) * 10 + (tail >> 8);
    return sl_civil_days(year, month, day, days);
}

/* Converts YYYY-MM-DD to milliseconds since 1970. */
static inline bool sl_convert_date(const char *field, size_t length, int64_t *milliseconds) {
    int64_t days;
    if (__builtin_expect(length != 10, 0) || !sl_convert_date_prefix(field, &days))
        return false;
    *milliseconds = days * SL_DAY_MS;
    return true;
}

/* Converts YYYY-MM-DD[Thh:mm[:ss[.f]][Z]] to milliseconds since 1970. A blank may replace the T; f
 * has up to nine digits, of which the first three are used. */
bool sl_convert_datetime(const char *field, size_t length, int64_t *milliseconds);

/* Converts YYYY-MM-DDThh:mm:ss, 19 bytes, as sl_convert_datetime. */
static inline bool sl_convert_seconds(const char *field, int64_t *milliseconds) {
    int64_t days;
    uint64_t digits = sl_load_8(field + 11) ^ 0x30303A30303A3030u; /* "00:00:00" */
    uint64_t bad = (digits + 0x767A7F767A7F767Du) | digits; /* bytes above those of "29:59:59" */
    uint64_t pairs = digits * 10 + (digits >> 8);           /* in bytes 0, 3 and 6 */
    uint64_t hour = pairs & 0xFF, minute = pairs >> 24 & 0xFF, second = pairs >> 48 & 0xFF;
    if ((field[10] != 'T' && field[10] != ' ') || (bad & 0x8080808080808080u) != 0 || hour >= 24 ||
        !sl_convert_date_prefix(field, &days))
        return false;
    *milliseconds = days * SL_DAY_MS + (int64_t)((hour * 60 + minute) * 60 + second) * 1000;
    return true;
}

/* Converts an integer with an optional minus sign, up to 19 digits. */
bool sl_convert_integer(const char *field, size_t length, int64_t *value);

/* Converts a decimal number: -1.5, .5, 3e-4; at most 60 bytes. Also false for numbers outside the
 * range of a double: 1e400, and 1e-400, which is not 0. */
bool sl_convert_double(const char *field, size_t length, double *value);

/* Is every byte from 0x01 to 0x7F? Reads up to 7 bytes after the text. */
bool sl_text_is_plain(const char *text, size_t length);

/* ---- lossless decimal numbers ---- */

/* Decimal numbers that a double stores without loss: the shortest decimal number that converts to
 * the double has the same digits as the text. All numbers of up to 15 significant digits are stored
 * without loss; numbers of 16 or 17 digits are if programs print them for a double. Of two shortest
 * numbers that are equally close to the double, both are accepted: 9.019607543945313 and ...312 are
 * the same double.
 *
 * Accepted: 12, -1.5, .5, 6.6666669845581055, -7.324219E-4, 1e+300, -0, NaN, nan, Infinity, inf,
 * and U+221E with or without minus. Refused, because codes have this form, or because digits
 * would be lost: 007, +1, 5., whole numbers beyond 64 bits, 0.10000000000000001. Zeros at the end
 * of a fraction are not digits: 1.50 equals 1.5. */

/* Converts a number as described above; false: it is refused. */
bool sl_convert_lossless(const char *field, size_t length, double *value);

/* Converts one of the words for NaN and the infinities. */
bool sl_convert_word(const char *field, size_t length, double *value);

/* The form of a decimal number. */
typedef struct sl_number_shape {
    bool point;
    bool printed;    /* an exponent as programs print it: 1e+300, 1e-05 */
    bool coded;      /* codes have the same form: 1E5, an exponent without a point, and -0 */
    size_t digits;   /* before the point, and after it */
    size_t fraction; /* of these: after the point; 0 beside an exponent */
} sl_number_shape;

/* Reads the form of a number without + and leading zeros, of any length. */
bool sl_number_shape_read(sl_text text, sl_number_shape *shape);

/* ---- numbers in the notation of a country ---- */

/* How numbers are written, as an example of one: 1.234,5 has a decimal comma and points between
 * groups of three digits. */
typedef struct sl_number_form {
    const char *example; /* in schemas, as `format` */
    char decimal, group; /* group: 0: none */
} sl_number_form;

#define SL_NUMBER_FORMS 7u
extern const sl_number_form sl_number_forms[SL_NUMBER_FORMS];

/* The form with this example; NULL: none. */
const sl_number_form *sl_number_form_named(const char *example);

/* Writes the number with a decimal point, and without groups, into `out`. False: it does not have
 * this form. Digits need not be grouped. `*grouped`: they are. */
#define SL_NUMBER_ROOM 64
bool sl_number_plain(const sl_number_form *form, sl_text text, char out[SL_NUMBER_ROOM],
                     size_t *length, bool *grouped);

/* Converts a whole number of 64 bits without sign +, leading zeros, or the form -0. */
bool sl_convert_whole(const char *field, size_t length, int64_t *value);

/* Converts the most frequent numbers that sl_convert_lossless accepts: up to 16 bytes after the
 * sign, up to 15 digits, no exponent. False for any other text. */
static inline bool sl_convert_short_decimal(const char *field, size_t length, double *value) {
    size_t at = length > 0 && *field == '-', start = at, point = SIZE_MAX;
    uint64_t digits = 0;
    if (length - at - 1 >= 16)
        return false;
    for (; at < length; at++) {
        unsigned digit = (unsigned)(field[at] - '0');
        if (digit <= 9)
            digits = digits * 10 + digit;
        else if (field[at] == '.' && point == SIZE_MAX)
            point = at;
        else
            return false;
    }
    size_t whole = (point == SIZE_MAX ? length : point) - start; /* digits before the point */
    size_t fraction = point == SIZE_MAX ? 0 : length - point - 1;
    if ((whole > 1 && field[start] == '0') || (point != SIZE_MAX && fraction == 0) ||
        digits >= UINT64_C(1000000000000000) || (digits == 0 && start > 0 && point == SIZE_MAX))
        return false;
    *value = (double)digits / sl_powers_of_ten[fraction];
    if (start > 0)
        *value = -*value;
    return true;
}

/* ---- dates in any format ---- */

/* Dates in any format: formats in the notation of strftime, and ISO 8601 with offsets.
 *
 * A format consists of literal bytes and of
 *
 *   %Y     year, four digits             %H     hour, 0 to 23     %b  month's English name
 *   %y     year, two digits: 1969 to 2068
 *   %m %d  month, day; 1 or 2 digits     %I %p  hour, 1 to 12; AM or PM
 *   %M     minute, two digits            %a     English name of the weekday, which must be right
 *   %S     second, two digits, perhaps with a fraction; digits after the third must be 0
 *   %z     Z, UTC, GMT, +hh:mm, +hhmm, +hh, or GMT+hh:mm; also with minus
 *   %%     a percent sign
 *
 * or the format is one of the words
 *
 *   epoch     seconds since 1970, perhaps with a fraction; digits after the third must be 0
 *   epoch-ms  milliseconds since 1970
 *
 * within 12,000 years of 1970, so that most numbers in milliseconds are refused as seconds.
 *
 * Names may be cut to three letters, in any case. Without %z a time is UTC. */

/* Does the format determine a day, and contain only known conversions? */
bool sl_date_format_valid(const char *format);

/* Converts the complete field, by `format`, to milliseconds since 1970. Reads no byte after it. */
bool sl_convert_formatted(const char *format, sl_text field, int64_t *milliseconds);

typedef enum sl_zone { SL_ZONE_ANY, SL_ZONE_NONE, SL_ZONE_GIVEN } sl_zone;

/* Converts YYYY-MM-DD[Thh:mm[:ss[.f]][zone]], as sl_convert_datetime, but with any zone that %z
 * accepts. SL_ZONE_NONE: none is accepted; SL_ZONE_GIVEN: one is required. A fraction's digits
 * after the third must be 0, unless `cuts`. Reads no byte after the field. */
bool sl_convert_iso(sl_text field, sl_zone zone, bool cuts, int64_t *milliseconds);

/* ---- messages ---- */

/* Write the reason for refusing a field into `out`, on one line. */
void sl_explain_date(sl_text field, bool with_time, char *out, size_t room);
void sl_explain_integer(sl_text field, int64_t minimum, int64_t maximum, char *out, size_t room);
void sl_explain_double(sl_text field, char *out, size_t room);
void sl_explain_text(sl_text field, char *out, size_t room); /* malformed UTF-8 or a NUL */

/* Writes a field for messages: printable, in quotes, cut to about 60 bytes. Returns out. */
#define SL_QUOTED_ROOM 72
const char *sl_quoted(sl_text field, char out[SL_QUOTED_ROOM]);

#endif
