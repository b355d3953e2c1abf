/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of the load's collection: read before the first document is sent, and checked after
 * the last. cluster/identity.c explains why. */
#include "target.h"

#include <stdatomic.h>

#include "util/log.h"

void sl_target_configure(sl_destination *destination, const sl_job *job, bool resumed) {
    const sl_load_config *config = job->config;
    bool sharded = sl_connection_server(destination->connection)->deployment == SL_SHARDED;
    destination->target = (sl_target){.database = config->database,
                                      .collection = config->collection,
                                      .registry = config->registry,
                                      .drop = config->drop && !resumed,
                                      .compressor = config->compressor,
                                      .clustered = config->clustered,
                                      .shard_key = sharded ? sl_job_shard_key(job) : NULL,
                                      .shard_key_given = config->shard_key_given,
                                      .own_ids = job->own_ids,
                                      /* The stored documents determine the key. */
                                      .any_key = config->format_options.mode != SL_MODE_INSERT &&
                                                 !config->shard_key_given,
                                      .shard_existing = config->shard_existing};
}

/* Waits until no insert is running, if a running insert could be that of a killed loader. If the
 * collection is not dropped, the inserts may come from another running program: then the load
 * continues. */
static bool wait_for_inserts(const sl_job *job, const sl_destination *destination,
                             sl_error *error) {
    const sl_load_config *config = job->config;
    if (job->resumed || sl_load_is_shared(job->config) ||
        (config->allow_other_writers && !destination->target.drop))
        return true;
    if (sl_wait_for_inserts(destination->connection, &destination->target, error))
        return true;
    if (destination->target.drop || error->code == SL_EXIT_INTERRUPTED)
        return false;
    sl_log_warning("%s.%s: another program is inserting documents while this load runs",
                   destination->target.database, destination->target.collection);
    return true;
}

bool sl_target_begin(sl_job *job, sl_destination *destination, sl_error *error) {
    return sl_target_find_support(destination->connection, &destination->target, error) &&
           (destination->target.by_uuid || wait_for_inserts(job, destination, error));
}

bool sl_target_check_shards(const sl_destination *destination, const _Atomic uint64_t *sent,
                            sl_error *error) {
    for (uint32_t i = 0; destination->direct && i < destination->topology->count; i++) {
        bool required = sent && atomic_load(&sent[i]) > 0;
        if (!sl_target_check_shard(destination->direct, i, destination->topology->shards[i].name,
                                   &destination->target, required, error))
            return false;
    }
    return true;
}

bool sl_target_is_ours(const sl_destination *destination, const _Atomic uint64_t *sent,
                       sl_error *error) {
    return sl_target_check(destination->connection, &destination->target, error) &&
           sl_target_check_shards(destination, sent, error);
}

bool sl_target_decide_sharding(const sl_job *job, sl_destination *destination, sl_error *error) {
    const sl_target *target = &destination->target;
    sl_sharding_change change;
    if (!sl_decide_sharding(destination->connection, target, &change, error))
        return false;
    if ((change == SL_SHARDING_NEW || change == SL_SHARDING_EXISTING) && job->key_problem.code) {
        *error = job->key_problem;
        return false;
    }
    if (change == SL_SHARDING_EXISTING)
        sl_log_warning("%s.%s exists and is not sharded: --shard-existing shards it now",
                       target->database, target->collection);
    if (change != SL_SHARDING_LEFT)
        return true;
    if (job->config->only_shards)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--only-shards: %s.%s exists and is not sharded; --shard-existing "
                            "shards it, or share the load with --part",
                            target->database, target->collection);
    sl_log_info("%s.%s exists and is not sharded: it stays unsharded; --shard-existing would shard "
                "it",
                target->database, target->collection);
    destination->target.shard_key = NULL;
    return true;
}
