/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning: the fastest setting of a load, found by loading a sample of the user's own data into his
 * own cluster again and again, each time with another setting. */
#ifndef SHARDLOAD_TUNE_H
#define SHARDLOAD_TUNE_H

#include <shardload/load.h>
#include <shardload/search.h>

/* What is varied. */
typedef enum sl_tune_dimension {
    SL_TUNE_THREADS,
    SL_TUNE_BATCH_SIZE,
    SL_TUNE_COMPRESSOR,
    SL_TUNE_CLUSTERED,
    SL_TUNE_WRITE_CONCERN,
    SL_TUNE_ROUTE,
    SL_TUNE_WIRE_COMPRESSION,
    SL_TUNE_DIMENSIONS,
} sl_tune_dimension;

/* The values of one dimension, as the options' texts: "8", "zstd", "true". */
#define SL_TUNE_VALUES_MAX 32
#define SL_TUNE_VALUE_ROOM 24
typedef struct sl_tune_values {
    char items[SL_TUNE_VALUES_MAX][SL_TUNE_VALUE_ROOM]; /* numbers ascend */
    size_t count;    /* at least 1 */
    size_t standard; /* index of the value that is kept where nothing speaks for another */
} sl_tune_values;

typedef struct sl_tune_config {
    const sl_load_config *load; /* what all trials have in common */
    sl_tune_values values[SL_TUNE_DIMENSIONS];
    sl_search_kind search;
    unsigned repeats;       /* of each setting, in a full grid */
    size_t trials_max;      /* 0: as many as the search thinks right */
    uint64_t trial_bytes;   /* of the sources' text, in each trial; 0: some seconds' worth */
    double time_max;        /* seconds for everything; 0: no limit */
    bool storage;           /* also what each compressor stores, and how fast queries are then */
    const char *const *suites; /* of queries, for that: names or files */
    size_t suite_count;
    const char *html;       /* draw the record here, as a page */
    const char *save;       /* write the recommended options here, as YAML; NULL: print them */
} sl_tune_config;

/* What an option is called that a dimension varies: "batch-size"; and in tune.json: "batchSize". */
const char *sl_tune_option(sl_tune_dimension dimension);
const char *sl_tune_key(sl_tune_dimension dimension);

/* Runs the trials and prints what it finds. Returns the exit code; problems have been reported. The
 * trials' collections are removed, whatever happens. */
sl_exit sl_tune_run(const sl_tune_config *config);

#endif
