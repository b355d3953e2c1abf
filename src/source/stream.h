/* SPDX-License-Identifier: Apache-2.0 */
/* A byte stream read from front to back: a file or pipe, inflated when its bytes are gzip. */
#ifndef SHARDLOAD_SOURCE_STREAM_H
#define SHARDLOAD_SOURCE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <shardload/error.h>
#include <shardload/source.h>

typedef struct sl_stream sl_stream;

/* Opens `path` ("-" is standard input). */
bool sl_stream_open(const char *path, sl_stream **stream, sl_error *error);
void sl_stream_close(sl_stream *stream); /* NULL is fine */

/* Fills `out` with up to `room` bytes; fewer only at the end. `*length` 0 is the end. The error
 * names the file and the place in it. */
bool sl_stream_read(sl_stream *stream, char *out, size_t room, size_t *length,
                    sl_reader_times *times, sl_error *error);

/* Bytes taken from the file or pipe itself so far. */
uint64_t sl_stream_stored_bytes(const sl_stream *stream);

/* Is a file that begins with these bytes a container that has to be unpacked first? Then a sentence
 * about what it is and what to do, otherwise NULL. */
const char *sl_container_advice(const unsigned char *bytes, size_t length);

#endif
