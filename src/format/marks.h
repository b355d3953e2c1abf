/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: the places in a stretch of text where fields and lines end, found by the structural scan.
 * Private to the delimited engine. */
#ifndef SHARDLOAD_MARKS_H
#define SHARDLOAD_MARKS_H

#include "scan.h"

#define SL_STRETCH_BYTES 8192u /* of text scanned at once; the lists stay in the nearest cache */

typedef struct sl_marks {
    uint32_t mark_count;
    uint32_t line_count;
    bool high; /* these as in sl_scan, for the whole stretch and up to 63 bytes behind it */
    bool odd;
    bool quoted;
    /* Positions of delimiters, line feeds and, in quoting dialects, quotes: marks[1..mark_count].
     * marks[0] is free for the user, who wants a mark before the first field. */
    uint32_t marks[1 + SL_STRETCH_BYTES + 1 + SL_SCAN_SCRIBBLE];
    uint32_t lines[SL_STRETCH_BYTES + 1]; /* of line feeds alone: lines[0..line_count-1] */
} sl_marks;

/* Adds the end of a last line that has no line feed. */
static inline void sl_marks_add_line_end(sl_marks *marks, uint32_t position) {
    marks->marks[++marks->mark_count] = position;
    marks->lines[marks->line_count++] = position;
}

#endif
