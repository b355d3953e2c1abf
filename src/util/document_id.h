/* SPDX-License-Identifier: Apache-2.0 */
/* Document ids: a source's number and a record's byte offset, in a signed 64-bit integer.
 *
 *   bit 63  62 .......... 40  39 ... 32  31 ...... 20  19 ........... 0
 *        0  source number     stripe     row           offset in block
 *
 * The uncompressed stream of a source is divided into blocks of 1 MiB. A block's index has 20 bits:
 * the low 8, reversed, are the stripe, and the high 12 are the row. So consecutive blocks are far
 * apart in the key space, in the order of a van der Corput sequence: for any number of ranges of a
 * source's keys, a sequential reader fills all ranges evenly from the first megabytes on. Of two
 * records in the same stripe, the one with the higher offset has the higher id.
 *
 * The mapping is one to one: an id identifies the source and the byte at which a record begins, and
 * the same record of the same source always gets the same id. A source has at most 1 TiB. Source
 * numbers are 1 to 2^23 - 2: for the largest 23-bit number, the end of its ids (one past the last)
 * would not fit into 64 bits. */
#ifndef SHARDLOAD_DOCUMENT_ID_H
#define SHARDLOAD_DOCUMENT_ID_H

#include <stdint.h>

#define SL_BLOCK_BITS 20
#define SL_BLOCK_BYTES ((uint64_t)1 << SL_BLOCK_BITS)
#define SL_STRIPES 256u
#define SL_SOURCE_BYTES_MAX ((uint64_t)1 << 40)
#define SL_SOURCE_NUMBER_MAX ((uint32_t)0x7FFFFE)

/* A generated record has no text. It counts as a power of two of bytes of its source, at least this
 * many and at most SL_BLOCK_BYTES: with n bytes per record, record i has the offset i * n. */
#define SL_GENERATED_BYTES 256u

static inline uint32_t sl_reverse_8_bits(uint32_t x) {
    x = ((x & 0x55) << 1) | ((x >> 1) & 0x55);
    x = ((x & 0x33) << 2) | ((x >> 2) & 0x33);
    return ((x & 0x0F) << 4) | ((x >> 4) & 0x0F);
}

/* The first id of a source's stripe, 0 to SL_STRIPES - 1. For SL_STRIPES: one past the source's
 * last id. */
static inline int64_t sl_stripe_first_id(uint32_t source_number, uint32_t stripe) {
    return ((int64_t)source_number << 40) + ((int64_t)stripe << 32);
}

/* The id of the record at `offset` (below SL_SOURCE_BYTES_MAX) of source `number`. */
static inline int64_t sl_document_id(uint32_t number, uint64_t offset) {
    uint64_t block = offset >> SL_BLOCK_BITS;
    uint64_t stripe = sl_reverse_8_bits((uint32_t)(block & 0xFF));
    return (int64_t)(((uint64_t)number << 40) | (stripe << 32) | ((block >> 8) << SL_BLOCK_BITS) |
                     (offset & (SL_BLOCK_BYTES - 1)));
}

static inline uint32_t sl_document_id_source(int64_t id) {
    return (uint32_t)((uint64_t)id >> 40);
}

static inline uint64_t sl_document_id_offset(int64_t id) {
    uint64_t bits = (uint64_t)id;
    uint64_t block = (((bits >> SL_BLOCK_BITS) & 0xFFF) << 8) |
                     sl_reverse_8_bits((uint32_t)((bits >> 32) & 0xFF));
    return (block << SL_BLOCK_BITS) | (bits & (SL_BLOCK_BYTES - 1));
}

#endif
