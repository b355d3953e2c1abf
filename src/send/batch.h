/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: documents to be sent to one shard, and the blocks they came from. A batch belongs to one
 * thread. */
#ifndef SHARDLOAD_BATCH_H
#define SHARDLOAD_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "util/error.h"

struct sl_open_block; /* a block whose documents have not all been acknowledged; see worker.h */

/* Consecutive documents of a batch that came from one block. */
typedef struct sl_batch_segment {
    struct sl_open_block *open_block;
    uint32_t documents;
} sl_batch_segment;

typedef struct sl_batch {
    uint32_t
        shard; /* index of the shard; or the job's number of shards if only the router can find the
                  owners */
    uint32_t documents;
    uint8_t *bytes; /* `used` bytes of `room`, then SL_SLACK more */
    size_t used;
    size_t room;
    uint64_t *offsets; /* per document: offset of its record; NULL unless they are kept */
    size_t offsets_room;
    int64_t since; /* when its first document was added, by sl_clock_ns */
    sl_batch_segment *segments;
    size_t segment_count;
    size_t segment_room;
} sl_batch;

bool sl_batch_init(sl_batch *batch, uint32_t shard, size_t room);
void sl_batch_clear(sl_batch *batch);
void sl_batch_empty(sl_batch *batch);
/* Documents added from now on come from this block. False without memory. */
bool sl_batch_begin_segment(sl_batch *batch, struct sl_open_block *open_block);
/* Grows the batch to at least `need` bytes in total. False without memory. */
bool sl_batch_make_room(sl_batch *batch, size_t need);
/* Makes room for the offsets of the records of at least `count` documents. False without memory. */
bool sl_batch_keep_offsets(sl_batch *batch, size_t count);
/* Sets `views` (uninitialised, one per document) to the documents of the batch. False with error if
 * one is not BSON, which is a defect of this program. */
bool sl_batch_view(const sl_batch *batch, bson_t *views, sl_error *error);
/* Appends a copy of a document of the block. Grows the batch if the document does not fit: the
 * caller sends a full batch first. `offset` (may be NULL): the offset of its record, which is
 * stored with it. False without memory. */
bool sl_batch_add(sl_batch *batch, struct sl_open_block *open_block, const uint8_t *document,
                  size_t length, const uint64_t *offset);

#endif
