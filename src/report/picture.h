/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the pictures of a page as SVG within HTML. They are SL_PICTURE_WIDTH units wide and scale
 * with the page. Colours are classes of the page's style sheet (f0 and so on for fill, s0 and so on
 * for stroke), so that a picture works in light mode, dark mode and print. Tooltips are <title>
 * elements; there is no script. */
#ifndef SHARDLOAD_REPORT_PICTURE_H
#define SHARDLOAD_REPORT_PICTURE_H

#include <stdio.h>

#include "page.h"

#define SL_PICTURE_WIDTH 900
#define SL_PICTURE_COLOURS 8
#define SL_PICTURE_CHARACTER 7.0 /* approximate width of a character of a label */

/* Writes text as HTML: markup is escaped, control characters and invalid UTF-8 become \xHH.
 * Shortened to `most` characters with an ellipsis. */
void sl_markup_text(FILE *out, const char *text, size_t most);
/* The number of characters (not bytes) that sl_markup_text shows, at most `most`. */
size_t sl_markup_width(const char *text, size_t most);

/* Write the start and end tags of <svg>; `label` is the text for screen readers. */
void sl_picture_begin(FILE *out, double height, const char *label);
void sl_picture_end(FILE *out);
/* Writes <text class="CLASS" ...>, shortened to `most` characters; `anchor`: start, middle or
 * end. */
void sl_picture_text(FILE *out, double x, double y, const char *class, const char *anchor,
                     const char *text, size_t most);

typedef struct sl_axis {
    double left, width;
    double end; /* the value at the right end, above 0 */
    sl_unit unit;
    bool first_right; /* the first value is to the right of its tick, not centred */
} sl_axis;
/* Draws the ticks of a horizontal axis at `y`, with their values below. */
void sl_picture_scale(FILE *out, const sl_axis *axis, double y);

/* sl_picture_curves and so on: draw a picture. */
#define SL_PICTURE_DRAWN(kind, name)                                                               \
    void sl_picture_##name(FILE *out, const sl_##name *name, const char *label);
SL_PICTURES(SL_PICTURE_DRAWN)
#undef SL_PICTURE_DRAWN

/* The largest end of all strips, their ranges and the limit. */
double sl_strips_maximum(const sl_strips *strips);
double sl_strip_sum(const sl_strip *strip);
/* The strength of the colour of a cell's value, 0 to 1. */
double sl_grid_strength(const sl_grid *grid, double value);
/* The largest value of a chart; if stacked, the largest sum. */
double sl_curves_maximum(const sl_curves *curves);
double sl_curves_end(const sl_curves *curves); /* in seconds, bands included */

#endif
