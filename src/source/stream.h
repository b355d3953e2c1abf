/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: read the text of one source sequentially and unpacked, entry by entry. A source that is
 * not an archive counts as one entry without a name. */
#ifndef SHARDLOAD_SOURCE_STREAM_H
#define SHARDLOAD_SOURCE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source.h"
#include "util/error.h"

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

/* Moves to the next entry (after opening: the first); `*more` is false at the end. */
bool sl_stream_next_entry(sl_stream *stream, bool *more, sl_reader_times *times, sl_error *error);

/* The current entry's name, safe to print, valid until the next entry; NULL outside archives. */
const char *sl_stream_entry_name(const sl_stream *stream);

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
