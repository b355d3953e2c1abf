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
 * where it is counted in a segment of its block. send_batch empties a batch only after a result
 * that adds up to its number of documents; otherwise an error ends the load. */
#include "worker.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "format/delimited.h"
#include "format/head.h"
#include "job/sources.h"
#include "send/duplicates.h"
#include "send/writer.h"
#include "util/clock.h"
#include "util/context.h"

#include "embedding.h"

/* ==== open blocks ====
 *
 * A block is open from the time a worker draws it until the outcome of each of its records is
 * known.
 *
 * The documents of a block are spread over batches of one worker, so an open block belongs to that
 * worker and needs no lock. It is completed when it has been parsed to its end and no batch holds
 * one of its documents any more. Only then are its documents and rejects counted, and the block
 * added to the journal. Whatever ends the load, a block is completed as a unit or not at all, and a
 * resumed load sends every block again that was not completed. */

sl_open_block *sl_block_begin(sl_worker *worker, const sl_source_block *block) {
    sl_open_block *open_block = worker->free_blocks;
    if (open_block) {
        worker->free_blocks = open_block->next;
    } else {
        open_block = calloc(1, sizeof *open_block);
        if (!open_block) {
            sl_error_memory(&worker->error, "reading a block");
            return NULL;
        }
    }
    size_t length = block->entry ? strlen(block->entry) + 1 : 0;
    if (length > open_block->entry_name_room) {
        char *entry_name = realloc(open_block->entry_name, length);
        if (!entry_name) {
            open_block->next = worker->free_blocks;
            worker->free_blocks = open_block;
            sl_error_memory(&worker->error, "reading a block");
            return NULL;
        }
        open_block->entry_name = entry_name;
        open_block->entry_name_room = length;
    }
    char *entry_name = open_block->entry_name;
    size_t entry_name_room = open_block->entry_name_room;
    sl_reject_list rejects = open_block->rejects; /* empty, with its memory */
    *open_block = (sl_open_block){
        .next = worker->open_blocks,
        .link = &worker->open_blocks,
        .block = *block,
        .has_text = block->text.bytes != NULL,
        .first_id = sl_document_id(worker->job->sources[block->source].number, block->offset),
        .rejects = rejects,
        .entry_name = entry_name,
        .entry_name_room = entry_name_room,
    };
    if (length > 0)
        open_block->block.entry = memcpy(entry_name, block->entry, length);
    if (open_block->next)
        open_block->next->link = &open_block->next;
    worker->open_blocks = open_block;
    sl_count(&worker->counters->text_begun, block->text.length);
    return open_block;
}

static void recycle(sl_worker *worker, sl_open_block *open_block) {
    *open_block->link = open_block->next;
    if (open_block->next)
        open_block->next->link = open_block->link;
    worker->copied -= open_block->text_length;
    free(open_block->text);
    open_block->text = NULL;
    open_block->text_room = 0;
    open_block->next = worker->free_blocks;
    worker->free_blocks = open_block;
}

bool sl_block_complete(sl_worker *worker, sl_open_block *open_block) {
    if (!open_block->parsed || open_block->waiting > 0)
        return true;
    if (open_block->taken > 0 && !worker->job->own_ids &&
        !sl_resume_taken_fits(worker->job, &open_block->block, &worker->error))
        return false;
    sl_journal_entry entry = {
        .source = open_block->block.source,
        .sequence = open_block->block.sequence,
        .offset = open_block->block.offset,
        .entry_start = open_block->block.entry_start,
        .check = open_block->check,
        .text_bytes = open_block->has_text ? open_block->block.text.length : 0,
        .inserted = open_block->inserted,
        .already_stored = open_block->already_stored,
        .server_rejects = open_block->refused,
        .taken = open_block->taken,
        .refused_ids = open_block->refused_ids,
        .borders = open_block->block.unselected ? 0 : open_block->block.borders,
        .entry = open_block->block.entry_number,
        .counts = open_block->counts,
    };
    sl_ledger_add(worker->ledger, worker->job, &entry);
    bool ok = sl_rejects_block_done(worker->ledger->rejects, &open_block->block, &entry,
                                    &open_block->rejects, &worker->error) &&
              sl_resume_blocks_done(worker->ledger, &worker->error);
    sl_count(&worker->counters->text_completed, open_block->block.text.length);
    recycle(worker, open_block);
    return ok;
}

/* The number of documents whose outcome is not known. Called after the thread has ended. */
static uint64_t blocks_waiting(const sl_worker *worker) {
    uint64_t waiting = 0;
    for (const sl_open_block *open_block = worker->open_blocks; open_block;
         open_block = open_block->next)
        waiting += open_block->waiting;
    return waiting;
}

void sl_blocks_clear(sl_worker *worker) {
    sl_open_block *lists[] = {worker->open_blocks, worker->free_blocks};
    for (int i = 0; i < 2; i++) {
        while (lists[i]) {
            sl_open_block *next = lists[i]->next;
            sl_reject_list_clear(&lists[i]->rejects);
            free(lists[i]->entry_name);
            free(lists[i]->text);
            free(lists[i]);
            lists[i] = next;
        }
    }
    free(worker->again.text);
}

/* ==== delivery ====
 *
 * Adds a worker's documents to the batches of their shards, sends the batches, and counts the
 * outcome of each document.
 *
 * The router forwards a bulk insert unchanged if all its documents belong to one shard; otherwise
 * it splits it into one command per shard. So there is one batch per shard, and one more for
 * documents whose owner is not known, so that the router need not split the other batches.
 *
 * Memory: a batch is allocated when it is first used. The batches of a worker's shards have room
 * for --batch-bytes in total, or for 1 MiB each where that is more (beyond 16 shards, by default);
 * the batch for the router has as much room as one of them. The driver copies what is sent, so a
 * worker holds twice --batch-bytes at most, and COPIED_BYTES of text. A document that is larger
 * than its batch enlarges it.
 *
 * Time: a batch that has been filling for BATCH_SECONDS_MOST is sent although it is not full, so
 * that a shard with few documents does not delay the completion of blocks. */

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

/* ---- the text of refused documents ----
 *
 * When a document is refused, the text of its block is often no longer in memory. A block of a
 * plain file is then read again. Of other sources, an open block has a copy of its text, unless no
 * document can be refused but for its _id; the worker sends all batches when its copies exceed
 * COPIED_BYTES. */

#define COPIED_BYTES ((size_t)4 << 20)

static bool make_text_room(sl_open_block *open_block, size_t length) {
    if (open_block->text_room >= length + SL_SLACK)
        return true;
    char *text = realloc(open_block->text, length + SL_SLACK);
    if (!text)
        return false;
    open_block->text = text;
    open_block->text_room = length + SL_SLACK;
    return true;
}

static bool is_plain(const sl_job *job, size_t source) {
    return sl_source_set_at(job->set, source)->kind == SL_SOURCE_PLAIN;
}

bool sl_text_is_kept(const sl_job *job, const sl_destination *destination, size_t source) {
    const sl_format *format = job->sources[source].format;
    return job->config->sink == SL_SINK_CLUSTER && format && !format->binary &&
           !sl_job_is_generated(job) &&
           (is_plain(job, source) || !destination->created || job->own_ids ||
            job->config->index_count > 0);
}

static bool is_kept(const sl_worker *worker, const sl_open_block *open_block) {
    return sl_text_is_kept(worker->job, worker->destination, open_block->block.source);
}

/* Copies the text of a block that has just been parsed, if it is needed. */
static bool copy_text(sl_worker *worker, sl_open_block *open_block) {
    const sl_text text = worker->block->text;
    if (!is_kept(worker, open_block) || is_plain(worker->job, open_block->block.source))
        return true;
    if (!make_text_room(open_block, text.length))
        return sl_error_memory(&worker->error, "keeping the text of records");
    memcpy(open_block->text, text.bytes, text.length);
    memset(open_block->text + text.length, '\n', SL_SLACK);
    open_block->text_length = text.length;
    worker->copied += text.length;
    return true;
}

/* The text of an open block; length 0 if it is not known any more. */
static sl_text text_of(sl_worker *worker, const sl_open_block *open_block) {
    const sl_source_block *block = &open_block->block;
    sl_open_block *again = &worker->again;
    if (open_block == worker->open_block)
        return worker->block->text;
    if (!is_kept(worker, open_block))
        return (sl_text){0};
    if (open_block->text_length > 0)
        return (sl_text){open_block->text, open_block->text_length};
    const size_t length = block->text.length;
    if (again->text_length == 0 || again->block.source != block->source ||
        again->block.offset != block->offset) {
        again->block = *block;
        again->text_length = make_text_room(again, length) &&
                                     sl_source_text_again(worker->job->set, block->source,
                                                          block->offset, again->text, length)
                                 ? length
                                 : 0;
    }
    return (sl_text){again->text, again->text_length};
}

/* The line of a refused document in its block; found fastest in ascending order. */
static uint32_t line_of(sl_worker *worker, sl_open_block *open_block, uint64_t offset) {
    sl_text text = {0};
    if (open_block->has_text && !worker->job->sources[open_block->block.source].format->binary)
        text = text_of(worker, open_block);
    const uint64_t at = offset - open_block->block.offset;
    if (at >= text.length)
        return SL_REJECT_LINE_UNKNOWN;
    if (at < open_block->counted)
        open_block->counted = open_block->lines = 0;
    open_block->lines += sl_line_feeds(text.bytes + open_block->counted, text.bytes + at);
    open_block->counted = (size_t)at;
    return SL_REJECT_OF_SERVER | open_block->lines;
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
        open_block->refused_ids += sl_id_sum(&view);
        json = sl_document_json(&view);
    }
    const uint64_t *offsets = state->batch->offsets;
    const uint64_t offset = offsets ? offsets[index] : sl_document_id_offset(id);
    sl_reject reject = {.offset = offset,
                        .line = line_of(state->worker, open_block, offset),
                        .record = sl_text_of(json ? json : "")};
    const sl_text text = text_of(state->worker, open_block);
    const uint64_t at = offset - open_block->block.offset;
    /* A stored document with this position as its _id is another version of this record. Loaded
     * from rejected/, the record would have another position, and be stored beside it. */
    const bool versions = fate == FATE_ID_TAKEN && !state->worker->job->own_ids;
    if (at < text.length && !versions && is_kept(state->worker, open_block))
        reject.text = sl_sources_record(state->worker->job, open_block->block.source,
                                        (sl_text){text.bytes + at, text.length - at});
    if (fate == FATE_NOT_FOUND)
        snprintf(reject.reason, sizeof reject.reason, "%s", message);
    else
        snprintf(reject.reason, sizeof reject.reason, "refused by the server: %.550s (code %d)",
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
    atomic_store_explicit(&worker->counters->asked_shard, batch->shard, memory_order_relaxed);
    atomic_store_explicit(&worker->counters->asked_ns, start, memory_order_release);
    bool ok = worker->sink_type->send(worker->outlet, batch, &result, on_refused, &refusals,
                                      &worker->error);
    int64_t answered = sl_clock_ns();
    atomic_store_explicit(&worker->counters->asked_ns, 0, memory_order_relaxed);
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

/* Frees the memory of all batches, which must be empty; they are allocated again when they are
 * used. */
static void delivery_release(sl_worker *worker) {
    for (uint32_t i = 0; worker->batches && i <= worker->job->shards; i++)
        sl_batch_clear(&worker->batches[i]);
}

void sl_delivery_clear(sl_worker *worker) {
    delivery_release(worker);
    free(worker->batches);
    sl_batch_clear(&worker->scratch);
}

/* The batch of a shard; with job->shards, the batch for the router. NULL without memory. */
static sl_batch *delivery_batch(sl_worker *worker, uint32_t shard) {
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
        sl_batch *to = delivery_batch(worker, shard);
        ok = to && add_to_batch(worker, to, from->segments[0].open_block, at, length, offset);
        at += length;
    }
    sl_batch_empty(from);
    return ok;
}

bool sl_deliver(sl_worker *worker, sl_batch *batch) {
    return batch == &worker->scratch ? copy_to_batches(worker) : send_batch(worker, batch);
}

/* Sends batches that have been filling for too long, or whose blocks have too much text. */
static bool deliver_old(sl_worker *worker) {
    if (worker->copied > COPIED_BYTES)
        return sl_deliver_all(worker);
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

/* ==== the worker ==== */

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
    sl_reject located = *reject;
    if (reject->line == SL_REJECT_LINE_UNKNOWN)
        located.line = line_of(worker, worker->open_block, reject->offset);
    if (reject->misread)
        sl_line_ends_error(worker->job, worker->block, reject, &worker->error);
    else if (!sl_reject_list_add(&worker->open_block->rejects, &located))
        sl_error_memory(&worker->error, "keeping rejects");
}

static void on_left_out(sl_sink *sink, const char *column, bool kept) {
    sl_worker *worker = sink->context;
    if (!sl_left_out_add(&worker->run->left_out[worker->index], column, kept, 1))
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
        return delivery_batch(worker, sl_route_of_block(job, destination, first_id));
    case SL_ROUTE_BY_KEY:
        return &worker->scratch;
    default:
        return delivery_batch(worker, job->shards > 1 ? job->shards : 0);
    }
}

/* The word of a total that is the first field of a line; NULL: it has none. */
static const char *total_of(sl_text line) {
    static const char *const words[] = {
        "total", "totals",        "grand total",    "subtotal", "sum",
        "summe", "gesamt",        "gesamtsumme",    "totale",   "totaal",
        "suma",  "summa",         "insgesamt",      "razem",    "total général",
        "Итого", "total general", "totale generale"};
    size_t at = 0;
    while (at < line.length && strchr(" ;,|\t\"", line.bytes[at]))
        at++;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t end = at + strlen(words[i]);
        if (end <= line.length && strncasecmp(line.bytes + at, words[i], end - at) == 0 &&
            (end == line.length || memchr(";,|\t\":\r\n", line.bytes[end], 8)))
            return words[i];
    }
    return NULL;
}

/* Has a text been cut off within its last line? True if a plain file's size is a multiple of 4096,
 * or if the 10 to 20 lines before the last all end with the same byte, which is no delimiter, and
 * as many letters or digits after it (12,50; 2024-01-31; a quote), and the last line has another
 * byte or fewer letters and digits. `*lines`: the lines that were compared, 21 at most. */
static bool looks_cut(const sl_source *facts, const sl_dialect *d, sl_text text, unsigned *lines) {
    int before[2] = {0}; /* [0]: of the last line; [1]: of the lines before it */
    size_t after[2] = {0}, end = text.length;
    bool alike = true;
    const char *line_end = text.bytes;
    for (*lines = 0; *lines < 21 && (line_end = memrchr(text.bytes, '\n', end)); ++*lines) {
        const size_t begin = (size_t)(line_end + 1 - text.bytes);
        end -= end > begin && text.bytes[end - 1] == '\r';
        size_t at = end;
        while (at > begin && isalnum((unsigned char)text.bytes[at - 1]))
            at--;
        const int found = at > begin ? (unsigned char)text.bytes[at - 1] : 0;
        if (*lines > 1)
            alike = alike && found == before[1] && end - at == after[1];
        before[*lines > 0] = found;
        after[*lines > 0] = end - at;
        end = begin - 1;
    }
    /* A word or number between delimiters may have any length. */
    alike = alike && before[1] && before[1] != (d->blanks ? ' ' : (unsigned char)d->delimiter);
    return (*lines > 0 && facts->kind == SL_SOURCE_PLAIN && facts->stored_bytes % 4096 == 0) ||
           (*lines > 10 && alike && (before[0] != before[1] || after[0] < after[1]));
}

/* Warns of a last line that may hold totals, and, if the last line has no line end, of a text that
 * may have been cut off. */
static void check_end(const sl_worker *worker, const sl_source_block *block,
                      const sl_dialect *dialect) {
    const sl_source *facts = sl_source_set_at(worker->job->set, block->source);
    const sl_format *format = worker->job->sources[block->source].format;
    const sl_text text = block->text;
    unsigned lines = 0;
    if (!block->last || !text.bytes || text.length == 0 || format->own_ids)
        return;
    const bool open = !memchr("\n\x1A", text.bytes[text.length - 1], 2);
    const bool pipe = facts->kind == SL_SOURCE_PIPE;
    if (open &&
        (pipe || (format == &sl_format_delimited && looks_cut(facts, dialect, text, &lines))))
        sl_log_warning("%s: the last line has no line end%s: if the program that wrote %s was "
                       "stopped, the last record is not complete, and others are missing",
                       facts->shown, pipe ? "" : ", and looks cut off",
                       pipe ? "the text" : "or copied the file");
    else if (lines > 0 && sl_source_set_count(worker->job->set) == 1)
        sl_log_info("%s: the last line has no line end; is the file complete?", facts->shown);
    size_t end = text.length;
    while (end > 0 && strchr(" \t\r\n\x1A", text.bytes[end - 1]))
        end--;
    const char *before = memrchr(text.bytes, '\n', end);
    const size_t begin = before ? (size_t)(before + 1 - text.bytes) : 0;
    const char *total = format->takes_schema && !facts->schema
                            ? total_of((sl_text){text.bytes + begin, end - begin})
                            : NULL;
    if (total)
        sl_log_warning(
            "%s: the last record begins with the word %s: if it is a total, remove its line from "
            "the file, and its document from the collection",
            facts->shown, total);
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
        if (block->entry &&
            !sl_reject_list_begin(&open_block->rejects,
                                  sl_format_header(job->sources[block->source].format, dialect)))
            return sl_error_memory(&worker->error, "keeping rejects");
        if (!worker->target || !begin_segment(worker) || !batch_to_sink(worker))
            return false;
        check_end(worker, block, dialect);
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
    worker->open_block = NULL;
    if (open_block->waiting > 0)
        ok = copy_text(worker, open_block) && ok;
    open_block->parsed = ok && !worker->error.code;
    if (open_block->parsed && ledger->journal)
        open_block->check = sl_resume_check(block);
    if (open_block->parsed && job->config->divided)
        atomic_fetch_add_explicit(&job->config->divided->text, sl_divided_text(block),
                                  memory_order_relaxed);
    return open_block->parsed && sl_block_complete(worker, open_block);
}

/* ---- blocks that are held back ----
 *
 * If the text of a source may differ from that of the earlier run (it is a pipe, for example), the
 * blocks in the journal show it. So no block of the source is sent before all these blocks have
 * been compared. The earlier run completed its blocks in any order: those that are missing before
 * its last one are held in memory meanwhile, as many as HELD_BYTES; more are sent. They are parsed
 * by the worker that compares the last block, or by one that holds a block back just then: each
 * looks for them after its block. */

#define HELD_BYTES ((size_t)64 << 20)

typedef struct sl_held {
    struct sl_held *next;
    sl_source_block block;
    const sl_dialect *dialect;
    char *entry, *text;
} sl_held;

static void held_free(sl_held *held) {
    free(held->entry);
    free(held->text);
    free(held);
}

static size_t held_length(const sl_source_block *block) {
    return block->known_length > block->text.length ? block->known_length : block->text.length;
}

/* Holds a block back; false: it cannot be held. */
static bool hold(sl_run *run, const sl_source_block *block, const sl_dialect *dialect) {
    const size_t length = block->text.length;
    const size_t known = held_length(block), slack = length + SL_SLACK;
    sl_held *held = calloc(1, sizeof *held);
    char *text = calloc(1, known + SL_SLACK), *entry = block->entry ? strdup(block->entry) : NULL;
    bool ok = held && text && (entry || !block->entry);
    if (ok) {
        *held = (sl_held){.block = *block, .dialect = dialect, .entry = entry, .text = text};
        memcpy(text, block->text.bytes, known > slack ? known : slack);
        held->block.text.bytes = text;
        held->block.entry = entry;
        pthread_mutex_lock(&run->held_lock);
        ok = run->held_bytes + known <= HELD_BYTES;
        if (ok) {
            held->next = run->held;
            run->held = held;
            run->held_bytes += known;
        }
        pthread_mutex_unlock(&run->held_lock);
    }
    if (!ok) {
        free(text);
        free(entry);
        free(held);
    }
    return ok;
}

/* Takes a block whose source has been compared; NULL: there is none. */
static sl_held *take_held(sl_run *run) {
    pthread_mutex_lock(&run->held_lock);
    sl_held **link = &run->held, *taken;
    while (*link && atomic_load(&run->job->sources[(*link)->block.source].uncompared) > 0)
        link = &(*link)->next;
    taken = *link;
    if (taken) {
        *link = taken->next;
        run->held_bytes -= held_length(&taken->block);
    }
    pthread_mutex_unlock(&run->held_lock);
    return taken;
}

static bool finish_block(sl_worker *worker, const sl_source_block *block,
                         const sl_dialect *dialect) {
    bool ok =
        block->done || (sl_resume_block_read(worker->job, worker->ledger, block, &worker->error) &&
                        parse_block(worker, block, block->unselected ? NULL : dialect));
    if (ok)
        sl_sources_done_with(worker->job, block);
    return ok;
}

static bool handle_block(sl_worker *worker, const sl_source_block *block) {
    sl_job *job = worker->job;
    sl_ledger *ledger = worker->ledger;
    sl_run *run = worker->run;
    sl_job_source *source = &job->sources[block->source];
    const sl_dialect *dialect;
    uint64_t rejects_before = rejects_of(worker->counters);
    /* Also for completed blocks: later blocks wait for the dialect from their entry's first
     * block. */
    bool ok = sl_sources_dialect(job, block, &dialect, &worker->error) &&
              sl_resume_block_fits(job, ledger, block, &worker->error);
    bool held = ok && !block->done && block->text.bytes && atomic_load(&source->uncompared) > 0 &&
                hold(run, block, dialect);
    ok = ok && (held || finish_block(worker, block, dialect));
    for (sl_held *other; ok && (other = take_held(worker->run)) != NULL; held_free(other))
        ok = finish_block(worker, &other->block, other->dialect);
    return ok && deliver_old(worker) &&
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
    delivery_release(worker);
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
    worker->run->undelivered += blocks_waiting(worker);
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
    if (ok && !sink_type->within_load)
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
    for (size_t i = 0; ok && i < sl_source_set_count(job->set) && !atomic_load(&run->stop); i++) {
        const sl_source *source = sl_source_set_at(job->set, i);
        if (atomic_load(&job->sources[i].uncompared) > 0 &&
            (source->kind == SL_SOURCE_PIPE || run->held))
            ok =
                sl_error_set(error, SL_EXIT_SOURCE,
                             "%s: ended before the text that the interrupted run had read; give it "
                             "the full text again",
                             source->shown);
    }
    while (run->held) { /* of a load that was stopped */
        sl_held *next = run->held->next;
        held_free(run->held);
        run->held = next;
    }
    sl_error closing = {0};
    if (sink_type->close && !sink_type->close(shared, &closing) && ok) {
        *error = closing;
        ok = false;
    }
    return ok;
}
