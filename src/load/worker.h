/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker has in hand, shared by its two halves: worker.c reads and parses, delivery.c brings
 * documents to their shards. Everything here belongs to one thread. */
#ifndef SHARDLOAD_WORKER_H
#define SHARDLOAD_WORKER_H

#include "sink.h"

typedef struct sl_worker {
    sl_load *load;
    unsigned index;
    sl_worker_counters *counters;
    sl_reader *reader;
    sl_outlet *outlet;
    /* One per shard, and one more for documents whose shard only the router knows; bytes NULL until
     * it is used. */
    sl_batch *batches;
    sl_batch scratch; /* what is parsed before it is shared out; used when the route is by key */
    sl_owner_cache owners;
    sl_block_account *open_accounts; /* blocks with documents on their way, the latest first */
    sl_block_account *free_accounts;
    sl_error error;

    /* The block in hand. */
    sl_sink sink;
    sl_batch *target; /* what it is parsed into: the batch of its shard, or the scratch */
    sl_block_account *account;
    const sl_source_block *block;
    int64_t stage_since;
} sl_worker;

/* Adds to a counter that this thread alone writes. */
static inline void sl_count(_Atomic uint64_t *counter, uint64_t more) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* worker.c: the time since the last call was spent on `stage`. */
void sl_worker_spent(sl_worker *worker, sl_stage stage);

/* ---- blocks.c; on false the worker's error is set and the load must end ---- */

/* The account of a block that is about to be parsed; NULL without memory. */
sl_block_account *sl_block_begin(sl_worker *worker, const sl_source_block *block);

/* Settles the account if all is known: the block is parsed and no document waits. It must not be
 * touched afterwards. Otherwise nothing happens. */
bool sl_block_settle(sl_worker *worker, sl_block_account *account);

/* Documents of blocks that are not completed, whose outcome is not known. After the thread has ended. */
uint64_t sl_blocks_waiting(const sl_worker *worker);
void sl_blocks_clear(sl_worker *worker);

/* ---- delivery.c; on false the worker's error is set and the load must end ---- */

/* Makes the batches, as yet without room. */
bool sl_delivery_init(sl_worker *worker, sl_error *error);
void sl_delivery_clear(sl_worker *worker);

/* The batch of a shard, or with load->shards the one that is left to the router. NULL when there is
 * no memory. */
sl_batch *sl_delivery_batch(sl_worker *worker, uint32_t shard);

/* Sends a batch and empties it; of the scratch, each document goes into the batch of its owner,
 * and those that are full are sent. */
bool sl_deliver(sl_worker *worker, sl_batch *batch);

/* Sends batches that have been waiting for more documents for too long. */
bool sl_deliver_old(sl_worker *worker);

/* Sends whatever is in a batch. */
bool sl_deliver_rest(sl_worker *worker);

/* Gives the memory of all batches back, which must be empty; they get it again when they are used. */
void sl_delivery_release(sl_worker *worker);

#endif
