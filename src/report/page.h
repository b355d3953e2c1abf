/* SPDX-License-Identifier: Apache-2.0 */
/* A page: the content of a report, independent of its format. The sections (load_sections.c and so
 * on) fill it from records; html.c and terminal.c write it. Everything on a page lives as long as
 * the page. Without memory the page is marked as failed and functions return NULL; all functions
 * accept NULL for an object that could not be created, so sections need not check each call. */
#ifndef SHARDLOAD_REPORT_PAGE_H
#define SHARDLOAD_REPORT_PAGE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "util/text.h"

typedef struct sl_page sl_page;

/* Curves over time. A curve's values hold between its borders: `y[i]` from `x[i]` to `x[i + 1]`. */
typedef struct sl_curve {
    const char *name;
    size_t count; /* values */
    double *x;    /* count + 1 borders, ascending, in seconds */
    double *y;    /* count values, finite, not negative */
} sl_curve;

/* A named interval of time: a phase. */
typedef struct sl_band {
    const char *name;
    double from, to;
} sl_band;

typedef struct sl_curves {
    const char *y_name; /* "documents per second" */
    sl_unit unit;       /* of y */
    bool stacked;       /* all curves must have the borders of the first */
    sl_curve *items;
    size_t count, room;
    sl_band *bands;
    size_t band_count, band_room;
} sl_curves;

/* Bars with a label each; all of one unit, from zero. */
typedef struct sl_bar {
    const char *label;
    const char *text; /* the value as text */
    double value;     /* NAN: only the text is drawn */
    double low, high; /* the spread, or NAN */
} sl_bar;

typedef struct sl_bars {
    sl_unit unit;
    sl_bar *items;
    size_t count, room;
} sl_bars;

/* Rows of consecutive parts: phases, shares. Parts of the same name have the same colour. */
typedef struct sl_part {
    size_t name;  /* its index among the names of the picture, and its colour */
    double value; /* finite, not negative */
} sl_part;

typedef struct sl_strip {
    const char *label;
    sl_part *parts;
    size_t count, room;
    double low, high; /* the range of the end, or NAN */
} sl_strip;

typedef struct sl_strips {
    sl_unit unit;
    sl_strip *items;
    size_t count, room;
    const char **names; /* of the parts, each once, by first appearance */
    size_t name_count, name_room;
    double limit; /* a line across all rows, or NAN */
    const char *limit_name;
} sl_strips;

/* Rows and columns of values: a heat map. */
typedef struct sl_cell {
    double value;     /* NAN: none */
    const char *text; /* first line, or NULL */
    const char *more; /* second line, or NULL */
    const char *mark; /* a label that highlights the cell, or NULL */
} sl_cell;

typedef struct sl_grid {
    const char *row_name, *column_name;
    const char **rows, **columns;
    size_t row_count, column_count;
    double maximum; /* the value of the strongest colour */
    double minimum; /* the value of the weakest colour */
    sl_cell *cells; /* row by row */
    bool dense;     /* many small cells without text: shards over time */
    double seconds; /* dense: the time that the columns span */
} sl_grid;

/* A table; `cells` are row by row. Columns are right-aligned unless `left`. */
typedef struct sl_page_table {
    const char **titles;
    size_t columns;
    bool *left; /* text, not figures */
    const char **cells;
    size_t count, room;
    size_t emphasized; /* the row in bold, or SIZE_MAX */
} sl_page_table;

/* The kinds of picture, one row each: the name of SL_BLOCK_X, and the x of sl_x (its data) and of
 * the functions that draw it, picture_x (html.c) and terminal_x (terminal.c). */
#define SL_PICTURES(row) row(CURVES, curves) row(BARS, bars) row(STRIPS, strips) row(GRID, grid)

#define SL_PICTURE_KIND(kind, name) SL_BLOCK_##kind,
typedef enum sl_block_kind {
    SL_BLOCK_CHAPTER, /* a record, or a comparison of records */
    SL_BLOCK_HEADING,
    SL_BLOCK_VERDICT, /* the result in one sentence */
    SL_BLOCK_TEXT,
    SL_BLOCK_FACTS, /* named figures: a table of name and value */
    SL_BLOCK_TABLE,
    SL_PICTURES(SL_PICTURE_KIND)
} sl_block_kind;
#undef SL_PICTURE_KIND

typedef enum sl_tone { SL_TONE_PLAIN, SL_TONE_GOOD, SL_TONE_WARNING, SL_TONE_BAD } sl_tone;

#define SL_PICTURE_DATA(kind, name) sl_##name *name;
typedef struct sl_page_block {
    sl_block_kind kind;
    sl_tone tone;
    const char *text;    /* of a heading or text; the caption of a picture */
    const char *caption; /* how to read a picture, or NULL */
    union {
        sl_page_table *table;
        void *picture; /* any of those below */
        SL_PICTURES(SL_PICTURE_DATA)
    } of;
    struct sl_page_block *next;
} sl_page_block;
#undef SL_PICTURE_DATA

sl_page *sl_page_create(void);       /* NULL without memory */
void sl_page_destroy(sl_page *page); /* NULL is fine */
bool sl_page_failed(const sl_page *page);
const sl_page_block *sl_page_first(const sl_page *page);

/* Zeroed memory that lives as long as the page. */
void *sl_page_memory(sl_page *page, size_t bytes);
/* Text from a printf format; "" without memory. */
const char *sl_page_text(sl_page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add blocks, in the order of the page. All titles and names are borrowed and must live as long as
 * the page: literals, results of sl_page_text, strings of a record. */
void sl_page_add_text(sl_page *page, sl_block_kind kind, sl_tone tone, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
sl_page_table *sl_page_add_facts(sl_page *page);
/* `titles` has `columns` entries and is copied; `left` has a letter per column, l or r. */
sl_page_table *sl_page_add_table(sl_page *page, const char *title, const char *const *titles,
                                 const char *left, size_t columns);
sl_curves *sl_page_add_curves(sl_page *page, const char *title, const char *caption,
                              const char *y_name, sl_unit unit, bool stacked);
sl_bars *sl_page_add_bars(sl_page *page, const char *title, const char *caption, sl_unit unit);
sl_strips *sl_page_add_strips(sl_page *page, const char *title, const char *caption, sl_unit unit);
/* The caller sets the grid's names and cells, which are empty at first. */
sl_grid *sl_page_add_grid(sl_page *page, const char *title, const char *caption, size_t rows,
                          size_t columns);

/* A returned pointer is valid until the next item of its kind is added. */
void sl_page_cell(sl_page *page, sl_page_table *table, const char *text);
sl_curve *sl_page_curve(sl_page *page, sl_curves *curves, const char *name, size_t count);
void sl_page_band(sl_page *page, sl_curves *curves, const char *name, double from, double to);
sl_bar *sl_page_bar(sl_page *page, sl_bars *bars, const char *label, double value,
                    const char *text);
sl_strip *sl_page_strip(sl_page *page, sl_strips *strips, const char *label);
void sl_page_part(sl_page *page, sl_strips *strips, sl_strip *strip, const char *name,
                  double value);

/* ---- sizes of pictures, for all drawings ---- */

/* The largest end of all strips, their ranges and the limit. */
double sl_strips_maximum(const sl_strips *strips);
double sl_strip_sum(const sl_strip *strip);
/* The strength of the colour of a cell's value, 0 to 1. */
double sl_grid_strength(const sl_grid *grid, double value);
/* The largest value of a chart; if stacked, the largest sum. */
double sl_curves_maximum(const sl_curves *curves);
double sl_curves_end(const sl_curves *curves); /* in seconds, bands included */

/* Ticks at 0, step, 2 step ... (count) step, which is at or above the maximum. */
typedef struct sl_ticks {
    double step;
    double top; /* count * step */
    unsigned count;
} sl_ticks;

/* About `count` ticks for values from 0 to `maximum`, at 1, 2 or 5 times a power of ten; for
 * seconds at divisions of minutes, hours and days. A maximum that is not above 0 gives ticks from 0
 * to 1. */
sl_ticks sl_ticks_for(double maximum, unsigned count, sl_unit unit);

/* A value with its unit, short, for an axis. For text see sl_value_text. */
char *sl_tick_text(double value, const sl_ticks *ticks, sl_unit unit, char out[SL_HUMAN_ROOM]);

/* Writes text as HTML: markup is escaped, control characters and invalid UTF-8 become \xHH.
 * Shortened to `most` characters with an ellipsis. */
void sl_markup_text(FILE *out, const char *text, size_t most);

#endif
