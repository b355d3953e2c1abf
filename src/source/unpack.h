/* SPDX-License-Identifier: Apache-2.0 */
/* Unpackers: decompress an input; the result is an input again. Consecutive streams are
 * concatenated. After the last one only zeros may follow; other bytes are an error, since they may
 * be a damaged stream whose text would be lost. */
#ifndef SHARDLOAD_SOURCE_UNPACK_H
#define SHARDLOAD_SOURCE_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "stream.h"

/* Memory limit for unpacking one source: the dictionary of xz and lzip, the window of zstd. */
#define SL_DECODER_MEMORY_MAX_LOG 28
#define SL_DECODER_MEMORY_MAX ((uint64_t)1 << SL_DECODER_MEMORY_MAX_LOG)

typedef struct sl_unpacker sl_unpacker;

/* Number of bytes needed to recognise a compression format. */
#define SL_MAGIC_BYTES 64

/* Creates an unpacker of `packed`, which is borrowed, if its first SL_MAGIC_BYTES, which have been
 * peeked, are those of a compression format; otherwise sets `*unpacker` to NULL. */
bool sl_unpacker_create(sl_input *packed, sl_unpacker **unpacker, sl_error *error);
void sl_unpacker_destroy(sl_unpacker *unpacker); /* NULL is fine */
sl_input *sl_unpacker_output(sl_unpacker *unpacker);
const char *sl_unpacker_compression(const sl_unpacker *unpacker); /* the format's name */

#endif
