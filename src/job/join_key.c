/* SPDX-License-Identifier: Apache-2.0 */
/* Join keys: values of documents as bytes that can be compared. */
#include "join_key.h"

#include <math.h>
#include <string.h>

typedef struct sl_key_writer {
    uint8_t *key;
    size_t used;
} sl_key_writer;

static bool put(sl_key_writer *to, const void *bytes, size_t length) {
    if (length > SL_JOIN_KEY_ROOM - to->used)
        return false;
    memcpy(to->key + to->used, bytes, length);
    to->used += length;
    return true;
}

static bool put_typed(sl_key_writer *to, char letter, const void *bytes, size_t length) {
    return put(to, &letter, 1) && put(to, bytes, length);
}

static bool put_integer(sl_key_writer *to, int64_t value) {
    return put_typed(to, 'i', &value, sizeof value);
}

static bool put_double(sl_key_writer *to, double value) {
    if (isnan(value))
        return false;
    /* Both limits are exact doubles; 2^63 itself is not an int64. */
    if (value >= -0x1p63 && value < 0x1p63 && value == trunc(value))
        return put_integer(to, (int64_t)value);
    return put_typed(to, 'd', &value, sizeof value);
}

static bool put_value(sl_key_writer *to, const bson_iter_t *value) {
    uint32_t length;
    switch (bson_iter_type(value)) {
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        return put_integer(to, bson_iter_as_int64(value));
    case BSON_TYPE_DOUBLE:
        return put_double(to, bson_iter_double(value));
    case BSON_TYPE_UTF8: {
        const char *text = bson_iter_utf8(value, &length);
        return put_typed(to, 's', &length, sizeof length) && put(to, text, length);
    }
    case BSON_TYPE_DATE_TIME: {
        int64_t ms = bson_iter_date_time(value);
        return put_typed(to, 't', &ms, sizeof ms);
    }
    case BSON_TYPE_BOOL: {
        uint8_t flag = bson_iter_bool(value);
        return put_typed(to, 'b', &flag, sizeof flag);
    }
    case BSON_TYPE_OID:
        return put_typed(to, 'o', bson_iter_oid(value)->bytes, sizeof(bson_oid_t));
    case BSON_TYPE_DECIMAL128: {
        bson_decimal128_t number;
        return bson_iter_decimal128(value, &number) && put_typed(to, 'n', &number, sizeof number);
    }
    case BSON_TYPE_TIMESTAMP: {
        uint32_t both[2];
        bson_iter_timestamp(value, &both[0], &both[1]);
        return put_typed(to, 'p', both, sizeof both);
    }
    case BSON_TYPE_BINARY: {
        bson_subtype_t subtype;
        const uint8_t *bytes;
        bson_iter_binary(value, &subtype, &length, &bytes);
        uint8_t kind = (uint8_t)subtype;
        return put_typed(to, 'x', &length, sizeof length) && put(to, &kind, 1) &&
               put(to, bytes, length);
    }
    default:
        return false;
    }
}

size_t sl_join_key_of(const bson_t *document, const char *const *names, size_t count,
                      uint8_t *key) {
    sl_key_writer writer = {.key = key};
    for (size_t i = 0; i < count; i++) {
        bson_iter_t iter, found;
        if (!bson_iter_init(&iter, document))
            return 0;
        bool has = strchr(names[i], '.') ? bson_iter_find_descendant(&iter, names[i], &found)
                                         : bson_iter_find(&iter, names[i]);
        if (!has || !put_value(&writer, strchr(names[i], '.') ? &found : &iter))
            return 0;
    }
    return writer.used;
}

/* ---- reading keys ---- */

static uint32_t get_length(const uint8_t *at) {
    uint32_t length;
    memcpy(&length, at, sizeof length);
    return length;
}

/* The number of bytes of a value after its letter. */
static size_t size_of(const uint8_t *at) {
    switch (*at) {
    case 's':
        return 4 + (size_t)get_length(at + 1);
    case 'x':
        return 5 + (size_t)get_length(at + 1);
    case 'o':
        return sizeof(bson_oid_t);
    case 'n':
        return sizeof(bson_decimal128_t);
    case 'b':
        return 1;
    default:
        return 8;
    }
}

static void append_value(const uint8_t *at, const char *name, bson_t *to) {
    int64_t integer;
    double number;
    bson_decimal128_t decimal;
    bson_oid_t oid;
    const uint8_t *bytes = at + 1;
    switch (*at) {
    case 'i':
        memcpy(&integer, bytes, sizeof integer);
        if (integer >= INT32_MIN && integer <= INT32_MAX)
            BSON_APPEND_INT32(to, name, (int32_t)integer);
        else
            BSON_APPEND_INT64(to, name, integer);
        break;
    case 'd':
        memcpy(&number, bytes, sizeof number);
        BSON_APPEND_DOUBLE(to, name, number);
        break;
    case 's':
        bson_append_utf8(to, name, -1, (const char *)bytes + 4, (int)get_length(bytes));
        break;
    case 't':
        memcpy(&integer, bytes, sizeof integer);
        BSON_APPEND_DATE_TIME(to, name, integer);
        break;
    case 'b':
        BSON_APPEND_BOOL(to, name, *bytes != 0);
        break;
    case 'o':
        memcpy(oid.bytes, bytes, sizeof oid.bytes);
        BSON_APPEND_OID(to, name, &oid);
        break;
    case 'n':
        memcpy(&decimal, bytes, sizeof decimal);
        BSON_APPEND_DECIMAL128(to, name, &decimal);
        break;
    case 'p':
        BSON_APPEND_TIMESTAMP(to, name, get_length(bytes), get_length(bytes + 4));
        break;
    default: /* 'x' */
        BSON_APPEND_BINARY(to, name, (bson_subtype_t)bytes[4], bytes + 5, get_length(bytes));
        break;
    }
}

void sl_join_key_append(const uint8_t *key, size_t length, const char *const *names, size_t count,
                        bson_t *to) {
    const uint8_t *at = key;
    for (size_t i = 0; i < count && at < key + length; i++) {
        append_value(at, names[i], to);
        at += 1 + size_of(at);
    }
}

const char *sl_join_key_letters(const uint8_t *key, size_t length, char *out) {
    size_t count = 0;
    for (const uint8_t *at = key; at < key + length && count < SL_JOIN_FIELDS_MAX;
         at += 1 + size_of(at))
        out[count++] = (char)*at;
    out[count] = '\0';
    return out;
}

const char *sl_join_letter_name(char letter) {
    static const struct {
        char letter;
        const char *name;
    } names[] = {{'i', "an integer"},    {'d', "a number with a fraction"},
                 {'s', "text"},          {'t', "a date"},
                 {'b', "true or false"}, {'x', "binary data"},
                 {'o', "an ObjectId"},   {'n', "a decimal128"},
                 {'p', "a timestamp"}};
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof names[0] && names[i].letter != letter)
        i++;
    return names[i].name;
}
