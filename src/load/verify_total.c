/* SPDX-License-Identifier: Apache-2.0 */
/* Verification at the end of a load whose documents have their own _id. These ids form no ranges,
 * so all documents of the collection are counted, before the first document is sent and at the end.
 * The difference must be the number of documents inserted.
 *
 * A run that was killed has inserted documents that no journal entry counts. The resumed run finds
 * them and counts them as already stored, together with documents that were stored before the load.
 * So the difference is at least the number of documents inserted, and at most the sum of the
 * documents inserted and already stored; in a load that was neither interrupted nor retried,
 * nothing is already stored and the count is exact.
 *
 * With --part the loaders of other parts insert and delete meanwhile, so each checks only that
 * there are not too few documents, or, if it deletes, not too many.
 *
 * With another mode than insert, documents that needed no change do not count, unless they may have
 * been inserted or deleted by a run that was killed, or by an attempt whose answer was lost. */
#include "verify_counts.h"

#include <inttypes.h>

#include "util/log.h"

#define INT64(document, key, number) BSON_APPEND_INT64(document, key, (int64_t)(number))

/* The number of documents that the collection must hold: `least` to `most`. */
typedef struct expected {
    uint64_t least, most;
} expected;

static expected expected_of_one(sl_mode mode, uint64_t before, const sl_outcomes *found) {
    uint64_t after = before + found->inserted, again = found->already_stored;
    switch (mode) {
    case SL_MODE_INSERT:
        return (expected){after, after + again};
    case SL_MODE_UPSERT:
    case SL_MODE_MERGE:
        return (expected){after, after + (found->sent_twice ? again + found->changed : 0)};
    case SL_MODE_REPLACE:
        break;
    case SL_MODE_DELETE:
        after = before > found->changed ? before - found->changed : 0;
        again = !found->sent_twice ? 0 : again < after ? again : after;
        return (expected){after - again, after};
    }
    return (expected){before, before};
}

/* The loaders of other parts insert or delete meanwhile. */
static expected expected_of(const sl_job *job, uint64_t before, const sl_outcomes *found) {
    const sl_mode mode = job->config->format_options.mode;
    expected one = expected_of_one(mode, before, found);
    if (job->parts > 0 && mode == SL_MODE_DELETE)
        one.least = 0;
    else if (job->parts > 0 && mode != SL_MODE_REPLACE)
        one.most = UINT64_MAX;
    return one;
}

bool sl_verify_total(const sl_job *job, const sl_destination *destination, sl_ledger *ledger,
                     const sl_outcomes *outcomes, bson_t *record, sl_error *error) {
    const sl_mode mode = job->config->format_options.mode;
    const uint64_t inserted = outcomes->inserted, already_stored = outcomes->already_stored;
    const sl_target *target = &destination->target;
    uint64_t before = ledger->unregistered.numbers;
    bson_t section;
    if (!ledger->unregistered.known)
        return true;
    if (!sl_count_all(destination, &ledger->unregistered_now, error))
        return false;
    uint64_t now = ledger->unregistered_now.numbers;
    const expected wanted = expected_of(job, before, outcomes);
    const uint64_t least = wanted.least, most = wanted.most;
    bool missing = now < least;
    bool extra = now > most;
    BSON_APPEND_DOCUMENT_BEGIN(record, "verification", &section);
    INT64(&section, "documentsBefore", before);
    INT64(&section, "documentsAfter", now);
    INT64(&section, "inserted", inserted);
    INT64(&section, "alreadyStored", already_stored);
    if (mode == SL_MODE_DELETE)
        INT64(&section, "deleted", outcomes->changed);
    BSON_APPEND_BOOL(&section, "allowed", job->config->allow_other_writers);
    BSON_APPEND_BOOL(&section, "ok", !missing && (!extra || job->config->allow_other_writers));
    bson_append_document_end(record, &section);
    if (!missing && !extra) {
        if (now < most && !job->config->again && mode == SL_MODE_INSERT && job->parts == 0)
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
    return sl_error_set(error, SL_EXIT_VERIFICATION,
                        "verification failed: %s.%s held %" PRIu64
                        " documents when the load began, "
                        "%" PRIu64 " were %s and %" PRIu64 " %s, and now it holds "
                        "%" PRIu64 ": %" PRIu64 " documents are %s. Another program has written to "
                        "the collection: undo that, or give --allow-other-writers if that program "
                        "is meant to write there",
                        target->database, target->collection, before,
                        mode == SL_MODE_DELETE ? outcomes->changed : inserted,
                        mode == SL_MODE_DELETE ? "deleted" : "inserted", already_stored,
                        mode == SL_MODE_INSERT   ? "already stored"
                        : mode == SL_MODE_DELETE ? "not found"
                                                 : "unchanged",
                        now, missing ? least - now : now - most, missing ? "missing" : "too many");
}
