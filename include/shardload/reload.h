/* SPDX-License-Identifier: Apache-2.0 */
/* The disaster-recovery drill: loads into an empty target until the first correct query, and times
 * each phase; or does so with a sample of the data, and predicts the times for all data. */
#ifndef SHARDLOAD_RELOAD_H
#define SHARDLOAD_RELOAD_H

#include <shardload/load.h>
#include <shardload/query.h>

typedef struct sl_reload_config {
    const sl_load_config *load; /* of the load; its `sample` is the share of a sampled drill */
    bool sampled;               /* a sampled drill, which does not touch the target */
    const sl_suite *suite;
    const bson_t *answers;    /* {"answers": {query: [...]}}, overrides the suite's; or NULL */
    unsigned repeat;          /* runs of each query; the first run is the one that counts */
    double objective_seconds; /* 0: none */
    const bson_t *last;       /* the record of an earlier drill to compare with; or NULL */
} sl_reload_config;

/* Runs the drill and prints its progress and results. A sampled drill does not touch the target: it
 * loads into throw-away collections beside it and drops them. Writes reload.json into the work
 * directory and to load->report. Returns the exit code; errors have been logged.
 * SL_EXIT_VERIFICATION also when an answer is wrong or the objective is not met. */
sl_exit sl_reload_run(const sl_reload_config *config);

#endif
