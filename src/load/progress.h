/* SPDX-License-Identifier: Apache-2.0 */
/* Progress: rates and totals of a running load, as a line on the terminal, as log lines or as JSON;
 * and the time series of the run record. Used by the main thread only, while the workers run. */
#ifndef SHARDLOAD_PROGRESS_H
#define SHARDLOAD_PROGRESS_H

#include "job/job.h"
#include "report/run_record.h"
#include "run.h"

typedef struct sl_progress sl_progress;

/* NULL without memory: then there is no progress line. */
sl_progress *sl_progress_start(const sl_run *run, const sl_destination *destination,
                               sl_run_record *record);
void sl_progress_tick(sl_progress *progress);
/* Takes the last point of the series and clears the line. NULL is fine. */
void sl_progress_end(sl_progress *progress);

#endif
