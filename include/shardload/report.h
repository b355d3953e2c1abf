/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of records: one HTML file that needs nothing else, or text for a terminal, from what
 * loads, trials, drills and the bench have written down as JSON (run.json, tune.json, reload.json,
 * plan.json, shards.json; docs/reports.md). */
#ifndef SHARDLOAD_REPORT_H
#define SHARDLOAD_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <bson/bson.h>

#include <shardload/error.h>

/* What is to be shown. All borrowed. */
typedef struct sl_report {
    const bson_t *const *records;
    const char *const *names; /* what to call each record, or NULL: by number and time */
    size_t count;
    const char *title; /* NULL: made from the records */
} sl_report;

/* How text is to look. */
typedef struct sl_report_terminal {
    unsigned columns; /* 0: 80; from 40 to 200 */
    bool ascii;       /* no characters but ASCII in the pictures */
} sl_report_terminal;

/* Is this a record that can be shown? False with error (SL_EXIT_SOURCE) saying what is missing or
 * which program it is of. */
bool sl_report_check_record(const bson_t *record, sl_error *error);

/* The page as text. Free with free(). NULL with error: SL_EXIT_SOURCE for a record that cannot be
 * shown, SL_EXIT_USAGE without memory. */
char *sl_report_html(const sl_report *report, sl_error *error);

/* The same for a terminal; errors as above, or SL_EXIT_USAGE when `out` cannot be written. */
bool sl_report_text(const sl_report *report, const sl_report_terminal *terminal, FILE *out,
                    sl_error *error);

/* Writes the page of `records` to `path` as sl_json_write_file writes JSON: mode 0600, whole or not
 * at all, never through a link. sl_json_may_write_file asks beforehand. `title` may be NULL. */
bool sl_report_html_write(const bson_t *const *records, size_t count, const char *title,
                          const char *path, sl_error *error);

#endif
