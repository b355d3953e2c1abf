/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a job's sources. Main thread. */
#ifndef SHARDLOAD_NUMBERS_H
#define SHARDLOAD_NUMBERS_H

#include "destination.h"
#include "job.h"

/* Registry entries for the sources that are not skipped, in order, without numbers. The caller
 * frees them. NULL without memory. */
sl_registry_entry *sl_sources_entries(const sl_job *job, size_t *count, sl_error *error);

/* Numbers the sources in their order, for a load without a cluster. */
bool sl_sources_number_offline(sl_job *job, sl_error *error);
/* Registers the sources. One that has been loaded before is an error (unless --again), reported
 * before anything is changed. For a pipe, the registry stores the work directory in which its load
 * can be resumed. */
bool sl_sources_number_by_registry(sl_job *job, sl_destination *destination,
                                   const char *work_directory, sl_error *error);
/* A source that is not loaded yet, and whose content is registered under another name, is an error
 * (with --again, a warning): its documents may be stored already. Called before anything is
 * created; sl_sources_number_by_registry looks again, for loaders that started at the same time. */
bool sl_sources_refuse_copies(sl_job *job, const sl_destination *destination, sl_error *error);
/* For a collection that does not exist although its registry does: a source that is registered as
 * loaded is an error (unless --again); other registered sources cause a warning. Called before
 * anything is created. */
bool sl_sources_look_for_target(sl_job *job, sl_destination *destination, sl_error *error);
/* Gives the sources the numbers that a load would give them, without changing the registry.
 * `refusal` receives the error with which a load would end. */
bool sl_sources_number_as_next(sl_job *job, const sl_destination *destination, sl_error *refusal,
                               sl_error *error);
/* With --only-shards: takes each source's layout from the registry, or registers this loader's. */
bool sl_sources_agree_on_layout(sl_job *job, const sl_destination *destination, sl_error *error);
/* Reads the numbers of the sources, changing nothing. A source that was never loaded is an
 * error. */
bool sl_sources_number_as_loaded(sl_job *job, const sl_destination *destination, sl_error *error);

#endif
