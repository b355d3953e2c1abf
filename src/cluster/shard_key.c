/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the owner of a document by its shard key: reads the key's values, hashes the hashed fields,
 * and searches the range of the chunk map that contains them.
 *
 * Compound keys are ordered field by field. Adjacent chunks of one shard are merged into one range,
 * so a newly sharded collection has as many ranges as shards, or only one. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

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

/* ---- making the map ---- */

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
        if (!sl_chunk_shard(&iter, topology, shard, error))
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

bool sl_key_map_create(const bson_t *key, const bson_t *chunks, const sl_topology *topology,
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
        sl_key_map_destroy(made);
    return result != FAILED;
}

void sl_key_map_destroy(sl_key_map *map) {
    if (!map)
        return;
    bson_destroy(&map->key);
    bson_destroy(&map->chunks);
    free(map->shards);
    free(map->minimums);
    free(map);
}

/* ---- lookup ---- */

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

bool sl_key_map_owner(const sl_key_map *map, const uint8_t *document, sl_owner_cache *cache,
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
