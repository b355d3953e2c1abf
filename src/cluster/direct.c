/* SPDX-License-Identifier: Apache-2.0 */
/* Straight to the shards: a pool of connections to the primary of each, and the proof that what was
 * written through them stands where readers look.
 *
 * A router attaches the version of the chunk map to what it sends, and the shard refuses what no
 * longer belongs to it. What is sent straight carries no version and is taken anywhere. A document
 * on a shard that does not own it is no document: routers filter it out, and the shard may delete
 * it. So whoever writes like this must find out afterwards whether the shard was the owner all the
 * time, and sl_direct_check does, for everything that was acknowledged before it is called:
 *
 *   1. It asks each shard for the migrations of the collection that it gives away. A shard writes
 *      such a note (config.migrationCoordinators) before it copies the first document, and takes it
 *      away when the outcome is known and written down; both with a majority.
 *   2. Then it reads, from the config servers and with read concern majority, who the collection is
 *      and the version of its chunk map, whose major part grows with each migration that is
 *      committed.
 *
 * Take a document that its shard acknowledged before 1. A migration away from that shard which began
 * copying after 1 finds it and takes it along. One that began before has its note there: then the
 * check says that nothing is known yet. If there is none, all that began before are over, and those
 * that have been committed show in 2, since the commit comes before the note is taken away. So with
 * no note in 1 and the same version in 2 as when the map was read, the document is where it should
 * be, and stays with its chunk from then on. Splits and merges change no owner: they raise the minor
 * part only. Another epoch or UUID, or a reshard under way, is another collection. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define OLDEST_SERVER 404 /* 4.4: the first that notes its migrations like this */

/* How long the checks wait for an answer: who waits is the thread that also keeps the journal, and
 * there is always a next check. */
#define ASKING_SECONDS 10

/* What must stay the same: any change of owners changes it. */
typedef struct sl_ownership {
    uint8_t epoch[12];
    uint8_t uuid[16];
    uint32_t major;
} sl_ownership;

struct sl_direct {
    sl_connection *connection;
    const sl_topology *topology;
    mongoc_client_pool_t **pools;  /* for writers, per shard of the topology */
    mongoc_client_pool_t **asking; /* for the checks, per shard, and a last one for the routers */
    sl_ownership begun;            /* when the map was read */
};

/* ---- is it allowed? ---- */

static bool refused(const sl_shard *shard, const bson_error_t *why, sl_error *error) {
    char doing[300];
    bson_error_t plain = *why;
    const char *advice = "";
    bool unknown_user = (why->domain == MONGOC_ERROR_CLIENT &&
                         why->code == MONGOC_ERROR_CLIENT_AUTHENTICATE) ||
                        (why->domain == MONGOC_ERROR_SERVER &&
                         why->code == SL_CODE_AUTHENTICATION_FAILED);
    if (why->domain == MONGOC_ERROR_SERVER_SELECTION) {
        advice = ". --route direct speaks to the shards under the names that the cluster has for "
                 "them (config.shards): make these reachable from here, or use --route mongos";
        plain.domain = MONGOC_ERROR_SERVER; /* it is not --uri that is wrong */
    } else if (unknown_user) {
        advice = ". Users that were made through a router are not known to the shards: for --route "
                 "direct make the same user on each shard, or use --route mongos";
        plain.domain = MONGOC_ERROR_SERVER;
        plain.code = 0;
    } else if (why->code == SL_CODE_UNAUTHORIZED) {
        advice = ". For --route direct the user needs its roles on each shard too, read on its "
                 "database config, and from server 8.0 on the role directShardOperations; or use "
                 "--route mongos";
    }
    snprintf(doing, sizeof doing, "shard %s (%s) cannot be used directly", shard->name,
             shard->host);
    sl_error_from_driver(error, doing, &plain);
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used, "%s", advice);
    return false;
}

/* The first document of a find, from the primary, into `copy` (may be NULL), which the caller has
 * initialised; `options` (may be NULL) are more of the find's. Majority: what an election takes back
 * was never there. */
static bool first_document(mongoc_client_t *client, const char *database, const char *collection,
                           const bson_t *filter, const bson_t *more, bool *any, bson_t *copy,
                           bson_error_t *why) {
    bson_t *options = BCON_NEW("limit", BCON_INT64(1), "readConcern", "{", "level",
                               BCON_UTF8("majority"), "}");
    if (more)
        bson_concat(options, more);
    mongoc_read_prefs_t *primary = mongoc_read_prefs_new(MONGOC_READ_PRIMARY);
    mongoc_collection_t *handle = mongoc_client_get_collection(client, database, collection);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(handle, filter, options, primary);
    const bson_t *document;
    *any = mongoc_cursor_next(cursor, &document);
    if (*any && copy)
        bson_concat(copy, document);
    bool ok = !mongoc_cursor_error(cursor, why);
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(handle);
    mongoc_read_prefs_destroy(primary);
    bson_destroy(options);
    return ok;
}

/* Does the shard give chunks of the target away at this moment? */
static bool is_migrating(sl_direct *direct, uint32_t shard, const sl_target *target, bool *is,
                         bson_error_t *why) {
    char ns[SL_NAMESPACE_ROOM];
    bson_t *filter = BCON_NEW("nss", BCON_UTF8(sl_target_namespace(target, ns)));
    mongoc_client_t *client = mongoc_client_pool_pop(direct->asking[shard]);
    bool ok = first_document(client, "config", "migrationCoordinators", filter, NULL, is, NULL, why);
    mongoc_client_pool_push(direct->asking[shard], client);
    bson_destroy(filter);
    return ok;
}

/* Everything that a load does with the shard, but writing. */
static bool try_shard(sl_direct *direct, uint32_t shard, const sl_target *target,
                      sl_error *error) {
    const sl_shard *facts = &direct->topology->shards[shard];
    bson_error_t why = {0};
    bool any;
    bson_t *filter = BCON_NEW("_id", BCON_INT64(0));
    mongoc_client_t *client = sl_direct_borrow(direct, shard);
    bool ok = first_document(client, target->database, target->collection, filter, NULL, &any, NULL,
                             &why);
    sl_direct_return(direct, shard, client);
    bson_destroy(filter);
    return (ok && is_migrating(direct, shard, target, &any, &why)) || refused(facts, &why, error);
}

/* The connection for the checks at `index`; it may change the URI. */
static bool open_asking(sl_direct *direct, uint32_t index, mongoc_uri_t *uri,
                        unsigned timeout_seconds, sl_error *error) {
    unsigned patience = timeout_seconds < ASKING_SECONDS ? timeout_seconds : ASKING_SECONDS;
    direct->asking[index] = sl_connection_writer_pool(uri, 1, patience, error);
    return direct->asking[index] != NULL;
}

static bool open_pool(sl_direct *direct, uint32_t shard, unsigned pool_size,
                      unsigned timeout_seconds, sl_error *error) {
    const sl_shard *facts = &direct->topology->shards[shard];
    mongoc_uri_t *uri = sl_shard_uri(facts, sl_connection_uri(direct->connection));
    if (!uri)
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "shard %s: its host in config.shards, %s, is not understood",
                            facts->name, facts->host);
    bool ok = sl_preflight(uri, error) ||
              sl_error_prefix(error, "shard %s (%s)", facts->name, facts->host);
    if (ok)
        direct->pools[shard] = sl_connection_writer_pool(uri, pool_size, timeout_seconds, error);
    ok = ok && direct->pools[shard] && open_asking(direct, shard, uri, timeout_seconds, error);
    mongoc_uri_destroy(uri);
    return ok;
}

static bool open_routers(sl_direct *direct, unsigned timeout_seconds, sl_error *error) {
    mongoc_uri_t *uri = mongoc_uri_copy(sl_connection_uri(direct->connection));
    bool ok = open_asking(direct, (uint32_t)direct->topology->count, uri, timeout_seconds, error);
    mongoc_uri_destroy(uri);
    return ok;
}

static bool is_allowed(const sl_connection *connection, sl_error *error) {
    const sl_server *server = sl_connection_server(connection);
    unsigned major = 0, minor = 0;
    if (server->deployment != SL_SHARDED)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--route direct needs a sharded cluster, and %s is a %s; leave it out: "
                            "there is no router in between",
                            sl_connection_display_uri(connection),
                            sl_deployment_name(server->deployment));
    return sscanf(server->version, "%u.%u", &major, &minor) != 2 ||
           major * 100 + minor >= OLDEST_SERVER ||
           sl_error_set(error, SL_EXIT_CLUSTER,
                        "--route direct needs server 4.4 or later, whose shards tell of their "
                        "migrations; this is %s", server->version);
}

bool sl_direct_open(sl_connection *connection, const sl_topology *topology, const sl_target *target,
                    unsigned pool_size, unsigned timeout_seconds, sl_direct **result,
                    sl_error *error) {
    *result = NULL;
    if (!is_allowed(connection, error))
        return false;
    sl_direct *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "connecting to the shards");
    made->connection = connection;
    made->topology = topology;
    made->pools = calloc(topology->count, sizeof(mongoc_client_pool_t *));
    made->asking = calloc(topology->count + 1, sizeof(mongoc_client_pool_t *));
    bool ok = (made->pools && made->asking) || sl_error_memory(error, "connecting to the shards");
    ok = ok && open_routers(made, timeout_seconds, error);
    for (uint32_t i = 0; ok && i < topology->count; i++)
        ok = open_pool(made, i, pool_size, timeout_seconds, error) &&
             try_shard(made, i, target, error);
    if (ok)
        *result = made;
    else
        sl_direct_close(made);
    return ok;
}

static void close_pools(mongoc_client_pool_t **pools, size_t count) {
    for (size_t i = 0; pools && i < count; i++) {
        if (pools[i])
            mongoc_client_pool_destroy(pools[i]);
    }
    free(pools);
}

void sl_direct_close(sl_direct *direct) {
    if (!direct)
        return;
    close_pools(direct->pools, direct->topology->count);
    close_pools(direct->asking, direct->topology->count + 1);
    free(direct);
}

mongoc_client_t *sl_direct_borrow(sl_direct *direct, uint32_t shard) {
    return mongoc_client_pool_pop(direct->pools[shard]);
}

void sl_direct_return(sl_direct *direct, uint32_t shard, mongoc_client_t *client) {
    mongoc_client_pool_push(direct->pools[shard], client);
}

/* ---- who owns what ---- */

/* The first document of a find on the config servers, through a router. */
static bool find_config(sl_direct *direct, const char *collection, const bson_t *filter,
                        const bson_t *options, bson_t *document, bool *found, sl_error *error) {
    mongoc_client_pool_t *routers = direct->asking[direct->topology->count];
    mongoc_client_t *client = mongoc_client_pool_pop(routers);
    bson_error_t why = {0};
    bool ok = first_document(client, "config", collection, filter, options, found, document, &why) ||
              sl_error_from_driver(error, "asking for the chunks", &why);
    mongoc_client_pool_push(routers, client);
    return ok;
}

/* `*sharded` is false when there is no such collection now, or it is being resharded. */
static bool read_identity(sl_direct *direct, const sl_target *target, sl_ownership *ownership,
                          bool *by_uuid, bool *sharded, sl_error *error) {
    char ns[SL_NAMESPACE_ROOM];
    bson_t document = BSON_INITIALIZER;
    bson_iter_t field;
    bool found;
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(sl_target_namespace(target, ns)));
    bool ok = find_config(direct, "collections", filter, NULL, &document, &found, error);
    *sharded = found;
    *by_uuid = false;
    bool any = found && bson_iter_init(&field, &document);
    while (any && bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        const uint8_t *bytes;
        uint32_t length;
        bson_subtype_t subtype;
        if (strcmp(key, "reshardingFields") == 0 ||
            (strcmp(key, "dropped") == 0 && bson_iter_as_bool(&field)))
            *sharded = false;
        else if (strcmp(key, "timestamp") == 0) /* 5.0: chunks by uuid */
            *by_uuid = true;
        else if (strcmp(key, "lastmodEpoch") == 0 && BSON_ITER_HOLDS_OID(&field))
            memcpy(ownership->epoch, bson_iter_oid(&field), sizeof ownership->epoch);
        else if (strcmp(key, "uuid") == 0 && BSON_ITER_HOLDS_BINARY(&field)) {
            bson_iter_binary(&field, &subtype, &length, &bytes);
            if (length == sizeof ownership->uuid)
                memcpy(ownership->uuid, bytes, length);
        }
    }
    bson_destroy(&document);
    bson_destroy(filter);
    return ok;
}

static bool read_ownership(sl_direct *direct, const sl_target *target, sl_ownership *ownership,
                           bool *sharded, sl_error *error) {
    bool by_uuid, found = false;
    memset(ownership, 0, sizeof *ownership);
    if (!read_identity(direct, target, ownership, &by_uuid, sharded, error))
        return false;
    if (!*sharded)
        return true;
    char ns[SL_NAMESPACE_ROOM];
    bson_t document = BSON_INITIALIZER, filter = BSON_INITIALIZER;
    bson_iter_t field;
    if (by_uuid)
        BSON_APPEND_BINARY(&filter, "uuid", BSON_SUBTYPE_UUID, ownership->uuid,
                           sizeof ownership->uuid);
    else
        BSON_APPEND_UTF8(&filter, "ns", sl_target_namespace(target, ns));
    bson_t *options = BCON_NEW("sort", "{", "lastmod", BCON_INT32(-1), "}");
    bool ok = find_config(direct, "chunks", &filter, options, &document, &found, error);
    *sharded = found && bson_iter_init_find(&field, &document, "lastmod") &&
               BSON_ITER_HOLDS_TIMESTAMP(&field);
    if (*sharded) {
        uint32_t minor;
        bson_iter_timestamp(&field, &ownership->major, &minor);
    }
    bson_destroy(options);
    bson_destroy(&document);
    bson_destroy(&filter);
    return ok;
}

sl_ownership_state sl_direct_check(sl_direct *direct, const sl_target *target, sl_error *error) {
    for (uint32_t i = 0; i < direct->topology->count; i++) {
        const sl_shard *shard = &direct->topology->shards[i];
        bson_error_t why = {0};
        bool migrating;
        if (!is_migrating(direct, i, target, &migrating, &why)) {
            char doing[300];
            snprintf(doing, sizeof doing, "asking shard %s (%s) for migrations", shard->name,
                     shard->host);
            sl_error_from_driver(error, doing, &why);
            return SL_OWNERS_UNKNOWN;
        }
        if (migrating) {
            sl_error_set(error, SL_EXIT_CLUSTER,
                         "shard %s is giving chunks of %s.%s away", shard->name, target->database,
                         target->collection);
            return SL_OWNERS_UNKNOWN;
        }
    }
    sl_ownership now;
    bool sharded;
    if (!read_ownership(direct, target, &now, &sharded, error))
        return SL_OWNERS_UNKNOWN;
    if (sharded && memcmp(&now, &direct->begun, sizeof now) == 0)
        return SL_OWNERS_SAME;
    if (memcmp(now.uuid, direct->begun.uuid, sizeof now.uuid) != 0) {
        mongoc_client_pool_t *routers = direct->asking[direct->topology->count];
        mongoc_client_t *client = mongoc_client_pool_pop(routers);
        sl_target_replaced(client, target, error);
        mongoc_client_pool_push(routers, client);
        return SL_OWNERS_CHANGED;
    }
    sl_error_set(error, SL_EXIT_CLUSTER,
                 "chunks of %s.%s have been moved to other shards while batches went straight to "
                 "them: the last ones may stand where nobody looks for them. Let nothing move "
                 "chunks (a balancer that was started again, moveChunk by hand, resharding), or "
                 "use --route mongos", target->database, target->collection);
    return SL_OWNERS_CHANGED;
}

bool sl_direct_read_map(sl_direct *direct, const sl_target *target, sl_shard_map **map,
                        sl_error *error) {
    bool sharded;
    *map = NULL;
    for (unsigned attempt = 0;; attempt++) {
        sl_ownership_state state = SL_OWNERS_UNKNOWN;
        if (read_ownership(direct, target, &direct->begun, &sharded, error)) {
            if (!sharded)
                return sl_error_set(error, SL_EXIT_CLUSTER,
                                    "--route direct: %s.%s is not sharded, or is being resharded",
                                    target->database, target->collection);
            if (!sl_shard_map_read(direct->connection, target, direct->topology, map, error))
                return false;
            state = sl_direct_check(direct, target, error);
        }
        if (state == SL_OWNERS_SAME)
            return true;
        sl_shard_map_destroy(*map);
        *map = NULL;
        if (!sl_connection_backoff(direct->connection, attempt, error))
            return sl_error_prefix(error, "waited in vain for the chunks to stay where they are");
    }
}
