/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a worker, shared by worker.c (reads and parses), blocks.c (open blocks) and
 * delivery.c (batches). Everything here belongs to one thread. */
#ifndef SHARDLOAD_WORKER_H
#define SHARDLOAD_WORKER_H

#include "sink.h"

typedef struct sl_worker {
    sl_load *load;
    unsigned index;
    sl_worker_counters *counters;
    sl_reader *reader;
    sl_outlet *outlet;
    /* One per shard, and a last one for documents whose shard only the router can find; bytes NULL
     * until it is used. */
    sl_batch *batches;
    sl_batch scratch; /* if routed by key: parsed documents, until copied to batches */
    sl_owner_cache owners;
    sl_open_block *open_blocks; /* the latest first */
    sl_open_block *free_blocks;
    sl_error error;

    /* The current block. */
    sl_sink sink;
    sl_batch *target; /* receives its documents: the batch of its shard, or the scratch */
    sl_open_block *open_block;
    const sl_source_block *block;
    int64_t stage_since;
} sl_worker;

/* Adds to a counter that only this thread writes. */
static inline void sl_count(_Atomic uint64_t *counter, uint64_t more) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* worker.c: adds the time since the last call to `stage`. */
void sl_worker_spent(sl_worker *worker, sl_stage stage);

/* ---- blocks.c; on false the worker's error is set and the load must end ---- */

/* Adds a block that is about to be parsed to the open ones; NULL without memory. */
sl_open_block *sl_block_begin(sl_worker *worker, const sl_source_block *block);

/* Completes a block if it is parsed and all its documents are acknowledged; the block must not be
 * used afterwards. Otherwise does nothing. */
bool sl_block_complete(sl_worker *worker, sl_open_block *open_block);

/* The number of documents whose outcome is not known. Called after the thread has ended. */
uint64_t sl_blocks_waiting(const sl_worker *worker);
void sl_blocks_clear(sl_worker *worker);

/* ---- delivery.c; on false the worker's error is set and the load must end ---- */

/* Creates the batches, which are allocated when they are used. */
bool sl_delivery_init(sl_worker *worker, sl_error *error);
void sl_delivery_clear(sl_worker *worker);

/* The batch of a shard; with load->shards, the batch for the router. NULL without memory. */
sl_batch *sl_delivery_batch(sl_worker *worker, uint32_t shard);

/* Sends a batch and empties it. Each document of the scratch is copied to the batch of its owner;
 * full batches are sent. */
bool sl_deliver(sl_worker *worker, sl_batch *batch);

/* Sends batches that have been filling for too long. */
bool sl_deliver_old(sl_worker *worker);

/* Sends all batches that hold documents. */
bool sl_deliver_all(sl_worker *worker);

/* Frees the memory of all batches, which must be empty; they are allocated again when they are
 * used. */
void sl_delivery_release(sl_worker *worker);

#endif
