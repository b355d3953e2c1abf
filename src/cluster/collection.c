/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of a restore on one collection. */
#include "collection.h"

#include <stdio.h>
#include <string.h>

#include "util/context.h"

#include "internal.h"

/* ---- reading ---- */

bool sl_collection_read(sl_connection *connection, const sl_target *target,
                        sl_collection_facts *facts, sl_error *error) {
    bson_t reply;
    sl_sharding sharding;
    *facts = (sl_collection_facts){.exists = false};
    bson_init(&facts->options);
    bson_t *list = BCON_NEW("listCollections", BCON_INT32(1), "filter", "{", "name",
                            BCON_UTF8(target->collection), "}");
    bool ok = sl_cluster_run(connection, target->database, list, &reply, NULL, error);
    bson_t options;
    bson_iter_t uuid;
    const char *type = ok ? sl_look_text(&reply, "cursor.firstBatch.0.type") : NULL;
    if (type) {
        facts->exists = true;
        snprintf(facts->type, sizeof facts->type, "%s", type);
        if (sl_look_find(&reply, "cursor.firstBatch.0.info.uuid", &uuid))
            sl_uuid_of(&uuid, facts->uuid);
        if (sl_look_inside(&reply, "cursor.firstBatch.0.options", &options) &&
            !bson_concat(&facts->options, &options))
            ok = sl_error_memory(error, "reading the collection's options");
    }
    bson_destroy(&reply);
    if (ok && facts->exists && sl_connection_server(connection)->deployment == SL_SHARDED) {
        ok = sl_sharding_read(connection, target, &sharding, error);
        facts->sharded = ok && sharding.sharded;
        sl_sharding_clear(&sharding);
    }
    return ok;
}

bool sl_collection_identity(sl_connection *connection, const sl_target *target,
                            char out[SL_COLLECTION_IDENTITY_ROOM], sl_error *error) {
    sl_collection_facts facts, buckets = {.exists = false};
    char name[SL_NAMESPACE_ROOM];
    sl_target inner = *target;
    bool ok = sl_collection_read(connection, target, &facts, error);
    const char *uuid = facts.uuid;
    out[0] = '\0';
    if (ok && strcmp(facts.type, "timeseries") == 0) { /* the collection behind it has a UUID */
        snprintf(name, sizeof name, SL_BUCKETS "%s", target->collection);
        inner.collection = name;
        ok = sl_collection_read(connection, &inner, &buckets, error);
        uuid = buckets.uuid;
        sl_collection_facts_clear(&buckets);
    }
    if (ok && facts.exists)
        snprintf(out, SL_COLLECTION_IDENTITY_ROOM, "%s %s", facts.type, uuid);
    sl_collection_facts_clear(&facts);
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
    bool ok = sl_cluster_run(connection, target->database, list, &reply, NULL, error);
    if (ok && sl_look_inside(&reply, "cursor.firstBatch", &array))
        ok = bson_concat(indexes, &array) || sl_error_memory(error, "reading indexes");
    bson_destroy(&reply);
    return ok;
}

/* ---- changes ---- */

bool sl_enable_sharding(sl_connection *connection, const char *database, sl_error *error) {
    return sl_connection_server(connection)->deployment != SL_SHARDED ||
           sl_cluster_change(connection, "admin", BCON_NEW("enableSharding", BCON_UTF8(database)),
                             SL_CODE_ALREADY_INITIALIZED, error);
}

/* Sends a command on the collection, with these fields (NULL: none) and a write concern. */
static bool change(sl_connection *connection, const sl_target *target, const char *name,
                   const bson_t *fields, int32_t harmless, sl_error *error) {
    bson_t *command = bson_new();
    bson_append_utf8(command, name, -1, target->collection, -1);
    if (fields && !bson_concat(command, fields)) {
        bson_destroy(command);
        return sl_error_memory(error, "changing a collection");
    }
    sl_append_majority(command);
    sl_context_changes();
    return sl_cluster_change(connection, target->database, command, harmless, error);
}

bool sl_collection_create(sl_connection *connection, const sl_target *target, const bson_t *options,
                          sl_error *error) {
    return change(connection, target, "create", options, SL_CODE_NAMESPACE_EXISTS, error) ||
           sl_error_prefix(error, "cannot create %s.%s", target->database, target->collection);
}

bool sl_collection_drop(sl_connection *connection, const char *database, const char *collection,
                        sl_error *error) {
    const sl_target target = {.database = database, .collection = collection};
    return change(connection, &target, "drop", NULL, SL_CODE_NAMESPACE_NOT_FOUND, error) ||
           sl_error_prefix(error, "cannot drop %s.%s", database, collection);
}

bool sl_collection_create_indexes(sl_connection *connection, const sl_target *target,
                                  const bson_t *indexes, sl_error *error) {
    bson_t *fields = BCON_NEW("indexes", BCON_ARRAY(indexes));
    bool ok = change(connection, target, "createIndexes", fields, 0, error);
    bson_destroy(fields);
    return ok;
}

bool sl_collection_modify(sl_connection *connection, const sl_target *target, const bson_t *fields,
                          sl_error *error) {
    return change(connection, target, "collMod", fields, 0, error);
}

bool sl_collection_shard(sl_connection *connection, const sl_target *target, const bson_t *key,
                         bool unique, bool simple, sl_error *error) {
    char ns[SL_NAMESPACE_ROOM];
    if (!sl_enable_sharding(connection, target->database, error))
        return false;
    bson_t *shard = BCON_NEW("shardCollection", BCON_UTF8(sl_target_namespace(target, ns)), "key",
                             BCON_DOCUMENT(key));
    if (unique)
        BSON_APPEND_BOOL(shard, "unique", true);
    if (simple)
        BCON_APPEND(shard, "collation", "{", "locale", "simple", "}");
    return sl_cluster_change(connection, "admin", shard, 0, error) ||
           sl_error_prefix(error, "cannot shard %s", ns);
}
