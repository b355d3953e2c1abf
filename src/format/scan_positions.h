/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the bits of a scan to positions, one bit after the other. For all instruction sets
 * except AVX-512.
 *
 * Each round stores a fixed number of positions, even if fewer bits are left, because a
 * mispredicted branch costs more than a few unneeded stores. */
#ifndef SHARDLOAD_SCAN_POSITIONS_H
#define SHARDLOAD_SCAN_POSITIONS_H

#include "scan.h"

static inline uint32_t *sl_scan_positions(uint32_t *to, uint64_t mask, uint32_t at) {
    const uint64_t last = UINT64_C(1) << 63; /* the result of ctz is undefined for 0 */
    uint32_t *end = to + sl_scan_count(mask);
    do {
        for (uint32_t i = 0; i < 12; i++) { /* most texts have fewer marks in 64 bytes */
            to[i] = at + (uint32_t)__builtin_ctzll(mask | last);
            mask &= mask - 1;
        }
        to += 12;
    } while (__builtin_expect(mask != 0, 0));
    return end;
}

#endif
