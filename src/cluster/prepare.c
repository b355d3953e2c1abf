/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the target collection of a load: creates and shards it, or checks that the existing one
 * fits. And the commands of a restore on one collection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "util/context.h"
#include "util/log.h"
#include "util/text.h"

#include "cluster.h"
#include "internal.h"

/* ---- reading ---- */

/* As sl_collection_read; `sharded` is not set. */
static bool read_facts(sl_connection *connection, const sl_target *target,
                       sl_collection_facts *facts, sl_error *error) {
    bson_t reply;
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
    return ok;
}

bool sl_collection_read(sl_connection *connection, const sl_target *target,
                        sl_collection_facts *facts, sl_error *error) {
    sl_sharding sharding;
    bool ok = read_facts(connection, target, facts, error);
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

/* Enables sharding for the database, which creates it; only on a sharded cluster. Database admin
 * always exists, and its collections cannot be sharded. */
static bool enable_sharding(sl_connection *connection, const char *database, sl_error *error) {
    return sl_connection_server(connection)->deployment != SL_SHARDED ||
           strcmp(database, "admin") == 0 ||
           sl_cluster_change(connection, "admin", BCON_NEW("enableSharding", BCON_UTF8(database)),
                             SL_CODE_ALREADY_INITIALIZED, error);
}

bool sl_option_name_check(const char *name, sl_error *error) {
    return *name != '$' ||
           sl_error_set(error, SL_EXIT_SOURCE, "%.100s is not an option of collections", name);
}

/* Sends a command on the collection, with these fields (NULL: none) and a write concern. */
static bool change(sl_connection *connection, const sl_target *target, const char *name,
                   const bson_t *fields, int32_t harmless, sl_error *error) {
    bson_iter_t at;
    for (bool more = fields && bson_iter_init(&at, fields); more && bson_iter_next(&at);) {
        if (!sl_option_name_check(bson_iter_key(&at), error))
            return false;
    }
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

/* Counts the shards with each index, and those where it is unique: a router's listIndexes returns
 * the indexes of one shard. */
static bool count_indexes(sl_connection *connection, const sl_target *target, bson_t *rows,
                          sl_error *error) {
    bson_t reply, batch;
    bson_t *count = BCON_NEW("aggregate", BCON_UTF8(target->collection), "pipeline", "[", "{",
                             "$indexStats", "{", "}", "}", "{", "$group", "{", "_id", "$name",
                             "shards", "{", "$sum", BCON_INT32(1), "}", "unique", "{", "$sum", "{",
                             "$cond", "[", "$spec.unique", BCON_INT32(1), BCON_INT32(0), "]", "}",
                             "}", "}", "}", "]", "cursor", "{", "batchSize", BCON_INT32(1000), "}");
    bool ok = sl_cluster_run(connection, target->database, count, &reply, NULL, error);
    bson_init(rows);
    if (ok && sl_look_inside(&reply, "cursor.firstBatch", &batch))
        ok = bson_concat(rows, &batch) || sl_error_memory(error, "reading indexes");
    bson_destroy(&reply);
    return ok;
}

/* The number of shards with this unique index. `*all`: of those that have the collection. */
static int64_t shards_with(const bson_t *rows, const char *name, int64_t *all) {
    int64_t with = 0;
    *all = 0;
    for (sl_walk walk = sl_walk_of(rows); sl_walk_next(&walk);) {
        const int64_t shards = sl_look_int64(&walk.item, "shards", 0);
        *all = shards > *all ? shards : *all;
        if (strcmp(sl_look_string(&walk.item, "_id"), name) == 0)
            with = sl_look_int64(&walk.item, "unique", 0);
    }
    return with;
}

/* After a failed build, shards without duplicates have the unique index. Removes it, unless a shard
 * had it before: `before` has the rows of count_indexes of that time; empty: not known. */
static void remove_unfinished(sl_connection *connection, const sl_target *target,
                              const bson_t *before, const bson_t *index) {
    const char *name = sl_look_string(index, "name");
    bson_t now;
    int64_t all;
    sl_error why = {0};
    const bool known = count_indexes(connection, target, &now, &why);
    if (!known || shards_with(&now, name, &all) > 0) {
        if (known && !bson_empty(before) && shards_with(before, name, &all) == 0 &&
            sl_collection_drop_index(connection, target, name, &why))
            sl_log_info("%s.%s: index %s is removed from the shards that could build it",
                        target->database, target->collection, name);
        else
            sl_log_warning(
                "%s.%s may have the unique index %s on some shards only, which refuse "
                "documents that the others store. To remove it, give mongosh %s.dropIndex(%s)",
                target->database, target->collection, name,
                sl_mongosh_collection(target->database, target->collection),
                sl_mongosh_string(name));
    }
    bson_destroy(&now);
}

static bool create_indexes(sl_connection *connection, const sl_target *target,
                           const bson_t *indexes, int32_t harmless, sl_error *error) {
    bson_t *fields = BCON_NEW("indexes", BCON_ARRAY(indexes)), before = BSON_INITIALIZER;
    sl_error ignored;
    bool unique = false;
    for (sl_walk walk = sl_walk_of(indexes); sl_walk_next(&walk);)
        unique = unique || sl_look_flag(&walk.item, "unique");
    unique = unique && sl_connection_server(connection)->deployment == SL_SHARDED;
    if (unique)
        count_indexes(connection, target, &before, &ignored);
    bool ok = change(connection, target, "createIndexes", fields, harmless, error);
    for (sl_walk walk = sl_walk_of(indexes);
         unique && !ok && error->server_code == SL_CODE_DUPLICATE_KEY && sl_walk_next(&walk);) {
        if (sl_look_flag(&walk.item, "unique"))
            remove_unfinished(connection, target, &before, &walk.item);
    }
    bson_destroy(&before);
    bson_destroy(fields);
    return ok;
}

bool sl_collection_create_indexes(sl_connection *connection, const sl_target *target,
                                  const bson_t *indexes, sl_error *error) {
    return create_indexes(connection, target, indexes, 0, error);
}

bool sl_collection_modify(sl_connection *connection, const sl_target *target, const bson_t *fields,
                          sl_error *error) {
    return change(connection, target, "collMod", fields, 0, error);
}

bool sl_merge_users(sl_connection *connection, const char *parameter, const char *collection,
                    const char *of_database, bool drop, sl_error *error) {
    const sl_target target = {.database = "admin", .collection = collection};
    char ns[SL_NAMESPACE_ROOM];
    bson_t *merge = BCON_NEW("_mergeAuthzCollections", BCON_INT32(1), parameter,
                             BCON_UTF8(sl_target_namespace(&target, ns)), "db",
                             BCON_UTF8(of_database), "drop", BCON_BOOL(drop));
    sl_append_majority(merge);
    sl_context_changes();
    return sl_cluster_change(connection, "admin", merge, 0, error);
}

bool sl_collection_rename(sl_connection *connection, const sl_target *from, const sl_target *to,
                          sl_error *error) {
    char name[SL_NAMESPACE_ROOM], new_name[SL_NAMESPACE_ROOM];
    bson_t *command =
        BCON_NEW("renameCollection", BCON_UTF8(sl_target_namespace(from, name)), "to",
                 BCON_UTF8(sl_target_namespace(to, new_name)), "dropTarget", BCON_BOOL(true));
    sl_append_majority(command);
    sl_context_changes();
    return sl_cluster_change(connection, "admin", command, SL_CODE_NAMESPACE_NOT_FOUND, error) ||
           sl_error_prefix(error, "cannot rename %s", name);
}

bool sl_collection_drop_index(sl_connection *connection, const sl_target *target, const char *index,
                              sl_error *error) {
    bson_t *fields = BCON_NEW("index", BCON_UTF8(index));
    bool ok = change(connection, target, "dropIndexes", fields, 27 /* IndexNotFound */, error);
    bson_destroy(fields);
    return ok;
}

bool sl_collection_shard_key(sl_connection *connection, const sl_target *target, bson_t *key,
                             bool *unique, sl_error *error) {
    sl_sharding sharding;
    bool ok = sl_sharding_read(connection, target, &sharding, error);
    bson_init(key);
    ok = ok && (!sharding.sharded || bson_concat(key, &sharding.key) ||
                sl_error_memory(error, "reading a shard key"));
    if (unique)
        *unique = ok && sharding.sharded && sl_look_flag(&sharding.document, "unique");
    sl_sharding_clear(&sharding);
    return ok;
}

bool sl_collection_zone(sl_connection *connection, const sl_target *target, char *name, size_t room,
                        sl_error *error) {
    char ns[SL_NAMESPACE_ROOM];
    bson_t documents, zone;
    bson_t *filter = BCON_NEW("ns", BCON_UTF8(sl_target_namespace(target, ns)));
    bson_t *options = BCON_NEW("limit", BCON_INT64(1));
    bool ok = sl_connection_find(connection, "config", "tags", filter, options, &documents, error);
    name[0] = '\0';
    if (ok && sl_look_inside(&documents, "0", &zone))
        sl_print_text(name, room, "%s", sl_look_string(&zone, "tag"));
    bson_destroy(&documents);
    bson_destroy(options);
    bson_destroy(filter);
    return ok;
}

bool sl_collection_shard(sl_connection *connection, const sl_target *target, const bson_t *key,
                         bool unique, bool simple, sl_error *error) {
    char ns[SL_NAMESPACE_ROOM];
    if (!enable_sharding(connection, target->database, error))
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

/* ---- the target ---- */

/* Drops, creates, shards and indexes the target collection as requested; steps already done are
 * skipped.
 *
 * Several loaders may do this at once, so each step may fail because another loader has just done
 * it. Then the result is compared with the request, as for a collection that existed before. */

/* ---- the registry ---- */

/* Does a document of the collection match? Consumes the filter. */
static bool holds(sl_connection *connection, const char *database, const char *collection,
                  bson_t *filter, bool *found, sl_error *error) {
    const sl_target target = {.database = database, .collection = collection};
    bool empty;
    bool ok = sl_is_empty(connection, &target, filter, &empty, error);
    *found = ok && !empty;
    bson_destroy(filter);
    return ok;
}

/* Refuses a target whose registry would be a collection of the user's, and a target that is the
 * registry of another collection: the load would write into it, or --drop would drop it. */
static bool check_registry(sl_connection *connection, const sl_target *target, sl_error *error) {
    char registry[SL_NAMESPACE_ROOM];
    const char *suffix = strrchr(target->collection, '.');
    bool found = false;
    if (target->registry && !target->registry[0])
        return true;
    sl_target_registry(target, registry);
    bson_t *others = BCON_NEW("$nor", "[", "{", "_id", "counter", "last", "{", "$type", "number",
                              "}", "}", "{", "_id", "creating", "}", "{", "_id", "{", "$type",
                              "string", "}", "number", "{", "$type", "number", "}", "state", "{",
                              "$in", "[", "started", "loaded", "]", "}", "}", "]");
    if (!holds(connection, sl_registry_database(target->database), registry, others, &found, error))
        return false;
    if (found)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s.%s holds other documents than a registry of sources, and a load "
                            "into %s.%s would use it as its registry: rename that collection, or "
                            "load into another --collection",
                            target->database, registry, target->database, target->collection);
    if (!suffix || strcmp(suffix, SL_REGISTRY_SUFFIX) != 0)
        return true;
    bson_t *counter = BCON_NEW("_id", "counter", "last", "{", "$type", "number", "}");
    if (!holds(connection, target->database, target->collection, counter, &found, error))
        return false;
    return !found || sl_error_set(error, SL_EXIT_USAGE,
                                  "%s.%s is the registry of sources of the collection %.*s: load "
                                  "into another --collection",
                                  target->database, target->collection,
                                  (int)(suffix - target->collection), target->collection);
}

/* ---- drop ---- */

bool sl_may_drop(sl_connection *connection, const sl_target *target, sl_error *error) {
    bson_t *command = BCON_NEW("drop", BCON_UTF8(target->collection));
    sl_append_majority(command);
    return sl_cluster_change(connection, target->database, command, SL_CODE_NAMESPACE_NOT_FOUND,
                             error);
}

/* Drops the collection before its registry. If the process dies in between, the registry is that of
 * a dropped collection, and reads as empty. In the other order, numbers would be assigned again
 * while documents with these numbers still exist. */
static bool drop_registry(sl_connection *connection, const sl_target *target, sl_error *error) {
    char registry[SL_NAMESPACE_ROOM];
    return sl_collection_drop(connection, sl_registry_database(target->database),
                              sl_target_registry(target, registry), error);
}

bool sl_drop_target(sl_connection *connection, const sl_target *target, sl_error *error) {
    return sl_collection_drop(connection, target->database, target->collection, error) &&
           drop_registry(connection, target, error);
}

bool sl_registry_drop(sl_connection *connection, const sl_target *target, sl_error *error) {
    return check_registry(connection, target, error) && drop_registry(connection, target, error);
}

/* ---- the existing collection ---- */

typedef struct existing {
    bool exists;
    bool clustered;
    bool capped;
    char locale[32];         /* as in sl_target */
    char type[32];           /* "collection", "view", "timeseries" */
    char uuid[SL_UUID_ROOM]; /* "" when it has none */
    char validator[sizeof((sl_target *)NULL)->validator];
} existing;

static bool read_existing(sl_connection *connection, const sl_target *target, existing *found,
                          sl_error *error) {
    sl_collection_facts facts;
    bson_t validator;
    bson_iter_t inner;
    bool ok = read_facts(connection, target, &facts, error);
    *found = (existing){.exists = facts.exists,
                        .clustered = sl_look_find(&facts.options, "clusteredIndex", &inner),
                        .capped = sl_look_truth(&facts.options, "capped") == 1};
    snprintf(found->type, sizeof found->type, "%s", facts.type);
    snprintf(found->uuid, sizeof found->uuid, "%s", facts.uuid);
    snprintf(found->locale, sizeof found->locale, "%s",
             sl_look_string(&facts.options, "collation.locale"));
    if (strcmp(found->locale, "simple") == 0)
        found->locale[0] = '\0';
    char *json = sl_look_inside(&facts.options, "validator", &validator)
                     ? sl_document_json(&validator)
                     : NULL;
    sl_print_text(found->validator, sizeof found->validator, "%s", json ? json : "");
    bson_free(json);
    sl_collection_facts_clear(&facts);
    return ok;
}

bool sl_target_read(sl_connection *connection, sl_target *target, sl_error *error) {
    existing found;
    bool ok = read_existing(connection, target, &found, error);
    memcpy(target->uuid, found.uuid, SL_UUID_ROOM);
    target->capped = found.capped;
    memcpy(target->locale, found.locale, sizeof target->locale);
    memcpy(target->validator, found.validator, sizeof target->validator);
    return ok;
}

bool sl_target_uuid(sl_connection *connection, const sl_target *target, char uuid[SL_UUID_ROOM],
                    sl_error *error) {
    existing found;
    bool ok = read_existing(connection, target, &found, error);
    memcpy(uuid, found.uuid, SL_UUID_ROOM);
    return ok;
}

bool sl_target_exists(sl_connection *connection, const sl_target *target, bool *exists,
                      sl_error *error) {
    existing found;
    bool ok = read_existing(connection, target, &found, error);
    *exists = found.exists;
    return ok;
}

/* The block compressor in a storage engine's creation string; "none" if it names none. */
static void compressor_of(const char *creation, char out[32]) {
    static const char name[] = "block_compressor=";
    const char *at = strstr(creation, name);
    at = at ? at + strlen(name) : "";
    int length = (int)strcspn(at, ",)\"");
    snprintf(out, 32, "%.*s", length, length > 0 ? at : "none");
    if (length == 0)
        strcpy(out, "none");
}

/* Compares the compressor with that of the files on every shard. The collection's options do not
 * contain a compressor that was the server's default. */
static bool check_compressor(sl_connection *connection, const sl_target *target, sl_error *error) {
    bson_t reply;
    bson_t *statistics =
        BCON_NEW("aggregate", BCON_UTF8(target->collection), "pipeline", "[", "{", "$collStats",
                 "{", "storageStats", "{", "}", "}", "}", "{", "$project", "{", "shard",
                 BCON_INT32(1), "creation", "$storageStats.wiredTiger.creationString", "}", "}",
                 "]", "cursor", "{", "batchSize", BCON_INT32(10000), "}");
    bool ok = sl_cluster_run(connection, target->database, statistics, &reply, NULL, error);
    for (sl_walk walk = sl_walk_start(&reply, "cursor.firstBatch"); ok && sl_walk_next(&walk);) {
        const char *creation = sl_look_text(&walk.item, "creation");
        const char *shard = sl_look_text(&walk.item, "shard");
        char compressor[32];
        if (!creation)
            continue; /* another storage engine: nothing to compare */
        compressor_of(creation, compressor);
        if (strcmp(compressor, target->compressor) != 0)
            ok = sl_error_set(error, SL_EXIT_CLUSTER,
                              "%s.%s exists with compressor %s%s%s, and --compressor %s was given; "
                              "leave the option out to load into the existing collection, or use "
                              "--drop to create it again",
                              target->database, target->collection, compressor,
                              shard ? " on shard " : "", shard ? shard : "", target->compressor);
    }
    bson_destroy(&reply);
    return ok;
}

static bool check_existing(sl_connection *connection, const sl_target *target,
                           const existing *found, sl_error *error) {
    if (strcmp(found->type, "collection") != 0)
        return sl_error_set(
            error, SL_EXIT_CLUSTER,
            "%s.%s is a %s, not a collection; choose another name with --collection",
            target->database, target->collection, found->type);
    if (target->clustered && !found->clustered)
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "%s.%s exists and is not clustered, and --clustered was given; leave "
                            "the option out to load into the existing collection, or use --drop to "
                            "create it again",
                            target->database, target->collection);
    return !target->compressor || check_compressor(connection, target, error);
}

/* ---- create ---- */

static bool check_version(sl_connection *connection, const sl_target *target, sl_error *error) {
    const sl_server *server = sl_connection_server(connection);
    if (!target->clustered || sl_server_at_least(server, 5, 3))
        return true;
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "--clustered needs server 5.3 or later, and this is %s; leave the option "
                        "out",
                        server->version);
}

/* `*created` is false when the collection already exists, created by another client. */
static bool create_collection(sl_connection *connection, const sl_target *target, bool *created,
                              sl_error *error) {
    bson_t *create = BCON_NEW("create", BCON_UTF8(target->collection));
    if (target->compressor) {
        char config[64];
        snprintf(config, sizeof config, "block_compressor=%s", target->compressor);
        BCON_APPEND(create, "storageEngine", "{", "wiredTiger", "{", "configString",
                    BCON_UTF8(config), "}", "}");
    }
    if (target->clustered)
        BCON_APPEND(create, "clusteredIndex", "{", "key", "{", "_id", BCON_INT32(1), "}", "unique",
                    BCON_BOOL(true), "}");
    sl_append_majority(create);
    int32_t code;
    *created = sl_cluster_run(connection, target->database, create, NULL, &code, error);
    return *created || code == SL_CODE_NAMESPACE_EXISTS ||
           sl_error_prefix(error, "cannot create %s.%s%s%s%s", target->database, target->collection,
                           target->compressor ? " with compressor " : "",
                           target->compressor ? target->compressor : "",
                           target->clustered ? ", clustered" : "");
}

/* ---- shard ---- */

bool sl_keys_equal(const bson_t *a, const bson_t *b) {
    bson_iter_t in_a, in_b;
    if (!bson_iter_init(&in_a, a) || !bson_iter_init(&in_b, b))
        return false;
    for (;;) {
        bool more_a = bson_iter_next(&in_a), more_b = bson_iter_next(&in_b);
        if (!more_a || !more_b)
            return more_a == more_b;
        if (strcmp(bson_iter_key(&in_a), bson_iter_key(&in_b)) != 0)
            return false;
        if (BSON_ITER_HOLDS_UTF8(&in_a) && BSON_ITER_HOLDS_UTF8(&in_b)) {
            if (strcmp(bson_iter_utf8(&in_a, NULL), bson_iter_utf8(&in_b, NULL)) != 0)
                return false;
        } else if (!BSON_ITER_HOLDS_NUMBER(&in_a) || !BSON_ITER_HOLDS_NUMBER(&in_b) ||
                   bson_iter_as_int64(&in_a) != bson_iter_as_int64(&in_b)) {
            return false;
        }
    }
}

/* Reads whether the collection is sharded, and compares its shard key with the given one. */
static bool check_key(sl_connection *connection, const sl_target *target, bool *sharded,
                      sl_error *error) {
    sl_sharding sharding;
    bool ok = sl_sharding_read(connection, target, &sharding, error);
    *sharded = ok && sharding.sharded;
    if (*sharded && target->shard_key_given && !sl_keys_equal(&sharding.key, target->shard_key)) {
        char *is = sl_document_json(&sharding.key);
        char *asked = sl_document_json(target->shard_key);
        ok = sl_error_set(error, SL_EXIT_CLUSTER,
                          "%s.%s is sharded by %s, and --shard-key %s was given; leave the "
                          "option out to use the existing key, or use --drop to create it again",
                          target->database, target->collection, is, asked);
        bson_free(is);
        bson_free(asked);
    } else if (*sharded && target->shard_key_unique &&
               !sl_look_flag(&sharding.document, "unique")) {
        ok = sl_error_set(error, SL_EXIT_CLUSTER,
                          "%s.%s is sharded by this key, which is not unique; leave \"unique\" out "
                          "of --shard-key to use the existing key",
                          target->database, target->collection);
    } else if (*sharded) {
        ok = sl_check_ids(&sharding.key, target->id_fields, target->id_count, error);
    }
    sl_sharding_clear(&sharding);
    return ok;
}

static bool create_key_index(sl_connection *connection, const sl_target *target, sl_error *error) {
    bson_t *index = BCON_NEW("key", BCON_DOCUMENT(target->shard_key));
    if (target->shard_key_unique)
        BSON_APPEND_BOOL(index, "unique", true);
    bool ok = sl_create_index(connection, target, index, error);
    bson_destroy(index);
    return ok;
}

/* If the key begins with a hashed field, the server distributes a new collection over the shards:
 * by default with two chunks per shard, in newer versions with one. For {_id: 1} sl_prepare_ranges
 * does that. For other keys the distribution of values is not known before there is data. */
static bool shard_collection(sl_connection *connection, const sl_target *target, bool is_new,
                             sl_error *error) {
    bool sharded;
    if (!check_key(connection, target, &sharded, error))
        return false;
    if (sharded)
        return true;
    /* The server creates the key's index by itself only for an empty collection. */
    if (!is_new && !sl_key_is_id(target->shard_key) && !create_key_index(connection, target, error))
        return false;
    if (sl_collection_shard(connection, target, target->shard_key, target->shard_key_unique, false,
                            error))
        return true;
    return error->server_code == SL_CODE_ALREADY_INITIALIZED &&
           check_key(connection, target, &sharded, error);
}

/* ---- deciding about the sharding ----
 *
 * An existing unsharded collection is sharded only with --shard-existing. A collection that a
 * loader is creating is also unsharded, for a short time, or after a crash until the next load. To
 * tell the two apart, a loader writes a marker into the registry:
 *
 *     write the marker, create, shard, remove the marker.
 *
 * Another loader reads, in this order, whether the collection exists, whether there is a marker,
 * and whether the collection is sharded. If a loader created the collection, the marker was written
 * before the first read. If the second read finds no marker, it was removed in between, and the
 * third read finds a sharded collection. If the collection holds documents, the marker belongs to
 * an earlier collection, because loaders insert no document before they have sharded it. */

static bool find_marker(sl_connection *connection, const sl_target *target, bool *found,
                        sl_error *error) {
    char registry[SL_NAMESPACE_ROOM];
    return holds(connection, sl_registry_database(target->database),
                 sl_target_registry(target, registry), BCON_NEW("_id", "creating"), found, error);
}

static bool change_marker(sl_connection *connection, const sl_target *target, bool set,
                          sl_error *error) {
    char registry[SL_NAMESPACE_ROOM];
    bson_t *query = BCON_NEW("_id", "creating");
    bson_t *update = BCON_NEW("$currentDate", "{", "since", BCON_BOOL(true), "}");
    bool ok = sl_find_and_modify(connection, sl_registry_database(target->database),
                                 sl_target_registry(target, registry), query, set ? update : NULL,
                                 set, NULL, NULL, error);
    bson_destroy(update);
    bson_destroy(query);
    return ok;
}

/* Are the fields of the shard key the first ones of the index? */
static bool is_beginning(const bson_t *shard_key, const bson_t *key) {
    bson_iter_t first, second;
    bson_iter_init(&second, key);
    for (bool more = bson_iter_init(&first, shard_key); more && bson_iter_next(&first);) {
        if (!bson_iter_next(&second) || strcmp(bson_iter_key(&first), bson_iter_key(&second)) != 0)
            return false;
    }
    return true;
}

/* Does a unique index not begin with the shard key? Index _id_ is no obstacle. */
static bool is_obstacle(const bson_t *index, const bson_t *shard_key) {
    bson_t key;
    return sl_look_flag(index, "unique") && sl_look_inside(index, "key", &key) &&
           !is_beginning(shard_key, &key);
}

/* Would the servers refuse to shard the existing collection by the target's key? */
static bool may_be_sharded(sl_connection *connection, const sl_target *target,
                           const existing *found, sl_error *error) {
    static const char format[] = "--shard-existing: %.255s.%.255s %s%.80s, so servers refuse to "
                                 "shard it by this key; leave the option out to load into it "
                                 "unsharded";
    const char *database = target->database, *collection = target->collection;
    bson_t indexes;
    if (found->capped)
        return sl_error_set(error, SL_EXIT_USAGE, format, database, collection,
                            "is a capped collection", "");
    if (found->locale[0])
        return sl_error_set(error, SL_EXIT_USAGE, format, database, collection,
                            "has a default collation of locale ", found->locale);
    bool ok = sl_collection_indexes(connection, target, &indexes, error);
    for (sl_walk walk = sl_walk_of(&indexes); ok && sl_walk_next(&walk);) {
        if (is_obstacle(&walk.item, target->shard_key))
            ok = sl_error_set(error, SL_EXIT_USAGE, format, database, collection,
                              "has a unique index that does not begin with the shard key: ",
                              sl_look_string(&walk.item, "name"));
    }
    bson_destroy(&indexes);
    return ok;
}

static bool decide_existing(sl_connection *connection, const sl_target *target,
                            const existing *found, sl_sharding_change *change, sl_error *error) {
    const bson_t all = BSON_INITIALIZER;
    bool created, sharded;
    *change = SL_SHARDING_NONE;
    if (!target->shard_key || sl_connection_server(connection)->deployment != SL_SHARDED)
        return true;
    if (!find_marker(connection, target, &created, error) ||
        (created && !sl_is_empty(connection, target, &all, &created, error)) ||
        !check_key(connection, target, &sharded, error))
        return false;
    if (sharded)
        return true;
    *change = created                  ? SL_SHARDING_NEW
              : target->shard_existing ? SL_SHARDING_EXISTING
                                       : SL_SHARDING_LEFT;
    if (*change == SL_SHARDING_EXISTING)
        return may_be_sharded(connection, target, found, error);
    if (*change != SL_SHARDING_LEFT || !target->shard_key_given)
        return true;
    char *asked = sl_document_json(target->shard_key);
    sl_error_set(error, SL_EXIT_USAGE,
                 "%s.%s exists and is not sharded, and --shard-key %s was given: add "
                 "--shard-existing to shard it, or leave --shard-key out to load into it unsharded",
                 target->database, target->collection, asked);
    bson_free(asked);
    return false;
}

bool sl_target_look(sl_connection *connection, const sl_target *target, sl_target_view *view,
                    sl_error *error) {
    existing found = {.exists = false};
    *view = (sl_target_view){.change = target->shard_key ? SL_SHARDING_NEW : SL_SHARDING_NONE};
    if (!check_version(connection, target, error) || !check_registry(connection, target, error) ||
        (!target->drop && !read_existing(connection, target, &found, error)))
        return false;
    view->exists = found.exists;
    view->capped = found.capped;
    memcpy(view->locale, found.locale, sizeof view->locale);
    return !found.exists || (check_existing(connection, target, &found, error) &&
                             decide_existing(connection, target, &found, &view->change, error));
}

bool sl_prepare_target(sl_connection *connection, const sl_target *target, bool *created,
                       sl_error *error) {
    bool shards = target->shard_key && sl_connection_server(connection)->deployment == SL_SHARDED;
    sl_sharding_change change = shards ? SL_SHARDING_NEW : SL_SHARDING_NONE;
    *created = false;
    /* The database first: a user who may not shard gets the error before anything is dropped. */
    if (!check_version(connection, target, error) || !check_registry(connection, target, error) ||
        !(enable_sharding(connection, target->database, error) ||
          sl_error_prefix(error, "cannot create database %s", target->database)) ||
        (target->drop && !sl_drop_target(connection, target, error)))
        return false;
    existing found;
    if (!read_existing(connection, target, &found, error))
        return false;
    if (!found.exists) {
        if ((shards && !change_marker(connection, target, true, error)) ||
            !create_collection(connection, target, created, error))
            return false;
        if (!*created && !read_existing(connection, target, &found, error))
            return false;
    }
    if (found.exists && (!check_existing(connection, target, &found, error) ||
                         !decide_existing(connection, target, &found, &change, error)))
        return false;
    bool sharding = change == SL_SHARDING_NEW || change == SL_SHARDING_EXISTING;
    if (sharding && !shard_collection(connection, target, *created, error))
        return false;
    return !shards || change_marker(connection, target, false, error);
}

/* ---- indexes ---- */

/* The conventional name of an index: "ts_1_st_1". A malloc'd string; NULL without memory. */
static char *index_name(const bson_t *keys) {
    /* The document contains all names and strings, and at least 4 bytes of each number. */
    size_t room = keys->len + 24 * (size_t)bson_count_keys(keys) + 1, used = 0;
    char *name = calloc(1, room);
    bson_iter_t iter;
    for (bool more = name && bson_iter_init(&iter, keys); more && bson_iter_next(&iter);) {
        used += (size_t)snprintf(name + used, room - used, "%s%s_", used ? "_" : "",
                                 bson_iter_key(&iter));
        if (BSON_ITER_HOLDS_UTF8(&iter))
            used += (size_t)snprintf(name + used, room - used, "%s", bson_iter_utf8(&iter, NULL));
        else
            used += (size_t)snprintf(name + used, room - used, "%lld",
                                     (long long)bson_iter_as_int64(&iter));
    }
    return name;
}

char *sl_index_shown(const bson_t *index) {
    bson_t key;
    bool plain = bson_count_keys(index) == 1 && sl_look_inside(index, "key", &key);
    return sl_document_json(plain ? &key : index);
}

/* ---- indexes: may they be built? ---- */

static bool check_unique_indexes(sl_connection *connection, const sl_target *target,
                                 const bson_t *const *indexes, size_t count, sl_error *error) {
    sl_sharding sharding;
    bool ok = sl_sharding_read(connection, target, &sharding, error);
    const bson_t *by = sharding.sharded && !target->drop ? &sharding.key : target->shard_key;
    for (size_t i = 0; ok && by && i < count; i++) {
        bson_t key;
        bool same = by == target->shard_key && !target->shard_key_unique &&
                    sl_look_flag(indexes[i], "unique") && sl_look_inside(indexes[i], "key", &key) &&
                    sl_keys_equal(&key, by);
        if (!same && !is_obstacle(indexes[i], by))
            continue;
        char *index = sl_index_shown(indexes[i]), *shown = sl_document_json(by);
        ok = sl_error_set(error, SL_EXIT_USAGE,
                          "--index %.500s: %s.%s is sharded by %.300s, %s. For a new collection, "
                          "the shard key can be unique itself: --shard-key with this value instead "
                          "of --index; or leave it unsharded: --shard-key none",
                          index, target->database, target->collection, shown,
                          same ? "which has an index that is not unique"
                               : "and servers build a unique index of it only if the index begins "
                                 "with the fields of the shard key");
        bson_free(index);
        bson_free(shown);
    }
    sl_sharding_clear(&sharding);
    return ok;
}

static bool same_value(const bson_iter_t *a, const bson_iter_t *b);

/* Has the document or array `a` all fields of `b`, with the same values? */
static bool includes(const bson_iter_t *a, const bson_iter_t *b) {
    bson_iter_t in_a, in_b;
    bool same = bson_iter_recurse(b, &in_b);
    while (same && bson_iter_next(&in_b))
        same = bson_iter_recurse(a, &in_a) && bson_iter_find(&in_a, bson_iter_key(&in_b)) &&
               same_value(&in_a, &in_b);
    return same;
}

/* Numbers of all types are compared: shells store 1 as an integer or as a double. Servers 4.4 keep
 * `sparse: 1`. */
static bool same_value(const bson_iter_t *a, const bson_iter_t *b) {
    if (BSON_ITER_HOLDS_NUMBER(a) && BSON_ITER_HOLDS_NUMBER(b))
        return bson_iter_as_double(a) == bson_iter_as_double(b);
    if ((BSON_ITER_HOLDS_BOOL(a) && BSON_ITER_HOLDS_NUMBER(b)) ||
        (BSON_ITER_HOLDS_NUMBER(a) && BSON_ITER_HOLDS_BOOL(b)))
        return bson_iter_as_bool(a) == bson_iter_as_bool(b);
    if (bson_iter_type(a) != bson_iter_type(b))
        return false;
    if (BSON_ITER_HOLDS_DOCUMENT(a) || BSON_ITER_HOLDS_ARRAY(a))
        return includes(a, b) && includes(b, a);
    return sl_values_equal(a, b);
}

static bool is_false(const bson_iter_t *option) {
    return BSON_ITER_HOLDS_BOOL(option) && !bson_iter_bool(option);
}

/* `b` is given by the user: listIndexes shows more fields of a collation than are given. */
static bool same_option(const bson_t *a, const bson_t *b, const char *name) {
    bson_iter_t in_a, in_b;
    bool has_a = bson_iter_init_find(&in_a, a, name), has_b = bson_iter_init_find(&in_b, b, name);
    if (!has_a || !has_b)
        return !(has_a && !is_false(&in_a)) && !(has_b && !is_false(&in_b));
    return strcmp(name, "collation") == 0 ? includes(&in_a, &in_b) : same_value(&in_a, &in_b);
}

bool sl_index_has_options(const bson_t *found, const bson_t *given) {
    static const char ignored[] = "key|v|ns|name|background|textIndexVersion|2dsphereIndexVersion";
    const bson_t *both[] = {found, given};
    bson_iter_t at;
    bool same = true;
    for (size_t i = 0; i < 2; i++) {
        for (bool more = bson_iter_init(&at, both[i]); same && more && bson_iter_next(&at);)
            same = sl_list_has(ignored, '|', sl_text_of(bson_iter_key(&at))) ||
                   same_option(found, given, bson_iter_key(&at));
    }
    return same;
}

/* An existing index beside which the server builds another one. */
typedef enum beside {
    BESIDE_BUILT,   /* or is the same index */
    BESIDE_RENAMED, /* only under another name */
    BESIDE_REFUSED, /* the server refuses, or accepts the existing index in spite of its options */
} beside;

static beside beside_of(const sl_server *server, const bson_t *found, const bson_t *index,
                        const char *name) {
    bson_t own, wanted;
    bool same_name = strcmp(sl_look_string(found, "name"), name) == 0;
    if (!sl_look_inside(found, "key", &own) || !sl_look_inside(index, "key", &wanted))
        return BESIDE_BUILT;
    if (!sl_keys_equal(&own, &wanted) || !same_option(found, index, "partialFilterExpression"))
        return same_name ? BESIDE_RENAMED : BESIDE_BUILT;
    if (!same_option(found, index, "unique") || !same_option(found, index, "sparse")) {
        if (sl_server_at_least(server, 5, 0))
            return same_name ? BESIDE_RENAMED : BESIDE_BUILT;
    } else if (same_option(found, index, "expireAfterSeconds")) {
        return BESIDE_BUILT;
    }
    return same_name || bson_count_keys(index) > 1 ? BESIDE_REFUSED : BESIDE_BUILT;
}

/* Is none of the collection's indexes in the way of this one? */
static bool check_index(const sl_server *server, const sl_target *target, const bson_t *all,
                        const bson_t *index, sl_error *error) {
    bson_t key;
    const char *given = sl_look_text(index, "name");
    char *name = given                                ? strdup(given)
                 : sl_look_inside(index, "key", &key) ? index_name(&key)
                                                      : NULL;
    bool ok = true;
    if (!name)
        return sl_error_memory(error, "comparing indexes");
    for (sl_walk walk = sl_walk_of(all); ok && sl_walk_next(&walk);) {
        beside how = beside_of(server, &walk.item, index, name);
        if (how == BESIDE_BUILT)
            continue;
        char *shown = sl_index_shown(index), *other = sl_index_shown(&walk.item);
        ok = sl_error_set(error, SL_EXIT_CLUSTER,
                          "--index %.500s: %s.%s has the index %.600s, beside which servers refuse "
                          "to build it; leave the option out, or %s%.200s",
                          shown, target->database, target->collection, other,
                          how == BESIDE_RENAMED ? "give another \"name\""
                                                : "first drop that index, named ",
                          how == BESIDE_RENAMED ? "" : sl_look_string(&walk.item, "name"));
        bson_free(shown);
        bson_free(other);
    }
    free(name);
    return ok;
}

static bool check_indexes(sl_connection *connection, const sl_target *target,
                          const bson_t *const *indexes, size_t count, sl_error *error) {
    bson_t found;
    bool ok = sl_collection_indexes(connection, target, &found, error);
    for (size_t i = 0; ok && i < count; i++)
        ok = check_index(sl_connection_server(connection), target, &found, indexes[i], error);
    bson_destroy(&found);
    return ok;
}

bool sl_indexes_may_be_built(sl_connection *connection, const sl_target *target, bool exists,
                             const bson_t *const *indexes, size_t count, sl_error *error) {
    return count == 0 || (check_unique_indexes(connection, target, indexes, count, error) &&
                          (!exists || check_indexes(connection, target, indexes, count, error)));
}

bool sl_create_index(sl_connection *connection, const sl_target *target, const bson_t *index,
                     sl_error *error) {
    bson_t key, named = BSON_INITIALIZER;
    char *name = sl_look_inside(index, "key", &key) ? index_name(&key) : NULL;
    if (!name)
        return sl_error_memory(error, "building an index");
    bson_concat(&named, index);
    if (!bson_has_field(index, "name"))
        BSON_APPEND_UTF8(&named, "name", name);
    bson_t *list = BCON_NEW("0", BCON_DOCUMENT(&named));
    bool ok =
        (create_indexes(connection, target, list, SL_CODE_INDEX_OPTIONS_CONFLICT, error) &&
         (bson_count_keys(index) == 1 || check_indexes(connection, target, &index, 1, error))) ||
        sl_error_prefix(error, "cannot build index %s on %s.%s", sl_look_string(&named, "name"),
                        target->database, target->collection);
    if (!ok && error && error->server_code == SL_CODE_DUPLICATE_KEY) {
        sl_error_prefix(error,
                        "stored documents of %s.%s have the same value of the key, so no "
                        "unique index of it is possible: remove all but one of them, or, if they "
                        "lack the fields, add \"sparse\": true, or match by other fields",
                        target->database, target->collection);
        error->afresh = true;
    }
    bson_destroy(list);
    bson_destroy(&named);
    free(name);
    return ok;
}

/* ---- may a load match by these fields? ---- */

/* The match fields of a load with another mode than insert. Two conditions make such a load
 * correct, and are checked before it changes anything:
 *
 * - The fields contain the shard key. Then the router sends a statement to the one shard that can
 * hold the document. Otherwise the router would refuse the statement, or send it to all shards, and
 * an upsert could store a second document of the same fields on another shard.
 * - The fields contain _id, or all fields of a unique index. Then one document at most matches.
 *   Otherwise two upserts at the same time would insert two; in a mode that does not insert, the
 *   writer finds out which records several documents match, and rejects these (writer.c). */

/* Writes the fields of the key that are not among `fields`, separated by commas. Returns their
 * number. */
static size_t lacking(const bson_t *key, const char *const *fields, size_t count, char *out,
                      size_t room) {
    bson_iter_t iter;
    size_t lacks = 0, used = 0;
    *out = '\0';
    for (bool more = bson_iter_init(&iter, key); more && bson_iter_next(&iter);) {
        if (sl_is_listed(bson_iter_key(&iter), fields, count))
            continue;
        if (used < room)
            used += (size_t)snprintf(out + used, room - used, "%s%s", lacks ? "," : "",
                                     bson_iter_key(&iter));
        lacks++;
    }
    return lacks;
}

/* The fields as they are given to --match-fields. */
static char *list(const char *const *fields, size_t count, char *out, size_t room) {
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(out + used, room - used, "%s%s", i ? "," : "", fields[i]);
    return out;
}

/* Makes a unique index of the fields. Its first fields are those of the shard key (NULL: none),
 * because servers require that of unique indexes. `order`: of the first field, 1 or -1. */
static void make_unique(const sl_matching *match, const bson_t *shard_key, int order,
                        bson_t *index) {
    bson_t key;
    bson_iter_t field;
    bson_init(index);
    BSON_APPEND_DOCUMENT_BEGIN(index, "key", &key);
    for (bool more = shard_key && bson_iter_init(&field, shard_key); more && bson_iter_next(&field);
         order = 1)
        BSON_APPEND_INT32(&key, bson_iter_key(&field), order); /* the match fields contain it */
    for (size_t i = 0; i < match->count; i++, order = 1) {
        if (!shard_key || !bson_iter_init_find(&field, shard_key, match->fields[i]))
            BSON_APPEND_INT32(&key, match->fields[i], order);
    }
    bson_append_document_end(index, &key);
    BSON_APPEND_BOOL(index, "unique", true);
}

/* The option whose value is the index. */
static char *index_option(const bson_t *index, const char *option, char *out, size_t room) {
    char word[480];
    char *json = sl_document_json(index);
    snprintf(out, room, "--%s %s", option, sl_shell_word(json ? json : "", word, sizeof word));
    bson_free(json);
    return out;
}

/* Is the field of the key, or a document that contains it, among `ids`? */
static const char *taken_by(const char *field, const char *const *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(ids[i]);
        if (strcmp(ids[i], "_id") != 0 && strncmp(field, ids[i], length) == 0 &&
            (field[length] == '\0' || field[length] == '.'))
            return ids[i];
    }
    return NULL;
}

bool sl_check_ids(const bson_t *key, const char *const *ids, size_t count, sl_error *error) {
    bson_iter_t field;
    const char *taken = NULL;
    char fields[300], word[350];
    for (bool more = bson_iter_init(&field, key); !taken && more && bson_iter_next(&field);)
        taken = taken_by(bson_iter_key(&field), ids, count);
    if (!taken)
        return true;
    char *json = sl_document_json(key);
    lacking(key, NULL, 0, fields, sizeof fields);
    sl_error_set(
        error, SL_EXIT_USAGE,
        "--id-field makes %.100s the _id, so the documents would lack a field of the shard "
        "key %.300s. Take the _id from other fields, or leave out --id-field; modes "
        "other than insert then match with --match-fields %s",
        taken, json ? json : "", sl_shell_word(fields, word, sizeof word));
    bson_free(json);
    return false;
}

static bool records_have_all(const sl_matching *match, const bson_t *key) {
    bson_iter_t iter;
    for (bool more = bson_iter_init(&iter, key); more && bson_iter_next(&iter);) {
        if (!sl_is_listed(bson_iter_key(&iter), match->fields, match->count) &&
            !match->records_have(match->context, bson_iter_key(&iter)))
            return false;
    }
    return true;
}

/* `is_new`: the load creates the collection, and shards it by the key. */
static bool check_shard_key(const sl_target *target, const bson_t *key, bool is_new,
                            const sl_matching *match, sl_error *error) {
    char lacks[300], given[300], advice[700], option[500], word[350];
    if (!key || lacking(key, match->fields, match->count, lacks, sizeof lacks) == 0)
        return true;
    list(match->fields, match->count, given, sizeof given);
    bson_t unique;
    make_unique(match, NULL, 1, &unique);
    index_option(&unique, "shard-key", option, sizeof option);
    bson_destroy(&unique);
    if (records_have_all(match, key))
        snprintf(advice, sizeof advice, "Add it: --match-fields %s,%s", given,
                 sl_shell_word(lacks, word, sizeof word));
    else if (is_new)
        snprintf(advice, sizeof advice,
                 "The records do not have it. Shard by the fields that match: %s", option);
    else
        snprintf(advice, sizeof advice,
                 "The records do not have it. Load the files of this collection again, with --drop "
                 "or into another collection, with %s; then repeat this command",
                 option);
    return sl_error_set(error, SL_EXIT_USAGE,
                        "%.255s.%.255s %s sharded by a key with %s, which is not among the fields "
                        "that match, %s: without it the shard of a document is not known. %s",
                        target->database, target->collection, is_new ? "would be" : "is", lacks,
                        given, advice);
}

/* Does the index compare strings in the same way as the statements? Statements use the collation of
 * the collection, which is that of its index _id_. Without a collation they compare bytes, and any
 * unique index suffices. */
static bool is_comparable(const bson_t *index, const bson_t *by_id) {
    bson_t own, collation;
    return !sl_look_inside(by_id, "collation", &collation) ||
           (sl_look_inside(index, "collation", &own) && bson_equal(&own, &collation));
}

/* Does the index allow one document of these fields only? `by_id`: the index _id_. A sparse one
 * does: each record has a value other than null, so a document that matches is in the index. */
static bool identifies(const bson_t *index, const bson_t *by_id, const char *const *fields,
                       size_t count) {
    bson_t key;
    char lacks[300];
    return sl_look_flag(index, "unique") && !bson_has_field(index, "partialFilterExpression") &&
           is_comparable(index, by_id) && sl_look_inside(index, "key", &key) &&
           lacking(&key, fields, count, lacks, sizeof lacks) == 0;
}

/* Has every shard the unique index? True with a warning if the user may not read that. */
static bool is_on_all_shards(sl_connection *connection, const sl_target *target, const char *name,
                             bool *on_all, sl_error *error) {
    bson_t rows;
    int64_t all;
    bool ok = count_indexes(connection, target, &rows, error);
    *on_all = !ok || shards_with(&rows, name, &all) == all;
    if (!ok && sl_code_is_refusal(error->server_code)) {
        sl_log_warning(
            "whether every shard of %s.%s has its unique index %s is not known: " SL_LINES,
            target->database, target->collection, name, error->message);
        *error = (sl_error){0};
        ok = true;
    }
    bson_destroy(&rows);
    return ok;
}

/* Copies the specification of the index of _id, or of a clustered collection's key. */
static void copy_by_id(const bson_t *indexes, bson_t *by_id) {
    for (sl_walk walk = sl_walk_of(indexes); sl_walk_next(&walk);) {
        if (strcmp(sl_look_string(&walk.item, "name"), "_id_") == 0 ||
            sl_look_flag(&walk.item, "clustered"))
            bson_concat(by_id, &walk.item);
    }
}

/* `*has`: all shards have a unique index of the fields, among these. Otherwise writes the name of
 * one that only some shards have. */
static bool has_unique_index(sl_connection *connection, const sl_target *target, bool sharded,
                             const bson_t *indexes, const sl_matching *match, bool *has,
                             char incomplete[300], sl_error *error) {
    bson_t by_id = BSON_INITIALIZER;
    bool ok = true;
    *has = false;
    copy_by_id(indexes, &by_id);
    for (sl_walk walk = sl_walk_of(indexes); ok && !*has && sl_walk_next(&walk);) {
        const char *name = sl_look_string(&walk.item, "name");
        *has = identifies(&walk.item, &by_id, match->fields, match->count);
        if (*has && sharded)
            ok = is_on_all_shards(connection, target, name, has, error);
        if (!*has && sharded && identifies(&walk.item, &by_id, match->fields, match->count))
            snprintf(incomplete, 300, "has its unique index %.200s on some shards only", name);
    }
    bson_destroy(&by_id);
    return ok;
}

/* Will an index of this load, or the unique index of its shard key, identify a document? `indexes`:
 * of the collection. An index without a collation gets that of the collection. */
static bool will_be_identified(const sl_target *target, const bson_t *indexes,
                               const sl_matching *match, bool sharded) {
    const bson_t none = BSON_INITIALIZER;
    bson_t by_id = BSON_INITIALIZER;
    char lacks[300];
    copy_by_id(indexes, &by_id);
    bool found = sharded && target->shard_key_unique && target->shard_key &&
                 lacking(target->shard_key, match->fields, match->count, lacks, sizeof lacks) == 0;
    for (size_t i = 0; !found && i < match->index_count; i++) {
        const bson_t *index = match->indexes[i];
        found = identifies(index, bson_has_field(index, "collation") ? &by_id : &none,
                           match->fields, match->count);
    }
    bson_destroy(&by_id);
    return found;
}

/* Finds an index of the collection that prevents the other one, and gives that another name if this
 * suffices. Writes the name of an index that must be dropped before; "": none. */
static bool make_way(sl_connection *connection, const sl_target *target, bson_t *index,
                     char *dropped, size_t room, sl_error *error) {
    const sl_server *server = sl_connection_server(connection);
    bson_t key, found;
    char *name = sl_look_inside(index, "key", &key) ? index_name(&key) : NULL, other[300];
    *dropped = '\0';
    if (!name)
        return sl_error_memory(error, "comparing indexes");
    snprintf(other, sizeof other, "%.280s_unique", name);
    bool ok = sl_collection_indexes(connection, target, &found, error), renamed = false;
    for (sl_walk walk = sl_walk_of(&found); ok && sl_walk_next(&walk);)
        renamed = renamed || beside_of(server, &walk.item, index, name) == BESIDE_RENAMED;
    if (renamed)
        BSON_APPEND_UTF8(index, "name", other);
    for (sl_walk walk = sl_walk_of(&found); ok && sl_walk_next(&walk);) {
        if (beside_of(server, &walk.item, index, renamed ? other : name) != BESIDE_BUILT)
            snprintf(dropped, room, "%.250s", sl_look_string(&walk.item, "name"));
    }
    bson_destroy(&found);
    free(name);
    return ok;
}

/* `key`: the shard key; may be NULL. */
static bool not_unique(sl_connection *connection, const sl_target *target, const sl_matching *match,
                       const bson_t *key, bool exists, const char *incomplete, sl_error *error) {
    char given[300], option[500], dropped[300] = "", before[400] = "";
    const bool by_key = key && !exists && bson_count_keys(key) == match->count;
    bson_t index;
    make_unique(match, key, 1, &index);
    bool ok = !exists || make_way(connection, target, &index, dropped, sizeof dropped, error);
    if (ok && *dropped) { /* that index may stay beside one of another order */
        bson_destroy(&index);
        make_unique(match, key, -1, &index);
        ok = make_way(connection, target, &index, dropped, sizeof dropped, error);
    }
    if (!ok) {
        bson_destroy(&index);
        return false;
    }
    if (*dropped)
        snprintf(before, sizeof before,
                 "Drop its index %s, beside which servers refuse to build a unique one; then add ",
                 dropped);
    sl_error_set(
        error, SL_EXIT_USAGE,
        "--match-fields %s: %.255s.%.255s %s, so a record could be inserted twice, when a batch is "
        "sent again after a failure. %s%s%s%s%s%s%s",
        list(match->fields, match->count, given, sizeof given), target->database,
        target->collection,
        *incomplete ? incomplete
        : exists    ? "has no unique index of these fields"
                    : "is new",
        exists ? "To leave the indexes as they are, give --mode " : "",
        !exists                    ? ""
        : match->mode->sets_fields ? "update"
                                   : "replace",
        exists
            ? ": records that match no document are then rejected, and can be loaded with --mode "
              "insert. Otherwise the collection needs a unique index. "
            : "",
        *before  ? before
        : by_key ? "Give "
                 : "Add ",
        index_option(&index, by_key ? "shard-key" : "index", option, sizeof option),
        *before && key ? " at once: the shard key needs such an index" : "",
        match->records_have(match->context, "_id") ? ", or match by _id" : "");
    bson_destroy(&index);
    return false;
}

/* Warns if no index begins with a match field, so that each statement reads all documents. */
static bool look_for_index(const sl_target *target, const bson_t *indexes,
                           const sl_matching *match) {
    bson_t key;
    bson_iter_t first;
    char given[300];
    bool found = false;
    for (sl_walk walk = sl_walk_of(indexes); !found && sl_walk_next(&walk);)
        found = sl_look_inside(&walk.item, "key", &key) && bson_iter_init(&first, &key) &&
                bson_iter_next(&first) &&
                sl_is_listed(bson_iter_key(&first), match->fields, match->count);
    if (!found)
        sl_log_warning(
            "no index of %s.%s begins with one of the match fields, %s, so for each record "
            "the server reads all documents",
            target->database, target->collection,
            list(match->fields, match->count, given, sizeof given));
    return true;
}

bool sl_check_match(sl_connection *connection, sl_target *target, const sl_matching *match,
                    sl_error *error) {
    sl_sharding sharding;
    char incomplete[300] = "";
    bool exists, unique = sl_is_listed("_id", match->fields, match->count);
    bson_t indexes = BSON_INITIALIZER;
    if (!sl_target_exists(connection, target, &exists, error))
        return false;
    if (!exists && !match->mode->creates)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%.255s.%.255s does not exist: there are no documents to match",
                            target->database, target->collection);
    exists = exists && !target->drop;
    if (!sl_sharding_read(connection, target, &sharding, error)) {
        sl_sharding_clear(&sharding);
        return false;
    }
    bool sharded = exists && sharding.sharded;
    const bson_t *key = sharded ? &sharding.key : target->shard_key;
    bool ok = check_shard_key(target, key, !exists, match, error);
    if (ok && exists && !unique)
        ok = sl_collection_indexes(connection, target, &indexes, error);
    unique = unique || will_be_identified(target, &indexes, match, !sharded);
    if (ok && exists && !unique)
        ok = has_unique_index(connection, target, sharded, &indexes, match, &unique, incomplete,
                              error);
    target->ambiguous = !unique;
    if (ok && !unique)
        ok = match->mode->creates
                 ? not_unique(connection, target, match, key, exists, incomplete, error)
                 : look_for_index(target, &indexes, match);
    bson_destroy(&indexes);
    sl_sharding_clear(&sharding);
    return ok;
}

bool sl_check_match_again(sl_connection *connection, const sl_target *target,
                          const sl_matching *match, sl_error *error) {
    sl_sharding sharding;
    char incomplete[300] = "", given[300];
    bool unique = sl_is_listed("_id", match->fields, match->count);
    bson_t indexes = BSON_INITIALIZER;
    if (unique || target->ambiguous)
        return true;
    bool ok = sl_sharding_read(connection, target, &sharding, error) &&
              sl_collection_indexes(connection, target, &indexes, error) &&
              has_unique_index(connection, target, sharding.sharded, &indexes, match, &unique,
                               incomplete, error);
    bson_destroy(&indexes);
    sl_sharding_clear(&sharding);
    return ok && (unique ||
                  sl_error_set(
                      error, SL_EXIT_VERIFICATION,
                      "verification failed: %.255s.%.255s %s, %s: if another program has dropped "
                      "it during the load, documents may have been stored or changed twice. "
                      "Build it again: the server names such documents",
                      target->database, target->collection,
                      *incomplete ? incomplete
                                  : "has no unique index, of its collation, of the match fields",
                      list(match->fields, match->count, given, sizeof given)));
}
