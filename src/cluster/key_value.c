/* SPDX-License-Identifier: Apache-2.0 */
/* Values of shard keys: the server's order, the hash of hashed indexes, and how they are read from
 * documents.
 *
 * Routers and shards compare shard keys without a collation, even if the collection has one, so
 * strings are compared by their bytes. */
#include <math.h>
#include <string.h>

#include "util/hash.h"

#include "internal.h"

/* ---- types ---- */

#define NOT_KNOWN 0 /* the rank of all other types */

/* The number by which the server orders values of different types; also an input of the hash. */
static int32_t rank_of(bson_type_t type) {
    static const int8_t ranks[256] = {
        [BSON_TYPE_MINKEY] = -1,    [BSON_TYPE_NULL] = 5,       [BSON_TYPE_INT32] = 10,
        [BSON_TYPE_INT64] = 10,     [BSON_TYPE_DOUBLE] = 10,    [BSON_TYPE_UTF8] = 15,
        [BSON_TYPE_BINARY] = 30,    [BSON_TYPE_OID] = 35,       [BSON_TYPE_BOOL] = 40,
        [BSON_TYPE_DATE_TIME] = 45, [BSON_TYPE_TIMESTAMP] = 47, [BSON_TYPE_MAXKEY] = 127,
    };
    return ranks[(uint8_t)type];
}

bool sl_value_is_known(const bson_value_t *value) {
    /* The old binary subtype 2 contains a second length, which the BSON library removes. */
    return rank_of(value->value_type) != NOT_KNOWN &&
           !(value->value_type == BSON_TYPE_BINARY &&
             value->value.v_binary.subtype == BSON_SUBTYPE_BINARY_DEPRECATED);
}

/* ---- order ---- */

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_doubles(double a, double b) {
    if (isnan(a) || isnan(b)) /* NaN sorts below all numbers */
        return COMPARE(!isnan(a), !isnan(b));
    return COMPARE(a, b);
}

/* Exact comparison: a double cannot represent every 64-bit integer. */
static int compare_int_to_double(int64_t a, double b) {
    if (isnan(b) || b < -0x1p63)
        return 1;
    if (b >= 0x1p63)
        return -1;
    int64_t whole = (int64_t)b;
    return a != whole ? COMPARE(a, whole) : COMPARE(0, b - (double)whole);
}

static int64_t integer_of(const bson_value_t *value) {
    return value->value_type == BSON_TYPE_INT32 ? value->value.v_int32 : value->value.v_int64;
}

static int compare_numbers(const bson_value_t *a, const bson_value_t *b) {
    bool a_double = a->value_type == BSON_TYPE_DOUBLE, b_double = b->value_type == BSON_TYPE_DOUBLE;
    if (a_double && b_double)
        return compare_doubles(a->value.v_double, b->value.v_double);
    if (a_double)
        return -compare_int_to_double(integer_of(b), a->value.v_double);
    if (b_double)
        return compare_int_to_double(integer_of(a), b->value.v_double);
    return COMPARE(integer_of(a), integer_of(b));
}

static int compare_strings(const bson_value_t *a, const bson_value_t *b) {
    uint32_t a_length = a->value.v_utf8.len, b_length = b->value.v_utf8.len;
    int order =
        memcmp(a->value.v_utf8.str, b->value.v_utf8.str, a_length < b_length ? a_length : b_length);
    return order ? order : COMPARE(a_length, b_length);
}

/* By length, then subtype, then bytes. */
static int compare_binary(const bson_value_t *a, const bson_value_t *b) {
    uint32_t length = a->value.v_binary.data_len;
    int order = COMPARE(length, b->value.v_binary.data_len);
    if (order == 0)
        order = COMPARE(a->value.v_binary.subtype, b->value.v_binary.subtype);
    return order || length == 0 ? order
                                : memcmp(a->value.v_binary.data, b->value.v_binary.data, length);
}

static int compare_timestamps(const bson_value_t *a, const bson_value_t *b) {
    int order = COMPARE(a->value.v_timestamp.timestamp, b->value.v_timestamp.timestamp);
    return order ? order : COMPARE(a->value.v_timestamp.increment, b->value.v_timestamp.increment);
}

int sl_value_compare(const bson_value_t *a, const bson_value_t *b) {
    int32_t a_rank = rank_of(a->value_type), b_rank = rank_of(b->value_type);
    if (a_rank != b_rank)
        return COMPARE(a_rank, b_rank);
    switch (a->value_type) {
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
        return compare_numbers(a, b);
    case BSON_TYPE_UTF8:
        return compare_strings(a, b);
    case BSON_TYPE_BINARY:
        return compare_binary(a, b);
    case BSON_TYPE_OID:
        return memcmp(a->value.v_oid.bytes, b->value.v_oid.bytes, sizeof a->value.v_oid.bytes);
    case BSON_TYPE_BOOL:
        return COMPARE(a->value.v_bool, b->value.v_bool);
    case BSON_TYPE_DATE_TIME:
        return COMPARE(a->value.v_datetime, b->value.v_datetime);
    case BSON_TYPE_TIMESTAMP:
        return compare_timestamps(a, b);
    default: /* null, MinKey, MaxKey: types with one value */
        return 0;
    }
}

/* ---- hash ---- */

/* The input of the hash: a seed of 0, the rank of the type, and the value's BSON bytes. The head is
 * copied; the tail points into the document. */
typedef struct message {
    uint8_t head[24];
    uint32_t head_length;
    const void *tail;
    uint32_t tail_length;
} message;

static void add(message *made, const void *bytes, uint32_t length) {
    memcpy(made->head + made->head_length, bytes, length);
    made->head_length += length;
}

/* Equal numbers of different types must have the same hash, so each is converted to a 64-bit
 * integer. Numbers outside the range become the nearest integer, except 2^63, which becomes -2^63
 * as on the server. */
static int64_t truncated(double value) {
    if (isnan(value))
        return 0;
    if (value > 0x1p63)
        return INT64_MAX;
    if (value == 0x1p63 || value < -0x1p63)
        return INT64_MIN;
    return (int64_t)value;
}

static message message_of(const bson_value_t *value) {
    message made = {.head_length = 0};
    const int32_t start[2] = {0, rank_of(value->value_type)};
    add(&made, start, sizeof start);
    switch (value->value_type) {
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE: {
        int64_t number = value->value_type == BSON_TYPE_DOUBLE ? truncated(value->value.v_double)
                                                               : integer_of(value);
        add(&made, &number, sizeof number);
        break;
    }
    case BSON_TYPE_UTF8:
        made.tail = value->value.v_utf8.str;
        made.tail_length = value->value.v_utf8.len + 1;
        add(&made, &made.tail_length, sizeof made.tail_length);
        break;
    case BSON_TYPE_BINARY: {
        const uint8_t subtype = (uint8_t)value->value.v_binary.subtype;
        made.tail = value->value.v_binary.data;
        made.tail_length = value->value.v_binary.data_len;
        add(&made, &made.tail_length, sizeof made.tail_length);
        add(&made, &subtype, 1);
        break;
    }
    case BSON_TYPE_OID:
        add(&made, value->value.v_oid.bytes, sizeof value->value.v_oid.bytes);
        break;
    case BSON_TYPE_BOOL: {
        const uint8_t truth = value->value.v_bool;
        add(&made, &truth, 1);
        break;
    }
    case BSON_TYPE_DATE_TIME:
        add(&made, &value->value.v_datetime, sizeof value->value.v_datetime);
        break;
    case BSON_TYPE_TIMESTAMP:
        add(&made, &value->value.v_timestamp.increment, 4);
        add(&made, &value->value.v_timestamp.timestamp, 4);
        break;
    default:
        break;
    }
    return made;
}

int64_t sl_value_hash(const bson_value_t *value, sl_owner_cache *cache) {
    message made = message_of(value);
    uint64_t length = (uint64_t)made.head_length + made.tail_length;
    uint8_t *cached_tail = cache->hashed + made.head_length;
    if (length == cache->length && memcmp(cache->hashed, made.head, made.head_length) == 0 &&
        (made.tail_length == 0 || memcmp(cached_tail, made.tail, made.tail_length) == 0))
        return cache->hash;
    sl_md5 md5;
    uint8_t digest[SL_MD5_BYTES];
    int64_t hash;
    sl_md5_begin(&md5);
    sl_md5_add(&md5, made.head, made.head_length);
    sl_md5_add(&md5, made.tail, made.tail_length);
    sl_md5_end(&md5, digest);
    memcpy(&hash, digest, sizeof hash);
    if (length <= sizeof cache->hashed) {
        cache->length = (uint32_t)length;
        memcpy(cache->hashed, made.head, made.head_length);
        if (made.tail_length > 0)
            memcpy(cached_tail, made.tail, made.tail_length);
        cache->hash = hash;
    }
    return hash;
}

/* ---- fields of documents ----
 *
 * This runs for every key field of every document, so it does not use the BSON library, whose
 * checks at each step cost more than all other routing. The documents were encoded by the loader,
 * so their lengths are not checked. */

static uint32_t length_at(const uint8_t *bytes) {
    uint32_t length;
    memcpy(&length, bytes, sizeof length);
    return BSON_UINT32_FROM_LE(length);
}

/* The size of a value in bytes. False for types that no format writes. */
static bool length_of(bson_type_t type, const uint8_t *value, size_t *length) {
    static const struct {
        bool written;
        uint8_t fixed;
        bool counted; /* the value begins with the length of its other bytes */
    } sizes[256] = {
        [BSON_TYPE_NULL] = {true, 0},         [BSON_TYPE_MINKEY] = {true, 0},
        [BSON_TYPE_MAXKEY] = {true, 0},       [BSON_TYPE_BOOL] = {true, 1},
        [BSON_TYPE_INT32] = {true, 4},        [BSON_TYPE_DOUBLE] = {true, 8},
        [BSON_TYPE_DATE_TIME] = {true, 8},    [BSON_TYPE_TIMESTAMP] = {true, 8},
        [BSON_TYPE_INT64] = {true, 8},        [BSON_TYPE_OID] = {true, 12},
        [BSON_TYPE_DECIMAL128] = {true, 16},  [BSON_TYPE_UTF8] = {true, 4, true},
        [BSON_TYPE_BINARY] = {true, 5, true}, [BSON_TYPE_DOCUMENT] = {true, 0, true},
        [BSON_TYPE_ARRAY] = {true, 0, true},
    };
    *length = sizes[(uint8_t)type].fixed;
    if (sizes[(uint8_t)type].counted)
        *length += length_at(value);
    return sizes[(uint8_t)type].written;
}

/* Decodes a value. Strings and binary data point into the document. False if the type is not known
 * (sl_value_is_known). */
static bool take_value(bson_type_t type, const uint8_t *bytes, bson_value_t *value) {
    uint64_t number = 0;
    value->value_type = type;
    switch (type) {
    case BSON_TYPE_INT32:
        value->value.v_int32 = (int32_t)length_at(bytes);
        break;
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DATE_TIME:
    case BSON_TYPE_INT64: /* all three have the same 8 bytes in the union */
        memcpy(&number, bytes, sizeof number);
        value->value.v_int64 = (int64_t)BSON_UINT64_FROM_LE(number);
        break;
    case BSON_TYPE_TIMESTAMP:
        value->value.v_timestamp.increment = length_at(bytes);
        value->value.v_timestamp.timestamp = length_at(bytes + 4);
        break;
    case BSON_TYPE_BOOL:
        value->value.v_bool = *bytes != 0;
        break;
    case BSON_TYPE_OID:
        memcpy(value->value.v_oid.bytes, bytes, sizeof value->value.v_oid.bytes);
        break;
    case BSON_TYPE_UTF8:
        value->value.v_utf8.len = length_at(bytes) - 1;
        value->value.v_utf8.str = (char *)bytes + 4;
        break;
    case BSON_TYPE_BINARY:
        value->value.v_binary.data_len = length_at(bytes);
        value->value.v_binary.subtype = (bson_subtype_t)bytes[4];
        value->value.v_binary.data = (uint8_t *)bytes + 5;
        break;
    default:
        break;
    }
    return sl_value_is_known(value);
}

/* Finds a field by name. `*value` is NULL when the document does not have it. False when a value of
 * an unknown type, whose length is not known either, comes before it. */
static bool find_name(const uint8_t *document, const char *name, size_t name_length,
                      bson_type_t *type, const uint8_t **value) {
    const uint8_t *at = document + 4, *end = document + length_at(document) - 1;
    while (at < end) {
        const char *here = (const char *)at + 1;
        size_t same = 0; /* common bytes; names are too short for strlen and memcmp to pay off */
        while (same < name_length && here[same] == name[same])
            same++;
        bool found = same == name_length && here[same] == '\0';
        const char *behind = here + same;
        while (*behind++ != '\0')
            continue;
        *type = (bson_type_t)*at;
        *value = (const uint8_t *)behind;
        if (found)
            return true;
        size_t length;
        if (!length_of(*type, *value, &length))
            return false;
        at = *value + length;
    }
    *value = NULL;
    return at == end;
}

bool sl_key_value_at(const uint8_t *document, const char *path, bson_value_t *value) {
    for (;;) {
        size_t name = strcspn(path, ".");
        bson_type_t type;
        const uint8_t *found;
        if (!find_name(document, path, name, &type, &found))
            return false;
        bool last = path[name] == '\0';
        if (found && last)
            return take_value(type, found, value);
        if (!found || type != BSON_TYPE_DOCUMENT) {
            value->value_type = BSON_TYPE_NULL;
            return !found || type != BSON_TYPE_ARRAY;
        }
        document = found;
        path += name + 1;
    }
}
