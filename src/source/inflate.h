/* SPDX-License-Identifier: Apache-2.0 */
/* One member of a gzip stream inflated, piece by piece: by ISA-L where the build found it, which is
 * nearly three times as fast, else by zlib. Both check the member's length and checksum. */
#ifndef SHARDLOAD_SOURCE_INFLATE_H
#define SHARDLOAD_SOURCE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum inflated {
    INFLATED_SOME, /* or nothing, when there is no input or no room */
    INFLATED_ALL,  /* the member has ended */
    INFLATED_DAMAGED,
} inflated;

/* A piece of work: both ends move as it is done. */
typedef struct inflate_piece {
    unsigned char *in, *out;
    size_t in_left, out_left;
    const char *fault; /* set where it is damaged */
} inflate_piece;

static inline uint32_t inflate_at_once(size_t bytes) {
    return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

#ifdef SHARDLOAD_ISAL

#include <isa-l/igzip_lib.h>

typedef struct inflate_state inflater;

/* Before each member but the first. */
static inline void inflater_next_member(inflater *z) {
    isal_inflate_reset(z);
    z->crc_flag = ISAL_GZIP;
}

static inline bool inflater_begin(inflater *z) {
    isal_inflate_init(z);
    inflater_next_member(z);
    return true;
}

static inline void inflater_end(inflater *z) {
    (void)z;
}

static inline inflated inflater_run(inflater *z, inflate_piece *piece) {
    static const char *const faults[] = {"bad data",
                                         "invalid block",
                                         "invalid code",
                                         "invalid distance too far back",
                                         "incorrect header",
                                         "unknown compression method",
                                         "incorrect data check"};
    uint32_t in = inflate_at_once(piece->in_left), out = inflate_at_once(piece->out_left);
    z->next_in = piece->in;
    z->avail_in = in;
    z->next_out = piece->out;
    z->avail_out = out;
    int result = isal_inflate(z);
    piece->in = z->next_in;
    piece->in_left -= in - z->avail_in;
    piece->out = z->next_out;
    piece->out_left -= out - z->avail_out;
    if (result < 0) {
        piece->fault = faults[result >= -6 ? -result : 0];
        return INFLATED_DAMAGED;
    }
    return z->block_state == ISAL_BLOCK_FINISH ? INFLATED_ALL : INFLATED_SOME;
}

#else

#include <zlib.h>

typedef z_stream inflater;

static inline void inflater_next_member(inflater *z) {
    inflateReset(z);
}

static inline bool inflater_begin(inflater *z) {
    return inflateInit2(z, 15 + 16) == Z_OK;
}

static inline void inflater_end(inflater *z) {
    inflateEnd(z);
}

static inline inflated inflater_run(inflater *z, inflate_piece *piece) {
    uint32_t in = inflate_at_once(piece->in_left), out = inflate_at_once(piece->out_left);
    z->next_in = piece->in;
    z->avail_in = in;
    z->next_out = piece->out;
    z->avail_out = out;
    int result = inflate(z, Z_NO_FLUSH);
    piece->in = z->next_in;
    piece->in_left -= in - z->avail_in;
    piece->out = z->next_out;
    piece->out_left -= out - z->avail_out;
    if (result == Z_STREAM_END)
        return INFLATED_ALL;
    piece->fault = z->msg ? z->msg : "bad data";
    return result == Z_OK || result == Z_BUF_ERROR ? INFLATED_SOME : INFLATED_DAMAGED;
}

#endif

#endif
