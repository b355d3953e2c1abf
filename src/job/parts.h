/* SPDX-License-Identifier: Apache-2.0 */
/* A load that is shared by several loaders (--part K/N, --only-shards). In any other load these
 * functions do nothing, unless noted. Main thread. */
#ifndef SHARDLOAD_PARTS_H
#define SHARDLOAD_PARTS_H

#include "destination.h"
#include "job.h"

#define SL_SHARD_NAMES_ROOM 300

/* Writes the names of all shards, or of those marked in `which`, into `names`. Returns names. */
const char *sl_shard_names(const sl_topology *topology, const bool *which,
                           char names[SL_SHARD_NAMES_ROOM]);

/* With --part: selects the blocks of this loader's part. */
bool sl_parts_begin(sl_job *job, sl_error *error);
/* With --only-shards: finds these shards. */
bool sl_parts_find_shards(sl_job *job, sl_destination *destination, sl_error *error);
/* Calls the function for each of this loader's parts (numbered from 1), after selecting the part in
 * the registry; a load that is not shared calls it once, with part 0. */
typedef bool sl_parts_function(const sl_job *job, const sl_destination *destination,
                               const void *context, uint32_t part, sl_registry_entry *entries,
                               size_t count, sl_error *error);
bool sl_parts_each(const sl_job *job, sl_destination *destination, sl_parts_function *function,
                   const void *context, sl_registry_entry *entries, size_t count, sl_error *error);
/* Was the registered layout of a source, if any, made for the shards that the cluster has now? */
bool sl_parts_layout_holds(const sl_job *job, const sl_destination *destination,
                           const sl_registry_entry *entry, sl_error *error);
/* Sets the entry's layout to the one that this load has computed for a source. */
void sl_parts_propose(const sl_job *job, const sl_destination *destination, size_t index,
                      sl_registry_entry *entry);
/* With --only-shards: selects the blocks that are laid out for these shards. */
void sl_parts_choose_blocks(sl_job *job, const sl_destination *destination);
/* Does this loader fill the range? Always true without --only-shards. */
bool sl_parts_has_range(const sl_job *job, const sl_range *range);

#endif
