/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks Deflate64, the method 9 of zip archives, which Windows uses for files above 2 GB. It is
 * Deflate (RFC 1951) with a window of 64 KiB, distances up to 65,536 (the codes 30 and 31), and
 * lengths up to 65,538 (the code 285 has 16 extra bits and begins at 3). */
#ifndef SHARDLOAD_SOURCE_INFLATE64_H
#define SHARDLOAD_SOURCE_INFLATE64_H

#include "input.h"

#define SL_INFLATE64_WINDOW ((size_t)1 << 16)
#define SL_INFLATE64_FAST_BITS 10u

/* A prefix code. Codes of up to SL_INFLATE64_FAST_BITS bits are looked up in `fast`; longer ones
 * are found by their number within their length. */
typedef struct sl_code64 {
    uint16_t fast[1u << SL_INFLATE64_FAST_BITS]; /* symbol << 4 | length; 0: longer, or no code */
    uint16_t count[16];                          /* codes of each length */
    uint16_t symbols[288];                       /* in the order of their codes */
} sl_code64;

/* All fields are private. The struct is 70 KB; nothing else is allocated. */
typedef struct sl_inflate64 {
    sl_input *input; /* borrowed; its buffer has room for at least 8 bytes */
    uint64_t begin;  /* position of the first byte in the input */
    uint64_t total;  /* bytes unpacked */
    unsigned bit;    /* of the input's next byte, 0 to 7: the next to be read */
    unsigned state;
    bool last_block;
    uint32_t stored_left;      /* of a stored block */
    uint32_t length, distance; /* of a match that has not been copied completely */
    sl_code64 literals, distances;
    unsigned char window[SL_INFLATE64_WINDOW]; /* the byte at position p is at p modulo its size */
} sl_inflate64;

/* Begins at the input's position. */
void sl_inflate64_begin(sl_inflate64 *inflate, sl_input *input);

/* Unpacks up to `room` bytes. *got is 0 at the end of the data only; the input's position is then
 * the first byte after them. Fails with SL_EXIT_SOURCE if the data are damaged or truncated; the
 * message begins with `label` and names the byte of the input. */
bool sl_inflate64_read(sl_inflate64 *inflate, unsigned char *out, size_t room, size_t *got,
                       const char *label, sl_reader_times *times, sl_error *error);

#endif
