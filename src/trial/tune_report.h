/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a tuning: tune.json, the recommended options, tables; and the state of a tuning,
 * from which they are made. */
#ifndef SHARDLOAD_TUNE_REPORT_H
#define SHARDLOAD_TUNE_REPORT_H

#include "cluster/cluster.h"
#include "query/query.h"
#include "tune.h"

#include "throwaway.h"

#define SL_TUNE_TIMES_MAX SL_SEARCH_REPEATS_MAX

/* One counted trial, for tune.json. */
typedef struct sl_tune_trial {
    double after; /* seconds from the start of the tuning to the start of the trial */
    uint64_t documents;
    double seconds;  /* of the load phase */
    double p50, p99; /* time of a batch in milliseconds: median, and 99 of 100 take at most */
    double lag;      /* of the secondaries at the end, in seconds; NAN: unknown or none */
    double left;     /* predicted seconds for the remaining trials */
} sl_tune_trial;

/* Storage and speed with one compressor. */
typedef struct sl_tune_storage {
    const char *compressor;
    uint64_t documents;
    uint64_t data_bytes;
    uint64_t storage_bytes;
    uint64_t index_bytes;
    bool sized;     /* data_bytes, storage_bytes and index_bytes are known */
    double rate;    /* documents per second */
    bson_t queries; /* array of {name, medianMilliseconds}; only {name} for a failed query */
} sl_tune_storage;

typedef struct sl_tune {
    const sl_tune_config *config;
    sl_connection *_Atomic connection; /* NULL until it is open. Read by the thread of signals */
    char work_directory[512];
    sl_trial_target target;          /* as which the collection is sharded */
    bool lag_unknown;                /* the replication lag was asked for, and is not known */
    sl_throwaway throwaway;          /* `scratch`, while it may exist */
    char scratch[SL_THROWAWAY_ROOM]; /* the collection, created again for each trial */
    int64_t begun;                   /* by sl_clock_ns */
    int64_t begun_at;                /* milliseconds since 1970 */

    sl_search_dimension dimensions[SL_TUNE_DIMENSIONS];
    sl_search_plan plan;
    sl_search search;
    sl_tune_trial *trials; /* SL_TUNE_TIMES_MAX for each cell */
    double *took;          /* seconds of each trial so far, ascending */

    /* The standard setting: the configured setting, or, if the target refuses that, a setting that
     * differs from it in one value. `refused`: the values that the target refuses. */
    size_t standard[SL_TUNE_DIMENSIONS];
    bool refused[SL_TUNE_DIMENSIONS][SL_TUNE_VALUES_MAX];

    /* The sample. */
    bool splittable;       /* all sources can be read from any block */
    uint32_t shards;       /* of the cluster; a worker's batches share its buffer among them */
    uint32_t open_batches; /* per worker: one per shard if the collection is sharded, else 1 */
    double total_text;     /* bytes of text of all sources; estimated if some are compressed */
    double total_blocks;   /* blocks of all sources, at least one per source */
    double share;          /* of the blocks */
    uint64_t documents;    /* in a trial */
    uint64_t text_bytes;
    uint64_t bson_bytes;
    double blocks;
    double trial_seconds; /* of the load phase of a trial */
    double other_seconds; /* of all other phases of a trial */

    unsigned loads, probes; /* numbers of runs so far, used in folder names */
    size_t planned;         /* maximum number of trials */
    sl_error failure;       /* of the last trial */
    bool load_failed;       /* the load itself failed, not a step before or after it */
    bool interrupted;
    bool out_of_time;

    sl_tune_storage storage[SL_TUNE_VALUES_MAX];
    size_t storage_count;
} sl_tune;

/* In the following functions, `at` is a setting: for each dimension, the index of its value. */

/* ---- tune.c ---- */

/* The index of the setting in the grid. */
size_t sl_tune_cell(const sl_tune *tune, const size_t *at);

/* The text of a dimension's value in a cell. */
const char *sl_tune_value(const sl_tune *tune, size_t cell, sl_tune_dimension dimension);

/* Appends one value with the dimension's type (number, boolean or string); null for an empty
 * text. */
void sl_tune_append_value(bson_t *document, const char *key, sl_tune_dimension dimension,
                          const char *value);

/* Appends the setting's value in each dimension. The key is the name of the dimension. */
void sl_tune_append_setting(const sl_tune *tune, const size_t *at, bson_t *document);

/* Has one of the values at `at` been refused? */
bool sl_tune_is_refused(const sl_tune *tune, const size_t *at);

/* ---- tune_report.c ---- */

/* Appends the content of tune.json to `record`, which is initialised. */
void sl_tune_record(const sl_tune *tune, sl_exit code, bson_t *record);

/* The recommended options as a configuration file, into a malloc'd string; NULL without memory. */
char *sl_tune_yaml(const sl_tune *tune);

/* Print to standard output: the tables of rates and the recommendation; the storage table. */
void sl_tune_show(const sl_tune *tune);
void sl_tune_show_storage(const sl_tune *tune);

/* "8 threads, 10,000 per batch, compressor zstd": the values of a setting in the varied
 * dimensions. */
char *sl_tune_describe(const sl_tune *tune, const size_t *at, char *out, size_t room);

#endif
