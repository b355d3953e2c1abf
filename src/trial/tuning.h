/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `shardload tune` share: the state of a tuning, and a single trial. */
#ifndef SHARDLOAD_TRIAL_TUNING_H
#define SHARDLOAD_TRIAL_TUNING_H

#include <shardload/cluster.h>
#include <shardload/query.h>
#include <shardload/tune.h>

#include "throwaway.h"

#define SL_TUNE_TIMES_MAX SL_SEARCH_REPEATS_MAX

/* One counted trial, for tune.json. */
typedef struct sl_tune_trial {
    double after; /* seconds from the start of the tuning: machines change meanwhile */
    uint64_t documents;
    double seconds; /* of the load phase */
} sl_tune_trial;

/* What a load with one compressor came to. */
typedef struct sl_tune_storage {
    const char *compressor;
    uint64_t documents;
    uint64_t data_bytes;
    uint64_t storage_bytes;
    uint64_t index_bytes;
    bool sized;  /* the three above are known */
    double rate; /* documents per second */
    bson_t queries; /* array of {name, medianMilliseconds}; one that failed has its name only */
} sl_tune_storage;

typedef struct sl_tune {
    const sl_tune_config *config;
    sl_connection *connection;
    char work_directory[512];
    char scratch[SL_THROWAWAY_ROOM]; /* the collection of all trials, made anew for each */
    int64_t begun;                 /* by sl_clock_ns */
    int64_t begun_at;              /* milliseconds since 1970 */

    sl_search_dimension dimensions[SL_TUNE_DIMENSIONS];
    sl_search_plan plan;
    sl_search search;
    sl_tune_trial *trials; /* SL_TUNE_TIMES_MAX for each cell */

    /* What the target takes: the values in which a trial differs from the standard as little as can
     * be, and those that it refuses. */
    size_t standard[SL_TUNE_DIMENSIONS];
    bool refused[SL_TUNE_DIMENSIONS][SL_TUNE_VALUES_MAX];

    /* The sample. */
    bool made_up;
    bool cut;               /* every block can be reached without reading those in front */
    uint32_t shards;        /* that a worker's batches share its room for */
    uint32_t open_batches;  /* that a worker fills at a time: one for each shard of a sharded
                               collection */
    double whole_text;      /* bytes of all sources, estimated unless all of them are plain */
    double whole_blocks;    /* each source has one at least */
    double share;           /* of the blocks */
    uint64_t documents;     /* in a trial */
    uint64_t text_bytes;
    uint64_t bson_bytes;
    double blocks;
    double trial_seconds;   /* of load, and */
    double around_seconds;  /* what a trial takes besides */

    unsigned loads, probes; /* so far, for their folders */
    size_t planned; /* trials, at most */
    sl_error failure;
    bool load_failed; /* it is that of a load, not of what comes before or after it */
    bool interrupted;
    bool out_of_time;

    sl_tune_storage storage[SL_TUNE_VALUES_MAX];
    size_t storage_count;
} sl_tune;

/* The figures of one load. */
typedef struct sl_tune_load {
    uint64_t documents;
    uint64_t text_bytes;
    uint64_t bson_bytes;
    double seconds;    /* of the load phase */
    double everything; /* with preparation and the rest */
    /* Of its sources as a whole, but for those that were left out. */
    bool cut;             /* as in sl_tune */
    double source_text;   /* bytes, where they are cut; else as they are stored */
    double source_blocks; /* at least */
} sl_tune_load;

/* ---- tune_trial.c ---- */

typedef enum sl_tune_purpose {
    SL_TUNE_FOR_RATE,
    SL_TUNE_FOR_STORAGE, /* indexes are built, and the collection is left for now */
    SL_TUNE_FOR_PROBE,   /* whether it works is all that matters */
} sl_tune_purpose;

/* Loads `share` of the blocks with the setting at `at` into the throw-away collection, which is
 * dropped afterwards, but for storage. On false tune->failure is set, or tune->interrupted. */
bool sl_tune_load_once(sl_tune *tune, const size_t *at, double share, sl_tune_purpose purpose,
                       sl_tune_load *figures);

/* The index in the grid of the setting at `at`. */
size_t sl_tune_cell(const sl_tune *tune, const size_t *at);

/* The text of a dimension's value in a cell. */
const char *sl_tune_value(const sl_tune *tune, size_t cell, sl_tune_dimension dimension);

/* Appends one value, a number as a number; null where the text is empty. */
void sl_tune_append_value(bson_t *document, const char *key, sl_tune_dimension dimension,
                          const char *value);

/* Appends a cell's values under their keys, numbers as numbers. */
void sl_tune_append_setting(const sl_tune *tune, const size_t *at, bson_t *document);

/* ---- tune_sample.c ---- */

/* Looks at the sources, tries what the target takes, warms up, and settles how large the trials'
 * sample is. */
bool sl_tune_choose_sample(sl_tune *tune, sl_error *error);

/* Does the target take the setting at `at`, as far as is known, and is the sample large enough? */
bool sl_tune_is_usable(void *context, const size_t *at);

/* ---- tune_probe.c ---- */

/* Tries each value of the dimensions without an order once, and marks those that the target refuses.
 * False, with error or tune->interrupted, when there is no setting that works. */
bool sl_tune_probe(sl_tune *tune, sl_error *error);

/* After a load has failed: was it for its setting? If so, tune->failure is cleared. */
bool sl_tune_was_refused(sl_tune *tune);

/* Has one of the values at `at` been refused? */
bool sl_tune_is_refused(const sl_tune *tune, const size_t *at);

/* ---- tune_storage.c ---- */

/* One load per compressor with the recommended setting, what it stores, and the queries on it. What
 * cannot be had is warned of and left out. */
void sl_tune_compare_storage(sl_tune *tune);

/* ---- tune.c ---- */

/* Would another trial go beyond --max-time? */
bool sl_tune_time_is_up(const sl_tune *tune);

/* ---- tune_report.c ---- */

/* The whole as a document, which the caller has initialised. */
void sl_tune_record(const sl_tune *tune, sl_exit code, bson_t *record);

/* The recommended options as a configuration file, into a malloc'd string; NULL without memory. */
char *sl_tune_yaml(const sl_tune *tune);

/* ---- tune_show.c ---- */

/* The table of rates and the recommendation in words; the storage figures. On standard output. */
void sl_tune_show(const sl_tune *tune);
void sl_tune_show_storage(const sl_tune *tune);

/* "8 threads, 10,000 per batch, zstd": what makes a setting, of the dimensions that are varied. */
char *sl_tune_describe(const sl_tune *tune, const size_t *at, char *out, size_t room);

#endif
