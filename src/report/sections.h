/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of each kind of record, which fill a page. Tables, facts and bars are described by
 * rows (sl_figure); sections.c reads the figures of the rows from a record. Internal to
 * src/report. */
#ifndef SHARDLOAD_REPORT_SECTIONS_H
#define SHARDLOAD_REPORT_SECTIONS_H

#include <bson/bson.h>

#include "util/write_modes.h"

#include "page.h"
#include "report.h"

/* Records of one kind with a name each. */
typedef struct sl_records {
    const bson_t *const *items;
    const char *const *names;
    size_t count;
} sl_records;

/* Fills a page from all records of the report, kind by kind. False with error set. */
bool sl_sections_fill(sl_page *page, const sl_report *report, const char **title, sl_error *error);

/* ---- one function per kind; the table in sections.c calls them ---- */

void sl_sections_load(sl_page *page, const bson_t *record);
void sl_sections_loads(sl_page *page, const sl_records *records);
/* Are these loads one load that several loaders share by --part or --only-shards? */
bool sl_sections_are_shared(const sl_records *records);
void sl_sections_shared(sl_page *page, const sl_records *records);
void sl_sections_tune(sl_page *page, const bson_t *record);
void sl_sections_reload(sl_page *page, const bson_t *record);
void sl_sections_reloads(sl_page *page, const sl_records *records);
void sl_sections_plan(sl_page *page, const bson_t *record);
void sl_sections_capacity(sl_page *page, const bson_t *record);
void sl_sections_queries(sl_page *page, const bson_t *record);

/* ---- rows ---- */

/* Makes a cell from a document. */
typedef const char *sl_cell_function(sl_page *page, const bson_t *item, const char *path);

/* A figure of a record, or of each document of an array: a fact, a column of a table, a row of a
 * comparison or a bar. It is the number at `path`, unless a function computes it. */
typedef struct sl_figure {
    const char *title; /* NULL ends the rows */
    const char *path;
    sl_unit unit;                        /* of the number */
    sl_cell_function *left, *right;      /* the cell and its alignment, instead of a number */
    double (*value)(const bson_t *item); /* the number, instead of the one at the path */
    const char *suffix;                  /* after the number, or NULL */
    double least;                        /* operations that the number needs, or 0 */
    bool always;                         /* a fact that is shown as "-" if it is missing */
} sl_figure;

double sl_section_figure(const bson_t *item, const sl_figure *figure);
/* Cells: the text at the path; an option or another scalar; the number as "1.25", or "-". */
const char *sl_cell_text(sl_page *page, const bson_t *item, const char *path);
const char *sl_cell_scalar(sl_page *page, const bson_t *item, const char *path);
const char *sl_cell_ratio(sl_page *page, const bson_t *item, const char *path);

/* Adds the figures that the record has as facts. */
void sl_section_facts(sl_page *page, const bson_t *record, const sl_figure *facts);
/* Adds a table without rows; a row. */
sl_page_table *sl_section_columns(sl_page *page, const char *title, const sl_figure *columns);
void sl_section_row(sl_page *page, sl_page_table *table, const bson_t *item,
                    const sl_figure *columns);

/* An array of documents that is shown as a table or as bars. */
typedef struct sl_array {
    const char *path;
    const char *title;
    const sl_figure *columns;          /* of a table; the first column is a name */
    bool (*shown)(const bson_t *item); /* NULL: all documents */
    bool sparse;                       /* without the columns that no document has */
    /* Of bars: */
    const char *caption;
    const char *(*label)(sl_page *page, const bson_t *item);
    sl_figure bar;
    const char *low, *high; /* the paths of the spread, or NULL */
    bool gaps;              /* also bars for documents without the number */
} sl_array;

/* Adds a table with a row for each document; none if there is no document. */
void sl_section_table(sl_page *page, const bson_t *record, const sl_array *array);
/* Adds bars, a bar for each document; none if no document has the number. */
void sl_section_bars(sl_page *page, const bson_t *record, const sl_array *array);

#define SL_ROWS_MAX 200 /* of a table */
#define SL_COLUMNS_MAX 32
/* Adds a last row "and N more" if there are more than SL_ROWS_MAX rows. `rows`: all of them. */
void sl_section_more(sl_page *page, sl_page_table *table, size_t rows);
/* Makes the last row bold. */
void sl_section_emphasize(sl_page_table *table);

/* ---- values and parts for several kinds of records ---- */

/* "2026-11-20 16:31" in UTC from the date at `path`, or "". */
const char *sl_section_time(sl_page *page, const bson_t *record, const char *path);
/* The mode of a load's record. */
const sl_mode_row *sl_section_mode(const bson_t *record);

/* The first words of a report by an exit code and the record's mode, and their tone. */
const char *sl_section_exit(const bson_t *record, double code, sl_tone *tone);
/* A number of the record as text, "-" if it is missing. */
const char *sl_section_value(sl_page *page, const bson_t *record, const char *path, sl_unit unit);
const char *sl_section_number(sl_page *page, double value, sl_unit unit);
/* sl_look_phase_seconds, with 0 instead of NAN. */
double sl_section_phase_seconds(const bson_t *record, const char *path, const char *name);
/* Adds the seconds of each phase in the document at `path` to the strip, one part per phase. */
void sl_section_phase_parts(sl_page *page, sl_strips *strips, sl_strip *strip, const bson_t *record,
                            const char *path);
/* The same in a new strip with this label. */
sl_strip *sl_section_phase_strip(sl_page *page, sl_strips *strips, const bson_t *record,
                                 const char *path, const char *label);
/* Adds a drill as one strip: its phases, or for a sampled drill the predicted phases. */
void sl_section_drill_strip(sl_page *page, sl_strips *strips, const bson_t *record,
                            const char *label);
/* Marks the objective of a drill as the limit, if it has one. */
void sl_section_objective(sl_page *page, sl_strips *strips, const bson_t *record);
/* Adds phases as a table with shares. */
void sl_section_phase_table(sl_page *page, const bson_t *record, const char *path,
                            const char *title);
/* Adds the texts of the array at `path` as paragraphs. */
void sl_section_texts(sl_page *page, const bson_t *record, const char *path, sl_tone tone);

/* Adds options, server and client of a record as tables. */
void sl_section_setting(sl_page *page, const bson_t *record);
/* An option or another scalar as text, or the items of a list; NULL for null and documents. */
const char *sl_section_words(sl_page *page, const bson_iter_t *value);
/* Adds the totals of a load's record ("accounting") as a table, with the labels of its --mode. */
void sl_section_accounting(sl_page *page, const bson_t *record);
/* The number of samples from which on a 99th percentile is shown. */
#define SL_SAMPLES_FOR_P99 200

/* ---- the series of a load (load_sections.c) ----
 *
 * Rates over a few hundred intervals. They are exact, since they are differences of totals,
 * whatever the number of points in the record. */

#define SL_SERIES_STAGES_MAX 8
#define SL_SERIES_SHARDS_MAX 256

enum { SL_SERIES_DOCUMENTS, SL_SERIES_TEXT, SL_SERIES_BSON, SL_SERIES_STORED, SL_SERIES_FIXED };

typedef struct sl_series {
    size_t intervals;
    double *borders; /* intervals + 1 times in seconds, ascending from 0 */
    size_t stages, shards;
    const char *stage_keys[SL_SERIES_STAGES_MAX];
    /* Per column (SL_SERIES_FIXED columns, then stages, then shards): the totals at the intervals +
     * 1 borders, which never fall. */
    double **columns;
} sl_series;

/* Reads the series of `record` into at most `most` intervals. Without a series, or without memory,
 * there are no intervals. */
sl_series sl_series_read(sl_page *page, const bson_t *record, size_t most);
/* The rate of `column` in an interval, per second. */
double sl_series_rate(const sl_series *series, size_t column, size_t interval);

#endif
