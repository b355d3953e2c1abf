/* SPDX-License-Identifier: Apache-2.0 */
/* Unpackers: what a compressed input holds, as an input. Streams that follow each other are one
 * text. Behind the last one only zeros may follow; anything else is an error, since it may be a
 * damaged stream whose text would be lost. */
#ifndef SHARDLOAD_SOURCE_UNPACK_H
#define SHARDLOAD_SOURCE_UNPACK_H

#include "input.h"

typedef struct sl_unpacker sl_unpacker;

/* Enough bytes to tell how an input is compressed. */
#define SL_MAGIC_BYTES 8

/* The name of what bytes that begin like this are compressed with; NULL: nothing known. */
const char *sl_compression_of(const unsigned char *bytes, size_t length);

/* An unpacker of `packed`, which is borrowed and has SL_MAGIC_BYTES peeked that
 * sl_compression_of knows. */
bool sl_unpacker_create(sl_input *packed, sl_unpacker **unpacker, sl_error *error);
void sl_unpacker_destroy(sl_unpacker *unpacker); /* NULL is fine */
sl_input *sl_unpacker_output(sl_unpacker *unpacker);

/* Does the compressed form itself tell when its end is missing? */
bool sl_unpacker_sees_cuts(const sl_unpacker *unpacker);

/* Inside, uncompress.c: .Z, which has no library of its own. Sets all fields of `output`. */
bool sl_uncompress_init(sl_input *output, sl_input *packed, sl_error *error);
void sl_uncompress_clear(sl_input *output);

#endif
