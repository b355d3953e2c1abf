/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs: sequential byte streams with lookahead. A file, the output of an unpacker and an entry of
 * an archive are inputs, so that they can be stacked: a gzip-compressed tar of gzip files is a
 * stack of four (file, unpacker, entry, unpacker). */
#ifndef SHARDLOAD_SOURCE_STREAM_H
#define SHARDLOAD_SOURCE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#include "source.h"

typedef struct sl_input sl_input;

struct sl_input {
    /* Fetches between 1 and `room` bytes; *got 0 is the end. The error names the input. */
    bool (*fetch)(sl_input *input, unsigned char *out, size_t room, size_t *got,
                  sl_reader_times *times, sl_error *error);
    /* As lseek; *where is the offset from the input's first byte. NULL: sequential only. */
    bool (*seek)(sl_input *input, int64_t offset, int whence, uint64_t *where);
    /* As pread: does not change the input's position. Returns the number of bytes read, fewer than
     * `room` at the end or on failure. NULL if `seek` is NULL. */
    size_t (*read_at)(sl_input *input, uint64_t offset, void *out, size_t room);
    void *context;
    const char *name;      /* for messages; borrowed */
    unsigned char *buffer; /* the bytes fetched but not used: from `used` to `length` */
    size_t room, used, length;
    size_t lent;     /* bytes given to libarchive that it has not consumed */
    uint64_t offset; /* of the next byte to fetch */
    bool ended;
};

/* Allocates the input's buffer of `room` bytes. The caller sets the other fields before. */
bool sl_input_init(sl_input *input, size_t room, sl_error *error);
void sl_input_clear(sl_input *input);

static inline const unsigned char *sl_input_at(const sl_input *input) {
    return input->buffer + input->used;
}

static inline size_t sl_input_left(const sl_input *input) {
    return input->length - input->used;
}

/* The input is at the beginning of another text. */
static inline void sl_input_restart(sl_input *input) {
    input->used = input->length = 0;
    input->offset = 0;
    input->ended = false;
}

/* The offset of the first byte not used yet. */
static inline uint64_t sl_input_position(const sl_input *input) {
    return input->offset - sl_input_left(input) - input->lent;
}

/* Fetches until `count` bytes (at most the buffer's room) are buffered or the input has ended. */
bool sl_input_peek(sl_input *input, size_t count, sl_reader_times *times, sl_error *error);

/* Reads `room` bytes into `out`; *length is less only at the end. */
bool sl_input_take(sl_input *input, void *out, size_t room, size_t *length, sl_reader_times *times,
                   sl_error *error);

/* Skips zero bytes up to the next other byte, which is then buffered, or to the end. */
bool sl_input_skip_zeros(sl_input *input, sl_reader_times *times, sl_error *error);

/* ---- streams ---- */

/* Streams: read the text of one source sequentially and unpacked, entry by entry. A source that is
 * not an archive counts as one entry without a name. */

typedef struct sl_stream sl_stream;

/* Opens `path` ("-" is standard input; messages name it `shown`) and detects compression and
 * archive format. SL_EXIT_SOURCE, with advice, when it is not supported. `include` is a shell
 * pattern for the entries of an archive; NULL: all. `dumps`: archives of mongodump are accepted. A
 * read that waits for a pipe ends once `*stopped` is true. The arguments are borrowed. After a
 * failure, `*not_text` distinguishes files that are not text from damaged ones. */
bool sl_stream_open(const char *path, const char *shown, const char *include, bool dumps,
                    const _Atomic bool *stopped, bool *not_text, sl_stream **stream,
                    sl_error *error);
/* From now on, reports the entries that this stream skips to the set's sl_skipped_entry_report. */
void sl_stream_report_skipped(sl_stream *stream, const sl_source_set *set, size_t source);
void sl_stream_close(sl_stream *stream); /* NULL is fine */

/* SL_SOURCE_PLAIN, _GZIP, _COMPRESSED or _ARCHIVE. */
sl_source_kind sl_stream_kind(const sl_stream *stream);
/* How the file is stored, as "gzip" or "UTF-16"; NULL: as it is read, or in an archive. */
const char *sl_stream_storage(const sl_stream *stream);

/* Moves to the next entry (after opening: the first); `*more` is false at the end. */
bool sl_stream_next_entry(sl_stream *stream, bool *more, sl_reader_times *times, sl_error *error);

/* The current entry's name, safe to print, valid until the next entry; NULL outside archives. */
const char *sl_stream_entry_name(const sl_stream *stream);

/* Is this an archive of which `include` selects entries, and not tables of an SQL dump? */
bool sl_stream_selects_files(const sl_stream *stream);

/* The schema of an SQL dump's current table, and the dump; NULL: the source is no such dump. */
const char *sl_stream_schema(const sl_stream *stream);
struct sl_sql_dump *sl_stream_dump(const sl_stream *stream);

/* From now on, reads add the final newline that an archive's entry lacks. */
void sl_stream_add_line_ends(sl_stream *stream);

/* Reads `room` bytes of the current entry into `out`, fewer only at its end. The error names the
 * file, the entry and the position. */
bool sl_stream_read(sl_stream *stream, char *out, size_t room, size_t *length,
                    sl_reader_times *times, sl_error *error);

/* The descriptor of the file or pipe; owned by the stream. */
int sl_stream_file(const sl_stream *stream);

/* Number of stored bytes of the file or pipe consumed so far. */
uint64_t sl_stream_stored_bytes(const sl_stream *stream);

#endif
