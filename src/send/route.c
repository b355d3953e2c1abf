/* SPDX-License-Identifier: Apache-2.0 */
/* The route of batches: through the routers, or directly to the shards (--route direct).
 *
 * On the direct route only the loader checks the owner of a document. So this route requires a
 * shard key that the loader can evaluate; documents whose owner it cannot determine go through the
 * router; and no block is added to the journal before the cluster has confirmed that no chunk moved
 * (sl_direct_check; resume.c). */
#include "route.h"

#include "util/log.h"

bool sl_route_open(const sl_job *job, sl_destination *destination, unsigned threads,
                   sl_error *error) {
    const sl_load_config *config = job->config;
    if (!config->direct)
        return true;
    return sl_direct_open(destination->connection, destination->topology, &destination->target,
                          threads, config->timeout_seconds, &destination->direct, error);
}

bool sl_route_read_map(sl_destination *destination, sl_error *error) {
    sl_shard_map_destroy(destination->map);
    destination->map = NULL;
    if (!destination->direct)
        return sl_shard_map_read(destination->connection, &destination->target,
                                 destination->topology, &destination->map, error);
    if (!sl_direct_read_map(destination->direct, &destination->target, &destination->map, error))
        return false;
    if (sl_shard_map_route(destination->map) == SL_ROUTE_NONE)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--route direct: only the router can find the shards of documents of "
                            "%s.%s by its shard key; leave the option out",
                            destination->target.database, destination->target.collection);
    sl_log_info("batches go directly to the primaries of the shards");
    return true;
}

uint32_t sl_route_of_block(const sl_job *job, const sl_destination *destination, int64_t first_id) {
    uint32_t shard = sl_shard_map_owner(destination->map, first_id);
    int64_t begin = first_id & ~(int64_t)(SL_BLOCK_BYTES - 1);
    sl_range block = {.minimum = begin, .maximum = begin + (int64_t)SL_BLOCK_BYTES, .shard = shard};
    return sl_range_is_placed(destination->map, &block) ? shard : job->shards;
}

bool sl_route_confirm(sl_destination *destination, bool *confirmed, sl_error *error) {
    *confirmed = true;
    if (!destination->direct)
        return true;
    sl_error why = {0};
    switch (sl_direct_check(destination->direct, &destination->target, &why)) {
    case SL_OWNERS_SAME:
        return true;
    case SL_OWNERS_CHANGED:
        *error = why;
        return false;
    case SL_OWNERS_UNKNOWN:
        break;
    }
    *confirmed = false;
    *error = why;
    if (!destination->doubt_logged)
        sl_log_warning(SL_LINES "; batches sent meanwhile are counted when their owners are "
                                "confirmed",
                       why.message);
    destination->doubt_logged = true;
    return true;
}
