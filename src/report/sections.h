/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of each kind of record, which fill a page. */
#ifndef SHARDLOAD_REPORT_SECTIONS_H
#define SHARDLOAD_REPORT_SECTIONS_H

#include <bson/bson.h>

#include <shardload/report.h>

#include "page.h"

/* Records of one kind with a name each. */
typedef struct sl_records {
    const bson_t *const *items;
    const char *const *names;
    size_t count;
} sl_records;

/* Fills a page from all records of the report, kind by kind. False with error set. */
bool sl_sections_fill(sl_page *page, const sl_report *report, const char **title,
                      sl_error *error);

/* ---- one function per kind; the table in sections.c calls them ---- */

void sl_sections_load(sl_page *page, const bson_t *record);
void sl_sections_loads(sl_page *page, const sl_records *records);
void sl_sections_tune(sl_page *page, const bson_t *record);
void sl_sections_reload(sl_page *page, const bson_t *record);
void sl_sections_reloads(sl_page *page, const sl_records *records);
void sl_sections_plan(sl_page *page, const bson_t *record);
void sl_sections_capacity(sl_page *page, const bson_t *record);
void sl_sections_shards(sl_page *page, const bson_t *record);
void sl_sections_queries(sl_page *page, const bson_t *record);

/* ---- what several kinds share (common_sections.c) ---- */

/* "2026-11-20 16:31" in UTC from the milliseconds at `path`, or "". */
const char *sl_section_time(sl_page *page, const bson_t *record, const char *path);
/* A value of the record in words, "-" when it is not there. */
const char *sl_section_value(sl_page *page, const bson_t *record, const char *path, sl_unit unit);
const char *sl_section_number(sl_page *page, double value, sl_unit unit);
/* "1.25" (times the first), or "" for what cannot be told. */
const char *sl_section_ratio(sl_page *page, double value, double first);
/* A fact, if the record has it. */
void sl_section_fact(sl_page *page, sl_page_table *facts, const bson_t *record, const char *path,
                     const char *name, sl_unit unit);
/* The seconds of all items of the array at `path`; of the one called `name` when not NULL. */
double sl_section_phase_seconds(const bson_t *record, const char *path, const char *name);
/* Phases as one strip, called `label`. */
sl_strip *sl_section_phase_strip(sl_page *page, sl_strips *strips, const bson_t *record,
                                 const char *path, const char *label);
/* A drill as one strip: its phases, or, when it had a part of the data only, those predicted. */
void sl_section_whole_drill(sl_page *page, sl_strips *strips, const bson_t *record,
                            const char *label);
/* Phases as a table with shares. */
void sl_section_phase_table(sl_page *page, const bson_t *record, const char *path,
                            const char *title);
/* The texts of the array at `path` as paragraphs. */
void sl_section_texts(sl_page *page, const bson_t *record, const char *path, sl_tone tone);
/* The phases that a prediction cannot tell: "indexes, verify"; "" when it tells all. */
const char *sl_section_untold(sl_page *page, const bson_t *predicted);
/* A prediction's phases with their ranges, as a table. */
void sl_section_predicted_table(sl_page *page, const bson_t *record, const char *title);
/* Where a table must end: "and N more" when there are more rows than anybody reads. */
#define SL_ROWS_MAX 200
void sl_section_more(sl_page *page, sl_page_table *table, size_t left_out);
/* Options, server and client of a record, as tables. */
void sl_section_setting(sl_page *page, const bson_t *record);
/* An option or any other scalar as text; NULL for null and what is no scalar. */
const char *sl_section_scalar(sl_page *page, const bson_iter_t *value);
/* The same, or the items of a list. */
const char *sl_section_words(sl_page *page, const bson_iter_t *value);
/* The account of a load's record as a table. */
void sl_section_accounting(sl_page *page, const bson_t *record);
/* Documents that a load's record accounts for, NAN when it has no account. */
double sl_section_documents(const bson_t *record);
/* Of those, per second of the load phase; NAN when it cannot be told. */
double sl_section_rate(const bson_t *record);

#endif
