/* SPDX-License-Identifier: Apache-2.0 */
/* Queries: suites of named aggregations, running and timing them, comparing their answers with
 * what they must be, and telling two sets of timings apart. */
#ifndef SHARDLOAD_QUERY_H
#define SHARDLOAD_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <bson/bson.h>

#include <shardload/connection.h>
#include <shardload/error.h>

/* ---- suite.c: a YAML file of queries ---- */

#define SL_REPEAT_MAX 1000000

typedef struct sl_query {
    char *name;
    char *description;
    bson_t *pipeline;      /* an array of stages */
    bson_t *options;       /* fields of the aggregate command: allowDiskUse, hint, maxTimeMS */
    char *read_preference; /* primary, secondaryPreferred ...; NULL for what the URI says */
    bson_t *expected;      /* an array of documents; NULL when the suite does not say */
} sl_query;

typedef struct sl_suite {
    char *name;
    char *description;
    char *database; /* NULL when the suite does not say */
    char *collection;
    unsigned repeat;  /* 1..SL_REPEAT_MAX */
    unsigned warm_up; /* 0..SL_REPEAT_MAX */
    size_t count;
    sl_query *queries; /* in the order of the file; names are unique */
} sl_suite;

/* Reads a suite from YAML text. `file` is its name in messages: "mot.yaml:12:5: expected ...". On
 * false `error` is set (SL_EXIT_SOURCE). */
bool sl_suite_parse(const char *text, size_t length, const char *file, sl_suite **suite,
                    sl_error *error);

/* Reads the built-in suite `name` ("mot"), or the suite file of that name when no suite is called
 * so. A file that is called mot can be reached as ./mot. */
bool sl_suite_open(const char *name, sl_suite **suite, sl_error *error);
void sl_suite_destroy(sl_suite *suite); /* NULL is fine */

/* ---- answer.c: is this the right answer? ---- */

#define SL_DIFFERENCES_KEPT 5

typedef struct sl_differences {
    uint64_t count;
    char text[SL_DIFFERENCES_KEPT][320]; /* the first of them, in words */
} sl_differences;

/* Compares two arrays of documents by value: numbers of any type are equal within a relative
 * tolerance of 1e-9, the order of keys in a document does not matter, the order of rows and array
 * elements does, and null is not the same as a missing key. Everything else must have the same type
 * and value. True when there is no difference. */
bool sl_answer_compare(const bson_t *expected, const bson_t *got, sl_differences *differences);

/* ---- sample.c: what a few timings say ---- */

typedef struct sl_sample {
    size_t count;
    double minimum;
    double median;
    double mean;
    double deviation; /* sample standard deviation; 0 when count is 1 */
    double maximum;
} sl_sample;

/* `values` (at least one) is sorted by this. */
sl_sample sl_sample_of(double *values, size_t count);

typedef enum sl_verdict { SL_FASTER, SL_SLOWER, SL_NOT_TOLD_APART } sl_verdict;

typedef struct sl_ratio {
    double estimate; /* new / old: the median of all ratios of a new and an old timing */
    double low;      /* the confidence interval of that */
    double high;
    double confidence;  /* of the interval; below 0.95 when there are too few timings */
    sl_verdict verdict; /* of the new timings; only ever given with a confidence of 0.95 or more */
} sl_ratio;

/* Compares timings by their ranks, with no assumption about how they are distributed: the interval
 * is the one that the Mann-Whitney test would not reject. Returns false when out of memory or when
 * there are more than SL_RATIO_TIMINGS_MAX timings on a side. All timings are above zero. */
#define SL_RATIO_TIMINGS_MAX 2000
bool sl_ratio_of(const double *old_values, size_t old_count, const double *new_values,
                 size_t new_count, sl_ratio *ratio);

const char *sl_verdict_text(sl_verdict verdict); /* "faster", "slower", "cannot be told apart" */

/* ---- run.c: running a query against a collection ---- */

typedef enum sl_answer {
    SL_ANSWER_NOT_CHECKED,
    SL_ANSWER_OK,    /* of every counted repetition */
    SL_ANSWER_WRONG, /* of at least one */
    SL_ANSWER_NONE,  /* the query failed */
} sl_answer;

const char *sl_answer_text(sl_answer answer); /* "ok", "WRONG", "not checked", "FAILED" */

/* Documents beyond this are read and counted, but not kept, and so cannot be compared. */
#define SL_RESULT_BYTES_MAX ((uint64_t)64 << 20)

typedef struct sl_query_run {
    double *timings;         /* milliseconds, in the order they were measured */
    size_t count;            /* of timings; smaller than asked for when the query failed */
    sl_sample sample;        /* of the timings; meaningless while count is 0 */
    bson_t *documents;       /* array: the last repetition's, or the first wrong one's */
    uint64_t document_count; /* of the same repetition */
    bool truncated;          /* not all of them are in `documents` */
    sl_answer answer;
    sl_differences differences; /* when the answer is wrong */
    bson_t *explained;          /* see explain.c; NULL when not asked for */
    sl_error error;             /* why it failed; code SL_EXIT_OK when it did not */
} sl_query_run;

typedef struct sl_query_options {
    const char *database;
    const char *collection;
    const char *read_preference; /* overrides the query's own; or NULL */
    unsigned repeat;             /* at least 1 */
    unsigned warm_up;
    bool explain;
    const bson_t *expected; /* the answer to compare with, or NULL */
    /* Called before each run of the query: 1..warm_up+repeat. May be NULL. */
    void (*progress)(void *context, unsigned run, unsigned runs);
    void *context;
} sl_query_options;

/* Runs a query warm_up + repeat times, one after the other on one connection, and times the last
 * `repeat` of them, each from sending the command to having read the last document. Comparing
 * answers is not part of the time. On false run->error is set; clear `run` in any case. */
bool sl_query_execute(sl_connection *connection, const sl_query *query,
                      const sl_query_options *options, sl_query_run *run);
void sl_query_run_clear(sl_query_run *run);

/* The documents of a collection by its metadata, which costs nothing. False with error set when it
 * cannot be told; `*exists` is false when there is no such collection. */
bool sl_query_count_documents(sl_connection *connection, const char *database,
                              const char *collection, uint64_t *count, bool *exists,
                              sl_error *error);

/* ---- report.c: what a run leaves for later ---- */

/* What was asked of a query and what came of it. */
typedef struct sl_query_outcome {
    const sl_suite *suite;
    const sl_query *query;
    const sl_query_options *options;
    const sl_query_run *run;
    uint64_t documents; /* in the collection */
    bool documents_known;
} sl_query_outcome;

/* Documents of the collection per millisecond of the median run; 0 when it cannot be told. */
double sl_outcome_rate(const sl_query_outcome *outcome);

/* Appends the outcome to `queries`, the array of a report. False without memory. */
bool sl_report_append(bson_t *queries, const sl_query_outcome *outcome);

/* Prints, for each query of both reports, how the new timings compare with the old ones, and in
 * words what makes them hard to compare: other pipelines, other numbers of documents, queries that
 * only one has. False with error set (SL_EXIT_SOURCE) when one is not a report of this program. */
bool sl_report_compare(const bson_t *old_report, const bson_t *new_report, FILE *out,
                       sl_error *error);

/* ---- show.c: on standard output, for a person ---- */

/* One query: its plan if it was explained, and at most `rows` documents of its answer. */
void sl_show_run(const sl_query *query, const sl_query_run *run, size_t rows);

/* The table of timings of a suite's queries. False without memory. */
bool sl_show_timings(const sl_query_outcome *outcomes, size_t count);

/* What is wrong with the answer, if it is. */
void sl_show_differences(const sl_query_outcome *outcome);

/* ---- explain.c: what the planner chose ---- */

/* Makes {split: bool, plans: [{shard: "s0", plan: "GROUP <- COLLSCAN"}, ...]} of an explained
 * aggregation's reply; `split` tells whether the pipeline was cut into a part for the shards and
 * one that merges. NULL without memory. */
bson_t *sl_explain_summary(const bson_t *reply);

/* ---- table.c: documents and figures in columns ---- */

typedef struct sl_table sl_table;

/* NULL without memory. */
sl_table *sl_table_create(void);
void sl_table_destroy(sl_table *table); /* NULL is fine */

/* Adds a column. Cells of a column with `right` end at its right edge. */
bool sl_table_column(sl_table *table, const char *title, bool right);
/* Adds a cell; cells go from left to right, row by row. Control bytes are shown as \xHH. */
bool sl_table_cell(sl_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the table, indented by `indent` blanks; false when memory went missing while it was
 * filled. */
bool sl_table_print(const sl_table *table, FILE *out, unsigned indent);

/* Prints at most `rows` of an array of documents: keys as columns (those of documents in documents
 * as a.b), in the order they are first met; numbers with thousands separators except under _id,
 * where they are names. False without memory. */
bool sl_table_print_documents(const bson_t *documents, size_t rows, FILE *out, unsigned indent);

/* "1,234,567.89" with `decimals` digits after the point; into and returns out. */
#define SL_FIGURE_ROOM 64
char *sl_table_figure(double value, int decimals, char out[SL_FIGURE_ROOM]);

#endif
