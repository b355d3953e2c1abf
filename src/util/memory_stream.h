/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that writes into memory, like open_memstream. Unlike open_memstream, it reports text
 * that was lost because memory was short for a moment. */
#ifndef SHARDLOAD_MEMORY_STREAM_H
#define SHARDLOAD_MEMORY_STREAM_H

#include <stddef.h>
#include <stdio.h>

/* Returns the stream, or NULL without memory. fclose sets `*text` (NUL-terminated; free it with
 * free()) and `*length`; it fails, and sets `*text` to NULL, if any text could not be kept. */
FILE *sl_memory_stream(char **text, size_t *length);

#endif
