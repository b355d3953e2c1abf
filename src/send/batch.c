/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: a buffer of BSON documents for one shard, and the blocks they came from. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "bson/bson_writer.h"
#include "format/format.h"
#include "util/clock.h"
#include "util/grow.h"

bool sl_batch_init(sl_batch *batch, uint32_t shard, size_t room) {
    memset(batch, 0, sizeof *batch);
    batch->shard = shard;
    batch->room = room;
    batch->bytes = malloc(room + SL_SLACK); /* pages that are never written cost nothing */
    return batch->bytes != NULL;
}

void sl_batch_clear(sl_batch *batch) {
    free(batch->bytes);
    free(batch->segments);
    free(batch->offsets);
    memset(batch, 0, sizeof *batch);
}

void sl_batch_empty(sl_batch *batch) {
    batch->documents = 0;
    batch->used = 0;
    batch->segment_count = 0;
}

bool sl_batch_begin_segment(sl_batch *batch, struct sl_open_block *open_block) {
    sl_batch_segment *segments =
        sl_grow(batch->segments, batch->segment_count, &batch->segment_room, sizeof *segments);
    if (!segments)
        return false;
    batch->segments = segments;
    if (batch->documents == 0)
        batch->since = sl_clock_ns();
    if (batch->segment_count > 0 && batch->segments[batch->segment_count - 1].documents == 0)
        batch->segment_count--; /* the last segment has no document */
    batch->segments[batch->segment_count++] = (sl_batch_segment){.open_block = open_block};
    return true;
}

bool sl_batch_make_room(sl_batch *batch, size_t need) {
    if (need <= batch->room)
        return true;
    uint8_t *bytes = realloc(batch->bytes, need + SL_SLACK);
    if (!bytes)
        return false;
    batch->bytes = bytes;
    batch->room = need;
    return true;
}

bool sl_batch_keep_offsets(sl_batch *batch, size_t count) {
    if (count <= batch->offsets_room)
        return true;
    size_t room = batch->offsets_room * 2 > count ? batch->offsets_room * 2 : count;
    uint64_t *offsets = realloc(batch->offsets, room * sizeof *offsets);
    if (!offsets)
        return false;
    batch->offsets = offsets;
    batch->offsets_room = room;
    return true;
}

bool sl_batch_view(const sl_batch *batch, bson_t *views, sl_error *error) {
    const uint8_t *at = batch->bytes;
    for (uint32_t i = 0; i < batch->documents; i++) {
        uint32_t length = sl_bson_length(at);
        if (!bson_init_static(&views[i], at, length))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "internal error: document %u of a batch is not BSON", i);
        at += length;
    }
    return true;
}

bool sl_batch_add(sl_batch *batch, struct sl_open_block *open_block, const uint8_t *document,
                  size_t length, const uint64_t *offset) {
    bool same = batch->segment_count > 0 &&
                batch->segments[batch->segment_count - 1].open_block == open_block;
    if (!sl_batch_make_room(batch, batch->used + length) ||
        (offset && !sl_batch_keep_offsets(batch, (size_t)batch->documents + 1)) ||
        !(same || sl_batch_begin_segment(batch, open_block)))
        return false;
    memcpy(batch->bytes + batch->used, document, length);
    if (offset)
        batch->offsets[batch->documents] = *offset;
    batch->used += length;
    batch->documents++;
    batch->segments[batch->segment_count - 1].documents++;
    return true;
}
