/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders for xz and lzip (liblzma), bzip2, zstd and lz4. */
#include "decoder.h"

#include <bzlib.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

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
