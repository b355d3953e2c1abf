/* SPDX-License-Identifier: Apache-2.0 */
/* Dates in any format; see convert.h. */
#include "convert.h"

#include <string.h>

/* The parts of a date that have been read, and the position after them. */
typedef struct parts {
    const char *at, *end;
    unsigned year, month, day, hour, minute, second, millisecond;
    unsigned weekday;  /* 0: Monday; 7: not given */
    unsigned half;     /* 0: not given, 1: AM, 2: PM */
    int offset;        /* minutes east of UTC */
    bool twelve_hours; /* the hour was read by %I */
} parts;

/* Reads `least` to `most` digits. */
static bool number(parts *p, int least, int most, unsigned *value) {
    int count = 0;
    for (*value = 0; count < most && p->at < p->end && sl_is_digit(*p->at); count++)
        *value = *value * 10 + (unsigned)(*p->at++ - '0');
    return count >= least;
}

static bool is_letter(char byte) {
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

/* Reads one of `count` names: in full, or its first three letters. */
static bool name(parts *p, const char *const *names, unsigned count, unsigned *index) {
    size_t length = 0;
    while (p->at + length < p->end && is_letter(p->at[length]))
        length++;
    for (unsigned i = 0; i < count; i++) {
        if (length == 0 || (*names[i] | 0x20) != (*p->at | 0x20))
            continue;
        sl_text full = {names[i], length == 3 ? 3 : strlen(names[i])};
        if (sl_text_equal_ignoring_case(full, (sl_text){p->at, length})) {
            p->at += length;
            *index = i;
            return true;
        }
    }
    return false;
}

/* The first three letters in lower case, as a number. */
#define LETTERS(a, b, c) ((uint32_t)(a) << 16 | (uint32_t)(b) << 8 | (uint32_t)(c))

static bool month_name(parts *p) {
    static const uint32_t short_names[12] = {
        LETTERS('j', 'a', 'n'), LETTERS('f', 'e', 'b'), LETTERS('m', 'a', 'r'),
        LETTERS('a', 'p', 'r'), LETTERS('m', 'a', 'y'), LETTERS('j', 'u', 'n'),
        LETTERS('j', 'u', 'l'), LETTERS('a', 'u', 'g'), LETTERS('s', 'e', 'p'),
        LETTERS('o', 'c', 't'), LETTERS('n', 'o', 'v'), LETTERS('d', 'e', 'c')};
    if (p->end - p->at > 3 && !is_letter(p->at[3])) { /* the most frequent form */
        uint32_t letters =
            LETTERS((uint8_t)p->at[0] | 0x20, (uint8_t)p->at[1] | 0x20, (uint8_t)p->at[2] | 0x20);
        for (unsigned i = 0; i < 12; i++) {
            if (letters == short_names[i]) {
                p->month = i + 1;
                p->at += 3;
                return true;
            }
        }
        return false;
    }
    bool found = name(p, sl_month_names, 12, &p->month);
    p->month += found;
    return found;
}

static bool weekday_name(parts *p) {
    static const char *const names[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                        "Friday", "Saturday", "Sunday"};
    return name(p, names, 7, &p->weekday);
}

static bool seconds(parts *p) {
    if (!number(p, 2, 2, &p->second))
        return false;
    if (p->at == p->end || (*p->at != '.' && *p->at != ',') || p->at + 1 == p->end ||
        !sl_is_digit(p->at[1]))
        return true;
    int digits = 0;
    for (p->at++; p->at < p->end && sl_is_digit(*p->at); p->at++, digits++) {
        if (digits < 3)
            p->millisecond = p->millisecond * 10 + (unsigned)(*p->at - '0');
        else if (*p->at != '0')
            return false;
    }
    for (; digits < 3; digits++)
        p->millisecond *= 10;
    return true;
}

static bool begins_with(parts *p, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

static bool zone(parts *p) {
    if (begins_with(p, "Z"))
        return true;
    bool named = begins_with(p, "GMT") || begins_with(p, "UTC");
    if (p->at == p->end || (*p->at != '+' && *p->at != '-'))
        return named;
    bool west = *p->at++ == '-';
    unsigned hours, minutes = 0;
    if (!number(p, 2, 2, &hours))
        return false;
    bool colon = p->at < p->end && *p->at == ':';
    p->at += colon;
    if ((colon || (p->at < p->end && sl_is_digit(*p->at))) && !number(p, 2, 2, &minutes))
        return false;
    if (hours > 15 || minutes > 59)
        return false;
    p->offset = (int)(hours * 60 + minutes) * (west ? -1 : 1);
    return true;
}

static bool half_of_day(parts *p) {
    if (p->end - p->at < 2 || (p->at[1] | 0x20) != 'm')
        return false;
    char first = (char)(*p->at | 0x20);
    p->half = first == 'a' ? 1 : first == 'p' ? 2 : 0;
    p->at += 2;
    return p->half != 0;
}

static bool word(parts *p, char letter) {
    switch (letter) {
    case 'Y':
        return number(p, 4, 4, &p->year);
    case 'm':
        return number(p, 1, 2, &p->month);
    case 'd':
        return number(p, 1, 2, &p->day);
    case 'b':
        return month_name(p);
    case 'a':
        return weekday_name(p);
    case 'H':
        return number(p, 1, 2, &p->hour);
    case 'I':
        p->twelve_hours = true;
        return number(p, 1, 2, &p->hour) && p->hour >= 1 && p->hour <= 12;
    case 'p':
        return half_of_day(p);
    case 'M':
        return number(p, 2, 2, &p->minute);
    case 'S':
        return seconds(p);
    case 'z':
        return zone(p);
    case '%':
        return begins_with(p, "%");
    default:
        return false;
    }
}

/* Computes the instant. */
static bool finish(const parts *p, int64_t *milliseconds) {
    int64_t days;
    unsigned hour = p->hour;
    if (p->at != p->end || p->month > 12 || !sl_civil_days(p->year, p->month, p->day, &days))
        return false;
    if (p->twelve_hours)
        hour = hour % 12 + (p->half == 2 ? 12 : 0);
    if (hour > 23 || p->minute > 59 || p->second > 59)
        return false;
    if (p->weekday < 7 && (unsigned)(((days + 3) % 7 + 7) % 7) != p->weekday)
        return false;
    int64_t minutes = (int64_t)hour * 60 + p->minute - p->offset;
    *milliseconds = days * SL_DAY_MS + (minutes * 60 + p->second) * 1000 + p->millisecond;
    return true;
}

#define EPOCH "epoch"
#define EPOCH_MS "epoch-ms"
#define EPOCH_LIMIT_MS INT64_C(377705116800000) /* years -9999 to 9999 */

/* A number of seconds or milliseconds since 1970. */
static bool convert_epoch(bool in_milliseconds, sl_text field, int64_t *milliseconds) {
    const char *at = field.bytes, *end = at + field.length;
    bool negative = at < end && *at == '-';
    at += negative;
    int64_t value = 0;
    size_t digits = 0;
    for (; at < end && sl_is_digit(*at) && digits < 16; at++, digits++)
        value = value * 10 + (*at - '0');
    if (digits == 0)
        return false;
    if (!in_milliseconds) {
        if (value > EPOCH_LIMIT_MS)
            return false;
        value *= 1000;
        bool fraction = at < end && *at == '.' && at + 1 < end;
        at += fraction;
        for (int64_t unit = 100; fraction && at < end && sl_is_digit(*at); at++, unit /= 10) {
            if (unit == 0 && *at != '0')
                return false;
            value += unit * (*at - '0');
        }
    }
    *milliseconds = negative ? -value : value;
    return at == end && value < EPOCH_LIMIT_MS;
}

bool sl_convert_formatted(const char *format, sl_text field, int64_t *milliseconds) {
    if (strcmp(format, EPOCH) == 0 || strcmp(format, EPOCH_MS) == 0)
        return convert_epoch(strcmp(format, EPOCH_MS) == 0, field, milliseconds);
    parts p = {.at = field.bytes, .end = field.bytes + field.length, .weekday = 7};
    for (const char *f = format; *f; f++) {
        bool fits = *f == '%' ? word(&p, *++f) : p.at < p.end && *p.at++ == *f;
        if (!fits)
            return false;
    }
    return finish(&p, milliseconds);
}

bool sl_date_format_valid(const char *format) {
    bool seen[128] = {false};
    if (strcmp(format, EPOCH) == 0 || strcmp(format, EPOCH_MS) == 0)
        return true;
    for (const char *f = format; *f; f++) {
        if (*f != '%')
            continue;
        f++;
        if (*f == '\0' || !strchr("YmdbaHIpMSz%", *f) || (seen[(unsigned char)*f] && *f != '%'))
            return false;
        seen[(unsigned char)*f] = true;
    }
    return seen['Y'] && seen['d'] && seen['m'] != seen['b'] && seen['I'] == seen['p'] &&
           !(seen['H'] && seen['I']);
}

/* Converts the most frequent forms: YYYY-MM-DD, and YYYY-MM-DDThh:mm:ss with or without a Z.
 * *zoned: with a Z. False for other forms, which may be valid. */
static bool convert_usual_iso(sl_text field, bool *zoned, int64_t *milliseconds) {
    const size_t seconds = sizeof "2016-01-15T10:00:00" - 1;
    *zoned = field.length == seconds + 1 && field.bytes[seconds] == 'Z';
    if (field.length == seconds || *zoned)
        return sl_convert_seconds(field.bytes, milliseconds);
    return sl_convert_date(field.bytes, field.length, milliseconds);
}

bool sl_convert_iso(sl_text field, sl_zone given, int64_t *milliseconds) {
    bool zoned;
    if (convert_usual_iso(field, &zoned, milliseconds))
        return given == SL_ZONE_ANY || zoned == (given == SL_ZONE_GIVEN);
    parts p = {.at = field.bytes, .end = field.bytes + field.length, .weekday = 7};
    if (field.length < 10 || !number(&p, 4, 4, &p.year) || *p.at++ != '-' ||
        !number(&p, 2, 2, &p.month) || *p.at++ != '-' || !number(&p, 2, 2, &p.day))
        return false;
    zoned = false;
    if (p.at < p.end) {
        if ((*p.at != 'T' && *p.at != ' ') || p.end - p.at < 6)
            return false;
        p.at++;
        if (!number(&p, 2, 2, &p.hour) || *p.at++ != ':' || !number(&p, 2, 2, &p.minute) ||
            (begins_with(&p, ":") && !seconds(&p)))
            return false;
        zoned = p.at < p.end;
        if (zoned && *p.at == ' ') /* 2024-01-31 10:00:00 +01:00 */
            p.at++;
        if (zoned && !zone(&p))
            return false;
    }
    return (given == SL_ZONE_ANY || zoned == (given == SL_ZONE_GIVEN)) && finish(&p, milliseconds);
}
