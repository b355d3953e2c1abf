/* SPDX-License-Identifier: Apache-2.0 */
/* Verification at the end of a load, by counting. */
#ifndef SHARDLOAD_VERIFY_COUNTS_H
#define SHARDLOAD_VERIFY_COUNTS_H

#include "job/destination.h"
#include "job/job.h"
#include "ledger/ledger.h"

/* Counts the documents of each of the job's ranges, and appends the section "verification" to the
 * record. A number that differs from the ledger's is an error (SL_EXIT_VERIFICATION). */
bool sl_verify_counts(sl_job *job, sl_destination *destination, sl_ledger *ledger, bson_t *record,
                      sl_error *error);

/* The same for sources whose documents have an _id of their own (verify_total.c): counts all
 * documents of the collection. `inserted` and `already_stored` are the totals of all runs of the
 * load. */
bool sl_verify_total(const sl_job *job, const sl_destination *destination, sl_ledger *ledger,
                     uint64_t inserted, uint64_t already_stored, bson_t *record, sl_error *error);

#endif
