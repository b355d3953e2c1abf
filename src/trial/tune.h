/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning: finds the fastest setting of a load by loading a sample of the user's data into the
 * user's cluster repeatedly, each time with another setting. */
#ifndef SHARDLOAD_TUNE_H
#define SHARDLOAD_TUNE_H

#include "load/load.h"
#include "search.h"

/* The options that tuning varies. */
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

/* The values of one dimension, as texts of the option: "8", "zstd", "true". */
#define SL_TUNE_VALUES_MAX 32
#define SL_TUNE_VALUE_ROOM 24
typedef struct sl_tune_values {
    char items[SL_TUNE_VALUES_MAX][SL_TUNE_VALUE_ROOM]; /* numbers in ascending order */
    size_t count;                                       /* at least 1 */
    size_t standard; /* index of the preferred value when others are not faster */
} sl_tune_values;

typedef struct sl_tune_config {
    const sl_load_config *load; /* common to all trials */
    sl_tune_values values[SL_TUNE_DIMENSIONS];
    sl_search_kind search;
    unsigned repeats;          /* of each setting, in a full grid */
    size_t trials_max;         /* 0: the search decides */
    uint64_t trial_bytes;      /* text of the sources in each trial; 0: enough for some seconds */
    double time_max;           /* seconds for the entire tuning; 0: no limit */
    bool storage;              /* also measure storage and query times with each compressor */
    const char *const *suites; /* names or files of the query suites for `storage` */
    size_t suite_count;
    const char *html; /* path for an HTML page of the record; NULL: none */
    const char *save; /* path for the recommended options as YAML; NULL: print them */
} sl_tune_config;

/* The name of a dimension's option: "batch-size"; and its key in tune.json: "batchSize". */
const char *sl_tune_option(sl_tune_dimension dimension);
const char *sl_tune_key(sl_tune_dimension dimension);

/* Runs the trials and prints the result. Returns the exit code; errors have been logged. The
 * trials' collections are dropped in any case. */
sl_exit sl_tune_run(const sl_tune_config *config);

#endif
