/* SPDX-License-Identifier: Apache-2.0 */
/* The structural scan: where, in 64 bytes of text, the bytes stand that cut it into fields.
 *
 * Each instruction set has a header scan_*.h with these functions, of which all give the same
 * answers:
 *   sl_scan sl_scan_64(const char *bytes, char delimiter, bool quotes);
 *   uint32_t *sl_scan_positions(uint32_t *to, uint64_t mask, uint32_t at)
 *       stores `at` and the index of each bit, and returns the end; SL_SCAN_SCRIBBLE more may be
 *       written on;
 *   uint32_t sl_scan_count(uint64_t mask)   how many bits are set.
 * Bit i of a mask speaks of byte i. */
#ifndef SHARDLOAD_SCAN_H
#define SHARDLOAD_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SL_SCAN_BYTES 64u
#define SL_SCAN_SCRIBBLE 32u

typedef struct sl_scan {
    uint64_t marks; /* delimiters, line feeds and, where asked for, double quotes */
    uint64_t lines; /* line feeds */
    bool high;      /* there are bytes above 0x7F */
    bool odd;       /* there are NULs or, where quotes matter, backslashes */
    bool quoted;    /* there are quotes, where they matter */
} sl_scan;

#endif
