/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the marks in a stretch of text, 64 bytes at a time. Compiled once for each instruction set,
 * after its sl_scan_64. */
#ifndef SHARDLOAD_MARKS_LOOP_H
#define SHARDLOAD_MARKS_LOOP_H

#include "kernels.h"
#include "quoted_loop.h"

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* The 64 bytes at `at`, without marks, line feeds and quotes from `stop` on. */
static ALWAYS_INLINE sl_scan scan_until(uint32_t stop, const char *text, uint32_t at,
                                        char delimiter, char quote) {
    sl_scan scan = sl_scan_64(text + at, delimiter, quote);
    if (unlikely(stop - at < SL_SCAN_BYTES)) {
        uint64_t within = (UINT64_C(1) << (stop - at)) - 1;
        scan.marks &= within;
        scan.lines &= within;
        scan.quotes &= within;
    }
    return scan;
}

static ALWAYS_INLINE void find(sl_marks *m, const char *text, uint32_t start, uint32_t stop,
                               char delimiter, char quote) {
    const uint64_t last = UINT64_C(1) << 63; /* the result of ctz is undefined for 0 */
    uint32_t *marks = m->marks + 1, *lines = m->lines;
    bool high = false, odd = false, quoted = false;
    for (uint32_t at = start; at < stop; at += SL_SCAN_BYTES) {
        sl_scan scan = scan_until(stop, text, at, delimiter, quote);
        high |= scan.high;
        odd |= scan.odd;
        quoted |= scan.quotes != 0;
        marks = sl_scan_positions(marks, scan.marks, at);
        do {
            *lines = at + (uint32_t)__builtin_ctzll(scan.lines | last);
            lines += scan.lines != 0;
            scan.lines &= scan.lines - 1;
        } while (unlikely(scan.lines != 0));
    }
    m->high = high;
    m->odd = odd;
    m->quoted = quoted;
    m->mark_count = (uint32_t)(marks - m->marks) - 1;
    m->line_count = (uint32_t)(lines - m->lines);
}

static void find_marks(sl_marks *marks, const char *text, uint32_t start, uint32_t stop,
                       char delimiter, char quote) {
    if (quote) /* two copies of the loop, each without this condition */
        find(marks, text, start, stop, delimiter, quote);
    else
        find(marks, text, start, stop, delimiter, 0);
}

/* As find_marks for a dialect with quotes and without escapes: finds the marks that end fields and
 * records of a text that begins with a record. */
static void find_records(sl_marks *m, const char *text, uint32_t start, uint32_t stop,
                         char delimiter, char quote) {
    const uint64_t last = UINT64_C(1) << 63; /* the result of ctz is undefined for 0 */
    if (!quote)
        __builtin_unreachable(); /* so that the scan does not test it */
    uint32_t *marks = m->marks + 1, line_count = 0, line_feeds = 0;
    uint64_t inside = 0, after_end = 1; /* of the byte before `at` */
    uint64_t irregular = 0, quotes = 0;
    bool high = false, odd = false;
    for (uint32_t at = start; at < stop; at += SL_SCAN_BYTES) {
        sl_scan scan = scan_until(stop, text, at, delimiter, quote);
        const uint64_t within = sl_parity_before(scan.quotes) ^ inside;
        const uint64_t ends = scan.marks ^ scan.quotes;
        /* A quote that opens a field follows an end. The second of two quotes in a field does not;
         * the second quote of an empty field opens nothing. */
        irregular |= scan.quotes & within & ~(ends << 1 | after_end);
        inside = 0 - (within >> 63);
        after_end = ends >> 63;
        quotes |= scan.quotes;
        high |= scan.high;
        odd |= scan.odd;
        marks = sl_scan_positions(marks, ends & ~within, at);
        uint64_t left = scan.lines & ~within;
        do {
            uint64_t up_to = left ^ (left - 1);
            m->lines[line_count] = at + (uint32_t)__builtin_ctzll(left | last);
            m->numbers[line_count] = (uint16_t)(line_feeds + sl_scan_count(scan.lines & up_to));
            line_count += left != 0;
            left &= left - 1;
        } while (unlikely(left != 0));
        line_feeds += sl_scan_count(scan.lines);
    }
    m->high = high;
    m->odd = odd;
    m->quoted = quotes != 0;
    m->irregular = irregular != 0;
    m->mark_count = (uint32_t)(marks - m->marks) - 1;
    m->line_count = line_count;
    m->line_feeds = (uint16_t)line_feeds;
}

#endif
