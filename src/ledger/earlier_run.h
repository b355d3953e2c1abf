/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of the journal of an earlier run, read once at the start of a resume and not changed
 * afterwards; see resume.c. */
#ifndef SHARDLOAD_EARLIER_RUN_H
#define SHARDLOAD_EARLIER_RUN_H

#include "job/job.h"
#include "ledger.h"

typedef struct sl_earlier_run {
    bson_t *begun, *dropping, *target, *finished; /* NULL until read */
    sl_journal_entry *entries; /* sorted by source and sequence when all are read */
    size_t count, room;
    bool no_memory;
} sl_earlier_run;

/* The order of entries, for qsort and bsearch. */
int sl_earlier_entry_order(const void *a, const void *b);

/* Sets the error that the journal belongs to another load; `how` is the difference. Returns
 * false. */
bool sl_earlier_differs(const sl_ledger *ledger, sl_exit code, const char *how, sl_error *error);

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

/* Compares the journal's sources with those of the load; a difference is an error (SL_EXIT_SOURCE).
 * Pipes get their fingerprints from the journal; `compare` is set for sources whose text may
 * differ. */
bool sl_earlier_same_sources(sl_job *job, sl_ledger *ledger, sl_error *error);

#endif
