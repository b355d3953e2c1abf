/* SPDX-License-Identifier: Apache-2.0 */
/* The shards of a cluster, from config.shards. A deployment without sharding counts as one shard,
 * so that callers need no special case. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static bool add_shard(sl_topology *topology, const char *name, const char *host, sl_error *error) {
    sl_shard *grown = realloc(topology->shards, (topology->count + 1) * sizeof *grown);
    if (!grown)
        return sl_error_memory(error, "reading the shards");
    topology->shards = grown;
    sl_shard *shard = &grown[topology->count];
    shard->name = strdup(name);
    shard->host = strdup(host);
    topology->count++;
    if (!shard->name || !shard->host)
        return sl_error_memory(error, "reading the shards");
    return true;
}

bool sl_topology_add_shards(sl_topology *topology, const bson_t *documents, sl_error *error) {
    bool ok = true;
    for (sl_walk walk = sl_walk_of(documents); ok && sl_walk_next(&walk);)
        ok = add_shard(topology, sl_look_string(&walk.item, "_id"),
                       sl_look_string(&walk.item, "host"), error);
    return ok;
}

bool sl_topology_find(const sl_topology *topology, const char *name, uint32_t *shard) {
    for (size_t i = 0; i < topology->count; i++) {
        if (strcmp(topology->shards[i].name, name) == 0) {
            *shard = (uint32_t)i;
            return true;
        }
    }
    return false;
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
                              sl_connection_display_uri(connection), error);
    if (!ok) {
        sl_topology_destroy(made);
        return false;
    }
    *topology = made;
    return true;
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
