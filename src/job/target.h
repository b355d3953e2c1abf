/* SPDX-License-Identifier: Apache-2.0 */
/* The collection of a load, and its identity. Main thread. */
#ifndef SHARDLOAD_TARGET_H
#define SHARDLOAD_TARGET_H

#include "destination.h"
#include "job.h"

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

#endif
