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
    bool high; /* as in sl_scan, for the stretch and up to 63 bytes after it */
    bool odd;  /* as in sl_scan, for the same bytes */
    bool quoted;
    /* Positions of delimiters, line feeds and, in dialects with quotes, quotes:
     * marks[1..mark_count]. The caller may set marks[0] to the mark before the first field. */
    uint32_t marks[1 + SL_STRETCH_BYTES + 1 + SL_SCAN_SCRIBBLE];
    uint32_t lines[SL_STRETCH_BYTES + 1]; /* positions of line feeds: lines[0..line_count-1] */
    /* Of find_records only, which leaves out the marks and lines within quotes, and the quotes: */
    bool irregular;                         /* contains quotes that take_regular cannot read */
    uint16_t line_feeds;                    /* of the stretch, in and outside of quotes */
    uint16_t numbers[SL_STRETCH_BYTES + 1]; /* how many of them lie before the end of lines[i] */
} sl_marks;

/* Adds the end of a last line without line feed. */
static inline void sl_marks_add_line_end(sl_marks *marks, uint32_t position) {
    marks->marks[++marks->mark_count] = position;
    marks->numbers[marks->line_count] = (uint16_t)(marks->line_feeds + 1);
    marks->lines[marks->line_count++] = position;
}

#endif
