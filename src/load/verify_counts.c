/* SPDX-License-Identifier: Apache-2.0 */
/* Verification at the end of a load, by counting: each range of ids must hold exactly the documents
 * that this load inserted or found stored, and the number of documents of no registered source
 * (unregistered.h) must not have changed. With --only-shards only the ranges of these shards are
 * counted. With --part every range also holds documents of other parts, so only too few documents
 * are an error; the loader that finishes last counts the documents of all parts (numbers.c). */
#include "verify_counts.h"
#include "job/numbers.h"
#include "report/run_record.h"

#include <inttypes.h>
#include <stdlib.h>

#include "util/log.h"

#include "ledger/unregistered.h"

#define INT64(document, key, number) BSON_APPEND_INT64(document, key, (int64_t)(number))

/* The name of a range's source, for messages; the first one if there are several. */
static const char *source_name(const sl_job *job, const sl_range *range) {
    uint32_t number = sl_document_id_source(range->minimum);
    for (size_t i = 0; i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped && job->sources[i].number == number)
            return sl_source_set_at(job->set, i)->shown;
    }
    return "?";
}

static void record_range(const sl_job *job, const sl_destination *destination,
                         const sl_range *range, uint64_t expected, uint64_t found, bson_t *item) {
    BSON_APPEND_INT64(item, "minimum", range->minimum);
    BSON_APPEND_INT64(item, "maximum", range->maximum);
    if (job->by_range) {
        uint32_t shard = sl_shard_map_owner(destination->map, range->minimum);
        BSON_APPEND_UTF8(item, "shard", destination->topology->shards[shard].name);
    }
    INT64(item, "expected", expected);
    INT64(item, "found", found);
}

bool sl_verify_counts(sl_job *job, sl_destination *destination, sl_ledger *ledger, bson_t *record,
                      sl_error *error) {
    bson_t section, ranges, item;
    uint64_t missing = 0, extra = 0;
    size_t counted = 0; /* ranges */
    uint64_t *numbers = calloc(job->range_count + 1, sizeof *numbers);
    bool ok = numbers ? sl_count_ranges(destination->connection, &destination->target, job->ranges,
                                        job->range_count, job->own_shards, numbers, error)
                      : sl_error_memory(error, "counting documents");
    BSON_APPEND_DOCUMENT_BEGIN(record, "verification", &section);
    BSON_APPEND_ARRAY_BEGIN(&section, "ranges", &ranges);
    for (size_t i = 0; ok && i < job->range_count; i++) {
        const sl_range *range = &job->ranges[i];
        if (!sl_parts_has_range(job, range))
            continue;
        const uint64_t expected = atomic_load(&ledger->ranges[i].accepted), found = numbers[i];
        if (found < expected)
            missing += expected - found;
        else if (job->config->parts == 0) /* otherwise they may belong to other parts */
            extra += found - expected;
        if (found < expected || (found > expected && job->config->parts == 0))
            sl_log_error("range %lld to %lld (%s): %s documents expected, %s found",
                         (long long)range->minimum, (long long)range->maximum,
                         source_name(job, range), sl_number_text(expected), sl_number_text(found));
        sl_record_begin_item(&ranges, counted++, &item);
        record_range(job, destination, range, expected, found, &item);
        bson_append_document_end(&ranges, &item);
    }
    free(numbers);
    bson_append_array_end(&section, &ranges);
    ok = ok && sl_unregistered_count_again(job, destination, ledger, &section, error);
    BSON_APPEND_BOOL(
        &section, "ok",
        ok && missing == 0 && extra == 0 &&
            (job->config->allow_other_writers || sl_unregistered_is_unchanged(ledger)));
    bson_append_document_end(record, &section);
    if (ok && missing + extra > 0)
        return sl_error_set(error, SL_EXIT_VERIFICATION,
                            "verification failed: %s documents are missing and %s are too many "
                            "(see the ranges above); has another program written to %s.%s? "
                            "shardload verify --content lists the documents",
                            sl_number_text(missing), sl_number_text(extra),
                            destination->target.database, destination->target.collection);
    return ok && sl_unregistered_check(job, destination, ledger, error);
}

/* ---- documents with their own _ids ----
 *
 * These ids form no ranges, so all documents of the collection are counted, before the first
 * document is sent and at the end. The difference must be the number of documents inserted.
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

/* The number of documents that the collection must hold: `least` to `most`. */
typedef struct expected {
    uint64_t least, most;
} expected;

static expected expected_of_one(const sl_mode_row *mode, uint64_t before,
                                const sl_outcomes *found) {
    uint64_t after = before + found->inserted, again = found->already_stored;
    if (mode->removes) {
        after = before > found->changed ? before - found->changed : 0;
        again = !found->sent_twice ? 0 : again < after ? again : after;
        return (expected){after - again, after};
    }
    if (!mode->creates)
        return (expected){before, before};
    if (mode->matches)
        again = found->sent_twice ? again + found->changed : 0;
    return (expected){after, after + again};
}

/* The loaders of other parts insert or delete meanwhile. */
static expected expected_of(const sl_job *job, bool capped, uint64_t before,
                            const sl_outcomes *found) {
    const sl_mode_row *mode = sl_load_mode(job->config);
    expected one = expected_of_one(mode, before, found);
    /* Documents that are sent twice to a capped collection may have removed other ones. */
    if (capped && found->sent_twice && !job->config->again && !mode->matches && !mode->removes)
        one.least = one.most;
    if (job->parts > 0 && mode->removes)
        one.least = 0;
    else if (job->parts > 0 && mode->creates)
        one.most = UINT64_MAX;
    return one;
}

bool sl_verify_total(const sl_job *job, const sl_destination *destination, sl_ledger *ledger,
                     const sl_outcomes *outcomes, bson_t *record, sl_error *error) {
    const sl_mode_row *mode = sl_load_mode(job->config);
    const uint64_t inserted = outcomes->inserted, already_stored = outcomes->already_stored;
    const sl_target *target = &destination->target;
    uint64_t before = ledger->unregistered.numbers;
    bson_t section;
    if (!ledger->unregistered.known)
        return true;
    if (!sl_count_all(destination, &ledger->unregistered_now, error))
        return false;
    uint64_t now = ledger->unregistered_now.numbers;
    const expected wanted = expected_of(job, target->capped, before, outcomes);
    const uint64_t least = wanted.least, most = wanted.most;
    bool missing = now < least;
    bool extra = now > most;
    BSON_APPEND_DOCUMENT_BEGIN(record, "verification", &section);
    INT64(&section, "documentsBefore", before);
    INT64(&section, "documentsAfter", now);
    INT64(&section, "inserted", inserted);
    INT64(&section, "alreadyStored", already_stored);
    if (mode->removes)
        INT64(&section, "deleted", outcomes->changed);
    BSON_APPEND_BOOL(&section, "allowed", job->config->allow_other_writers);
    BSON_APPEND_BOOL(&section, "ok", !missing && (!extra || job->config->allow_other_writers));
    bson_append_document_end(record, &section);
    if (!missing && !extra) {
        if (now < most && !job->config->again && !mode->matches && job->parts == 0)
            sl_log_warning("%s of the documents that were already stored are identical to "
                           "another record of the sources, or were stored before this load",
                           sl_number_text(most - now));
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
        "%" PRIu64 " were %s and %" PRIu64 " %s, and now it holds "
        "%" PRIu64 ": %" PRIu64 " documents are %s. Another program has written to "
        "the collection; --allow-other-writers accepts that",
        target->database, target->collection, before, mode->removes ? outcomes->changed : inserted,
        mode->removes ? mode->changed : "inserted", already_stored, mode->already_stored, now,
        missing ? least - now : now - most, missing ? "missing" : "too many");
}
