/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders: each decodes one stream of a compressed format (a gzip member, a zstd frame) piece by
 * piece with that format's own library. unpack.c handles the bytes between streams. */
#ifndef SHARDLOAD_SOURCE_DECODER_H
#define SHARDLOAD_SOURCE_DECODER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory limit for unpacking one source: the dictionary of xz and lzip, the window of zstd. */
#define SL_DECODER_MEMORY_MAX_LOG 28
#define SL_DECODER_MEMORY_MAX ((uint64_t)1 << SL_DECODER_MEMORY_MAX_LOG)

typedef enum sl_decoded {
    SL_DECODED_SOME, /* zero or more bytes; the stream continues */
    SL_DECODED_END,  /* the stream is complete, and its checksums match */
    SL_DECODED_DAMAGED,
    SL_DECODED_NO_MEMORY,
    SL_DECODED_TOO_LARGE, /* needs more than SL_DECODER_MEMORY_MAX bytes of memory */
} sl_decoded;

/* Input and output of one call of `run`, which advances both. */
typedef struct sl_decode_piece {
    unsigned char *in, *out;
    size_t in_left, out_left;
    const char *fault; /* set with SL_DECODED_DAMAGED; static */
    uint64_t needed;   /* bytes of memory; set with SL_DECODED_TOO_LARGE, 0: not known */
} sl_decode_piece;

typedef struct sl_decoder {
    void *(*create)(void);      /* NULL: no memory */
    bool (*begin)(void *state); /* before each stream; false: no memory */
    sl_decoded (*run)(void *state, sl_decode_piece *piece);
    void (*destroy)(void *state); /* NULL is fine */
} sl_decoder;

/* Limits a length to the unsigned int of zlib, ISA-L and libbz2. */
static inline unsigned sl_decoder_limit(size_t bytes) {
    return bytes > UINT_MAX ? UINT_MAX : (unsigned)bytes;
}

/* Advances a piece by the bytes used and made. */
static inline void sl_decoder_advance(sl_decode_piece *piece, size_t used, size_t made) {
    piece->in += used;
    piece->in_left -= used;
    piece->out += made;
    piece->out_left -= made;
}

extern const sl_decoder sl_decoder_gzip, sl_decoder_xz, sl_decoder_lzip, sl_decoder_bzip2,
    sl_decoder_zstd, sl_decoder_lz4;
extern const sl_decoder sl_decoder_utf16; /* UTF-16 text to UTF-8 */

#endif
