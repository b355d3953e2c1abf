/* SPDX-License-Identifier: Apache-2.0 */
/* The disaster-recovery drill: loads the data into an empty target, runs queries until the first
 * correct answer, and times each phase. A sampled drill loads a sample, and predicts the times for
 * all data. */
#ifndef SHARDLOAD_RELOAD_H
#define SHARDLOAD_RELOAD_H

#include "load/load.h"
#include "query/query.h"

#define SL_SAMPLE_RUNS_MAX 9

typedef struct sl_reload_config {
    const sl_load_config *load; /* its `sample` is the share that a sampled drill loads */
    bool sampled;               /* a sampled drill, which does not touch the target */
    unsigned sample_runs;       /* how often it loads the sample, 2 to SL_SAMPLE_RUNS_MAX */
    const sl_suite *suite;
    const bson_t *answers;    /* {"answers": {query: [...]}}, overrides the suite's; or NULL */
    unsigned repeat;          /* runs of each query; the first determines the drill's time */
    double objective_seconds; /* 0: none */
    const bson_t *last;       /* the record of an earlier drill to compare with; or NULL */
} sl_reload_config;

/* Runs the drill and prints its progress and results. A sampled drill does not touch the target: it
 * loads into temporary collections beside it and drops them. Writes reload.json into the work
 * directory and to load->report. Returns the exit code; errors have been logged.
 * SL_EXIT_VERIFICATION also when an answer is wrong or the objective is not met. */
sl_exit sl_reload_run(const sl_reload_config *config);

#endif
