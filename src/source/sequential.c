/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a source that is read from front to back. What was read beyond a block's last line is
 * carried over to whoever takes the next one; see block.c for who that is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/clock.h>
#include <shardload/document_id.h>

#include "identity.h"
#include "reader.h"

sl_open_source *sl_open_source_create(size_t source) {
    sl_open_source *open = calloc(1, sizeof *open);
    if (!open)
        return NULL;
    pthread_mutex_init(&open->lock, NULL);
    open->source = source;
    open->users = 1;
    return open;
}

void sl_open_source_destroy(sl_open_source *open) {
    sl_stream_close(open->stream);
    pthread_mutex_destroy(&open->lock);
    free(open->carry);
    free(open);
}

void sl_kept_pipe_destroy(sl_kept_pipe *kept) {
    sl_stream_close(kept->stream);
    free(kept->head);
    free(kept);
}

/* The stream has come to a new entry. */
static void begin_member(sl_open_source *open) {
    const char *name = sl_stream_member(open->stream);
    open->member_start = true;
    open->skip_line = false;
    if (name) {
        snprintf(open->member, sizeof open->member, "%s", name);
        open->member_number++;
    }
}

/* Takes a pipe that has been looked into over into its open source. */
static bool adopt(sl_source_set *set, sl_open_source *open) {
    for (sl_kept_pipe **link = &set->kept; *link; link = &(*link)->next) {
        sl_kept_pipe *kept = *link;
        if (kept->source != open->source)
            continue;
        *link = kept->next;
        open->stream = kept->stream;
        open->carry = kept->head;
        open->carry_length = open->carry_room = kept->length;
        free(kept);
        return true;
    }
    return false;
}

static bool begin_stream(sl_reader *reader, sl_open_source *open, sl_error *error) {
    sl_source_set *set = reader->set;
    pthread_mutex_lock(&set->lock);
    bool kept = adopt(set, open);
    pthread_mutex_unlock(&set->lock);
    if (!kept) {
        bool more;
        if (!sl_source_set_open(set, open->source, &open->stream, error))
            return false;
        sl_stream_report(open->stream, set, open->source);
        if (!sl_stream_next_member(open->stream, &more, &reader->times, error))
            return false;
    }
    begin_member(open);
    return true;
}

/* Adds what has been used of the stored bytes to the set's count. */
static void count_stored(sl_source_set *set, sl_open_source *open, uint64_t stored) {
    if (stored <= open->stored_seen) /* the table at the end of a zip file is read first */
        return;
    atomic_fetch_add_explicit(&set->consumed_bytes, stored - open->stored_seen,
                              memory_order_relaxed);
    open->stored_seen = stored;
}

/* Appends up to `want` bytes of the member to the buffer; `*ended` when there are fewer. */
static bool append(sl_reader *reader, sl_open_source *open, size_t *filled, size_t want,
                   bool *ended, sl_error *error) {
    size_t got;
    if (!sl_reader_grow(reader, *filled + want, error) ||
        !sl_stream_read(open->stream, reader->buffer + *filled, want, &got, &reader->times, error))
        return false;
    *filled += got;
    *ended = got < want;
    count_stored(reader->set, open, sl_stream_stored_bytes(open->stream));
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
        if (!append(reader, open, filled, SL_LOOKAHEAD, ended, error))
            return false;
    }
}

/* Keeps the bytes from `from` on for the next block. */
static bool carry_over(sl_open_source *open, const char *from, size_t length, sl_error *error) {
    if (length > open->carry_room) {
        char *carry = realloc(open->carry, length);
        if (!carry)
            return sl_error_memory(error, "reading ahead");
        open->carry = carry;
        open->carry_room = length;
    }
    if (length > 0)
        memcpy(open->carry, from, length);
    open->carry_length = length;
    return true;
}

/* Is what was read so far text of the file that it was in the beginning? */
static bool is_unchanged(sl_reader *reader, const sl_open_source *open, sl_error *error) {
    return !open->stream ||
           sl_identity_check_open(reader->set, open->source, sl_stream_file(open->stream), error);
}

/* The member has been taken to its end: on to the next one, or the end of the source. */
static bool end_member(sl_reader *reader, sl_open_source *open, sl_error *error) {
    bool more;
    if (!sl_stream_next_member(open->stream, &more, &reader->times, error))
        return false;
    if (more) {
        begin_member(open);
        return true;
    }
    const sl_source *source = &reader->set->states[open->source].source;
    count_stored(reader->set, open, source->stored_bytes);
    if (!is_unchanged(reader, open, error))
        return false;
    open->ended = true;
    sl_stream_close(open->stream); /* no file is held open for longer than needed */
    open->stream = NULL;
    free(open->carry);
    open->carry = NULL;
    return true;
}

/* How many of the buffer's bytes make the block: all up to the first line end at or behind its
 * MiB's last byte. Reads more of the member when the line goes on; `*cut` when it is too long. */
static bool find_end(sl_reader *reader, sl_open_source *open, size_t *filled, size_t *length,
                     bool *ended, bool *cut, sl_error *error) {
    uint64_t end = ((open->offset >> SL_BLOCK_BITS) + 1) << SL_BLOCK_BITS;
    size_t wanted = (size_t)(end - open->offset);
    if (*filled < wanted + SL_LOOKAHEAD && !*ended &&
        !append(reader, open, filled, wanted + SL_LOOKAHEAD - *filled, ended, error))
        return false;
    *length = *filled;
    for (size_t searched = wanted - 1; *filled > searched;) {
        char *line_end = memchr(reader->buffer + searched, '\n', *filled - searched);
        if (line_end) {
            *length = (size_t)(line_end - reader->buffer) + 1;
            break;
        }
        searched = *length = *filled;
        *cut = !*ended && *filled > SL_BLOCK_BYTES + SL_RECORD_BYTES_MAX;
        if (*ended || *cut)
            break;
        if (!append(reader, open, filled, SL_LOOKAHEAD, ended, error))
            return false;
    }
    return open->offset + *length <= SL_SOURCE_BYTES_MAX ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: a source may hold 1 TiB of text at most; split it",
                        reader->set->states[open->source].source.shown);
}

static bool next_block(sl_reader *reader, sl_open_source *open, sl_source_block *block,
                       sl_error *error) {
    if (!open->stream && !begin_stream(reader, open, error))
        return false;
    bool ended = false, cut = false;
    size_t filled = open->carry_length, length;
    if (!sl_reader_grow(reader, filled, error))
        return false;
    if (filled > 0)
        memcpy(reader->buffer, open->carry, filled);
    if ((open->skip_line && !skip_rest_of_line(reader, open, &filled, &ended, error)) ||
        !find_end(reader, open, &filled, &length, &ended, &cut, error) ||
        !carry_over(open, reader->buffer + length, filled - length, error))
        return false;
    *block = (sl_source_block){.source = open->source, .sequence = open->sequence++,
                               .offset = open->offset, .text = {reader->buffer, length},
                               .member_number = open->member_number,
                               .member_start = open->member_start,
                               .member_last = open->member_number > 0 && ended && length == filled};
    if (open->member_number > 0)
        block->member = strcpy(reader->member, open->member);
    block->done = sl_source_block_is_done(&reader->set->states[open->source], block->sequence);
    block->outside =
        !sl_source_set_wants(reader->set, open->source, block->sequence, block->offset);
    open->offset += length;
    open->member_start = false;
    open->skip_line = cut;
    if (ended && length == filled && !end_member(reader, open, error))
        return false;
    block->last = open->ended;
    return true;
}

sl_read_result sl_open_source_take(sl_reader *reader, sl_open_source *open, sl_source_block *block,
                                   sl_error *error) {
    int64_t start = sl_clock_ns();
    pthread_mutex_lock(&open->lock);
    reader->times.inflating += sl_clock_ns() - start;
    sl_read_result result = SL_READ_END;
    if (open->failure.code) { /* nobody goes on behind a damaged place */
        *error = open->failure;
        result = SL_READ_FAILED;
    } else if (!open->ended) {
        bool ok = next_block(reader, open, block, error);
        ok = is_unchanged(reader, open, error) && ok; /* the better reason, if it failed */
        result = ok ? SL_READ_BLOCK : SL_READ_FAILED;
        if (!ok)
            open->failure = *error;
    }
    pthread_mutex_unlock(&open->lock);
    return result;
}
