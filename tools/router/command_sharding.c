/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sharded collections, chunks, zones, the balancer. Each command becomes the internal command that
 * mongos sends to the config server or to a shard.
 */

#include "commands.h"

#include <string.h>

struct chunk {
    bson_t reply; /* the document that contains the two bounds */
    bson_t min;
    bson_t max;
    size_t set; /* the shard that owns it */
};

enum outcome run_on_config(struct session *session, const struct request *request, bson_t *reply) {
    bson_t body;
    command_rewrite_majority(request->body, request->command->sent_as, &body);
    session_run(session, CONFIG_SET, &body, reply);
    bson_destroy(&body);
    return ANSWERED;
}

enum outcome run_enable_sharding(struct session *session, const struct request *request,
                                 bson_t *reply) {
    if (!request->target) {
        answer_error(reply, CODE_TYPE_MISMATCH, "enableSharding needs the name of a database");
    } else if (database_create(session, request->target, find_text(request->body, "primaryShard"),
                               reply)) {
        answer_ok(reply);
    }
    return ANSWERED;
}

enum outcome run_shard_collection(struct session *session, const struct request *request,
                                  bson_t *reply) {
    static const char *const options[] = {"unique", "numInitialChunks", "presplitHashedZones",
                                          "collation", "timeseries"};
    struct database database;
    char db[MAX_NAMESPACE];
    const char *collection;
    bson_t key;
    if (!split_namespace(request->target, db, &collection, reply)) {
        return ANSWERED;
    }
    if (!find_document(request->body, "key", &key)) {
        answer_error(reply, CODE_TYPE_MISMATCH, "shardCollection needs a key");
        return ANSWERED;
    }
    if (database_ensure(session, db, &database, reply)) {
        bson_t body = BSON_INITIALIZER;
        BSON_APPEND_UTF8(&body, "_shardsvrCreateCollection", collection);
        BSON_APPEND_DOCUMENT(&body, "shardKey", &key);
        for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
            copy_field(request->body, options[i], &body);
        }
        BSON_APPEND_DOCUMENT(&body, "databaseVersion", &database.version);
        append_majority(&body);
        BSON_APPEND_UTF8(&body, "$db", db);
        if (session_run(session, database.primary, &body, reply)) {
            bson_reinit(reply);
            BSON_APPEND_UTF8(reply, "collectionsharded", request->target);
            BSON_APPEND_DOUBLE(reply, "ok", 1.0);
        }
        bson_destroy(&body);
    }
    database_clear(&database);
    return ANSWERED;
}

/* Loads the routing of the collection that an admin command names; an error if it is not
 * sharded. */
static bool load_sharded(struct session *session, const char *ns, struct routing *routing,
                         bson_t *reply) {
    char db[MAX_NAMESPACE];
    const char *collection;
    if (!split_namespace(ns, db, &collection, reply) ||
        !routing_load(session, ns, routing, reply)) {
        return false;
    }
    if (!routing->sharded) {
        routing_clear(routing);
        return answer_error(reply, CODE_NAMESPACE_NOT_SHARDED, "Collection %s is not sharded.", ns);
    }
    return true;
}

/*
 * Appends to `filter` the condition that a chunk contains a key: min <= key < max. An expression,
 * because comparisons of a query do not match MinKey and MaxKey. `hash`: the values are those of a
 * document, so the value of a hashed field is hashed first.
 */
static bool append_contains(const struct routing *routing, const bson_t *values, bool hash,
                            bson_t *filter, bson_t *reply) {
    bson_t key = BSON_INITIALIZER;
    bson_iter_t pattern;
    bson_iter_t value;
    bool hashed = false;
    bson_iter_init(&pattern, &routing->key);
    while (bson_iter_next(&pattern)) {
        hashed = hashed || (hash && BSON_ITER_HOLDS_UTF8(&pattern));
    }
    bson_iter_init(&pattern, &routing->key);
    while (bson_iter_next(&pattern)) {
        const char *name = bson_iter_key(&pattern);
        bson_t expression;
        bson_t inner;
        if (!bson_iter_init_find(&value, values, name)) {
            bson_destroy(&key);
            return answer_error(reply, CODE_SHARD_KEY_NOT_FOUND,
                                "the shard key field %s is missing", name);
        }
        if (!hashed) { /* the key itself, whose names may contain dots */
            bson_append_iter(&key, name, -1, &value);
            continue;
        }
        BSON_APPEND_DOCUMENT_BEGIN(&key, name, &expression);
        if (BSON_ITER_HOLDS_UTF8(&pattern)) {
            BSON_APPEND_DOCUMENT_BEGIN(&expression, "$toHashedIndexKey", &inner);
            bson_append_iter(&inner, "$literal", -1, &value);
            bson_append_document_end(&expression, &inner);
        } else {
            bson_append_iter(&expression, "$literal", -1, &value);
        }
        bson_append_document_end(&key, &expression);
    }
    if (!hashed) {
        bson_t literal = BSON_INITIALIZER;
        BSON_APPEND_DOCUMENT(&literal, "$literal", &key);
        bson_destroy(&key);
        bson_steal(&key, &literal);
    }
    BCON_APPEND(filter, "$expr", "{", "$and", "[", "{", "$lte", "[", BCON_UTF8("$min"),
                BCON_DOCUMENT(&key), "]", "}", "{", "$gt", "[", BCON_UTF8("$max"),
                BCON_DOCUMENT(&key), "]", "}", "]", "}");
    bson_destroy(&key);
    return true;
}

/* Finds the chunk that `find`, `bounds` or `middle` of a split or moveChunk selects. */
static bool find_chunk(struct session *session, const struct request *request,
                       const struct routing *routing, struct chunk *chunk, bson_t *reply) {
    const bson_value_t *uuid = &routing->uuid;
    bson_t filter = BSON_INITIALIZER;
    bson_t values;
    bson_t low;
    bson_t high;
    bson_t entry;
    bool good = false;
    BSON_APPEND_VALUE(&filter, "uuid", uuid);
    if (find_document(request->body, "bounds", &values)) {
        if (find_document(&values, "0", &low) && find_document(&values, "1", &high)) {
            BSON_APPEND_DOCUMENT(&filter, "min", &low);
            BSON_APPEND_DOCUMENT(&filter, "max", &high);
            good = true;
        } else {
            answer_error(reply, CODE_BAD_VALUE, "bounds must be two documents");
        }
    } else if (find_document(request->body, "find", &values)) {
        good = append_contains(routing, &values, true, &filter, reply);
    } else if (find_document(request->body, "middle", &values)) {
        good = append_contains(routing, &values, false, &filter, reply);
    } else {
        answer_error(reply, CODE_BAD_VALUE, "%s needs a chunk: find or bounds%s", request->name,
                     strcmp(request->name, "split") == 0 ? " or middle" : "");
    }
    if (!good) {
        bson_destroy(&filter);
        return false;
    }

    bson_t *find = BCON_NEW("find", BCON_UTF8("chunks"), "filter", BCON_DOCUMENT(&filter), "limit",
                            BCON_INT32(1), "$db", BCON_UTF8("config"));
    bson_destroy(&filter);
    if (!session_run_built(session, CONFIG_SET, find, &chunk->reply)) {
        bson_steal(reply, &chunk->reply);
        return false;
    }
    const char *shard;
    if (!first_of_batch(&chunk->reply, &entry) || !find_document(&entry, "min", &chunk->min) ||
        !find_document(&entry, "max", &chunk->max) || !(shard = find_text(&entry, "shard"))) {
        bson_destroy(&chunk->reply);
        return answer_error(reply, CODE_BAD_VALUE, "%s has no chunk with these bounds or this key",
                            request->target);
    }
    chunk->set = topology_find_shard(session->router->topology, shard);
    if (chunk->set == CONFIG_SET) {
        answer_error(reply, CODE_SHARD_NOT_FOUND, "the chunk is on the unknown shard %s", shard);
        bson_destroy(&chunk->reply);
        return false;
    }
    return true;
}

/* Requests from the owner the key in the middle of a chunk, and appends it to `keys`. */
static bool find_median(struct session *session, const struct request *request,
                        const struct routing *routing, const struct chunk *chunk, bson_t *keys,
                        bson_t *reply) {
    bson_t found;
    bson_t first;
    bson_t *ask =
        BCON_NEW("splitVector", BCON_UTF8(request->target), "keyPattern",
                 BCON_DOCUMENT(&routing->key), "min", BCON_DOCUMENT(&chunk->min), "max",
                 BCON_DOCUMENT(&chunk->max), "force", BCON_BOOL(true), "$db", BCON_UTF8("admin"));
    if (!session_run_built(session, chunk->set, ask, reply)) {
        return false;
    }
    const bool good =
        find_document(reply, "splitKeys", &found) && find_document(&found, "0", &first);
    if (good) {
        BSON_APPEND_DOCUMENT(keys, "0", &first);
    }
    bson_destroy(reply);
    return good ||
           answer_error(reply, CODE_BAD_VALUE,
                        "unable to find split point in the chunk: it holds too few documents");
}

enum outcome run_split(struct session *session, const struct request *request, bson_t *reply) {
    struct routing routing;
    struct chunk chunk;
    bson_t middle;
    if (!load_sharded(session, request->target, &routing, reply)) {
        return ANSWERED;
    }
    if (find_chunk(session, request, &routing, &chunk, reply)) {
        bson_t keys = BSON_INITIALIZER;
        bool good = true;
        if (find_document(request->body, "middle", &middle)) {
            BSON_APPEND_DOCUMENT(&keys, "0", &middle);
        } else {
            good = find_median(session, request, &routing, &chunk, &keys, reply);
        }
        if (good) {
            bson_t *body = BCON_NEW(
                "splitChunk", BCON_UTF8(request->target), "from",
                BCON_UTF8(session->router->topology->sets[chunk.set].name), "keyPattern",
                BCON_DOCUMENT(&routing.key), "epoch", BCON_OID(&routing.epoch), "timestamp",
                BCON_TIMESTAMP((int32_t)routing.timestamp_seconds,
                               (int32_t)routing.timestamp_increment),
                "min", BCON_DOCUMENT(&chunk.min), "max", BCON_DOCUMENT(&chunk.max), "splitKeys",
                BCON_ARRAY(&keys), "$db", BCON_UTF8("admin"));
            session_run_built(session, chunk.set, body, reply);
        }
        bson_destroy(&keys);
        bson_destroy(&chunk.reply);
    }
    routing_clear(&routing);
    return ANSWERED;
}

/* Makes the config server move [min, max) (either may be NULL) to the shard `to`. */
static void move(struct session *session, const struct request *request,
                 const struct routing *routing, const bson_t *min, const bson_t *max,
                 const char *to, bson_t *reply) {
    bson_iter_t iter;
    bson_t body = BSON_INITIALIZER;
    bool wait = false;
    if (bson_iter_init_find(&iter, request->body, "waitForDelete") ||
        bson_iter_init_find(&iter, request->body, "_waitForDelete")) {
        wait = bson_iter_as_bool(&iter);
    }
    BSON_APPEND_UTF8(&body, "_configsvrMoveRange", request->target);
    BSON_APPEND_UTF8(&body, "toShard", to);
    if (min) {
        BSON_APPEND_DOCUMENT(&body, "min", min);
    }
    if (max) {
        BSON_APPEND_DOCUMENT(&body, "max", max);
    }
    BSON_APPEND_BOOL(&body, "waitForDelete", wait);
    BSON_APPEND_OID(&body, "epoch", &routing->epoch);
    BSON_APPEND_TIMESTAMP(&body, "collectionTimestamp", routing->timestamp_seconds,
                          routing->timestamp_increment);
    append_majority(&body);
    BSON_APPEND_UTF8(&body, "$db", "admin");
    session_run(session, CONFIG_SET, &body, reply);
    bson_destroy(&body);
}

static bool check_shard(struct session *session, const char *name, bson_t *reply) {
    return (name && topology_find_shard(session->router->topology, name) != CONFIG_SET) ||
           answer_error(reply, CODE_SHARD_NOT_FOUND, "Could not find shard '%s'", name ? name : "");
}

enum outcome run_move_chunk(struct session *session, const struct request *request, bson_t *reply) {
    const char *to = find_text(request->body, "to");
    struct routing routing;
    struct chunk chunk;
    if (!check_shard(session, to, reply) ||
        !load_sharded(session, request->target, &routing, reply)) {
        return ANSWERED;
    }
    if (find_chunk(session, request, &routing, &chunk, reply)) {
        move(session, request, &routing, &chunk.min, &chunk.max, to, reply);
        bson_destroy(&chunk.reply);
    }
    routing_clear(&routing);
    return ANSWERED;
}

enum outcome run_move_range(struct session *session, const struct request *request, bson_t *reply) {
    const char *to = find_text(request->body, "toShard");
    struct routing routing;
    bson_t min;
    bson_t max;
    if (!check_shard(session, to, reply) ||
        !load_sharded(session, request->target, &routing, reply)) {
        return ANSWERED;
    }
    const bool from = find_document(request->body, "min", &min);
    const bool until = find_document(request->body, "max", &max);
    move(session, request, &routing, from ? &min : NULL, until ? &max : NULL, to, reply);
    routing_clear(&routing);
    return ANSWERED;
}

enum outcome run_list_shards(struct session *session, const struct request *request,
                             bson_t *reply) {
    bson_t answer = BSON_INITIALIZER;
    bson_t cursor;
    bson_t batch;
    (void)request;
    bson_t *find = BCON_NEW("find", BCON_UTF8("shards"), "batchSize", BCON_INT32(MAX_SHARDS),
                            "singleBatch", BCON_BOOL(true), "$db", BCON_UTF8("config"));
    if (session_run_built(session, CONFIG_SET, find, reply)) {
        if (find_document(reply, "cursor", &cursor) &&
            find_document(&cursor, "firstBatch", &batch)) {
            BSON_APPEND_ARRAY(&answer, "shards", &batch);
        }
        BSON_APPEND_DOUBLE(&answer, "ok", 1.0);
        bson_destroy(reply);
        bson_steal(reply, &answer);
    }
    return ANSWERED;
}
