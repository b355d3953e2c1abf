/* SPDX-License-Identifier: Apache-2.0 */
/* Values that Extended JSON writes as objects: {"$oid": "..."}, {"$date": ...} and so on.
 *
 * An object is such a value if its first key is one of the table at the end. Each row has a
 * function that reads the value of that key and the remainder of the object. Texts are first copied
 * to the position of the value, or a few bytes after it, and converted from there. */
#include "extjson_types.h"

#include <bson/bson.h>

#include "bson_values.h"

/* ---- parts of objects ---- */

/* Copies the string at `p` to `to`, ended by NUL. */
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

/* The end of an object that is a value. A } of the document around it follows. */
const char *sl_extjson_take_end(sl_extjson *x, const char *p) {
    p = extjson_skip(p);
    if (*p != '}')
        return sl_extjson_expected(x, p, "a } is expected: this value has no further keys");
    return p + 1 < x->end ? p + 1 : sl_extjson_expected(x, x->end, NULL);
}

/* Reads a key of an object and the colon: the first key (after the {) or a further key (after a
 * comma). Returns the address of its value. */
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

/* Reads a further key, which must be `name`. */
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

/* ---- ObjectId, numbers ---- */

const char *sl_extjson_take_oid(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                uint32_t depth) {
    static const char reason[] = "an ObjectId is a text of 24 hexadecimal digits";
    sl_text text;
    const char *at = p;
    (void)depth;
    if (!(p = sl_extjson_take_text(x, p, *to + EXTJSON_SCRATCH, &text, reason)))
        return NULL;
    if (text.length != 24 || !sl_bson_hex_bytes(*to, text.bytes, 12))
        return extjson_not_a(x, at, reason, text);
    *type = BSON_TYPE_OID;
    *to += 12;
    return sl_extjson_take_end(x, p);
}

/* Reads the text of an integer from `least` to `most`, up to the end of the object. */
static const char *take_integer(sl_extjson *x, const char *p, uint8_t *scratch, int64_t least,
                                int64_t most, const char *reason, int64_t *value) {
    sl_text text;
    const char *at = p;
    if (!(p = sl_extjson_take_text(x, p, scratch, &text, reason)))
        return NULL;
    if (!sl_extjson_int64_of(text, value) || *value < least || *value > most)
        return extjson_not_a(x, at, reason, text);
    return sl_extjson_take_end(x, p);
}

const char *sl_extjson_take_int32(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                  uint32_t depth) {
    int64_t value;
    (void)depth;
    p = take_integer(x, p, *to + EXTJSON_SCRATCH, INT32_MIN, INT32_MAX,
                     "$numberInt is a text of decimal digits, within 32 bits", &value);
    if (p) {
        *type = BSON_TYPE_INT32;
        *to = sl_bson_put_int32(*to, (int32_t)value);
    }
    return p;
}

const char *sl_extjson_take_int64(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                  uint32_t depth) {
    int64_t value;
    (void)depth;
    p = take_integer(x, p, *to + EXTJSON_SCRATCH, INT64_MIN, INT64_MAX,
                     "$numberLong is a text of decimal digits, within 64 bits", &value);
    if (p) {
        *type = BSON_TYPE_INT64;
        *to = sl_bson_put_int64(*to, value);
    }
    return p;
}

const char *sl_extjson_take_double(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                   uint32_t depth) {
    static const char reason[] =
        "$numberDouble is a text with a number, NaN, Infinity or -Infinity";
    sl_text text;
    double value;
    const char *at = p;
    (void)depth;
    if (!(p = sl_extjson_take_text(x, p, *to + EXTJSON_SCRATCH, &text, reason)))
        return NULL;
    if (!sl_extjson_double_of(text, &value))
        return extjson_not_a(x, at, reason, text);
    *type = BSON_TYPE_DOUBLE;
    *to = sl_bson_put_double(*to, value);
    return sl_extjson_take_end(x, p);
}

const char *sl_extjson_take_decimal(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                    uint32_t depth) {
    static const char reason[] = "$numberDecimal is a text with a number that a decimal128 holds "
                                 "without loss";
    sl_text text;
    uint8_t *end;
    const char *at = p;
    (void)depth;
    if (!(p = sl_extjson_take_text(x, p, *to + EXTJSON_SCRATCH, &text, reason)))
        return NULL;
    if (!(end = sl_bson_put_decimal_or_word(*to, text.bytes, text.length)))
        return extjson_not_a(x, at, reason, text);
    *type = BSON_TYPE_DECIMAL128;
    *to = end;
    return sl_extjson_take_end(x, p);
}

/* ---- values without content ---- */

/* The number 1 of {"$minKey": 1}. */
static const char *take_one(sl_extjson *x, const char *p, uint8_t *type, bson_type_t which) {
    if (*p != '1' || (p[1] >= '0' && p[1] <= '9') || p[1] == '.' || (p[1] | 0x20) == 'e')
        return sl_extjson_expected(x, p, "$minKey and $maxKey have the value 1");
    *type = (uint8_t)which;
    return sl_extjson_take_end(x, p + 1);
}

static const char *take_min(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                            uint32_t depth) {
    (void)to, (void)depth;
    return take_one(x, p, type, BSON_TYPE_MINKEY);
}

static const char *take_max(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                            uint32_t depth) {
    (void)to, (void)depth;
    return take_one(x, p, type, BSON_TYPE_MAXKEY);
}

static const char *take_undefined(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                                  uint32_t depth) {
    (void)to, (void)depth;
    if (memcmp(p, "true", 4) != 0)
        return sl_extjson_expected(x, p, "$undefined has the value true");
    *type = BSON_TYPE_UNDEFINED;
    return sl_extjson_take_end(x, p + 4);
}

/* ---- the table ---- */

static const struct {
    const char *key;
    sl_extjson_take *take;
} values[] = {
    {"$oid", sl_extjson_take_oid},
    {"$date", sl_extjson_take_date},
    {"$numberInt", sl_extjson_take_int32},
    {"$numberLong", sl_extjson_take_int64},
    {"$numberDouble", sl_extjson_take_double},
    {"$numberDecimal", sl_extjson_take_decimal},
    {"$binary", sl_extjson_take_binary},
    {"$type", sl_extjson_take_type},
    {"$uuid", sl_extjson_take_uuid},
    {"$regularExpression", sl_extjson_take_expression},
    {"$regex", sl_extjson_take_regex},
    {"$options", sl_extjson_take_options},
    {"$timestamp", sl_extjson_take_timestamp},
    {"$minKey", take_min},
    {"$maxKey", take_max},
    {"$undefined", take_undefined},
    {"$symbol", sl_extjson_take_symbol},
    {"$code", sl_extjson_take_code},
    {"$scope", sl_extjson_take_scope},
    {"$dbPointer", sl_extjson_take_pointer},
};

const char *sl_extjson_wrapper(sl_extjson *x, const char *p, uint8_t *type, uint8_t **to,
                               uint32_t depth, bool *wrapper) {
    sl_text key;
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
        value = values[i].take(x, value, type, to, depth);
        /* {"$type": ...} may be an ordinary document. */
        *wrapper = value || x->no_room || values[i].take != sl_extjson_take_type;
        return value;
    }
    *wrapper = false;
    return NULL;
}
