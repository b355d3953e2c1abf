/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of complete lines, which any number of readers take from the sources of a set. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/document_id.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/read_file.h"

#include "source_set.h"

/* ---- blocks of sequential sources ---- */

/* Bytes read after a block's last line are kept for the reader that
 * takes the next block. A source set owns the open sources, so this file and source_set.c call each
 * other. */

/* Number of bytes read at once to find the end of a block's last line. */
#define SL_LOOKAHEAD ((size_t)64 << 10)

struct sl_reader {
    sl_source_set *set;
    char *buffer;
    size_t room;          /* without slack */
    int file;             /* open plain file, or -1 */
    size_t file_source;   /* index of that file's source */
    sl_open_source *open; /* the sequential source that the reader takes blocks of, or NULL */
    char entry[SL_ENTRY_NAME_ROOM]; /* archive entry of the last block returned */
    sl_reader_times times;
};

struct sl_open_source {
    pthread_mutex_t lock;
    size_t source;
    unsigned users; /* number of readers; guarded by the set's lock */
    /* Guarded by `lock`: */
    sl_stream *stream;              /* NULL until the first block is taken, and after the last */
    char entry[SL_ENTRY_NAME_ROOM]; /* name of the current archive entry */
    uint64_t entry_number;          /* of that entry, from 1; 0 outside archives */
    bool entry_start;               /* no block of the entry has been taken */
    uint64_t stored_counted;        /* stored bytes added to the set's consumed_bytes so far */
    uint64_t offset;                /* of the next block's first line */
    uint64_t sequence;              /* of the next block */
    char *leftover;                 /* bytes read after the end of the last block */
    size_t leftover_length, leftover_room;
    bool splits;      /* the entry's records are found by the source's splitter */
    sl_split split;   /* the splitter's state at the beginning of the next block, if `splits` */
    bool skip_line;   /* the next bytes are the remainder of a line that was too long */
    bool ended;       /* the last block has been taken */
    uint64_t border;  /* at the beginning of the next block; see sl_source_block.borders */
    sl_error failure; /* code not 0: there will be no more blocks */
};

/* Returns an open source with one user; NULL without memory. */
static sl_open_source *open_source_create(size_t source) {
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

/* Enlarges the reader's buffer to at least `room` bytes. */
static bool reader_grow(sl_reader *reader, size_t room, sl_error *error) {
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

/* The scans of the parsers also read some bytes after the text. A NUL there would let them choose
 * the slow way for it. */
static void end_text(sl_reader *reader, size_t length) {
    memset(reader->buffer + length, '\n', SL_SLACK);
}

/* The number of escape characters before `at` in the text that begins at `begin`. */
static size_t escapes_before(const char *begin, const char *at, char escape) {
    const char *first = at;
    while (first > begin && first[-1] == escape)
        first--;
    return (size_t)(at - first);
}

/* The first line feed from `at` to `end` that ends a line of the text that begins at `begin`. NULL:
 * there is none. */
static char *find_line_feed(const sl_source *source, char *begin, char *at, const char *end) {
    const char escape = source->line_escape;
    while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        if (!escape || escapes_before(begin, at, escape) % 2 == 0)
            return at;
        at++;
    }
    return NULL;
}

/* Is the last byte of the text an escape character of the next byte? */
static bool ends_escaping(const sl_source *source, const char *text, size_t length) {
    return source->line_escape && escapes_before(text, text + length, source->line_escape) % 2 == 1;
}

/* The hash of a border: of its offset and the text after it. */
static uint64_t hash_border(uint64_t offset, const char *text, size_t length) {
    length = length < SL_BORDER_BYTES ? length : SL_BORDER_BYTES;
    return sl_hash_mix(offset ^ SL_HASH_A, sl_hash((const uint8_t *)text, length));
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
    sl_kept_pipe **link = sl_kept_pipe_link(set, open->source), *kept = *link;
    if (!kept)
        return false;
    *link = kept->next;
    open->stream = kept->stream;
    open->leftover = kept->head;
    open->leftover_length = open->leftover_room = kept->length;
    if (set->states[open->source].source.cr_lines)
        sl_source_replace_cr(open->leftover, kept->length);
    free(kept);
    return true;
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
    if (!reader_grow(reader, *filled + count, error) ||
        !sl_stream_read(open->stream, reader->buffer + *filled, count, &got, &reader->times, error))
        return false;
    if (reader->set->states[open->source].source.cr_lines)
        sl_source_replace_cr(reader->buffer + *filled, got);
    *filled += got;
    *ended = got < count;
    end_text(reader, *filled);
    count_stored(reader->set, open, sl_stream_stored_bytes(open->stream));
    return true;
}

/* Drops the remainder of a line that was too long from the start of the buffer. */
static bool skip_rest_of_line(sl_reader *reader, sl_open_source *open, size_t *filled, bool *ended,
                              sl_error *error) {
    const sl_source *source = &reader->set->states[open->source].source;
    for (;;) {
        char *line_end =
            find_line_feed(source, reader->buffer, reader->buffer, reader->buffer + *filled);
        size_t drop = line_end
                          ? (size_t)(line_end - reader->buffer) + 1
                          : *filled - (!*ended && ends_escaping(source, reader->buffer, *filled));
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
    if (!is_unchanged(reader, open, error) || (source->kind <= SL_SOURCE_COMPRESSED &&
                                               !sl_source_is_complete(source, open->stream, error)))
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
    sl_error_set(error, SL_EXIT_SOURCE, "%s%s%s, byte %llu: %s",
                 reader->set->states[open->source].source.shown, open->entry_number > 0 ? ": " : "",
                 open->entry_number > 0 ? open->entry : "",
                 (unsigned long long)open->offset + open->split.at, open->split.fault);
    error->afresh = true;
    return false;
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
    const sl_source *source = &reader->set->states[open->source].source;
    *length = *filled;
    for (size_t searched = in_block - 1; *filled > searched;) {
        char *line_end = find_line_feed(source, reader->buffer, reader->buffer + searched,
                                        reader->buffer + *filled);
        if (line_end) {
            *length = (size_t)(line_end - reader->buffer) + 1;
            break;
        }
        searched = *length = *filled;
        *cut = !*ended && *filled > SL_BLOCK_BYTES + SL_RECORD_BYTES_MAX;
        *length -= *cut && ends_escaping(source, reader->buffer, *filled);
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
    if (*filled - *length < SL_BORDER_BYTES && !*ended &&
        !append(reader, open, filled, SL_BORDER_BYTES, ended, error))
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
    if (!reader_grow(reader, filled, error))
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
    block->borders = 0 - open->border;
    open->border =
        open->ended ? 0 : hash_border(open->offset, reader->buffer + length, filled - length);
    block->borders += open->border;
    return true;
}

/* Takes the next block of an open source, under its lock. SL_READ_END: no block is left. */
static sl_read_result open_source_take(sl_reader *reader, sl_open_source *open,
                                       sl_source_block *block, sl_error *error) {
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

/* ---- blocks of all sources ---- */

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

bool sl_source_text_again(const sl_source_set *set, size_t index, uint64_t offset, char *text,
                          size_t length) {
    const sl_source *source = &set->states[index].source;
    const int file = source->kind == SL_SOURCE_PLAIN
                         ? open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                         : -1;
    const bool ok = file >= 0 && sl_read_at(file, text, length, offset) == length;
    if (file >= 0)
        close(file);
    if (ok && source->cr_lines)
        sl_source_replace_cr(text, length);
    return ok;
}

/* Reads exactly `length` bytes at `offset` to buffer + `at`. Fails when the file has changed. */
static bool read_at(sl_reader *reader, size_t at, uint64_t offset, size_t length, sl_error *error) {
    if (!reader_grow(reader, at + length, error))
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
    end_text(reader, at + length);
    reader->times.reading += sl_clock_ns() - start;
    return sl_identity_check_open(reader->set, reader->file_source, reader->file, error);
}

/* Finds the first line end in the first `length` bytes of the buffer, which begins at `from` in the
 * file; NULL: there is none. Escape characters may lie before the buffer. */
static bool find_first_line_end(sl_reader *reader, uint64_t from, size_t length, char **line_end,
                                sl_error *error) {
    const sl_source *source = &reader->set->states[reader->file_source].source;
    const char escape = source->line_escape;
    char *found = memchr(reader->buffer, '\n', length);
    size_t before = found && escape ? escapes_before(reader->buffer, found, escape) : 0;
    bool more = escape && found && before == (size_t)(found - reader->buffer);
    char earlier[4096];
    while (more && from > 0) {
        size_t room = from < sizeof earlier ? (size_t)from : sizeof earlier;
        if (sl_read_at(reader->file, earlier, room, from - room) != room)
            return sl_error_set(error, SL_EXIT_SOURCE, "%s: cannot be read before byte %llu",
                                source->shown, (unsigned long long)from);
        size_t count = escapes_before(earlier, earlier + room, escape);
        before += count;
        from -= room;
        more = count == room;
    }
    if (before % 2 == 1)
        found = find_line_feed(source, found + 1, found + 1, reader->buffer + length);
    *line_end = found;
    return true;
}

/* Adds the border at byte `at` to `*borders`. The buffer holds `have` bytes of the file, from
 * `from`. The ends of the file are no borders. */
static bool add_border(sl_reader *reader, uint64_t from, size_t have, uint64_t at,
                       uint64_t *borders, sl_error *error) {
    uint64_t size = reader->set->states[reader->file_source].source.stored_bytes;
    size_t need = size - at < SL_BORDER_BYTES ? (size_t)(size - at) : SL_BORDER_BYTES;
    size_t place = (size_t)(at - from);
    if (at == 0 || at == size)
        return true;
    if (have < place + need && !read_at(reader, have, from + have, place + need - have, error))
        return false;
    *borders += hash_border(at, reader->buffer + place, need);
    return true;
}

/* Adds the border after a line that is too long, which continues at byte `at`. */
static bool add_border_after(const sl_reader *reader, uint64_t at, uint64_t *borders,
                             sl_error *error) {
    sl_reader rest = {.set = reader->set, .file = reader->file, .file_source = reader->file_source};
    uint64_t size = reader->set->states[reader->file_source].source.stored_bytes;
    char *line_end = NULL;
    bool ok = true;
    while (ok && !line_end && at < size) {
        size_t length = size - at < SL_LOOKAHEAD ? (size_t)(size - at) : SL_LOOKAHEAD;
        ok = read_at(&rest, 0, at, length, error) &&
             find_first_line_end(&rest, at, length, &line_end, error);
        at += line_end ? (size_t)(line_end - rest.buffer) + 1 : length;
    }
    ok = ok && add_border(&rest, at, 0, at, borders, error);
    free(rest.buffer);
    return ok;
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
    /* This usually contains the remainder of the last line, and the text after the border. */
    size_t more = size - end < 2 * SL_BORDER_BYTES ? (size_t)(size - end) : 2 * SL_BORDER_BYTES;
    if (!read_at(reader, 0, from, length + more, error))
        return SL_READ_FAILED;
    atomic_fetch_add_explicit(&reader->set->consumed_bytes, end - start, memory_order_relaxed);

    size_t first = 0;
    const sl_source *facts = &reader->set->states[source].source;
    if (start > 0) {
        char *line_end;
        if (!find_first_line_end(reader, from, length - 1, &line_end, error))
            return SL_READ_FAILED;
        block->text.bytes = reader->buffer;
        if (!line_end)
            return SL_READ_BLOCK; /* the block lies within a line that began before it */
        first = (size_t)(line_end - reader->buffer) + 1;
    }
    size_t searched = length - 1;
    size_t filled = length + more, have = filled;
    uint64_t borders = 0;
    bool cut = false;
    if (!add_border(reader, from, filled, from + first, &borders, error))
        return SL_READ_FAILED;
    block->borders = 0 - borders;
    for (;;) {
        char *line_end = find_line_feed(facts, reader->buffer + first, reader->buffer + searched,
                                        reader->buffer + filled);
        if (line_end) {
            filled = (size_t)(line_end - reader->buffer) + 1;
            break;
        }
        searched = filled;
        cut = from + filled < size && filled - first > SL_BLOCK_BYTES + SL_RECORD_BYTES_MAX;
        if (from + filled == size || cut)
            break;
        more = size - from - filled < SL_LOOKAHEAD ? (size_t)(size - from - filled) : SL_LOOKAHEAD;
        if (!read_at(reader, filled, from + filled, more, error))
            return SL_READ_FAILED;
        filled = have += more;
    }
    if (!(cut ? add_border_after(reader, from + filled, &block->borders, error)
              : add_border(reader, from, have, from + filled, &block->borders, error)))
        return SL_READ_FAILED;
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
    sl_open_source *open = open_source_create(source);
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
            sl_read_result result = open_source_take(reader, reader->open, block, error);
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
    return open_source_take(reader, reader->open, block, error);
}
