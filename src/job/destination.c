/* SPDX-License-Identifier: Apache-2.0 */
/* Closes a destination. */
#include "destination.h"

void sl_destination_close(sl_destination *destination) {
    sl_shard_map_destroy(destination->map);
    sl_registry_close(destination->registry);
    sl_direct_close(destination->direct);
    sl_topology_destroy(destination->topology);
    if (destination->borrowed)
        sl_connection_set_retry_check(destination->connection, NULL, NULL);
    else
        sl_connection_close(destination->connection);
}
