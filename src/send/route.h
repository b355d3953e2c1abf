/* SPDX-License-Identifier: Apache-2.0 */
/* The route of batches: through the routers, or directly to the shards. */
#ifndef SHARDLOAD_ROUTE_H
#define SHARDLOAD_ROUTE_H

#include "job/job.h"

/* With --route direct: connects to the shards, before anything is created or changed. */
bool sl_route_open(const sl_job *job, sl_destination *destination, unsigned threads,
                   sl_error *error);
/* Reads the chunk map, again if it has been read before. */
bool sl_route_read_map(sl_destination *destination, sl_error *error);
/* The shard that owns all ids of the block with `first_id`; job->shards if several shards own
 * them. Only for a collection sharded by _id. Any thread. */
uint32_t sl_route_of_block(const sl_job *job, const sl_destination *destination, int64_t first_id);
/* On the direct route: are all documents acknowledged before this call on the shards that own them?
 * `*confirmed` false: this cannot be checked now; `error` has the reason. Returns false if a
 * document is on another shard. */
bool sl_route_confirm(sl_destination *destination, bool *confirmed, sl_error *error);

#endif
