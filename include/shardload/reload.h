/* SPDX-License-Identifier: Apache-2.0 */
/* The disaster-recovery drill: from nothing to the first correct query, each phase timed; or the same
 * on a sample of the data, with what the whole would take. */
#ifndef SHARDLOAD_RELOAD_H
#define SHARDLOAD_RELOAD_H

#include <shardload/load.h>
#include <shardload/query.h>

typedef struct sl_reload_config {
    const sl_load_config *load; /* what, where to and how; of a sample, its `sample` is the share */
    bool sampled;               /* a sample was asked for: the target is left alone, whatever the share */
    const sl_suite *suite;
    const bson_t *answers;     /* an object {"answers": {query: [...]}}, which wins over the suite's; or NULL */
    unsigned repeat;           /* runs of each query; the first one is the one that counts */
    double objective_seconds;  /* 0: none */
    const bson_t *last;        /* the record of an earlier drill to compare with; or NULL */
} sl_reload_config;

/* Runs the drill and prints what it does. With a sample the target is not touched: the loads go into
 * throw-away collections beside it, which are removed again. Writes reload.json into the work
 * directory and to load->report. Returns the exit code; problems have been reported:
 * SL_EXIT_VERIFICATION also when an answer is wrong or the objective is not met. */
sl_exit sl_reload_run(const sl_reload_config *config);

#endif
