/* SPDX-License-Identifier: Apache-2.0 */
/* The values of fields that are not on the fast path; see record.h. */
#include "record.h"

#include "column_types.h"
#include "convert.h"

#include <math.h>
#include <stdio.h>

bool sl_field_is_missing(const sl_schema_column *schema, sl_text field) {
    if (field.length == 0)
        return true;
    for (size_t i = 0; i < schema->missing.count; i++) {
        const char *word = schema->missing.words[i];
        size_t at = 0;
        while (at < field.length && word[at] == field.bytes[at] && word[at] != '\0')
            at++;
        if (at == field.length && word[at] == '\0')
            return true;
    }
    return false;
}

static bool is_word(sl_text field, const char *word) {
    return word && sl_text_equal(field, sl_text_of(word));
}

/* Converts an int that the fast converter refuses: negative, or with many digits. Leading zeros are
 * allowed up to ten digits, or up to the number of digits of the column's maximum. */
static bool unusual_int(const sl_schema_column *schema, sl_text field, int64_t *value) {
    char greatest[24];
    int digits = snprintf(greatest, sizeof greatest, "%lld", (long long)schema->maximum);
    size_t longest = digits > 10 ? (size_t)digits : 10;
    size_t sign = field.length > 0 && field.bytes[0] == '-';
    return field.length - sign <= longest && sl_convert_integer(field.bytes, field.length, value) &&
           *value >= schema->minimum && *value <= schema->maximum;
}

static bool convert_double(const sl_schema_column *schema, sl_text field, double *value) {
    return sl_convert_short_decimal(field.bytes, field.length, value) ||
           (schema->lossless ? sl_convert_lossless : sl_convert_double)(field.bytes, field.length,
                                                                        value);
}

/* Converts a date or datetime. */
static bool convert_date(const sl_schema_column *schema, sl_text field, int64_t *value) {
    static const sl_zone zones[] = {SL_ZONE_ANY, SL_ZONE_NONE, SL_ZONE_GIVEN};
    if (schema->format) /* a date has no time */
        return sl_convert_formatted(schema->format, field, value) &&
               (schema->type == SL_TYPE_DATETIME || *value % SL_DAY_MS == 0);
    if (schema->type == SL_TYPE_DATE)
        return sl_convert_date(field.bytes, field.length, value);
    if (!schema->lossless && schema->zone == SL_CHOICE_UNSET &&
        sl_convert_datetime(field.bytes, field.length, value))
        return true;
    return sl_convert_iso(field, zones[schema->zone], value);
}

static uint8_t *put_int(uint8_t *element, uint8_t *to, int64_t value) {
    bool narrow = value >= INT32_MIN && value <= INT32_MAX;
    *element = narrow ? SL_BSON_INT32 : SL_BSON_INT64;
    return narrow ? sl_bson_put_int32(to, (int32_t)value) : sl_bson_put_int64(to, value);
}

uint8_t *sl_put_careful_text(const sl_dialect *dialect, sl_text field, bool quoted, uint8_t *to,
                             bool *transcoded) {
    if (sl_text_is_plain(field.bytes, field.length) && !quoted)
        return sl_bson_put_text(to, field.bytes, field.length);
    if (memchr(field.bytes, '\0', field.length))
        return NULL;
    uint8_t *value = to + 4;
    const uint8_t escape = (uint8_t)dialect->escape, quote = (uint8_t)dialect->quote;
    if (sl_utf8_valid(field.bytes, field.length, NULL)) {
        to = sl_bson_copy(value, field.bytes, field.length);
    } else if (dialect->latin1) {
        to = sl_put_windows_1252(value, field.bytes, field.length);
        *transcoded = true;
    } else {
        return NULL;
    }
    if (quoted) { /* removes escapes: they are ASCII, so the transcoded text still has them */
        uint8_t *end = to;
        to = value;
        for (const uint8_t *from = value; from < end; from++) {
            bool escaped = escape && *from == escape;
            bool pair = from + 1 < end && ((escaped && (from[1] == quote || from[1] == escape)) ||
                                           (*from == quote && from[1] == quote));
            from += pair;
            *to++ = *from;
        }
    }
    *to++ = 0;
    sl_bson_put_int32(value - 4, (int32_t)(to - value));
    return to;
}

bool sl_leave_out(sl_parser *parser, size_t column) {
    if (parser->dialect->columns[column].schema.invalid != SL_INVALID_MISSING)
        return false;
    parser->left[parser->left_count++] = (uint16_t)column;
    return true;
}

uint8_t *sl_put_unusual(sl_parser *parser, size_t column, sl_text field, bool quoted, uint8_t *out,
                        bool *transcoded) {
    const sl_dialect *dialect = parser->dialect;
    const sl_schema_column *schema = &dialect->columns[column].schema;
    const sl_converter *converter = &dialect->converters[column];
    if (sl_field_is_missing(schema, field))
        return schema->required ? NULL : out;
    *out = (uint8_t)dialect->columns[column].type;
    memcpy(out + 1, dialect->columns[column].key, converter->prefix_length - 1);
    uint8_t *end = sl_put_value(dialect, column, field, quoted, out, out + converter->prefix_length,
                                transcoded);
    return end || !sl_leave_out(parser, column) ? end : out;
}

/* As sl_put_value, for a value that fits the column's type. */
static uint8_t *put_typed(const sl_dialect *dialect, size_t column, sl_text field, bool quoted,
                          uint8_t *out, uint8_t *to, bool *transcoded) {
    const sl_schema_column *schema = &dialect->columns[column].schema;
    const sl_converter *converter = &dialect->converters[column];
    int64_t whole;
    uint64_t digits;
    double value;
    switch (schema->type) {
    case SL_TYPE_CODE:
        if ((field.length == 1 || *field.bytes != '0') && /* 007 is a text */
            sl_convert_digits(field.bytes, field.length, &digits))
            return put_int(out, to, (int64_t)digits);
        *out = SL_BSON_TEXT;
        /* fall through */
    case SL_TYPE_TEXT:
        return sl_put_careful_text(dialect, field, quoted, to, transcoded);
    case SL_TYPE_INT:
        if (schema->lossless)
            return sl_convert_whole(field.bytes, field.length, &whole) &&
                           whole >= schema->minimum && whole <= schema->maximum
                       ? put_int(out, to, whole)
                       : NULL;
        if (sl_convert_digits(field.bytes, field.length, &digits) &&
            digits < converter->int64_limit)
            return put_int(out, to, (int64_t)digits);
        return unusual_int(schema, field, &whole) ? put_int(out, to, whole) : NULL;
    case SL_TYPE_DOUBLE:
        return convert_double(schema, field, &value) ? sl_bson_put_double(to, value) : NULL;
    case SL_TYPE_FLAG:
        *to = is_word(field, schema->yes);
        return *to || is_word(field, schema->no) ? to + 1 : NULL;
    case SL_TYPE_DATE:
    case SL_TYPE_DATETIME:
        return convert_date(schema, field, &whole) ? sl_bson_put_int64(to, whole) : NULL;
    case SL_TYPE_DECIMAL:
        return sl_bson_put_decimal(to, field.bytes, field.length);
    case SL_TYPE_OBJECT_ID:
        return sl_bson_put_object_id(to, field.bytes, field.length);
    case SL_TYPE_UUID:
        return sl_bson_put_uuid(to, field.bytes, field.length);
    case SL_TYPE_LONGITUDE:
    case SL_TYPE_LATITUDE:
        return convert_double(schema, field, &value) &&
                       fabs(value) <= (schema->type == SL_TYPE_LONGITUDE ? 180 : 90)
                   ? sl_bson_put_double(to, value)
                   : NULL;
    }
    return NULL;
}

uint8_t *sl_put_value(const sl_dialect *dialect, size_t column, sl_text field, bool quoted,
                      uint8_t *out, uint8_t *to, bool *transcoded) {
    uint8_t *end = put_typed(dialect, column, field, quoted, out, to, transcoded);
    if (end || dialect->columns[column].schema.invalid != SL_INVALID_TEXT)
        return end;
    *out = SL_BSON_TEXT;
    return sl_put_careful_text(dialect, field, quoted, to, transcoded);
}
