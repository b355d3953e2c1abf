/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of a load: the documents that are known to be stored; the journal preserves this
 * across crashes.
 *
 * The main thread opens the ledger, recovers it from the journal of an earlier run, commits it and
 * closes it. Workers add completed blocks: the journal and the reject files have their own locks;
 * the accounts are atomic. */
#ifndef SHARDLOAD_LEDGER_H
#define SHARDLOAD_LEDGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/job.h"
#include "journal.h"
#include "rejects.h"
#include "unregistered.h"
#include "work_directory.h"

/* The documents of one source. */
typedef struct sl_source_account {
    _Atomic uint64_t accepted;    /* inserted or already stored */
    _Atomic uint64_t taken;       /* refused because another document has their _id */
    _Atomic uint64_t held;        /* records under whose _id a document is stored */
    _Atomic uint64_t rejected;    /* records without document: by the parser, */
    _Atomic uint64_t refused;     /* and by the server; */
    _Atomic uint64_t refused_ids; /* the sum of sl_id_sum over the refused ones */
    _Atomic uint64_t text_bytes;
    _Atomic uint64_t borders; /* the sum over its blocks */
} sl_source_account;

/* The documents of one range. */
typedef struct sl_range_account {
    _Atomic uint64_t accepted; /* that it must hold: inserted, already stored, or another document
                                  under the same _id */
    _Atomic uint64_t borders;
} sl_range_account;

/* Totals of earlier runs, recovered from the journal. */
typedef struct sl_recovered {
    uint64_t blocks;
    SL_RECOVERED_COUNTS(SL_COUNT_FIELD)
    sl_parse_counts counts;
} sl_recovered;

typedef struct sl_ledger {
    char work_directory[SL_WORK_DIRECTORY_ROOM]; /* "" when there is none */
    sl_work_directory_lock lock;                 /* on the work directory */
    sl_journal *journal;                         /* NULL unless into a cluster */
    sl_reject_files *rejects;
    sl_reject_kinds reject_kinds;   /* complete once the reject files are closed */
    struct sl_store *store;         /* of --embed; NULL without it. Borrowed */
    struct sl_earlier_run *earlier; /* the journal's contents at the start */
    char holder[25];  /* its id as a holder of the stopped balancer; "" without a journal */
    bool compared;    /* a source's text may differ from that of the earlier run */
    bool uncommitted; /* collected journal entries have not been committed yet */
    sl_recovered recovered;
    sl_unregistered unregistered,
        unregistered_now; /* counted before the first document was sent; counted at the end */

    sl_source_account *sources; /* per source of the job; NULL before sl_resume_recover */
    sl_range_account *ranges;   /* per range of the job */

    /* The blocks with documents that were found stored, by all runs; under the lock. */
    pthread_mutex_t found_lock;
    struct sl_found_block {
        uint64_t source, sequence;
    } * found;
    size_t found_count, found_room;
    bool found_incomplete; /* without memory */
} sl_ledger;

/* Opens accounts for the sources and ranges of the job, all zero. False without memory. */
bool sl_ledger_open_accounts(sl_ledger *ledger, const sl_job *job);
/* Closes the journal and the reject files, and frees all memory. */
void sl_ledger_clear(sl_ledger *ledger);

/* The documents of a source that were inserted or are already stored. */
static inline uint64_t sl_ledger_accepted(const sl_ledger *ledger, size_t source) {
    return ledger->sources ? atomic_load(&ledger->sources[source].accepted) : 0;
}

/* Adds the documents and the rejects of a completed block. Any thread. */
void sl_ledger_add(sl_ledger *ledger, const sl_job *job, const sl_journal_entry *entry);

/* ---- the journal of a load, and --resume ---- */

/* Writes the journal of a load; with --resume, reads it. The functions are called in this order.
 * Without a journal they do nothing. Main thread, unless noted. */

/* Opens the journal; with --resume, checks that it belongs to this load. `*finished`: that load has
 * been completed. */
bool sl_resume_open(sl_job *job, sl_ledger *ledger, bool *finished, sl_error *error);

/* Does the folder, which has a journal, allow a new load? Not (SL_EXIT_USAGE) if a load has sent
 * documents and has not been completed. `clears`: that of a completed load becomes empty, and its
 * status is removed. */
bool sl_resume_may_begin(const char *directory, bool clears, sl_error *error);

/* The entries of the journal in a folder, in the order of sources and blocks; for free(). */
bool sl_resume_entries(const char *directory, sl_journal_entry **entries, size_t *count,
                       sl_error *error);

/* The exit code of the completed load: SL_EXIT_OK or SL_EXIT_REJECTS. */
sl_exit sl_resume_completed_code(const sl_ledger *ledger);

/* With --embed, whose store is open: were its records the same in the earlier run? */
bool sl_resume_embed(const sl_job *job, const sl_ledger *ledger, sl_error *error);

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
/* Before the sources of a completed load are read and compared: counts in sources[].uncompared the
 * blocks in the journal of each source. Those whose text cannot differ are skipped. */
bool sl_resume_compare_begin(sl_job *job, sl_ledger *ledger, sl_error *error);
/* Recovers the completed blocks and the totals of earlier runs, before the first block is read. */
bool sl_resume_recover(sl_job *job, sl_ledger *ledger, sl_error *error);
/* For commands that have a work directory for each collection in theirs: writes the options that
 * change what is stored or removed; with --resume, compares them. */
bool sl_resume_write_options(const char *directory, const sl_load_config *config, sl_error *error);
bool sl_resume_check_options(const char *directory, const sl_load_config *config, sl_error *error);
/* The identity of a file as the field `identity` of a document. Fields that it lacks are 0. */
void sl_resume_append_identity(bson_t *source, const sl_source_identity *identity);
sl_source_identity sl_resume_identity_in(const bson_t *source);
/* A hash of a block's text for the journal; 0 for generated records. Any thread. */
uint64_t sl_resume_check(const sl_source_block *block);
/* Is a block consistent with the journal? A completed block must have the same text, and the source
 * must not end before the last completed block. False sets the error. Any thread. */
bool sl_resume_block_fits(const sl_job *job, const sl_ledger *ledger, const sl_source_block *block,
                          sl_error *error);
/* Called before a block is parsed. Of a pipe, whose text may be another one when it is resumed, the
 * next commit also lists the blocks that are not completed; but not its last block, which may be
 * shorter because the program that writes the pipe was stopped. Any thread. */
bool sl_resume_block_read(const sl_job *job, const sl_ledger *ledger, const sl_source_block *block,
                          sl_error *error);
/* Called when documents of a block were refused because other documents have their _ids. False,
 * with the error, if that means that the source's text has changed since the earlier run. Any
 * thread. */
bool sl_resume_taken_fits(const sl_job *job, const sl_source_block *block, sl_error *error);
/* Adds the blocks that sl_rejects_block_done has passed on to the next commit. Any thread. */
bool sl_resume_blocks_done(sl_ledger *ledger, sl_error *error);
/* Writes all completed blocks to the journal and syncs it to disk. On the direct route a later call
 * does this if the cluster cannot confirm the owners of the documents now. Called by one thread. */
bool sl_resume_commit(sl_destination *destination, sl_ledger *ledger, sl_error *error);
/* The last commit: waits until the owners are confirmed. */
bool sl_resume_commit_last(sl_destination *destination, sl_ledger *ledger, sl_error *error);
/* Marks the load as finished, after it was verified and run.json was written. `rejects`: of this
 * run. `nothing`: all records were rejected, so the load failed, and no run can complete it. */
bool sl_resume_finish(const sl_ledger *ledger, uint64_t rejects, bool nothing, sl_error *error);

/* ---- the sources of earlier runs and loads ---- */

/* Appends the array of sources to the journal's first document, or to that of the records to
 * embed. */
void sl_earlier_append_sources(bson_t *document, const sl_job *job);

/* How sources differ from those of an earlier run. */
typedef struct sl_sources_difference {
    char how[800];                    /* the difference; "": the sources may be the same */
    char modified[SL_FILE_TIME_ROOM]; /* the earlier modification time, if that is the difference;
                                         otherwise "" */
    size_t compare; /* sources whose text must be compared: pipes, and files with another identity
                       but the same size, beginning, end and modification time */
    size_t changed; /* of these, without the pipes */
} sl_sources_difference;

/* Compares the sources of a job with those that sl_earlier_append_sources recorded. False when they
 * differ. Sets `compare` of the job's sources, and the fingerprints of pipes. */
bool sl_earlier_compare_sources(const bson_t *earlier, sl_job *job,
                                sl_sources_difference *difference);

/* Warns that files are compared because their identity has changed; `since` is an event. */
void sl_earlier_log_compared(const sl_sources_difference *difference, const char *since);

#endif
