/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: one self-contained HTML file, or text for a terminal, made from the JSON records of
 * loads, trials, drills, plans and queries (run.json, tune.json, reload.json, plan.json;
 * docs/reports.md). */
#ifndef SHARDLOAD_REPORT_H
#define SHARDLOAD_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <bson/bson.h>

#include "util/error.h"

/* The content of a report. All borrowed. */
typedef struct sl_report {
    const bson_t *const *records;
    const char *const *names; /* of the records; NULL: named by number and time */
    size_t count;
    const char *title; /* NULL: derived from the records */
} sl_report;

/* Width and character set of a text report. */
typedef struct sl_report_terminal {
    unsigned columns; /* 40 to 200; 0: 80 */
    bool ascii;       /* only ASCII characters in the pictures */
} sl_report_terminal;

/* Can this record be shown? If not, the error (SL_EXIT_SOURCE) names the missing field or the
 * program that wrote the record. */
bool sl_report_check_record(const bson_t *record, sl_error *error);

/* The HTML page. Free with free(). NULL with error: SL_EXIT_SOURCE for a record that cannot be
 * shown, SL_EXIT_USAGE without memory. */
char *sl_report_html(const sl_report *report, sl_error *error);

/* Prints the report as text; errors as above, or SL_EXIT_USAGE when `out` cannot be written. */
bool sl_report_text(const sl_report *report, const sl_report_terminal *terminal, FILE *out,
                    sl_error *error);

/* Writes the page of `records` to `path` like sl_json_write_file: mode 0600, atomically, never
 * through a symbolic link. Check it by sl_private_file_may_replace first. `title` may be NULL. */
bool sl_report_html_write(const bson_t *const *records, size_t count, const char *title,
                          const char *path, sl_error *error);

#endif
