/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: the places in a stretch of text where fields and lines end, made by the structural scan.
 * Private to the delimited engine. */
#ifndef SHARDLOAD_MARKS_H
#define SHARDLOAD_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#define SL_STRETCH_BYTES 8192u /* of text scanned at once; the lists stay in the nearest cache */
#define SL_MARKS_AT_ONCE 12u   /* more than 64 bytes of most texts have */

typedef struct sl_marks {
    uint32_t mark_count;
    uint32_t line_count;
    bool plain; /* as in sl_scan, for the whole stretch */
    bool quoted;
    /* Positions of delimiters, line feeds and, in quoting dialects, quotes: marks[1..mark_count].
     * marks[0] is free for the user, who wants a mark before the first field. */
    uint32_t marks[1 + SL_STRETCH_BYTES + 1 + SL_MARKS_AT_ONCE];
    uint32_t lines[SL_STRETCH_BYTES + 1]; /* of line feeds alone: lines[0..line_count-1] */
} sl_marks;

/* Finds the marks in text[start..stop), at most SL_STRETCH_BYTES, as positions in `text`. Reads up
 * to 63 bytes behind `stop`. */
void sl_marks_find(sl_marks *marks, const char *text, uint32_t start, uint32_t stop, char delimiter,
                   bool quotes);

/* Adds the end of a last line that has no line feed. */
static inline void sl_marks_add_line_end(sl_marks *marks, uint32_t position) {
    marks->marks[++marks->mark_count] = position;
    marks->lines[marks->line_count++] = position;
}

#endif
