/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of a load: the documents that are known to be stored; the journal preserves this
 * across crashes.
 *
 * The main thread opens the ledger, recovers it from the journal of an earlier run, commits it and
 * closes it. Workers add completed blocks: the journal and the reject files have their own locks;
 * the accounts are atomic. */
#ifndef SHARDLOAD_LEDGER_H
#define SHARDLOAD_LEDGER_H

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
    _Atomic uint64_t accepted; /* inserted or already stored */
    _Atomic uint64_t taken;    /* refused because another document has their _id */
} sl_source_account;

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
    struct sl_earlier_run *earlier; /* the journal's contents at the start; resume.c */
    char holder[25];  /* its id as a holder of the stopped balancer; "" without a journal */
    bool begin_later; /* the journal is that of a completed load until sl_resume_begin */
    bool compared;    /* a source's text may differ from that of the earlier run */
    bool uncommitted; /* collected journal entries have not been committed yet */
    sl_recovered recovered;
    sl_unregistered unregistered,
        unregistered_now; /* counted before the first document was sent; counted at the end */

    sl_source_account *sources; /* per source of the job; NULL before sl_resume_recover */
    _Atomic uint64_t *accepted; /* per range: documents it must hold: inserted, already stored,
                                   or another document under the same _id */
} sl_ledger;

/* Opens accounts for the sources and ranges of the job, all zero. False without memory. */
bool sl_ledger_open_accounts(sl_ledger *ledger, const sl_job *job);
/* Closes the journal and the reject files, and frees all memory. */
void sl_ledger_clear(sl_ledger *ledger);

/* The documents of a source that were inserted or are already stored. */
static inline uint64_t sl_ledger_accepted(const sl_ledger *ledger, size_t source) {
    return ledger->sources ? atomic_load(&ledger->sources[source].accepted) : 0;
}

/* Adds the documents of a block with this first id. Any thread. */
void sl_ledger_add(sl_ledger *ledger, const sl_job *job, size_t source, int64_t first_id,
                   uint64_t accepted, uint64_t taken);

#endif
