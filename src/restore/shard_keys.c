/* SPDX-License-Identifier: Apache-2.0 */
/* Reads --shard-keys, and shards a collection before its documents are loaded.
 *
 * With a ranged key, the documents are read once for a sample of the key. The collection is split
 * at quantiles of the sample, and the chunks are distributed over the shards. If one of these steps
 * fails, the load is only slower, so the failure is a warning. */
#include "shard_keys.h"

#include <stdlib.h>
#include <string.h>

#include "bson/bson_check.h"
#include "bson/bson_lookup.h"
#include "cluster/cluster.h"
#include "restoring.h"
#include "util/grow.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/read_file.h"
#include "util/yaml_reader.h"

#define CHUNKS_PER_SHARD 4u /* a dump in the order of the key keeps several shards busy */

/* ---- the file ---- */

static bool fail(sl_yaml *r, const yaml_node_t *node, const char *what) {
    return sl_yaml_fail(r, node->start_mark, "%s", what);
}

static bool read_field(sl_yaml *r, const yaml_node_t *field, const yaml_node_t *value,
                       void *into /* bson_t * */) {
    bson_t *key = into;
    sl_text name = sl_yaml_text(field);
    bool hashed = sl_yaml_is(value, "hashed");
    if (!sl_yaml_word(field) || name.length > 1000)
        return fail(r, field, "a field of a key has no name");
    if (hashed && !sl_shard_key_is_hashed(key))
        bson_append_utf8(key, name.bytes, (int)name.length, "hashed", -1);
    else if (sl_yaml_is(value, "1"))
        bson_append_int32(key, name.bytes, (int)name.length, 1);
    else
        return fail(r, field, "a field of a key must be 1 or hashed, and only one may be hashed");
    return true;
}

static bool read_part(sl_yaml *r, const yaml_node_t *word, const yaml_node_t *value,
                      void *into /* sl_shard_entry * */) {
    sl_shard_entry *entry = into;
    size_t fields;
    if (sl_yaml_is(word, "key"))
        return sl_yaml_count(r, value, YAML_MAPPING_NODE,
                             "a mapping as the key, such as {customer: 1} or {_id: hashed}",
                             &fields) &&
               sl_yaml_each(r, value, "", read_field, entry->key);
    entry->unique = sl_yaml_is(value, "true");
    return (sl_yaml_is(word, "unique") && (entry->unique || sl_yaml_is(value, "false"))) ||
           fail(r, word, "expected one key, and unique: true or false");
}

static bool read_entry(sl_yaml *r, const yaml_node_t *name, const yaml_node_t *node,
                       void *into /* sl_shard_keys * */) {
    sl_shard_keys *keys = into;
    sl_text text = sl_yaml_text(name);
    const char *dot = memchr(text.bytes, '.', text.length);
    sl_shard_entry *items = sl_grow(keys->items, keys->count, &keys->room, sizeof *items);
    if (!items)
        return sl_error_memory(r->error, "reading --shard-keys");
    keys->items = items;
    sl_shard_entry *entry = &items[keys->count++];
    *entry = (sl_shard_entry){.name = strndup(text.bytes, text.length), .key = bson_new()};
    if (!entry->name || !entry->key)
        return sl_error_memory(r->error, "reading --shard-keys");
    if (!dot || dot == text.bytes || dot == text.bytes + text.length - 1)
        return fail(r, name, "expected DATABASE.COLLECTION");
    if (!sl_yaml_each(r, node, "{key: {...}}", read_part, entry))
        return false;
    if (bson_empty(entry->key))
        return fail(r, name, "the key is missing");
    return !entry->unique || !sl_shard_key_is_hashed(entry->key) ||
           fail(r, name, "a hashed key cannot be unique");
}

bool sl_shard_keys_parse(sl_shard_keys *keys, const char *path, sl_text text, sl_error *error) {
    static const char expected[] = "a mapping: DATABASE.COLLECTION: {key: {...}}";
    sl_yaml r = {.text = text, .file = path, .code = SL_EXIT_USAGE, .error = error};
    const yaml_node_t *root;
    if (!sl_yaml_read(&r, &root))
        return false;
    bool ok = root ? sl_yaml_each(&r, root, expected, read_entry, keys)
                   : sl_error_set(error, SL_EXIT_USAGE, "%s: expected %s", path, expected);
    yaml_document_delete(&r.document);
    return ok;
}

void sl_shard_keys_clear(sl_shard_keys *keys) {
    for (size_t i = 0; i < keys->count; i++) {
        free(keys->items[i].name);
        bson_destroy(keys->items[i].key);
    }
    free(keys->items);
    *keys = (sl_shard_keys){0};
}

bool sl_shard_keys_apply(const sl_shard_keys *keys, sl_dump *dump, sl_error *error) {
    for (size_t k = 0; k < keys->count; k++) {
        const sl_shard_entry *entry = &keys->items[k];
        sl_namespace *found = NULL;
        for (size_t i = 0; !found && i < dump->count; i++) {
            sl_namespace *item = &dump->items[i];
            size_t length = item->left_out ? 0 : strlen(item->to_database);
            if (!item->left_out && strncmp(entry->name, item->to_database, length) == 0 &&
                entry->name[length] == '.' &&
                strcmp(entry->name + length + 1, item->to_collection) == 0)
                found = item;
        }
        if (!found)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--shard-keys: %s is not restored; give the names that the "
                                "collections have on the server",
                                entry->name);
        if (found->kind == SL_NAMESPACE_VIEW || found->capped)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--shard-keys: %s is a %s, which cannot be sharded", entry->name,
                                found->capped ? "capped collection" : "view");
        found->shard_key = entry->key;
        found->shard_unique = entry->unique;
    }
    return true;
}

/* ---- the sample ---- */

/* Offers the documents of a data file to the sample; sampling ends at damage. */
static bool read_sample(const char *path, sl_key_sample *sample, sl_error *error) {
    sl_source_set *set = NULL;
    sl_reader *reader = NULL;
    sl_source_block block;
    bool ok = sl_dump_open_documents(path, &set, &reader, error), valid = ok;
    while (ok && valid && !sl_interrupt_requested()) {
        sl_read_result result = sl_reader_next(reader, &block, error);
        ok = result != SL_READ_FAILED;
        valid = result == SL_READ_BLOCK;
        for (size_t at = 0; ok && valid && at < block.text.length;) {
            const uint8_t *document = (const uint8_t *)block.text.bytes + at;
            sl_bson_facts facts = {0};
            valid = sl_bson_check(document, block.text.length - at, &facts) == SL_BSON_VALID;
            ok = !valid || sl_key_sample_offer(sample, document) ||
                 sl_error_memory(error, "sampling a shard key");
            at += facts.length;
        }
    }
    sl_reader_destroy(reader);
    sl_source_set_destroy(set);
    return ok;
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
