/* SPDX-License-Identifier: Apache-2.0 */
/* The table of column types, and inference; see column_types.h. */
#include "column_types.h"
#include "convert.h"
#include "fields.h"
#include "sql_values.h"
#include "util/print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- values ---- */

static bool is_word(sl_text value, const char *word) {
    return word && sl_text_equal(value, sl_text_of(word));
}

static uint8_t *put_text(const sl_value *v, uint8_t *to) {
    return sl_put_careful_text(v->dialect, v->field, v->quoted, to, v->transcoded);
}

static uint8_t *put_narrow(const sl_value *v, uint8_t *to, int64_t value) {
    bool narrow = value >= INT32_MIN && value <= INT32_MAX;
    *v->type = narrow ? SL_BSON_INT32 : SL_BSON_INT64;
    return narrow ? sl_bson_put_int32(to, (int32_t)value) : sl_bson_put_int64(to, value);
}

static uint8_t *put_code(const sl_value *v, uint8_t *to) {
    uint64_t digits;
    if ((v->field.length == 1 || *v->field.bytes != '0') && /* 007 is a text */
        sl_convert_digits(v->field.bytes, v->field.length, &digits))
        return put_narrow(v, to, (int64_t)digits);
    *v->type = SL_BSON_TEXT;
    return put_text(v, to);
}

/* Converts an int that is negative or has many digits. Leading zeros are allowed up to ten digits,
 * or up to the number of digits of the column's maximum. */
static bool convert_int(const sl_schema_column *schema, sl_text field, int64_t *value) {
    char greatest[24];
    int digits = snprintf(greatest, sizeof greatest, "%lld", (long long)schema->maximum);
    size_t longest = digits > 10 ? (size_t)digits : 10;
    size_t sign = field.length > 0 && field.bytes[0] == '-';
    return field.length - sign <= longest && sl_convert_integer(field.bytes, field.length, value);
}

/* The field with a decimal point and without groups of digits, in `room`. False: it does not have
 * the form that its column declares. */
static bool read_form(const sl_value *v, char room[SL_NUMBER_ROOM + SL_SLACK], sl_text *field) {
    const sl_number_form *form = sl_number_form_named(v->schema->format);
    bool grouped;
    double word;
    *field = v->field;
    if (!form || sl_convert_word(field->bytes, field->length, &word))
        return true;
    memset(room, 0, SL_NUMBER_ROOM + SL_SLACK);
    field->bytes = room;
    if (sl_number_plain(form, v->field, room, &field->length, &grouped))
        return true;
    /* 1.100,50 is one number in each form with groups and a decimal comma, 1.100 is not. */
    const bool whole = form->group || !memchr(v->field.bytes, ',', v->field.length);
    for (form = sl_number_forms; !whole && form->decimal == ','; form++) {
        if (sl_number_plain(form, v->field, room, &field->length, &grouped))
            return true;
    }
    return false;
}

static uint8_t *put_int(const sl_value *v, uint8_t *to) {
    const sl_schema_column *schema = v->schema;
    char room[SL_NUMBER_ROOM + SL_SLACK];
    sl_text field;
    uint64_t digits;
    int64_t whole;
    if (!read_form(v, room, &field))
        return NULL;
    if (!schema->lossless && schema->minimum <= 0 && schema->maximum >= 0 &&
        sl_convert_digits(field.bytes, field.length, &digits) &&
        digits <= (uint64_t)schema->maximum)
        return put_narrow(v, to, (int64_t)digits);
    bool fits = schema->lossless ? sl_convert_whole(field.bytes, field.length, &whole)
                                 : convert_int(schema, field, &whole);
    return fits && whole >= schema->minimum && whole <= schema->maximum ? put_narrow(v, to, whole)
                                                                        : NULL;
}

static uint8_t *put_int64(const sl_value *v, uint8_t *to) {
    char room[SL_NUMBER_ROOM + SL_SLACK];
    sl_text field;
    int64_t whole;
    bool fits = read_form(v, room, &field) &&
                (v->schema->lossless ? sl_convert_whole(field.bytes, field.length, &whole)
                                     : convert_int(v->schema, field, &whole));
    return fits ? sl_bson_put_int64(to, whole) : NULL;
}

static bool convert_double(const sl_schema_column *schema, sl_text field, double *value) {
    return sl_convert_short_decimal(field.bytes, field.length, value) ||
           (schema->lossless ? sl_convert_lossless : sl_convert_double)(field.bytes, field.length,
                                                                        value);
}

static uint8_t *put_double(const sl_value *v, uint8_t *to) {
    char room[SL_NUMBER_ROOM + SL_SLACK];
    sl_text field;
    double value;
    return read_form(v, room, &field) && (convert_double(v->schema, field, &value) ||
                                          sl_convert_word(field.bytes, field.length, &value))
               ? sl_bson_put_double(to, value)
               : NULL;
}

static uint8_t *put_degrees(const sl_value *v, uint8_t *to) {
    const double greatest = sl_column_types[v->schema->type].axis == SL_AXIS_LONGITUDE ? 180 : 90;
    double value;
    return convert_double(v->schema, v->field, &value) && fabs(value) <= greatest
               ? sl_bson_put_double(to, value)
               : NULL;
}

/* Converts by the first of the column's formats that fits. False also for a value that another of
 * them, other than epoch, reads as another date: 01/02/2024. */
static bool convert_formatted(const sl_schema_column *schema, sl_text field, int64_t *value) {
    bool fits = sl_convert_formatted(schema->format, field, value);
    int64_t other;
    for (size_t i = 1; i < schema->formats.count; i++) {
        const char *format = schema->formats.words[i];
        if ((fits && *format != '%') || !sl_convert_formatted(format, field, &other))
            continue;
        if (fits && other != *value)
            return false;
        *value = other;
        fits = true;
    }
    return fits;
}

bool sl_column_formats_differ(const sl_schema_column *schema, sl_text field) {
    size_t fitting = 0;
    int64_t value;
    for (size_t i = 0; i < schema->formats.count; i++)
        fitting += sl_convert_formatted(schema->formats.words[i], field, &value);
    return fitting > 1 && !convert_formatted(schema, field, &value);
}

static uint8_t *put_date(const sl_value *v, uint8_t *to) {
    int64_t value = 0;
    bool fits = v->schema->format
                    ? convert_formatted(v->schema, v->field, &value) && value % SL_DAY_MS == 0
                    : sl_convert_date(v->field.bytes, v->field.length, &value);
    return fits ? sl_bson_put_int64(to, value) : NULL;
}

static bool convert_datetime(const sl_schema_column *schema, sl_text field, int64_t *value) {
    static const sl_zone zones[] = {SL_ZONE_ANY, SL_ZONE_NONE, SL_ZONE_GIVEN};
    if (schema->format)
        return convert_formatted(schema, field, value);
    if (!schema->lossless && schema->zone == SL_CHOICE_UNSET &&
        sl_convert_datetime(field.bytes, field.length, value))
        return true;
    return sl_convert_iso(field, zones[schema->zone], !schema->lossless, value);
}

static uint8_t *put_datetime(const sl_value *v, uint8_t *to) {
    int64_t value;
    return convert_datetime(v->schema, v->field, &value) ? sl_bson_put_int64(to, value) : NULL;
}

static uint8_t *put_flag(const sl_value *v, uint8_t *to) {
    *to = is_word(v->field, v->schema->yes);
    return *to || is_word(v->field, v->schema->no) ? to + 1 : NULL;
}

static bool is_decimal_word(sl_text field) {
    return is_word(field, "NaN") || is_word(field, "Infinity") || is_word(field, "-Infinity");
}

static uint8_t *put_decimal(const sl_value *v, uint8_t *to) {
    char room[SL_NUMBER_ROOM + SL_SLACK];
    sl_text field;
    sl_number_shape shape;
    if (!read_form(v, room, &field))
        return NULL;
    if (v->schema->lossless && is_word(field, "nan"))
        return sl_bson_put_decimal_or_word(to, "NaN", 3);
    if (is_decimal_word(field))
        return sl_bson_put_decimal_or_word(to, field.bytes, field.length);
    if (v->schema->lossless && !sl_number_shape_read(field, &shape))
        return NULL;
    return sl_bson_put_decimal(to, field.bytes, field.length);
}

/* mongoexport writes ObjectId(...) to CSV. The digits; of other text all of it. */
static sl_text object_digits(sl_text field) {
    static const char begin[] = "ObjectId(";
    if (field.length > sizeof begin && memcmp(field.bytes, begin, sizeof begin - 1) == 0 &&
        field.bytes[field.length - 1] == ')')
        return (sl_text){field.bytes + sizeof begin - 1, field.length - sizeof begin};
    return field;
}

static uint8_t *put_object_id(const sl_value *v, uint8_t *to) {
    const sl_text digits = object_digits(v->field);
    return sl_bson_put_object_id(to, digits.bytes, digits.length);
}

static uint8_t *put_uuid(const sl_value *v, uint8_t *to) {
    char text[40]; /* of 32 digits, as mongoexport writes them: with hyphens */
    const char *digits = v->field.bytes;
    if (v->field.length != 32)
        return sl_bson_put_uuid(to, digits, v->field.length);
    snprintf(text, sizeof text, "%.8s-%.4s-%.4s-%.4s-%.12s", digits, digits + 8, digits + 12,
             digits + 16, digits + 20);
    return sl_bson_put_uuid(to, text, 36);
}

/* ---- reasons for refusing a field ---- */

static void explain_text(const sl_schema_column *schema, sl_text field, char *out, size_t room) {
    (void)schema;
    sl_explain_text(field, out, room);
}

static void explain_int(const sl_schema_column *schema, sl_text field, char *out, size_t room) {
    sl_explain_integer(field, schema->minimum, schema->maximum, out, room);
}

static void explain_fraction(const sl_schema_column *schema, sl_text field, char *out,
                             size_t room) {
    char quoted[SL_QUOTED_ROOM];
    const char *type = sl_column_types[schema->type].word;
    if (!schema->format && sl_has_decimal_comma(field))
        snprintf(out, room,
                 "%s has a decimal comma: give the type %s:1.234,5 (in a schema, format: "
                 "\"1.234,5\")",
                 sl_quoted(field, quoted), type);
    else if (schema->type == SL_TYPE_DOUBLE)
        sl_explain_double(field, out, room);
    else
        snprintf(out, room, "%s does not fit the type %s", sl_quoted(field, quoted), type);
}

static void explain_date(const sl_schema_column *schema, sl_text field, char *out, size_t room) {
    sl_explain_date(field, schema->type == SL_TYPE_DATETIME, out, room);
}

static void explain_flag(const sl_schema_column *schema, sl_text field, char *out, size_t room) {
    char quoted[SL_QUOTED_ROOM];
    if (schema->no)
        snprintf(out, room, "%s is neither \"%s\" nor \"%s\"", sl_quoted(field, quoted),
                 schema->yes, schema->no);
    else
        snprintf(out, room, "%s is neither \"%s\" nor empty", sl_quoted(field, quoted),
                 schema->yes);
}

/* ---- inference of a column's type ---- */

/* A column has a set of the types that store all its values without loss. Each value removes the
 * types that would change it. Date formats are a second set, which is used only as long as all
 * values are dates. Only a day above 12 shows whether the day or the month comes first: if both
 * orders fit all values, the column is text. */

enum {
    KIND_INT = 1,
    KIND_DOUBLE = 2,
    KIND_LOWER = 4, /* true, false */
    KIND_TITLE = 8, /* True, False */
    KIND_UPPER = 16,
    KIND_ISO = 32, /* ISO 8601 without zone */
    KIND_ISO_ZONED = 64,
    KIND_FORMATTED = 128, /* one of date_formats */
    KIND_DECIMAL = 256,
    KIND_LETTERS = 512, /* t, f: only in notations that write these */
    KIND_CUT = 1024,    /* ISO 8601 without zone, with digits that a date cannot hold */
    KIND_ZONED_CUT = 2048,
    KIND_OBJECT = 4096, /* ObjectId(...) */
    KIND_NUMBERS = KIND_INT | KIND_DOUBLE | KIND_DECIMAL,
};

static const struct {
    const char *yes, *no;
    uint32_t kind;
} flags[] = {{"true", "false", KIND_LOWER},
             {"True", "False", KIND_TITLE},
             {"TRUE", "FALSE", KIND_UPPER},
             {"t", "f", KIND_LETTERS}};

#define LONGEST 48 /* bytes of a value that is not text */

static const char *const missing_words[] = {"-",    "NA",  "N/A", "n/a", "null",
                                            "NULL", "\\N", "NaN", "nan"};
const sl_words sl_missing_words = {(const char **)missing_words,
                                   sizeof missing_words / sizeof missing_words[0]};

sl_words sl_missing_words_of(sl_type type) {
    sl_words words = sl_missing_words;
    if (type == SL_TYPE_DOUBLE || type == SL_TYPE_DECIMAL) /* NaN is a value */
        words.count -= 2;
    return words;
}

#define TIMES(day) day, day " %H:%M", day " %H:%M:%S"
#define HALF_DAYS(day) day " %I:%M %p", day " %I:%M:%S %p"
#define BOTH_ORDERS(separator)                                                                     \
    TIMES("%d" separator "%m" separator "%Y"), HALF_DAYS("%d" separator "%m" separator "%Y"),      \
        TIMES("%m" separator "%d" separator "%Y"), HALF_DAYS("%m" separator "%d" separator "%Y")

/* Years of two digits: such dates are never inferred, because the century is unknown. */
#define SHORT_YEARS "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%y-%m-%d", "%d-%b-%y"

/* The first PAIRED rows are in pairs: the format of such a row and the format ORDER_ROWS after or
 * before it differ only in the order of day and month. */
static const char *const date_formats[] = {
    BOTH_ORDERS("/"),           BOTH_ORDERS("."),
    BOTH_ORDERS("-"),           TIMES("%Y-%m-%d"),
    TIMES("%d-%b-%Y"),          TIMES("%d %b %Y"),
    TIMES("%d/%b/%Y"),          TIMES("%b %d, %Y"),
    TIMES("%b %d %Y"),          HALF_DAYS("%d-%b-%Y"),
    HALF_DAYS("%b %d, %Y"),     TIMES("%Y/%m/%d"),
    "%a, %d %b %Y %H:%M:%S %z", "%a %b %d %H:%M:%S %z %Y",
    "%d/%b/%Y:%H:%M:%S %z",     SHORT_YEARS,
};
#define FORMATS (sizeof date_formats / sizeof date_formats[0])
/* The formats before SHORT_YEARS. */
#define PROVEN (FORMATS - sizeof((const char *[]){SHORT_YEARS}) / sizeof(char *))
#define ORDER_ROWS 5u
#define PAIRED (6u * ORDER_ROWS)
/* The set of the format %Y-%m-%d, for days and months of one digit: ISO 8601 is preferred. */
#define YEAR_MONTH_DAY (UINT64_C(1) << PAIRED)
_Static_assert(FORMATS <= 64, "the formats fit into a bit set");

/* Sets `*words` to the bit of the word that the value is. */
static bool is_missing(sl_text value, uint16_t *words) {
    *words = 0;
    if (value.length == 0)
        return true;
    if (value.length > 4 ||
        sl_is_digit(*value.bytes)) /* no word is longer, or begins with a digit */
        return false;
    for (size_t i = 0; i < sl_missing_words.count; i++) {
        if (*value.bytes == *sl_missing_words.words[i] && is_word(value, sl_missing_words.words[i]))
            *words = (uint16_t)(1u << i);
    }
    return *words != 0;
}

/* Does the value have the digits of year and day that every format needs? Most text is excluded
 * here. */
static bool may_be_date(sl_text value) {
    size_t digits = 0;
    for (size_t i = 0; i < value.length; i++)
        digits += sl_is_digit(value.bytes[i]);
    return value.length >= 6 && digits >= 3;
}

/* The formats of `among` that fit the value. */
static uint64_t formats_of(sl_text value, uint64_t among) {
    uint64_t fitting = 0;
    int64_t milliseconds;
    among &= UINT64_MAX >> (64 - FORMATS);
    for (uint64_t left = among; left != 0; left &= left - 1) {
        size_t i = (size_t)__builtin_ctzll(left);
        if (sl_convert_formatted(date_formats[i], value, &milliseconds))
            fitting |= UINT64_C(1) << i;
    }
    return fitting;
}

bool sl_has_decimal_comma(sl_text value) {
    size_t commas = 0, after = 0;
    for (size_t i = 0; i < value.length; i++) {
        char byte = value.bytes[i];
        if (byte == ',')
            commas++;
        else if (sl_is_digit(byte))
            after += commas;
        else if (byte == '.' ? commas > 0 : (byte != '-' && byte != '+') || i > 0)
            return false;
    }
    const char *digit = value.bytes + (value.length > 0 && !sl_is_digit(*value.bytes));
    return commas == 1 && after > 0 && (after != 3 || *digit == '0') && value.bytes[0] != ',';
}

/* Is the text before or after a number empty, or a unit, perhaps with blanks? */
static bool is_unit(const char *from, const char *to) {
    static const char units[] = "%|-|€|EUR|CHF|DKK|SEK|NOK|PLN|CZK|HUF|RON|TRY|BRL|RUB|kr|zł|Kč|Ft";
    static const char *const blanks[] = {" ", "\xC2\xA0", "\xE2\x80\xAF"}; /* of numbers */
    for (size_t i = 0; i < 3 && from < to;) {
        const size_t length = strlen(blanks[i]), left = (size_t)(to - from);
        const bool first = left >= length && memcmp(from, blanks[i], length) == 0;
        const bool last = left >= length && memcmp(to - length, blanks[i], length) == 0;
        from += first ? length : 0;
        to -= last && !first ? length : 0;
        i = first || last ? 0 : i + 1;
    }
    return from == to || sl_list_has(units, '|', (sl_text){from, (size_t)(to - from)});
}

/* Is it a number with a decimal comma and a unit: 12,5 % or EUR 1.234,50-? */
static bool is_amount_with_comma(sl_text value) {
    const char *from = value.bytes, *to = from + value.length;
    if (value.length > 24 || !memchr(from, ',', value.length))
        return false;
    while (from < to && !sl_is_digit(*from))
        from++;
    while (from < to && !sl_is_digit(to[-1]))
        to--;
    return to - from < (ptrdiff_t)value.length && is_unit(value.bytes, from) &&
           is_unit(to, value.bytes + value.length) &&
           sl_has_decimal_comma((sl_text){from, (size_t)(to - from)});
}

/* Is it a number such as 12.500, of one to three digits before the point and three after it? */
static bool is_grouped(sl_text value) {
    size_t sign = *value.bytes == '-';
    return value.length >= sign + 5 && value.length <= sign + 7 &&
           value.bytes[value.length - 4] == '.' && value.bytes[sign] != '0';
}

static bool is_whole(sl_text value) {
    size_t at = value.length > 1 && *value.bytes == '-';
    while (at < value.length && sl_is_digit(value.bytes[at]))
        at++;
    return at == value.length;
}

bool sl_column_guess_is_grouped(const sl_column_guess *guess, bool surely) {
    return guess->kinds & KIND_DOUBLE && !(guess->kinds & KIND_INT) && !guess->ungrouped &&
           (!surely || (guess->thousands | SL_THOUSANDS_THREE) ==
                           (SL_THOUSANDS_FEW | SL_THOUSANDS_ZERO | SL_THOUSANDS_THREE));
}

void sl_column_guess_use_comma(sl_column_guess *guess) {
    const uint8_t zero = guess->kinds & KIND_DOUBLE ? 0 : SL_THOUSANDS_ZERO; /* 1.234.567 */
    if (guess->kinds & KIND_INT || !(guess->forms & guess->grouped & 1) || guess->decimals & 1 ||
        (guess->thousands | zero) != (SL_THOUSANDS_FEW | SL_THOUSANDS_ZERO | SL_THOUSANDS_THREE))
        return;
    guess->kinds = 0;
    guess->forms = guess->decimals = 1;
}

bool sl_column_guess_has_point(const sl_column_guess *guess) {
    return guess->kinds & KIND_DOUBLE && guess->ungrouped;
}

/* A number of up to 15 digits that is stored as a double, and whose text has no more bytes than
 * this, can also be stored as a decimal128. */
#define DECIMAL_SURELY 32

/* The types that store a number without loss, of `left`. */
static uint32_t number_kinds(sl_text value, uint32_t left, sl_number_facts *facts) {
    uint32_t kinds = 0;
    int64_t whole;
    double number;
    uint8_t room[16];
    sl_number_shape shape = {.digits = 0};
    if (left & KIND_INT && sl_convert_whole(value.bytes, value.length, &whole))
        kinds |= KIND_INT;
    if (kinds && value.length <= 15) { /* whole numbers of 15 digits are stored without loss */
        facts->finite = facts->few_digits = true;
        return left & KIND_NUMBERS;
    }
    const bool is_number = sl_number_shape_read(value, &shape);
    if (left & KIND_DOUBLE && (sl_convert_short_decimal(value.bytes, value.length, &number) ||
                               sl_convert_lossless(value.bytes, value.length, &number)))
        kinds |= KIND_DOUBLE;
    const bool few_digits = is_number && shape.digits <= 15;
    const bool surely = few_digits && kinds && value.length <= DECIMAL_SURELY;
    if (left & KIND_DECIMAL &&
        (is_number ? surely || sl_bson_put_decimal(room, value.bytes, value.length)
                   : is_decimal_word(value)))
        kinds |= KIND_DECIMAL;
    if (kinds == 0)
        return 0;
    facts->finite = facts->finite || is_number;
    facts->few_digits = facts->few_digits || few_digits;
    facts->coded = facts->coded || shape.coded;
    facts->pointed = facts->pointed || shape.point || shape.printed || !is_number;
    const bool zero = value.bytes[value.length - 1] == '0';
    if (is_number && shape.fraction > zero) { /* 4.0 is printed for 4 */
        const size_t digits = shape.digits - shape.fraction;
        const bool below_1 = digits <= 1 && !(value.bytes[value.bytes[0] == '-'] > '0');
        const unsigned fraction = shape.fraction < 7 ? (unsigned)shape.fraction : 7;
        facts->fractions[zero][below_1 ? 0 : digits < 3 ? digits : 3] |= (uint8_t)(1u << fraction);
    }
    return kinds;
}

/* Removes the forms in which the value is no number, and the types that do not store it. */
static void add_forms(sl_text value, sl_column_guess *guess) {
    char plain[SL_NUMBER_ROOM + SL_SLACK] = {0};
    uint32_t kinds[2] = {0, 0};
    sl_text number = is_whole(value) ? value : (sl_text){plain, 0};
    bool same[2] = {is_whole(value), is_whole(value)}; /* in all forms with this decimal mark */
    for (size_t i = 0; i < SL_NUMBER_FORMS - 1; i++) { /* the last one is part of the first */
        const sl_number_form *form = &sl_number_forms[i];
        const unsigned comma = form->decimal == ',';
        bool grouped = false;
        if (!(guess->forms >> i & 1))
            continue;
        /* All forms with the same decimal mark read the same number, or none. */
        if ((!same[comma] && !sl_number_plain(form, value, plain, &number.length, &grouped)) ||
            !(kinds[comma] =
                  kinds[comma] ? kinds[comma]
                               : number_kinds(number, guess->form_kinds[comma], &guess->number))) {
            guess->forms &= (uint8_t) ~(1u << i);
            continue;
        }
        same[comma] = !grouped;
        guess->grouped |= (uint8_t)(grouped << i);
        guess->decimals |=
            (uint8_t)((number.bytes == plain && memchr(plain, '.', number.length)) << i);
    }
    for (unsigned k = 0; k < 2; k++)
        guess->form_kinds[k] &= kinds[k];
}

/* The types that store a value without loss, of those that stored all earlier values of the column.
 * The value is not missing. */
static uint32_t kinds_of(sl_text value, sl_column_guess *guess, const sl_notation *notation) {
    const uint32_t left = guess->kinds;
    uint32_t kinds = 0;
    int64_t whole;
    if (value.length > LONGEST) {
        guess->forms = 0;
        return 0;
    }
    if (left & KIND_NUMBERS)
        kinds |= number_kinds(value, left, &guess->number);
    const bool plain = is_whole(value);
    const size_t count = value.length - (*value.bytes == '-');
    guess->ungrouped = guess->ungrouped || (kinds & KIND_DOUBLE && !plain && !is_grouped(value));
    if (plain && (count > 1 || value.bytes[value.length - 1] != '0')) /* 0 has no fraction */
        guess->thousands |= count < 3    ? SL_THOUSANDS_FEW
                            : count == 3 ? SL_THOUSANDS_FEW | SL_THOUSANDS_THREE
                                         : SL_THOUSANDS_MANY;
    if (!plain && value.bytes[value.length - 1] == '0')
        guess->thousands |= SL_THOUSANDS_ZERO;
    if (guess->forms)
        add_forms(value, guess);
    guess->minus = guess->minus || value.bytes[value.length - 1] == '-';
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (left & flags[i].kind &&
            (flags[i].kind != KIND_LETTERS || (notation && notation->yes)) &&
            (is_word(value, flags[i].yes) || is_word(value, flags[i].no)))
            kinds |= flags[i].kind;
    }
    if (left & KIND_OBJECT) {
        const sl_text digits = object_digits(value);
        uint8_t id[12];
        if (digits.length < value.length && sl_bson_put_object_id(id, digits.bytes, digits.length))
            kinds |= KIND_OBJECT;
    }
    if (left & (KIND_ISO | KIND_CUT) && kinds == 0) {
        if (sl_convert_iso(value, SL_ZONE_NONE, false, &whole)) {
            kinds |= KIND_ISO | KIND_CUT;
            guess->date_time = guess->date_time || value.length > 10;
        } else if (sl_convert_iso(value, SL_ZONE_NONE, true, &whole)) {
            kinds |= KIND_CUT;
        }
    }
    if (left & (KIND_ISO_ZONED | KIND_ZONED_CUT) && kinds == 0) {
        if (sl_convert_iso(value, SL_ZONE_GIVEN, false, &whole))
            kinds |= KIND_ISO_ZONED | KIND_ZONED_CUT;
        else if (sl_convert_iso(value, SL_ZONE_GIVEN, true, &whole))
            kinds |= KIND_ZONED_CUT;
    }
    if (left & KIND_FORMATTED && (kinds & ~(uint32_t)(KIND_ISO | KIND_CUT)) == 0) {
        if (kinds & KIND_ISO && value.length == 10) /* YYYY-MM-DD, which fits no other format */
            guess->dates &= YEAR_MONTH_DAY;
        else
            guess->dates = may_be_date(value) ? formats_of(value, guess->dates) : 0;
        if (guess->dates >> PROVEN &&
            sl_convert_formatted(date_formats[__builtin_ctzll(guess->dates)], value, &whole) &&
            whole > guess->latest) {
            guess->latest = whole;
            sl_text_printable(value, guess->example, sizeof guess->example);
        }
        kinds |= guess->dates ? KIND_FORMATTED : 0;
    }
    return kinds;
}

/* Adds a set of formats to the sets of a column of dates in several formats. */
static void add_formats(sl_column_guess *guess, uint64_t formats) {
    size_t i = 0;
    while (i < SL_MIXED_FORMATS && (guess->mixed[i] & formats) == 0)
        i++;
    guess->undated = guess->undated || i == SL_MIXED_FORMATS;
    if (i < SL_MIXED_FORMATS)
        guess->mixed[i] &= formats;
}

/* Adds the formats of a value to those of the column. A value usually fits the first set. */
static void add_date(sl_column_guess *guess, sl_text value) {
    uint64_t formats = 0;
    for (size_t i = 0; i < SL_MIXED_FORMATS && formats == 0 && may_be_date(value); i++)
        formats = formats_of(value, guess->mixed[i]);
    add_formats(guess, formats);
}

/* Adds which decimal mark the value has, if it is a number: 1.000,50, but not 1,000. */
static void add_mark(sl_column_guess *guess, sl_text value) {
    char plain[SL_NUMBER_ROOM];
    bool fits[2] = {false, false};
    double number;
    if (is_whole(value)
            ? value.length <= LONGEST /* a number with either mark */
            : guess->marked[0] && sl_convert_short_decimal(value.bytes, value.length, &number))
        return;
    for (size_t i = 0; i < SL_NUMBER_FORMS - 1 && value.length <= LONGEST; i++) {
        const bool comma = sl_number_forms[i].decimal == ',';
        size_t length;
        bool grouped;
        fits[comma] =
            fits[comma] || (sl_number_plain(&sl_number_forms[i], value, plain, &length, &grouped) &&
                            (sl_convert_short_decimal(plain, length, &number) ||
                             sl_convert_double(plain, length, &number)));
    }
    guess->unnumbered = !fits[0] && !fits[1];
    for (unsigned k = 0; k < 2; k++)
        guess->marked[k] = guess->marked[k] || (fits[k] && !fits[!k]);
}

void sl_column_guess_add(sl_column_guess *guess, sl_text value, const sl_notation *notation) {
    double number;
    bool word = value.length == 0 || !notation || notation->words;
    if (word && sl_notation_knows_null(notation) &&
        sl_convert_word(value.bytes, value.length, &number)) /* NULL is known, so NaN is a value */
        word = false;
    uint16_t words;
    if (word && is_missing(value, &words)) {
        guess->missing++;
        guess->words |= words;
        return;
    }
    guess->values++;
    if (!guess->undated)
        add_date(guess, value);
    if (!guess->unnumbered)
        add_mark(guess, value);
    guess->comma = guess->comma || is_amount_with_comma(value);
    if (guess->kinds == 0 && guess->forms == 0)
        return;
    uint32_t kinds = guess->kinds & kinds_of(value, guess, notation);
    if (kinds != guess->kinds)
        sl_text_printable(value, guess->example, sizeof guess->example);
    guess->kinds = kinds;
}

void sl_column_guess_add_text(sl_column_guess *guess) {
    guess->values++;
    guess->undated = guess->unnumbered = true;
    guess->kinds = guess->forms = 0;
}

void sl_column_guess_merge(sl_column_guess *guess, const sl_column_guess *other) {
    uint32_t kinds = guess->kinds & other->kinds;
    if (kinds != guess->kinds || other->latest > guess->latest)
        memcpy(guess->example, other->example, sizeof guess->example);
    guess->latest = other->latest > guess->latest ? other->latest : guess->latest;
    guess->values += other->values;
    guess->missing += other->missing;
    guess->words |= other->words;
    guess->kinds = kinds;
    guess->dates &= other->dates;
    if (guess->dates == 0)
        guess->kinds &= ~(uint32_t)KIND_FORMATTED;
    guess->undated = guess->undated || other->undated;
    for (size_t i = 0; i < SL_MIXED_FORMATS && other->mixed[i] != UINT64_MAX; i++)
        add_formats(guess, other->mixed[i]);
    guess->unnumbered = guess->unnumbered || other->unnumbered;
    for (unsigned k = 0; k < 2; k++)
        guess->marked[k] = guess->marked[k] || other->marked[k];
    for (size_t k = 0; k < sizeof guess->number; k++) /* flags and bit sets */
        ((uint8_t *)&guess->number)[k] |= ((const uint8_t *)&other->number)[k];
    guess->forms &= other->forms;
    guess->grouped |= other->grouped;
    guess->decimals |= other->decimals;
    for (unsigned k = 0; k < 2; k++)
        guess->form_kinds[k] &= other->form_kinds[k];
    guess->date_time = guess->date_time || other->date_time;
    guess->comma = guess->comma || other->comma;
    guess->ungrouped = guess->ungrouped || other->ungrouped;
    guess->minus = guess->minus || other->minus;
    guess->thousands |= other->thousands;
}

/* The format of the set; NULL if it is empty, or if the order of day and month is not certain. */
static const char *only_format(uint64_t dates) {
    for (size_t i = 0; i < PROVEN; i++) {
        if (!(dates >> i & 1))
            continue;
        size_t other = i / ORDER_ROWS % 2 == 0 ? i + ORDER_ROWS : i - ORDER_ROWS;
        return i < PAIRED && dates >> other & 1 ? NULL : date_formats[i];
    }
    return NULL;
}

/* The form of a column of numbers that is proven: a value has it in no other way. NULL: there is
 * none, or the numbers have the usual form. */
static const sl_number_form *form_of(const sl_column_guess *guess, uint32_t *kinds) {
    uint8_t commas = 0, points = 0;
    if (guess->kinds & KIND_NUMBERS)
        return NULL;
    for (size_t i = 0; i < SL_NUMBER_FORMS - 1; i++)
        *(sl_number_forms[i].decimal == ',' ? &commas : &points) |=
            guess->forms & (uint8_t)(1u << i);
    const uint8_t left = commas | points;
    const size_t first = left ? (size_t)__builtin_ctz(left) : 0;
    if (!left || (commas && points)) /* 1,234 */
        return NULL;
    /* Groups alone are proven only between commas: 100.200.300 may be a code. */
    const bool proven =
        !(guess->grouped & left) || guess->decimals & left || sl_number_forms[first].group == ',';
    if (!proven)
        return NULL;
    *kinds = guess->form_kinds[commas != 0];
    return &sl_number_forms[guess->grouped & left || points ? first : SL_NUMBER_FORMS - 1];
}

/* Programs write fractions with a fixed number of digits, or without zeros at the end, and some
 * with a fixed number of digits in all. So 3.1 and 3.10 in one column are codes, which must not
 * become one number, unless there are numbers with more digits, as of coordinates and averages. */
static bool is_of_codes(const sl_number_facts *facts) {
    bool codes = false;
    for (size_t k = 0; k < 4; k++) {
        const unsigned zeros = facts->fractions[1][k], all = facts->fractions[0][k] | zeros;
        if (all >= 1u << 4)
            return false;
        codes = codes || (k > 0 && zeros > (all & -all));
    }
    return codes;
}

static uint32_t kind_of(sl_type type) {
    return type == SL_TYPE_DOUBLE ? KIND_DOUBLE : type == SL_TYPE_DECIMAL ? KIND_DECIMAL : KIND_INT;
}

/* Do the numbers of the column have its type? Sets column->format; NULL: the usual form. */
static bool infer_number(const sl_column_guess *guess, sl_schema_column *column) {
    const sl_number_facts *facts = &guess->number;
    uint32_t kinds = guess->kinds, kind = kind_of(column->type);
    const sl_number_form *form = form_of(guess, &kinds);
    column->format = form ? form->example : NULL;
    if (kind == KIND_INT)
        return kinds & KIND_INT;
    bool numbers = kinds & kind && facts->finite && (facts->pointed || !facts->coded) &&
                   ((form && (form->decimal == ',' || guess->grouped)) || !is_of_codes(facts));
    /* Whole numbers beyond 64 bits are codes if all of them are long. */
    return numbers && (kind == KIND_DOUBLE || facts->pointed || facts->few_digits);
}

static bool infer_flag(const sl_column_guess *guess, sl_schema_column *column) {
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (!(guess->kinds & flags[i].kind))
            continue;
        column->yes = flags[i].yes;
        column->no = flags[i].no;
        return true;
    }
    return false;
}

/* The format of a column whose values are dates in no form of ISO 8601; NULL: it is no such
 * column. `timed`: a format with a time is wanted, or one without. */
static const char *format_of(const sl_column_guess *guess, bool timed) {
    bool other = guess->kinds & KIND_FORMATTED && !(guess->kinds & (KIND_ISO | KIND_ISO_ZONED));
    const char *format = other ? only_format(guess->dates) : NULL;
    return format && (strchr(format, 'M') != NULL) == timed ? format : NULL;
}

static bool infer_date(const sl_column_guess *guess, sl_schema_column *column) {
    column->format = format_of(guess, false);
    return column->format || (guess->kinds & KIND_ISO && !guess->date_time);
}

static bool infer_datetime(const sl_column_guess *guess, sl_schema_column *column) {
    column->format = format_of(guess, true);
    if (guess->kinds & KIND_ISO && guess->date_time)
        column->zone = SL_CHOICE_NO;
    else if (!(guess->kinds & KIND_ISO) && guess->kinds & KIND_ISO_ZONED)
        column->zone = SL_CHOICE_YES;
    return column->format || column->zone != SL_CHOICE_UNSET;
}

static bool infer_object_id(const sl_column_guess *guess, sl_schema_column *column) {
    (void)column;
    return guess->kinds & KIND_OBJECT;
}

bool sl_column_guess_is_cut(const sl_column_guess *guess) {
    return guess->values > 0 && guess->kinds & (KIND_CUT | KIND_ZONED_CUT) &&
           !(guess->kinds & (KIND_ISO | KIND_ISO_ZONED | KIND_FORMATTED));
}

size_t sl_column_guess_readings(const sl_column_guess *guess, sl_schema_column types[SL_READINGS]) {
    size_t count = 0;
    /* The forms with a point: without groups of digits, no value has a comma. */
    const unsigned points = guess->forms & ~(unsigned)guess->grouped & 0x38;
    memset(types, 0, SL_READINGS * sizeof *types);
    if (guess->values == 0)
        return 0;
    for (size_t i = 0; i < FORMATS && guess->kinds & KIND_FORMATTED && count < SL_READINGS; i++) {
        if (!(guess->dates >> i & 1))
            continue;
        types[count].format = date_formats[i];
        types[count++].type = strchr(date_formats[i], 'M') ? SL_TYPE_DATETIME : SL_TYPE_DATE;
    }
    if (count == 0 && guess->kinds & (KIND_DOUBLE | KIND_DECIMAL) && is_of_codes(&guess->number))
        types[count++].type = guess->kinds & KIND_DOUBLE ? SL_TYPE_DOUBLE : SL_TYPE_DECIMAL;
    if (count > 0 || guess->kinds & KIND_NUMBERS)
        return count;
    for (size_t i = 0; i < SL_NUMBER_FORMS - 1 && count < SL_READINGS; i++) {
        const sl_number_form *form = &sl_number_forms[i];
        const uint32_t kinds = guess->form_kinds[form->decimal == ','];
        const bool grouped = guess->grouped >> i & 1;
        if (!(guess->forms >> i & 1) || !(kinds & (KIND_INT | KIND_DOUBLE)))
            continue;
        if (!grouped && form->decimal == ',' && points && !guess->minus)
            continue;
        if (!grouped && form->decimal == ',')
            form = &sl_number_forms[SL_NUMBER_FORMS - 1];
        else if (!grouped && !guess->minus)
            form = NULL;
        types[count].type = kinds & KIND_INT ? SL_TYPE_INT : SL_TYPE_DOUBLE;
        types[count].format = form ? form->example : NULL;
        /* Without fractions, 1 234.5 and 1 234,5 are one reading; several forms have no groups. */
        if (count == 0 || (types[0].type != types[1].type && types[0].format != types[1].format))
            count++;
    }
    return count;
}

void sl_column_reading_write(const sl_schema_column *type, const char *value, char *out,
                             size_t room) {
    static const sl_dialect plain = {0};
    char text[sizeof((sl_column_guess *)NULL)->example + SL_SLACK] = "";
    uint8_t element = (uint8_t)sl_column_types[type->type].bson, bytes[64] = {0};
    sl_schema_column column = *type;
    bool transcoded;
    int64_t whole;
    double number;
    snprintf(text, sizeof text - SL_SLACK + 1, "%s", value);
    column.minimum = INT64_MIN;
    column.maximum = INT64_MAX;
    const sl_value field = {.dialect = &plain,
                            .schema = &column,
                            .field = sl_text_of(text),
                            .type = &element,
                            .transcoded = &transcoded};
    const uint8_t *end = sl_column_types[type->type].put(&field, bytes);
    *out = '\0';
    if (!end)
        return;
    memcpy(&whole, bytes, 8);
    memcpy(&number, bytes, 8);
    const time_t seconds = (time_t)(whole / 1000 - (whole % 1000 < 0));
    struct tm parts;
    if (element == SL_BSON_DATE && gmtime_r(&seconds, &parts))
        strftime(out, room,
                 type->format && strstr(type->format, "%y")
                     ? " (as %Y-%m-%d; years 69 to 99 are 19xx, others 20xx)"
                 : seconds % 86400 ? " (as %Y-%m-%d %H:%M:%S)"
                                   : " (as %Y-%m-%d)",
                 &parts);
    else if (element == SL_BSON_DOUBLE)
        sl_print_text(out, room, " (as %.15g)", number);
    else if (element == SL_BSON_INT64 || element == SL_BSON_INT32)
        sl_print_text(out, room, " (as %lld)",
                      element == SL_BSON_INT64 ? (long long)whole : (long long)(int32_t)whole);
}

static void set_text(sl_schema_column *column) {
    *column = (sl_schema_column){.name = column->name, .short_name = column->short_name};
}

static bool fits_date(const sl_column_guess *guess, const sl_schema_column *type) {
    for (size_t i = 0; type->format && i < FORMATS; i++) {
        if (strcmp(date_formats[i], type->format) == 0)
            return guess->kinds & KIND_FORMATTED && guess->dates >> i & 1;
    }
    if (type->zone == SL_CHOICE_YES)
        return guess->kinds & KIND_ISO_ZONED;
    return guess->kinds & KIND_ISO && (type->type == SL_TYPE_DATETIME || !guess->date_time);
}

static bool fits_number(const sl_column_guess *guess, const sl_schema_column *type) {
    const uint32_t kind = kind_of(type->type);
    const sl_number_form *form = sl_number_form_named(type->format);
    const size_t index = form ? (size_t)(form - sl_number_forms) % (SL_NUMBER_FORMS - 1) : 0;
    if (!form)
        return guess->kinds & kind;
    return guess->forms >> index & 1 && guess->form_kinds[form->decimal == ','] & kind;
}

bool sl_column_guess_fits(const sl_column_guess *guess, const sl_schema_column *type) {
    const sl_type_class class = sl_column_types[type->type].class;
    if (guess->values == 0)
        return true;
    for (size_t i = 0; type->type == SL_TYPE_FLAG && i < sizeof flags / sizeof flags[0]; i++) {
        if (strcmp(flags[i].yes, type->yes) == 0)
            return guess->kinds & flags[i].kind;
    }
    return class == SL_CLASS_NUMBERS         ? fits_number(guess, type)
           : class == SL_CLASS_DATES         ? fits_date(guess, type)
           : type->type == SL_TYPE_OBJECT_ID ? (guess->kinds & KIND_OBJECT) != 0
                                             : true;
}

void sl_column_guess_group(const sl_column_guess *guess, sl_schema_column *type) {
    const sl_number_form *form = sl_number_form_named(type->format);
    if (sl_column_types[type->type].class == SL_CLASS_NUMBERS &&
        form == &sl_number_forms[SL_NUMBER_FORMS - 1] && guess->grouped & 1)
        type->format = sl_number_forms[0].example;
}

bool sl_column_same_kind(const sl_schema_column *a, const sl_schema_column *b) {
    sl_type_class class = sl_column_types[a->type].class;
    const bool decimals = (a->type == SL_TYPE_DECIMAL) != (b->type == SL_TYPE_DECIMAL);
    return class == sl_column_types[b->type].class && !decimals &&
           (class != SL_CLASS_TEXT || a->type == b->type);
}

/* Writes a text that both formats read, as different dates; "" if there is none. */
static void write_ambiguous(const char *format, const char *other, char *out, size_t room) {
    const struct tm date = {.tm_year = 101, .tm_mon = 1, .tm_mday = 3};
    int64_t one, two;
    sl_text text = {out, strftime(out, room, format, &date)};
    if (!sl_convert_formatted(format, text, &one) || !sl_convert_formatted(other, text, &two) ||
        one == two)
        *out = '\0';
}

/* Writes how a schema declares a column of dates in several formats, with "or" between formats of
 * which one must be chosen: those that fit the same values, or read a text as different dates. */
static void write_mixed(const sl_column_guess *guess, char *out, size_t room) {
    uint64_t all = 0;
    size_t used, count = 0;
    bool timed = false;
    char text[LONGEST] = "";
    for (; count < SL_MIXED_FORMATS && guess->mixed[count] != UINT64_MAX; count++)
        all |= guess->mixed[count];
    for (size_t i = 0; i < FORMATS; i++)
        timed = timed || (all >> i & 1 && strchr(date_formats[i], 'M'));
    if (count < 2 || guess->undated)
        return;
    for (size_t k = 0; k + 1 < count; k++) {
        const uint64_t own = guess->mixed[k];
        for (size_t i = 0; i < FORMATS * FORMATS && !*text; i++) {
            if (own >> i / FORMATS & 1 && (all & ~own) >> i % FORMATS & 1)
                write_ambiguous(date_formats[i / FORMATS], date_formats[i % FORMATS], text,
                                sizeof text);
        }
    }
    used = sl_print_text(out, room, "type: %s, format: %s", timed ? "datetime" : "date",
                         *text ? "" : "[");
    for (size_t k = 0; k < count; k++) {
        const char *before = k == 0 ? "" : *text ? " or " : ", ";
        for (uint64_t left = guess->mixed[k]; left != 0; left &= left - 1, before = " or ")
            used += sl_print_text(out + used, room - used, "%s\"%s\"", before,
                                  date_formats[__builtin_ctzll(left)]);
    }
    if (*text)
        used += sl_print_text(out + used, room - used,
                              ", but never both in one schema: %s is another date in each. Files "
                              "of one format, loaded one by one, need no schema",
                              text);
    else
        used += sl_print_text(out + used, room - used, "]");
    if (used + 1 >= room) /* it may be cut */
        *out = '\0';
}

void sl_column_guess_decide(const sl_column_guess *guess, sl_schema_column *column) {
    set_text(column);
    column->lossless = true;
    column->missing = sl_missing_words;
    column->minimum = INT64_MIN;
    column->maximum = INT64_MAX;
    if (guess->values == 0)
        return;
    for (size_t i = 0; sl_column_types[i].word; i++) {
        column->type = (sl_type)i;
        if (sl_column_types[i].infer && sl_column_types[i].infer(guess, column)) {
            column->missing = sl_missing_words_of(column->type);
            return;
        }
        column->format = NULL;
    }
    set_text(column);
    write_mixed(guess, column->mixed, sizeof column->mixed);
    if (guess->kinds == 0 && guess->forms == 0 && !guess->unnumbered && guess->marked[0] &&
        guess->marked[1])
        snprintf(column->mixed, sizeof column->mixed,
                 "type: double, format: \"1.234,5\" or \"1,234.5\", one of them in each schema: "
                 "1,234 is another number in each. Files of one format, loaded one by one, need no "
                 "schema");
}

const char *sl_column_mixed_kind(const sl_schema_column *column) {
    return strncmp(column->mixed, "type: date", 10) == 0 ? "dates" : "numbers";
}

/* ---- columns that would have another type without a few values ---- */

/* A few values do not fit a type: at most this many, if `values` fit it. */
#define FEW_OF(values) ((values) / 20)
#define MISFITS_FOLLOWED 20u /* so many more are counted, because values that fit may follow */

static bool has_types(const sl_column_guess *guess, sl_rest_types types) {
    return types == SL_REST_USUAL   ? guess->kinds != 0
           : types == SL_REST_FORMS ? guess->forms != 0
                                    : !guess->undated;
}

/* The guess of a column, for these types only. */
static sl_column_guess restrict_guess(sl_column_guess guess, sl_rest_types types) {
    if (types != SL_REST_USUAL)
        guess.kinds = 0;
    if (types != SL_REST_FORMS)
        guess.forms = 0;
    guess.undated = guess.undated || types != SL_REST_MIXED;
    return guess;
}

/* Is it a number such as 007? Such values are codes, so the column is text for good. */
static bool is_digits(sl_text value) {
    size_t i = 0;
    while (i < value.length && sl_is_digit(value.bytes[i]))
        i++;
    return i > 0 && i == value.length;
}

bool sl_column_rest_add(sl_column_rest *rest, sl_rest_types types, const sl_column_guess *before,
                        const sl_column_guess *after, sl_text value, const sl_notation *notation,
                        bool text_only) {
    const bool first = rest->misfits == 0;
    if (after->values == before->values || rest->misfits == UINT64_MAX ||
        (first && has_types(after, types)))
        return true;
    if (!first && sl_text_equal(value, sl_text_of(rest->first))) {
        rest->misfits++;
        rest->same++;
        return true;
    }
    if (first) {
        rest->guess = restrict_guess(*before, types);
        sl_text_printable(value, rest->first, sizeof rest->first);
    } else if (!text_only) {
        sl_column_guess next = rest->guess;
        sl_column_guess_add(&next, value, notation);
        if (has_types(&next, types)) {
            rest->guess = next;
            return true;
        }
    }
    rest->misfits++;
    const bool numbers = types == SL_REST_FORMS || rest->guess.kinds & KIND_NUMBERS;
    if ((numbers && is_digits(value)) ||
        rest->misfits - rest->same > MISFITS_FOLLOWED + FEW_OF(rest->guess.values))
        rest->misfits = UINT64_MAX;
    return !first;
}

void sl_column_rest_merge(sl_column_rest *rest, sl_rest_types types, const sl_column_guess *guess,
                          const sl_column_rest *other, const sl_column_guess *other_guess) {
    const uint64_t misfits = rest->misfits, others = other->misfits;
    const bool alike = strcmp(rest->first, other->first) == 0;
    const uint64_t same = rest->same + other->same + (misfits && others && alike);
    sl_column_guess all = misfits ? rest->guess : restrict_guess(*guess, types);
    const sl_column_guess added = others ? other->guess : restrict_guess(*other_guess, types);
    sl_column_guess_merge(&all, &added);
    if (misfits == 0)
        *rest = *other;
    rest->guess = all;
    rest->misfits = misfits == UINT64_MAX || others == UINT64_MAX || !has_types(&all, types)
                        ? UINT64_MAX
                        : misfits + others;
    rest->same = misfits && others && !alike ? 0 : same;
}

bool sl_column_rest_decide(const sl_column_rest *rest, sl_schema_column *column) {
    const uint64_t misfits = rest->misfits - rest->same, values = rest->guess.values;
    const bool few = misfits <= FEW_OF(values) || (misfits <= 5 && misfits <= values / 10);
    if (misfits == 0 || !few || rest->misfits > values)
        return false;
    sl_column_guess_decide(&rest->guess, column);
    return column->type != SL_TYPE_TEXT || column->mixed[0];
}

const char *sl_column_type_write(const sl_schema_column *column, char out[SL_TYPE_ROOM]) {
    const char *name = sl_column_types[column->type].word;
    if (column->type == SL_TYPE_TEXT)
        snprintf(out, SL_TYPE_ROOM, "%s", column->missing.count > 0 ? "empty" : "text");
    else if (column->type == SL_TYPE_FLAG)
        snprintf(out, SL_TYPE_ROOM, "%s %s %s", name, column->yes, column->no);
    else if (column->format)
        snprintf(out, SL_TYPE_ROOM, "%s %s", name, column->format);
    else
        snprintf(out, SL_TYPE_ROOM, "%s%s", name,
                 column->zone == SL_CHOICE_YES ? " with offset" : "");
    return out;
}

/* Sets what the words after the name of a type say. */
static bool read_details(const char *words, sl_schema_column *column) {
    const sl_column_type *type = &sl_column_types[column->type];
    for (size_t i = 0; type->has_words && i < sizeof flags / sizeof flags[0]; i++) {
        char both[16];
        snprintf(both, sizeof both, "%s %s", flags[i].yes, flags[i].no);
        if (strcmp(both, words) == 0) {
            column->yes = flags[i].yes;
            column->no = flags[i].no;
            return true;
        }
    }
    if (type->has_words || (!type->infer && column->type != SL_TYPE_INT64))
        return false;
    if (column->type == SL_TYPE_DATETIME)
        column->zone = *words == '\0' ? SL_CHOICE_NO : SL_CHOICE_UNSET;
    if (*words == '\0')
        return true;
    if (column->type == SL_TYPE_DATETIME && strcmp(words, "with offset") == 0) {
        column->zone = SL_CHOICE_YES;
        return true;
    }
    const sl_number_form *form = sl_number_form_named(words);
    column->format = form && type->class == SL_CLASS_NUMBERS ? form->example : NULL;
    for (size_t i = 0; i < FORMATS && type->class == SL_CLASS_DATES && !column->format; i++) {
        if (strcmp(date_formats[i], words) == 0)
            column->format = date_formats[i];
    }
    return column->format != NULL;
}

bool sl_column_type_read(const char *text, sl_schema_column *column) {
    const size_t length = strcspn(text, " ");
    const char *words = text + length + (text[length] == ' ');
    const bool is_text = strcmp(text, sl_column_types[SL_TYPE_TEXT].word) == 0;
    set_text(column);
    if (is_text)
        return true;
    column->lossless = true;
    column->missing = sl_missing_words;
    column->minimum = INT64_MIN;
    column->maximum = INT64_MAX;
    if (strcmp(text, "empty") == 0)
        return true;
    for (size_t i = 0; sl_column_types[i].word; i++) {
        if (!sl_text_equal((sl_text){text, length}, sl_text_of(sl_column_types[i].word)))
            continue;
        column->type = (sl_type)i;
        column->missing = sl_missing_words_of(column->type);
        return read_details(words, column);
    }
    return false;
}

sl_type_class sl_column_class(const sl_schema_column *column) {
    sl_type_class class = sl_column_types[column->type].class;
    return column->type == SL_TYPE_TEXT && column->missing.count > 0 ? SL_CLASS_EMPTY : class;
}

sl_look sl_value_look(sl_text value) {
    sl_column_guess guess = SL_COLUMN_GUESS;
    bool digit = false, letter = false;
    double number;
    sl_column_guess_add(&guess, value, NULL);
    if (guess.values == 0 || sl_convert_word(value.bytes, value.length, &number))
        return SL_LOOKS_MISSING;
    for (size_t i = 0; i < value.length; i++) {
        uint8_t byte = (uint8_t)value.bytes[i];
        digit = digit || sl_is_digit(value.bytes[i]);
        letter = letter || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') || byte >= 0x80;
    }
    return guess.kinds != 0 || (digit && !letter) ? SL_LOOKS_TYPED : SL_LOOKS_WORD;
}

/* ---- the table ---- */

#define STEPS(usual, strict) .step = SL_STEP_##usual, .strict_step = SL_STEP_##strict
#define SLOW STEPS(UNUSUAL, UNUSUAL)

/* clang-format off */
const sl_column_type sl_column_types[] = {
    [SL_TYPE_TEXT] = {"text", SL_BSON_TEXT, 8, STEPS(TEXT, TEXT), SL_CLASS_TEXT, .any_text = true, .empty = true,
                      .put = put_text, .explain = explain_text},
    [SL_TYPE_INT] = {"int", SL_BSON_INT32, 8, STEPS(INT, WHOLE), SL_CLASS_NUMBERS,
                     .has_format = true, .put = put_int, .explain = explain_int,
                     .infer = infer_number},
    [SL_TYPE_DOUBLE] = {"double", SL_BSON_DOUBLE, 8, STEPS(DOUBLE, DOUBLE), SL_CLASS_NUMBERS,
                        .has_format = true, .put = put_double, .explain = explain_fraction,
                        .infer = infer_number},
    [SL_TYPE_DATE] = {"date", SL_BSON_DATE, 8, STEPS(DATE, DATE), SL_CLASS_DATES,
                      .has_format = true, .put = put_date, .explain = explain_date,
                      .infer = infer_date},
    [SL_TYPE_DATETIME] = {"datetime", SL_BSON_DATE, 8, STEPS(DATETIME, ISO), SL_CLASS_DATES,
                          .has_format = true, .put = put_datetime, .explain = explain_date,
                          .infer = infer_datetime},
    [SL_TYPE_CODE] = {"code", SL_BSON_INT32, 8, STEPS(CODE, CODE), SL_CLASS_TEXT, .any_text = true, .empty = true,
                      .put = put_code, .explain = explain_text},
    [SL_TYPE_FLAG] = {"flag", SL_BSON_BOOL, 8, SLOW, SL_CLASS_FLAGS, .has_words = true,
                      .put = put_flag, .explain = explain_flag, .infer = infer_flag},
    [SL_TYPE_DECIMAL] = {"decimal128", SL_BSON_DECIMAL, 16, SLOW, SL_CLASS_NUMBERS,
                         .has_format = true, .put = put_decimal, .explain = explain_fraction,
                         .infer = infer_number},
    [SL_TYPE_OBJECT_ID] = {"objectid", SL_BSON_OBJECT_ID, 12, SLOW, SL_CLASS_TEXT, .put = put_object_id,
                           .infer = infer_object_id},
    [SL_TYPE_INT64] = {"int64", SL_BSON_INT64, 8, SLOW, SL_CLASS_NUMBERS, .has_format = true,
                       .put = put_int64},
    {"uuid", SL_BSON_BINARY, SL_BSON_VALUE_MAX, SLOW, SL_CLASS_TEXT, .put = put_uuid},
    {"json", SL_BSON_DOCUMENT, 16, SLOW, SL_CLASS_TEXT, .grows = true, .put = sl_put_json},
    {"array", SL_BSON_ARRAY, 16, SLOW, SL_CLASS_TEXT, .grows = true, .has_format = true,
     .put = sl_put_array},
    {"bool", SL_BSON_BOOL, 8, SLOW, SL_CLASS_FLAGS, .put = sl_put_bool},
    {"base32", SL_BSON_BINARY, 8, SLOW, SL_CLASS_TEXT, .put = sl_put_base32},
    {"hex", SL_BSON_BINARY, 8, SLOW, SL_CLASS_TEXT, .has_format = true, .put = sl_put_hex},
    {"base64", SL_BSON_BINARY, 8, SLOW, SL_CLASS_TEXT, .put = sl_put_base64},
    {"binary", SL_BSON_BINARY, 8, SLOW, SL_CLASS_TEXT, .empty = true, .put = sl_put_raw},
    {"longitude", SL_BSON_DOUBLE, 8, SLOW, SL_CLASS_TEXT, SL_AXIS_LONGITUDE, .put = put_degrees},
    {"latitude", SL_BSON_DOUBLE, 8, SLOW, SL_CLASS_TEXT, SL_AXIS_LATITUDE, .put = put_degrees},
    {0},
};
/* clang-format on */

bool sl_column_type_named(const char *word, sl_type *type) {
    static const char *const others[][2] = {{"decimal", "decimal128"}, /* words of servers */
                                            {"long", "int64"},
                                            {"boolean", "bool"},
                                            {"string", "text"},
                                            {"objectId", "objectid"}};
    sl_text text = {word, strcspn(word, ":")};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        text = sl_text_equal(text, sl_text_of(others[i][0])) ? sl_text_of(others[i][1]) : text;
    for (size_t i = 0; sl_column_types[i].word; i++) {
        if (sl_text_equal(text, sl_text_of(sl_column_types[i].word))) {
            *type = (sl_type)i;
            return true;
        }
    }
    return false;
}

const char *sl_column_type_list(char *out, size_t room) {
    size_t used = 0;
    for (size_t i = 0; sl_column_types[i].word; i++)
        used += sl_print_text(out + used, room - used, "%s%s",
                              i == 0                        ? "a type: "
                              : sl_column_types[i + 1].word ? ", "
                                                            : " or ",
                              sl_column_types[i].word);
    return out;
}

bool sl_column_format_valid(const sl_schema_column *column) {
    const sl_column_type *type = &sl_column_types[column->type];
    sl_type element;
    if (!type->has_format)
        return false;
    if (type->class == SL_CLASS_DATES)
        return sl_date_format_valid(column->format);
    if (type->class == SL_CLASS_NUMBERS)
        return sl_number_form_named(column->format) != NULL;
    if (!type->grows)
        return strcmp(column->format, "\\x") == 0;
    return sl_column_type_named(column->format, &element) && !sl_column_types[element].grows &&
           !sl_column_types[element].has_words && sl_column_types[element].axis == SL_AXIS_NONE;
}
