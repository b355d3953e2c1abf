/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the journal of a load; with --resume, reads it. The functions are called in this order.
 * Without a journal they do nothing. Main thread, unless noted. */
#ifndef SHARDLOAD_RESUME_H
#define SHARDLOAD_RESUME_H

#include "job/job.h"
#include "ledger.h"

/* Opens the journal; with --resume, checks that it belongs to this load. `*finished`: that load has
 * been completed. */
bool sl_resume_open(sl_job *job, sl_ledger *ledger, bool *finished, sl_error *error);

/* The exit code of the completed load: SL_EXIT_OK or SL_EXIT_REJECTS. */
sl_exit sl_resume_completed_code(const sl_ledger *ledger);

/* Begins the journal, if sl_resume_open has not done so because the journal belongs to a completed
 * load. Called before anything is changed. */
bool sl_resume_begin(const sl_job *job, sl_ledger *ledger, sl_error *error);

/* Has an earlier run completed a block? */
bool sl_resume_has_blocks(const sl_ledger *ledger);
/* Does the collection of the journal still exist? Called before anything is created or changed. */
bool sl_resume_find_target(const sl_job *job, const sl_destination *destination,
                           const sl_ledger *ledger, sl_error *error);
/* With --resume and --drop: clears `drop` of the target if an earlier run has dropped the
 * collection, and another one has its name now. Called before anything is created or changed. */
bool sl_resume_decide_drop(const sl_job *job, sl_destination *destination, const sl_ledger *ledger,
                           sl_error *error);
/* If the target is dropped: writes to the journal which collection that is. Called before the
 * drop. */
bool sl_resume_record_drop(const sl_destination *destination, const sl_ledger *ledger,
                           sl_error *error);
/* Checks that the prepared collection and the numbers of the sources are those of the journal; a
 * new load writes them to the journal. */
bool sl_resume_target(sl_job *job, sl_destination *destination, sl_ledger *ledger, sl_error *error);
/* Recovers the completed blocks and the totals of earlier runs, before the first block is read. */
bool sl_resume_recover(sl_job *job, sl_ledger *ledger, sl_error *error);
/* Writes the options that differ between two lists (sl_load_config.document_options) as words.
 * False: none. */
bool sl_resume_options_differ(const bson_t *was, const bson_t *now, char *how, size_t room);
/* The identity of a file as the field `identity` of a document. Fields that it lacks are 0. */
void sl_resume_append_identity(bson_t *source, const sl_source_identity *identity);
sl_source_identity sl_resume_identity_in(const bson_t *source);
/* A hash of a block's text for the journal; 0 for generated records. Any thread. */
uint64_t sl_resume_check(const sl_source_block *block);
/* Is a block consistent with the journal? A completed block must have the same text, and the source
 * must not end before the last completed block. False sets the error. Any thread. */
bool sl_resume_block_fits(const sl_job *job, const sl_ledger *ledger, const sl_source_block *block,
                          sl_error *error);
/* Called when documents of a block were refused because other documents have their _ids. False,
 * with the error, if that means that the source's text has changed since the earlier run. Any
 * thread. */
bool sl_resume_taken_fits(const sl_job *job, const sl_source_block *block, sl_error *error);
/* Writes all completed blocks to the journal and syncs it to disk. On the direct route a later call
 * does this if the cluster cannot confirm the owners of the documents now. Called by one thread. */
bool sl_resume_commit(sl_destination *destination, sl_ledger *ledger, sl_error *error);
/* The last commit: waits until the owners are confirmed. */
bool sl_resume_commit_last(sl_destination *destination, sl_ledger *ledger, sl_error *error);
/* Marks the load as finished, after it was verified and run.json was written. `rejects`: of this
 * run. */
bool sl_resume_finish(const sl_ledger *ledger, uint64_t rejects, sl_error *error);

#endif
