/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: each reads a block, parses it straight into the batch of the shard it belongs to, and
 * sends the batch when it is full.
 *
 * Workers share nothing per record. Per block they share the source set's lock and the reject
 * file's; per batch, nothing. What they count is written by one thread only and read by the
 * progress line: relaxed atomics are enough, since each figure stands alone and the final sums are
 * read after the threads have been joined.
 *
 * Why every document is accounted for: a document is in exactly one batch from the moment the
 * parser has counted it; a batch leaves `send_batch` only with a result that adds up to its number
 * of documents, or with an error that ends the load. */
#include "engine.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/clock.h>
#include <shardload/log.h>

#include "sink.h"

const char *const sl_stage_names[STAGES] = {"reading", "inflating", "parsing", "the server"};

typedef struct sl_worker {
    sl_load *load;
    unsigned index;
    pthread_t thread;
    bool started;
    sl_worker_counters *counters;
    sl_reader *reader;
    sl_outlet *outlet;
    sl_batch *batches; /* one per shard; bytes NULL until it is used */
    sl_reject_list rejects;
    sl_error error;

    /* The block in hand. */
    sl_sink sink;
    sl_batch *target;
    const sl_source_block *block;
    int64_t stage_since;
} sl_worker;

static void count(_Atomic uint64_t *counter, uint64_t more) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* The time since the last call was spent on `stage`. */
static void spent(sl_worker *worker, sl_stage stage) {
    int64_t now = sl_clock_ns();
    _Atomic int64_t *sum = &worker->counters->stage_ns[stage];
    atomic_store_explicit(
        sum, atomic_load_explicit(sum, memory_order_relaxed) + now - worker->stage_since,
        memory_order_relaxed);
    worker->stage_since = now;
}

/* ---- sending ---- */

/* The segment of a batch that its document `index` belongs to. */
static const sl_batch_segment *segment_of(const sl_batch *batch, uint32_t index) {
    const sl_batch_segment *segment = batch->segments;
    while (index >= segment->documents) {
        index -= segment->documents;
        segment++;
    }
    return segment;
}

typedef struct sl_refusals {
    sl_worker *worker;
    const sl_batch *batch;
    uint32_t next; /* the document that `at` is the place of */
    size_t at;
    bool failed;
} sl_refusals;

static const uint8_t *document_at(sl_refusals *state, uint32_t index) {
    if (index < state->next) {
        state->next = 0;
        state->at = 0;
    }
    for (; state->next < index; state->next++) {
        int32_t length;
        memcpy(&length, state->batch->bytes + state->at, sizeof length);
        state->at += (size_t)BSON_UINT32_FROM_LE((uint32_t)length);
    }
    return state->batch->bytes + state->at;
}

static void on_refused(void *context, uint32_t index, int32_t code, const char *message) {
    sl_refusals *state = context;
    sl_load *load = state->worker->load;
    const sl_batch_segment *segment = segment_of(state->batch, index);
    if (code == 0)
        return; /* already there: it is where it should be */
    const uint8_t *document = document_at(state, index);
    uint32_t length;
    memcpy(&length, document, sizeof length);
    bson_t view;
    bson_iter_t iter;
    int64_t id = segment->first_id;
    char *json = NULL;
    if (bson_init_static(&view, document, BSON_UINT32_FROM_LE(length))) {
        if (bson_iter_init_find(&iter, &view, "_id") && BSON_ITER_HOLDS_INT64(&iter))
            id = bson_iter_int64(&iter);
        json = bson_as_relaxed_extended_json(&view, NULL);
    }
    char reason[600];
    snprintf(reason, sizeof reason, "refused by the server: %s (code %d)", message, code);
    if (!sl_rejects_add_refused(load->rejects, segment->source, sl_document_id_offset(id), reason,
                             json ? json : "", &state->worker->error))
        state->failed = true;
    bson_free(json);
    /* It was counted with its segment; take it out again. */
    atomic_fetch_sub_explicit(&load->accepted[sl_load_range_of(load, segment->first_id)], 1,
                              memory_order_relaxed);
    atomic_fetch_sub_explicit(&load->sources[segment->source].accepted, 1, memory_order_relaxed);
}

static bool send_batch(sl_worker *worker, sl_batch *batch) {
    sl_load *load = worker->load;
    if (batch->documents == 0)
        return true;
    for (size_t i = 0; i < batch->segment_count; i++) {
        const sl_batch_segment *segment = &batch->segments[i];
        atomic_fetch_add_explicit(&load->accepted[sl_load_range_of(load, segment->first_id)],
                                  segment->documents, memory_order_relaxed);
        atomic_fetch_add_explicit(&load->sources[segment->source].accepted, segment->documents,
                                  memory_order_relaxed);
    }
    sl_batch_result result = {0};
    sl_refusals refusals = {.worker = worker, .batch = batch};
    int64_t start = sl_clock_ns();
    bool ok = load->sink->send(worker->outlet, batch, &result, on_refused, &refusals,
                               &worker->error);
    sl_histogram_add(&load->latencies[worker->index], (uint64_t)(sl_clock_ns() - start));
    count(&worker->counters->retries, result.retries);
    if (!ok || refusals.failed)
        return false;
    count(&worker->counters->inserted, result.inserted);
    count(&worker->counters->already_there, result.already_there);
    count(&worker->counters->server_rejects, result.rejected);
    count(&worker->counters->bson_bytes, batch->used);
    count(&worker->counters->batches, 1);
    atomic_fetch_add_explicit(&load->shard_documents[batch->shard], result.inserted,
                              memory_order_relaxed);
    sl_batch_empty(batch);
    return true;
}

/* ---- the parser's side ---- */

static void sink_to_batch(sl_worker *worker) {
    sl_batch *batch = worker->target;
    uint32_t more = worker->sink.documents - batch->documents;
    batch->documents = worker->sink.documents;
    batch->used = (size_t)(worker->sink.cursor - batch->bytes);
    batch->segments[batch->segment_count - 1].documents += more;
}

static void batch_to_sink(sl_worker *worker) {
    sl_batch *batch = worker->target;
    worker->sink.cursor = batch->bytes + batch->used;
    worker->sink.limit = batch->bytes + batch->room;
    worker->sink.documents = batch->documents;
    worker->sink.documents_limit = worker->load->config->batch_documents;
}

static bool begin_segment(sl_worker *worker) {
    const sl_source_block *block = worker->block;
    uint32_t number = worker->load->sources[block->source].number;
    return sl_batch_begin_segment(worker->target, (uint32_t)block->source, block->sequence,
                               sl_document_id(number, block->offset)) ||
           sl_error_memory(&worker->error, "filling a batch");
}

static bool on_full(sl_sink *sink, size_t need) {
    sl_worker *worker = sink->context;
    sl_batch *batch = worker->target;
    sink_to_batch(worker);
    spent(worker, STAGE_PARSING);
    bool ok = send_batch(worker, batch);
    spent(worker, STAGE_SENDING);
    if (ok && need > batch->room) { /* one document that is larger than a batch */
        uint8_t *bytes = realloc(batch->bytes, need + SL_SLACK);
        ok = bytes || sl_error_memory(&worker->error, "making room for a large document");
        if (bytes) {
            batch->bytes = bytes;
            batch->room = need;
        }
    }
    ok = ok && begin_segment(worker);
    batch_to_sink(worker);
    return ok;
}

static void on_reject(sl_sink *sink, const sl_reject *reject) {
    sl_worker *worker = sink->context;
    if (!sl_reject_list_add(&worker->rejects, reject))
        sl_error_memory(&worker->error, "keeping rejects");
}

static bool too_many_rejects(sl_worker *worker, uint64_t records, uint64_t rejects) {
    const sl_load_config *config = worker->load->config;
    /* A share means little before there is something to take a share of. */
    bool share = config->rejects_max_share < 1 && records >= 100000 &&
                 (double)rejects > config->rejects_max_share * (double)records;
    if (rejects <= config->rejects_max && !share)
        return false;
    sl_error_set(&worker->error, SL_EXIT_SOURCE,
                 "%llu of %llu records rejected: more than --max-rejects allows",
                 (unsigned long long)rejects, (unsigned long long)records);
    return true;
}

static bool reject_limit_passed(sl_worker *worker) {
    sl_load *load = worker->load;
    uint64_t records = 0, rejects = 0;
    for (unsigned i = 0; i < load->config->threads; i++) {
        records += atomic_load_explicit(&load->counters[i].records, memory_order_relaxed);
        rejects += atomic_load_explicit(&load->counters[i].parser_rejects, memory_order_relaxed) +
                   atomic_load_explicit(&load->counters[i].server_rejects, memory_order_relaxed);
    }
    return too_many_rejects(worker, records, rejects);
}

static bool handle_block(sl_worker *worker, const sl_source_block *block) {
    sl_load *load = worker->load;
    sl_load_source *source = &load->sources[block->source];
    sl_parse_counts counts = {0};
    bool ok = true;
    if (block->text.length > 0) {
        int64_t first_id = sl_document_id(source->number, block->offset);
        uint32_t shard = load->map ? sl_shard_map_owner(load->map, first_id) : 0;
        worker->block = block;
        worker->target = &worker->batches[shard];
        if (!worker->target->bytes &&
            !sl_batch_init(worker->target, shard, load->config->batch_bytes))
            return sl_error_memory(&worker->error, "making a batch");
        if (!begin_segment(worker))
            return false;
        batch_to_sink(worker);
        sl_block view = {
            .text = block->text,
            .offset = block->offset,
            .id_base = first_id & ~(int64_t)(SL_BLOCK_BYTES - 1),
        };
        ok = source->format->parse(sl_sources_plan_of(load, source), source->dialect, &view,
                                   &worker->sink, &counts);
        sink_to_batch(worker);
        count(&worker->counters->text_bytes, block->text.length);
        count(&worker->counters->records, counts.records);
        count(&worker->counters->parser_rejects, counts.rejects);
    }
    uint64_t rejected = counts.rejects;
    ok = sl_rejects_block_done(load->rejects, block->source, block->sequence, counts.lines,
                            &worker->rejects, &worker->error) && ok && !worker->error.code;
    sl_parse_counts *sum = &load->parsed[worker->index];
    sum->lines += counts.lines;
    sum->records += counts.records;
    sum->documents += counts.documents;
    sum->rejects += counts.rejects;
    sum->headers += counts.headers;
    sum->blank_lines += counts.blank_lines;
    sum->repaired += counts.repaired;
    sum->transcoded += counts.transcoded;
    spent(worker, STAGE_PARSING);
    return ok && !(rejected > 0 && reject_limit_passed(worker));
}

/* ---- the thread ---- */

static void *work(void *context) {
    sl_worker *worker = context;
    sl_load *load = worker->load;
    sl_source_block block;
    bool ok = true;
    worker->stage_since = sl_clock_ns();
    while (ok && !atomic_load_explicit(&load->stop, memory_order_relaxed)) {
        int64_t inflating = sl_reader_spent(worker->reader)->inflating;
        sl_read_result result = sl_reader_next(worker->reader, &block, &worker->error);
        /* The reader knows how much of its time went into inflating; the rest is reading. */
        inflating = sl_reader_spent(worker->reader)->inflating - inflating;
        spent(worker, STAGE_READING);
        worker->counters->stage_ns[STAGE_READING] -= inflating;
        worker->counters->stage_ns[STAGE_INFLATING] += inflating;
        if (result == SL_READ_END)
            break;
        ok = result == SL_READ_BLOCK && handle_block(worker, &block);
    }
    /* Batches in hand are delivered also when the load was told to stop, but not after an error. */
    for (uint32_t i = 0; ok && i < load->shards; i++)
        ok = send_batch(worker, &worker->batches[i]);
    spent(worker, STAGE_SENDING);
    if (!ok && worker->error.code)
        sl_load_fail(load, &worker->error);
    atomic_fetch_sub(&load->working, 1);
    return NULL;
}

static void worker_clear(sl_worker *worker) {
    sl_reader_destroy(worker->reader);
    worker->load->sink->outlet_destroy(worker->outlet);
    for (uint32_t i = 0; worker->batches && i < worker->load->shards; i++)
        sl_batch_clear(&worker->batches[i]);
    free(worker->batches);
    sl_reject_list_clear(&worker->rejects);
}

static bool worker_init(sl_worker *worker, sl_load *load, unsigned index, void *shared,
                        sl_error *error) {
    worker->load = load;
    worker->index = index;
    worker->counters = &load->counters[index];
    worker->sink = (sl_sink){.full = on_full, .reject = on_reject, .context = worker};
    worker->batches = calloc(load->shards, sizeof *worker->batches);
    if (!worker->batches)
        return sl_error_memory(error, "starting workers");
    return sl_reader_create(load->set, &worker->reader, error) &&
           load->sink->outlet_create(load, shared, &worker->outlet, error);
}

bool sl_workers_run(sl_load *load, void (*tick)(void *context), void *context, sl_error *error) {
    unsigned threads = load->config->threads;
    void *shared = NULL;
    sl_worker *workers = calloc(threads, sizeof *workers);
    bool ok = workers ? load->sink->open(load, &shared, error)
                      : sl_error_memory(error, "starting workers");
    unsigned made = 0;
    for (; ok && made < threads; made++)
        ok = worker_init(&workers[made], load, made, shared, error);
    if (ok) {
        atomic_store(&load->working, threads);
        for (unsigned i = 0; i < threads; i++) {
            int code = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
            workers[i].started = code == 0;
            if (code != 0) {
                sl_error why;
                sl_error_set(&why, SL_EXIT_USAGE, "cannot start %u threads: %s; use fewer (-j)",
                             threads, strerror(code));
                sl_load_fail(load, &why);
                atomic_fetch_sub(&load->working, 1);
            }
        }
        while (atomic_load(&load->working) > 0) {
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
            tick(context);
        }
        for (unsigned i = 0; i < threads; i++) {
            if (workers[i].started)
                pthread_join(workers[i].thread, NULL);
        }
        if (load->failure.code) {
            *error = load->failure;
            ok = false;
        }
    }
    for (unsigned i = 0; i < made; i++)
        worker_clear(&workers[i]);
    free(workers);
    sl_error closing = {0};
    if (!load->sink->close(shared, &closing) && ok) {
        *error = closing;
        ok = false;
    }
    return ok;
}
