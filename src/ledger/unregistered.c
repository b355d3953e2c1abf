/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of no registered source, counted before a load and after it.
 *
 * Other loaders may write to the same collection. They register a source before they insert its
 * first document, and numbers are never released. So documents counted in a gap can belong to
 * another loader only if the registry has grown by the end of the count. Then they are counted
 * again, without the ids of the new sources.
 *
 * The server counts by the index of _id and returns no ids: an empty gap takes almost no time,
 * others about a second for each million documents. */
#include "unregistered.h"
#include "ledger.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bson/bson_lookup.h"
#include "job/numbers.h"
#include "util/document_id.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/text.h"

#define ATTEMPTS 20

typedef struct sl_counting {
    sl_destination *destination;
    sl_unregistered *sum;
    char **example; /* NULL, or receives the last _id of a gap with documents; bson_free it */
    bool numbers;   /* the kind of gap in which to find the example, as in sl_gap */
} sl_counting;

static bool count_gap(void *context, const sl_gap *gap, sl_error *error) {
    const sl_counting *counting = context;
    const sl_destination *destination = counting->destination;
    uint64_t found;
    if (sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted while documents were counted");
    if (!sl_count_matching(destination->connection, &destination->target, gap->filter, &found,
                           error))
        return false;
    *(gap->numbers ? &counting->sum->numbers : &counting->sum->other_types) += found;
    return true;
}

/* The greatest _id of the gap, as JSON. */
static bool find_example(void *context, const sl_gap *gap, sl_error *error) {
    const sl_counting *counting = context;
    const sl_destination *destination = counting->destination;
    bson_t documents, found;
    if (gap->numbers != counting->numbers || *counting->example)
        return true;
    bson_t *options = BCON_NEW("projection", "{", "_id", BCON_INT32(1), "}", "sort", "{", "_id",
                               BCON_INT32(-1), "}", "limit", BCON_INT64(1));
    bool ok =
        sl_connection_find(destination->connection, destination->target.database,
                           destination->target.collection, gap->filter, options, &documents, error);
    if (ok && sl_look_inside(&documents, "0", &found))
        *counting->example = sl_document_json(&found);
    bson_destroy(&documents);
    bson_destroy(options);
    return ok;
}

/* Visits the gaps between the sources registered now, and sets `*sources` to their number. */
static bool walk(const sl_destination *destination, sl_gap_function *visit, sl_counting *counting,
                 size_t *sources, sl_error *error) {
    uint32_t *numbers;
    bool ok = sl_registry_numbers(destination->registry, &numbers, sources, error);
    sl_interval *covered = ok ? malloc((*sources + 1) * sizeof *covered) : NULL;
    if (ok && !covered)
        ok = sl_error_memory(error, "counting documents");
    for (size_t i = 0; ok && i < *sources; i++)
        covered[i] = sl_interval_of_source(numbers[i]);
    ok = ok && sl_gaps_walk(covered, *sources, visit, counting, error);
    free(covered);
    free(numbers);
    return ok;
}

static bool registry_has_grown(const sl_destination *destination, size_t sources, bool *grown,
                               sl_error *error) {
    uint32_t *numbers;
    size_t now;
    bool ok = sl_registry_numbers(destination->registry, &numbers, &now, error);
    *grown = ok && now != sources;
    free(numbers);
    return ok;
}

static bool as_many(const sl_unregistered *a, const sl_unregistered *b) {
    return a->numbers == b->numbers && a->other_types == b->other_types;
}

/* Repeats the count if the result is not the expected one and the registry has grown: the
 * difference may be documents of another loader. */
bool sl_unregistered_find(sl_destination *destination, const sl_unregistered *expected,
                          sl_unregistered *found, sl_error *error) {
    bool grown = true;
    for (unsigned attempt = 0; grown && attempt < ATTEMPTS; attempt++) {
        size_t sources;
        *found = (sl_unregistered){.known = true};
        sl_counting counting = {.destination = destination, .sum = found};
        if (!walk(destination, count_gap, &counting, &sources, error))
            return false;
        found->sources = sources;
        grown = false;
        if (!as_many(found, expected) && !registry_has_grown(destination, sources, &grown, error))
            return false;
    }
    return true;
}

bool sl_count_all(const sl_destination *destination, sl_unregistered *counts, sl_error *error) {
    const bson_t all = BSON_INITIALIZER;
    *counts = (sl_unregistered){.known = true};
    return sl_count_matching(destination->connection, &destination->target, &all, &counts->numbers,
                             error);
}

bool sl_unregistered_count(sl_job *job, sl_destination *destination, sl_ledger *ledger,
                           sl_error *error) {
    sl_unregistered *before = &ledger->unregistered;
    if (!job->config->verify || before->known)
        return true;
    if (job->own_ids && job->resumed) {
        sl_log_warning("not verified: the first run of this load has not counted the documents "
                       "(--no-verify); `shardload verify` may compare them with the sources");
        return true;
    }
    if (!(job->own_ids ? sl_count_all(destination, before, error)
                       : sl_unregistered_find(destination, &(sl_unregistered){.known = true},
                                              before, error)))
        return false;
    if (destination->created) /* any document was inserted after the collection was created */
        before->numbers = before->other_types = 0;
    uint64_t documents = before->numbers + before->other_types;
    if (documents > 0)
        sl_log_info("%s.%s: %s %s", destination->target.database, destination->target.collection,
                    sl_plural(documents, "document"),
                    job->own_ids
                        ? "before this load"
                        : "that no registered load has stored (other programs, other _id)");
    return true;
}

static void append_counts(bson_t *document, const char *name, const sl_unregistered *counts) {
    BCON_APPEND(document, name, "{", "numbers", BCON_INT64((int64_t)counts->numbers), "otherTypes",
                BCON_INT64((int64_t)counts->other_types), "sources",
                BCON_INT64((int64_t)counts->sources), "}");
}

void sl_unregistered_append(const sl_ledger *ledger, bson_t *document) {
    if (ledger->unregistered.known)
        append_counts(document, "outside", &ledger->unregistered);
}

bool sl_unregistered_recall(sl_ledger *ledger, const bson_t *document) {
    if (!bson_has_field(document, "outside"))
        return false;
    ledger->unregistered = (sl_unregistered){
        .known = true,
        .numbers = (uint64_t)sl_look_int64(document, "outside.numbers", 0),
        .other_types = (uint64_t)sl_look_int64(document, "outside.otherTypes", 0),
        .sources = (size_t)sl_look_int64(document, "outside.sources", 0),
    };
    return true;
}

bool sl_unregistered_is_unchanged(const sl_ledger *ledger) {
    const sl_unregistered *now = &ledger->unregistered_now, *before = &ledger->unregistered;
    /* If the registry has grown, a smaller number does not count as a change: the loader of a new
     * source counts the documents whose ids are in its range. */
    return !before->known || as_many(now, before) ||
           (now->sources > before->sources && now->numbers <= before->numbers &&
            now->other_types == before->other_types);
}

bool sl_unregistered_count_again(sl_job *job, sl_destination *destination, sl_ledger *ledger,
                                 bson_t *section, sl_error *error) {
    bson_t outside;
    if (!ledger->unregistered.known)
        return true;
    if (!sl_unregistered_find(destination, &ledger->unregistered, &ledger->unregistered_now, error))
        return false;
    BSON_APPEND_DOCUMENT_BEGIN(section, "outside", &outside);
    append_counts(&outside, "before", &ledger->unregistered);
    append_counts(&outside, "after", &ledger->unregistered_now);
    BSON_APPEND_BOOL(&outside, "allowed", job->config->allow_other_writers);
    bson_append_document_end(section, &outside);
    return true;
}

bool sl_unregistered_check(sl_job *job, sl_destination *destination, sl_ledger *ledger,
                           sl_error *error) {
    const sl_unregistered *before = &ledger->unregistered, *now = &ledger->unregistered_now;
    char *example = NULL;
    size_t sources;
    if (sl_unregistered_is_unchanged(ledger))
        return true;
    sl_counting counting = {
        .destination = destination, .example = &example, .numbers = now->numbers > before->numbers};
    if (counting.numbers || now->other_types > before->other_types)
        walk(destination, find_example, &counting, &sources, &(sl_error){0});
    char what[900], shown[200] = "";
    if (example)
        sl_text_printable(sl_text_of(example), shown, sizeof shown);
    bson_free(example);
    snprintf(what, sizeof what,
             "%.255s.%.255s holds %s whose _id is no position in a registered source, and held %s "
             "when the load began%s%s",
             destination->target.database, destination->target.collection,
             sl_plural(now->numbers + now->other_types, "document"),
             sl_number_text(before->numbers + before->other_types),
             shown[0] ? "; for example " : "", shown);
    if (job->config->allow_other_writers) {
        sl_log_warning("%s (--allow-other-writers)", what);
        return true;
    }
    return sl_error_set(error, SL_EXIT_VERIFICATION,
                        "verification failed: %s. Another program has written to the collection; "
                        "--allow-other-writers accepts that",
                        what);
}

/* Documents of sources whose _ids are positions are in `now` only if all documents are counted. The
 * sum of the other sources is the most that they may have stored. Of a source in parts, the other
 * loaders' documents are not known. */
bool sl_unregistered_foreign(const sl_job *job, const sl_destination *destination,
                             const sl_ledger *ledger, uint64_t loaded, uint64_t *documents,
                             sl_error *error) {
    const sl_unregistered *now = &ledger->unregistered_now;
    uint64_t all = now->numbers + now->other_types, others;
    bool complete;
    *documents = 0;
    if (!now->known || (job->own_ids && job->parts > 0))
        return true;
    if (!sl_sources_others(job, destination, !job->own_ids, &others, &complete, error))
        return false;
    others += job->own_ids ? loaded : 0;
    if (complete && all > others)
        *documents = all - others;
    return true;
}

/* ---- gaps between intervals of ids ---- */

sl_interval sl_interval_of_source(uint32_t number) {
    return (sl_interval){sl_stripe_first_id(number, 0), sl_stripe_first_id(number, SL_STRIPES)};
}

static int by_minimum(const void *a, const void *b) {
    int64_t x = ((const sl_interval *)a)->minimum, y = ((const sl_interval *)b)->minimum;
    return (x > y) - (x < y);
}

/* Appends the condition for numbers from `*low` to before `*high`. NULL: no bound. */
static void append_numbers(bson_t *filter, const int64_t *low, const int64_t *high) {
    bson_t bounds;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &bounds);
    if (low)
        BSON_APPEND_INT64(&bounds, "$gte", *low);
    else
        BSON_APPEND_DOUBLE(&bounds, "$gte", -INFINITY);
    if (high)
        BSON_APPEND_INT64(&bounds, "$lt", *high);
    bson_append_document_end(filter, &bounds);
}

bool sl_gaps_walk(sl_interval *covered, size_t count, sl_gap_function *visit, void *context,
                  sl_error *error) {
    const int64_t *low = NULL;
    bool ok = true;
    if (count > 0)
        qsort(covered, count, sizeof *covered, by_minimum);
    for (size_t i = 0; ok && i <= count; i++) {
        const int64_t *high = i < count ? &covered[i].minimum : NULL;
        if (!low || !high || *low < *high) {
            bson_t filter = BSON_INITIALIZER;
            append_numbers(&filter, low, high);
            ok = visit(context,
                       &(sl_gap){.filter = &filter,
                                 .numbers = true,
                                 .within = low && high,
                                 .share = (double)i / (double)(count + 1)},
                       error);
            bson_destroy(&filter);
        }
        if (high && (!low || *low < covered[i].maximum))
            low = &covered[i].maximum;
    }
    bson_t filter = BSON_INITIALIZER;
    /* The condition for all other ids. A comparison with a number is true for numbers only, and not
     * for NaN, so its negation matches NaN and all other types. The server reads these from two
     * parts of the index: before the numbers and after them. */
    BCON_APPEND(&filter, "_id", "{", "$not", "{", "$gte", BCON_DOUBLE(-INFINITY), "}", "}");
    ok = ok && visit(context, &(sl_gap){.filter = &filter, .share = 1}, error);
    bson_destroy(&filter);
    return ok;
}
