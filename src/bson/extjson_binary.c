/* SPDX-License-Identifier: Apache-2.0 */
/* $binary, the older $type, and $uuid of Extended JSON. */
#include "bson_values.h"
#include "extjson_types.h"

#include <bson/bson.h>

/* The value of a digit of base64; blanks are skipped, as libbson does. */
static int base64_digit(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Decodes base64 to `to`, which may lie before the text in the same memory. */
static bool decode_base64(sl_text text, uint8_t *to, size_t *length) {
    uint32_t bits = 0;
    unsigned count = 0, padding = 0;
    uint8_t *start = to;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        int digit = base64_digit(c);
        if (digit >= 0 && padding == 0) {
            bits = bits << 6 | (uint32_t)digit;
            if (++count % 4 == 0) {
                *to++ = (uint8_t)(bits >> 16);
                *to++ = (uint8_t)(bits >> 8);
                *to++ = (uint8_t)bits;
            }
        } else if (c == '=' && count % 4 >= 2 && padding < 4 - count % 4) {
            padding++;
        } else if (!is_space(c)) {
            return false;
        }
    }
    unsigned rest = count % 4;
    if ((rest > 0 && padding != 4 - rest) || (bits & (rest == 2 ? 0xFu : rest == 3 ? 3u : 0)) != 0)
        return false;
    if (rest >= 2)
        *to++ = (uint8_t)(rest == 2 ? bits >> 4 : bits >> 10);
    if (rest == 3)
        *to++ = (uint8_t)(bits >> 2);
    *length = (size_t)(to - start);
    return true;
}

/* The parts of a binary value while it is read. */
typedef struct binary {
    bool has_bytes, has_subtype;
    uint8_t subtype;
    size_t length; /* the bytes begin EXTJSON_SCRATCH bytes after the value's address */
} binary;

static const char *take_base64(sl_extjson *x, const char *p, uint8_t *to, binary *b) {
    static const char reason[] = "binary data is a text in base64, with padding";
    sl_text text;
    const char *at = p;
    if (!(p = sl_extjson_take_text(x, p, to + EXTJSON_SCRATCH, &text, reason)))
        return NULL;
    if (b->has_bytes || !decode_base64(text, to + EXTJSON_SCRATCH, &b->length))
        return extjson_not_a(x, at, reason, text);
    b->has_bytes = true;
    return p;
}

static const char *take_subtype(sl_extjson *x, const char *p, uint8_t *to, binary *b) {
    static const char reason[] = "the type of binary data is a text of one or two hexadecimal "
                                 "digits";
    sl_text text;
    const char *at = p;
    if (!(p = sl_extjson_take_text(x, p, to + EXTJSON_SCRATCH + (b->has_bytes ? b->length : 0),
                                   &text, reason)))
        return NULL;
    int high = text.length == 2 ? sl_hex_digit(text.bytes[0]) : 0;
    int low = text.length == 1 || text.length == 2 ? sl_hex_digit(text.bytes[text.length - 1]) : -1;
    if (b->has_subtype || high < 0 || low < 0)
        return extjson_not_a(x, at, reason, text);
    b->subtype = (uint8_t)(high << 4 | low);
    b->has_subtype = true;
    return p;
}

static void put_binary(uint8_t *type, uint8_t **to, const binary *b) {
    bool old = b->subtype == BSON_SUBTYPE_BINARY_DEPRECATED; /* has a second length */
    uint8_t *at = sl_bson_put_int32(*to, (int32_t)(b->length + (old ? 4 : 0)));
    *at++ = b->subtype;
    if (old)
        at = sl_bson_put_int32(at, (int32_t)b->length);
    memmove(at, *to + EXTJSON_SCRATCH, b->length);
    *type = BSON_TYPE_BINARY;
    *to = at + b->length;
}

const char *sl_extjson_take_binary(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                   uint32_t depth) {
    static const char reason[] = "$binary is {\"base64\": ..., \"subType\": ...}, or a text "
                                 "followed by \"$type\"";
    binary b = {0};
    (void)depth;
    if (*p == '"') {
        if (!(p = take_base64(x, p, *to, &b)) ||
            !(p = sl_extjson_take_second(x, p, *to + EXTJSON_SCRATCH + b.length, "$type",
                                         reason)) ||
            !(p = take_subtype(x, p, *to, &b)))
            return NULL;
    } else {
        if (!(p = sl_extjson_begin_object(x, p, reason)))
            return NULL;
        for (int i = 0; i < 2; i++) {
            sl_text key;
            const char *at = p;
            if (!(p = sl_extjson_take_key(x, p, i == 0, *to + EXTJSON_SCRATCH + b.length, &key)))
                return NULL;
            if (sl_text_equal(key, sl_text_of("base64")))
                p = take_base64(x, p, *to, &b);
            else if (sl_text_equal(key, sl_text_of("subType")))
                p = take_subtype(x, p, *to, &b);
            else
                return extjson_not_a(x, at, reason, key);
            if (!p)
                return NULL;
        }
        if (!(p = sl_extjson_take_end(x, p)))
            return NULL;
    }
    put_binary(type, to, &b);
    return sl_extjson_take_end(x, p);
}

/* {"$type": "05", "$binary": "..."}: the old form with the keys in the other order. Other objects
 * that begin with $type are ordinary documents (the query operator), which is not a fault. */
const char *sl_extjson_take_type(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                 uint32_t depth) {
    binary b = {0};
    sl_text key;
    (void)depth;
    bool fits = *p == '"' && (p = take_subtype(x, p, *to, &b)) != NULL &&
                (p = sl_extjson_take_key(x, p, false, *to + EXTJSON_SCRATCH, &key)) != NULL &&
                sl_text_equal(key, sl_text_of("$binary")) &&
                (p = take_base64(x, p, *to, &b)) != NULL && (p = sl_extjson_take_end(x, p)) != NULL;
    if (fits)
        put_binary(type, to, &b);
    return fits ? p : NULL;
}

const char *sl_extjson_take_uuid(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                 uint32_t depth) {
    static const char reason[] = "a UUID is a text such as c8edabc3-f738-4ca3-b68d-ab92a91478a3";
    sl_text text;
    const char *at = p;
    (void)depth;
    if (!(p = sl_extjson_take_text(x, p, *to + EXTJSON_SCRATCH, &text, reason)))
        return NULL;
    binary b = {true, true, BSON_SUBTYPE_UUID, 16};
    const char *s = text.bytes;
    uint8_t *bytes =
        *to + EXTJSON_SCRATCH; /* each byte is written before the next digits are read */
    if (text.length != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' ||
        !sl_bson_hex_bytes(bytes, s, 4) || !sl_bson_hex_bytes(bytes + 4, s + 9, 2) ||
        !sl_bson_hex_bytes(bytes + 6, s + 14, 2) || !sl_bson_hex_bytes(bytes + 8, s + 19, 2) ||
        !sl_bson_hex_bytes(bytes + 10, s + 24, 6))
        return extjson_not_a(x, at, reason, text);
    put_binary(type, to, &b);
    return sl_extjson_take_end(x, p);
}
