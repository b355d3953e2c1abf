/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a page as SVG within HTML. All of them are WIDTH units wide and scale with the page.
 * Colours are classes (f0 and so on fill, s0 and so on stroke) that the page's style sheet knows, so
 * that one picture serves light, dark and paper. What hovering shows are <title> elements: there is
 * no script. */
#ifndef SHARDLOAD_REPORT_PICTURE_H
#define SHARDLOAD_REPORT_PICTURE_H

#include <stdio.h>

#include "page.h"

#define SL_PICTURE_WIDTH 900
#define SL_PICTURE_COLOURS 8
#define SL_PICTURE_CHARACTER 7.0 /* the width of one, about, at the size of labels */

/* Text as HTML: nothing in it is markup, control characters and bad UTF-8 are shown as \xHH. Cut to
 * `most` characters with an ellipsis. */
void sl_markup_text(FILE *out, const char *text, size_t most);
/* The characters (as opposed to bytes) that sl_markup_text would show, `most` at most. */
size_t sl_markup_width(const char *text, size_t most);

/* <svg ...> of a height, with `label` for those who cannot see it; and its end. */
void sl_picture_begin(FILE *out, double height, const char *label);
void sl_picture_end(FILE *out);
/* <text class="CLASS" ...>, cut to `most` characters; `anchor`: start, middle or end. */
void sl_picture_text(FILE *out, double x, double y, const char *class, const char *anchor,
                     const char *text, size_t most);

void sl_picture_curves(FILE *out, const sl_curves *curves, const char *label);
void sl_picture_bars(FILE *out, const sl_bars *bars, const char *label);
void sl_picture_strips(FILE *out, const sl_strips *strips, const char *label);
void sl_picture_grid(FILE *out, const sl_grid *grid, const char *label);

/* How far the longest strip reaches, with its range and the limit. */
double sl_strips_maximum(const sl_strips *strips);
double sl_strip_sum(const sl_strip *strip);
/* 0 to 1: how strong the colour of a cell's value is. */
double sl_grid_strength(const sl_grid *grid, double value);
/* The highest value of a chart: of the sums when stacked. */
double sl_curves_maximum(const sl_curves *curves);
double sl_curves_end(const sl_curves *curves); /* in seconds, bands included */

#endif
