/* SPDX-License-Identifier: Apache-2.0 */
/* Passes over text with quoted fields, 64 bytes at a time; see quoted.h. Compiled once for each
 * instruction set, after its scan_*.h.
 *
 * A byte lies within quotes if the number of quotes before it is odd, provided that each quote that
 * makes this number odd opens a field or is the second of two: the byte before it is a delimiter, a
 * line feed, or a quote that made the parity even. Text in which a quote does neither, and text of
 * a dialect with an escape character, is left to sl_quoted_end. */
#ifndef SHARDLOAD_QUOTED_LOOP_H
#define SHARDLOAD_QUOTED_LOOP_H

#include "quoted.h"
#include "scan.h"

/* Bit i of the result is the parity of the mask's bits 0 to i. */
static inline uint64_t sl_parity_before(uint64_t mask) {
    mask ^= mask << 1;
    mask ^= mask << 2;
    mask ^= mask << 4;
    mask ^= mask << 8;
    mask ^= mask << 16;
    return mask ^ mask << 32;
}

/* Passes over steps of 64 bytes from `at` on, up to `stop` at the latest. Returns the position
 * reached: less than 64 bytes before `stop`, or the beginning of a step that must be passed over
 * byte by byte. */
static size_t pass_quotes(const sl_dialect *d, const char *text, size_t at, size_t stop,
                          sl_quote_state *state) {
    sl_quote_state now = *state;
    if (d->escape)
        return at;
    for (; at + SL_SCAN_BYTES <= stop && now != SL_AFTER_ESCAPE; at += SL_SCAN_BYTES) {
        sl_scan scan = sl_scan_64(text + at, '"', false);
        uint64_t quotes = scan.marks & ~scan.lines;
        uint64_t inside = now == SL_IN_QUOTES ? ~UINT64_C(0) : 0;
        if (quotes) {
            inside ^= sl_parity_before(quotes);
            for (uint64_t opening = quotes & inside; opening; opening &= opening - 1) {
                unsigned i = (unsigned)__builtin_ctzll(opening);
                bool fits = i == 0 ? now == SL_AT_FIELD || now == SL_AFTER_QUOTE
                                   : text[at + i - 1] == d->delimiter || text[at + i - 1] == '\n' ||
                                         text[at + i - 1] == '"';
                if (!fits) {
                    *state = now;
                    return at;
                }
            }
        }
        char last = text[at + SL_SCAN_BYTES - 1];
        if (inside >> 63)
            now = SL_IN_QUOTES;
        else if (last == '"')
            now = SL_AFTER_QUOTE;
        else
            now = last == d->delimiter || last == '\n' ? SL_AT_FIELD : SL_IN_FIELD;
    }
    *state = now;
    return at;
}

#endif
