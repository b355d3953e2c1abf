/* SPDX-License-Identifier: Apache-2.0 */
/* From the bits of a scan to positions, one bit after the other; for all instruction sets that have
 * nothing better.
 *
 * Bits are taken out a fixed number at a time, whether there are as many or not, because a branch
 * that is guessed wrongly costs more than a few stores too many. */
#ifndef SHARDLOAD_SCAN_POSITIONS_H
#define SHARDLOAD_SCAN_POSITIONS_H

#include "scan.h"

static inline uint32_t *sl_scan_positions(uint32_t *to, uint64_t mask, uint32_t at) {
    const uint64_t last = UINT64_C(1) << 63; /* so that no zeros are counted in a zero */
    uint32_t *end = to + sl_scan_count(mask);
    do {
        for (uint32_t i = 0; i < 12; i++) { /* more than 64 bytes of most texts have */
            to[i] = at + (uint32_t)__builtin_ctzll(mask | last);
            mask &= mask - 1;
        }
        to += 12;
    } while (__builtin_expect(mask != 0, 0));
    return end;
}

#endif
