/* SPDX-License-Identifier: Apache-2.0 */
/* Verification at the end of a load, by counting: each range of ids must hold exactly the documents
 * that this load inserted or found stored, and the number of documents of no registered source
 * (unregistered.h) must not have changed. With --only-shards only the ranges of these shards are
 * counted. With --part every range also holds documents of other parts, so only too few documents
 * are an error; the loader that finishes last counts the documents of all parts (parts.c). */
#include "verify_counts.h"
#include "job/parts.h"
#include "report/run_record.h"

#include <stdio.h>
#include <stdlib.h>

#include "util/clock.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/text.h"

#include "ledger/unregistered.h"

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
    BSON_APPEND_INT64(item, "expected", (int64_t)expected);
    BSON_APPEND_INT64(item, "found", (int64_t)found);
}

bool sl_verify_counts(sl_job *job, sl_destination *destination, sl_ledger *ledger, bson_t *record,
                      sl_error *error) {
    bson_t section, ranges, item;
    uint64_t missing = 0, extra = 0;
    size_t counted = 0; /* ranges */
    bool ok = true;
    int64_t logged = sl_clock_ns();
    BSON_APPEND_DOCUMENT_BEGIN(record, "verification", &section);
    BSON_APPEND_ARRAY_BEGIN(&section, "ranges", &ranges);
    for (size_t i = 0; ok && i < job->range_count; i++) {
        const sl_range *range = &job->ranges[i];
        if (!sl_parts_has_range(job, range))
            continue;
        uint64_t expected = atomic_load(&ledger->accepted[i]), found = 0;
        if (sl_interrupt_requested())
            ok = sl_error_set(error, SL_EXIT_INTERRUPTED, "verification was interrupted");
        ok = ok && sl_count_range(destination->connection, &destination->target, range->minimum,
                                  range->maximum, &found, error);
        if (!ok)
            break;
        if (sl_seconds_since(logged) > 3) {
            sl_log_info("verifying: %zu of %zu ranges", i, job->range_count);
            logged = sl_clock_ns();
        }
        if (found < expected)
            missing += expected - found;
        else if (job->config->parts == 0) /* otherwise they may belong to other parts */
            extra += found - expected;
        if (found < expected || (found > expected && job->config->parts == 0))
            sl_log_error("range %lld to %lld (%s): %llu documents expected, %llu found",
                         (long long)range->minimum, (long long)range->maximum,
                         source_name(job, range), (unsigned long long)expected,
                         (unsigned long long)found);
        sl_record_begin_item(&ranges, counted++, &item);
        record_range(job, destination, range, expected, found, &item);
        bson_append_document_end(&ranges, &item);
    }
    bson_append_array_end(&section, &ranges);
    ok = ok && sl_unregistered_count_again(job, destination, ledger, &section, error);
    BSON_APPEND_BOOL(
        &section, "ok",
        ok && missing == 0 && extra == 0 &&
            (job->config->allow_other_writers || sl_unregistered_is_unchanged(ledger)));
    bson_append_document_end(record, &section);
    if (ok && missing + extra > 0)
        return sl_error_set(error, SL_EXIT_VERIFICATION,
                            "verification failed: %llu documents are missing and %llu are too many "
                            "(see the ranges above); has another program written to %s.%s? "
                            "shardload verify --content lists the documents",
                            (unsigned long long)missing, (unsigned long long)extra,
                            destination->target.database, destination->target.collection);
    return ok && sl_unregistered_check(job, destination, ledger, error);
}
