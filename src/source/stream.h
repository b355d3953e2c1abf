/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: the text of one source from front to back, unpacked, member by member. A source that is
 * no archive has one member without a name. */
#ifndef SHARDLOAD_SOURCE_STREAM_H
#define SHARDLOAD_SOURCE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shardload/error.h>
#include <shardload/source.h>

typedef struct sl_stream sl_stream;

/* Opens `path` ("-" is standard input), which messages call `shown`, and finds out how its text is
 * stored; SL_EXIT_SOURCE with advice when it cannot be read here. `include` is for the members of
 * an archive; NULL: all. Once `*stopped` is true nobody waits for a pipe any more. All are borrowed.
 * `*foreign` tells, after a failure, that this is no text at all, as opposed to damaged. */
bool sl_stream_open(const char *path, const char *shown, const char *include,
                    const _Atomic bool *stopped, bool *foreign, sl_stream **stream,
                    sl_error *error);
/* Tells the set's sl_source_passed_over of what this stream passes over from now on. */
void sl_stream_report(sl_stream *stream, const sl_source_set *set, size_t source);
void sl_stream_close(sl_stream *stream); /* NULL is fine */

/* SL_SOURCE_PLAIN, _GZIP, _COMPRESSED or _ARCHIVE. */
sl_source_kind sl_stream_kind(const sl_stream *stream);

/* Goes to the next member, to the first one after the opening; `*more` false at the end. */
bool sl_stream_next_member(sl_stream *stream, bool *more, sl_reader_times *times,
                           sl_error *error);

/* The present member's name, safe to print, until the next one; NULL when this is no archive. */
const char *sl_stream_member(const sl_stream *stream);

/* Fills `out` with up to `room` bytes of the present member; fewer only at its end. A member of an
 * archive always ends with a newline. The error names the file, the member and the place. */
bool sl_stream_read(sl_stream *stream, char *out, size_t room, size_t *length,
                    sl_reader_times *times, sl_error *error);

/* The descriptor of the file or pipe itself; the stream's. */
int sl_stream_file(const sl_stream *stream);

/* How much of the file or pipe itself has been used so far. */
uint64_t sl_stream_stored_bytes(const sl_stream *stream);

#endif
