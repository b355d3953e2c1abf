/* SPDX-License-Identifier: Apache-2.0 */
/* A destination, and the identity of its collection: read before the first document is sent, and
 * checked after the last. cluster/identity.c explains why. */
#include "destination.h"

#include <stdatomic.h>

#include "util/log.h"

void sl_target_configure(sl_destination *destination, const sl_job *job, bool resumed) {
    const sl_load_config *config = job->config;
    bool sharded = sl_connection_server(destination->connection)->deployment == SL_SHARDED;
    destination->target =
        (sl_target){.database = config->database,
                    .collection = config->collection,
                    .registry = config->registry,
                    .drop = config->drop && !resumed,
                    .compressor = config->compressor,
                    .clustered = config->clustered,
                    .shard_key = sharded ? sl_job_shard_key(job) : NULL,
                    .shard_key_given = config->shard_key_given,
                    .own_ids = job->own_ids,
                    /* Other modes accept the shard key of the collection. */
                    .any_key = sl_load_mode(config)->matches && !config->shard_key_given,
                    .shard_existing = config->shard_existing};
}

/* The writes of a killed loader that must have ended before this load begins to write. */
typedef enum late_writes {
    NONE,
    CHANGES, /* updates, deletes and findAndModify */
    ALL
} late_writes;

/* Commands with the UUID of another collection are refused. So late writes matter if the server
 * does not accept the UUID, or if the load continues in the same collection:
 *
 * - In a mode other than insert, a late update or delete would overwrite or remove a document of
 *   this load, and a late insert would store a document that this load deletes.
 * - An insert into the same collection is not affected by a late insert: one of both is refused,
 *   and this load sees which. But a late upsert or delete may match a document that was just
 *   inserted, if its _id comes from the data. A restore inserts what it dumped, usually into a
 *   collection that it has created, so it does not wait a quarter of a second for each collection.
 * - The same is true for --resume. The late writes of the load's own earlier process are harmless,
 *   because a statement's result depends only on its record, and each is sent again in the same
 *   mode. But another load may have been killed in between.
 *
 * Shared loads, and loads with --allow-other-writers, run beside other writers and do not wait. */
static late_writes dangerous_writes(const sl_job *job, const sl_target *target) {
    const sl_load_config *config = job->config;
    if (sl_load_is_shared(config) || (config->allow_other_writers && !target->drop) ||
        (target->by_uuid && target->drop))
        return NONE;
    if (sl_load_mode(config)->matches || (!target->by_uuid && !job->resumed))
        return ALL;
    return job->own_ids && !config->connection ? CHANGES : NONE;
}

/* Waits until no dangerous write is running. If the collection is not dropped, the writes may come
 * from another running program: then the load continues. */
static bool wait_for_writes(const sl_job *job, const sl_destination *destination, sl_error *error) {
    const sl_target *target = &destination->target;
    const late_writes late = dangerous_writes(job, target);
    bool exists = true;
    if (late == NONE)
        return true;
    if (target->by_uuid && !sl_target_exists(destination->connection, target, &exists, error))
        return false;
    if (!exists || sl_wait_for_writes(destination->connection, target, late == CHANGES, error))
        return true;
    if (target->drop || error->code == SL_EXIT_INTERRUPTED)
        return false;
    error->code = SL_EXIT_OK; /* not a failure */
    sl_log_warning("%s.%s: another program is writing documents while this load runs",
                   target->database, target->collection);
    return true;
}

bool sl_target_begin(sl_job *job, sl_destination *destination, sl_error *error) {
    return sl_target_find_support(destination->connection, &destination->target, error) &&
           wait_for_writes(job, destination, error);
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
