/* SPDX-License-Identifier: Apache-2.0 */
/* Query suites: named queries, read from YAML, run and timed. Their answers are compared with
 * expected answers, and reports of several runs with each other. */
#ifndef SHARDLOAD_QUERY_H
#define SHARDLOAD_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <bson/bson.h>

#include "cluster/connection.h"
#include "util/error.h"

/* ---- suite.c: a YAML file of queries ---- */

#define SL_REPEAT_MAX 1000000
#define SL_CLIENTS_MAX 4096

/* The operations, one row each: the name of SL_X, the name in suites, the command, and whether it
 * writes. suite.c has their keys, operation.c makes their commands and reads the replies. */
/* clang-format off */
#define SL_QUERY_OPERATIONS(row)                                                                   \
    row(AGGREGATE, "aggregate", "aggregate", false)                                                \
    row(FIND, "find", "find", false)                                                               \
    row(FIND_ONE, "findOne", "find", false)                                                        \
    row(COUNT, "count", "count", false)                                                            \
    row(DISTINCT, "distinct", "distinct", false)                                                   \
    row(MAP_REDUCE, "mapReduce", "mapReduce", false)                                               \
    row(UPDATE, "update", "update", true)                                                          \
    row(INSERT, "insert", "insert", true)
/* clang-format on */

#define SL_OPERATION_ID(id, name, command, writes) SL_##id,
typedef enum sl_operation { SL_QUERY_OPERATIONS(SL_OPERATION_ID) SL_OPERATIONS } sl_operation;
#undef SL_OPERATION_ID

const char *sl_operation_name(sl_operation operation);
const char *sl_operation_command(sl_operation operation);
bool sl_operation_writes(sl_operation operation);

/* The statistic that the client computes over the documents of a find. It is the query's answer. */
typedef enum sl_client_statistic {
    SL_STATISTIC_NONE,       /* the answer is the documents */
    SL_STATISTIC_ACCUMULATE, /* min, max, sum and count, updated with each document */
    SL_STATISTIC_LIST,       /* the same, computed from a list of all values at the end */
} sl_client_statistic;

/* How the value of a parameter is drawn for each operation. */
typedef enum sl_draw {
    SL_DRAW_RANGE,    /* uniform between two numbers, both included */
    SL_DRAW_LIST,     /* uniform from a list */
    SL_DRAW_ZIPF,     /* first + k, k from 0 to count - 1, with probability ~ (k + 1)^-skew */
    SL_DRAW_SEQUENCE, /* first, first + step ...; no two clients of a run draw the same number */
    SL_DRAW_SAMPLE,   /* uniform from values of the collection, read by $sample before the run */
} sl_draw;

/* A parameter of a query: a drawn value replaces each {"$parameter": "name"} in the query's
 * JSON. */
typedef struct sl_parameter {
    char *name;
    sl_draw draw;
    bool integers;       /* range: draw integers; otherwise doubles */
    double low, high;    /* range of doubles */
    int64_t first, last; /* range of integers; `first` also of zipf and sequence */
    int64_t step;        /* sequence */
    uint64_t count;      /* zipf: of numbers; sample: of documents to sample */
    double skew;         /* zipf: above 0 */
    char *field;         /* sample: dotted name */
    bson_t *values;      /* an array: the list; the sample, NULL before sl_query_sample */
} sl_parameter;

#define SL_PARAMETERS_MAX 16
#define SL_STATISTIC_THREADS_MAX 64
/* The parameter that --limit sets: the number of documents that a query reads. */
#define SL_LIMIT_PARAMETER "limit"

typedef struct sl_query {
    char *name;
    char *description;
    sl_operation operation;
    bson_t *pipeline; /* an array of stages; NULL unless it is an aggregate */
    bson_t *body;     /* fields of the command that are keys of the suite: filter, sort, map ... */
    bson_t *options;  /* fields of the command that the suite has under `options`: hint ... */
    char *read_preference; /* primary, secondaryPreferred ...; NULL: that of the URI */
    bson_t *expected;      /* the expected answer, an array of documents; or NULL */
    char *expected_hash;   /* sl_answer_hash of the expected answer, or NULL */
    sl_parameter *parameters;
    size_t parameter_count;
    sl_client_statistic statistic;
    char *statistic_field; /* dotted name; NULL without a statistic */
    unsigned threads;      /* number of threads that compute the statistic, each over a part */
} sl_query;

/* A row of a mix: a query, and how often it is run relative to the other rows. */
typedef struct sl_share {
    size_t query; /* index into the suite's queries */
    double weight;
} sl_share;

typedef struct sl_suite {
    char *name;
    char *description;
    char *database;   /* NULL when the suite names none */
    char *collection; /* NULL when the suite names none */
    unsigned repeat;  /* 1..SL_REPEAT_MAX */
    unsigned warm_up; /* 0..SL_REPEAT_MAX */
    bool agree;       /* for each limit, all queries must return the same answer */
    int64_t limit;    /* value of SL_LIMIT_PARAMETER without --limit; 0: none */
    size_t count;
    sl_query *queries; /* in the order of the file; names are unique */
    sl_share *mix;     /* the queries of a load; NULL: each query is measured alone */
    size_t mix_count;
} sl_suite;

/* Parses a suite from YAML text. Messages begin with `file`: "mot.yaml:12:5: expected ...". On
 * false `error` is set (SL_EXIT_SOURCE). */
bool sl_suite_parse(const char *text, size_t length, const char *file, sl_suite **suite,
                    sl_error *error);

/* Reads the built-in suite `name` ("mot") or, when there is none, the file `name`. The path ./mot
 * names a file even though a built-in suite is called mot. */
bool sl_suite_open(const char *name, sl_suite **suite, sl_error *error);
void sl_suite_destroy(sl_suite *suite); /* NULL is fine */

/* Removes the queries that change documents, and the mix, so that running the suite does not change
 * the data. Returns the number of removed queries; the suite may be empty then. */
size_t sl_suite_remove_writes(sl_suite *suite);

/* ---- answer.c: answers compared ---- */

#define SL_DIFFERENCES_KEPT 5

typedef struct sl_differences {
    uint64_t count;
    char text[SL_DIFFERENCES_KEPT][320]; /* messages about the first SL_DIFFERENCES_KEPT */
} sl_differences;

/* Compares two arrays of documents by value: numbers of any type are equal within a relative
 * tolerance of 1e-9, the order of keys in a document does not matter, the order of rows and array
 * elements does, and null is not the same as a missing key. Values of other types are equal when
 * type and bytes are equal. True when there is no difference. */
bool sl_answer_compare(const bson_t *expected, const bson_t *actual, sl_differences *differences);

/* Compares the answers of two queries that must return the same, as above. A document {_id, value:
 * {...}}, as mapReduce and accumulators return it, is replaced by the document under `value`. */
bool sl_answers_agree(const bson_t *first, const bson_t *second, sl_differences *differences);

/* A hash of an answer's documents in their order, as 32 hexadecimal digits in `out`; returns
 * out. */
#define SL_ANSWER_HASH_ROOM 33
char *sl_answer_hash(const bson_t *documents, char out[SL_ANSWER_HASH_ROOM]);

/* The expected answer of a query: its entry in the object "answers" of a JSON file (`answers`, may
 * be NULL), or else the suite's. False without either. `array` borrows from `answers` or
 * `query`. */
bool sl_answer_expected(const bson_t *answers, const sl_query *query, bson_t *array);

/* Checks the object "answers" of a JSON file: each entry must have the name of a query of the
 * suites and be an array of documents, and at least one entry is required. False with error set
 * (SL_EXIT_SOURCE). */
bool sl_answers_check(const bson_t *answers, sl_suite *const *suites, size_t count,
                      sl_error *error);

/* ---- repeat.c: entries of a report, and the figures of timings ---- */

typedef struct sl_sample {
    size_t count;
    double minimum;
    double median;
    double mean;
    double deviation; /* sample standard deviation; 0 when count is 1 */
    double maximum;
} sl_sample;

/* Sorts `values` (at least one). */
sl_sample sl_sample_of(double *values, size_t count);

/* ---- operation.c, explain.c ---- */

/* The collection that a query reads, and the settings of its commands. Strings are borrowed. */
typedef struct sl_query_target {
    const char *database;
    const char *collection;
    const char *read_preference; /* overrides that of the query; or NULL */
    int64_t limit;               /* value of SL_LIMIT_PARAMETER; 0: none */
    uint64_t seed;               /* of the drawn values */
} sl_query_target;

/* Does the query use SL_LIMIT_PARAMETER? */
bool sl_query_uses_limit(const sl_query *query);

/* Reads the values of the query's SL_DRAW_SAMPLE parameters from the collection. */
bool sl_query_sample(sl_connection *connection, sl_query *query, const sl_query_target *target,
                     sl_error *error);

/* The number of documents that every plan of the query must examine: all `documents` of the
 * collection, or `limit` of them when the query uses SL_LIMIT_PARAMETER. False when the number
 * depends on the plan. */
bool sl_examined_by_definition(const sl_query *query, int64_t limit, uint64_t documents,
                               uint64_t *examined);

/* Returns {split: bool, plans: [{shard: "s0", plan: "COLLSCAN -> $group"}, ...]} for the server's
 * reply to an explain. `split`: the shards run the first part of the pipeline, and one server
 * merges. NULL without memory. */
bson_t *sl_explain_summary(const bson_t *reply);

/* ---- repeat.c: one query, run repeatedly, and its report ---- */

typedef enum sl_answer {
    SL_ANSWER_NOT_CHECKED,
    SL_ANSWER_OK,          /* every timed run returned the expected answer */
    SL_ANSWER_WRONG,       /* at least one timed run returned another answer */
    SL_ANSWER_NONE,        /* the query failed */
    SL_ANSWER_UNSUPPORTED, /* the server has no such command, as some routers have no mapReduce */
} sl_answer;

/* "ok", "WRONG", "not checked", "FAILED", "not supported here" */
const char *sl_answer_text(sl_answer answer);

/* A larger answer is read and counted, but not stored in full, and so cannot be compared. */
#define SL_RESULT_BYTES_MAX ((uint64_t)64 << 20)

typedef struct sl_query_run {
    double *timings;         /* milliseconds, in the order of the runs */
    size_t count;            /* of timings; below options->repeat when the query failed */
    sl_sample sample;        /* of the timings; undefined while count is 0 */
    bson_t *documents;       /* array: the first wrong answer, else the last answer */
    uint64_t document_count; /* of that answer */
    uint64_t bytes;          /* of that answer, as BSON */
    bool truncated;          /* `documents` is not the complete answer (SL_RESULT_BYTES_MAX) */
    uint64_t examined;       /* documents that the servers examined in one run */
    bool examined_known;
    sl_answer answer;
    sl_differences differences; /* of a wrong answer */
    bson_t *explained;          /* sl_explain_summary; NULL when the query was not explained */
    sl_error error;             /* code SL_EXIT_OK unless the query failed */
} sl_query_run;

typedef struct sl_query_options {
    const char *database;
    const char *collection;
    const char *read_preference; /* overrides that of the query; or NULL */
    unsigned repeat;             /* at least 1 */
    unsigned warm_up;
    int64_t limit;            /* value of SL_LIMIT_PARAMETER; 0: none */
    uint64_t seed;            /* of the drawn values */
    uint64_t documents;       /* in the collection; 0: unknown */
    bool explain;             /* explain the query once, before the first run */
    const bson_t *expected;   /* the expected answer, or NULL */
    const char *cold;         /* a shell command, executed untimed before each run; or NULL */
    const _Atomic bool *stop; /* once set, no further run begins; may be NULL */
    /* Called before each run with its number, 1..warm_up+repeat. May be NULL. */
    void (*progress)(void *context, unsigned run, unsigned runs);
    void *context;
} sl_query_options;

/* Reads the values of the query's SL_DRAW_SAMPLE parameters, then runs the query warm_up + repeat
 * times on one connection and times the last `repeat` runs, from sending the command to having read
 * the last document. The time does not include the comparison of answers. On false run->error is
 * set; clear `run` in any case. */
bool sl_query_execute(sl_connection *connection, sl_query *query, const sl_query_options *options,
                      sl_query_run *run);
void sl_query_run_clear(sl_query_run *run);

/* The number of documents of a collection, read from its metadata without a scan. `*exists` is
 * false when there is no such collection. On false `error` is set. */
bool sl_query_count_documents(sl_connection *connection, const char *database,
                              const char *collection, uint64_t *count, bool *exists,
                              sl_error *error);

/* A query, the options of its runs, and their result. Pointers are borrowed. */
typedef struct sl_query_outcome {
    const sl_suite *suite;
    const sl_query *query;
    const sl_query_options *options;
    const sl_query_run *run;
    uint64_t documents; /* in the collection */
    bool documents_known;
} sl_query_outcome;

/* Appends the outcome to `queries`, the array of a report. False without memory. */
bool sl_report_append(bson_t *queries, const sl_query_outcome *outcome);

/* ---- compare.c: reports compared ---- */

typedef struct sl_comparison_options {
    bool paired;      /* the k-th old and the k-th new report were measured one after the other */
    double threshold; /* smallest change that counts as slower, as a share (0.02: 2 %) */
    uint64_t seed;    /* of the permutations, where only some of them are tested */
} sl_comparison_options;

/* Compares the new reports with the old ones; each report is one run. Prints a table with a row for
 * each figure of each query that both sides have, then the conditions that differ: pipelines,
 * numbers of documents, queries of one side only. A query whose figures do not count in all runs
 * (sl_look_unsound) is not compared: it has one row with the reason. The rows are also appended to
 * `record` (may be NULL). `*verdict`: SL_EXIT_VERIFICATION: a query of the old side was not
 * compared, or a run has not ended; otherwise SL_EXIT_REJECTS: a figure got worse by more than the
 * threshold, significantly at a level of 5 % for all rows together; otherwise SL_EXIT_OK. False
 * with error set, SL_EXIT_SOURCE when a document is not a report of `shardquery run`, or the sides
 * have no figure in common. */
bool sl_reports_compare(const bson_t *const *old_reports, size_t old_count,
                        const bson_t *const *new_reports, size_t new_count,
                        const sl_comparison_options *options, FILE *out, bson_t *record,
                        sl_exit *verdict, sl_error *error);

/* ---- repeat.c: tables on standard output ---- */

/* Prints at most `rows` documents of a query's answer, and, with `show_plan`, its plan if it was
 * explained. */
void sl_show_run(const sl_query *query, const sl_query_run *run, size_t rows, bool show_plan);

/* Prints the timings of a suite's queries. */
void sl_show_timings(const sl_query_outcome *outcomes, size_t count);

/* Prints the differences of a wrong answer; nothing for a correct one. */
void sl_show_differences(const sl_query_outcome *outcome);

/* Prints at most `rows` documents of an array. Each key is a column, in the order of first
 * occurrence; the keys of nested documents are columns a.b. Numbers have thousands separators,
 * except in _id. */
void sl_table_print_documents(const bson_t *documents, size_t rows, FILE *out, unsigned indent);

/* Appends `entry` to the array `queries` of a report if it was `filled` completely, and destroys it
 * in any case. False without memory. */
bool sl_report_add(bson_t *queries, bson_t *entry, bool filled);

#endif
