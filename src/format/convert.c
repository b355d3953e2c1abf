/* SPDX-License-Identifier: Apache-2.0 */
/* Converters that are not on the fast path: dates, whole and decimal numbers, text; and messages
 * for refused fields. */
#include "convert.h"

#include "encoding.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const uint16_t sl_month_starts[3][101] = {
    {0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, [13 ... 100] = 365},
    {0, 0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, [13 ... 100] = 366},
    {0},
};

static const char *const month_names[12] = {"January",   "February", "March",    "April",
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

/* ---- lossless decimal numbers ---- */

/* A text is read as digits * 10^exponent without zeros at the end of `digits`, which is unique for
 * each number. Up to 15 digits with a small exponent need one exact division or multiplication. For
 * 16 and 17 digits the conversion is done with the 64 bits of an x86 long double, and repeated by
 * strtod if 64 bits are too few to round correctly. */

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
    int precision = fabs(value) < DBL_MIN ? 1 : 15; /* numbers below DBL_MIN hold fewer digits */
    for (; precision <= 17; precision++) {
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

bool sl_convert_word(const char *field, size_t length, double *value) {
    static const char *const words[] = {"Infinity", "inf", "Inf", "\xE2\x88\x9E"};
    if (length == 3 && (memcmp(field, "NaN", 3) == 0 || memcmp(field, "nan", 3) == 0)) {
        *value = (double)NAN;
        return true;
    }
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
        return sl_convert_word(field, length, value);
    if (!d.point && !d.exponent_given && !(d.negative && d.digits == 0) &&
        !sl_convert_whole(field, length, &whole))
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

/* Reads digits; returns their number. */
static size_t digits_at(const char *at, const char *end) {
    const char *from = at;
    while (at < end && sl_is_digit(*at))
        at++;
    return (size_t)(at - from);
}

bool sl_number_shape_read(sl_text text, sl_number_shape *shape) {
    const char *at = text.bytes, *end = at + text.length;
    *shape = (sl_number_shape){.point = false};
    const bool negative = at < end && *at == '-';
    at += negative;
    const char *first = at;
    size_t whole = digits_at(at, end), fraction = 0;
    at += whole;
    if (at < end && *at == '.') {
        shape->point = true;
        fraction = digits_at(at + 1, end);
        at += 1 + fraction;
    }
    shape->digits = whole + fraction;
    if (shape->digits == 0 || (shape->point && fraction == 0) || (whole > 1 && *first == '0'))
        return false;
    shape->coded = negative && whole == 1 && *first == '0' && at == end && !shape->point;
    shape->fraction = at == end ? fraction : 0;
    if (at == end)
        return true;
    const bool lower = *at == 'e';
    if (!lower && *at != 'E')
        return false;
    at++;
    const bool sign = at < end && (*at == '+' || *at == '-');
    size_t exponent = digits_at(at + sign, end);
    shape->printed = lower && sign && exponent >= 2;
    shape->coded = !shape->point && !shape->printed;
    return exponent > 0 && exponent <= 5 && at + sign + exponent == end;
}

const sl_number_form sl_number_forms[SL_NUMBER_FORMS] = {
    {"1.234,5", ',', '.'}, {"1 234,5", ',', ' '},  {"1'234,5", ',', '\''}, {"1,234.5", '.', ','},
    {"1 234.5", '.', ' '}, {"1'234.5", '.', '\''}, {"1234,5", ',', 0},
};

const sl_number_form *sl_number_form_named(const char *example) {
    for (size_t i = 0; example && i < SL_NUMBER_FORMS; i++) {
        if (strcmp(sl_number_forms[i].example, example) == 0)
            return &sl_number_forms[i];
    }
    return NULL;
}

/* What spreadsheets write instead of a blank or an apostrophe between groups of digits: blanks at
 * which no line ends (U+00A0, U+202F), and the apostrophe U+2019; as UTF-8, or in windows-1252. */
static const struct {
    char group;
    const char *written;
} separators[] = {{' ', "\xC2\xA0"},
                  {' ', "\xE2\x80\xAF"},
                  {' ', "\xA0"},
                  {'\'', "\xE2\x80\x99"},
                  {'\'', "\x92"}};

/* The length of the separator of groups; 0: there is none. */
static size_t separator_at(const sl_number_form *form, const char *at, const char *end) {
    if (at < end && form->group && *at == form->group)
        return 1;
    for (size_t i = 0; i < sizeof separators / sizeof separators[0]; i++) {
        size_t length = separators[i].group == form->group ? strlen(separators[i].written) : 0;
        if (length > 0 && (size_t)(end - at) >= length &&
            memcmp(at, separators[i].written, length) == 0)
            return length;
    }
    return 0;
}

bool sl_number_plain(const sl_number_form *form, sl_text text, char out[SL_NUMBER_ROOM],
                     size_t *length, bool *grouped) {
    const char *at = text.bytes, *end = at + text.length;
    char *to = out;
    *grouped = false;
    if (text.length == 0 || text.length >= SL_NUMBER_ROOM)
        return false;
    if (*at == '-') {
        *to++ = *at++;
    } else if (end[-1] == '-') {
        *to++ = '-';
        end--;
    }
    size_t digits = digits_at(at, end), separator;
    bool groups = digits >= 1 && digits <= 3 && *at != '0';
    for (;;) {
        memcpy(to, at, digits);
        to += digits;
        at += digits;
        separator = groups ? separator_at(form, at, end) : 0;
        if (separator == 0)
            break;
        at += separator;
        digits = digits_at(at, end);
        *grouped = true;
        if (digits != 3)
            return false;
    }
    if (at < end && *at == form->decimal) {
        digits = digits_at(++at, end);
        *to++ = '.';
        memcpy(to, at, digits);
        to += digits;
        at += digits;
    }
    *length = (size_t)(to - out);
    return at == end;
}

bool sl_convert_whole(const char *field, size_t length, int64_t *value) {
    size_t sign = length > 0 && *field == '-';
    return (length <= 1 || field[sign] != '0') && sl_convert_integer(field, length, value);
}

/* ---- dates in any format ---- */

/* The parts of a date that have been read, and the position after them. */
typedef struct parts {
    const char *at, *end;
    unsigned year, month, day, hour, minute, second, millisecond;
    unsigned weekday;  /* 0: Monday; 7: not given */
    unsigned half;     /* 0: not given, 1: AM, 2: PM */
    int offset;        /* minutes east of UTC */
    bool twelve_hours; /* the hour was read by %I */
    bool cuts;         /* digits of a fraction after the third may be cut */
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
    bool found = name(p, month_names, 12, &p->month);
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
        else if (*p->at != '0' && !p->cuts)
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
    case 'y':
        return number(p, 2, 2, &p->year) && (p->year += p->year < 69 ? 2000 : 1900) > 0;
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
        if (*f == '\0' || !strchr("YymdbaHIpMSz%", *f) || (seen[(unsigned char)*f] && *f != '%'))
            return false;
        seen[(unsigned char)*f] = true;
    }
    return seen['Y'] != seen['y'] && seen['d'] && seen['m'] != seen['b'] &&
           seen['I'] == seen['p'] && !(seen['H'] && seen['I']);
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

bool sl_convert_iso(sl_text field, sl_zone given, bool cuts, int64_t *milliseconds) {
    bool zoned;
    if (convert_usual_iso(field, &zoned, milliseconds))
        return given == SL_ZONE_ANY || zoned == (given == SL_ZONE_GIVEN);
    parts p = {.at = field.bytes, .end = field.bytes + field.length, .weekday = 7, .cuts = cuts};
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

/* ---- messages ---- */

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
        snprintf(out, room, "%s: %u %s %u does not exist", quoted, day, month_names[month - 1],
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
    char quoted[SL_QUOTED_ROOM], readings[SL_READINGS_ROOM];
    sl_quoted(field, quoted);
    size_t bad = field.length;
    sl_utf8_valid(field.bytes, field.length, &bad);
    const char *zero = memchr(field.bytes, '\0', field.length);
    if (zero && (size_t)(zero - field.bytes) < bad) {
        snprintf(out, room, "byte 0x00 at offset %zu of the field %s: text holds no NUL bytes",
                 (size_t)(zero - field.bytes), quoted);
    } else {
        sl_encoding_readings_write(field, readings, sizeof readings);
        snprintf(out, room,
                 "byte 0x%02x at offset %zu of the field %s is not UTF-8: give --encoding: %s",
                 bad < field.length ? (unsigned)(uint8_t)field.bytes[bad] : 0u, bad, quoted,
                 readings);
    }
}
