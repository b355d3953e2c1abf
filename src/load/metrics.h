/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a load in the text format of Prometheus, for --metrics-file. */
#ifndef SHARDLOAD_METRICS_H
#define SHARDLOAD_METRICS_H

#include "job/destination.h"
#include "progress_figures.h"

/* What the metrics show besides the figures of the run. */
typedef struct sl_metrics_facts {
    const char *command, *version, *target, *phase;
    double started, now; /* seconds since 1970 */
    double elapsed;      /* seconds */
    bool ended;
    int exit_code; /* once it has ended */
    double share;  /* 0 to 1; below 0: not known */
    double left;   /* seconds; below 0: not known */
    uint64_t rate_limit;
} sl_metrics_facts;

/* The text; free it with free(). `view` NULL: no run has begun. `run` and `destination`: of the
 * view; NULL when the run has ended. NULL without memory. */
char *sl_metrics_text(const sl_metrics_facts *facts, const sl_view *view, const sl_run *run,
                      const sl_destination *destination, size_t *length);

#endif
