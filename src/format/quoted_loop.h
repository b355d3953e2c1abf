/* SPDX-License-Identifier: Apache-2.0 */
/* Passes over text with quoted fields, 64 bytes at a time; see quoted.h. Compiled once for each
 * instruction set, after its sl_scan_64.
 *
 * A byte lies within quotes if the number of quotes before it is odd, provided that each quote that
 * makes this number odd opens a field or is the second of two: the byte before it is a delimiter, a
 * line feed, or a quote that made the parity even. Text in which a quote does neither, and text of
 * a dialect with an escape character, is left to sl_quoted_end. */
#ifndef SHARDLOAD_QUOTED_LOOP_H
#define SHARDLOAD_QUOTED_LOOP_H

#include "quoted.h"
#include "scan.h"

/* Passes over steps of 64 bytes from `at` on, up to `stop` at the latest. Returns the position
 * reached: less than 64 bytes before `stop`, or the beginning of a step that must be passed over
 * byte by byte. */
static size_t pass_quotes(const sl_dialect *d, const char *text, size_t at, size_t stop,
                          sl_quote_state *state) {
    const size_t first = at;
    uint64_t inside = *state == SL_IN_QUOTES ? UINT64_MAX : 0; /* of the byte before `at` */
    uint64_t after_mark = *state == SL_AT_FIELD || *state == SL_AFTER_QUOTE;
    const char quote = d->quote;
    if (d->escape || !quote)
        return at;
    for (; at + SL_SCAN_BYTES <= stop; at += SL_SCAN_BYTES) {
        sl_scan scan = sl_scan_64(text + at, d->delimiter, quote);
        uint64_t within = sl_parity_before(scan.quotes) ^ inside;
        if (scan.quotes & within & ~(scan.marks << 1 | after_mark))
            break;
        inside = 0 - (within >> 63);
        after_mark = scan.marks >> 63;
    }
    if (at == first)
        return at;
    char last = text[at - 1];
    if (inside)
        *state = SL_IN_QUOTES;
    else if (last == quote)
        *state = SL_AFTER_QUOTE;
    else
        *state = last == d->delimiter || last == '\n' ? SL_AT_FIELD : SL_IN_FIELD;
    return at;
}

#endif
