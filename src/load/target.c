/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of the load's collection: found before the first document is sent, and checked after
 * the last. cluster/identity.c has the reasons. */
#include "engine.h"

#include "util/log.h"

void sl_target_configure(sl_load *load) {
    const sl_load_config *config = load->config;
    bool sharded = sl_connection_server(load->connection)->deployment == SL_SHARDED;
    load->target = (sl_target){.database = config->database,
                               .collection = config->collection,
                               .drop = config->drop && !load->resumed,
                               .compressor = config->compressor,
                               .clustered = config->clustered,
                               .shard_key = sharded ? config->shard_key : NULL,
                               .shard_key_given = config->shard_key_given,
                               .shard_existing = config->shard_existing};
}

/* Waits until no insert is running, if one could be that of a killed loader. If the collection is
 * not dropped, the inserts may be those of another running program: then the load goes on. */
static bool wait_for_inserts(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    if (load->resumed || sl_load_is_shared(load) ||
        (config->allow_other_writers && !load->target.drop))
        return true;
    if (sl_wait_for_inserts(load->connection, &load->target, error))
        return true;
    if (load->target.drop || error->code == SL_EXIT_INTERRUPTED)
        return false;
    sl_log_warning("%s.%s: another program is inserting documents while this load runs",
                   load->target.database, load->target.collection);
    return true;
}

bool sl_target_begin(sl_load *load, sl_error *error) {
    return sl_target_find_support(load->connection, &load->target, error) &&
           (load->target.by_uuid || wait_for_inserts(load, error));
}

bool sl_target_check_shards(sl_load *load, sl_error *error) {
    for (uint32_t i = 0; load->direct && i < load->topology->count; i++) {
        bool required = load->shard_documents && atomic_load(&load->shard_documents[i]) > 0;
        if (!sl_target_check_shard(load->direct, i, load->topology->shards[i].name, &load->target,
                                   required, error))
            return false;
    }
    return true;
}

bool sl_target_is_ours(sl_load *load, sl_error *error) {
    return sl_target_check(load->connection, &load->target, error) &&
           sl_target_check_shards(load, error);
}
