/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of ids over shards. Main thread. */
#ifndef SHARDLOAD_RANGES_H
#define SHARDLOAD_RANGES_H

#include "destination.h"
#include "job.h"

/* Divides the ids of the sources into pieces, and computes the job's ranges. */
bool sl_ranges_lay_out(sl_job *job, const sl_destination *destination, sl_error *error);

#endif
