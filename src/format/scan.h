/* SPDX-License-Identifier: Apache-2.0 */
/* The structural scan: finds the positions of delimiters, line feeds and quotes in 64 bytes of
 * text.
 *
 * Each instruction set has a header scan_*.h with these functions; all give the same results:
 *   sl_scan sl_scan_64(const char *bytes, char delimiter, char quote);
 *   uint32_t *sl_scan_positions(uint32_t *to, uint64_t mask, uint32_t at)
 *       stores `at` plus the index of each set bit, and returns the end; may overwrite
 *       SL_SCAN_SCRIBBLE more numbers;
 *   uint32_t sl_scan_count(uint64_t mask)   returns the number of set bits.
 * Bit i of a mask belongs to byte i. */
#ifndef SHARDLOAD_SCAN_H
#define SHARDLOAD_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SL_SCAN_BYTES 64u
#define SL_SCAN_SCRIBBLE 32u

typedef struct sl_scan {
    uint64_t marks;  /* delimiters, line feeds and quotes */
    uint64_t lines;  /* line feeds */
    uint64_t quotes; /* bytes equal to `quote`; 0 if that is 0 */
    bool high;       /* contains bytes above 0x7F */
    bool odd;        /* contains NULs or, with a quote, backslashes */
} sl_scan;

#endif
