/* SPDX-License-Identifier: Apache-2.0 */
/* The BSON writer's functions that are not inline: keys; ObjectId, UUID, decimal128 from text. */
#include "bson_writer.h"

#include <bson/bson.h>

#include "util/text.h"

#define DECIMAL_TEXT_MAX 6200u /* longer than any exact form without exponent */
#define DECIMAL_EXPONENT_DIGITS 6u

const double sl_powers_of_ten[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

uint8_t *sl_bson_put_key(uint8_t *to, sl_bson_type type, const char *key) {
    size_t length = strlen(key) + 1;
    *to = (uint8_t)type;
    memcpy(to + 1, key, length);
    return to + 1 + length;
}

bool sl_bson_put_hex(uint8_t *to, const char *digits, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int high = sl_hex_digit(digits[2 * i]), low = sl_hex_digit(digits[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        to[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

uint8_t *sl_bson_put_object_id(uint8_t *to, const char *text, size_t length) {
    return length == 24 && sl_bson_put_hex(to, text, 12) ? to + 12 : NULL;
}

uint8_t *sl_bson_put_uuid(uint8_t *to, const char *text, size_t length) {
    static const uint8_t groups[] = {4, 2, 2, 2, 6};
    if (length != 36)
        return NULL;
    to = sl_bson_put_int32(to, 16);
    *to++ = BSON_SUBTYPE_UUID;
    for (size_t i = 0; i < sizeof groups; i++) {
        if ((i > 0 && *text++ != '-') || !sl_bson_put_hex(to, text, groups[i]))
            return NULL;
        text += (size_t)2 * groups[i];
        to += groups[i];
    }
    return to;
}

/* Is the text digits, perhaps with a sign, a point, and an exponent of up to six digits? libbson
 * reads an exponent with sscanf, which reads beyond the end of the text and does not check the
 * range. */
static bool is_decimal(const char *text, size_t length) {
    const char *at = text, *end = text + length;
    size_t digits = 0;
    at += at < end && (*at == '-' || *at == '+');
    for (bool point = false; at < end && (sl_is_digit(*at) || (*at == '.' && !point)); at++) {
        point = point || *at == '.';
        digits += *at != '.';
    }
    if (digits == 0 || at == end)
        return digits > 0;
    if (*at++ != 'e' && at[-1] != 'E')
        return false;
    at += at < end && (*at == '-' || *at == '+');
    if (at == end)
        return false;
    for (; at < end - 1 && *at == '0'; at++)
        ;
    for (digits = 0; at < end && sl_is_digit(*at); at++)
        digits++;
    return at == end && digits > 0 && digits <= DECIMAL_EXPONENT_DIGITS;
}

/* Infinity and NaN, in any case, with a sign. */
static bool is_word(const char *text, size_t length) {
    size_t sign = length > 0 && (*text == '-' || *text == '+');
    return length > sign && text[sign] && strchr("iInN", text[sign]) && !memchr(text, 0, length);
}

static uint8_t *put_decimal(uint8_t *to, const char *text, size_t length, bool words) {
    bson_decimal128_t value;
    char copy[DECIMAL_TEXT_MAX + 1];
    if (length > DECIMAL_TEXT_MAX ||
        !(is_decimal(text, length) || (words && is_word(text, length))))
        return NULL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (!bson_decimal128_from_string_w_len(copy, (int)length, &value))
        return NULL;
    memcpy(to, &value.low, sizeof value.low);
    memcpy(to + sizeof value.low, &value.high, sizeof value.high);
    return to + sizeof value.low + sizeof value.high;
}

uint8_t *sl_bson_put_decimal(uint8_t *to, const char *text, size_t length) {
    return put_decimal(to, text, length, false);
}

uint8_t *sl_bson_put_decimal_or_word(uint8_t *to, const char *text, size_t length) {
    return put_decimal(to, text, length, true);
}

const uint8_t *sl_bson_value_end(uint8_t type, const uint8_t *value) {
    switch (type) {
    case 0x01: /* double */
    case 0x09: /* date */
    case 0x11: /* timestamp */
    case 0x12: /* int64 */
        return value + 8;
    case 0x02: /* string */
    case 0x0D: /* code */
    case 0x0E: /* symbol */
        return value + 4 + sl_bson_length(value);
    case 0x03: /* document */
    case 0x04: /* array */
    case 0x0F: /* code with scope */
        return value + sl_bson_length(value);
    case 0x05: /* binary */
        return value + 5 + sl_bson_length(value);
    case 0x07: /* ObjectId */
        return value + 12;
    case 0x08: /* boolean */
        return value + 1;
    case 0x0B: /* regular expression */
        return sl_bson_after_text(sl_bson_after_text(value));
    case 0x0C: /* DBPointer */
        return value + 4 + sl_bson_length(value) + 12;
    case 0x10: /* int32 */
        return value + 4;
    case 0x13: /* decimal */
        return value + 16;
    default: /* null, undefined, MinKey, MaxKey */
        return value;
    }
}
