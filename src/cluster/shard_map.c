/* SPDX-License-Identifier: Apache-2.0 */
/* The owners of chunks: the chunk map, by _id and by any shard key, and the values of shard keys.
 * */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "util/grow.h"
#include "util/hash.h"

#include "internal.h"

/* ---- values of shard keys ---- */

/* Values of shard keys: the server's order, the hash of hashed indexes, and how they are read from
 * documents.
 *
 * Routers and shards compare shard keys without a collation, even if the collection has one, so
 * strings are compared by their bytes. */

/* ---- types ---- */

#define RANK_UNKNOWN 0 /* the rank of all other types */

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
    return rank_of(value->value_type) != RANK_UNKNOWN &&
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
        *length += sl_bson_length(value);
    return sizes[(uint8_t)type].written;
}

/* Decodes a value. Strings and binary data point into the document. False if the type is not known
 * (sl_value_is_known). */
static bool take_value(bson_type_t type, const uint8_t *bytes, bson_value_t *value) {
    uint64_t number = 0;
    value->value_type = type;
    switch (type) {
    case BSON_TYPE_INT32:
        value->value.v_int32 = (int32_t)sl_bson_length(bytes);
        break;
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DATE_TIME:
    case BSON_TYPE_INT64: /* all three have the same 8 bytes in the union */
        memcpy(&number, bytes, sizeof number);
        value->value.v_int64 = (int64_t)BSON_UINT64_FROM_LE(number);
        break;
    case BSON_TYPE_TIMESTAMP:
        value->value.v_timestamp.increment = sl_bson_length(bytes);
        value->value.v_timestamp.timestamp = sl_bson_length(bytes + 4);
        break;
    case BSON_TYPE_BOOL:
        value->value.v_bool = *bytes != 0;
        break;
    case BSON_TYPE_OID:
        memcpy(value->value.v_oid.bytes, bytes, sizeof value->value.v_oid.bytes);
        break;
    case BSON_TYPE_UTF8:
        value->value.v_utf8.len = sl_bson_length(bytes) - 1;
        value->value.v_utf8.str = (char *)bytes + 4;
        break;
    case BSON_TYPE_BINARY:
        value->value.v_binary.data_len = sl_bson_length(bytes);
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
    const uint8_t *at = document + 4, *end = document + sl_bson_length(document) - 1;
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

bool sl_key_value_at(const uint8_t *document, const char *path, bool set, bson_value_t *value) {
    bson_type_t type;
    const uint8_t *found;
    if (set && find_name(document, path, strlen(path), &type, &found) && found)
        return take_value(type, found, value);
    for (;;) {
        size_t name = strcspn(path, ".");
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

/* ---- the chunk map ---- */

/* The chunk map: how a collection is sharded, and which shard owns a 64-bit id, or a
 * document with another shard key.
 *
 * Bounds are compared here and not by a query: a query that compares a bound with a number skips
 * MinKey and MaxKey, which have other types. Each chunk is reduced to the first 64-bit id it
 * contains, so that finding an owner is a binary search over integers. */

/* ---- how a collection is sharded ---- */

bool sl_key_is_id(const bson_t *key) {
    bson_iter_t iter;
    return bson_count_keys(key) == 1 && bson_iter_init_find(&iter, key, "_id") &&
           BSON_ITER_HOLDS_NUMBER(&iter);
}

void sl_sharding_parse(sl_sharding *sharding) {
    /* Old servers keep the entries of dropped collections; new ones also list collections that are
     * not sharded but were moved to another shard. */
    bson_iter_t iter;
    if (sl_look_flag(&sharding->document, "dropped") ||
        sl_look_flag(&sharding->document, "unsplittable") ||
        !bson_iter_init_find(&iter, &sharding->document, "key") || !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return;
    sharding->sharded = sl_document_at(&iter, &sharding->key);
    /* Server 5.0 introduced the timestamp, together with chunks by UUID. */
    sharding->chunks_by_uuid = bson_has_field(&sharding->document, "timestamp");
}

bool sl_sharding_read(sl_connection *connection, const sl_target *target, sl_sharding *sharding,
                      sl_error *error) {
    *sharding = (sl_sharding){.sharded = false};
    if (sl_connection_server(connection)->deployment != SL_SHARDED) {
        bson_init(&sharding->document);
        return true;
    }
    char ns[SL_NAMESPACE_ROOM];
    bool found;
    if (!sl_find_by_id(connection, "config", "collections", sl_target_namespace(target, ns),
                       &sharding->document, &found, error))
        return false;
    if (found)
        sl_sharding_parse(sharding);
    return true;
}

void sl_sharding_clear(sl_sharding *sharding) {
    bson_destroy(&sharding->document);
}

/* Reads the shard of the chunk document at `chunk`. */
static bool chunk_shard(const bson_iter_t *chunk, const sl_topology *topology, uint32_t *shard,
                        sl_error *error) {
    bson_t document;
    const char *name = sl_document_at(chunk, &document) ? sl_look_string(&document, "shard") : "";
    return sl_topology_find(topology, name, shard) ||
           sl_error_set(error, SL_EXIT_CLUSTER,
                        "a chunk is on shard \"%s\", which was not part of the cluster when this "
                        "program started; give the same command again",
                        name);
}

/* ---- owners by shard key ----
 *
 * Finds the owner of a document by its shard key: reads the key's values, hashes the hashed fields,
 * and searches the range of the chunk map that contains them. Compound keys are ordered field by
 * field. Adjacent chunks of one shard are merged into one range, so a newly sharded collection has
 * as many ranges as shards, or only one. */

/* The server's limit of fields in one index. */
#define FIELDS_MAX 32

typedef struct key_field {
    const char *path; /* dotted */
    bool hashed;
} key_field;

struct sl_key_map {
    bson_t key;    /* `fields` point into it */
    bson_t chunks; /* `minimums` point into it */
    size_t field_count;
    bool set_paths; /* of the target */
    key_field fields[FIELDS_MAX];
    size_t count;
    uint32_t *shards;       /* of each range */
    bson_value_t *minimums; /* `field_count` of each range */
};

/* False when the key has a field that is neither ascending nor hashed. */
static bool read_fields(sl_key_map *map) {
    bson_iter_t iter;
    bool valid = bson_iter_init(&iter, &map->key);
    while (valid && bson_iter_next(&iter)) {
        bool hashed =
            BSON_ITER_HOLDS_UTF8(&iter) && strcmp(bson_iter_utf8(&iter, NULL), "hashed") == 0;
        if (map->field_count == FIELDS_MAX ||
            !(hashed || (BSON_ITER_HOLDS_NUMBER(&iter) && bson_iter_as_int64(&iter) == 1)))
            return false;
        map->fields[map->field_count++] = (key_field){bson_iter_key(&iter), hashed};
    }
    return map->field_count > 0;
}

/* Reads the bound `which` of a chunk. False when it contains a type that is not known. */
static bool read_bound(const sl_key_map *map, const bson_iter_t *chunk, const char *which,
                       bson_value_t *values) {
    bson_iter_t iter, inner;
    if (!bson_iter_recurse(chunk, &iter) || !bson_iter_find(&iter, which) ||
        !BSON_ITER_HOLDS_DOCUMENT(&iter) || !bson_iter_recurse(&iter, &inner))
        return false;
    for (size_t i = 0; i < map->field_count; i++) {
        if (!bson_iter_next(&inner) || strcmp(bson_iter_key(&inner), map->fields[i].path) != 0)
            return false;
        values[i] = *bson_iter_value(&inner); /* strings point into the chunk */
        if (!sl_value_is_known(&values[i]))
            return false;
    }
    return !bson_iter_next(&inner);
}

static int compare(const sl_key_map *map, const bson_value_t *a, const bson_value_t *b) {
    int order = 0;
    for (size_t i = 0; order == 0 && i < map->field_count; i++)
        order = sl_value_compare(&a[i], &b[i]);
    return order;
}

typedef enum reading { READ, NOT_KNOWN, FAILED } reading;

static reading read_ranges(sl_key_map *map, const sl_topology *topology, sl_error *error) {
    bson_value_t end[FIELDS_MAX], maximum[FIELDS_MAX]; /* `end`: where the next chunk must begin */
    size_t key_bytes = map->field_count * sizeof *end;
    for (size_t i = 0; i < map->field_count; i++)
        end[i] = (bson_value_t){.value_type = BSON_TYPE_MINKEY};
    bson_iter_t iter;
    bool ok = bson_iter_init(&iter, &map->chunks);
    while (ok && bson_iter_next(&iter)) {
        bson_value_t *minimum = map->minimums + map->count * map->field_count;
        if (!read_bound(map, &iter, "min", minimum) || !read_bound(map, &iter, "max", maximum))
            return NOT_KNOWN;
        if (compare(map, minimum, end) != 0 || compare(map, minimum, maximum) >= 0) {
            sl_error_set(error, SL_EXIT_CLUSTER,
                         "the chunk map has a gap or an overlap: chunks are being split or moved");
            return FAILED;
        }
        uint32_t *shard = &map->shards[map->count];
        if (!chunk_shard(&iter, topology, shard, error))
            return FAILED;
        if (map->count == 0 || shard[-1] != *shard)
            map->count++;
        memcpy(end, maximum, key_bytes);
    }
    for (size_t i = 0; i < map->field_count; i++) {
        if (end[i].value_type != BSON_TYPE_MAXKEY) {
            sl_error_set(error, SL_EXIT_CLUSTER,
                         "the chunk map is not complete: chunks are being split or moved");
            return FAILED;
        }
    }
    return READ;
}

static void key_map_destroy(sl_key_map *map) {
    if (!map)
        return;
    bson_destroy(&map->key);
    bson_destroy(&map->chunks);
    free(map->shards);
    free(map->minimums);
    free(map);
}

static bool key_map_create(const bson_t *key, const bson_t *chunks, const sl_topology *topology,
                           sl_key_map **map, sl_error *error) {
    *map = NULL;
    sl_key_map *made = sl_zeroed(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "reading the chunk map");
    bson_copy_to(key, &made->key);
    bson_copy_to(chunks, &made->chunks);
    reading result = NOT_KNOWN;
    if (read_fields(made)) {
        size_t count = bson_count_keys(chunks) + 1;
        made->shards = calloc(count, sizeof *made->shards);
        made->minimums = calloc(count * made->field_count, sizeof *made->minimums);
        result = FAILED;
        if (made->shards && made->minimums)
            result = read_ranges(made, topology, error);
        else
            sl_error_memory(error, "reading the chunk map");
    }
    if (result == READ)
        *map = made;
    else
        key_map_destroy(made);
    return result != FAILED;
}

static const bson_value_t *minimum_of(const sl_key_map *map, size_t range) {
    return map->minimums + range * map->field_count;
}

static bool range_holds(const sl_key_map *map, size_t range, const bson_value_t *key) {
    return compare(map, minimum_of(map, range), key) <= 0 &&
           (range + 1 == map->count || compare(map, key, minimum_of(map, range + 1)) < 0);
}

static size_t find_range(const sl_key_map *map, const bson_value_t *key) {
    /* Invariant: the key is at or above the minimum of range `low`, and below the minimum of range
     * `high`, unless `high` is the end. */
    size_t low = 0, high = map->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (compare(map, minimum_of(map, middle), key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool key_map_owner(const sl_key_map *map, const uint8_t *document, sl_owner_cache *cache,
                          uint32_t *shard) {
    bson_value_t key[FIELDS_MAX];
    for (size_t i = 0; i < map->field_count; i++) {
        if (!sl_key_value_at(document, map->fields[i].path, map->set_paths, &key[i]))
            return false;
        if (map->fields[i].hashed) {
            int64_t hash = sl_value_hash(&key[i], cache);
            key[i] = (bson_value_t){.value_type = BSON_TYPE_INT64, .value.v_int64 = hash};
        }
    }
    if (!range_holds(map, cache->range, key))
        cache->range = find_range(map, key);
    *shard = map->shards[cache->range];
    return true;
}

/* ---- chunks of a collection sharded by {_id: 1} ---- */

typedef enum position {
    BELOW,  /* every 64-bit id is at or above the bound */
    WITHIN, /* *first is the smallest 64-bit id at or above the bound */
    ABOVE,  /* no 64-bit id is at or above the bound */
    UNKNOWN,
} position;

static position first_at(const bson_value_t *bound, int64_t *first) {
    switch (bound->value_type) {
    case BSON_TYPE_MINKEY:
    case BSON_TYPE_UNDEFINED:
    case BSON_TYPE_NULL:
        return BELOW;
    case BSON_TYPE_INT32:
        *first = bound->value.v_int32;
        return WITHIN;
    case BSON_TYPE_INT64:
        *first = bound->value.v_int64;
        return WITHIN;
    case BSON_TYPE_DOUBLE: {
        double up = ceil(bound->value.v_double);
        if (isnan(up) || up < -0x1p63) /* NaN sorts before all other numbers */
            return BELOW;
        if (up >= 0x1p63)
            return ABOVE;
        *first = (int64_t)up;
        return WITHIN;
    }
    case BSON_TYPE_DECIMAL128:
        return UNKNOWN;
    default: /* every other type sorts after numbers */
        return ABOVE;
    }
}

static bool bound_of(const bson_iter_t *chunk, const char *which, bson_value_t *value) {
    bson_iter_t iter, inner;
    if (!bson_iter_recurse(chunk, &iter) || !bson_iter_find(&iter, which) ||
        !BSON_ITER_HOLDS_DOCUMENT(&iter) || !bson_iter_recurse(&iter, &inner) ||
        !bson_iter_find(&inner, "_id"))
        return false;
    bson_value_copy(bson_iter_value(&inner), value);
    return true;
}

static void clear_chunk(sl_chunk *chunk) {
    bson_value_destroy(&chunk->minimum);
    bson_value_destroy(&chunk->maximum);
}

bool sl_shard_map_from_chunks(const bson_t *chunks, const sl_topology *topology, sl_shard_map **map,
                              sl_error *error) {
    *map = NULL;
    sl_shard_map *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "reading the chunk map");
    made->by_id = true;
    made->chunks = calloc(bson_count_keys(chunks) + 1, sizeof *made->chunks);
    if (!made->chunks) {
        sl_error_memory(error, "reading the chunk map");
        goto fail;
    }
    bson_iter_t iter;
    /* Where the next chunk must begin. */
    position end = BELOW;
    int64_t end_id = INT64_MIN;
    bool ok = bson_iter_init(&iter, chunks);
    while (ok && bson_iter_next(&iter)) {
        sl_chunk *chunk = &made->chunks[made->count];
        if (!bound_of(&iter, "min", &chunk->minimum))
            goto unreadable;
        if (!bound_of(&iter, "max", &chunk->maximum)) {
            bson_value_destroy(&chunk->minimum);
            goto unreadable;
        }
        made->count++;
        int64_t first = INT64_MIN, next = INT64_MIN;
        position from = first_at(&chunk->minimum, &first);
        position to = first_at(&chunk->maximum, &next);
        if (from == UNKNOWN || to == UNKNOWN) { /* the router finds the owners */
            for (size_t i = 0; i < made->count; i++)
                clear_chunk(&made->chunks[i]);
            made->by_id = false;
            made->count = 0;
            *map = made;
            return true;
        }
        if (from != end || first != end_id || to < from || (to == from && next < first)) {
            sl_error_set(error, SL_EXIT_CLUSTER,
                         "the chunk map has a gap or an overlap: chunks are being split or moved");
            goto fail;
        }
        if (!chunk_shard(&iter, topology, &chunk->shard, error))
            goto fail;
        chunk->first = first;
        end = to;
        end_id = next;
        /* Leaves out a chunk that contains no 64-bit id. */
        if (from == ABOVE || (first == next && to != ABOVE))
            clear_chunk(&made->chunks[--made->count]);
    }
    if (end != ABOVE) {
        sl_error_set(error, SL_EXIT_CLUSTER,
                     "the chunk map is not complete: chunks are being split or moved");
        goto fail;
    }
    *map = made;
    return true;

unreadable:
    sl_error_set(error, SL_EXIT_CLUSTER,
                 "the chunk map has a bound of an unsupported type; is the collection sharded by "
                 "{_id: 1} with integer bounds?");
fail:
    sl_shard_map_destroy(made);
    return false;
}

bool sl_shard_map_of_new(uint32_t home, sl_shard_map **map, sl_error *error) {
    *map = calloc(1, sizeof **map);
    if (*map)
        (*map)->chunks = calloc(1, sizeof *(*map)->chunks);
    if (!*map || !(*map)->chunks) {
        sl_shard_map_destroy(*map);
        *map = NULL;
        return sl_error_memory(error, "reading the chunk map");
    }
    (*map)->by_id = true;
    (*map)->count = 1;
    (*map)->chunks[0] = (sl_chunk){.minimum = {.value_type = BSON_TYPE_MINKEY},
                                   .maximum = {.value_type = BSON_TYPE_MAXKEY},
                                   .first = INT64_MIN,
                                   .shard = home};
    return true;
}

bool sl_shard_map_from_keys(const bson_t *key, const bson_t *chunks, const sl_topology *topology,
                            sl_shard_map **map, sl_error *error) {
    *map = calloc(1, sizeof **map);
    if (!*map)
        return sl_error_memory(error, "reading the chunk map");
    if (key_map_create(key, chunks, topology, &(*map)->keys, error))
        return true;
    sl_shard_map_destroy(*map);
    *map = NULL;
    return false;
}

bool sl_shard_map_of(const sl_sharding *sharding, const bson_t *chunks, const sl_topology *topology,
                     sl_shard_map **map, sl_error *error) {
    return sl_key_is_id(&sharding->key)
               ? sl_shard_map_from_chunks(chunks, topology, map, error)
               : sl_shard_map_from_keys(&sharding->key, chunks, topology, map, error);
}

/* Reads the chunks of a sharded collection, in order. */
static bool read_chunks(sl_connection *connection, const sl_target *target,
                        const sl_sharding *sharding, bson_t *chunks, sl_error *error) {
    bson_t filter = BSON_INITIALIZER;
    bson_iter_t uuid;
    char ns[SL_NAMESPACE_ROOM];
    if (sharding->chunks_by_uuid && bson_iter_init_find(&uuid, &sharding->document, "uuid"))
        bson_append_iter(&filter, "uuid", -1, &uuid);
    else
        BSON_APPEND_UTF8(&filter, "ns", sl_target_namespace(target, ns));
    bson_t *options = BCON_NEW("sort", "{", "min", BCON_INT32(1), "}", "projection", "{", "min",
                               BCON_INT32(1), "max", BCON_INT32(1), "shard", BCON_INT32(1), "}");
    bool ok = sl_connection_find(connection, "config", "chunks", &filter, options, chunks, error);
    bson_destroy(options);
    bson_destroy(&filter);
    return ok;
}

bool sl_shard_map_read(sl_connection *connection, const sl_target *target,
                       const sl_topology *topology, sl_shard_map **map, sl_error *error) {
    *map = NULL;
    bool ok;
    bool again = true;
    /* A map read while chunks are split or moved may have gaps or overlaps: read it again. */
    for (unsigned attempt = 0; again; attempt++) {
        sl_sharding sharding;
        ok = sl_sharding_read(connection, target, &sharding, error);
        again = false;
        if (ok && !sharding.sharded) {
            *map = calloc(1, sizeof **map);
            ok = *map != NULL || sl_error_memory(error, "reading the chunk map");
        } else if (ok) {
            bson_t chunks;
            ok = read_chunks(connection, target, &sharding, &chunks, error);
            if (ok) {
                ok = target->own_ids
                         ? sl_shard_map_from_keys(&sharding.key, &chunks, topology, map, error)
                         : sl_shard_map_of(&sharding, &chunks, topology, map, error);
                again = !ok && attempt < 4 && sl_connection_backoff(connection, attempt, error);
            }
            bson_destroy(&chunks);
            if (ok)
                (*map)->key = bson_copy(&sharding.key);
            if (ok && (*map)->keys)
                (*map)->keys->set_paths = target->set_paths;
        }
        sl_sharding_clear(&sharding);
    }
    return ok;
}

void sl_shard_map_destroy(sl_shard_map *map) {
    if (!map)
        return;
    for (size_t i = 0; i < map->count; i++)
        clear_chunk(&map->chunks[i]);
    free(map->chunks);
    key_map_destroy(map->keys);
    bson_destroy(map->key);
    free(map);
}

const bson_t *sl_shard_map_key(const sl_shard_map *map) {
    return map->key;
}

sl_route sl_shard_map_route(const sl_shard_map *map) {
    return map->by_id ? SL_ROUTE_BY_ID : map->keys ? SL_ROUTE_BY_KEY : SL_ROUTE_NONE;
}

bool sl_shard_map_by_id(const sl_shard_map *map) {
    return map->by_id;
}

size_t sl_shard_map_find(const sl_shard_map *map, int64_t id) {
    /* Invariant: chunks[low].first <= id, and id < chunks[high].first or high is the end. */
    size_t low = 0, high = map->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (map->chunks[middle].first <= id)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint32_t sl_shard_map_owner(const sl_shard_map *map, int64_t id) {
    return map->by_id ? map->chunks[sl_shard_map_find(map, id)].shard : 0;
}

uint32_t sl_shard_map_first(const sl_shard_map *map) {
    return map->count > 0 ? map->chunks[0].shard : map->keys ? map->keys->shards[0] : 0;
}

bool sl_shard_map_owner_of(const sl_shard_map *map, const uint8_t *document, sl_owner_cache *cache,
                           uint32_t *shard) {
    if (map->keys)
        return key_map_owner(map->keys, document, cache, shard);
    bson_iter_t iter;
    uint32_t length;
    memcpy(&length, document, sizeof length);
    if (!map->by_id || !bson_iter_init_from_data(&iter, document, BSON_UINT32_FROM_LE(length)) ||
        !bson_iter_find(&iter, "_id") || !BSON_ITER_HOLDS_INT64(&iter))
        return false;
    *shard = sl_shard_map_owner(map, bson_iter_int64(&iter));
    return true;
}
