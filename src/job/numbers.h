/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a job's sources. Main thread. */
#ifndef SHARDLOAD_NUMBERS_H
#define SHARDLOAD_NUMBERS_H

#include "job.h"

/* Registry entries for the sources that are not skipped, in order, without numbers. The caller
 * frees them. NULL without memory. */
sl_registry_entry *sl_sources_entries(const sl_job *job, size_t *count, sl_error *error);

/* Each --include of an archive or dump is a source of its own in the registry, with its own number,
 * unless it is proven to select what another one has selected. Called before the sources are
 * looked for. */
bool sl_sources_find_selections(sl_job *job, const sl_destination *destination, sl_error *error);

/* Numbers the sources in their order, for a load without a cluster. */
bool sl_sources_number_offline(sl_job *job, sl_error *error);
/* Registers the sources. One that has been loaded before is an error (unless --again), reported
 * before anything is changed. For a pipe, the registry stores the work directory in which its load
 * can be resumed. */
bool sl_sources_number_by_registry(sl_job *job, sl_destination *destination,
                                   const char *work_directory, sl_error *error);
/* Two sources of one load with the same text under different names, such as a.csv and a.csv.gz, are
 * an error (unless --again): compares files that begin alike, before anything is created. */
bool sl_sources_refuse_same_text(sl_job *job, sl_error *error);
/* A source that is not loaded yet, and whose content is registered under another name, is an error
 * (with --again, a warning): its documents may be stored already. Called before anything is
 * created; sl_sources_number_by_registry looks again, for loaders that started at the same time. */
bool sl_sources_refuse_copies(sl_job *job, const sl_destination *destination, sl_error *error);
/* A source that is registered as loaded is an error (unless --again). Called before anything is
 * created. */
bool sl_sources_refuse_loaded(sl_job *job, sl_destination *destination, sl_error *error);
/* Of a load that has stored nothing: registers its pipes as loaded, so that another one may be. */
void sl_sources_end_pipes(const sl_job *job, const sl_destination *destination);
/* Gives the sources the numbers that a load would give them, without changing the registry.
 * `refusal` receives the error with which a load would end. */
bool sl_sources_number_as_next(sl_job *job, const sl_destination *destination, sl_error *refusal,
                               sl_error *error);
/* Reads the numbers of the sources, changing nothing. A source that was never loaded is an
 * error. */
bool sl_sources_number_as_loaded(sl_job *job, const sl_destination *destination, sl_error *error);
/* sl_registry_total of the registered sources that the job does not have. */
bool sl_sources_others(const sl_job *job, const sl_destination *destination, bool own_ids,
                       uint64_t *documents, bool *complete, sl_error *error);

/* A load that is shared by several loaders (--part K/N, --only-shards). In any other load these
 * functions do nothing, unless noted. Main thread. */

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
/* With --only-shards: selects the blocks that are laid out for these shards. */
void sl_parts_choose_blocks(sl_job *job, const sl_destination *destination);
/* Does this loader fill the range? Always true without --only-shards. */
bool sl_parts_has_range(const sl_job *job, const sl_range *range);

/* The layout of ids over shards. Main thread. */

/* Divides the ids of the sources into pieces, and computes the job's ranges. */
bool sl_ranges_lay_out(sl_job *job, const sl_destination *destination, sl_error *error);

#endif
