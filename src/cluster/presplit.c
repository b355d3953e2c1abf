/* SPDX-License-Identifier: Apache-2.0 */
/* A sample of shard keys, by reservoir sampling, and the chunks made of it. */
#include "presplit.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define SAMPLE_MOST 4000u
#define KEY_BYTES_MOST 1024u /* larger keys are not sampled */

struct sl_key_sample {
    bson_t key;
    bson_t *values[SAMPLE_MOST]; /* {path: value, ...} */
    size_t count;
    uint64_t offered;
    uint64_t random; /* state; the same documents always give the same sample */
};

sl_key_sample *sl_key_sample_create(const bson_t *key) {
    sl_key_sample *made = calloc(1, sizeof *made);
    if (made) {
        bson_copy_to(key, &made->key);
        made->random = UINT64_C(0x9E3779B97F4A7C15);
    }
    return made;
}

void sl_key_sample_destroy(sl_key_sample *sample) {
    if (!sample)
        return;
    for (size_t i = 0; i < sample->count; i++)
        bson_destroy(sample->values[i]);
    bson_destroy(&sample->key);
    free(sample);
}

bool sl_shard_key_is_hashed(const bson_t *key) {
    bson_iter_t iter;
    bool hashed = false;
    for (bool more = bson_iter_init(&iter, key); more && bson_iter_next(&iter);)
        hashed = hashed || BSON_ITER_HOLDS_UTF8(&iter);
    return hashed;
}

size_t sl_key_sample_count(const sl_key_sample *sample) {
    return sample->count;
}

static uint64_t draw(sl_key_sample *sample) {
    sample->random ^= sample->random << 13;
    sample->random ^= sample->random >> 7;
    sample->random ^= sample->random << 17;
    return sample->random;
}

/* The key of a document. `*known`: all of its values can be compared. */
static bson_t *key_of(const sl_key_sample *sample, const uint8_t *document, bool *known) {
    bson_t *made = bson_new();
    bson_iter_t iter;
    *known = true;
    for (bool more = bson_iter_init(&iter, &sample->key);
         more && *known && bson_iter_next(&iter);) {
        bson_value_t value;
        *known = sl_key_value_at(document, bson_iter_key(&iter), &value) &&
                 bson_append_value(made, bson_iter_key(&iter), -1, &value);
    }
    *known = *known && made->len <= KEY_BYTES_MOST;
    return made;
}

bool sl_key_sample_offer(sl_key_sample *sample, const uint8_t *document) {
    size_t slot = sample->count;
    sample->offered++;
    if (sample->count == SAMPLE_MOST) {
        uint64_t drawn = draw(sample) % sample->offered;
        if (drawn >= SAMPLE_MOST)
            return true;
        slot = (size_t)drawn;
    }
    bool known;
    bson_t *value = key_of(sample, document, &known);
    if (!value)
        return false;
    if (!known) {
        bson_destroy(value);
        return true;
    }
    if (slot < sample->count)
        bson_destroy(sample->values[slot]);
    else
        sample->count++;
    sample->values[slot] = value;
    return true;
}

static int compare_keys(const void *one, const void *other) {
    bson_iter_t a, b;
    int result = 0;
    bool more =
        bson_iter_init(&a, *(bson_t *const *)one) && bson_iter_init(&b, *(bson_t *const *)other);
    while (more && result == 0 && bson_iter_next(&a) && bson_iter_next(&b))
        result = sl_value_compare(bson_iter_value(&a), bson_iter_value(&b));
    return result;
}

/* ---- chunks ---- */

/* The lowest or highest key. */
static bson_t *end_of(const bson_t *key, bool highest) {
    bson_t *made = bson_new();
    bson_iter_t iter;
    for (bool more = bson_iter_init(&iter, key); more && bson_iter_next(&iter);) {
        if (highest)
            bson_append_maxkey(made, bson_iter_key(&iter), -1);
        else
            bson_append_minkey(made, bson_iter_key(&iter), -1);
    }
    return made;
}

/* Picks the bounds from the sorted sample: different keys, above the smallest. */
static size_t pick(const sl_key_sample *sample, size_t pieces, const bson_t **bounds) {
    size_t count = 0;
    for (size_t i = 1; i < pieces; i++) {
        bson_t *const *candidate = &sample->values[i * sample->count / pieces];
        const bson_t *before = count > 0 ? bounds[count - 1] : sample->values[0];
        if (compare_keys(&before, candidate) < 0)
            bounds[count++] = *candidate;
    }
    return count;
}

bool sl_presplit(sl_connection *connection, const sl_target *target, const sl_topology *topology,
                 sl_key_sample *sample, size_t per_shard, size_t *chunks, sl_error *error) {
    size_t pieces = topology->count * per_shard;
    uint32_t home;
    bool known;
    *chunks = 1;
    if (sample->count < 2 || topology->count < 2)
        return true;
    if (!sl_database_home(connection, target, topology, &home, &known, error))
        return false;
    qsort(sample->values, sample->count, sizeof sample->values[0], compare_keys);
    const bson_t **bounds = calloc(pieces + 2, sizeof *bounds);
    if (!bounds)
        return sl_error_memory(error, "splitting a collection");
    size_t count = pick(sample, pieces, bounds + 1);
    bson_t *lowest = end_of(&sample->key, false), *highest = end_of(&sample->key, true);
    bounds[0] = lowest;
    bounds[count + 1] = highest;
    bool ok = true;
    for (size_t i = 1; ok && i <= count; i++)
        ok = sl_cluster_change(connection, "admin", sl_split_command(target, bounds[i]), 0, error);
    for (size_t i = 0; ok && i <= count; i++) {
        size_t shard = (home + i) % topology->count;
        ok = shard == home || sl_cluster_change(connection, "admin",
                                                sl_move_command(target, bounds[i], bounds[i + 1],
                                                                topology->shards[shard].name),
                                                0, error);
    }
    *chunks = count + 1;
    bson_destroy(lowest);
    bson_destroy(highest);
    free(bounds);
    return ok;
}
