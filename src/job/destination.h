/* SPDX-License-Identifier: Apache-2.0 */
/* A destination: the collection that a job is loaded into, or compared with, and its cluster. All
 * zero when there is no cluster.
 *
 * Only the main thread calls these functions and sends commands through it. Workers read the chunk
 * map, and borrow clients from the connection pools, which have their own locks. */
#ifndef SHARDLOAD_DESTINATION_H
#define SHARDLOAD_DESTINATION_H

#include <stdbool.h>

#include "cluster/cluster.h"

#include "job.h"

typedef struct sl_destination {
    sl_connection *connection;
    bool borrowed; /* the connection belongs to another object, and stays open */
    sl_target target;
    sl_topology *topology;
    sl_registry *registry;
    sl_shard_map *map;
    sl_direct *direct; /* NULL: through the routers */
    bool target_gone;  /* the collection did not exist, although its registry did */
    bool created;      /* this load has created the collection */
    bool numbered;     /* the registry may list the sources as started by this load */
    bool doubt_logged; /* the warning was logged that the owners could not be confirmed */
} sl_destination;

/* Sets the destination's target from the config, once connected. */
void sl_target_configure(sl_destination *destination, const sl_job *job, bool resumed);
/* An existing unsharded collection is sharded only if the user asked for it; otherwise the target's
 * shard_key becomes NULL. Changes nothing on the cluster. */
bool sl_target_decide_sharding(const sl_job *job, sl_destination *destination, sl_error *error);
/* Before the target is prepared: finds out whether commands can name the collection's UUID. Waits
 * until no write of a killed loader is running that could change the result of this load. */
bool sl_target_begin(sl_job *job, sl_destination *destination, sl_error *error);
/* On the direct route: checks that each shard has the collection with the target's UUID, or has no
 * collection of that name. `sent`: documents sent to each shard, which must then have it; NULL
 * before the load. */
bool sl_target_check_shards(const sl_destination *destination, const _Atomic uint64_t *sent,
                            sl_error *error);
/* Checks that the collection is still the one that was prepared, on the shards too. */
bool sl_target_is_ours(const sl_destination *destination, const _Atomic uint64_t *sent,
                       sl_error *error);

/* Closes all connections that are not borrowed. */
void sl_destination_close(sl_destination *destination);

#endif
