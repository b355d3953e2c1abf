/* SPDX-License-Identifier: Apache-2.0 */
/* What a load will do with its target, decided by reads alone, before anything is changed. A load
 * executes this decision; `plan` prints it; `tune` and `reload` refuse what it refuses. */
#ifndef SHARDLOAD_DECISION_H
#define SHARDLOAD_DECISION_H

#include <stdbool.h>

#include "job.h"

/* Decides, for a configured target. Opens the registry and reads the topology, unless they are
 * already there. Fails for every reason by which a load would refuse to start that can be found by
 * reads. The target's shard_key becomes NULL if the collection stays unsharded. `*view` is always
 * set. */
bool sl_decide(sl_job *job, sl_destination *destination, sl_target_view *view, sl_error *error);

/* Logs what the user should know before the load begins: that an existing collection is sharded
 * now, or stays unsharded, or is capped, or has or gets a TTL index. */
void sl_decision_log(sl_job *job, const sl_destination *destination, const sl_target_view *view);

/* Checks at the end of a load in another mode than insert that the match fields still identify one
 * document. Fails with SL_EXIT_VERIFICATION if the fields no longer have a unique index. */
bool sl_match_again(sl_job *job, const sl_destination *destination, sl_error *error);

/* Warns that --id-field can store an _id on several shards of a collection with this shard key. */
void sl_ids_warn(const sl_job *job, const sl_target *target, const bson_t *shard_key);

/* Fails if all documents of earlier loads got their _id from --id-field, and this verification has
 * no such option: their records would be missing. */
bool sl_ids_allow_verify(const sl_job *job, const sl_destination *destination, sl_error *error);

/* Records in the registry where the _ids of this load come from, before the first document. False
 * with error (SL_EXIT_SOURCE) if a load that began at the same time takes them from elsewhere. */
bool sl_ids_record(const sl_job *job, const sl_destination *destination, sl_error *error);

#endif
