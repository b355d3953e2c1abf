/* SPDX-License-Identifier: Apache-2.0 */
/* The load's hold on its collection: which one it is, before the first document is sent, and that
 * it is still the same one when all are. cluster/identity.c has the reasons. */
#include "engine.h"

#include <shardload/log.h>

/* Inserts into a collection that stays may be those of a loader that works on it, too. */
static bool wait_for_inserts(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    if (load->resumed || sl_load_is_shared(load) ||
        (config->allow_other_writers && !load->target.drop))
        return true;
    if (sl_wait_for_inserts(load->connection, &load->target, error))
        return true;
    if (load->target.drop || error->code == SL_EXIT_INTERRUPTED)
        return false;
    sl_log_warning("%s.%s: inserts of another program are running, and go on beside this load",
                   load->target.database, load->target.collection);
    return true;
}

bool sl_target_begin(sl_load *load, sl_error *error) {
    return sl_target_find_support(load->connection, &load->target, error) &&
           (load->target.by_uuid || wait_for_inserts(load, error));
}

bool sl_target_check_shards(sl_load *load, sl_error *error) {
    for (uint32_t i = 0; load->direct && i < load->topology->count; i++) {
        bool wanted = load->shard_documents && atomic_load(&load->shard_documents[i]) > 0;
        if (!sl_target_check_shard(load->direct, i, load->topology->shards[i].name, &load->target,
                                   wanted, error))
            return false;
    }
    return true;
}

bool sl_target_is_ours(sl_load *load, sl_error *error) {
    return sl_target_check(load->connection, &load->target, error) &&
           sl_target_check_shards(load, error);
}
