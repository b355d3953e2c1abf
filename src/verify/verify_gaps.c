/* SPDX-License-Identifier: Apache-2.0 */
/* Stored documents outside all sources and blocks: after the end of a source, between its blocks,
 * under unregistered source numbers, under ids of other types.
 *
 * All ids are divided into the intervals that have been compared (without --content: the sources
 * that were counted), the ids of other registered sources, and the gaps between these. Each gap is
 * one find, which mostly returns nothing: about 256 finds for a large source, one for a small
 * source. */
#include "verification.h"

#include <inttypes.h>
#include <stdlib.h>

#include "util/clock.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/text.h"

sl_range_totals *sl_verification_totals(sl_verification *verification, int64_t id) {
    const sl_job *job = &verification->job;
    size_t range = sl_job_range_of(job, id);
    bool inside = id >= job->ranges[range].minimum && id < job->ranges[range].maximum;
    return &verification->ranges[inside ? range : job->range_count];
}

bool sl_verification_cover(sl_verification *verification, sl_interval interval) {
    pthread_mutex_lock(&verification->lock);
    sl_interval *covered = sl_grow(verification->covered, verification->covered_count,
                                   &verification->covered_room, sizeof *covered);
    if (covered) {
        verification->covered = covered;
        covered[verification->covered_count++] = interval;
    }
    pthread_mutex_unlock(&verification->lock);
    return covered != NULL;
}

/* Which source numbers are those of this verification? For free(); NULL without memory. */
static bool *verified_numbers(const sl_job *job) {
    bool *verified = calloc((size_t)SL_SOURCE_NUMBER_MAX + 1, sizeof *verified);
    for (size_t i = 0; verified && i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped)
            verified[job->sources[i].number] = true;
    }
    return verified;
}

/* Marks registered sources that are not in this verification as covered; without `content`, all
 * registered sources, since these have been counted. */
static bool cover_sources(sl_verification *verification) {
    bool *verified = verified_numbers(&verification->job);
    bool ok = verified != NULL;
    for (size_t i = 0; ok && i < verification->registered_count; i++) {
        uint32_t number = verification->registered[i];
        if (!verified[number] || !verification->content)
            ok = sl_verification_cover(verification, sl_interval_of_source(number));
    }
    free(verified);
    return ok;
}

typedef struct sl_extra_scan {
    sl_verification *verification;
    uint64_t found;
} sl_extra_scan;

static const char *why_extra(const bson_iter_t *id, bool placed) {
    if (!BSON_ITER_HOLDS_INT64(id) || bson_iter_int64(id) < 0)
        return "no source has such an _id";
    return placed ? "no record begins at that byte" : "its source is not in the registry";
}

static void on_extra(void *context, const bson_t *found) {
    sl_extra_scan *state = context;
    sl_verification *verification = state->verification;
    const sl_job *job = &verification->job;
    sl_range_totals *totals = &verification->ranges[job->range_count];
    sl_problem problem = sl_problem_of(job, SL_EXTRA, 0, NULL, found);
    bson_iter_t iter;
    state->found++;
    if (bson_iter_init_find(&iter, found, "_id")) {
        if (BSON_ITER_HOLDS_INT64(&iter))
            totals = sl_verification_totals(verification, bson_iter_int64(&iter));
        problem.detail = bson_strdup(why_extra(&iter, problem.placed));
    }
    atomic_fetch_add(&totals->found, 1);
    atomic_fetch_add(&totals->extra, 1);
    if (verification->content)
        atomic_fetch_add(&totals->found_hash, sl_hash(bson_get_data(found), found->len));
    sl_problems_add(verification->problems, &problem);
    sl_problem_clear(&problem);
}

static bool keep_on(void *context) {
    (void)context;
    return !sl_interrupt_requested();
}

/* Reports all documents that match the filter as extra. A read that has reported some documents is
 * not repeated, because these would be counted twice. */
static bool scan(sl_verification *verification, mongoc_client_t *client, const bson_t *filter,
                 sl_error *error) {
    sl_extra_scan state = {.verification = verification};
    sl_scan_result result;
    unsigned attempt = 0;
    do {
        if (sl_interrupt_requested())
            return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
        result = sl_scan(client, &verification->destination.target, filter, !verification->content,
                         on_extra, &state, error);
    } while (result == SL_SCAN_AGAIN && state.found == 0 && sl_backoff(attempt++, keep_on, NULL));
    return result == SL_SCAN_DONE;
}

typedef struct sl_gap_search {
    sl_verification *verification;
    mongoc_client_t *client;
    int64_t logged; /* when progress was logged last, by sl_clock_ns */
} sl_gap_search;

static bool search_gap(void *context, const sl_gap *gap, sl_error *error) {
    sl_gap_search *search = context;
    if (sl_seconds_since(search->logged) > 3) {
        sl_log_info("searching the ids between the blocks: %.0f %%", 100 * gap->share);
        search->logged = sl_clock_ns();
    }
    return scan(search->verification, search->client, gap->filter, error);
}

bool sl_verify_gaps(sl_verification *verification, sl_error *error) {
    const sl_destination *destination = &verification->destination;
    if (!cover_sources(verification))
        return sl_error_memory(error, "searching between the sources");
    sl_gap_search search = {verification, sl_connection_borrow(destination->connection),
                            sl_clock_ns()};
    bool ok = sl_gaps_walk(verification->covered, verification->covered_count, search_gap, &search,
                           error);
    sl_connection_return(destination->connection, search.client);
    return ok;
}

typedef struct sl_others_count {
    sl_verification *verification;
    bool *verified; /* by number */
    int64_t logged;
    uint32_t with_extra;
} sl_others_count;

static void report_other(sl_others_count *count, const sl_registry_entry *entry, uint64_t found) {
    sl_verification *verification = count->verification;
    sl_range_totals *totals = &verification->ranges[verification->job.range_count];
    uint64_t extra = found - entry->in_range;
    char shown[400];
    bson_t item;
    sl_text_printable(sl_text_of(entry->name), shown, sizeof shown);
    sl_log_warning("%s, which was not named: %" PRIu64 " documents are stored under its _ids, and "
                   "its load has left %" PRIu64 "; name it to list the others",
                   shown, found, entry->in_range);
    atomic_fetch_add(&totals->found, extra);
    atomic_fetch_add(&totals->extra, extra);
    if (!verification->other_sources)
        verification->other_sources = bson_new();
    sl_record_begin_item(verification->other_sources, count->with_extra++, &item);
    BSON_APPEND_UTF8(&item, "name", shown);
    BSON_APPEND_INT64(&item, "expected", (int64_t)entry->in_range);
    BSON_APPEND_INT64(&item, "found", (int64_t)found);
    bson_append_document_end(verification->other_sources, &item);
}

/* Fewer documents are no finding: only a verification of that source shows whether one is
 * missing. */
static bool count_other(void *context, const sl_registry_entry *entry, sl_error *error) {
    sl_others_count *count = context;
    const sl_destination *destination = &count->verification->destination;
    uint64_t found;
    if (count->verified[entry->number])
        return true;
    if (sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
    if (sl_seconds_since(count->logged) > 3) {
        sl_log_info("counting the documents of sources that were not named");
        count->logged = sl_clock_ns();
    }
    if (!sl_count_range(destination->connection, &destination->target,
                        sl_stripe_first_id(entry->number, 0),
                        sl_stripe_first_id(entry->number, SL_STRIPES), &found, error))
        return false;
    if (found > entry->in_range)
        report_other(count, entry, found);
    return true;
}

bool sl_verify_other_sources(sl_verification *verification, sl_error *error) {
    const sl_job *job = &verification->job;
    sl_others_count count = {verification, verified_numbers(job), sl_clock_ns(), 0};
    bool ok = count.verified ? sl_registry_each_loaded(verification->destination.registry,
                                                       count_other, &count, error)
                             : sl_error_memory(error, "counting other sources");
    free(count.verified);
    return ok;
}

bool sl_verify_ranges(sl_verification *verification, sl_error *error) {
    const sl_job *job = &verification->job;
    const sl_destination *destination = &verification->destination;
    int64_t logged = sl_clock_ns();
    for (size_t i = 0; i < job->range_count; i++) {
        const sl_range *range = &job->ranges[i];
        sl_range_totals *totals = &verification->ranges[i];
        uint64_t expected = atomic_load(&totals->expected), found;
        if (sl_interrupt_requested())
            return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted");
        if (!sl_count_range(destination->connection, &destination->target, range->minimum,
                            range->maximum, &found, error))
            return false;
        if (sl_seconds_since(logged) > 3) {
            sl_log_info("counting: %zu of %zu ranges", i, job->range_count);
            logged = sl_clock_ns();
        }
        atomic_store(&totals->found, found);
        atomic_store(&totals->missing, found < expected ? expected - found : 0);
        atomic_store(&totals->extra, found > expected ? found - expected : 0);
    }
    return true;
}
