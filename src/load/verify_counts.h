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

#endif
