/* SPDX-License-Identifier: Apache-2.0 */
/* The shards of a cluster, from config.shards. A deployment without sharding counts as one shard,
 * so that callers need no special case. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#include "internal.h"
#include "member.h"

#define SHARDS_MAX 10000

static bool add_shard(sl_topology *topology, const char *name, const char *host, bool draining,
                      sl_error *error) {
    if (topology->count == SHARDS_MAX)
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "config.shards has more than %d shards, the most that are handled",
                            SHARDS_MAX);
    sl_shard *grown = realloc(topology->shards, (topology->count + 1) * sizeof *grown);
    if (!grown)
        return sl_error_memory(error, "reading the shards");
    topology->shards = grown;
    sl_shard *shard = &grown[topology->count];
    shard->name = strdup(name);
    shard->host = strdup(host);
    shard->draining = draining;
    topology->count++;
    if (!shard->name || !shard->host)
        return sl_error_memory(error, "reading the shards");
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const sl_shard *)a)->name, ((const sl_shard *)b)->name);
}

static int has_name(const void *name, const void *shard) {
    return strcmp(name, ((const sl_shard *)shard)->name);
}

bool sl_topology_add_shards(sl_topology *topology, const bson_t *documents, sl_error *error) {
    bool ok = true;
    for (sl_walk walk = sl_walk_of(documents); ok && sl_walk_next(&walk);)
        ok = add_shard(topology, sl_look_string(&walk.item, "_id"),
                       sl_look_string(&walk.item, "host"),
                       sl_look_truth(&walk.item, "draining") == 1, error);
    if (ok && topology->count > 0) /* a server may ignore the sort */
        qsort(topology->shards, topology->count, sizeof *topology->shards, by_name);
    return ok;
}

bool sl_topology_find(const sl_topology *topology, const char *name, uint32_t *shard) {
    const sl_shard *found = topology->count > 0 ? bsearch(name, topology->shards, topology->count,
                                                          sizeof *topology->shards, has_name)
                                                : NULL;
    if (found)
        *shard = (uint32_t)(found - topology->shards);
    return found != NULL;
}

uint32_t sl_topology_receiver(const sl_topology *topology, const sl_topology *now, uint32_t shard) {
    for (size_t i = 0; i < topology->count; i++) {
        uint32_t candidate = (uint32_t)((shard + i) % topology->count), found;
        if (sl_topology_find(now, topology->shards[candidate].name, &found) &&
            !now->shards[found].draining)
            return candidate;
    }
    return shard;
}

static bool read_shards(sl_connection *connection, sl_topology *topology, sl_error *error) {
    bson_t filter = BSON_INITIALIZER, documents;
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}");
    bool ok =
        sl_connection_find(connection, "config", "shards", &filter, options, &documents, error) &&
        sl_topology_add_shards(topology, &documents, error);
    if (ok && topology->count == 0)
        ok = sl_error_set(error, SL_EXIT_CLUSTER,
                          "the cluster at %s has no shards yet; add one with sh.addShard()",
                          sl_connection_display_uri(connection));
    bson_destroy(&documents);
    bson_destroy(options);
    return ok;
}

void sl_topology_may_be_read(sl_connection *connection) {
    sl_error error = {0};
    bson_t documents, *options = BCON_NEW("limit", BCON_INT64(1));
    const bson_t all = BSON_INITIALIZER;
    if (sl_connection_server(connection)->deployment == SL_SHARDED) {
        if (!sl_connection_find(connection, "config", "shards", &all, options, &documents,
                                &error) &&
            sl_code_is_refusal(error.server_code)) {
            sl_connection_hide_shards(connection);
            sl_log_warning("the shards are not known: " SL_LINES "; all batches are sent to the "
                           "routers, a new collection is not sharded, and the balancer is not "
                           "stopped",
                           error.message);
        }
        bson_destroy(&documents);
    }
    bson_destroy(options);
}

bool sl_topology_read(sl_connection *connection, sl_topology **topology, sl_error *error) {
    *topology = NULL;
    sl_topology *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "reading the shards");
    const sl_server *server = sl_connection_server(connection);
    bool ok = server->deployment == SL_SHARDED
                  ? read_shards(connection, made, error)
                  : add_shard(made,
                              server->deployment == SL_REPLICA_SET
                                  ? server->set_name
                                  : sl_deployment_name(server->deployment),
                              sl_connection_display_uri(connection), false, error);
    if (!ok) {
        sl_topology_destroy(made);
        return false;
    }
    *topology = made;
    return true;
}

/* Seconds for which a shard may be without a primary: an election takes up to 12. */
#define SHARDS_PATIENCE 15.0

bool sl_shards_answer(sl_connection *connection, sl_error *error) {
    int64_t start = sl_clock_ns();
    int32_t code = 0;
    bool ok;
    /* The router asks every shard for it, and no privilege is needed. */
    bson_t *list = BCON_NEW("listDatabases", BCON_INT32(1), "nameOnly", BCON_BOOL(true),
                            "authorizedDatabases", BCON_BOOL(true));
    for (unsigned attempt = 0;; attempt++) {
        sl_error why = {0};
        ok = sl_connection_command(connection, "admin", list, NULL, &code, &why) ||
             sl_code_is_refusal(code);
        if (ok)
            break;
        *error = why;
        if (sl_seconds_since(start) > SHARDS_PATIENCE ||
            !sl_connection_backoff(connection, attempt, error))
            break;
    }
    bson_destroy(list);
    return ok || sl_error_prefix(error, "not every shard of the cluster answers");
}

void sl_topology_destroy(sl_topology *topology) {
    if (!topology)
        return;
    for (size_t i = 0; i < topology->count; i++) {
        free(topology->shards[i].name);
        free(topology->shards[i].host);
    }
    free(topology->shards);
    free(topology);
}

bool sl_database_home(sl_connection *connection, const sl_target *target,
                      const sl_topology *topology, uint32_t *shard, bool *known, sl_error *error) {
    bson_t document;
    *shard = 0;
    *known = sl_connection_server(connection)->deployment != SL_SHARDED;
    if (*known)
        return true;
    bool found;
    bool ok = sl_find_by_id(connection, "config", "databases", target->database, &document, &found,
                            error);
    *known =
        ok && sl_topology_find(topology, found ? sl_look_string(&document, "primary") : "", shard);
    bson_destroy(&document);
    return ok;
}

/* ---- stored sizes ---- */

/* Storage statistics of a collection per shard, from $collStats, and the server's storage
 * engine. */

static uint64_t number_of(const bson_t *row, const char *key) {
    int64_t value = sl_look_int64(row, key, 0);
    return value > 0 ? (uint64_t)value : 0;
}

static int by_shard(const void *a, const void *b) {
    const sl_shard_statistics *left = a, *right = b;
    return strcmp(left->shard, right->shard);
}

bool sl_statistics_of(const bson_t *reply, const char *lone, sl_shard_statistics **rows,
                      size_t *count, sl_error *error) {
    for (sl_walk walk = sl_walk_start(reply, "cursor.firstBatch"); sl_walk_next(&walk);) {
        if (*count == SHARDS_MAX)
            return sl_error_set(error, SL_EXIT_CLUSTER,
                                "the server lists the sizes of more than %d shards", SHARDS_MAX);
        const size_t room = *count ? 2 * *count : 1;
        const bool full = (*count & (*count - 1)) == 0; /* 0, or a power of two */
        sl_shard_statistics *grown = full ? realloc(*rows, room * sizeof *grown) : *rows;
        if (!grown)
            return sl_error_memory(error, "reading the collection's statistics");
        *rows = grown;
        sl_shard_statistics *made = &grown[(*count)++];
        const char *shard = sl_look_text(&walk.item, "shard");
        snprintf(made->shard, sizeof made->shard, "%s", shard ? shard : lone);
        made->documents = number_of(&walk.item, "documents");
        made->data_bytes = number_of(&walk.item, "data");
        made->storage_bytes = number_of(&walk.item, "storage");
        made->index_bytes = number_of(&walk.item, "index");
    }
    if (*count > 1)
        qsort(*rows, *count, sizeof **rows, by_shard);
    return true;
}

bool sl_statistics_read(sl_connection *connection, const sl_target *target,
                        sl_shard_statistics **rows, size_t *count, sl_error *error) {
    *rows = NULL;
    *count = 0;
    bson_t reply;
    int32_t code;
    bson_t *command =
        BCON_NEW("aggregate", BCON_UTF8(target->collection), "pipeline", "[", "{", "$collStats",
                 "{", "storageStats", "{", "}", "}", "}", "{", "$project", "{", "shard",
                 BCON_INT32(1), "documents", "$storageStats.count", "data", "$storageStats.size",
                 "storage", "$storageStats.storageSize", "index", "$storageStats.totalIndexSize",
                 "}", "}", "]", "cursor", "{", "batchSize", BCON_INT32(10000), "}");
    bool ok = sl_cluster_run(connection, target->database, command, &reply, &code, error);
    if (!ok && (code == SL_CODE_NAMESPACE_NOT_FOUND || code == 40280 /* before server 5.0 */)) {
        ok = true; /* no collection: no rows */
    } else if (ok) {
        sl_topology *topology = NULL;
        ok = sl_topology_read(connection, &topology, error) &&
             sl_statistics_of(&reply, topology->shards[0].name, rows, count, error);
        sl_topology_destroy(topology);
    }
    bson_destroy(&reply);
    if (!ok) {
        free(*rows);
        *rows = NULL;
        *count = 0;
        return sl_error_prefix(error, "cannot read the statistics of %s.%s", target->database,
                               target->collection);
    }
    return true;
}

/* ---- disks ---- */

static bool has_room(const char *shard, const bson_t *statistics, double bytes, sl_error *error) {
    double all = sl_look_amount(statistics, "fsTotalSize", 0);
    double used = sl_look_amount(statistics, "fsUsedSize", 0);
    char free_room[SL_HUMAN_ROOM], all_room[SL_HUMAN_ROOM], needed[SL_HUMAN_ROOM];
    return all <= 0 || used + bytes <= SL_DISK_FULL * all ||
           sl_error_set(error, SL_EXIT_CLUSTER,
                        "the disk of %s has %s free of %s, and up to %s would be written: a full "
                        "disk ends the server. Free space, or take a smaller sample "
                        "(--trial-bytes, --sample)",
                        shard, sl_human_bytes(all - used, free_room), sl_human_bytes(all, all_room),
                        sl_human_bytes(bytes, needed));
}

bool sl_disks_have_room(sl_connection *connection, double bson_bytes, sl_error *error) {
    double bytes = SL_STORED_MOST * bson_bytes;
    sl_error why = {0};
    bson_t reply, raw;
    /* Database admin exists on each shard; with one that does not exist, no disk is reported. */
    bson_t *command = BCON_NEW("dbStats", BCON_INT32(1));
    bool known = sl_cluster_run(connection, "admin", command, &reply, NULL, &why);
    if (!known)
        sl_log_detail("the free space of the disks is not known: " SL_LINES, why.message);
    bool ok = !known || has_room("the server", &reply, bytes, error);
    sl_look_inside(&reply, "raw", &raw); /* by shard, from a router */
    for (sl_walk walk = sl_walk_of(&raw); ok && known && sl_walk_next(&walk);)
        ok = has_room(bson_iter_key(&walk.at), &walk.item, bytes, error);
    bson_destroy(&reply);
    return ok;
}

void sl_storage_engine_of(const bson_t *status, sl_storage_engine *engine) {
    static const char cache[] = "wiredTiger.cache.maximum bytes configured";
    const char *name = sl_look_text(status, "storageEngine.name");
    if (name)
        snprintf(engine->name, sizeof engine->name, "%s", name);
    engine->cache_bytes = (uint64_t)sl_look_int64(status, cache, (int64_t)engine->cache_bytes);
}

static sl_shard_statistics *row_of(sl_shard_statistics *rows, size_t count, const char *shard) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].shard, shard) == 0)
            return &rows[i];
    }
    return NULL;
}

/* Counts the documents of each shard, with one command per run of adjacent chunks on one shard. */
static bool count_chunks(sl_connection *connection, const sl_target *target,
                         const sl_topology *topology, const sl_shard_map *map,
                         sl_shard_statistics *rows, size_t count, sl_error *error) {
    for (size_t i = 0; i < count; i++)
        rows[i].documents = 0;
    for (size_t first = 0, next; first < map->count; first = next) {
        uint64_t found;
        for (next = first + 1;
             next < map->count && map->chunks[next].shard == map->chunks[first].shard; next++)
            ;
        int64_t end = next < map->count ? map->chunks[next].first : INT64_MAX;
        sl_shard_statistics *row =
            row_of(rows, count, topology->shards[map->chunks[first].shard].name);
        if (!sl_count_range(connection, target, map->chunks[first].first, end, &found, error))
            return false;
        if (row)
            row->documents += found;
    }
    return true;
}

bool sl_statistics_count(sl_connection *connection, const sl_target *target,
                         const sl_topology *topology, const sl_shard_map *map,
                         sl_shard_statistics *rows, size_t count, bool *counted, sl_error *error) {
    const bson_t all = BSON_INITIALIZER;
    *counted = count == 1 || sl_shard_map_by_id(map);
    if (count == 1)
        return sl_count_matching(connection, target, &all, &rows[0].documents, error);
    return !*counted || count_chunks(connection, target, topology, map, rows, count, error);
}

void sl_storage_engine_read(sl_connection *connection, sl_storage_engine *engine) {
    *engine = (sl_storage_engine){.cache_bytes = 0};
    bson_t reply;
    bson_t *status = BCON_NEW("serverStatus", BCON_INT32(1));
    if (sl_connection_command(connection, "admin", status, &reply, NULL, NULL))
        sl_storage_engine_of(&reply, engine);
    bson_destroy(&reply);
    bson_destroy(status);
}

/* ---- replication lag ---- */

#define LAG_LIMIT_MS 3000 /* for the answer of a shard */

static double optime_seconds(const bson_t *member) {
    bson_iter_t iter;
    return bson_iter_init_find(&iter, member, "optimeDate") && BSON_ITER_HOLDS_DATE_TIME(&iter)
               ? (double)bson_iter_date_time(&iter) / 1000
               : NAN;
}

double sl_replication_lag(const bson_t *status,
                          void (*found)(void *context, const char *member, double seconds),
                          void *context) {
    double newest = NAN, largest = NAN;
    for (sl_walk walk = sl_walk_start(status, "members"); sl_walk_next(&walk);)
        newest = fmax(newest, optime_seconds(&walk.item));
    for (sl_walk walk = sl_walk_start(status, "members"); sl_walk_next(&walk);) {
        double lag = newest - optime_seconds(&walk.item);
        if (strcmp(sl_look_string(&walk.item, "stateStr"), "SECONDARY") != 0 || isnan(lag))
            continue;
        largest = fmax(largest, lag);
        if (found)
            found(context, sl_look_string(&walk.item, "name"), lag);
    }
    return largest;
}

/* The lag in the replica set of a shard, "s0/host:port,...", according to its first host. False:
 * that host does not answer, or refuses the user. */
static bool lag_of_shard(sl_connection *connection, const char *hosts, const bson_t *command,
                         double *lag) {
    char name[SL_MEMBER_NAME_ROOM];
    const char *slash = strchr(hosts, '/');
    const char *first = slash ? slash + 1 : hosts;
    bool answered = false;
    int32_t code;
    bson_t reply;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(first, ","), first);
    sl_member *member = sl_member_open(connection, name, LAG_LIMIT_MS, NULL);
    if (member) {
        answered = sl_member_command(member, "admin", command, &reply, &code, NULL);
        if (answered)
            *lag = fmax(*lag, sl_replication_lag(&reply, NULL, NULL));
        bson_destroy(&reply);
    }
    sl_member_close(member);
    return answered;
}

double sl_replication_lag_now(sl_connection *connection) {
    bson_t reply = BSON_INITIALIZER, *command = BCON_NEW("replSetGetStatus", BCON_INT32(1));
    sl_deployment deployment = sl_connection_server(connection)->deployment;
    sl_topology *topology = NULL;
    double lag = NAN;
    if (deployment == SL_REPLICA_SET &&
        sl_connection_command(connection, "admin", command, &reply, NULL, NULL))
        lag = sl_replication_lag(&reply, NULL, NULL);
    else if (deployment == SL_SHARDED && sl_topology_read(connection, &topology, NULL)) {
        for (size_t i = 0; i < topology->count; i++) {
            if (!lag_of_shard(connection, topology->shards[i].host, command, &lag)) {
                lag = NAN; /* that of the others would not be the largest */
                break;
            }
        }
    }
    sl_topology_destroy(topology);
    bson_destroy(&reply);
    bson_destroy(command);
    return lag;
}
