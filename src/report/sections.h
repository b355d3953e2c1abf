/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of each kind of record, which fill a page. Internal to src/report. */
#ifndef SHARDLOAD_REPORT_SECTIONS_H
#define SHARDLOAD_REPORT_SECTIONS_H

#include <bson/bson.h>

#include "report.h"

#include "page.h"

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
void sl_sections_shards(sl_page *page, const bson_t *record);
void sl_sections_queries(sl_page *page, const bson_t *record);

/* ---- functions for several kinds of records (common_sections.c) ---- */

/* "2026-11-20 16:31" in UTC from the date at `path`, or "". */
const char *sl_section_time(sl_page *page, const bson_t *record, const char *path);
/* The first words of a report by the record's exit code, and their tone. */
const char *sl_section_ending(const bson_t *record, sl_tone *tone);
/* A number of the record as text, "-" if it is missing. */
const char *sl_section_value(sl_page *page, const bson_t *record, const char *path, sl_unit unit);
const char *sl_section_number(sl_page *page, double value, sl_unit unit);
/* The ratio of `value` to `first`, "1.25"; "" if it is unknown. */
const char *sl_section_ratio(sl_page *page, double value, double first);
/* Adds a fact, if the record has it. */
void sl_section_fact(sl_page *page, sl_page_table *facts, const bson_t *record, const char *path,
                     const char *name, sl_unit unit);
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
/* The names of the phases without a predicted time: "indexes, verify"; "" if there are none. */
const char *sl_section_unknown_phases(sl_page *page, const bson_t *predicted);
/* Adds a prediction's phases with their ranges as a table. */
void sl_section_predicted_table(sl_page *page, const bson_t *record, const char *title);

#define SL_ROWS_MAX 200 /* of a table */
/* Adds a last row "and N more" if there are more than SL_ROWS_MAX rows. `rows`: all of them. */
void sl_section_more(sl_page *page, sl_page_table *table, size_t rows);
/* Makes the last row bold. */
void sl_section_emphasize(sl_page_table *table);

/* A column of a table with a row for each document of an array. It shows the number at `path` in
 * the document, unless one of the functions makes its cell. */
typedef const char *sl_cell_function(sl_page *page, const bson_t *item, const char *path);
typedef struct sl_column {
    const char *title; /* NULL ends the columns */
    const char *path;
    sl_unit unit;             /* of the number */
    sl_cell_function *figure; /* makes a cell that is aligned to the right */
    sl_cell_function *text;   /* makes a cell that is aligned to the left */
} sl_column;
/* Cells: the text at the path; the number as "1.25", or "-". */
const char *sl_cell_text(sl_page *page, const bson_t *item, const char *path);
const char *sl_cell_ratio(sl_page *page, const bson_t *item, const char *path);
/* Adds a table without rows. */
sl_page_table *sl_section_columns(sl_page *page, const char *title, const sl_column *columns);
void sl_section_row(sl_page *page, sl_page_table *table, const bson_t *item,
                    const sl_column *columns);
extern const sl_column sl_shard_columns[]; /* of "shards" in the record of a load */
/* Adds a table of the documents of the array at `path`. */
sl_page_table *sl_section_table(sl_page *page, const bson_t *record, const char *path,
                                const char *title, const sl_column *columns);

/* Adds options, server and client of a record as tables. */
void sl_section_setting(sl_page *page, const bson_t *record);
/* An option or another scalar as text; NULL for null, documents and arrays. */
const char *sl_section_scalar(sl_page *page, const bson_iter_t *value);
/* The same, or the items of a list. */
const char *sl_section_words(sl_page *page, const bson_iter_t *value);
/* Adds the totals of a load's record ("accounting") as a table. */
void sl_section_accounting(sl_page *page, const bson_t *record);
/* The inserted and already stored documents of a load's record; NAN if it has no totals. */
double sl_section_documents(const bson_t *record);
/* How long the workers of a load ran; of older records the load phase. */
double sl_section_load_seconds(const bson_t *record);
/* "mot.tests"; "" when the record names none. */
const char *sl_section_target(sl_page *page, const bson_t *record);
/* The number of samples from which on a 99th percentile is shown. */
#define SL_SAMPLES_FOR_P99 200
/* The documents of this run per second of the load phase; NAN if unknown. */
double sl_section_rate(const bson_t *record);

#endif
