/* SPDX-License-Identifier: Apache-2.0 */

/* Reads metadata of databases and collections from the config servers: see metadata.h. */

#include "metadata.h"

#include "answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool find_document(const bson_t *document, const char *name, bson_t *value) {
    bson_iter_t iter;
    const uint8_t *bytes = NULL;
    uint32_t length = 0;
    if (!bson_iter_init_find(&iter, document, name)) {
        return false;
    }
    if (BSON_ITER_HOLDS_DOCUMENT(&iter)) {
        bson_iter_document(&iter, &length, &bytes);
    } else if (BSON_ITER_HOLDS_ARRAY(&iter)) {
        bson_iter_array(&iter, &length, &bytes);
    } else {
        return false;
    }
    return wire_view_document(bytes, length, value);
}

const char *find_text(const bson_t *document, const char *name) {
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) && BSON_ITER_HOLDS_UTF8(&iter)
               ? bson_iter_utf8(&iter, NULL)
               : NULL;
}

bool first_of_batch(const bson_t *reply, bson_t *document) {
    bson_t cursor;
    bson_t batch;
    return find_document(reply, "cursor", &cursor) &&
           find_document(&cursor, "firstBatch", &batch) && find_document(&batch, "0", document);
}

void append_majority(bson_t *command) {
    bson_t concern;
    BSON_APPEND_DOCUMENT_BEGIN(command, "writeConcern", &concern);
    BSON_APPEND_UTF8(&concern, "w", "majority");
    bson_append_document_end(command, &concern);
}

bool request_namespace(const struct request *request, char ns[MAX_NAMESPACE], bson_t *reply) {
    if (!request->target || !request->target[0]) {
        return answer_error(reply, CODE_INVALID_NAMESPACE, "%s needs the name of a collection",
                            request->name);
    }
    const int length = snprintf(ns, MAX_NAMESPACE, "%s.%s", request->db, request->target);
    if (length >= MAX_NAMESPACE) {
        return answer_error(reply, CODE_INVALID_NAMESPACE, "the namespace is too long");
    }
    return true;
}

bool split_namespace(const char *ns, char db[MAX_NAMESPACE], const char **collection,
                     bson_t *reply) {
    const char *dot = ns ? strchr(ns, '.') : NULL;
    if (!dot || dot == ns || !dot[1] || strlen(ns) >= MAX_NAMESPACE) {
        return answer_error(reply, CODE_INVALID_NAMESPACE, "Invalid namespace specified '%s'",
                            ns ? ns : "");
    }
    memcpy(db, ns, (size_t)(dot - ns));
    db[dot - ns] = '\0';
    *collection = dot + 1;
    return true;
}

/* Finds the one document of a config collection whose _id is `id`. */
static bool find_config(struct session *session, const char *collection, const char *id,
                        bson_t *reply) {
    bson_t *find = BCON_NEW("find", BCON_UTF8(collection), "filter", "{", "_id", BCON_UTF8(id), "}",
                            "limit", BCON_INT32(1), "$db", BCON_UTF8("config"));
    return session_run_built(session, CONFIG_SET, find, reply);
}

bool database_load(struct session *session, const char *name, struct database *database,
                   bson_t *reply) {
    bson_t found;
    bson_t entry;
    bson_t version;
    *database = (struct database){.primary = CONFIG_SET};
    bson_init(&database->version);
    if (strcmp(name, "admin") == 0 || strcmp(name, "config") == 0) {
        database->exists = true;
        return true;
    }
    if (!find_config(session, "databases", name, &found)) {
        bson_steal(reply, &found);
        return false;
    }
    if (first_of_batch(&found, &entry) && find_document(&entry, "version", &version)) {
        const char *shard = find_text(&entry, "primary");
        database->exists = true;
        database->primary =
            shard ? topology_find_shard(session->router->topology, shard) : CONFIG_SET;
        bson_concat(&database->version, &version);
        if (database->primary == CONFIG_SET) {
            answer_error(reply, CODE_SHARD_NOT_FOUND, "database %s is on the unknown shard %s",
                         name, shard ? shard : "");
            bson_destroy(&found);
            return false;
        }
    }
    bson_destroy(&found);
    return true;
}

void database_clear(struct database *database) {
    bson_destroy(&database->version);
}

bool database_create(struct session *session, const char *name, const char *shard, bson_t *reply) {
    bson_t create = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&create, "_configsvrCreateDatabase", name);
    if (shard) {
        BSON_APPEND_UTF8(&create, "primaryShardId", shard);
    }
    append_majority(&create);
    BSON_APPEND_UTF8(&create, "$db", "admin");
    const bool good = session_run_built(session, CONFIG_SET, &create, reply);
    if (good) {
        bson_destroy(reply);
    }
    return good;
}

bool database_ensure(struct session *session, const char *name, struct database *database,
                     bson_t *reply) {
    if (!database_load(session, name, database, reply)) {
        return false;
    }
    if (database->exists) {
        return true;
    }
    database_clear(database);
    if (!database_create(session, name, NULL, reply)) {
        bson_init(&database->version);
        return false;
    }
    return database_load(session, name, database, reply);
}

static bool load_owners(struct session *session, struct routing *routing, bson_t *reply) {
    bson_t found;
    bson_t cursor;
    bson_t batch;
    bson_iter_t iter;
    bool good = false;
    bson_t *aggregate =
        BCON_NEW("aggregate", BCON_UTF8("chunks"), "pipeline", "[", "{", "$match", "{", "uuid",
                 BCON_BIN(routing->uuid.value.v_binary.subtype, routing->uuid.value.v_binary.data,
                          routing->uuid.value.v_binary.data_len),
                 "}", "}", "{", "$group", "{", "_id", BCON_UTF8("$shard"), "version", "{", "$max",
                 BCON_UTF8("$lastmod"), "}", "chunks", "{", "$sum", BCON_INT64(1), "}", "}", "}",
                 "{", "$sort", "{", "_id", BCON_INT32(1), "}", "}", "]", "cursor", "{", "batchSize",
                 BCON_INT32(MAX_SHARDS), "}", "$db", BCON_UTF8("config"));
    if (!session_run_built(session, CONFIG_SET, aggregate, &found)) {
        bson_steal(reply, &found);
        return false;
    }
    routing->owners = calloc(session->router->topology->count, sizeof *routing->owners);
    if (!routing->owners || !find_document(&found, "cursor", &cursor) ||
        !find_document(&cursor, "firstBatch", &batch) || !bson_iter_init(&iter, &batch)) {
        answer_error(reply, CODE_INTERNAL_ERROR, "the chunks cannot be read");
        goto done;
    }
    while (bson_iter_next(&iter) && routing->owner_count + 1 < session->router->topology->count) {
        struct owner *owner = &routing->owners[routing->owner_count];
        const char *shard = NULL;
        bson_iter_t field;
        for (bool more = bson_iter_recurse(&iter, &field); more && bson_iter_next(&field);) {
            if (BSON_ITER_IS_KEY(&field, "_id") && BSON_ITER_HOLDS_UTF8(&field)) {
                shard = bson_iter_utf8(&field, NULL);
            } else if (BSON_ITER_IS_KEY(&field, "version") && BSON_ITER_HOLDS_TIMESTAMP(&field)) {
                bson_iter_timestamp(&field, &owner->major, &owner->minor);
            } else if (BSON_ITER_IS_KEY(&field, "chunks")) {
                owner->chunks = bson_iter_as_int64(&field);
            }
        }
        owner->set = shard ? topology_find_shard(session->router->topology, shard) : CONFIG_SET;
        if (owner->set == CONFIG_SET) {
            answer_error(reply, CODE_SHARD_NOT_FOUND, "a chunk is on the unknown shard %s",
                         shard ? shard : "");
            goto done;
        }
        routing->owner_count++;
    }
    good = routing->owner_count > 0;
    if (!good) {
        answer_error(reply, CODE_STALE_CONFIG, "the collection has no chunks at the moment");
    }
done:
    bson_destroy(&found);
    return good;
}

bool routing_load(struct session *session, const char *ns, struct routing *routing, bson_t *reply) {
    bson_t found;
    bson_t entry;
    bson_t key;
    bson_iter_t iter;
    *routing = (struct routing){0};
    bson_init(&routing->key);
    if (!find_config(session, "collections", ns, &found)) {
        bson_steal(reply, &found);
        return false;
    }
    if (!first_of_batch(&found, &entry)) {
        bson_destroy(&found);
        return true;
    }
    bool good = find_document(&entry, "key", &key) && bson_concat(&routing->key, &key) &&
                bson_iter_init_find(&iter, &entry, "uuid") && BSON_ITER_HOLDS_BINARY(&iter);
    if (good) {
        bson_value_copy(bson_iter_value(&iter), &routing->uuid);
        routing->sharded = true;
        good = bson_iter_init_find(&iter, &entry, "lastmodEpoch") && BSON_ITER_HOLDS_OID(&iter);
    }
    if (good) {
        bson_oid_copy(bson_iter_oid(&iter), &routing->epoch);
        good = bson_iter_init_find(&iter, &entry, "timestamp") && BSON_ITER_HOLDS_TIMESTAMP(&iter);
    }
    if (good) {
        bson_iter_timestamp(&iter, &routing->timestamp_seconds, &routing->timestamp_increment);
        good = load_owners(session, routing, reply);
    } else {
        answer_error(reply, CODE_INTERNAL_ERROR, "the config servers' entry of %s cannot be read",
                     ns);
    }
    bson_destroy(&found);
    if (!good) {
        routing_clear(routing);
    }
    return good;
}

void routing_clear(struct routing *routing) {
    if (routing->sharded) {
        bson_value_destroy(&routing->uuid);
    }
    free(routing->owners);
    bson_destroy(&routing->key);
    *routing = (struct routing){0};
    bson_init(&routing->key);
}

void routing_append_version(const struct routing *routing, const struct owner *owner,
                            bson_t *command) {
    bson_t version;
    BSON_APPEND_DOCUMENT_BEGIN(command, "shardVersion", &version);
    BSON_APPEND_TIMESTAMP(&version, "t", routing->timestamp_seconds, routing->timestamp_increment);
    BSON_APPEND_OID(&version, "e", &routing->epoch);
    BSON_APPEND_TIMESTAMP(&version, "v", owner->major, owner->minor);
    bson_append_document_end(command, &version);
}
