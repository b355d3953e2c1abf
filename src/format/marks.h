/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: the positions in a stretch of text at which fields and lines end, found by the structural
 * scan. Private to the delimited engine. */
#ifndef SHARDLOAD_MARKS_H
#define SHARDLOAD_MARKS_H

#include "scan.h"

#define SL_STRETCH_BYTES 8192u /* of text scanned at once; its lists fit into the L1 cache */

typedef struct sl_marks {
    uint32_t mark_count;
    uint32_t line_count;
    bool high; /* these three as in sl_scan, for the stretch and up to 63 bytes after it */
    bool odd;
    bool quoted;
    /* Positions of delimiters, line feeds and, in dialects with quotes, quotes:
     * marks[1..mark_count]. The caller may set marks[0] to the mark before the first field. */
    uint32_t marks[1 + SL_STRETCH_BYTES + 1 + SL_SCAN_SCRIBBLE];
    uint32_t lines[SL_STRETCH_BYTES + 1]; /* positions of line feeds: lines[0..line_count-1] */
} sl_marks;

/* Adds the end of a last line without line feed. */
static inline void sl_marks_add_line_end(sl_marks *marks, uint32_t position) {
    marks->marks[++marks->mark_count] = position;
    marks->lines[marks->line_count++] = position;
}

#endif
