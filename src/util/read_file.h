/* SPDX-License-Identifier: Apache-2.0 */
/* Reads complete files, and bytes at an offset. */
#ifndef SHARDLOAD_READ_FILE_H
#define SHARDLOAD_READ_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "error.h"
#include "text.h"

/* Reads a file of at most `most` bytes. The caller frees text->bytes; a NUL follows them, which
 * text->length does not count. On false, the error does not name the file ("No such file or
 * directory", "larger than 16 MiB"), and its class is `code` or SL_EXIT_RESOURCES. The content may
 * be a password, so no other copy of it is left in memory. */
bool sl_read_file(const char *path, size_t most, sl_exit code, sl_text *text, sl_error *error);

/* The same for an open stream of which nothing has been read. */
bool sl_read_stream(FILE *file, size_t most, sl_exit code, sl_text *text, sl_error *error);

/* Reads up to `room` bytes at `offset` of a file. Returns their number, which is less than `room`
 * at the file's end (errno is then 0) or after a failure (errno is set). */
size_t sl_read_at(int file, void *out, size_t room, uint64_t offset);

#endif
