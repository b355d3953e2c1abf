/* SPDX-License-Identifier: Apache-2.0 */
#include "join_key.h"

#include <string.h>

#include "bson/bson_number.h"

/* The types of the values in keys. */
static const struct key_type {
    char letter;
    bson_type_t type;
    /* Bytes after the letter, as in the union of bson_value_t; for text and binary data without the
     * bytes that their length counts. */
    size_t size;
    const char *name;
} types[] = {
    {'i', BSON_TYPE_INT64, 8, "an integer"},
    {'d', BSON_TYPE_DOUBLE, 8, "a number with a fraction"},
    {'s', BSON_TYPE_UTF8, 4, "text"},
    {'t', BSON_TYPE_DATE_TIME, 8, "a date"},
    {'b', BSON_TYPE_BOOL, 1, "true or false"},
    {'x', BSON_TYPE_BINARY, 5, "binary data"},
    {'o', BSON_TYPE_OID, 12, "an ObjectId"},
    {'n', BSON_TYPE_DECIMAL128, 16, "a decimal128"},
    {'p', BSON_TYPE_TIMESTAMP, 8, "a timestamp"},
};
#define TYPES (sizeof types / sizeof types[0])

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

static bool put_number(sl_key_writer *to, const bson_iter_t *iter) {
    const sl_number number = sl_number_of(iter);
    switch (number.kind) {
    case SL_NUMBER_INTEGER:
        return put_typed(to, 'i', &number.value.integer, sizeof number.value.integer);
    case SL_NUMBER_DOUBLE:
        return put_typed(to, 'd', &number.value.real, sizeof number.value.real);
    case SL_NUMBER_DECIMAL:
        return put_typed(to, 'n', &number.value.decimal, sizeof number.value.decimal);
    case SL_NUMBER_NONE:
        break;
    }
    return false;
}

static bool put_value(sl_key_writer *to, bson_iter_t *iter) {
    bson_type_t type = bson_iter_type(iter);
    if (BSON_ITER_HOLDS_NUMBER(iter) || type == BSON_TYPE_DECIMAL128)
        return put_number(to, iter);
    size_t i = 0;
    while (i < TYPES && types[i].type != type)
        i++;
    if (i == TYPES)
        return false;
    const bson_value_t *value = bson_iter_value(iter);
    if (type == BSON_TYPE_UTF8)
        return put_typed(to, 's', &value->value.v_utf8.len, sizeof(uint32_t)) &&
               put(to, value->value.v_utf8.str, value->value.v_utf8.len);
    if (type == BSON_TYPE_BINARY) {
        uint8_t subtype = (uint8_t)value->value.v_binary.subtype;
        return put_typed(to, 'x', &value->value.v_binary.data_len, sizeof(uint32_t)) &&
               put(to, &subtype, 1) &&
               put(to, value->value.v_binary.data, value->value.v_binary.data_len);
    }
    return put_typed(to, types[i].letter, &value->value, types[i].size);
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

/* The type of a letter in a key. */
static const struct key_type *type_of(char letter) {
    size_t i = 0;
    while (i + 1 < TYPES && types[i].letter != letter)
        i++;
    return &types[i];
}

/* The number of bytes of a value after its letter. */
static size_t size_of(const uint8_t *at) {
    bool counted = *at == 's' || *at == 'x';
    return type_of((char)*at)->size + (counted ? get_length(at + 1) : 0);
}

static void append_value(const uint8_t *at, const char *name, bson_t *to) {
    const struct key_type *type = type_of((char)*at++);
    bson_value_t value = {.value_type = type->type};
    if (type->type == BSON_TYPE_UTF8) {
        value.value.v_utf8.str = (char *)at + 4;
        value.value.v_utf8.len = get_length(at);
    } else if (type->type == BSON_TYPE_BINARY) {
        value.value.v_binary.data = (uint8_t *)at + 5;
        value.value.v_binary.data_len = get_length(at);
        value.value.v_binary.subtype = (bson_subtype_t)at[4];
    } else {
        memcpy(&value.value, at, type->size);
    }
    int64_t integer = value.value.v_int64;
    if (type->type == BSON_TYPE_INT64 && integer >= INT32_MIN && integer <= INT32_MAX) {
        value.value_type = BSON_TYPE_INT32;
        value.value.v_int32 = (int32_t)integer;
    }
    bson_append_value(to, name, -1, &value);
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

bool sl_join_may_equal(char one, char other) {
    static const char numbers[] = "idn";
    return one == other || (strchr(numbers, one) && strchr(numbers, other));
}

const char *sl_join_letter_name(char letter) {
    return type_of(letter)->name;
}
