/* SPDX-License-Identifier: Apache-2.0 */
/* Direct connections to the shards' primaries, and the check that documents written through them
 * are on the shards that own them.
 *
 * A router attaches the version of the chunk map to its requests, and the shard refuses documents
 * that it no longer owns. A direct request has no version, and the shard accepts any document. A
 * document on a shard that does not own it is lost: routers filter it out, and the shard may delete
 * it. So the writer must check afterwards that the shard was the owner throughout. sl_direct_check
 * does this for all documents that were acknowledged before the call:
 *
 *   1. It reads from each shard the migrations of the collection away from this shard. A shard
 *      inserts a migration document (config.migrationCoordinators) before it copies the first
 *      document, and removes it after the outcome has been recorded; both with write concern
 *      majority.
 *   2. Then it reads, from the config servers with read concern majority, the identity of the
 *      collection and the version of its chunk map. Each committed migration raises the major part
 *      of the version.
 *
 * Consider a document that its shard acknowledged before 1. A migration away from that shard that
 * starts copying after 1 also copies this document. For a migration that started before 1 and is
 * not over, 1 finds its migration document, and the result is "unknown". A migration that was over
 * and committed before 1 shows in 2, because the commit precedes the removal of the migration
 * document. So if 1 finds nothing, and 2 finds the version that was current when the map was read,
 * the document is on its owner and moves with its chunk from then on. Splits and merges change no
 * owner: they raise only the minor part. Another epoch or UUID, or resharding in progress, means
 * another collection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Timeout of a check. It is short because the checking thread also writes the journal; a check that
 * fails is repeated. */
#define CHECK_SECONDS 10

/* Identity and version of the chunk map: every change of an owner changes it. */
typedef struct sl_ownership {
    uint8_t epoch[12];
    uint8_t uuid[16];
    uint32_t major;
} sl_ownership;

struct sl_direct {
    sl_connection *connection;
    const sl_topology *topology;
    sl_pool **pools;       /* for writers, per shard of the topology */
    sl_pool **checks;      /* for the checks: one per shard, the last for the routers */
    sl_ownership at_start; /* when the map was read */
};

/* ---- connecting ---- */

/* Sets the error, with advice, for a shard that cannot be reached or refuses the user. Returns
 * false. */
static bool refused(const sl_shard *shard, const bson_error_t *why, sl_error *error) {
    char doing[300];
    bson_error_t plain = *why;
    const char *advice = "";
    if (why->domain == MONGOC_ERROR_SERVER_SELECTION) {
        advice = ". --route direct connects to the shards by their names in config.shards: make "
                 "these reachable from this host, or use --route mongos";
        plain.domain = MONGOC_ERROR_SERVER; /* suppresses the advice to check --uri */
    } else if (sl_is_refused_user(why)) {
        advice = ". A user that was created through a router does not exist on the shards: for "
                 "--route direct create the same user on each shard, or use --route mongos";
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
    used -= used > 0 && error->message[used - 1] == '.' && advice[0] == '.';
    snprintf(error->message + used, sizeof error->message - used, "%s", advice);
    return false;
}

/* Appends the first document of a find on the primary to `copy` (may be NULL; initialised by the
 * caller). `more` (may be NULL) are further options of the find. Read concern majority: an election
 * cannot roll the result back. */
static bool first_document(mongoc_client_t *client, const char *database, const char *collection,
                           const bson_t *filter, const bson_t *more, bool *any, bson_t *copy,
                           bson_error_t *why) {
    bson_t *options =
        BCON_NEW("limit", BCON_INT64(1), "readConcern", "{", "level", BCON_UTF8("majority"), "}");
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

/* Is a migration of chunks of the target away from the shard in progress? */
static bool is_migrating(sl_direct *direct, uint32_t shard, const sl_target *target, bool *is,
                         bson_error_t *why) {
    char ns[SL_NAMESPACE_ROOM];
    bson_t *filter = BCON_NEW("nss", BCON_UTF8(sl_target_namespace(target, ns)));
    mongoc_client_t *client = sl_pool_borrow(direct->checks[shard]);
    bool ok =
        first_document(client, "config", "migrationCoordinators", filter, NULL, is, NULL, why);
    sl_pool_return(direct->checks[shard], client);
    bson_destroy(filter);
    return ok;
}

/* Runs the reads of a load on the shard, to check access. */
static bool try_shard(sl_direct *direct, uint32_t shard, const sl_target *target, sl_error *error) {
    bson_error_t why = {0};
    bool any;
    bson_t *filter = BCON_NEW("_id", BCON_INT64(0));
    mongoc_client_t *client = sl_direct_borrow(direct, shard);
    bool ok = first_document(client, target->database, target->collection, filter, NULL, &any, NULL,
                             &why);
    sl_direct_return(direct, shard, client);
    bson_destroy(filter);
    return (ok && is_migrating(direct, shard, target, &any, &why)) ||
           refused(&direct->topology->shards[shard], &why, error);
}

/* Opens the connection for the checks at `index`. Changes `uri`. */
static bool open_check_pool(sl_direct *direct, uint32_t index, mongoc_uri_t *uri,
                            unsigned timeout_seconds, sl_error *error) {
    unsigned timeout = timeout_seconds < CHECK_SECONDS ? timeout_seconds : CHECK_SECONDS;
    direct->checks[index] = sl_connection_writer_pool(uri, 1, timeout, error);
    return direct->checks[index] != NULL;
}

static bool open_pool(sl_direct *direct, uint32_t index, unsigned pool_size,
                      unsigned timeout_seconds, sl_error *error) {
    const sl_shard *shard = &direct->topology->shards[index];
    mongoc_uri_t *uri = sl_uri_of_server(shard->host, sl_connection_uri(direct->connection), error);
    if (!uri)
        return sl_error_prefix(error, "shard %s in config.shards", shard->name);
    sl_reach reach;
    bool ok = sl_preflight(uri, mongoc_uri_get_hosts(uri), NULL, NULL, &reach, error) ||
              sl_error_prefix(error, "shard %s (%s)", shard->name, shard->host);
    if (ok)
        direct->pools[index] = sl_connection_writer_pool(uri, pool_size, timeout_seconds, error);
    ok = ok && direct->pools[index] && open_check_pool(direct, index, uri, timeout_seconds, error);
    mongoc_uri_destroy(uri);
    return ok;
}

static bool open_routers(sl_direct *direct, unsigned timeout_seconds, sl_error *error) {
    mongoc_uri_t *uri = mongoc_uri_copy(sl_connection_uri(direct->connection));
    bool ok =
        open_check_pool(direct, (uint32_t)direct->topology->count, uri, timeout_seconds, error);
    mongoc_uri_destroy(uri);
    return ok;
}

static bool check_server(const sl_connection *connection, sl_error *error) {
    const sl_server *server = sl_connection_server(connection);
    return server->deployment == SL_SHARDED ||
           sl_error_set(
               error, SL_EXIT_USAGE,
               "--route direct needs a sharded cluster, and %s is a %s: leave the option out",
               sl_connection_display_uri(connection), sl_deployment_name(server->deployment));
}

bool sl_direct_open(sl_connection *connection, const sl_topology *topology, const sl_target *target,
                    unsigned pool_size, unsigned timeout_seconds, sl_direct **result,
                    sl_error *error) {
    *result = NULL;
    if (!check_server(connection, error))
        return false;
    sl_direct *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "connecting to the shards");
    made->connection = connection;
    made->topology = topology;
    made->pools = calloc(topology->count, sizeof(sl_pool *));
    made->checks = calloc(topology->count + 1, sizeof(sl_pool *));
    bool ok = (made->pools && made->checks) || sl_error_memory(error, "connecting to the shards");
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

static void close_pools(sl_pool **pools, size_t count) {
    for (size_t i = 0; pools && i < count; i++)
        sl_pool_destroy(pools[i]); /* NULL is fine */
    free(pools);
}

void sl_direct_close(sl_direct *direct) {
    if (!direct)
        return;
    close_pools(direct->pools, direct->topology->count);
    close_pools(direct->checks, direct->topology->count + 1);
    free(direct);
}

mongoc_client_t *sl_direct_borrow(sl_direct *direct, uint32_t shard) {
    return sl_pool_borrow(direct->pools[shard]);
}

void sl_direct_return(sl_direct *direct, uint32_t shard, mongoc_client_t *client) {
    sl_pool_return(direct->pools[shard], client);
}

/* ---- owners ---- */

/* The first document of a find on the config servers, through a router. */
static bool find_config(sl_direct *direct, const char *collection, const bson_t *filter,
                        const bson_t *options, bson_t *document, bool *found, sl_error *error) {
    sl_pool *routers = direct->checks[direct->topology->count];
    mongoc_client_t *client = sl_pool_borrow(routers);
    bson_error_t why = {0};
    bool ok =
        first_document(client, "config", collection, filter, options, found, document, &why) ||
        sl_error_from_driver(error, "reading the chunk map", &why);
    sl_pool_return(routers, client);
    return ok;
}

/* `*sharded` is false when the collection does not exist, or is being resharded. */
static bool read_identity(sl_direct *direct, const sl_target *target, sl_ownership *ownership,
                          bool *by_uuid, bool *sharded, sl_error *error) {
    char ns[SL_NAMESPACE_ROOM];
    bson_t document = BSON_INITIALIZER;
    bson_iter_t field;
    bool found;
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(sl_target_namespace(target, ns)));
    bool ok = find_config(direct, "collections", filter, NULL, &document, &found, error);
    *sharded = found;
    if (bson_has_field(&document, "reshardingFields") || sl_look_flag(&document, "dropped"))
        *sharded = false;
    *by_uuid = bson_has_field(&document, "timestamp"); /* 5.0: chunks by uuid */
    if (bson_iter_init_find(&field, &document, "lastmodEpoch") && BSON_ITER_HOLDS_OID(&field))
        memcpy(ownership->epoch, bson_iter_oid(&field), sizeof ownership->epoch);
    if (bson_iter_init_find(&field, &document, "uuid") && BSON_ITER_HOLDS_BINARY(&field)) {
        const uint8_t *bytes;
        uint32_t length;
        bson_iter_binary(&field, NULL, &length, &bytes);
        if (length == sizeof ownership->uuid)
            memcpy(ownership->uuid, bytes, length);
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
            snprintf(doing, sizeof doing, "reading the migrations of shard %s (%s)", shard->name,
                     shard->host);
            sl_error_from_driver(error, doing, &why);
            return SL_OWNERS_UNKNOWN;
        }
        if (migrating) {
            sl_error_set(error, SL_EXIT_CLUSTER,
                         "shard %s is moving chunks of %s.%s to another shard", shard->name,
                         target->database, target->collection);
            return SL_OWNERS_UNKNOWN;
        }
    }
    sl_ownership now;
    bool sharded;
    if (!read_ownership(direct, target, &now, &sharded, error))
        return SL_OWNERS_UNKNOWN;
    if (sharded && memcmp(&now, &direct->at_start, sizeof now) == 0)
        return SL_OWNERS_SAME;
    if (memcmp(now.uuid, direct->at_start.uuid, sizeof now.uuid) != 0) {
        sl_pool *routers = direct->checks[direct->topology->count];
        mongoc_client_t *client = sl_pool_borrow(routers);
        sl_target_replaced(client, target, error);
        sl_pool_return(routers, client);
        return SL_OWNERS_CHANGED;
    }
    sl_error_set(error, SL_EXIT_CLUSTER,
                 "chunks of %s.%s were moved to other shards while batches went directly to the "
                 "shards: documents of the last batches may be on a shard that does not own them, "
                 "where no query "
                 "finds them. Keep the chunks from being moved during a load (balancer, moveChunk, "
                 "resharding), or use --route mongos",
                 target->database, target->collection);
    return SL_OWNERS_CHANGED;
}

bool sl_direct_read_map(sl_direct *direct, const sl_target *target, sl_shard_map **map,
                        sl_error *error) {
    bool sharded;
    *map = NULL;
    for (unsigned attempt = 0;; attempt++) {
        sl_ownership_state state = SL_OWNERS_UNKNOWN;
        if (read_ownership(direct, target, &direct->at_start, &sharded, error)) {
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
            return sl_error_prefix(error, "chunks were being moved during all of the waiting time");
    }
}
