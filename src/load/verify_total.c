/* SPDX-License-Identifier: Apache-2.0 */
/* Verification at the end of a load whose documents have an _id of their own: such ids form no
 * ranges, so all documents of the collection are counted, before the first document is sent and at
 * the end. The difference must be the number of documents inserted.
 *
 * A run that was killed has inserted documents that no journal entry counts. The resumed run finds
 * them and counts them as already stored, together with documents that were stored before the load.
 * So the difference is at least the documents inserted, and at most these and those already stored;
 * in a load that was neither interrupted nor retried, nothing is already stored and the count is
 * exact. */
#include "verify_counts.h"

#include <inttypes.h>

#include "util/log.h"

#define INT64(document, key, number) BSON_APPEND_INT64(document, key, (int64_t)(number))

bool sl_verify_total(const sl_job *job, const sl_destination *destination, sl_ledger *ledger,
                     uint64_t inserted, uint64_t already_stored, bson_t *record, sl_error *error) {
    const sl_target *target = &destination->target;
    uint64_t before = ledger->unregistered.numbers;
    bson_t section;
    if (!ledger->unregistered.known)
        return true;
    if (!sl_count_all(destination, &ledger->unregistered_now, error))
        return false;
    uint64_t now = ledger->unregistered_now.numbers;
    uint64_t least = before + inserted, most = least + already_stored;
    bool missing = now < least;
    bool extra = now > most;
    BSON_APPEND_DOCUMENT_BEGIN(record, "verification", &section);
    INT64(&section, "documentsBefore", before);
    INT64(&section, "documentsAfter", now);
    INT64(&section, "inserted", inserted);
    INT64(&section, "alreadyStored", already_stored);
    BSON_APPEND_BOOL(&section, "allowed", job->config->allow_other_writers);
    BSON_APPEND_BOOL(&section, "ok", !missing && (!extra || job->config->allow_other_writers));
    bson_append_document_end(record, &section);
    if (!missing && !extra) {
        if (now < most && !job->config->again)
            sl_log_warning("%" PRIu64 " of the documents that were already stored are identical to "
                           "another record of the sources, or were stored before this load",
                           most - now);
        return true;
    }
    if (extra && job->config->allow_other_writers) {
        sl_log_warning("%s.%s holds %" PRIu64 " documents that this load has not inserted "
                       "(--allow-other-writers)",
                       target->database, target->collection, now - most);
        return true;
    }
    return sl_error_set(
        error, SL_EXIT_VERIFICATION,
        "verification failed: %s.%s held %" PRIu64 " documents when the load began, "
        "%" PRIu64 " were inserted and %" PRIu64 " already stored, and now it holds "
        "%" PRIu64 ": %" PRIu64 " documents are %s. Another program has written to "
        "the collection: undo that, or give --allow-other-writers if that program "
        "is meant to write there",
        target->database, target->collection, before, inserted, already_stored, now,
        missing ? least - now : now - most, missing ? "missing" : "too many");
}
