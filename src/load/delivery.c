/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery: adds a worker's documents to the batches of their shards, sends the batches, and counts
 * the outcome of each document.
 *
 * The router forwards a bulk insert unchanged if all its documents belong to one shard; otherwise
 * it splits it into one command per shard. So there is one batch per shard, and one more for
 * documents whose owner is not known, so that the router need not split the other batches.
 *
 * Memory: a batch is allocated when it is first used. The batches of a worker's shards have room
 * for --batch-bytes in total, or for 1 MiB each where that is more (beyond 16 shards, by default);
 * the batch for the router has as much room as one of them. The driver copies what is sent, so a
 * worker holds twice --batch-bytes at most. A document that is larger than its batch enlarges it.
 *
 * Time: a batch that has been filling for BATCH_SECONDS_MOST is sent although it is not full, so
 * that a shard with few documents does not delay the completion of blocks. */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "util/clock.h"

#define SCRATCH_BYTES ((size_t)256 << 10) /* fits into the cache of one core */
#define BATCH_SECONDS_MOST 5.0

/* ---- a batch to its shard ---- */

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
    uint32_t next; /* index of the document that begins at byte `at` of the batch */
    size_t at;
    bool failed; /* without memory */
} sl_refusals;

/* The bytes of a document; fast if the indices of successive calls ascend. */
static const uint8_t *document_at(sl_refusals *state, uint32_t index) {
    if (index < state->next) {
        state->next = 0;
        state->at = 0;
    }
    for (; state->next < index; state->next++)
        state->at += sl_bson_length(state->batch->bytes + state->at);
    return state->batch->bytes + state->at;
}

static void on_refused(void *context, uint32_t index, sl_fate fate, int32_t code,
                       const char *message) {
    sl_refusals *state = context;
    sl_open_block *open_block = segment_of(state->batch, index)->open_block;
    open_block->inserted--;
    if (fate == FATE_ALREADY_STORED) {
        open_block->already_stored++;
        return;
    }
    if (fate == FATE_CHANGED) {
        open_block->changed++;
        return;
    }
    open_block->refused++;
    open_block->taken += fate == FATE_ID_TAKEN;
    if (fate == FATE_REPEATED)
        sl_count(&state->worker->counters->repeated, 1);
    const uint8_t *document = document_at(state, index);
    bson_t view;
    bson_iter_t iter;
    int64_t id = open_block->first_id;
    char *json = NULL;
    if (bson_init_static(&view, document, sl_bson_length(document))) {
        if (bson_iter_init_find(&iter, &view, "_id") && BSON_ITER_HOLDS_INT64(&iter))
            id = bson_iter_int64(&iter);
        json = bson_as_relaxed_extended_json(&view, NULL);
    }
    const uint64_t *offsets = state->batch->offsets;
    sl_reject reject = {.offset = offsets ? offsets[index] : sl_document_id_offset(id),
                        .line = SL_REJECT_LINE_UNKNOWN,
                        .record = sl_text_of(json ? json : "")};
    if (fate == FATE_NOT_FOUND)
        snprintf(reject.reason, sizeof reject.reason, "%s", message);
    else
        snprintf(reject.reason, sizeof reject.reason, "refused by the server: %s (code %d)",
                 message, code);
    if (!sl_reject_list_add(&open_block->rejects, &reject))
        state->failed = true;
    bson_free(json);
}

static bool send_batch(sl_worker *worker, sl_batch *batch) {
    const sl_job *job = worker->job;
    sl_run *run = worker->run;
    if (batch->documents == 0)
        return true;
    sl_stage_enter(worker->counters, STAGE_PACING);
    sl_rate_limit_wait(run->rate_limit, batch->documents, &run->stop);
    sl_stage_enter(worker->counters, STAGE_SENDING);
    for (size_t i = 0; i < batch->segment_count; i++) { /* on_refused subtracts the refused ones */
        if (batch->segments[i].documents > 0)
            batch->segments[i].open_block->inserted += batch->segments[i].documents;
    }
    sl_batch_result result = {0};
    sl_refusals refusals = {.worker = worker, .batch = batch};
    int64_t start = sl_clock_ns();
    bool ok = worker->sink_type->send(worker->outlet, batch, &result, on_refused, &refusals,
                                      &worker->error);
    int64_t answered = sl_clock_ns();
    sl_stage_enter(worker->counters, STAGE_PARSING);
    sl_histogram_add(&run->latencies[worker->index], (uint64_t)(answered - start));
    sl_count(&worker->counters->retries, result.retries);
    if (!ok)
        return false;
    if (refusals.failed)
        return sl_error_memory(&worker->error, "keeping rejects");
    sl_count(&worker->counters->inserted, result.inserted);
    sl_count(&worker->counters->already_stored, result.already_stored);
    sl_count(&worker->counters->changed, result.changed);
    sl_count(&worker->counters->server_rejects, result.rejected);
    sl_count(&worker->counters->bson_bytes, batch->used);
    sl_count(&worker->counters->batches, 1);
    atomic_store_explicit(&worker->counters->answered_ns, answered, memory_order_relaxed);
    if (batch->shard < job->shards)
        atomic_fetch_add_explicit(&run->shard_documents[batch->shard], result.inserted,
                                  memory_order_relaxed);
    for (size_t i = 0; i < batch->segment_count; i++) {
        sl_open_block *open_block = batch->segments[i].open_block;
        if (batch->segments[i].documents == 0) /* its block may have been completed already */
            continue;
        open_block->waiting -= batch->segments[i].documents;
        ok = ok && sl_block_complete(worker, open_block);
    }
    sl_batch_empty(batch);
    return ok;
}

/* ---- documents to their batches ---- */

bool sl_delivery_init(sl_worker *worker, sl_error *error) {
    const sl_job *job = worker->job;
    worker->batches = calloc(job->shards + 1, sizeof *worker->batches);
    size_t room = sl_load_batch_room(job->config, job->shards);
    size_t scratch = room < SCRATCH_BYTES ? room : SCRATCH_BYTES;
    return (worker->batches && sl_batch_init(&worker->scratch, job->shards, scratch)) ||
           sl_error_memory(error, "starting workers");
}

void sl_delivery_release(sl_worker *worker) {
    for (uint32_t i = 0; worker->batches && i <= worker->job->shards; i++)
        sl_batch_clear(&worker->batches[i]);
}

void sl_delivery_clear(sl_worker *worker) {
    sl_delivery_release(worker);
    free(worker->batches);
    sl_batch_clear(&worker->scratch);
}

sl_batch *sl_delivery_batch(sl_worker *worker, uint32_t shard) {
    sl_batch *batch = &worker->batches[shard];
    if (batch->bytes ||
        sl_batch_init(batch, shard, sl_load_batch_room(worker->job->config, worker->job->shards)))
        return batch;
    sl_error_memory(&worker->error, "making a batch");
    return NULL;
}

static bool add_to_batch(sl_worker *worker, sl_batch *batch, sl_open_block *open_block,
                         const uint8_t *document, size_t length, const uint64_t *offset) {
    /* >=: the limit may have been lowered below the number of documents. */
    bool full = batch->documents >= sl_run_batch_documents(worker->run) ||
                length > batch->room - batch->used;
    if (full && !send_batch(worker, batch))
        return false;
    return sl_batch_add(batch, open_block, document, length, offset) ||
           sl_error_memory(&worker->error, "filling a batch");
}

/* Copies the documents of the scratch, all of one block, to the batches of their owners. */
static bool copy_to_batches(sl_worker *worker) {
    const sl_job *job = worker->job;
    const sl_destination *destination = worker->destination;
    sl_batch *from = &worker->scratch;
    const uint8_t *end = from->bytes + from->used;
    const uint64_t *offset = from->offsets; /* of the document at `at`, or NULL */
    bool ok = true;
    for (const uint8_t *at = from->bytes; ok && at < end; offset = offset ? offset + 1 : NULL) {
        uint32_t length = sl_bson_length(at), shard;
        if (!sl_shard_map_owner_of(destination->map, at, &worker->owners, &shard))
            shard = job->shards;
        sl_batch *to = sl_delivery_batch(worker, shard);
        ok = to && add_to_batch(worker, to, from->segments[0].open_block, at, length, offset);
        at += length;
    }
    sl_batch_empty(from);
    return ok;
}

bool sl_deliver(sl_worker *worker, sl_batch *batch) {
    return batch == &worker->scratch ? copy_to_batches(worker) : send_batch(worker, batch);
}

bool sl_deliver_old(sl_worker *worker) {
    for (uint32_t i = 0; i <= worker->job->shards; i++) {
        sl_batch *batch = &worker->batches[i];
        if (batch->documents > 0 && sl_seconds_since(batch->since) > BATCH_SECONDS_MOST &&
            !send_batch(worker, batch))
            return false;
    }
    return true;
}

bool sl_deliver_all(sl_worker *worker) {
    for (uint32_t i = 0; i <= worker->job->shards; i++) {
        if (!send_batch(worker, &worker->batches[i]))
            return false;
    }
    return true;
}
