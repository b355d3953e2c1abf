/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders for gzip, xz and lzip (liblzma), bzip2, zstd, lz4, and for UTF-16. */
#include "decoder.h"

#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>
#ifdef SHARDLOAD_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>
#endif

#include "util/text.h"

/* ---- gzip ----
 *
 * ISA-L is used if the build found it, otherwise zlib, which needs nearly three times as long. Both
 * check the length and the checksum of each member. */

#ifdef SHARDLOAD_ISAL

/* isal_inflate() loses its position when the gzip header comes in several pieces;
 * isal_read_gzip_header() does not. */
typedef struct gunzip_state {
    struct inflate_state inflater;
    struct isal_gzip_header header;
    bool header_read;
} gunzip_state;

static void *gunzip_create(void) {
    return malloc(sizeof(gunzip_state));
}

static bool gunzip_begin(void *state_) {
    gunzip_state *state = state_;
    isal_inflate_init(&state->inflater);
    isal_gzip_header_init(&state->header);
    state->header_read = false;
    return true;
}

static int inflate_some(gunzip_state *state) {
    if (!state->header_read) {
        int result = isal_read_gzip_header(&state->inflater, &state->header);
        if (result != ISAL_DECOMP_OK)
            return result;
        state->header_read = true;
        state->inflater.crc_flag = ISAL_GZIP_NO_HDR_VER;
    }
    return isal_inflate(&state->inflater);
}

static sl_decoded gunzip_run(void *state_, sl_decode_piece *piece) {
    static const char *const faults[] = {"bad data",
                                         "invalid block",
                                         "invalid code",
                                         "invalid distance too far back",
                                         "incorrect header",
                                         "unknown compression method",
                                         "incorrect data check"};
    gunzip_state *state = state_;
    struct inflate_state *z = &state->inflater;
    uint32_t in = sl_decoder_limit(piece->in_left), out = sl_decoder_limit(piece->out_left);
    z->next_in = piece->in;
    z->avail_in = in;
    z->next_out = piece->out;
    z->avail_out = out;
    int result = inflate_some(state);
    sl_decoder_advance(piece, in - z->avail_in, out - z->avail_out);
    if (result < 0) {
        piece->fault = faults[result >= -6 ? -result : 0];
        return SL_DECODED_DAMAGED;
    }
    return state->header_read && z->block_state == ISAL_BLOCK_FINISH ? SL_DECODED_END
                                                                     : SL_DECODED_SOME;
}

static void gunzip_destroy(void *state) {
    free(state);
}

#else

typedef struct gunzip_state {
    z_stream inflater;
    bool begun;
} gunzip_state;

static void *gunzip_create(void) {
    return calloc(1, sizeof(gunzip_state));
}

static bool gunzip_begin(void *state_) {
    gunzip_state *state = state_;
    int result =
        state->begun ? inflateReset(&state->inflater) : inflateInit2(&state->inflater, 15 + 16);
    state->begun = result == Z_OK;
    return state->begun;
}

static sl_decoded gunzip_run(void *state_, sl_decode_piece *piece) {
    z_stream *z = &((gunzip_state *)state_)->inflater;
    uint32_t in = sl_decoder_limit(piece->in_left), out = sl_decoder_limit(piece->out_left);
    z->next_in = piece->in;
    z->avail_in = in;
    z->next_out = piece->out;
    z->avail_out = out;
    int result = inflate(z, Z_NO_FLUSH);
    sl_decoder_advance(piece, in - z->avail_in, out - z->avail_out);
    if (result == Z_STREAM_END)
        return SL_DECODED_END;
    if (result == Z_MEM_ERROR)
        return SL_DECODED_NO_MEMORY;
    piece->fault = z->msg ? z->msg : "bad data";
    return result == Z_OK || result == Z_BUF_ERROR ? SL_DECODED_SOME : SL_DECODED_DAMAGED;
}

static void gunzip_destroy(void *state_) {
    gunzip_state *state = state_;
    if (state && state->begun)
        inflateEnd(&state->inflater);
    free(state);
}

#endif

const sl_decoder sl_decoder_gzip = {gunzip_create, gunzip_begin, gunzip_run, gunzip_destroy};

/* ---- xz and lzip ---- */

static void *lzma_create(void) {
    static const lzma_stream empty = LZMA_STREAM_INIT;
    lzma_stream *stream = malloc(sizeof *stream);
    if (stream)
        *stream = empty;
    return stream;
}

static bool xz_begin(void *state) {
    return lzma_stream_decoder(state, SL_DECODER_MEMORY_MAX, 0) == LZMA_OK;
}

static bool lzip_begin(void *state) {
    return lzma_lzip_decoder(state, SL_DECODER_MEMORY_MAX, 0) == LZMA_OK;
}

static sl_decoded lzma_run(void *state, sl_decode_piece *piece) {
    lzma_stream *stream = state;
    stream->next_in = piece->in;
    stream->avail_in = piece->in_left;
    stream->next_out = piece->out;
    stream->avail_out = piece->out_left;
    lzma_ret result = lzma_code(stream, LZMA_RUN);
    sl_decoder_advance(piece, piece->in_left - stream->avail_in,
                       piece->out_left - stream->avail_out);
    switch (result) {
    case LZMA_OK:
    case LZMA_BUF_ERROR: /* no progress without more input */
        return SL_DECODED_SOME;
    case LZMA_STREAM_END:
        return SL_DECODED_END;
    case LZMA_MEMLIMIT_ERROR:
        piece->needed = lzma_memusage(stream);
        return SL_DECODED_TOO_LARGE;
    case LZMA_MEM_ERROR:
        return SL_DECODED_NO_MEMORY;
    case LZMA_OPTIONS_ERROR:
        piece->fault = "unknown options in its header";
        return SL_DECODED_DAMAGED;
    default:
        piece->fault = result == LZMA_FORMAT_ERROR ? "incorrect header" : "bad data";
        return SL_DECODED_DAMAGED;
    }
}

static void lzma_destroy(void *state) {
    if (state)
        lzma_end(state);
    free(state);
}

const sl_decoder sl_decoder_xz = {lzma_create, xz_begin, lzma_run, lzma_destroy};
const sl_decoder sl_decoder_lzip = {lzma_create, lzip_begin, lzma_run, lzma_destroy};

/* ---- bzip2 ---- */

typedef struct bzip2_state {
    bz_stream stream;
    bool begun;
} bzip2_state;

static void *bzip2_create(void) {
    return calloc(1, sizeof(bzip2_state));
}

static bool bzip2_begin(void *state_) {
    bzip2_state *state = state_;
    if (state->begun)
        BZ2_bzDecompressEnd(&state->stream);
    state->begun = BZ2_bzDecompressInit(&state->stream, 0, 0) == BZ_OK;
    return state->begun;
}

static sl_decoded bzip2_run(void *state_, sl_decode_piece *piece) {
    bz_stream *stream = &((bzip2_state *)state_)->stream;
    unsigned in = sl_decoder_limit(piece->in_left), out = sl_decoder_limit(piece->out_left);
    stream->next_in = (char *)piece->in;
    stream->avail_in = in;
    stream->next_out = (char *)piece->out;
    stream->avail_out = out;
    int result = BZ2_bzDecompress(stream);
    sl_decoder_advance(piece, in - stream->avail_in, out - stream->avail_out);
    if (result == BZ_OK)
        return SL_DECODED_SOME;
    if (result == BZ_STREAM_END)
        return SL_DECODED_END;
    if (result == BZ_MEM_ERROR)
        return SL_DECODED_NO_MEMORY;
    piece->fault = result == BZ_DATA_ERROR_MAGIC ? "incorrect header" : "bad data";
    return SL_DECODED_DAMAGED;
}

static void bzip2_destroy(void *state_) {
    bzip2_state *state = state_;
    if (state && state->begun)
        BZ2_bzDecompressEnd(&state->stream);
    free(state);
}

const sl_decoder sl_decoder_bzip2 = {bzip2_create, bzip2_begin, bzip2_run, bzip2_destroy};

/* ---- zstd ---- */

static void *zstd_create(void) {
    return ZSTD_createDCtx();
}

static bool zstd_begin(void *state) {
    return !ZSTD_isError(ZSTD_DCtx_reset(state, ZSTD_reset_session_only)) &&
           !ZSTD_isError(
               ZSTD_DCtx_setParameter(state, ZSTD_d_windowLogMax, SL_DECODER_MEMORY_MAX_LOG));
}

static sl_decoded zstd_run(void *state, sl_decode_piece *piece) {
    ZSTD_inBuffer in = {piece->in, piece->in_left, 0};
    ZSTD_outBuffer out = {piece->out, piece->out_left, 0};
    size_t result = ZSTD_decompressStream(state, &out, &in);
    sl_decoder_advance(piece, in.pos, out.pos);
    if (!ZSTD_isError(result))
        return result == 0 ? SL_DECODED_END : SL_DECODED_SOME;
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        return SL_DECODED_NO_MEMORY;
    piece->fault = ZSTD_getErrorName(result);
    return ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge
               ? SL_DECODED_TOO_LARGE
               : SL_DECODED_DAMAGED;
}

static void zstd_destroy(void *state) {
    ZSTD_freeDCtx(state);
}

const sl_decoder sl_decoder_zstd = {zstd_create, zstd_begin, zstd_run, zstd_destroy};

/* ---- lz4 ---- */

static void *lz4_create(void) {
    LZ4F_dctx *context = NULL;
    return LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) ? NULL : context;
}

static bool lz4_begin(void *state) {
    LZ4F_resetDecompressionContext(state);
    return true;
}

static sl_decoded lz4_run(void *state, sl_decode_piece *piece) {
    size_t in = piece->in_left, out = piece->out_left;
    size_t result = LZ4F_decompress(state, piece->out, &out, piece->in, &in, NULL);
    if (LZ4F_isError(result)) {
        piece->fault = LZ4F_getErrorName(result);
        return strstr(piece->fault, "allocation") ? SL_DECODED_NO_MEMORY : SL_DECODED_DAMAGED;
    }
    sl_decoder_advance(piece, in, out);
    return result == 0 ? SL_DECODED_END : SL_DECODED_SOME;
}

static void lz4_destroy(void *state) {
    LZ4F_freeDecompressionContext(state);
}

const sl_decoder sl_decoder_lz4 = {lz4_create, lz4_begin, lz4_run, lz4_destroy};

/* ---- UTF-16 ---- */

/* UTF-16 with byte order mark, as a decoder: the text is converted to UTF-8, and then read like the
 * text of a compressed file. A surrogate without its other half becomes the three bytes that it
 * would have in UTF-8; these are not UTF-8, so that the parser rejects the record that contains
 * them. */

#define CHARACTER_BYTES 6u /* maximum of UTF-8 for one unit: a lone surrogate and a character */

typedef struct utf16_state {
    bool begun; /* the byte order mark has been read */
    bool big_endian;
    bool half; /* `byte` is the first byte of a unit */
    uint8_t byte;
    uint32_t surrogate; /* the first half of a character; 0: none */
} utf16_state;

static void *utf16_create(void) {
    return calloc(1, sizeof(utf16_state));
}

static bool utf16_begin(void *state) {
    *(utf16_state *)state = (utf16_state){0};
    return true;
}

static void put(sl_decode_piece *piece, uint32_t code) {
    unsigned char *end = sl_utf8_put(piece->out, code);
    piece->out_left -= (size_t)(end - piece->out);
    piece->out = end;
}

static void take_unit(utf16_state *state, sl_decode_piece *piece, uint32_t unit) {
    if (!state->begun) {
        state->begun = true;
        state->big_endian = unit == 0xFFFE; /* units are read as little-endian before this */
        return;
    }
    bool second = unit >= 0xDC00 && unit < 0xE000;
    if (state->surrogate && second) {
        put(piece, 0x10000 + ((state->surrogate - 0xD800) << 10) + (unit - 0xDC00));
        state->surrogate = 0;
        return;
    }
    if (state->surrogate)
        put(piece, state->surrogate);
    state->surrogate = unit >= 0xD800 && unit < 0xDC00 ? unit : 0;
    if (!state->surrogate)
        put(piece, unit);
}

/* Without input, the text has ended: it is complete unless it ends within a unit. */
static sl_decoded utf16_run(void *state_, sl_decode_piece *piece) {
    utf16_state *state = state_;
    if (piece->in_left == 0) {
        if (state->surrogate && piece->out_left >= CHARACTER_BYTES)
            put(piece, state->surrogate);
        state->surrogate = 0;
        return state->half ? SL_DECODED_SOME : SL_DECODED_END;
    }
    while (piece->in_left > 0 && piece->out_left >= CHARACTER_BYTES) {
        uint8_t byte = *piece->in++;
        piece->in_left--;
        state->half = !state->half;
        if (state->half)
            state->byte = byte;
        else if (state->big_endian)
            take_unit(state, piece, (uint32_t)state->byte << 8 | byte);
        else
            take_unit(state, piece, (uint32_t)byte << 8 | state->byte);
    }
    return SL_DECODED_SOME;
}

const sl_decoder sl_decoder_utf16 = {utf16_create, utf16_begin, utf16_run, free};
