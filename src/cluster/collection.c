/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a restore on one collection. */
#include "collection.h"

#include <stdio.h>
#include <string.h>

#include "internal.h"

/* ---- reading ---- */

static void take_uuid(const bson_t *reply, char uuid[33]) {
    bson_iter_t inner;
    bson_subtype_t subtype;
    const uint8_t *bytes;
    uint32_t length = 0;
    if (sl_look_find(reply, "cursor.firstBatch.0.info.uuid", &inner) &&
        BSON_ITER_HOLDS_BINARY(&inner))
        bson_iter_binary(&inner, &subtype, &length, &bytes);
    for (uint32_t i = 0; length == 16 && i < length; i++)
        snprintf(uuid + 2 * i, 3, "%02x", bytes[i]);
}

bool sl_collection_read(sl_connection *connection, const sl_target *target,
                        sl_collection_facts *facts, sl_error *error) {
    bson_t reply;
    sl_sharding sharding;
    *facts = (sl_collection_facts){.exists = false};
    bson_init(&facts->options);
    bson_t *list = BCON_NEW("listCollections", BCON_INT32(1), "filter", "{", "name",
                            BCON_UTF8(target->collection), "}");
    bool ok = sl_cluster_command(connection, target->database, list, &reply, NULL, error);
    bson_t options;
    const char *type = ok ? sl_look_text(&reply, "cursor.firstBatch.0.type") : NULL;
    if (type) {
        facts->exists = true;
        snprintf(facts->type, sizeof facts->type, "%s", type);
        take_uuid(&reply, facts->uuid);
        if (sl_look_inside(&reply, "cursor.firstBatch.0.options", &options) &&
            !bson_concat(&facts->options, &options))
            ok = sl_error_memory(error, "reading the collection's options");
    }
    bson_destroy(&reply);
    bson_destroy(list);
    if (ok && facts->exists && sl_connection_server(connection)->deployment == SL_SHARDED) {
        ok = sl_sharding_read(connection, target, &sharding, error);
        facts->sharded = ok && sharding.sharded;
        sl_sharding_clear(&sharding);
    }
    return ok;
}

void sl_collection_facts_clear(sl_collection_facts *facts) {
    bson_destroy(&facts->options);
}

bool sl_collection_is_empty(sl_connection *connection, const sl_target *target, bool *empty,
                            sl_error *error) {
    const bson_t all = BSON_INITIALIZER;
    return sl_is_empty(connection, target, &all, empty, error);
}

bool sl_collection_indexes(sl_connection *connection, const sl_target *target, bson_t *indexes,
                           sl_error *error) {
    bson_t reply, array;
    /* A collection has at most 64 indexes. */
    bson_t *list = BCON_NEW("listIndexes", BCON_UTF8(target->collection), "cursor", "{",
                            "batchSize", BCON_INT32(1000), "}");
    bson_init(indexes);
    bool ok = sl_cluster_command(connection, target->database, list, &reply, NULL, error);
    if (ok && sl_look_inside(&reply, "cursor.firstBatch", &array))
        ok = bson_concat(indexes, &array) || sl_error_memory(error, "reading indexes");
    bson_destroy(&reply);
    bson_destroy(list);
    return ok;
}

/* ---- changes ---- */

/* Clears a failure that counts as success. */
static bool forgive(sl_error *error) {
    *error = (sl_error){.code = SL_EXIT_OK};
    return true;
}

static bool enable_sharding(sl_connection *connection, const char *database, sl_error *error) {
    int32_t code;
    if (sl_connection_server(connection)->deployment != SL_SHARDED)
        return true;
    bson_t *enable = BCON_NEW("enableSharding", BCON_UTF8(database));
    bool ok = sl_cluster_command(connection, "admin", enable, NULL, &code, error) ||
              (code == SL_CODE_ALREADY_INITIALIZED && forgive(error));
    bson_destroy(enable);
    return ok;
}

bool sl_collection_create(sl_connection *connection, const sl_target *target, const bson_t *options,
                          sl_error *error) {
    bson_t create = BSON_INITIALIZER;
    int32_t code = 0;
    BSON_APPEND_UTF8(&create, "create", target->collection);
    bool ok = bson_concat(&create, options) || sl_error_memory(error, "creating a collection");
    sl_append_majority(&create);
    ok =
        ok && (sl_cluster_command(connection, target->database, &create, NULL, &code, error) ||
               (code == SL_CODE_NAMESPACE_EXISTS && forgive(error)) ||
               sl_error_prefix(error, "cannot create %s.%s", target->database, target->collection));
    bson_destroy(&create);
    return ok;
}

bool sl_collection_drop(sl_connection *connection, const char *database, const char *collection,
                        sl_error *error) {
    bson_t drop = BSON_INITIALIZER;
    int32_t code;
    BSON_APPEND_UTF8(&drop, "drop", collection);
    sl_append_majority(&drop);
    bool ok = sl_cluster_command(connection, database, &drop, NULL, &code, error) ||
              (code == SL_CODE_NAMESPACE_NOT_FOUND && forgive(error)) ||
              sl_error_prefix(error, "cannot drop %s.%s", database, collection);
    bson_destroy(&drop);
    return ok;
}

bool sl_collection_create_indexes(sl_connection *connection, const sl_target *target,
                                  const bson_t *indexes, sl_error *error) {
    bson_t create = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&create, "createIndexes", target->collection);
    bool ok = BSON_APPEND_ARRAY(&create, "indexes", indexes) ||
              sl_error_memory(error, "building indexes");
    sl_append_majority(&create);
    ok = ok && sl_cluster_command(connection, target->database, &create, NULL, NULL, error);
    bson_destroy(&create);
    return ok;
}

bool sl_collection_modify(sl_connection *connection, const sl_target *target, const bson_t *fields,
                          sl_error *error) {
    bson_t modify = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&modify, "collMod", target->collection);
    bool ok =
        bson_concat(&modify, fields) || sl_error_memory(error, "changing a collection's options");
    sl_append_majority(&modify);
    ok = ok && sl_cluster_command(connection, target->database, &modify, NULL, NULL, error);
    bson_destroy(&modify);
    return ok;
}

bool sl_collection_shard(sl_connection *connection, const sl_target *target, const bson_t *key,
                         bool unique, bool simple, sl_error *error) {
    char ns[SL_NAMESPACE_ROOM];
    int32_t code;
    bson_t shard = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&shard, "shardCollection", sl_target_namespace(target, ns));
    BSON_APPEND_DOCUMENT(&shard, "key", key);
    if (unique)
        BSON_APPEND_BOOL(&shard, "unique", true);
    if (simple)
        BCON_APPEND(&shard, "collation", "{", "locale", "simple", "}");
    bool ok = enable_sharding(connection, target->database, error) &&
              (sl_cluster_command(connection, "admin", &shard, NULL, &code, error) ||
               sl_error_prefix(error, "cannot shard %s", ns));
    bson_destroy(&shard);
    return ok;
}
