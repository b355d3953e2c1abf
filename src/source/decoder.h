/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders: one stream of a compressed format (a gzip member, a zstd frame) decoded piece by piece
 * with that format's own library. What stands between streams is unpack.c's concern. */
#ifndef SHARDLOAD_SOURCE_DECODER_H
#define SHARDLOAD_SOURCE_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one source may take to unpack: the dictionary of xz and lzip, the window of zstd. */
#define SL_DECODER_MEMORY_MAX_LOG 28
#define SL_DECODER_MEMORY_MAX ((uint64_t)1 << SL_DECODER_MEMORY_MAX_LOG)

typedef enum sl_decoded {
    SL_DECODED_SOME, /* or nothing, when there is no input or no room */
    SL_DECODED_END,  /* the stream is complete, and its checksums are right */
    SL_DECODED_DAMAGED,
    SL_DECODED_TOO_LARGE, /* needs more than SL_DECODER_MEMORY_MAX bytes of memory */
} sl_decoded;

/* A piece of work: both ends move as it is done. */
typedef struct sl_decode_piece {
    unsigned char *in, *out;
    size_t in_left, out_left;
    const char *fault; /* set with SL_DECODED_DAMAGED; static */
} sl_decode_piece;

typedef struct sl_decoder {
    void *(*create)(void);      /* NULL without memory */
    bool (*begin)(void *state); /* before each stream; false without memory */
    sl_decoded (*run)(void *state, sl_decode_piece *piece);
    void (*destroy)(void *state); /* NULL is fine */
} sl_decoder;

extern const sl_decoder sl_decoder_gzip; /* gunzip.c: ISA-L where the build found it, else zlib */
extern const sl_decoder sl_decoder_xz, sl_decoder_lzip, sl_decoder_bzip2, sl_decoder_zstd,
    sl_decoder_lz4; /* decoders.c */

#endif
