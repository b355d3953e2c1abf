/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: from the bits of the structural scan to lists of positions.
 *
 * Bits are taken out a fixed number at a time, whether there are as many or not, because a branch
 * that is guessed wrongly costs more than a few stores too many; the list's end is set right by
 * counting. */
#include "marks.h"
#include "scan.h"

#include <shardload/format.h>

_Static_assert(SL_SCAN_BYTES <= SL_SLACK, "the scan may read behind the text");

static inline __attribute__((always_inline)) void
find(sl_marks *m, const char *text, uint32_t start, uint32_t stop, char delimiter, bool quotes) {
    const uint64_t last = UINT64_C(1) << 63; /* so that no zeros are counted in a zero */
    uint32_t *marks = m->marks + 1, *lines = m->lines;
    bool plain = true, quoted = false;
    for (uint32_t at = start; at < stop; at += SL_SCAN_BYTES) {
        sl_scan scan = sl_scan_64(text + at, delimiter, quotes);
        if (__builtin_expect(stop - at < SL_SCAN_BYTES, 0)) {
            uint64_t within = (UINT64_C(1) << (stop - at)) - 1;
            scan.marks &= within;
            scan.lines &= within;
        }
        plain &= scan.plain;
        quoted |= scan.quoted;
        uint32_t *end = marks + sl_scan_count(scan.marks);
        do {
            for (uint32_t i = 0; i < SL_MARKS_AT_ONCE; i++) {
                marks[i] = at + (uint32_t)__builtin_ctzll(scan.marks | last);
                scan.marks &= scan.marks - 1;
            }
            marks += SL_MARKS_AT_ONCE;
        } while (__builtin_expect(scan.marks != 0, 0));
        marks = end;
        do {
            *lines = at + (uint32_t)__builtin_ctzll(scan.lines | last);
            lines += scan.lines != 0;
            scan.lines &= scan.lines - 1;
        } while (__builtin_expect(scan.lines != 0, 0));
    }
    m->plain = plain;
    m->quoted = quoted;
    m->mark_count = (uint32_t)(marks - m->marks) - 1;
    m->line_count = (uint32_t)(lines - m->lines);
}

void sl_marks_find(sl_marks *marks, const char *text, uint32_t start, uint32_t stop, char delimiter,
                   bool quotes) {
    if (quotes) /* two copies, each without the question */
        find(marks, text, start, stop, delimiter, true);
    else
        find(marks, text, start, stop, delimiter, false);
}
