/* SPDX-License-Identifier: Apache-2.0 */
/* The table of column types, and inference; see column_types.h. */
#include "column_types.h"
#include "convert.h"
#include "fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

static uint8_t *put_int(const sl_value *v, uint8_t *to) {
    const sl_schema_column *schema = v->schema;
    uint64_t digits;
    int64_t whole;
    if (!schema->lossless && schema->minimum <= 0 && schema->maximum >= 0 &&
        sl_convert_digits(v->field.bytes, v->field.length, &digits) &&
        digits <= (uint64_t)schema->maximum)
        return put_narrow(v, to, (int64_t)digits);
    bool fits = schema->lossless ? sl_convert_whole(v->field.bytes, v->field.length, &whole)
                                 : convert_int(schema, v->field, &whole);
    return fits && whole >= schema->minimum && whole <= schema->maximum ? put_narrow(v, to, whole)
                                                                        : NULL;
}

static bool convert_double(const sl_schema_column *schema, sl_text field, double *value) {
    return sl_convert_short_decimal(field.bytes, field.length, value) ||
           (schema->lossless ? sl_convert_lossless : sl_convert_double)(field.bytes, field.length,
                                                                        value);
}

static uint8_t *put_double(const sl_value *v, uint8_t *to) {
    double value;
    return convert_double(v->schema, v->field, &value) ? sl_bson_put_double(to, value) : NULL;
}

static uint8_t *put_degrees(const sl_value *v, uint8_t *to, double greatest) {
    double value;
    return convert_double(v->schema, v->field, &value) && fabs(value) <= greatest
               ? sl_bson_put_double(to, value)
               : NULL;
}

static uint8_t *put_longitude(const sl_value *v, uint8_t *to) {
    return put_degrees(v, to, 180);
}

static uint8_t *put_latitude(const sl_value *v, uint8_t *to) {
    return put_degrees(v, to, 90);
}

static uint8_t *put_date(const sl_value *v, uint8_t *to) {
    const char *format = v->schema->format;
    int64_t value = 0;
    bool fits = format ? sl_convert_formatted(format, v->field, &value) && value % SL_DAY_MS == 0
                       : sl_convert_date(v->field.bytes, v->field.length, &value);
    return fits ? sl_bson_put_int64(to, value) : NULL;
}

static bool convert_datetime(const sl_schema_column *schema, sl_text field, int64_t *value) {
    static const sl_zone zones[] = {SL_ZONE_ANY, SL_ZONE_NONE, SL_ZONE_GIVEN};
    if (schema->format)
        return sl_convert_formatted(schema->format, field, value);
    if (!schema->lossless && schema->zone == SL_CHOICE_UNSET &&
        sl_convert_datetime(field.bytes, field.length, value))
        return true;
    return sl_convert_iso(field, zones[schema->zone], value);
}

static uint8_t *put_datetime(const sl_value *v, uint8_t *to) {
    int64_t value;
    return convert_datetime(v->schema, v->field, &value) ? sl_bson_put_int64(to, value) : NULL;
}

static uint8_t *put_flag(const sl_value *v, uint8_t *to) {
    *to = is_word(v->field, v->schema->yes);
    return *to || is_word(v->field, v->schema->no) ? to + 1 : NULL;
}

static uint8_t *put_decimal(const sl_value *v, uint8_t *to) {
    return sl_bson_put_decimal(to, v->field.bytes, v->field.length);
}

static uint8_t *put_object_id(const sl_value *v, uint8_t *to) {
    return sl_bson_put_object_id(to, v->field.bytes, v->field.length);
}

static uint8_t *put_uuid(const sl_value *v, uint8_t *to) {
    return sl_bson_put_uuid(to, v->field.bytes, v->field.length);
}

/* ---- reasons for refusing a field ---- */

static void explain_text(const sl_schema_column *schema, sl_text field, char *out, size_t room) {
    (void)schema;
    sl_explain_text(field, out, room);
}

static void explain_int(const sl_schema_column *schema, sl_text field, char *out, size_t room) {
    sl_explain_integer(field, schema->minimum, schema->maximum, out, room);
}

static void explain_double(const sl_schema_column *schema, sl_text field, char *out, size_t room) {
    (void)schema;
    sl_explain_double(field, out, room);
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
};

static const struct {
    const char *yes, *no;
    uint32_t kind;
} flags[] = {
    {"true", "false", KIND_LOWER}, {"True", "False", KIND_TITLE}, {"TRUE", "FALSE", KIND_UPPER}};

#define LONGEST 48 /* bytes of a value that is not text */

static const char *const missing_words[] = {"-",    "NA",  "N/A", "n/a", "null",
                                            "NULL", "NaN", "nan", "\\N"};
const sl_words sl_missing_words = {(const char **)missing_words,
                                   sizeof missing_words / sizeof missing_words[0]};

#define TIMES(day) day, day " %H:%M", day " %H:%M:%S"
#define HALF_DAYS(day) day " %I:%M %p", day " %I:%M:%S %p"
#define BOTH_ORDERS(separator)                                                                     \
    TIMES("%d" separator "%m" separator "%Y"), HALF_DAYS("%d" separator "%m" separator "%Y"),      \
        TIMES("%m" separator "%d" separator "%Y"), HALF_DAYS("%m" separator "%d" separator "%Y")

/* The first PAIRED rows are in pairs: the format of such a row and the format ORDER_ROWS after or
 * before it differ only in the order of day and month. */
static const char *const date_formats[] = {
    BOTH_ORDERS("/"),           BOTH_ORDERS("."),          BOTH_ORDERS("-"),
    TIMES("%Y-%m-%d"),          TIMES("%d-%b-%Y"),         TIMES("%d %b %Y"),
    TIMES("%d/%b/%Y"),          TIMES("%b %d, %Y"),        TIMES("%b %d %Y"),
    HALF_DAYS("%d-%b-%Y"),      HALF_DAYS("%b %d, %Y"),    TIMES("%Y/%m/%d"),
    "%a, %d %b %Y %H:%M:%S %z", "%a %b %d %H:%M:%S %z %Y", "%d/%b/%Y:%H:%M:%S %z",
};
#define FORMATS (sizeof date_formats / sizeof date_formats[0])
#define ORDER_ROWS 5u
#define PAIRED (6u * ORDER_ROWS)
/* The set of the format %Y-%m-%d, for days and months of one digit: ISO 8601 is preferred. */
#define YEAR_MONTH_DAY (UINT64_C(1) << PAIRED)
_Static_assert(FORMATS <= 64, "the formats fit into a bit set");

static bool is_missing(sl_text value) {
    if (value.length == 0)
        return true;
    if (value.length > 4 ||
        sl_is_digit(*value.bytes)) /* no word is longer, or begins with a digit */
        return false;
    for (size_t i = 0; i < sl_missing_words.count; i++) {
        if (*value.bytes == *sl_missing_words.words[i] && is_word(value, sl_missing_words.words[i]))
            return true;
    }
    return false;
}

/* Does the value have the digits of year and day that every format needs? Most text is excluded
 * here. */
static bool may_be_date(sl_text value) {
    size_t digits = 0;
    for (size_t i = 0; i < value.length; i++)
        digits += sl_is_digit(value.bytes[i]);
    return value.length >= 8 && digits >= 5;
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
    return commas == 1 && after > 0 && after != 3 && value.bytes[0] != ',';
}

/* Is it a number such as 12.500, of one to three digits before the point and three after it? */
static bool is_grouped(sl_text value) {
    size_t sign = *value.bytes == '-';
    return value.length >= sign + 5 && value.length <= sign + 7 &&
           value.bytes[value.length - 4] == '.' && value.bytes[sign] != '0';
}

bool sl_column_guess_is_grouped(const sl_column_guess *guess) {
    return guess->kinds & KIND_DOUBLE && !(guess->kinds & KIND_INT) && !guess->ungrouped;
}

/* The types that store a value without loss, of those that stored all earlier values of the column.
 * The value is not missing. */
static uint32_t kinds_of(sl_text value, sl_column_guess *guess) {
    const uint32_t left = guess->kinds;
    uint32_t kinds = 0;
    int64_t whole;
    double number;
    if (value.length > LONGEST)
        return 0;
    if (left & KIND_INT && sl_convert_whole(value.bytes, value.length, &whole))
        kinds |= KIND_INT;
    if (left & KIND_DOUBLE && kinds & KIND_INT && value.length <= 15) {
        kinds |= KIND_DOUBLE; /* whole numbers of 15 digits are stored without loss */
        guess->finite = true;
    } else if (left & KIND_DOUBLE &&
               (sl_convert_short_decimal(value.bytes, value.length, &number) ||
                sl_convert_lossless(value.bytes, value.length, &number))) {
        kinds |= KIND_DOUBLE;
        guess->finite = guess->finite || isfinite(number);
        guess->ungrouped = guess->ungrouped || !is_grouped(value);
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (left & flags[i].kind && (is_word(value, flags[i].yes) || is_word(value, flags[i].no)))
            kinds |= flags[i].kind;
    }
    if (left & KIND_ISO && kinds == 0 && sl_convert_iso(value, SL_ZONE_NONE, &whole)) {
        kinds |= KIND_ISO;
        guess->date_time = guess->date_time || value.length > 10;
    }
    if (left & KIND_ISO_ZONED && kinds == 0 && sl_convert_iso(value, SL_ZONE_GIVEN, &whole))
        kinds |= KIND_ISO_ZONED;
    if (left & KIND_FORMATTED && (kinds & ~(uint32_t)KIND_ISO) == 0) {
        if (kinds & KIND_ISO && value.length == 10) /* YYYY-MM-DD, which fits no other format */
            guess->dates &= YEAR_MONTH_DAY;
        else
            guess->dates = may_be_date(value) ? formats_of(value, guess->dates) : 0;
        kinds |= guess->dates ? KIND_FORMATTED : 0;
    }
    return kinds;
}

void sl_column_guess_add(sl_column_guess *guess, sl_text value) {
    if (is_missing(value)) {
        guess->missing++;
        return;
    }
    guess->values++;
    if (guess->kinds == 0)
        return;
    uint32_t kinds = guess->kinds & kinds_of(value, guess);
    if (kinds != guess->kinds)
        sl_text_printable(value, guess->example, sizeof guess->example);
    guess->kinds = kinds;
    if (kinds == 0)
        guess->comma = sl_has_decimal_comma(value);
}

void sl_column_guess_merge(sl_column_guess *guess, const sl_column_guess *other) {
    uint32_t kinds = guess->kinds & other->kinds;
    if (kinds != guess->kinds)
        memcpy(guess->example, other->example, sizeof guess->example);
    guess->values += other->values;
    guess->missing += other->missing;
    guess->kinds = kinds;
    guess->dates &= other->dates;
    if (guess->dates == 0)
        guess->kinds &= ~(uint32_t)KIND_FORMATTED;
    guess->finite = guess->finite || other->finite;
    guess->date_time = guess->date_time || other->date_time;
    guess->comma = guess->comma || other->comma;
    guess->ungrouped = guess->ungrouped || other->ungrouped;
}

/* The format of the set; NULL if it is empty, or if the order of day and month is not certain. */
static const char *only_format(uint64_t dates) {
    for (size_t i = 0; i < FORMATS; i++) {
        if (!(dates >> i & 1))
            continue;
        size_t other = i / ORDER_ROWS % 2 == 0 ? i + ORDER_ROWS : i - ORDER_ROWS;
        return i < PAIRED && dates >> other & 1 ? NULL : date_formats[i];
    }
    return NULL;
}

static bool infer_int(const sl_column_guess *guess, sl_schema_column *column) {
    (void)column;
    return guess->kinds & KIND_INT;
}

static bool infer_double(const sl_column_guess *guess, sl_schema_column *column) {
    (void)column;
    return guess->kinds & KIND_DOUBLE && guess->finite;
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

bool sl_column_guess_fits(const sl_column_guess *guess, const sl_schema_column *type) {
    switch (type->type) {
    case SL_TYPE_INT:
        return guess->values == 0 || guess->kinds & KIND_INT;
    case SL_TYPE_DOUBLE:
        return guess->values == 0 || guess->kinds & KIND_DOUBLE;
    case SL_TYPE_DATE:
    case SL_TYPE_DATETIME:
        return guess->values == 0 || fits_date(guess, type);
    case SL_TYPE_FLAG:
        for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
            if (strcmp(flags[i].yes, type->yes) == 0)
                return guess->values == 0 || guess->kinds & flags[i].kind;
        }
        return false;
    default: /* text */
        return true;
    }
}

bool sl_column_same_kind(const sl_schema_column *a, const sl_schema_column *b) {
    sl_type_class class = sl_column_types[a->type].class;
    return class == sl_column_types[b->type].class &&
           (class != SL_CLASS_TEXT || a->type == b->type);
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
        if (sl_column_types[i].infer && sl_column_types[i].infer(guess, column)) {
            column->type = (sl_type)i;
            return;
        }
    }
    set_text(column);
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

/* Sets the type of the column. Is `text` its name? */
static bool decides(const sl_column_guess *guess, const char *text, sl_schema_column *column) {
    char words[SL_TYPE_ROOM];
    sl_column_guess_decide(guess, column);
    return strcmp(sl_column_type_write(column, words), text) == 0;
}

/* There are few types, so the type with this name is found by trying all. */
bool sl_column_type_read(const char *text, sl_schema_column *column) {
    static const uint32_t kinds[] = {KIND_INT,   KIND_DOUBLE, KIND_LOWER,    KIND_TITLE,
                                     KIND_UPPER, KIND_ISO,    KIND_ISO_ZONED};
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof kinds[0]; i++) {
        sl_column_guess guess = {
            .values = 1, .kinds = kinds[i / 2], .finite = true, .date_time = i % 2};
        if (decides(&guess, text, column))
            return true;
    }
    for (size_t i = 0; i < FORMATS; i++) {
        sl_column_guess guess = {.values = 1, .kinds = KIND_FORMATTED, .dates = UINT64_C(1) << i};
        if (decides(&guess, text, column))
            return true;
    }
    if (decides(&(sl_column_guess){.values = 0}, text, column) || /* empty */
        decides(&(sl_column_guess){.values = 1}, text, column))   /* text */
        return true;
    for (size_t i = 0; sl_column_types[i].word; i++) {
        if (sl_text_equal((sl_text){text, strcspn(text, " ")}, sl_text_of(sl_column_types[i].word)))
            column->type = (sl_type)i;
    }
    return false;
}

sl_type_class sl_column_class(const sl_schema_column *column) {
    sl_type_class class = sl_column_types[column->type].class;
    return class == SL_CLASS_TEXT && column->missing.count > 0 ? SL_CLASS_EMPTY : class;
}

sl_look sl_value_look(sl_text value) {
    sl_column_guess guess = SL_COLUMN_GUESS;
    bool digit = false, letter = false;
    sl_column_guess_add(&guess, value);
    if (guess.values == 0)
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
    [SL_TYPE_TEXT] = {"text", SL_BSON_TEXT, 8, STEPS(TEXT, TEXT), SL_CLASS_TEXT, .any_text = true,
                      .put = put_text, .explain = explain_text},
    [SL_TYPE_INT] = {"int", SL_BSON_INT32, 8, STEPS(INT, WHOLE), SL_CLASS_NUMBERS,
                     .put = put_int, .explain = explain_int, .infer = infer_int},
    [SL_TYPE_DOUBLE] = {"double", SL_BSON_DOUBLE, 8, STEPS(DOUBLE, DOUBLE), SL_CLASS_NUMBERS,
                        .put = put_double, .explain = explain_double, .infer = infer_double},
    [SL_TYPE_DATE] = {"date", SL_BSON_DATE, 8, STEPS(DATE, DATE), SL_CLASS_DATES,
                      .has_format = true, .put = put_date, .explain = explain_date,
                      .infer = infer_date},
    [SL_TYPE_DATETIME] = {"datetime", SL_BSON_DATE, 8, STEPS(DATETIME, ISO), SL_CLASS_DATES,
                          .has_format = true, .put = put_datetime, .explain = explain_date,
                          .infer = infer_datetime},
    [SL_TYPE_CODE] = {"code", SL_BSON_INT32, 8, STEPS(CODE, CODE), SL_CLASS_TEXT, .any_text = true,
                      .put = put_code, .explain = explain_text},
    [SL_TYPE_FLAG] = {"flag", SL_BSON_BOOL, 8, SLOW, SL_CLASS_FLAGS, .has_words = true,
                      .put = put_flag, .explain = explain_flag, .infer = infer_flag},
    {"decimal128", SL_BSON_DECIMAL, 16, SLOW, SL_CLASS_TEXT, .put = put_decimal},
    {"objectid", SL_BSON_OBJECT_ID, 12, SLOW, SL_CLASS_TEXT, .put = put_object_id},
    {"uuid", SL_BSON_BINARY, SL_BSON_VALUE_MAX, SLOW, SL_CLASS_TEXT, .put = put_uuid},
    {"longitude", SL_BSON_DOUBLE, 8, SLOW, SL_CLASS_TEXT, SL_AXIS_LONGITUDE, .put = put_longitude},
    {"latitude", SL_BSON_DOUBLE, 8, SLOW, SL_CLASS_TEXT, SL_AXIS_LATITUDE, .put = put_latitude},
    {0},
};
/* clang-format on */
