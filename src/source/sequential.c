/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a sequential source. Bytes read after a block's last line are kept for the reader that
 * takes the next block; block.c decides which reader that is. A source set owns the open sources,
 * so this file and source_set.c call each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/document_id.h"

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
    free(open->leftover);
    free(open);
}

void sl_kept_pipe_destroy(sl_kept_pipe *kept) {
    sl_stream_close(kept->stream);
    free(kept->head);
    free(kept);
}

bool sl_reader_grow(sl_reader *reader, size_t room, sl_error *error) {
    if (room <= reader->room)
        return true;
    if (room < reader->room * 2)
        room = reader->room * 2;
    char *buffer = realloc(reader->buffer, room + SL_SLACK);
    if (!buffer)
        return sl_error_memory(error, "reading a long line");
    reader->buffer = buffer;
    reader->room = room;
    return true;
}

static void begin_entry(sl_open_source *open) {
    const char *name = sl_stream_entry_name(open->stream);
    open->entry_start = true;
    open->skip_line = false;
    open->split = (sl_split){.context = open->split.context};
    if (name) {
        snprintf(open->entry, sizeof open->entry, "%s", name);
        open->entry_number++;
    }
}

/* Moves a pipe whose head has been read from the set's list to its open source. */
static bool take_kept_pipe(sl_source_set *set, sl_open_source *open) {
    for (sl_kept_pipe **link = &set->kept; *link; link = &(*link)->next) {
        sl_kept_pipe *kept = *link;
        if (kept->source != open->source)
            continue;
        *link = kept->next;
        open->stream = kept->stream;
        open->leftover = kept->head;
        open->leftover_length = open->leftover_room = kept->length;
        if (set->states[open->source].source.cr_lines)
            sl_source_replace_cr(open->leftover, kept->length);
        free(kept);
        return true;
    }
    return false;
}

static bool begin_stream(sl_reader *reader, sl_open_source *open, sl_error *error) {
    sl_source_set *set = reader->set;
    pthread_mutex_lock(&set->lock);
    bool kept = take_kept_pipe(set, open);
    pthread_mutex_unlock(&set->lock);
    if (!kept) {
        bool more;
        if (!sl_source_set_open(set, open->source, &open->stream, error))
            return false;
        sl_stream_report_skipped(open->stream, set, open->source);
        if (!sl_stream_next_entry(open->stream, &more, &reader->times, error))
            return false;
    }
    const source_state *state = &set->states[open->source];
    open->split.context = state->split_context;
    if (!state->splitter || !state->splitter->binary)
        sl_stream_add_line_ends(open->stream);
    begin_entry(open);
    return true;
}

/* Adds the stored bytes consumed since the last call to the set's count. `stored` may be smaller
 * than before: the central directory at the end of a zip file is read first. */
static void count_stored(sl_source_set *set, sl_open_source *open, uint64_t stored) {
    if (stored <= open->stored_counted)
        return;
    atomic_fetch_add_explicit(&set->consumed_bytes, stored - open->stored_counted,
                              memory_order_relaxed);
    open->stored_counted = stored;
}

/* Appends `count` bytes of the entry to the buffer, or fewer at its end: `*ended`. */
static bool append(sl_reader *reader, sl_open_source *open, size_t *filled, size_t count,
                   bool *ended, sl_error *error) {
    size_t got;
    if (!sl_reader_grow(reader, *filled + count, error) ||
        !sl_stream_read(open->stream, reader->buffer + *filled, count, &got, &reader->times, error))
        return false;
    if (reader->set->states[open->source].source.cr_lines)
        sl_source_replace_cr(reader->buffer + *filled, got);
    *filled += got;
    *ended = got < count;
    count_stored(reader->set, open, sl_stream_stored_bytes(open->stream));
    return true;
}

/* Drops the remainder of a line that was too long from the start of the buffer. */
static bool skip_rest_of_line(sl_reader *reader, sl_open_source *open, size_t *filled, bool *ended,
                              sl_error *error) {
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

/* Keeps bytes for the next block. */
static bool keep_leftover(sl_open_source *open, const char *from, size_t length, sl_error *error) {
    if (length > open->leftover_room) {
        char *leftover = realloc(open->leftover, length);
        if (!leftover)
            return sl_error_memory(error, "reading ahead");
        open->leftover = leftover;
        open->leftover_room = length;
    }
    if (length > 0)
        memcpy(open->leftover, from, length);
    open->leftover_length = length;
    return true;
}

/* Was all text so far read from the original file? */
static bool is_unchanged(sl_reader *reader, const sl_open_source *open, sl_error *error) {
    return !open->stream ||
           sl_identity_check_open(reader->set, open->source, sl_stream_file(open->stream), error);
}

/* Ends an entry: moves to the next entry, or ends the source. */
static bool end_entry(sl_reader *reader, sl_open_source *open, sl_error *error) {
    bool more;
    if (!sl_stream_next_entry(open->stream, &more, &reader->times, error))
        return false;
    if (more) {
        begin_entry(open);
        return true;
    }
    const sl_source *source = &reader->set->states[open->source].source;
    count_stored(reader->set, open, source->stored_bytes);
    if (!is_unchanged(reader, open, error))
        return false;
    open->ended = true;
    sl_stream_close(open->stream); /* closed early, because many sources may be open */
    open->stream = NULL;
    free(open->leftover);
    open->leftover = NULL;
    return true;
}

/* The splitter cannot divide the text any further. */
static bool split_error(const sl_reader *reader, const sl_open_source *open, sl_error *error) {
    return sl_error_set(error, SL_EXIT_SOURCE, "%s%s%s, byte %llu: %s",
                        reader->set->states[open->source].source.shown,
                        open->entry_number > 0 ? ": " : "",
                        open->entry_number > 0 ? open->entry : "",
                        (unsigned long long)open->offset + open->split.at, open->split.fault);
}

/* As find_line_end, for a source with a splitter. The text that is read grows by half each time,
 * since a splitter may have to look at a large record again. */
static bool find_record_end(sl_reader *reader, sl_open_source *open, size_t in_block,
                            size_t *filled, size_t *length, bool *ended, sl_error *error) {
    const sl_splitter *splitter = reader->set->states[open->source].splitter;
    *length = 0;
    while (*filled > 0) {
        sl_text text = {reader->buffer, *filled};
        *length = splitter->find_end(&open->split, text, in_block, *ended);
        if (open->split.fault)
            return split_error(reader, open, error);
        if (*length > 0)
            break;
        if (*ended || *filled > in_block + SL_SPLIT_BYTES_MAX)
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s: internal error: no end of a record was found after byte %llu",
                                reader->set->states[open->source].source.shown,
                                (unsigned long long)open->offset);
        size_t more = *filled / 2 > SL_LOOKAHEAD ? *filled / 2 : SL_LOOKAHEAD;
        if (!append(reader, open, filled, more, ended, error))
            return false;
    }
    open->split.at = 0;
    memset(open->split.inside, 0, sizeof open->split.inside);
    return true;
}

/* Decides at the first block of an entry whether a splitter divides it. */
static void begin_split(const sl_reader *reader, sl_open_source *open, size_t filled, bool ended) {
    const sl_splitter *splitter = reader->set->states[open->source].splitter;
    sl_text head = {reader->buffer, filled < SL_SPLIT_HEAD_BYTES ? filled : SL_SPLIT_HEAD_BYTES};
    if (open->entry_start)
        open->splits = splitter && (!splitter->divides ||
                                    splitter->divides(head, ended && head.length == filled));
}

/* Sets `*length` to the block's length: up to the first line end at or after its MiB's last byte.
 * Reads more of the entry until that line end is found; `*cut`: the line is too long, and the block
 * ends within it. */
static bool find_line_end(sl_reader *reader, sl_open_source *open, size_t in_block, size_t *filled,
                          size_t *length, bool *ended, bool *cut, sl_error *error) {
    *length = *filled;
    for (size_t searched = in_block - 1; *filled > searched;) {
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
    return true;
}

/* Finds the end of the block, and reads up to there. */
static bool find_end(sl_reader *reader, sl_open_source *open, size_t *filled, size_t *length,
                     bool *ended, bool *cut, sl_error *error) {
    uint64_t end = ((open->offset >> SL_BLOCK_BITS) + 1) << SL_BLOCK_BITS;
    size_t in_block = (size_t)(end - open->offset);
    if (*filled < in_block + SL_LOOKAHEAD && !*ended &&
        !append(reader, open, filled, in_block + SL_LOOKAHEAD - *filled, ended, error))
        return false;
    begin_split(reader, open, *filled, *ended);
    if (!(open->splits ? find_record_end(reader, open, in_block, filled, length, ended, error)
                       : find_line_end(reader, open, in_block, filled, length, ended, cut, error)))
        return false;
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
    size_t filled = open->leftover_length, length;
    uint64_t split_state = open->split.state;
    if (!sl_reader_grow(reader, filled, error))
        return false;
    if (filled > 0)
        memcpy(reader->buffer, open->leftover, filled);
    if ((open->skip_line && !skip_rest_of_line(reader, open, &filled, &ended, error)) ||
        !find_end(reader, open, &filled, &length, &ended, &cut, error) ||
        !keep_leftover(open, reader->buffer + length, filled - length, error))
        return false;
    *block = (sl_source_block){.source = open->source,
                               .sequence = open->sequence++,
                               .offset = open->offset,
                               .split_state = split_state,
                               .text = {reader->buffer, length},
                               .known_length = filled,
                               .known_to_end = ended,
                               .entry_number = open->entry_number,
                               .entry_start = open->entry_start,
                               .entry_last = open->entry_number > 0 && ended && length == filled};
    if (open->entry_number > 0)
        block->entry = strcpy(reader->entry, open->entry);
    block->done = sl_source_block_is_done(&reader->set->states[open->source], block->sequence);
    block->unselected =
        !sl_source_set_selects(reader->set, open->source, block->sequence, block->offset);
    open->offset += length;
    open->entry_start = false;
    open->skip_line = cut;
    if (ended && length == filled && !end_entry(reader, open, error))
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
    if (open->failure.code) { /* no reader continues after damaged data */
        *error = open->failure;
        result = SL_READ_FAILED;
    } else if (!open->ended) {
        bool ok = next_block(reader, open, block, error);
        ok = is_unchanged(reader, open, error) && ok; /* a change explains a failure: report it */
        result = ok ? SL_READ_BLOCK : SL_READ_FAILED;
        if (!ok)
            open->failure = *error;
    }
    pthread_mutex_unlock(&open->lock);
    return result;
}
