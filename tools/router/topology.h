/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cluster behind the router: the config servers, the shards, and the limits that they report.
 * It is read once, when the router starts, and does not change afterwards.
 */

#ifndef ROUTER_TOPOLOGY_H
#define ROUTER_TOPOLOGY_H

#include <bson/bson.h>
#include <stdbool.h>
#include <stddef.h>

#include "backend.h"

/* Index of the config servers in `sets`; the shards follow. */
enum { CONFIG_SET = 0 };

struct topology {
    struct node_set *sets;
    size_t count; /* of sets: the shards and the config servers */
    int32_t max_bson_size;
    int32_t max_message_size;
    int32_t max_write_batch;
    int32_t min_wire_version;
    int32_t max_wire_version;
};

/*
 * Reads the topology from the config servers at `config` ("HOST:PORT,...", optionally after a
 * replica set's name). NULL with the reason in `why` (MAX_REASON bytes) if they cannot be reached,
 * or if there is no shard.
 */
struct topology *topology_create(const char *config, char *why);
void topology_destroy(struct topology *topology);

/* The set that is the shard `name`, or 0 when there is none. */
size_t topology_find_shard(const struct topology *topology, const char *name);

#endif
