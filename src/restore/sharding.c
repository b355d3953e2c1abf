/* SPDX-License-Identifier: Apache-2.0 */
/* Shards a collection before its documents are loaded.
 *
 * With a ranged key, the documents are read once for a sample of the key. The collection is split
 * at quantiles of the sample, and the chunks are distributed over the shards. If one of these steps
 * fails, the load is only slower, so the failure is a warning. */
#include "restoring.h"

#include <string.h>

#include "bson/bson_check.h"
#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "cluster/presplit.h"
#include "shard_keys.h"
#include "source/source.h"
#include "util/interrupt.h"
#include "util/log.h"

#define CHUNKS_PER_SHARD 4u /* a dump in the order of the key keeps several shards busy */

/* ---- the sample ---- */

static size_t find_end(sl_split *split, sl_text text, size_t least, bool ended) {
    (void)split;
    return text.length >= least ? least : ended ? text.length : 0;
}

/* Offers the complete documents at `bytes` to the sample. Returns the number of bytes passed over.
 * `*valid` becomes false at damage, where sampling ends. */
static size_t offer(sl_key_sample *sample, const uint8_t *bytes, size_t available, bool *valid,
                    bool *memory) {
    size_t at = 0;
    while (*valid && *memory) {
        sl_bson_facts facts;
        sl_bson_verdict verdict = sl_bson_check(bytes + at, available - at, &facts);
        if (verdict == SL_BSON_MORE)
            break;
        *valid = verdict == SL_BSON_VALID;
        if (*valid) {
            *memory = sl_key_sample_offer(sample, bytes + at);
            at += facts.length;
        }
    }
    return at;
}

static bool read_sample(const char *path, sl_key_sample *sample, sl_error *error) {
    static const sl_splitter pieces = {.find_end = find_end, .binary = true};
    sl_source_set *set = NULL;
    sl_reader *reader = NULL;
    uint8_t *bytes = NULL;
    size_t used = 0, room = 0;
    bool valid = true, memory = true, going = true;
    bool ok = sl_source_set_create(&path, 1, NULL, &set, error);
    if (ok)
        sl_source_set_splitter(set, 0, &pieces, NULL, false);
    ok = ok && sl_reader_create(set, &reader, error);
    while (ok && going && valid && memory && !sl_interrupt_requested()) {
        sl_source_block block;
        sl_read_result result = sl_reader_next(reader, &block, error);
        going = result == SL_READ_BLOCK;
        ok = result != SL_READ_FAILED;
        if (!going)
            break;
        if (room - used < block.text.length) {
            room = 2 * (used + block.text.length);
            uint8_t *grown = realloc(bytes, room + SL_BSON_SLACK);
            memory = grown != NULL;
            if (!memory)
                break;
            bytes = grown;
        }
        memcpy(bytes + used, block.text.bytes, block.text.length);
        used += block.text.length;
        memset(bytes + used, 0, SL_BSON_SLACK);
        size_t passed = offer(sample, bytes, used, &valid, &memory);
        memmove(bytes, bytes + passed, used - passed);
        used -= passed;
    }
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
    free(bytes);
    return ok && (memory || sl_error_memory(error, "sampling a shard key"));
}

static bool presplit(sl_connection *connection, const sl_namespace *item, const sl_target *target,
                     sl_error *error) {
    sl_topology *topology = NULL;
    size_t chunks = 1;
    sl_key_sample *sample = sl_key_sample_create(item->shard_key);
    bool ok = sample || sl_error_memory(error, "sampling a shard key");
    ok = ok && read_sample(item->data, sample, error) &&
         sl_topology_read(connection, &topology, error) &&
         sl_presplit(connection, target, topology, sample, CHUNKS_PER_SHARD, &chunks, error);
    if (ok)
        sl_log_info("%s.%s: %zu chunks on %zu shards", target->database, target->collection, chunks,
                    topology->count);
    sl_topology_destroy(topology);
    sl_key_sample_destroy(sample);
    return ok;
}

/* ---- the index of the key ---- */

/* Does the index have this key, and can it support a shard key? */
static bool supports(bson_iter_t *index, const bson_t *key) {
    static const char *const excluding[] = {"partialFilterExpression", "sparse"};
    bson_t specification, index_key;
    bson_iter_t a, b;
    if (!sl_document_at(index, &specification) || bson_has_field(&specification, excluding[0]) ||
        bson_has_field(&specification, excluding[1]))
        return false;
    const char *locale = sl_look_text(&specification, "collation.locale");
    if ((locale && strcmp(locale, "simple") != 0) ||
        !sl_look_inside(&specification, "key", &index_key) ||
        bson_count_keys(&index_key) != bson_count_keys(key) || !bson_iter_init(&a, &index_key) ||
        !bson_iter_init(&b, key))
        return false;
    while (bson_iter_next(&a) && bson_iter_next(&b)) {
        if (strcmp(bson_iter_key(&a), bson_iter_key(&b)) != 0 ||
            BSON_ITER_HOLDS_UTF8(&a) != BSON_ITER_HOLDS_UTF8(&b) ||
            (!BSON_ITER_HOLDS_UTF8(&a) && bson_iter_as_int64(&a) != bson_iter_as_int64(&b)))
            return false;
    }
    return true;
}

/* Builds the dump's index with the shard key, if it has one. Otherwise the server would create an
 * index with other options, and later refuse the index of the dump. */
static bool build_key_index(sl_connection *connection, const sl_namespace *item,
                            const sl_target *target, sl_error *error) {
    bson_iter_t iter;
    bool ok = true;
    for (bool more = bson_iter_init(&iter, item->indexes); ok && more && bson_iter_next(&iter);) {
        if (!supports(&iter, item->shard_key))
            continue;
        bson_t one = BSON_INITIALIZER;
        ok = (bson_append_iter(&one, "0", 1, &iter) ||
              sl_error_memory(error, "building an index")) &&
             sl_collection_create_indexes(connection, target, &one, error);
        bson_destroy(&one);
    }
    return ok;
}

/* Fails only if the load must not begin. */
static bool distribute(sl_restore *restore, sl_connection *connection, const sl_namespace *item,
                       const sl_target *target, sl_error *error) {
    sl_error why = {0};
    pthread_mutex_lock(&restore->sharding);
    bool ok = sl_interrupt_requested() || presplit(connection, item, target, &why);
    pthread_mutex_unlock(&restore->sharding);
    if (!ok)
        sl_log_warning("%s.%s: not all chunks could be distributed beforehand: " SL_LINES,
                       target->database, target->collection, why.message);
    return !sl_interrupt_requested() ||
           sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted before documents were loaded");
}

bool sl_restore_shard(sl_restore *restore, sl_connection *connection, const sl_namespace *item,
                      const sl_target *target, const sl_collection_facts *before, sl_error *error) {
    bool empty;
    if (!item->shard_key)
        return true;
    if (sl_connection_server(connection)->deployment != SL_SHARDED) {
        sl_log_info("%s.%s: not a sharded cluster: the collection is not sharded", target->database,
                    target->collection);
        return true;
    }
    if (before->exists && !before->sharded && item->kind != SL_NAMESPACE_TIME_SERIES &&
        (!sl_collection_is_empty(connection, target, &empty, error) || !empty))
        return error->code == SL_EXIT_OK &&
               sl_error_set(error, SL_EXIT_CLUSTER,
                            "%s.%s exists with documents and is not sharded: --drop replaces it; "
                            "without its entry in --shard-keys the documents are added to it",
                            target->database, target->collection);
    if (!build_key_index(connection, item, target, error) ||
        !sl_collection_shard(connection, target, item->shard_key, item->shard_unique,
                             item->collated, error))
        return false;
    /* The shard key of a time-series collection is not a key of its buckets. */
    return before->sharded || !item->data || item->kind == SL_NAMESPACE_TIME_SERIES ||
           sl_shard_key_is_hashed(item->shard_key) ||
           distribute(restore, connection, item, target, error);
}
