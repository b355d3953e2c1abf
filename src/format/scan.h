/* SPDX-License-Identifier: Apache-2.0 */
/* The structural scan: finds the positions of delimiters, line feeds and quotes in 64 bytes of
 * text. Bit i of a mask belongs to byte i.
 *
 * delimited_sets.h has the function for each instruction set; all give the same results:
 *   sl_scan sl_scan_64(const char *bytes, char delimiter, char quote); */
#ifndef SHARDLOAD_SCAN_H
#define SHARDLOAD_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __PCLMUL__
#include <immintrin.h>
#endif

#define SL_SCAN_BYTES 64u
#define SL_SCAN_SCRIBBLE 32u

typedef struct sl_scan {
    uint64_t marks;  /* delimiters, line feeds and quotes */
    uint64_t lines;  /* line feeds */
    uint64_t quotes; /* bytes equal to `quote`; 0 if that is 0 */
    bool high;       /* contains bytes above 0x7F */
    bool odd;        /* contains NULs or, with a quote, backslashes */
} sl_scan;

/* Bit i of the result is the parity of the mask's bits 0 to i. */
static inline uint64_t sl_parity_before(uint64_t mask) {
#ifdef __PCLMUL__ /* the product with a number of ones only, without carries */
    return (uint64_t)_mm_cvtsi128_si64(
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)mask), _mm_set1_epi8(-1), 0));
#else
    mask ^= mask << 1;
    mask ^= mask << 2;
    mask ^= mask << 4;
    mask ^= mask << 8;
    mask ^= mask << 16;
    return mask ^ mask << 32;
#endif
}

/* The bytes that escape characters escape. `*carry`: is the first byte escaped? On return: is the
 * byte after these? Runs of escape characters are added to the bits at which they begin at an odd
 * or even index: the carry of the sum is the byte after the run. */
static inline uint64_t sl_scan_escaped(uint64_t escapes, uint64_t *carry) {
    const uint64_t even = 0x5555555555555555u;
    escapes &= ~*carry;
    uint64_t follows = escapes << 1 | *carry, sum;
    uint64_t odd_starts = escapes & ~even & ~follows;
    *carry = __builtin_add_overflow(odd_starts, escapes, &sum);
    return (even ^ sum << 1) & follows;
}

/* The number of set bits. */
static inline uint32_t sl_scan_count(uint64_t mask) {
#if defined(__POPCNT__) || defined(__aarch64__)
    return (uint32_t)__builtin_popcountll(mask);
#else
    mask -= mask >> 1 & 0x5555555555555555u;
    mask = (mask & 0x3333333333333333u) + (mask >> 2 & 0x3333333333333333u);
    return (uint32_t)(((mask + (mask >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
#endif
}

/* Stores `at` plus the index of each set bit, and returns the end; may overwrite SL_SCAN_SCRIBBLE
 * more numbers. Each round stores a fixed number of positions, even if fewer bits are left, because
 * a mispredicted branch costs more than a few unneeded stores. */
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
