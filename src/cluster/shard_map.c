/* SPDX-License-Identifier: Apache-2.0 */
/* The chunk map: how a collection is sharded, and which shard owns a 64-bit id, or a
 * document with another shard key.
 *
 * Bounds are compared here and not by a query: a query that compares a bound with a number skips
 * MinKey and MaxKey, which have other types. Each chunk is reduced to the first 64-bit id it
 * contains, so that finding an owner is a binary search over integers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

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
    key_field fields[FIELDS_MAX];
    size_t count;
    uint32_t *shards;       /* of each range */
    bson_value_t *minimums; /* `field_count` of each range */
};

/* False when the key has a field that is neither ascending nor hashed. */
static bool read_fields(sl_key_map *map) {
    bson_iter_t iter;
    if (!bson_iter_init(&iter, &map->key))
        return false;
    while (bson_iter_next(&iter)) {
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
    sl_key_map *made = aligned_alloc(_Alignof(sl_key_map), sizeof *made);
    if (!made)
        return sl_error_memory(error, "reading the chunk map");
    memset(made, 0, sizeof *made);
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
        if (!sl_key_value_at(document, map->fields[i].path, &key[i]))
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
        if (from == UNKNOWN || to == UNKNOWN)
            goto unreadable;
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
    free(map);
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
