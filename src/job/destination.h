/* SPDX-License-Identifier: Apache-2.0 */
/* A destination: the collection that a job is loaded into, or compared with, and its cluster. All
 * zero when there is no cluster.
 *
 * Only the main thread prepares it and sends commands through it. Workers read the chunk map, and
 * borrow clients from the connection pools, which have their own locks. */
#ifndef SHARDLOAD_DESTINATION_H
#define SHARDLOAD_DESTINATION_H

#include <stdbool.h>

#include "cluster/cluster.h"

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

/* Closes all connections that are not borrowed. */
void sl_destination_close(sl_destination *destination);

#endif
