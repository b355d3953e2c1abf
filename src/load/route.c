/* SPDX-License-Identifier: Apache-2.0 */
/* The route of batches: through the routers, or directly to the shards (--route direct).
 *
 * On the direct route only the loader checks the owner of a document. So this route requires a
 * shard key that the loader can evaluate; documents whose owner it cannot determine go through the
 * router; and no block is added to the journal before the cluster has confirmed that no chunk moved
 * (sl_direct_check; resume.c). */
#include "engine.h"

#include "util/log.h"

bool sl_route_open(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    if (!config->direct)
        return true;
    return sl_direct_open(load->connection, load->topology, &load->target, load->threads,
                          config->timeout_seconds, &load->direct, error);
}

bool sl_route_read_map(sl_load *load, sl_error *error) {
    sl_shard_map_destroy(load->map);
    load->map = NULL;
    if (!load->direct)
        return sl_shard_map_read(load->connection, &load->target, load->topology, &load->map,
                                 error);
    if (!sl_direct_read_map(load->direct, &load->target, &load->map, error))
        return false;
    if (sl_shard_map_route(load->map) == SL_ROUTE_NONE)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--route direct: only the router can find the shards of documents of "
                            "%s.%s by its shard key; leave the option out",
                            load->target.database, load->target.collection);
    sl_log_info("batches go directly to the primaries of the shards");
    return true;
}

uint32_t sl_route_of_block(const sl_load *load, int64_t first_id) {
    uint32_t shard = sl_shard_map_owner(load->map, first_id);
    int64_t begin = first_id & ~(int64_t)(SL_BLOCK_BYTES - 1);
    sl_range block = {.minimum = begin, .maximum = begin + (int64_t)SL_BLOCK_BYTES, .shard = shard};
    return sl_range_is_placed(load->map, &block) ? shard : load->shards;
}

bool sl_route_confirm(sl_load *load, bool *confirmed, sl_error *error) {
    *confirmed = true;
    if (!load->direct)
        return true;
    sl_error why = {0};
    switch (sl_direct_check(load->direct, &load->target, &why)) {
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
    if (!load->doubt_logged)
        sl_log_warning(SL_LINES "; batches sent meanwhile count once their owners are confirmed",
                       why.message);
    load->doubt_logged = true;
    return true;
}
