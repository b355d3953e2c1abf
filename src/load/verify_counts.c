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
#include <string.h>

#include "bson/bson_number.h"
#include "bson/bson_writer.h"
#include "format/key_fields.h"
#include "ledger/unregistered.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/private_file.h"

#include "load.h"
#include "worker.h"

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
            sl_log_error("range %lld to %lld (%s): %s expected, %s found",
                         (long long)range->minimum, (long long)range->maximum,
                         source_name(job, range), sl_plural(expected, "document"),
                         sl_number_text(found));
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
                            "verification failed: %s missing and %s too many "
                            "(see the ranges above); has another program written to %s.%s? "
                            "shardload verify --content lists the documents",
                            sl_plural(missing, "document[s] [is|are]"),
                            sl_plural(extra, "[is|are]"), destination->target.database,
                            destination->target.collection);
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
 * If fewer documents are stored than were inserted or found stored, then some of those found are
 * counted twice, as they are equal to another record; or they were stored before the load; or
 * documents have been removed. If the collection was empty before the load, the sources are read
 * again to find out: twice, because a document that was found stored can be any of those of its
 * block. First the _ids in these blocks are collected, and then all records that have one of these
 * _ids are counted. Each record beyond the first one of an _id may have been counted twice, but no
 * other one, so all others that are not stored are missing.
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

/* ---- documents that are missing in spite of those that were found stored ---- */

#define IDS_MOST ((size_t)1 << 23) /* hashes of _ids that are collected: 64 MiB */

typedef struct sl_id_search {
    const sl_ledger *ledger;
    pthread_mutex_t lock; /* of the hashes while they are collected */
    uint64_t *hashes;     /* of the _ids; then sorted, each once */
    size_t count, room;
    bool counting;   /* the second time */
    bool incomplete; /* more than IDS_MOST, or without memory */
    _Atomic uint64_t records;
} sl_id_search;

static int hash_order(const void *left, const void *right) {
    uint64_t a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

/* Equal for whole numbers that a server takes for one _id, such as 1 and 1.0. */
static uint64_t hash_of_id(const uint8_t *document) {
    bson_t whole;
    bson_iter_t id;
    if (bson_init_static(&whole, document, sl_bson_length(document)) &&
        bson_iter_init_find(&id, &whole, "_id")) {
        const sl_number number = sl_number_of(&id);
        if (number.kind == SL_NUMBER_INTEGER)
            return sl_hash_mix((uint64_t)number.value.integer, SL_HASH_B);
    }
    uint8_t type = 0;
    const uint8_t *value = NULL;
    size_t length = 0;
    sl_key_field_find(document, "_id", &type, &value, &length);
    return sl_hash_mix(sl_hash_text((const char *)value, length), SL_HASH_B ^ type);
}

static int block_order(const void *left, const void *right) {
    const struct sl_found_block *a = left, *b = right;
    return a->source != b->source ? (a->source > b->source) - (a->source < b->source)
                                  : (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static bool was_found(const sl_ledger *ledger, const sl_source_block *block) {
    const struct sl_found_block key = {block->source, block->sequence};
    return ledger->found_count > 0 &&
           bsearch(&key, ledger->found, ledger->found_count, sizeof key, block_order);
}

static void collect(sl_id_search *search, uint64_t hash) {
    uint64_t *more = search->count < IDS_MOST
                         ? sl_grow(search->hashes, search->count, &search->room, sizeof *more)
                         : NULL;
    search->incomplete = search->incomplete || !more;
    if (more) {
        search->hashes = more;
        search->hashes[search->count++] = hash;
    }
}

static bool search_open(const sl_sending *sending, void **shared, sl_error *error) {
    (void)error;
    *shared = sending->config->search;
    return true;
}

static bool search_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                        refusal_handler refused, void *context, sl_error *error) {
    (void)refused, (void)context, (void)error;
    sl_id_search *search = (sl_id_search *)outlet;
    const uint8_t *at = batch->bytes;
    for (size_t s = 0; s < batch->segment_count; s++) {
        const sl_batch_segment *segment = &batch->segments[s];
        bool found = !search->counting && segment->documents > 0 &&
                     was_found(search->ledger, &segment->open_block->block);
        if (found)
            pthread_mutex_lock(&search->lock);
        for (uint32_t i = 0; i < segment->documents; i++, at += sl_bson_length(at)) {
            const uint64_t hash = hash_of_id(at);
            if (found)
                collect(search, hash);
            else if (search->counting &&
                     bsearch(&hash, search->hashes, search->count, sizeof hash, hash_order))
                atomic_fetch_add_explicit(&search->records, 1, memory_order_relaxed);
        }
        if (found)
            pthread_mutex_unlock(&search->lock);
    }
    result->inserted = batch->documents;
    return true;
}

const sl_sink_type sl_sink_search = {
    .name = "search", .within_load = true, .open = search_open, .send = search_send};

/* Reads the sources of the load, and passes their documents to the search. */
static bool read_again(const sl_job *job, sl_id_search *search) {
    sl_load_config config = *job->config;
    char path[SL_WORK_DIRECTORY_ROOM + 32];
    config.sink = SL_SINK_NULL;
    config.search = search;
    config.embed_field = NULL;
    config.connection = NULL;
    config.drop = config.resume = config.resume_or_begin = config.adapt_batches = false;
    config.rate_limit = 0;
    config.shared_limit = NULL;
    config.threads_most = 0;
    config.work_directory = config.report = config.html = config.metrics = NULL;
    config.above = NULL;
    config.run_record = NULL;
    config.no_resume = NULL;
    config.rejects_max = UINT64_MAX;
    config.rejects_max_share = 1;
    config.rejects_auto = false;
    config.corrected_by = NULL;
    config.progress = SL_PROGRESS_NONE;
    config.part_of_trial = true;
    sl_exit code = sl_load_run(&config);
    snprintf(path, sizeof path, "%s/" SL_WORK_LOG, search->ledger->work_directory);
    return sl_log_open_file(path, NULL) && sl_exit_is_complete(code);
}

static void sort_ids(sl_id_search *search) {
    size_t kept = 0;
    qsort(search->hashes, search->count, sizeof *search->hashes, hash_order);
    for (size_t i = 0; i < search->count; i++) {
        if (kept == 0 || search->hashes[kept - 1] != search->hashes[i])
            search->hashes[kept++] = search->hashes[i];
    }
    search->count = kept;
}

/* Can records that belong to one document be found by their _ids? */
static bool ids_decide(const sl_job *job) {
    const sl_mode_row *mode = sl_load_mode(job->config);
    const sl_key_names *match = mode->matches ? &job->keys->match : NULL;
    return mode->creates && (!match || (match->count == 1 && strcmp(match->names[0], "_id") == 0));
}

/* Fewer documents are stored, by `fewer`, than were inserted or found stored. Returns how many of
 * these are certainly missing. */
static uint64_t certainly_missing(const sl_job *job, const sl_target *target,
                                  const sl_ledger *ledger, uint64_t fewer) {
    const sl_load_config *config = job->config;
    sl_id_search search = {.ledger = ledger};
    uint64_t twice = fewer;
    if (ledger->unregistered.numbers > 0 || config->allow_other_writers || job->parts > 0 ||
        !ids_decide(job) || target->capped || target->locale[0] || job->has_pipe ||
        config->sample < 1 || ledger->found_incomplete)
        return 0;
    sl_log_info(
        "%s fewer are stored than were inserted or found already stored: reading the sources "
        "again, to see whether their _ids repeat",
        sl_plural(fewer, "document"));
    pthread_mutex_init(&search.lock, NULL);
    if (ledger->found_count > 0)
        qsort(ledger->found, ledger->found_count, sizeof *ledger->found, block_order);
    if (read_again(job, &search) && !search.incomplete) {
        sort_ids(&search);
        search.counting = true;
        if (read_again(job, &search))
            twice = atomic_load(&search.records) - search.count;
    }
    pthread_mutex_destroy(&search.lock);
    free(search.hashes);
    return fewer > twice ? fewer - twice : 0;
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
    bool extra = now > most;
    uint64_t lost = now < least ? least - now : 0;
    if (now >= least && now < most)
        lost = certainly_missing(job, target, ledger, most - now);
    const bool missing = lost > 0;
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
        if (now < most && !job->config->again && !job->config->equal_is_stored && !mode->matches &&
            job->parts == 0)
            sl_log_warning(
                "%s identical to another record of the sources, or stored "
                "before this load; or %s missing: shardload verify --content shows which",
                sl_plural(most - now, "of the documents that were already stored [is|are]"),
                sl_plural(most - now, "document[s] [is|are]"));
        return true;
    }
    if (extra && job->config->allow_other_writers) {
        sl_log_warning("%s.%s holds %s that this load has not inserted (--allow-other-writers)",
                       target->database, target->collection, sl_plural(now - most, "document"));
        return true;
    }
    return sl_error_set(
        error, SL_EXIT_VERIFICATION,
        "verification failed: %s.%s held %s when the load began, %s %s and %s %s, and now it holds "
        "%s: %s %s. Another program has written to "
        "the collection; --allow-other-writers accepts that. shardload verify --content lists the "
        "documents",
        target->database, target->collection, sl_plural(before, "document"),
        sl_plural(mode->removes ? outcomes->changed : inserted, "[was|were]"),
        mode->removes ? mode->changed : "inserted", sl_number_text(already_stored),
        mode->already_stored, sl_number_text(now),
        sl_plural(missing ? lost : now - most, "document[s] [is|are]"),
        missing ? "missing" : "too many");
}
