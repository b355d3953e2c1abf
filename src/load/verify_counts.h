/* SPDX-License-Identifier: Apache-2.0 */
/* Verification at the end of a load, by counting. */
#ifndef SHARDLOAD_VERIFY_COUNTS_H
#define SHARDLOAD_VERIFY_COUNTS_H

#include "job/job.h"
#include "ledger/ledger.h"
#include "send/sink.h"

/* Counts the documents of each of the job's ranges, and appends the section "verification" to the
 * record. A number that differs from the ledger's is an error (SL_EXIT_VERIFICATION). */
bool sl_verify_counts(sl_job *job, sl_destination *destination, sl_ledger *ledger, bson_t *record,
                      sl_error *error);

/* The totals of all runs of a load. */
typedef struct sl_outcomes {
    uint64_t inserted, already_stored, changed;
    bool sent_twice; /* documents may have been sent again, after a failure or by a resumed run */
} sl_outcomes;

/* The same for sources whose documents have their own _id, or none: counts all documents of the
 * collection. If fewer are stored than were inserted or found stored, another load, which is run
 * here, may read the sources again: this file and load.c call each other. */
bool sl_verify_total(const sl_job *job, const sl_destination *destination, sl_ledger *ledger,
                     const sl_outcomes *outcomes, bson_t *record, sl_error *error);

/* The sink of that load. */
extern const sl_sink_type sl_sink_search;

#endif
