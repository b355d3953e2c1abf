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

/* ---- suite.c, suite_query.c: a YAML file of queries ---- */

#define SL_REPEAT_MAX 1000000
#define SL_CLIENTS_MAX 4096

typedef enum sl_operation {
    SL_AGGREGATE,
    SL_FIND,
    SL_FIND_ONE,
    SL_COUNT,
    SL_DISTINCT,
    SL_MAP_REDUCE,
    SL_UPDATE,
    SL_INSERT,
    SL_OPERATIONS,
} sl_operation;

const char *sl_operation_name(sl_operation operation); /* "aggregate", "find", "findOne" ... */
/* Does it change documents? */
static inline bool sl_operation_writes(sl_operation operation) {
    return operation == SL_UPDATE || operation == SL_INSERT;
}

/* What the client itself does with the documents of a find, as the answer of the query. */
typedef enum sl_client_statistic {
    SL_STATISTIC_NONE,       /* nothing: the answer is the documents */
    SL_STATISTIC_ACCUMULATE, /* min, max, sum and count, kept up to date with each document */
    SL_STATISTIC_LIST,       /* the values are put into a list first, and then gone through */
} sl_client_statistic;

/* How a value is drawn for each operation. */
typedef enum sl_draw {
    SL_DRAW_RANGE,    /* uniform between two numbers, both included */
    SL_DRAW_LIST,     /* one of a list, all equally likely */
    SL_DRAW_ZIPF,     /* first + k, k from 0 to count - 1, with probability ~ (k + 1)^-skew */
    SL_DRAW_SEQUENCE, /* from, from + step ... ; no value twice in a run, whatever the client */
    SL_DRAW_SAMPLE,   /* one of the values that a $sample of the collection gave before the run */
} sl_draw;

/* A parameter of a query: {"$parameter": "name"} anywhere in its JSON is replaced by a value. */
typedef struct sl_parameter {
    char *name;
    sl_draw draw;
    bool whole;          /* range: whole numbers */
    double low, high;    /* range */
    int64_t first, step; /* range of whole numbers, zipf, sequence: where it begins; sequence: by */
    int64_t last;        /* range of whole numbers */
    uint64_t count;      /* zipf: how many numbers; sample: how many documents are sampled */
    double skew;         /* zipf: above 0 */
    char *field;         /* sample: dotted name */
    bson_t *values;      /* list; of a sample, once it is drawn (sl_query_sample): an array */
} sl_parameter;

#define SL_PARAMETERS_MAX 16
#define SL_STATISTIC_THREADS_MAX 64
/* The parameter that --limit sets; a query that uses it looks at so many documents. */
#define SL_LIMIT_PARAMETER "limit"

typedef struct sl_query {
    char *name;
    char *description;
    sl_operation operation;
    bson_t *pipeline; /* an array of stages; NULL unless it is an aggregate */
    bson_t *body;     /* the other fields of the command: filter, projection, sort, key, map ... */
    bson_t *options;  /* fields of the command: allowDiskUse, hint, maxTimeMS, readConcern ... */
    char *read_preference; /* primary, secondaryPreferred ...; NULL for what the URI says */
    bson_t *expected;      /* an array of documents; NULL when the suite does not say */
    char *expected_hash;   /* sl_answer_hash of the answer, in hexadecimal, or NULL */
    sl_parameter *parameters;
    size_t parameter_count;
    sl_client_statistic statistic;
    char *statistic_field;  /* dotted name; NULL without a statistic */
    unsigned threads;       /* of a statistic: clients that share the documents; 1 otherwise */
} sl_query;

/* A share of a mix: how often a query is run, relative to the others. */
typedef struct sl_share {
    size_t query; /* index into the suite's queries */
    double weight;
} sl_share;

typedef struct sl_suite {
    char *name;
    char *description;
    char *database; /* NULL when the suite does not say */
    char *collection;
    unsigned repeat;  /* 1..SL_REPEAT_MAX */
    unsigned warm_up; /* 0..SL_REPEAT_MAX */
    bool agree;       /* all queries must give the same answer, for each limit */
    int64_t limit;    /* the value of the parameter `limit` where --limit is not given; 0: none */
    size_t count;
    sl_query *queries; /* in the order of the file; names are unique */
    sl_share *mix;     /* what runs under load; NULL: every query alone */
    size_t mix_count;
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

/* Do two ways to ask the same question give the same answer? As above; a document {_id, value: {...}}
 * (of mapReduce, or an accumulator) counts as the document under `value`. */
bool sl_answers_agree(const bson_t *first, const bson_t *other, sl_differences *differences);

/* A hash of an answer's documents in their order, as 32 hexadecimal digits. */
#define SL_ANSWER_HASH_ROOM 33
char *sl_answer_hash(const bson_t *documents, char out[SL_ANSWER_HASH_ROOM]);

/* The expected answer of a query: its entry in the object "answers" of a JSON file (`answers`, may be
 * NULL), or else that of the suite. False without either. The array borrows from its source. */
bool sl_answer_expected(const bson_t *answers, const sl_query *query, bson_t *array);

/* Where and how a query runs. Strings are borrowed. */
typedef struct sl_place {
    const char *database;
    const char *collection;
    const char *read_preference; /* overrides the query's own; or NULL */
    int64_t limit;               /* value of the parameter `limit`; 0: none */
    uint64_t seed;               /* of the values that are drawn */
} sl_place;

/* Replaces the values of the query's SL_DRAW_SAMPLE parameters by some of the collection's own. */
bool sl_query_sample(sl_connection *connection, sl_query *query, const sl_place *place,
                     sl_error *error);

/* The documents that a query must look at by what it says, without asking a server: all of the
 * collection's `documents`, or `limit` of them where it uses the parameter. False when only a plan
 * can tell. */
bool sl_examined_by_definition(const sl_query *query, int64_t limit, uint64_t documents,
                               uint64_t *examined);

/* ---- repeat.c: a query, one run after the other ---- */

typedef enum sl_answer {
    SL_ANSWER_NOT_CHECKED,
    SL_ANSWER_OK,    /* of every counted repetition */
    SL_ANSWER_WRONG, /* of at least one */
    SL_ANSWER_NONE,  /* the query failed */
    SL_ANSWER_UNSUPPORTED, /* the target has no such operation: mapReduce behind some routers */
} sl_answer;

/* "ok", "WRONG", "not checked", "FAILED", "not supported here" */
const char *sl_answer_text(sl_answer answer);

/* Documents beyond this are read and counted, but not kept, and so cannot be compared. */
#define SL_RESULT_BYTES_MAX ((uint64_t)64 << 20)

typedef struct sl_query_run {
    double *timings;         /* milliseconds, in the order they were measured */
    size_t count;            /* of timings; smaller than asked for when the query failed */
    sl_sample sample;        /* of the timings; meaningless while count is 0 */
    bson_t *documents;       /* array: the last repetition's, or the first wrong one's */
    uint64_t document_count; /* of the same repetition */
    uint64_t bytes;          /* of the same documents, as BSON */
    bool truncated;          /* not all of them are in `documents` */
    uint64_t examined;       /* documents that the servers looked at for one answer */
    bool examined_known;
    sl_answer answer;
    sl_differences differences; /* when the answer is wrong */
    bson_t *explained;          /* see explain.c; NULL when the server did not explain it */
    sl_error error;             /* why it failed; code SL_EXIT_OK when it did not */
} sl_query_run;

typedef struct sl_query_options {
    const char *database;
    const char *collection;
    const char *read_preference; /* overrides the query's own; or NULL */
    unsigned repeat;             /* at least 1 */
    unsigned warm_up;
    int64_t limit;          /* of the parameter `limit`; 0: none */
    uint64_t seed;          /* of values that are drawn */
    uint64_t documents;     /* in the collection; 0: not known */
    bool explain;           /* ask what the servers examine, once, before the first run */
    const bson_t *expected; /* the answer to compare with, or NULL */
    const char *cold;       /* a shell command that is run before each run, not timed; or NULL */
    const _Atomic bool *stop; /* no further run is begun once it is set; may be NULL */
    /* Called before each run of the query: 1..warm_up+repeat. May be NULL. */
    void (*progress)(void *context, unsigned run, unsigned runs);
    void *context;
} sl_query_options;

/* Samples the values of the query's SL_DRAW_SAMPLE parameters, then runs the query warm_up + repeat
 * times, one after the other on one connection, and times the last `repeat` runs, each from sending
 * the command to having read the last document. Comparing answers is not part of the time. On false
 * run->error is set; clear `run` in any case. */
bool sl_query_execute(sl_connection *connection, sl_query *query,
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

/* Documents that the servers examined per millisecond of each counted run. False when it is not
 * known how many they examined, or nothing was measured. */
bool sl_outcome_rate(const sl_query_outcome *outcome, sl_sample *rate);

/* Appends the outcome to `queries`, the array of a report. False without memory. */
bool sl_report_append(bson_t *queries, const sl_query_outcome *outcome);

/* ---- compare.c: reports against each other ---- */

typedef struct sl_comparison_options {
    bool paired;      /* the k-th report of one side was measured next to the k-th of the other */
    double threshold; /* a change is reported as slower only beyond this share (0.02: 2 %) */
    uint64_t seed;
} sl_comparison_options;

/* Prints, for each figure of each query that both sides have, how the new runs compare with the old
 * ones, and in words what makes them hard to compare: other pipelines, other numbers of documents,
 * queries that only one side has. Each report is one run. `*slower`: a figure got worse, beyond the
 * threshold and significantly at 5 % for all rows together. `record` (may be NULL) gets the same as
 * a document. False with error set (SL_EXIT_SOURCE) when one is not a report of this program. */
bool sl_reports_compare(const bson_t *const *old_reports, size_t old_count,
                        const bson_t *const *new_reports, size_t new_count,
                        const sl_comparison_options *options, FILE *out, bson_t *record,
                        bool *slower, sl_error *error);

/* ---- show.c: on standard output, for a person ---- */

/* One query: its plan if wanted and known, and at most `rows` documents of its answer. */
void sl_show_run(const sl_query *query, const sl_query_run *run, size_t rows, bool plan);

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
