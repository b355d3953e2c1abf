/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: each reads a block, parses it directly into the batch of its shard, and sends the batch
 * when it is full. If the shard depends on the document (any shard key but {_id: 1}), the block is
 * parsed into the worker's scratch, from which each document is copied to the batch of its owner
 * before the next block is begun.
 *
 * Workers share nothing per record. Per block they share the source set's lock and the reject
 * file's; per batch, nothing. The chunk map is only read: it is created before the threads are
 * started and destroyed after they have ended. Each counter is written by one thread only and read
 * by the progress line: relaxed atomics are enough, since no counter depends on another and the
 * final sums are read after the threads have been joined.
 *
 * Why every document is accounted for: from the moment the parser has counted it, a document is in
 * exactly one batch (the scratch is also a batch). It leaves the scratch only for another batch,
 * where it is counted in a segment of its block. delivery.c empties a batch only after a result
 * that adds up to its number of documents; otherwise an error ends the load. */
#include "worker.h"
#include "embedding.h"
#include "job/sources.h"
#include "ledger/resume.h"
#include "reject_limit.h"
#include "send/route.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/context.h"

/* ---- the parser's side ---- */

static void sink_to_batch(sl_worker *worker) {
    sl_batch *batch = worker->target;
    uint32_t more = worker->sink.documents - batch->documents;
    batch->documents = worker->sink.documents;
    batch->used = (size_t)(worker->sink.cursor - batch->bytes);
    if (more > 0)
        batch->segments[batch->segment_count - 1].documents += more;
    worker->open_block->waiting += more;
}

static bool batch_to_sink(sl_worker *worker) {
    sl_batch *batch = worker->target;
    worker->sink.cursor = batch->bytes + batch->used;
    worker->sink.limit = batch->bytes + batch->room;
    worker->sink.documents = batch->documents;
    worker->sink.documents_limit = sl_run_batch_documents(worker->run);
    if (!worker->job->own_ids)
        return true;
    bool ok = sl_batch_keep_offsets(batch, worker->sink.documents_limit);
    worker->sink.offsets = batch->offsets;
    return ok || sl_error_memory(&worker->error, "keeping the offsets of records");
}

static bool begin_segment(sl_worker *worker) {
    return sl_batch_begin_segment(worker->target, worker->open_block) ||
           sl_error_memory(&worker->error, "filling a batch");
}

static bool on_full(sl_sink *sink, size_t need) {
    sl_worker *worker = sink->context;
    sl_batch *batch = worker->target;
    if (worker->error.code) /* a reject could not be kept: a delivery would overwrite this error */
        return false;
    sink_to_batch(worker);
    bool ok = sl_deliver(worker, batch) &&
              (sl_batch_make_room(batch, need) ||
               sl_error_memory(&worker->error, "making room for a large document")) &&
              begin_segment(worker);
    return batch_to_sink(worker) && ok;
}

static void on_reject(sl_sink *sink, const sl_reject *reject) {
    sl_worker *worker = sink->context;
    if (reject->misread)
        sl_line_ends_error(worker->job, worker->block, reject, &worker->error);
    else if (!sl_reject_list_add(&worker->open_block->rejects, reject))
        sl_error_memory(&worker->error, "keeping rejects");
}

static void on_left_out(sl_sink *sink, const char *column) {
    sl_worker *worker = sink->context;
    if (!sl_left_out_add(&worker->run->left_out[worker->index], column, 1))
        sl_error_memory(&worker->error, "counting values that are left out");
}

static void on_doubt(sl_sink *sink, const sl_reject *record) {
    sl_worker *worker = sink->context;
    sl_line_ends_doubt(worker->job, worker->block, record);
}

/* Rejects so far, of the parser and of the server. */
static uint64_t rejects_of(const sl_worker_counters *counters) {
    return atomic_load_explicit(&counters->parser_rejects, memory_order_relaxed) +
           atomic_load_explicit(&counters->server_rejects, memory_order_relaxed);
}

/* The batch into which a block is parsed. */
static sl_batch *target_of(sl_worker *worker, int64_t first_id) {
    const sl_job *job = worker->job;
    const sl_destination *destination = worker->destination;
    /* If documents have their own _ids, the map was read for routing by key. */
    switch (destination->map ? sl_shard_map_route(destination->map) : SL_ROUTE_NONE) {
    case SL_ROUTE_BY_ID:
        return sl_delivery_batch(worker, sl_route_of_block(job, destination, first_id));
    case SL_ROUTE_BY_KEY:
        return &worker->scratch;
    default:
        return sl_delivery_batch(worker, job->shards > 1 ? job->shards : 0);
    }
}

/* Parses a block into batches; `dialect` NULL: the block is not loaded. */
static bool parse_block(sl_worker *worker, const sl_source_block *block,
                        const sl_dialect *dialect) {
    const sl_job *job = worker->job;
    const sl_ledger *ledger = worker->ledger;
    const sl_run *run = worker->run;
    sl_open_block *open_block = sl_block_begin(worker, block);
    if (!open_block)
        return false;
    worker->open_block = open_block;
    worker->block = block;
    bool ok = true;
    if (dialect && block->text.length > 0) {
        worker->target = target_of(worker, open_block->first_id);
        if (!worker->target || !begin_segment(worker) || !batch_to_sink(worker))
            return false;
        ok = sl_sources_parse(job, block, dialect, &worker->sink, &open_block->counts);
        sink_to_batch(worker);
        if (ok && worker->target == &worker->scratch)
            ok = sl_deliver(worker, worker->target);
        if (block->text.bytes) /* generated records have no text */
            sl_count(&worker->counters->text_bytes, block->text.length);
        sl_count(&worker->counters->records, open_block->counts.records);
        sl_count(&worker->counters->parser_rejects, open_block->counts.rejects);
    }
    sl_parse_counts_add(&run->parsed[worker->index], &open_block->counts);
    open_block->parsed = ok && !worker->error.code;
    if (open_block->parsed && ledger->journal)
        open_block->check = sl_resume_check(block);
    if (open_block->parsed && job->config->divided)
        atomic_fetch_add_explicit(&job->config->divided->text, sl_divided_text(block),
                                  memory_order_relaxed);
    return open_block->parsed && sl_block_complete(worker, open_block);
}

static bool handle_block(sl_worker *worker, const sl_source_block *block) {
    sl_job *job = worker->job;
    sl_ledger *ledger = worker->ledger;
    sl_run *run = worker->run;
    const sl_dialect *dialect;
    uint64_t rejects_before = rejects_of(worker->counters);
    /* Also for completed blocks: later blocks wait for the dialect from their entry's first
     * block. */
    bool ok = sl_sources_dialect(job, block, &dialect, &worker->error) &&
              sl_resume_block_fits(job, ledger, block, &worker->error) &&
              (block->done || parse_block(worker, block, block->unselected ? NULL : dialect));
    if (ok)
        sl_sources_done_with(job, block);
    return ok && sl_deliver_old(worker) &&
           !(rejects_of(worker->counters) > rejects_before &&
             sl_rejects_pass_limit(run, ledger, false, &worker->error));
}

/* ---- the thread ---- */

/* An inactive worker sends its documents, frees its batches, and waits. */
static bool wait_for_turn(sl_worker *worker) {
    sl_run *run = worker->run;
    if (worker->index < atomic_load_explicit(&run->pace.active, memory_order_relaxed))
        return true;
    if (!sl_deliver_all(worker))
        return false;
    sl_delivery_release(worker);
    sl_stage_enter(worker->counters, STAGES); /* the wait counts as no stage */
    sl_pace_wait(&run->pace, worker->index);
    sl_stage_enter(worker->counters, STAGE_PARSING);
    return true;
}

static void *work(void *context) {
    sl_worker *worker = context;
    sl_run *run = worker->run;
    sl_source_block block;
    sl_stage_enter(worker->counters, STAGE_PARSING);
    bool ok = wait_for_turn(worker);
    while (ok && !atomic_load_explicit(&run->stop, memory_order_relaxed)) {
        int64_t inflating = sl_reader_spent(worker->reader)->inflating;
        sl_stage_enter(worker->counters, STAGE_READING);
        sl_read_result result = sl_reader_next(worker->reader, &block, &worker->error);
        /* The reader measures its time for inflating; its other time is reading. */
        inflating = sl_reader_spent(worker->reader)->inflating - inflating;
        sl_stage_enter(worker->counters, STAGE_PARSING);
        worker->counters->stage_ns[STAGE_READING] -= inflating;
        worker->counters->stage_ns[STAGE_INFLATING] += inflating;
        /* The load was stopped while this worker waited for a pipe. */
        bool stopped = result == SL_READ_FAILED && worker->error.code == SL_EXIT_INTERRUPTED;
        if (stopped)
            worker->error = (sl_error){0};
        if (result == SL_READ_END || stopped)
            break;
        ok = result == SL_READ_BLOCK && handle_block(worker, &block) && wait_for_turn(worker);
    }
    /* The remaining batches are sent also when the load was stopped, but not after an error. */
    ok = ok && sl_deliver_all(worker);
    sl_stage_enter(worker->counters, STAGES);
    if (!ok)
        sl_run_fail(run, &worker->error);
    sl_pace_over(&run->pace); /* the load ends, so inactive workers must not wait any more */
    sl_run_ended(run);
    return NULL;
}

static void worker_clear(sl_worker *worker) {
    bool limit = atomic_load(&worker->run->ended_by) == SL_ENDED_BY_REJECT_LIMIT;
    for (const sl_open_block *one = worker->open_blocks; one && limit; one = one->next)
        sl_rejects_show(worker->ledger->rejects, &one->block, &one->rejects);
    sl_reader_destroy(worker->reader);
    if (worker->sink_type->outlet_destroy)
        worker->sink_type->outlet_destroy(worker->outlet);
    sl_delivery_clear(worker);
    worker->run->undelivered += sl_blocks_waiting(worker);
    sl_blocks_clear(worker);
}

static bool worker_init(sl_worker *worker, const sl_sending *sending, unsigned index, void *shared,
                        sl_error *error) {
    worker->index = index;
    worker->counters = &worker->run->counters[index];
    worker->sink = (sl_sink){.full = on_full,
                             .reject = on_reject,
                             .left_out = on_left_out,
                             .doubt = on_doubt,
                             .context = worker};
    worker->outlet = worker->sink_type->outlet_create ? NULL : shared;
    return sl_delivery_init(worker, error) &&
           sl_reader_create(worker->job->set, &worker->reader, error) &&
           (!worker->sink_type->outlet_create ||
            worker->sink_type->outlet_create(sending, shared, &worker->outlet, error));
}

bool sl_workers_run(sl_run *run, sl_destination *destination, sl_ledger *ledger,
                    const sl_sink_type *sink_type, void (*tick)(void *context), void *context,
                    sl_error *error) {
    sl_job *job = run->job;
    unsigned threads = run->threads;
    const sl_sending sending = {.config = job->config,
                                .destination = destination,
                                .shards = job->shards,
                                .own_ids = job->own_ids,
                                .keys = job->keys,
                                .threads = threads,
                                .sent_before = job->resumed || job->config->again,
                                .stop = &run->stop};
    void *shared = NULL;
    sl_worker *workers = calloc(threads, sizeof *workers);
    bool ok = workers ? !sink_type->open || sink_type->open(&sending, &shared, error)
                      : sl_error_memory(error, "starting workers");
    atomic_store(&run->opened, ok);
    if (ok)
        sl_context_changes();
    unsigned made = 0;
    for (; ok && made < threads; made++) {
        workers[made] = (sl_worker){.job = job,
                                    .destination = destination,
                                    .ledger = ledger,
                                    .run = run,
                                    .sink_type = sink_type};
        ok = worker_init(&workers[made], &sending, made, shared, error);
    }
    ok = ok && sl_run_threads(run, work, workers, sizeof *workers, tick, context, error);
    for (unsigned i = 0; i < made; i++)
        worker_clear(&workers[i]);
    free(workers);
    sl_error closing = {0};
    if (sink_type->close && !sink_type->close(shared, &closing) && ok) {
        *error = closing;
        ok = false;
    }
    return ok;
}
