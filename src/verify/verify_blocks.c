/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of the sources with the cluster, block by block.
 *
 * Each thread draws blocks as a load's workers do, parses one, and reads the stored documents in
 * the block's interval. The interval contains all ids that records beginning in the block's text
 * could have. The intervals of all blocks are recorded; verify_gaps.c searches the ids between
 * them, so that every id is checked exactly once. Two blocks of an archive may share a MiB, if one
 * entry ends in it and the next begins; any other block is alone in its MiB.
 *
 * Threads share nothing per document. The findings of a block are reported only when its interval
 * has been read to the end, because a failed read is repeated. The sums are atomics, each
 * independent of the others, and are read when the threads have been joined. */
#include "job/archive_entries.h"
#include "job/line_ends.h"
#include "job/sources.h"
#include "verification.h"

#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/log.h"

#define SLICE_BYTES ((size_t)16 << 20) /* of documents compared at once; few blocks have more */

typedef struct sl_checker {
    sl_verification *verification;
    sl_job *job;
    sl_destination *destination;
    sl_run *run;
    unsigned index;
    sl_worker_counters *counters;
    sl_reader *reader;
    mongoc_client_t *client;
    uint8_t *bytes; /* the block's documents; room + SL_SLACK */
    size_t room;
    uint64_t *offsets; /* of documents with their own _id; grown by on_full */
    uint32_t offsets_room;
    sl_sink sink;
    sl_error error;

    /* Of the current block. */
    const sl_source_block *block;
    sl_range_totals *totals;
    sl_interval remaining; /* the part of its interval that has not been compared */

    /* Of the current comparison. */
    sl_comparison comparison;
    uint64_t found, found_hash;
    uint64_t findings[3];
    sl_problem *problems;
    size_t problem_count, problem_room;
} sl_checker;

/* ---- the parser's side ---- */

static int64_t last_id(const uint8_t *at, const uint8_t *end) {
    int64_t id = 0;
    for (; at < end; at += sl_bson_length(at))
        id = sl_expected_id(at);
    return id;
}

static bool check_documents(sl_checker *checker, int64_t maximum);

/* Makes room for the offsets of more documents. */
static bool grow_offsets(sl_checker *checker) {
    sl_sink *sink = &checker->sink;
    if (!checker->job->own_ids || sink->documents < checker->offsets_room)
        return true;
    uint32_t room = checker->offsets_room ? checker->offsets_room * 2 : 4096;
    uint64_t *offsets = realloc(checker->offsets, room * sizeof *offsets);
    if (!offsets)
        return sl_error_memory(&checker->error, "parsing a block");
    checker->offsets = sink->offsets = offsets;
    checker->offsets_room = sink->documents_limit = room;
    return true;
}

/* Most blocks are parsed completely before they are compared. A block of large documents is
 * compared in slices, each up to the id of its last document. */
static bool on_full(sl_sink *sink, size_t need) {
    sl_checker *checker = sink->context;
    size_t used = (size_t)(sink->cursor - checker->bytes);
    if (used > 0 && used + need > SLICE_BYTES) {
        bool own_ids = checker->job->own_ids;
        if (!check_documents(checker, own_ids ? 0 : last_id(checker->bytes, sink->cursor) + 1))
            return false;
        used = 0;
        sink->cursor = checker->bytes;
        sink->documents = 0;
    }
    if (!grow_offsets(checker))
        return false;
    if (need <= checker->room - used) {
        sink->limit = checker->bytes + checker->room;
        return true;
    }
    size_t room = checker->room * 2 > used + need ? checker->room * 2 : used + need;
    uint8_t *bytes = realloc(checker->bytes, room + SL_SLACK);
    if (!bytes)
        return sl_error_memory(&checker->error, "parsing a block");
    checker->bytes = bytes;
    checker->room = room;
    sink->cursor = bytes + used;
    sink->limit = bytes + room;
    return true;
}

static void on_reject(sl_sink *sink, const sl_reject *reject) {
    sl_checker *checker = sink->context;
    if (reject->misread) /* other rejects are counted only; the load has reported them */
        sl_line_ends_error(checker->job, checker->block, reject, &checker->error);
}

static bool parse(sl_checker *checker, const sl_source_block *block, sl_parse_counts *counts) {
    sl_job *job = checker->job;
    const sl_dialect *dialect;
    checker->sink = (sl_sink){.cursor = checker->bytes,
                              .limit = checker->bytes + checker->room,
                              .documents_limit = UINT32_MAX,
                              .offsets = checker->offsets,
                              .full = on_full,
                              .reject = on_reject,
                              .context = checker};
    if (job->own_ids)
        checker->sink.documents_limit = checker->offsets_room;
    if (!sl_sources_dialect(job, block, &dialect, &checker->error))
        return false;
    if (!dialect || block->text.length == 0)
        return true;
    return sl_sources_parse(job, block, dialect, &checker->sink, counts);
}

static uint64_t hash_of(const uint8_t *at, const uint8_t *end) {
    uint64_t sum = 0;
    for (size_t length; at < end; at += length) {
        length = sl_bson_length(at);
        sum += sl_hash(at, length);
    }
    return sum;
}

/* ---- the cluster's side ---- */

/* The ids of the block. */
static sl_interval interval_of(const sl_job *job, const sl_source_block *block) {
    int64_t id = sl_document_id(job->sources[block->source].number, block->offset);
    int64_t base = id & ~(int64_t)(SL_BLOCK_BYTES - 1);
    uint64_t end = (block->offset & (SL_BLOCK_BYTES - 1)) + block->text.length;
    return (sl_interval){
        .minimum = block->entry_start ? id : base,
        .maximum = base + (int64_t)(end < SL_BLOCK_BYTES ? end : SL_BLOCK_BYTES),
    };
}

static void forget_findings(sl_checker *checker) {
    for (size_t i = 0; i < checker->problem_count; i++)
        sl_problem_clear(&checker->problems[i]);
    checker->problem_count = 0;
    checker->found = checker->found_hash = 0;
    memset(checker->findings, 0, sizeof checker->findings);
    sl_compare_clear(&checker->comparison);
}

static void on_found(void *context, const bson_t *found) {
    sl_checker *checker = context;
    checker->found++;
    checker->found_hash += sl_hash(bson_get_data(found), found->len);
    sl_compare_found(&checker->comparison, found);
}

static void on_finding(void *context, sl_finding finding, const uint8_t *expected,
                       const bson_t *found) {
    sl_checker *checker = context;
    sl_problem *problems = sl_grow(checker->problems, checker->problem_count,
                                   &checker->problem_room, sizeof *problems);
    if (!problems) {
        sl_error_memory(&checker->error, "keeping problems");
        return;
    }
    checker->problems = problems;
    sl_problem *made = &checker->problems[checker->problem_count++];
    *made = sl_problem_of(checker->job, finding, checker->block->source, expected, found);
    if (finding == SL_EXTRA)
        made->detail = bson_strdup("the source has no such document");
    checker->findings[finding]++;
}

static bool keep_on(void *context) {
    const sl_run *run = context;
    return !atomic_load(&run->stop);
}

/* Reads the interval and compares it; begins again after failures that may be temporary. */
static bool compare(sl_checker *checker, sl_interval place) {
    const sl_destination *destination = checker->destination;
    for (unsigned attempt = 0;; attempt++) {
        forget_findings(checker);
        checker->comparison = (sl_comparison){.expected = checker->bytes,
                                              .end = checker->sink.cursor,
                                              .report = on_finding,
                                              .context = checker};
        switch (sl_scan_range(checker->client, &destination->target, place.minimum, place.maximum,
                              on_found, checker, &checker->error)) {
        case SL_SCAN_DONE:
            checker->error = (sl_error){0};
            sl_compare_end(&checker->comparison);
            return !checker->error.code;
        case SL_SCAN_FAILED:
            return false;
        case SL_SCAN_AGAIN:
            if (attempt == 0)
                sl_log_warning(SL_LINES "; trying again", checker->error.message);
            if (!sl_backoff(attempt, keep_on, checker->run))
                return false;
        }
    }
}

static void report_findings(sl_checker *checker) {
    sl_range_totals *totals = checker->totals;
    for (size_t i = 0; i < checker->problem_count; i++) {
        checker->problems[i].entry = checker->block->entry;
        sl_problems_add(checker->verification->problems, &checker->problems[i]);
    }
    atomic_fetch_add(&totals->found, checker->found);
    atomic_fetch_add(&totals->found_hash, checker->found_hash);
    atomic_fetch_add(&totals->missing, checker->findings[SL_MISSING]);
    atomic_fetch_add(&totals->different, checker->findings[SL_DIFFERENT]);
    atomic_fetch_add(&totals->extra, checker->findings[SL_EXTRA]);
    forget_findings(checker);
}

/* Compares the documents parsed so far with the ids from the end of the last slice to before
 * `maximum`. */
static bool check_documents(sl_checker *checker, int64_t maximum) {
    sl_verification *verification = checker->verification;
    const uint8_t *end = checker->sink.cursor;
    sl_interval slice = {checker->remaining.minimum, maximum};
    sl_count(&checker->counters->bson_bytes, (uint64_t)(end - checker->bytes));
    atomic_fetch_add(&checker->totals->expected_hash, hash_of(checker->bytes, end));
    if (verification->content)
        sl_stage_enter(checker->counters, STAGE_SENDING);
    if (checker->job->own_ids) {
        bool ok = !verification->content ||
                  sl_verify_slice_by_id(verification, checker->client, checker->block,
                                        checker->bytes, checker->offsets, checker->sink.documents,
                                        checker->totals, &checker->error);
        sl_stage_enter(checker->counters, STAGE_PARSING);
        return ok;
    }
    if (!verification->content || slice.minimum >= slice.maximum)
        return true;
    if (!compare(checker, slice))
        return false;
    report_findings(checker);
    checker->remaining.minimum = maximum;
    sl_stage_enter(checker->counters, STAGE_PARSING);
    return sl_verification_cover(verification, slice) ||
           sl_error_memory(&checker->error, "recording compared intervals");
}

static bool check_block(sl_checker *checker, const sl_source_block *block) {
    sl_job *job = checker->job;
    const sl_destination *destination = checker->destination;
    const sl_run *run = checker->run;
    sl_parse_counts counts = {0};
    int64_t id = sl_document_id(job->sources[block->source].number, block->offset);
    checker->block = block;
    checker->remaining = interval_of(job, block);
    checker->totals = sl_verification_totals(checker->verification, id);
    if (!parse(checker, block, &counts) || !check_documents(checker, checker->remaining.maximum))
        return false;
    sl_sources_done_with(job, block);
    atomic_fetch_add(&checker->totals->expected, counts.documents);
    sl_count(&checker->counters->text_bytes, block->text.length);
    sl_count(&checker->counters->records, counts.records);
    sl_count(&checker->counters->already_stored, counts.documents);
    sl_count(&checker->counters->parser_rejects, counts.rejects);
    if (job->by_range)
        atomic_fetch_add(&run->shard_documents[sl_shard_map_owner(destination->map, id)],
                         counts.documents);
    sl_parse_counts_add(&run->parsed[checker->index], &counts);
    return true;
}

/* ---- the threads ---- */

static void *check(void *context) {
    sl_checker *checker = context;
    sl_run *run = checker->run;
    sl_source_block block;
    bool ok = true;
    while (ok && !atomic_load_explicit(&run->stop, memory_order_relaxed)) {
        int64_t inflating = sl_reader_spent(checker->reader)->inflating;
        sl_stage_enter(checker->counters, STAGE_READING);
        sl_read_result result = sl_reader_next(checker->reader, &block, &checker->error);
        inflating = sl_reader_spent(checker->reader)->inflating - inflating;
        sl_stage_enter(checker->counters, STAGE_PARSING);
        atomic_fetch_sub(&checker->counters->stage_ns[STAGE_READING], inflating);
        atomic_fetch_add(&checker->counters->stage_ns[STAGE_INFLATING], inflating);
        if (result == SL_READ_END)
            break;
        ok = result == SL_READ_BLOCK && check_block(checker, &block);
    }
    sl_stage_enter(checker->counters, STAGES);
    if (!ok && checker->error.code)
        sl_run_fail(run, &checker->error);
    sl_run_ended(run);
    return NULL;
}

static bool checker_init(sl_checker *checker, sl_verification *verification, unsigned index,
                         sl_error *error) {
    const sl_job *job = &verification->job;
    const sl_destination *destination = &verification->destination;
    const sl_run *run = &verification->run;
    *checker = (sl_checker){.verification = verification,
                            .job = &verification->job,
                            .destination = &verification->destination,
                            .run = &verification->run,
                            .index = index,
                            .counters = &run->counters[index],
                            .room = SL_BLOCK_BYTES};
    checker->bytes = malloc(checker->room + SL_SLACK);
    if (!checker->bytes)
        return sl_error_memory(error, "starting threads");
    if (verification->content)
        checker->client = sl_connection_borrow(destination->connection);
    return sl_reader_create(job->set, &checker->reader, error);
}

static void checker_clear(sl_checker *checker) {
    forget_findings(checker);
    free(checker->problems);
    free(checker->bytes);
    free(checker->offsets);
    if (checker->client)
        sl_connection_return(checker->destination->connection, checker->client);
    sl_reader_destroy(checker->reader);
}

bool sl_verify_blocks(sl_verification *verification, void (*tick)(void *context), void *context,
                      sl_error *error) {
    sl_run *run = &verification->run;
    unsigned threads = run->threads, made = 0;
    sl_checker *checkers = calloc(threads, sizeof *checkers);
    bool ok = checkers != NULL;
    if (!ok)
        sl_error_memory(error, "starting threads");
    for (; ok && made < threads; made++)
        ok = checker_init(&checkers[made], verification, made, error);
    ok = ok && sl_run_threads(run, check, checkers, sizeof *checkers, tick, context, error);
    for (unsigned i = 0; i < made; i++)
        checker_clear(&checkers[i]);
    free(checkers);
    return ok;
}
