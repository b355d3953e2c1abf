/* SPDX-License-Identifier: Apache-2.0 */
/* The accounts of a ledger: documents per source and per range. */
#include "ledger.h"

#include <stdlib.h>

#include "resume.h"

bool sl_ledger_open_accounts(sl_ledger *ledger, const sl_job *job) {
    ledger->sources = calloc(sl_source_set_count(job->set) + 1, sizeof *ledger->sources);
    ledger->accepted = calloc(job->range_count + 1, sizeof *ledger->accepted);
    return ledger->sources && ledger->accepted;
}

void sl_ledger_add(sl_ledger *ledger, const sl_job *job, size_t source, int64_t first_id,
                   uint64_t accepted, uint64_t taken) {
    sl_source_account *account = &ledger->sources[source];
    /* The range also holds a document under each taken _id. */
    atomic_fetch_add_explicit(&ledger->accepted[sl_job_range_of(job, first_id)], accepted + taken,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&account->accepted, accepted, memory_order_relaxed);
    atomic_fetch_add_explicit(&account->taken, taken, memory_order_relaxed);
}

void sl_ledger_clear(sl_ledger *ledger) {
    sl_rejects_close(ledger->rejects, NULL, NULL);
    sl_resume_close(ledger);
    sl_work_directory_release(&ledger->lock);
    sl_reject_kinds_clear(&ledger->reject_kinds);
    free(ledger->sources);
    free(ledger->accepted);
}
