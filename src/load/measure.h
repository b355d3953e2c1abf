/* SPDX-License-Identifier: Apache-2.0 */
/* How much sources give, judged by a sample of their blocks. */
#ifndef SHARDLOAD_LOAD_MEASURE_H
#define SHARDLOAD_LOAD_MEASURE_H

#include <shardload/preview.h>

#include "engine.h"

/* Fills the measures of `sources`, which are those of the load that are not left out, and their sum.
 * Counts the documents seen by owner into `owners`, one per shard, where the load has a map by key. */
bool sl_measure_sources(sl_load *load, uint64_t blocks, sl_preview_source *sources, size_t count,
                        sl_measure *all, double *owners, sl_error *error);

#endif
