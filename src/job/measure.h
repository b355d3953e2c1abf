/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates of the records, documents and bytes of sources, from a sample of their blocks. */
#ifndef SHARDLOAD_LOAD_MEASURE_H
#define SHARDLOAD_LOAD_MEASURE_H

#include "job.h"
#include "preview.h"

/* Sets the measures of `sources` (the load's sources that are not skipped) and their sum `all`,
 * from about `blocks` blocks. If the collection is sharded by a key other than _id, counts the
 * documents read into `owners`, one per shard. */
bool sl_measure_sources(sl_job *job, const sl_shard_map *map, uint64_t blocks,
                        sl_preview_source *sources, size_t count, sl_measure *all, double *owners,
                        sl_error *error);

#endif
