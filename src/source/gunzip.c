/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder for gzip members: ISA-L if the build found it, else zlib, which takes nearly three
 * times as long. Both check the member's length and checksum. */
#include "decoder.h"

#include <stdlib.h>

#ifdef SHARDLOAD_ISAL

#include <isa-l/igzip_lib.h>

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

static int run(gunzip_state *state) {
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
    int result = run(state);
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

#include <zlib.h>

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
