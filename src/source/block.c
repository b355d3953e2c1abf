/* SPDX-License-Identifier: Apache-2.0 */
/* Readers: how any number of threads take blocks of whole lines from the set.
 *
 * A plain file is cut by arithmetic: block k belongs to whoever draws k, and that thread reads the
 * bytes itself. Nothing is shared but the counter under the set's lock.
 *
 * A gzip file or a pipe can only be read from front to back. The thread that begins one owns it and
 * goes on with it; a thread that finds no new source left helps with one that is still open. Both
 * do so under that source's own lock, and each inflates straight into its own buffer, so there is
 * no thread in between that only copies. With many files every thread inflates its own; with one
 * big file the threads take turns at inflating while the others parse and send.
 *
 * Locks: the set's lock is never held while reading; a source's lock is taken without holding the
 * set's. A source enters the table of open ones in the moment it is drawn, so that a thread that
 * comes right after sees it and does not take the set for finished; its file is opened later, under
 * its own lock. `users` counts, under the set's lock, the readers that hold a pointer to it; the
 * last one that leaves frees it. Readers leave a source when it has
 * ended, or when the load is over. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shardload/clock.h>
#include <shardload/document_id.h>

#include "source_set.h"

#define LOOKAHEAD ((size_t)64 << 10) /* how much more is read when a line runs out of its block */
#define SLACK 64

struct sl_open_source {
    pthread_mutex_t lock;
    size_t source;
    unsigned users;       /* under the set's lock */
    sl_stream *stream;    /* NULL until the first block is taken; this and all below: own lock */
    uint64_t stored_seen; /* of stored bytes, added to the set's count so far */
    uint64_t offset;      /* where the next block's first line begins */
    uint64_t sequence;
    char *carry;          /* bytes read beyond the last block */
    size_t carry_length, carry_room;
    bool skip_line;       /* the rest of a line that was cut is still to come */
    bool ended;
};

struct sl_reader {
    sl_source_set *set;
    char *buffer;
    size_t room;        /* without slack */
    int file;           /* open plain file, or -1 */
    size_t file_source; /* which */
    sl_open_source *own;
    sl_reader_times times;
};

static void leave(sl_source_set *set, sl_open_source *open);

bool sl_reader_create(sl_source_set *set, sl_reader **result, sl_error *error) {
    sl_reader *reader = calloc(1, sizeof *reader);
    *result = reader;
    if (!reader)
        return sl_error_memory(error, "starting readers");
    reader->set = set;
    reader->file = -1;
    reader->room = SL_BLOCK_BYTES + LOOKAHEAD;
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

void sl_open_source_destroy(sl_open_source *open) {
    sl_stream_close(open->stream);
    pthread_mutex_destroy(&open->lock);
    free(open->carry);
    free(open);
}

static bool grow(sl_reader *reader, size_t room, sl_error *error) {
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
    const char *path = reader->set->states[source].source.path;
    reader->file = open(path, O_RDONLY | O_CLOEXEC);
    reader->file_source = source;
    if (reader->file < 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: %s", path, strerror(errno));
    return true;
}

/* Reads exactly `length` bytes at `offset` to buffer + `at`. */
static bool read_at(sl_reader *reader, size_t at, uint64_t offset, size_t length,
                    sl_error *error) {
    if (!grow(reader, at + length, error))
        return false;
    const char *path = reader->set->states[reader->file_source].source.path;
    int64_t start = sl_clock_ns();
    while (length > 0) {
        ssize_t got = pread(reader->file, reader->buffer + at, length, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return sl_error_set(error, SL_EXIT_SOURCE, "%s: cannot be read at byte %llu: %s", path,
                                (unsigned long long)offset, strerror(errno));
        if (got == 0)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s: ends at byte %llu but was longer when the load began; "
                                "something is changing the file", path,
                                (unsigned long long)offset);
        at += (size_t)got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    reader->times.reading += sl_clock_ns() - start;
    return true;
}

/* The lines that begin in [index MiB, index+1 MiB): those after the first line end at or behind
 * the byte before the block, up to the first line end at or behind the block's last byte. */
static sl_read_result plain_block(sl_reader *reader, size_t source, uint64_t index,
                                  sl_source_block *block, sl_error *error) {
    uint64_t size = reader->set->states[source].source.stored_bytes;
    uint64_t start = index << SL_BLOCK_BITS;
    uint64_t end = size - start > SL_BLOCK_BYTES ? start + SL_BLOCK_BYTES : size;
    uint64_t from = start > 0 ? start - 1 : 0; /* buffer[0] is this byte of the file */
    *block = (sl_source_block){.source = source, .sequence = index, .offset = start,
                               .text = {reader->buffer, 0}, .last = end == size};
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
        more = size - from - filled < LOOKAHEAD ? (size_t)(size - from - filled) : LOOKAHEAD;
        if (!read_at(reader, filled, from + filled, more, error))
            return SL_READ_FAILED;
        filled += more;
    }
    block->offset = from + first;
    block->text = (sl_text){reader->buffer + first, filled - first};
    return SL_READ_BLOCK;
}

/* ---- gzip files and pipes ---- */

static bool begin_stream(sl_reader *reader, sl_open_source *open, sl_error *error) {
    source_state *state = &reader->set->states[open->source];
    if (!state->kept)
        return sl_stream_open(state->source.path, &open->stream, error);
    open->stream = state->kept;
    open->carry = state->kept_head;
    open->carry_length = open->carry_room = state->kept_length;
    state->kept = NULL;
    state->kept_head = NULL;
    return true;
}

/* Appends up to `want` bytes of the stream to the buffer; `*ended` when there are fewer. */
static bool append(sl_reader *reader, sl_open_source *open, size_t *filled, size_t want,
                   bool *ended, sl_error *error) {
    size_t got;
    if (!grow(reader, *filled + want, error) ||
        !sl_stream_read(open->stream, reader->buffer + *filled, want, &got, &reader->times, error))
        return false;
    *filled += got;
    *ended = got < want;
    uint64_t stored = sl_stream_stored_bytes(open->stream);
    atomic_fetch_add_explicit(&reader->set->consumed_bytes, stored - open->stored_seen,
                              memory_order_relaxed);
    open->stored_seen = stored;
    return true;
}

/* After a line that was cut: drops the rest of it from the front of the buffer. */
static bool skip_rest_of_line(sl_reader *reader, sl_open_source *open, size_t *filled,
                              bool *ended, sl_error *error) {
    for (;;) {
        char *line_end = memchr(reader->buffer, '\n', *filled);
        size_t drop = line_end ? (size_t)(line_end - reader->buffer) + 1 : *filled;
        memmove(reader->buffer, reader->buffer + drop, *filled - drop);
        *filled -= drop;
        open->offset += drop;
        if (line_end || *ended) {
            open->skip_line = false;
            return true;
        }
        if (!append(reader, open, filled, LOOKAHEAD, ended, error))
            return false;
    }
}

/* The next block of an open source; its lock is held. SL_READ_END: it has none left. */
static sl_read_result stream_block(sl_reader *reader, sl_open_source *open,
                                   sl_source_block *block, sl_error *error) {
    if (open->ended)
        return SL_READ_END;
    if (!open->stream && !begin_stream(reader, open, error))
        return SL_READ_FAILED;
    bool ended = false;
    size_t filled = open->carry_length;
    if (!grow(reader, filled, error))
        return SL_READ_FAILED;
    if (filled > 0)
        memcpy(reader->buffer, open->carry, filled);
    if (open->skip_line && !skip_rest_of_line(reader, open, &filled, &ended, error))
        return SL_READ_FAILED;

    uint64_t end = ((open->offset >> SL_BLOCK_BITS) + 1) << SL_BLOCK_BITS;
    size_t wanted = (size_t)(end - open->offset); /* the block's last line ends here or later */
    if (filled < wanted + LOOKAHEAD && !ended &&
        !append(reader, open, &filled, wanted + LOOKAHEAD - filled, &ended, error))
        return SL_READ_FAILED;
    size_t length = filled; /* of the block's text */
    size_t searched = wanted - 1;
    bool cut = false;
    while (filled > searched) {
        char *line_end = memchr(reader->buffer + searched, '\n', filled - searched);
        if (line_end) {
            length = (size_t)(line_end - reader->buffer) + 1;
            break;
        }
        searched = filled;
        length = filled;
        if (ended)
            break;
        cut = filled > SL_BLOCK_BYTES + SL_RECORD_BYTES_MAX;
        if (cut)
            break;
        if (!append(reader, open, &filled, LOOKAHEAD, &ended, error))
            return SL_READ_FAILED;
    }
    if (open->offset + length > SL_SOURCE_BYTES_MAX) {
        sl_error_set(error, SL_EXIT_SOURCE, "%s: a source may hold 1 TiB of text at most; split it",
                     reader->set->states[open->source].source.path);
        return SL_READ_FAILED;
    }

    size_t left = filled - length;
    if (left > open->carry_room) {
        char *carry = realloc(open->carry, left);
        if (!carry) {
            sl_error_memory(error, "reading ahead");
            return SL_READ_FAILED;
        }
        open->carry = carry;
        open->carry_room = left;
    }
    if (left > 0)
        memcpy(open->carry, reader->buffer + length, left);
    open->carry_length = left;
    *block = (sl_source_block){.source = open->source, .sequence = open->sequence++,
                               .offset = open->offset, .text = {reader->buffer, length},
                               .last = ended && left == 0};
    open->offset += length;
    open->skip_line = cut;
    if (block->last) {
        open->ended = true;
        sl_stream_close(open->stream); /* no file is held open for longer than needed */
        open->stream = NULL;
        free(open->carry);
        open->carry = NULL;
    }
    return SL_READ_BLOCK;
}

static sl_read_result take_from(sl_reader *reader, sl_open_source *open, sl_source_block *block,
                                sl_error *error) {
    int64_t start = sl_clock_ns();
    pthread_mutex_lock(&open->lock);
    reader->times.inflating += sl_clock_ns() - start;
    sl_read_result result = stream_block(reader, open, block, error);
    pthread_mutex_unlock(&open->lock);
    return result;
}

/* ---- what to read next ---- */

typedef struct draw {
    sl_open_source *open; /* read this one from front to back */
    bool plain;           /* or this block of this file */
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
    sl_open_source *open = calloc(1, sizeof *open);
    if (!open)
        return NULL;
    pthread_mutex_init(&open->lock, NULL);
    open->source = source;
    open->users = 1;
    return set->open[set->open_count++] = open;
}

static bool draw_next(sl_source_set *set, draw *drawn, sl_error *error) {
    bool ok = true;
    *drawn = (draw){0};
    pthread_mutex_lock(&set->lock);
    while (set->next < set->count && set->states[set->next].skip)
        set->next++;
    if (set->next < set->count) {
        const sl_source *source = &set->states[set->next].source;
        *drawn = (draw){.source = set->next, .plain = source->kind == SL_SOURCE_PLAIN,
                        .block = set->next_block};
        if (!drawn->plain) {
            drawn->open = enter(set, set->next);
            ok = drawn->open != NULL;
        }
        set->next_block++;
        if (!drawn->plain || set->next_block << SL_BLOCK_BITS >= source->stored_bytes) {
            set->next++;
            set->next_block = 0;
        }
    } else if (set->open_count > 0) { /* help with the one that has the fewest readers */
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
            sl_read_result result = take_from(reader, reader->own, block, error);
            if (result != SL_READ_END)
                return result;
            leave(reader->set, reader->own);
            reader->own = NULL;
        }
        draw drawn;
        if (!draw_next(reader->set, &drawn, error))
            return SL_READ_FAILED;
        if (drawn.plain)
            return plain_block(reader, drawn.source, drawn.block, block, error);
        reader->own = drawn.open;
        if (!reader->own)
            return SL_READ_END;
    }
}

bool sl_reader_first(sl_reader *reader, size_t index, sl_source_block *block, sl_error *error) {
    sl_source_set *set = reader->set;
    if (set->states[index].source.kind == SL_SOURCE_PLAIN)
        return plain_block(reader, index, 0, block, error) == SL_READ_BLOCK;
    pthread_mutex_lock(&set->lock);
    sl_open_source *open = enter(set, index);
    pthread_mutex_unlock(&set->lock);
    if (!open)
        return sl_error_memory(error, "opening sources");
    bool ok = take_from(reader, open, block, error) == SL_READ_BLOCK;
    leave(set, open);
    return ok;
}
