/* SPDX-License-Identifier: Apache-2.0 */
/* Batches, and the sinks without a server: the null sink, and a BSON dump. */
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_writer.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/grow.h"
#include "util/private_file.h"

/* ---- batches ---- */

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

/* ---- the null sink ---- */

static bool null_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                      refusal_handler refused, void *context, sl_error *error) {
    (void)outlet, (void)refused, (void)context, (void)error;
    result->inserted = batch->documents;
    return true;
}

const sl_sink_type sl_sink_null = {.name = "null", .send = null_send};

/* ---- the BSON dump: a file of consecutive documents ---- */

/* All workers use the same outlet. */
struct sl_outlet {
    const char *path;
    int file;
    pthread_mutex_t lock; /* held while one batch is written; the order of batches is arbitrary */
};

/* Standard output that was closed at the start is open for reading only (program.c). */
static int open_output(void) {
    sl_context_results_to_screen();
    if ((fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) != O_RDONLY)
        return dup(STDOUT_FILENO);
    errno = EBADF;
    return -1;
}

static bool file_open(const sl_sending *sending, void **shared, sl_error *error) {
    sl_outlet *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "opening the BSON file");
    made->path = sending->config->sink_path;
    pthread_mutex_init(&made->lock, NULL);
    bool standard = strcmp(made->path, "-") == 0;
    made->file = standard ? open_output() : sl_output_file_open(made->path, error);
    if (made->file < 0) {
        if (standard)
            sl_error_errno(error, SL_EXIT_USAGE, "cannot write standard output");
        free(made);
        return false;
    }
    *shared = made;
    return true;
}

static bool file_close(void *shared, sl_error *error) {
    sl_outlet *file = shared;
    if (!file)
        return true;
    bool ok =
        close(file->file) == 0 || sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                                               "cannot write %s: %s", file->path, strerror(errno));
    pthread_mutex_destroy(&file->lock);
    free(file);
    return ok;
}

static bool file_send(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                      refusal_handler refused, void *context, sl_error *error) {
    (void)refused, (void)context;
    bool ok = true;
    pthread_mutex_lock(&outlet->lock);
    if (!sl_write_all(outlet->file, batch->bytes, batch->used))
        ok = sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE), "cannot write %s: %s",
                          outlet->path, strerror(errno));
    pthread_mutex_unlock(&outlet->lock);
    result->inserted = batch->documents;
    return ok;
}

const sl_sink_type sl_sink_bson = {
    .name = "bson",
    .open = file_open,
    .close = file_close,
    .send = file_send,
};
