/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares --embed: reads the source of the records to embed with a separate load, and stores them
 * by their join key in the folder "embed" of the work directory:
 *
 *   load/      the work directory of that load: its run.json, its rejects
 *   records/   the records, divided by the hash of their key (embed_store.h)
 *   groups, index, used, complete    the store (embed_store.h)
 *   sources    the identity of each source, and a hash of their text
 *   unmatched.json    at the end: the records that are in no document */
#ifndef SHARDLOAD_EMBEDDING_H
#define SHARDLOAD_EMBEDDING_H

#include "job/embed.h"
#include "ledger/ledger.h"
#include "report/run_record.h"
#include "send/sink.h"

/* Opens the store for the job, into job->embed, with the configuration's --embed. Creates it if the
 * work directory has no store of these sources and options, and of the types that the columns have
 * in the destination's collection, if it is connected; with --resume, and for a verification,
 * another store is an error. The sources of the job are open. `keys`: SL_STORE_UNUSED if no block
 * has been completed; SL_STORE_CONTINUED if an earlier run has completed blocks: then any other
 * store is an error, because only the earlier run's store shows which records are in documents;
 * SL_STORE_READ_ONLY for a verification, which must not replace the store of a load. */
bool sl_embedding_open(sl_job *job, sl_destination *destination, const char *work_directory,
                       sl_store_keys keys, sl_error *error);

/* When a completed load is resumed, nothing is embedded: checks only that the sources are still
 * those of the store, if the work directory has one. */
bool sl_embedding_check(sl_job *job, const char *work_directory, sl_error *error);

/* After the load: writes and logs the records that are in no document. Warns if their source has
 * changed meanwhile. */
bool sl_embedding_finish(sl_job *job, const char *work_directory, sl_error *error);

/* Logs the rejects of the records to embed by reason. Without --embed, or without rejects, does
 * nothing. */
void sl_embedding_log_rejects(const sl_job *job, const char *work_directory);

/* Appends the figures to the run record. Without --embed does nothing. */
void sl_embedding_record(const sl_job *job, bson_t *record);

/* ---- the sink of the records ---- */

/* A hash of a block's text and position. The sum for all blocks identifies the text of the
 * sources. */
uint64_t sl_divided_text(const sl_source_block *block);

extern const sl_sink_type sl_sink_divided;

#endif
