/* SPDX-License-Identifier: Apache-2.0 */
/* Progress: rates and totals of a running load, as a terminal's line, as log lines or as JSON; and
 * the series of the run record. Used by the main thread only, while the workers run. */
#ifndef SHARDLOAD_PROGRESS_H
#define SHARDLOAD_PROGRESS_H

#include "engine.h"

/* Sums over all workers at one time. */
typedef struct sl_load_totals {
    uint64_t text_bytes, records, inserted, already_stored, parser_rejects, server_rejects;
    uint64_t bson_bytes, batches, retries;
    int64_t answered_ns; /* the latest of all workers */
    double stage_seconds[STAGES];
} sl_load_totals;

sl_load_totals sl_load_sum(const sl_load *load);

typedef struct sl_progress sl_progress;

/* NULL without memory: then there is no progress line. */
sl_progress *sl_progress_start(sl_load *load);
void sl_progress_tick(sl_progress *progress);
/* Takes the last point of the series and clears the line. NULL is fine. */
void sl_progress_end(sl_progress *progress);

#endif
