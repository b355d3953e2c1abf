/* SPDX-License-Identifier: Apache-2.0 */
/* Readers: how any number of threads take blocks of whole lines from the set.
 *
 * A plain file is cut by arithmetic: block k belongs to whoever draws k, and that thread reads the
 * bytes itself. Nothing is shared but the counter under the set's lock. Made-up records are cut the
 * same way, and there is nothing to read.
 *
 * A compressed file, an archive or a pipe can only be read from front to back. The thread that
 * begins one owns it and goes on with it; a thread that finds no new source left helps with one
 * that is still open. Both do so under that source's own lock, and each inflates straight into its
 * own buffer, so there is no thread in between that only copies. With many files every thread
 * inflates its own; with one big file the threads take turns at inflating while the others parse
 * and send.
 *
 * The order in which sources are begun: first those that are read from front to back, the largest
 * first, because what is begun late must be small if all threads are to end together; then plain
 * files, which any number of threads can share to the last byte. The order is made once, when the
 * first block is drawn. Indexes, ids and sequences have nothing to do with it.
 *
 * A file found in a folder may not have been looked into; it counts as read from front to back
 * until its turn comes. Then the thread that draws looks, without the set's lock, and draws again.
 * Two threads may look at the same file at the same time; both find and write the same.
 *
 * Locks: the set's lock is never held while reading. It may be taken while a source's lock is held
 * (to take over a pipe), never the other way round. A source enters the table of open ones in
 * the moment it is drawn, so that a thread that comes right after sees it and does not take the set
 * for finished; its file is opened later, under its own lock. `users` counts, under the set's lock,
 * the readers that hold a pointer to it; the last one that leaves frees it. Readers leave a source
 * when it has ended, or when the load is over. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shardload/clock.h>
#include <shardload/document_id.h>

#include "identity.h"
#include "reader.h"

#define SLACK 64

static void leave(sl_source_set *set, sl_open_source *open);

bool sl_reader_create(sl_source_set *set, sl_reader **result, sl_error *error) {
    sl_reader *reader = calloc(1, sizeof *reader);
    *result = reader;
    if (!reader)
        return sl_error_memory(error, "starting readers");
    reader->set = set;
    reader->file = -1;
    reader->room = SL_BLOCK_BYTES + SL_LOOKAHEAD;
    reader->buffer = malloc(reader->room + SLACK);
    if (reader->buffer)
        return true;
    sl_reader_destroy(reader);
    *result = NULL;
    return sl_error_memory(error, "starting readers");
}

void sl_reader_destroy(sl_reader *reader) {
    if (!reader)
        return;
    if (reader->own)
        leave(reader->set, reader->own);
    if (reader->file >= 0)
        close(reader->file);
    free(reader->buffer);
    free(reader);
}

const sl_reader_times *sl_reader_spent(const sl_reader *reader) {
    return &reader->times;
}

bool sl_reader_grow(sl_reader *reader, size_t room, sl_error *error) {
    if (room <= reader->room)
        return true;
    if (room < reader->room * 2)
        room = reader->room * 2;
    char *buffer = realloc(reader->buffer, room + SLACK);
    if (!buffer)
        return sl_error_memory(error, "reading a long line");
    reader->buffer = buffer;
    reader->room = room;
    return true;
}

/* ---- plain files ---- */

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
    sl_error_set(error, SL_EXIT_SOURCE, "%s: %s", from->shown, strerror(errno));
    return sl_identity_check_path(reader->set, source, error) && false;
}

/* Reads exactly `length` bytes at `offset` to buffer + `at`, of the file as it was in the
 * beginning.
 */
static bool read_at(sl_reader *reader, size_t at, uint64_t offset, size_t length,
                    sl_error *error) {
    if (!sl_reader_grow(reader, at + length, error))
        return false;
    const char *path = reader->set->states[reader->file_source].source.shown;
    int64_t start = sl_clock_ns();
    while (length > 0) {
        ssize_t got = pread(reader->file, reader->buffer + at, length, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return sl_error_set(error, SL_EXIT_SOURCE, "%s: cannot be read at byte %llu: %s", path,
                                (unsigned long long)offset, strerror(errno));
        if (got == 0)
            return sl_identity_check_open(reader->set, reader->file_source, reader->file, error) &&
                   sl_error_set(error, SL_EXIT_SOURCE, "%s: cannot be read behind byte %llu", path,
                                (unsigned long long)offset);
        at += (size_t)got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    reader->times.reading += sl_clock_ns() - start;
    return sl_identity_check_open(reader->set, reader->file_source, reader->file, error);
}

/* The lines that begin in [index MiB, index+1 MiB): those after the first line end at or behind
 * the byte before the block, up to the first line end at or behind the block's last byte. */
static sl_read_result plain_block(sl_reader *reader, size_t source, uint64_t index,
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
                          .member_start = index == 0,
                          .last = end == size,
                          .done = sl_source_block_is_done(&reader->set->states[source], index)};
    if (size == 0)
        return SL_READ_BLOCK;
    block->outside = !sl_source_set_wants(reader->set, source, index, start);
    if (block->outside) {
        atomic_fetch_add_explicit(&reader->set->consumed_bytes, end - start, memory_order_relaxed);
        return SL_READ_BLOCK;
    }
    if (reader->set->states[source].source.kind == SL_SOURCE_MADE_UP) {
        block->text = (sl_text){NULL, (size_t)(end - start)};
        atomic_fetch_add_explicit(&reader->set->consumed_bytes, end - start, memory_order_relaxed);
        return SL_READ_BLOCK;
    }
    if (!open_plain(reader, source, error))
        return SL_READ_FAILED;

    size_t length = (size_t)(end - from);
    size_t more = size - end < 512 ? (size_t)(size - end) : 512; /* mostly the whole last line */
    if (!read_at(reader, 0, from, length + more, error))
        return SL_READ_FAILED;
    atomic_fetch_add_explicit(&reader->set->consumed_bytes, end - start, memory_order_relaxed);

    size_t first = 0;
    if (start > 0) {
        char *line_end = memchr(reader->buffer, '\n', length - 1);
        block->text.bytes = reader->buffer;
        if (!line_end)
            return SL_READ_BLOCK; /* all of it belongs to a line that began before */
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

typedef struct draw {
    sl_open_source *open; /* read this one from front to back */
    bool plain;           /* or this block of this file */
    bool unseen;          /* or look into this one */
    size_t source;
    uint64_t block;
} draw;

/* A new entry in the table of open sources, with one user. The set's lock is held. */
static sl_open_source *enter(sl_source_set *set, size_t source) {
    if (set->open_count == set->open_room) {
        size_t room = set->open_room ? set->open_room * 2 : 16;
        sl_open_source **table = realloc(set->open, room * sizeof(sl_open_source *));
        if (!table)
            return NULL;
        set->open = table;
        set->open_room = room;
    }
    sl_open_source *open = sl_open_source_create(source);
    if (open)
        set->open[set->open_count++] = open;
    return open;
}

/* Which of two sources is begun first. */
static int by_turn(const void *a, const void *b, void *states_) {
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const sl_source *x = &((const source_state *)states_)[i].source;
    const sl_source *y = &((const source_state *)states_)[k].source;
    bool x_plain = sl_source_is_cut(x), y_plain = sl_source_is_cut(y);
    if (x_plain != y_plain)
        return x_plain ? 1 : -1;
    uint64_t x_size = x->kind == SL_SOURCE_PIPE ? UINT64_MAX : x->stored_bytes;
    uint64_t y_size = y->kind == SL_SOURCE_PIPE ? UINT64_MAX : y->stored_bytes;
    if (!x_plain && x_size != y_size)
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
    qsort_r(set->order, set->count, sizeof *set->order, by_turn, set->states);
    return true;
}

/* Passes over what nobody needs. The set's lock is held. */
static void pass_over(sl_source_set *set) {
    while (set->next < set->count) {
        const source_state *state = &set->states[set->order[set->next]];
        bool done = !state->skip && !state->compare && sl_source_is_cut(&state->source) &&
                    sl_source_block_is_done(state, set->next_block);
        if (!state->skip && !done)
            return;
        if (done && ++set->next_block << SL_BLOCK_BITS < state->source.stored_bytes)
            continue;
        set->next++;
        set->next_block = 0;
    }
}

/* Draws the next block or source; drawn->unseen: look into this one first. */
static bool draw_next(sl_source_set *set, draw *drawn, sl_error *error) {
    *drawn = (draw){0};
    pthread_mutex_lock(&set->lock);
    bool ok = set->order || make_order(set);
    if (ok)
        pass_over(set);
    if (ok && set->next < set->count) {
        size_t index = set->order[set->next];
        const sl_source *source = &set->states[index].source;
        *drawn = (draw){.source = index, .plain = sl_source_is_cut(source),
                        .unseen = source->kind == SL_SOURCE_UNSEEN, .block = set->next_block};
        if (!drawn->plain && !drawn->unseen) {
            drawn->open = enter(set, index);
            ok = drawn->open != NULL;
            set->next++;
        } else if (drawn->plain && ++set->next_block << SL_BLOCK_BITS >= source->stored_bytes) {
            set->next++;
            set->next_block = 0;
        }
    } else if (ok && set->open_count > 0) { /* help with the one that has the fewest readers */
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

/* This reader is done with its open source. One that has ended leaves the table at once, so that
 * nobody is sent to it any more; the last user frees it. */
static void leave(sl_source_set *set, sl_open_source *open) {
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
        if (reader->own) {
            sl_read_result result = sl_open_source_take(reader, reader->own, block, error);
            if (result != SL_READ_END)
                return result;
            leave(reader->set, reader->own);
            reader->own = NULL;
        }
        draw drawn;
        if (!draw_next(reader->set, &drawn, error))
            return SL_READ_FAILED;
        if (drawn.unseen) {
            if (!sl_source_set_look(reader->set, drawn.source, error))
                return SL_READ_FAILED;
            continue;
        }
        if (drawn.plain)
            return plain_block(reader, drawn.source, drawn.block, block, error);
        reader->own = drawn.open;
        if (!reader->own)
            return SL_READ_END;
    }
}

bool sl_reader_first(sl_reader *reader, size_t index, sl_source_block *block, sl_error *error) {
    sl_source_set *set = reader->set;
    if (set->states[index].source.kind == SL_SOURCE_UNSEEN &&
        !sl_source_set_look(set, index, error))
        return false;
    if (sl_source_is_cut(&set->states[index].source))
        return plain_block(reader, index, 0, block, error) == SL_READ_BLOCK;
    pthread_mutex_lock(&set->lock);
    sl_open_source *open = enter(set, index);
    pthread_mutex_unlock(&set->lock);
    if (!open)
        return sl_error_memory(error, "opening sources");
    bool ok = sl_open_source_take(reader, open, block, error) == SL_READ_BLOCK;
    leave(set, open);
    return ok;
}

sl_read_result sl_reader_look(sl_reader *reader, size_t index, uint64_t sequence,
                              sl_source_block *block, sl_error *error) {
    sl_source_set *set = reader->set;
    if (reader->own && reader->own->source != index) {
        leave(set, reader->own);
        reader->own = NULL;
    }
    if (set->states[index].source.kind == SL_SOURCE_UNSEEN &&
        !sl_source_set_look(set, index, error))
        return SL_READ_FAILED;
    if (sl_source_is_cut(&set->states[index].source))
        return plain_block(reader, index, sequence, block, error);
    if (!reader->own) {
        pthread_mutex_lock(&set->lock);
        reader->own = enter(set, index);
        pthread_mutex_unlock(&set->lock);
        if (!reader->own) {
            sl_error_memory(error, "opening sources");
            return SL_READ_FAILED;
        }
    }
    return sl_open_source_take(reader, reader->own, block, error);
}
