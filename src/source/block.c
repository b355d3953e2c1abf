/* SPDX-License-Identifier: Apache-2.0 */
/* Readers: any number of threads take blocks of complete lines from the set.
 *
 * A plain file is split by arithmetic: the thread that draws block k reads its bytes itself.
 * Threads share nothing but the counter under the set's lock. Generated records are split in the
 * same way; for them, no bytes are read.
 *
 * A compressed file, an archive or a pipe is sequential. The thread that begins one continues with
 * it until its end; a thread for which no unread source is left joins a sequential source that is
 * still open. Threads take blocks under that source's own lock, and each inflates into its own
 * buffer, so no thread is used for copying only. With many files each thread inflates a different
 * file; with one large file the threads take turns inflating, while the other threads parse and
 * send.
 *
 * Sources are begun in this order: first the sequential ones, the largest first, so that those
 * begun last are small and all threads finish at about the same time; then plain files, of which
 * any number of threads can share every block. The order is computed once, when the first block is
 * drawn. Indexes, ids and sequences do not depend on it.
 *
 * A file found in a folder may not have been opened yet; it counts as sequential until it is drawn.
 * The thread that draws it opens it without the set's lock to detect its kind, and draws again. Two
 * threads may do so for the same file at the same time; both write the same kind.
 *
 * Locks: the set's lock is never held while reading. It may be taken while a source's lock is held
 * (to take over a pipe), never the other way round. A sequential source is added to the table of
 * open sources when it is drawn, so that the next thread finds it there and does not consider the
 * set finished; its file is opened later, under its own lock. `users` counts, under the set's lock,
 * the readers that hold a pointer to it; the last reader that releases it frees it. Readers release
 * a source when it has ended, or when they are destroyed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/document_id.h"
#include "util/grow.h"
#include "util/read_file.h"

#include "identity.h"
#include "reader.h"

static void release(sl_source_set *set, sl_open_source *open);

bool sl_reader_create(sl_source_set *set, sl_reader **result, sl_error *error) {
    sl_reader *reader = calloc(1, sizeof *reader);
    *result = reader;
    if (!reader)
        return sl_error_memory(error, "starting readers");
    reader->set = set;
    reader->file = -1;
    reader->room = SL_BLOCK_BYTES + SL_LOOKAHEAD;
    reader->buffer = malloc(reader->room + SL_SLACK);
    if (reader->buffer)
        return true;
    sl_reader_destroy(reader);
    *result = NULL;
    return sl_error_memory(error, "starting readers");
}

void sl_reader_destroy(sl_reader *reader) {
    if (!reader)
        return;
    if (reader->open)
        release(reader->set, reader->open);
    if (reader->file >= 0)
        close(reader->file);
    free(reader->buffer);
    free(reader);
}

const sl_reader_times *sl_reader_spent(const sl_reader *reader) {
    return &reader->times;
}

/* ---- splittable sources ---- */

static bool open_plain(sl_reader *reader, size_t source, sl_error *error) {
    if (reader->file >= 0 && reader->file_source == source)
        return true;
    if (reader->file >= 0)
        close(reader->file);
    const sl_source *from = &reader->set->states[source].source;
    reader->file = open(from->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    reader->file_source = source;
    if (reader->file >= 0)
        return sl_identity_check_open(reader->set, source, reader->file, error);
    sl_error_errno(error, SL_EXIT_SOURCE, "%s", from->shown);
    return sl_identity_check_path(reader->set, source, error) && false;
}

/* Reads exactly `length` bytes at `offset` to buffer + `at`. Fails when the file has changed. */
static bool read_at(sl_reader *reader, size_t at, uint64_t offset, size_t length, sl_error *error) {
    if (!sl_reader_grow(reader, at + length, error))
        return false;
    const char *path = reader->set->states[reader->file_source].source.shown;
    int64_t start = sl_clock_ns();
    size_t got = sl_read_at(reader->file, reader->buffer + at, length, offset);
    unsigned long long end = offset + got;
    if (got < length && errno != 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s: cannot be read at byte %llu", path, end);
    if (got < length)
        return sl_identity_check_open(reader->set, reader->file_source, reader->file, error) &&
               sl_error_set(error, SL_EXIT_SOURCE, "%s: cannot be read after byte %llu", path, end);
    if (reader->set->states[reader->file_source].source.cr_lines)
        sl_source_replace_cr(reader->buffer + at, length);
    reader->times.reading += sl_clock_ns() - start;
    return sl_identity_check_open(reader->set, reader->file_source, reader->file, error);
}

/* Reads the lines that begin in [index MiB, index+1 MiB): those after the first line end at or
 * after the byte before the block, up to the first line end at or after the block's last byte. */
static sl_read_result read_block(sl_reader *reader, size_t source, uint64_t index,
                                 sl_source_block *block, sl_error *error) {
    uint64_t size = reader->set->states[source].source.stored_bytes;
    uint64_t start = index << SL_BLOCK_BITS;
    uint64_t end = size - start > SL_BLOCK_BYTES ? start + SL_BLOCK_BYTES : size;
    uint64_t from = start > 0 ? start - 1 : 0; /* buffer[0] is this byte of the file */
    *block =
        (sl_source_block){.source = source,
                          .sequence = index,
                          .offset = start,
                          .text = {reader->buffer, 0},
                          .entry_start = index == 0,
                          .last = end == size,
                          .done = sl_source_block_is_done(&reader->set->states[source], index)};
    if (size == 0)
        return SL_READ_BLOCK;
    block->unselected = !sl_source_set_selects(reader->set, source, index, start);
    if (block->unselected) {
        atomic_fetch_add_explicit(&reader->set->consumed_bytes, end - start, memory_order_relaxed);
        return SL_READ_BLOCK;
    }
    if (reader->set->states[source].source.kind == SL_SOURCE_GENERATED) {
        block->text = (sl_text){NULL, (size_t)(end - start)};
        atomic_fetch_add_explicit(&reader->set->consumed_bytes, end - start, memory_order_relaxed);
        return SL_READ_BLOCK;
    }
    if (!open_plain(reader, source, error))
        return SL_READ_FAILED;

    size_t length = (size_t)(end - from);
    size_t more = size - end < 512 ? (size_t)(size - end) : 512; /* usually contains the remainder
                                                                    of the last line */
    if (!read_at(reader, 0, from, length + more, error))
        return SL_READ_FAILED;
    atomic_fetch_add_explicit(&reader->set->consumed_bytes, end - start, memory_order_relaxed);

    size_t first = 0;
    if (start > 0) {
        char *line_end = memchr(reader->buffer, '\n', length - 1);
        block->text.bytes = reader->buffer;
        if (!line_end)
            return SL_READ_BLOCK; /* the block lies within a line that began before it */
        first = (size_t)(line_end - reader->buffer) + 1;
    }
    size_t searched = length - 1;
    size_t filled = length + more;
    for (;;) {
        char *line_end = memchr(reader->buffer + searched, '\n', filled - searched);
        if (line_end) {
            filled = (size_t)(line_end - reader->buffer) + 1;
            break;
        }
        searched = filled;
        if (from + filled == size || filled - first > SL_BLOCK_BYTES + SL_RECORD_BYTES_MAX)
            break;
        more = size - from - filled < SL_LOOKAHEAD ? (size_t)(size - from - filled) : SL_LOOKAHEAD;
        if (!read_at(reader, filled, from + filled, more, error))
            return SL_READ_FAILED;
        filled += more;
    }
    block->offset = from + first;
    block->text = (sl_text){reader->buffer + first, filled - first};
    return SL_READ_BLOCK;
}

/* ---- what to read next ---- */

/* The source to read next. All zero: none is left. */
typedef struct draw {
    sl_open_source *open; /* a sequential source, to take the next block of */
    bool splittable;      /* read block `block` of source `source` */
    bool unopened;        /* detect the kind of source `source`, then draw again */
    size_t source;
    uint64_t block;
} draw;

/* Adds a sequential source, with one user, to the table. The set's lock is held. NULL: no
 * memory. */
static sl_open_source *add_open(sl_source_set *set, size_t source) {
    sl_open_source **table =
        sl_grow(set->open, set->open_count, &set->open_room, sizeof(sl_open_source *));
    if (!table)
        return NULL;
    set->open = table;
    sl_open_source *open = sl_open_source_create(source);
    if (open)
        set->open[set->open_count++] = open;
    return open;
}

/* Compares two sources by the order in which they are begun. */
static int by_start_order(const void *a, const void *b, void *states_) {
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const sl_source *x = &((const source_state *)states_)[i].source;
    const sl_source *y = &((const source_state *)states_)[k].source;
    bool x_splits = sl_source_is_splittable(x), y_splits = sl_source_is_splittable(y);
    if (x_splits != y_splits)
        return x_splits ? 1 : -1;
    uint64_t x_size = x->kind == SL_SOURCE_PIPE ? UINT64_MAX : x->stored_bytes;
    uint64_t y_size = y->kind == SL_SOURCE_PIPE ? UINT64_MAX : y->stored_bytes;
    if (!x_splits && x_size != y_size)
        return x_size > y_size ? -1 : 1;
    return i < k ? -1 : i > k;
}

/* The set's lock is held. */
static bool make_order(sl_source_set *set) {
    set->order = malloc(set->count * sizeof *set->order);
    if (!set->order)
        return false;
    for (size_t i = 0; i < set->count; i++)
        set->order[i] = (uint32_t)i;
    qsort_r(set->order, set->count, sizeof *set->order, by_start_order, set->states);
    return true;
}

/* Advances to the next source and block that is not skipped. The set's lock is held. */
static void skip_done(sl_source_set *set) {
    while (set->next < set->count) {
        const source_state *state = &set->states[set->order[set->next]];
        bool done = !state->skip && !state->compare && sl_source_is_splittable(&state->source) &&
                    sl_source_block_is_done(state, set->next_block);
        if (!state->skip && !done)
            return;
        if (done && ++set->next_block << SL_BLOCK_BITS < state->source.stored_bytes)
            continue;
        set->next++;
        set->next_block = 0;
    }
}

/* Draws the next block or source. False: no memory. */
static bool draw_next(sl_source_set *set, draw *drawn, sl_error *error) {
    *drawn = (draw){0};
    pthread_mutex_lock(&set->lock);
    bool ok = set->order || make_order(set);
    if (ok)
        skip_done(set);
    if (ok && set->next < set->count) {
        size_t index = set->order[set->next];
        const sl_source *source = &set->states[index].source;
        *drawn = (draw){.source = index,
                        .splittable = sl_source_is_splittable(source),
                        .unopened = source->kind == SL_SOURCE_UNOPENED,
                        .block = set->next_block};
        if (!drawn->splittable && !drawn->unopened) {
            drawn->open = add_open(set, index);
            ok = drawn->open != NULL;
            set->next++;
        } else if (drawn->splittable &&
                   ++set->next_block << SL_BLOCK_BITS >= source->stored_bytes) {
            set->next++;
            set->next_block = 0;
        }
    } else if (ok && set->open_count > 0) { /* join the open source with the fewest readers */
        sl_open_source *least = set->open[0];
        for (size_t i = 1; i < set->open_count; i++) {
            if (set->open[i]->users < least->users)
                least = set->open[i];
        }
        least->users++;
        drawn->open = least;
    }
    pthread_mutex_unlock(&set->lock);
    return ok || sl_error_memory(error, "opening sources");
}

/* Ends a reader's use of an open source that has ended or is not needed any more. The first reader
 * removes it from the table, so that no other reader joins it; the last one frees it. */
static void release(sl_source_set *set, sl_open_source *open) {
    pthread_mutex_lock(&set->lock);
    for (size_t i = 0; i < set->open_count; i++) {
        if (set->open[i] == open) {
            set->open[i] = set->open[--set->open_count];
            break;
        }
    }
    bool last = --open->users == 0;
    pthread_mutex_unlock(&set->lock);
    if (last)
        sl_open_source_destroy(open);
}

sl_read_result sl_reader_next(sl_reader *reader, sl_source_block *block, sl_error *error) {
    for (;;) {
        if (reader->open) {
            sl_read_result result = sl_open_source_take(reader, reader->open, block, error);
            if (result != SL_READ_END)
                return result;
            release(reader->set, reader->open);
            reader->open = NULL;
        }
        draw drawn;
        if (!draw_next(reader->set, &drawn, error))
            return SL_READ_FAILED;
        if (drawn.unopened) {
            if (!sl_source_set_detect_kind(reader->set, drawn.source, error))
                return SL_READ_FAILED;
            continue;
        }
        if (drawn.splittable)
            return read_block(reader, drawn.source, drawn.block, block, error);
        reader->open = drawn.open;
        if (!reader->open)
            return SL_READ_END;
    }
}

sl_read_result sl_reader_next_of(sl_reader *reader, size_t index, uint64_t sequence,
                                 sl_source_block *block, sl_error *error) {
    sl_source_set *set = reader->set;
    if (reader->open && reader->open->source != index) {
        release(set, reader->open);
        reader->open = NULL;
    }
    if (set->states[index].source.kind == SL_SOURCE_UNOPENED &&
        !sl_source_set_detect_kind(set, index, error))
        return SL_READ_FAILED;
    if (sl_source_is_splittable(&set->states[index].source))
        return read_block(reader, index, sequence, block, error);
    if (!reader->open) {
        pthread_mutex_lock(&set->lock);
        reader->open = add_open(set, index);
        pthread_mutex_unlock(&set->lock);
        if (!reader->open) {
            sl_error_memory(error, "opening sources");
            return SL_READ_FAILED;
        }
    }
    return sl_open_source_take(reader, reader->open, block, error);
}
