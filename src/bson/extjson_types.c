/* SPDX-License-Identifier: Apache-2.0 */
/* Values that Extended JSON writes as objects: {"$oid": "..."}, {"$date": ...} and so on.
 *
 * An object is such a value if its first key is one of the table at the end. Texts are first copied
 * to the position of the value, or a few bytes after it, and converted from there. */
#include "extjson_types.h"

#include <bson/bson.h>

/* ---- parts of objects ---- */

const char *sl_extjson_take_text(sl_extjson *x, const char *p, uint8_t *to, sl_text *text,
                                 const char *expected) {
    if (*p != '"')
        return sl_extjson_expected(x, p, expected);
    uint8_t *end = to;
    p = x->kernel->string(x, p + 1, &end);
    if (!p)
        return NULL;
    if (end > x->limit)
        return extjson_no_room(x);
    *end = 0;
    *text = (sl_text){(const char *)to, (size_t)(end - to)};
    return p;
}

const char *sl_extjson_take_end(sl_extjson *x, const char *p) {
    p = extjson_skip(p);
    if (*p != '}')
        return sl_extjson_expected(x, p, "a } is expected: this value has no further keys");
    return p + 1 < x->end ? p + 1 : sl_extjson_expected(x, x->end, NULL);
}

const char *sl_extjson_take_key(sl_extjson *x, const char *p, bool first, uint8_t *scratch,
                                sl_text *key) {
    p = extjson_skip(p);
    if (!first && *p != ',')
        return sl_extjson_expected(x, p, "a comma and another key are expected");
    p = sl_extjson_take_text(x, first ? p : extjson_skip(p + 1), scratch, key, "a key is expected");
    if (!p)
        return NULL;
    p = extjson_skip(p);
    if (*p != ':')
        return sl_extjson_expected(x, p, "a colon is expected after a key");
    return extjson_skip(p + 1);
}

const char *sl_extjson_take_second(sl_extjson *x, const char *p, uint8_t *scratch, const char *name,
                                   const char *expected) {
    sl_text key;
    const char *at = extjson_skip(p);
    p = sl_extjson_take_key(x, p, false, scratch, &key);
    if (p && !sl_text_equal(key, sl_text_of(name)))
        return extjson_fail(x, at, expected);
    return p;
}

const char *sl_extjson_begin_object(sl_extjson *x, const char *p, const char *expected) {
    return *p == '{' ? p + 1 : sl_extjson_expected(x, p, expected);
}

/* ---- values that are written as a text ---- */

const char *sl_extjson_take_converted(sl_extjson *x, const char *p, uint8_t **to,
                                      sl_extjson_put *put, const char *expected) {
    sl_text text;
    const char *at = p;
    if (!(p = sl_extjson_take_text(x, p, *to + EXTJSON_SCRATCH, &text, expected)))
        return NULL;
    uint8_t *end = put(*to, text.bytes, text.length);
    if (!end)
        return extjson_not_a(x, at, expected, text);
    *to = end;
    return p;
}

/* ---- dates, timestamps ---- */

/* The integer at `p`, which is not in quotes. `scratch`: room for 8 bytes. */
static const char *take_integer(sl_extjson *x, const char *p, uint8_t *scratch, int64_t *value,
                                const char *expected) {
    uint8_t type = 0, *end = scratch;
    const char *at = p;
    if (*p != '-' && (*p < '0' || *p > '9'))
        return sl_extjson_expected(x, p, expected);
    if (!(p = sl_extjson_number(x, p, &type, &end)))
        return NULL;
    int32_t small;
    memcpy(&small, scratch, sizeof small);
    memcpy(value, scratch, sizeof *value);
    if (type == SL_BSON_INT32)
        *value = small;
    return type == SL_BSON_DOUBLE ? extjson_fail(x, at, expected) : p;
}

#define INT64_REASON "$numberLong is a text of decimal digits, within 64 bits"

static const char *take_date(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "$date is a text such as 2015-12-31T23:59:59.999Z with a valid "
                                 "date and an offset from UTC, a number of milliseconds, or "
                                 "{\"$numberLong\": ...}";
    const char *at = p;
    int64_t ms;
    if (*p == '"')
        return sl_extjson_take_converted(x, p, &v->to, sl_extjson_put_date, reason);
    if (*p == '{') {
        sl_text key;
        if (!(p = sl_extjson_take_key(x, p + 1, true, v->to + EXTJSON_SCRATCH, &key)))
            return NULL;
        if (!sl_text_equal(key, sl_text_of("$numberLong")))
            return extjson_not_a(x, at, reason, key);
        p = sl_extjson_take_converted(x, p, &v->to, sl_extjson_put_int64, INT64_REASON);
        return p ? sl_extjson_take_end(x, p) : NULL;
    }
    if (!(p = take_integer(x, p, v->to, &ms, reason)))
        return NULL;
    v->to = sl_bson_put_int64(v->to, ms);
    return p;
}

static const char *take_timestamp(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] =
        "$timestamp is {\"t\": seconds, \"i\": number}, with integers from 0 to 4294967295";
    uint32_t values[2]; /* i, t: their order in BSON */
    bool known[2] = {false, false};
    const char *start = p, *key_before = (const char *)v->type + 1;
    if (!(p = sl_extjson_begin_object(x, p, reason)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        sl_text key;
        int64_t value;
        const char *at = p;
        if (!(p = sl_extjson_take_key(x, p, i == 0, v->to + EXTJSON_SCRATCH, &key)))
            return NULL;
        size_t which = key.length == 1 && *key.bytes == 't';
        if (key.length != 1 || (*key.bytes != 't' && *key.bytes != 'i') || known[which])
            return extjson_not_a(x, at, reason, key);
        at = p;
        if (!(p = take_integer(x, p, v->to + EXTJSON_SCRATCH, &value, reason)))
            return NULL;
        if (value < 0 || value > UINT32_MAX)
            return extjson_fail(x, at, reason);
        known[which] = true;
        values[which] = (uint32_t)value;
    }
    if (v->depth == 0 && values[0] == 0 && values[1] == 0 && strcmp(key_before, "_id") != 0)
        return extjson_fail(x, start,
                            "Timestamp(0, 0): a server replaces it with the current time");
    memcpy(v->to, values, sizeof values);
    v->to += sizeof values;
    return sl_extjson_take_end(x, p);
}

/* ---- binary data ---- */

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

static void put_binary(extjson_value *v, const binary *b) {
    bool old = b->subtype == BSON_SUBTYPE_BINARY_DEPRECATED; /* has a second length */
    uint8_t *at = sl_bson_put_int32(v->to, (int32_t)(b->length + (old ? 4 : 0)));
    *at++ = b->subtype;
    if (old)
        at = sl_bson_put_int32(at, (int32_t)b->length);
    memmove(at, v->to + EXTJSON_SCRATCH, b->length);
    v->to = at + b->length;
}

static const char *take_binary(sl_extjson *x, const char *p, extjson_value *v) {
    static const char reason[] = "$binary is {\"base64\": ..., \"subType\": ...}, or a text "
                                 "followed by \"$type\"";
    binary b = {0};
    if (*p == '"') {
        if (!(p = take_base64(x, p, v->to, &b)) ||
            !(p = sl_extjson_take_second(x, p, v->to + EXTJSON_SCRATCH + b.length, "$type",
                                         reason)) ||
            !(p = take_subtype(x, p, v->to, &b)))
            return NULL;
        put_binary(v, &b);
        return p;
    }
    if (!(p = sl_extjson_begin_object(x, p, reason)))
        return NULL;
    for (int i = 0; i < 2; i++) {
        sl_text key;
        const char *at = p;
        if (!(p = sl_extjson_take_key(x, p, i == 0, v->to + EXTJSON_SCRATCH + b.length, &key)))
            return NULL;
        if (sl_text_equal(key, sl_text_of("base64")))
            p = take_base64(x, p, v->to, &b);
        else if (sl_text_equal(key, sl_text_of("subType")))
            p = take_subtype(x, p, v->to, &b);
        else
            return extjson_not_a(x, at, reason, key);
        if (!p)
            return NULL;
    }
    put_binary(v, &b);
    return sl_extjson_take_end(x, p);
}

/* {"$type": "05", "$binary": "..."}: the old form with the keys in the other order. Other objects
 * that begin with $type are ordinary documents (the query operator), which is not a fault. */
static const char *take_type(sl_extjson *x, const char *p, extjson_value *v) {
    binary b = {0};
    sl_text key;
    bool fits = *p == '"' && (p = take_subtype(x, p, v->to, &b)) != NULL &&
                (p = sl_extjson_take_key(x, p, false, v->to + EXTJSON_SCRATCH, &key)) != NULL &&
                sl_text_equal(key, sl_text_of("$binary")) &&
                (p = take_base64(x, p, v->to, &b)) != NULL;
    if (fits)
        put_binary(v, &b);
    return fits ? p : NULL;
}

/* ---- values without content ---- */

/* The number 1 of {"$minKey": 1}. */
static const char *take_one(sl_extjson *x, const char *p, extjson_value *v) {
    (void)v;
    if (*p != '1' || (p[1] >= '0' && p[1] <= '9') || p[1] == '.' || (p[1] | 0x20) == 'e')
        return sl_extjson_expected(x, p, "$minKey and $maxKey have the value 1");
    return p + 1;
}

static const char *take_true(sl_extjson *x, const char *p, extjson_value *v) {
    (void)v;
    return memcmp(p, "true", 4) == 0 ? p + 4
                                     : sl_extjson_expected(x, p, "$undefined has the value true");
}

/* ---- the table ---- */

/* `take` reads the value. If it is NULL, the value is a text, which `put` converts. `expected`
 * describes the value in messages. */
static const struct {
    const char *key;
    bson_type_t type;
    sl_extjson_take *take;
    sl_extjson_put *put;
    const char *expected;
} values[] = {
    {"$oid", BSON_TYPE_OID, .put = sl_bson_put_object_id, .expected = EXTJSON_OBJECT_ID},
    {"$date", BSON_TYPE_DATE_TIME, .take = take_date},
    {"$numberInt", BSON_TYPE_INT32, .put = sl_extjson_put_int32,
     .expected = "$numberInt is a text of decimal digits, within 32 bits"},
    {"$numberLong", BSON_TYPE_INT64, .put = sl_extjson_put_int64, .expected = INT64_REASON},
    {"$numberDouble", BSON_TYPE_DOUBLE, .put = sl_extjson_put_double,
     .expected = "$numberDouble is a text with a number, NaN, Infinity or -Infinity"},
    {"$numberDecimal", BSON_TYPE_DECIMAL128, .put = sl_bson_put_decimal_or_word,
     .expected = "$numberDecimal is a text with a number that a decimal128 holds without loss"},
    {"$binary", BSON_TYPE_BINARY, .take = take_binary},
    {"$type", BSON_TYPE_BINARY, .take = take_type},
    {"$uuid", BSON_TYPE_BINARY, .put = sl_bson_put_uuid,
     .expected = "a UUID is a text such as c8edabc3-f738-4ca3-b68d-ab92a91478a3"},
    {"$regularExpression", BSON_TYPE_REGEX, .take = sl_extjson_take_expression},
    {"$regex", BSON_TYPE_REGEX, .take = sl_extjson_take_regex},
    {"$options", BSON_TYPE_REGEX, .take = sl_extjson_take_options},
    {"$timestamp", BSON_TYPE_TIMESTAMP, .take = take_timestamp},
    {"$minKey", BSON_TYPE_MINKEY, .take = take_one},
    {"$maxKey", BSON_TYPE_MAXKEY, .take = take_one},
    {"$undefined", BSON_TYPE_UNDEFINED, .take = take_true},
    {"$symbol", BSON_TYPE_SYMBOL, .take = sl_extjson_take_symbol},
    {"$code", BSON_TYPE_CODE, .take = sl_extjson_take_code},
    {"$scope", BSON_TYPE_CODEWSCOPE, .take = sl_extjson_take_scope},
    {"$dbPointer", BSON_TYPE_DBPOINTER, .take = sl_extjson_take_pointer},
};

const char *sl_extjson_wrapper(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                               uint32_t depth, bool *wrapper) {
    sl_text key;
    extjson_value v = {type, *to, depth};
    uint8_t *scratch = *to + EXTJSON_SCRATCH;
    *wrapper = true;
    const char *value = sl_extjson_take_text(x, p, scratch, &key, "a key is expected");
    if (!value)
        return NULL;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (!sl_text_equal(key, sl_text_of(values[i].key)))
            continue;
        value = sl_extjson_take_key(x, p, true, scratch, &key);
        if (!value)
            return NULL;
        *type = (uint8_t)values[i].type;
        value = values[i].take
                    ? values[i].take(x, value, &v)
                    : sl_extjson_take_converted(x, value, &v.to, values[i].put, values[i].expected);
        value = value ? sl_extjson_take_end(x, value) : NULL;
        if (value)
            *to = v.to;
        /* {"$type": ...} may be an ordinary document. */
        *wrapper = value || x->no_room || values[i].take != take_type;
        return value;
    }
    *wrapper = false;
    return NULL;
}
