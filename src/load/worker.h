/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: a thread that reads blocks, parses them and sends their documents; its open blocks and
 * its batches. Each worker's state is used by one thread. */
#ifndef SHARDLOAD_WORKER_H
#define SHARDLOAD_WORKER_H

#include "ledger/ledger.h"
#include "run.h"
#include "send/sink.h"

/* A block that is not completed yet, with the outcome of its records so far. Belongs
 * to one worker. */
typedef struct sl_open_block {
    struct sl_open_block *next, **link; /* in the list of open blocks; *link is this block */
    sl_source_block block;              /* its text is not valid after parsing */
    char *entry_name;                   /* copy of the entry's name, to which block.entry points */
    size_t entry_name_room;
    int64_t first_id;       /* an id within the block's MiB */
    uint64_t check;         /* hash of the text, as in the journal */
    sl_parse_counts counts; /* complete once it is parsed */
    bool has_text;          /* false for generated records */
    bool parsed;
    uint32_t waiting; /* documents in batches that have not been acknowledged */
    uint32_t inserted, already_stored, changed, refused;
    uint32_t taken;         /* of the refused documents: another document has their _id */
    uint64_t refused_ids;   /* of the refused documents; see sl_id_sum */
    sl_reject_list rejects; /* the parser's and the server's */
    size_t counted;         /* bytes of its text, which have this many lines */
    uint32_t lines;
    char *text; /* copy of its text, for the records of refused documents; or its memory only */
    size_t text_length, text_room;
} sl_open_block;

typedef struct sl_worker {
    sl_job *job;
    sl_destination *destination;
    sl_ledger *ledger;
    sl_run *run;
    const sl_sink_type *sink_type;
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
    size_t copied;       /* bytes of the texts that the open blocks hold */
    sl_open_block again; /* a block of a plain file that was read again; only `block` and `text` */
    sl_error error;

    /* The current block. */
    sl_sink sink;
    sl_batch *target; /* receives its documents: the batch of its shard, or the scratch */
    sl_open_block *open_block;
    const sl_source_block *block;
} sl_worker;

/* Starts the run's threads, which send the documents of the job to outlets of this type,
 * and returns when all have ended. Before the call, the job must have its ranges, the run its
 * counters, and the ledger its accounts and reject files. `tick` as for sl_run_threads. */
bool sl_workers_run(sl_run *run, sl_destination *destination, sl_ledger *ledger,
                    const sl_sink_type *sink_type, void (*tick)(void *context), void *context,
                    sl_error *error);

/* ---- open blocks; on false the worker's error is set and the load must end ---- */

/* Adds a block that is about to be parsed to the open ones; NULL without memory. */
sl_open_block *sl_block_begin(sl_worker *worker, const sl_source_block *block);

/* Completes a block if it is parsed and all its documents are acknowledged; the block must not be
 * used afterwards. Otherwise does nothing. */
bool sl_block_complete(sl_worker *worker, sl_open_block *open_block);

void sl_blocks_clear(sl_worker *worker);

/* Is the text of a source's refused documents known, so that it is written to rejected/? */
bool sl_text_is_kept(const sl_job *job, const sl_destination *destination, size_t source);

/* ---- delivery; on false the worker's error is set and the load must end ---- */

/* Creates the batches, which are allocated when they are used. */
bool sl_delivery_init(sl_worker *worker, sl_error *error);
void sl_delivery_clear(sl_worker *worker);

/* Sends a batch and empties it. Each document of the scratch is copied to the batch of its owner;
 * full batches are sent. */
bool sl_deliver(sl_worker *worker, sl_batch *batch);

/* Sends all batches that hold documents. */
bool sl_deliver_all(sl_worker *worker);

#endif
