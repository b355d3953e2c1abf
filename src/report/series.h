/* SPDX-License-Identifier: Apache-2.0 */
/* The series of a load's record, as rates between a few hundred points: what has been counted up
 * since the beginning becomes what happened in each stretch, exactly, however many points there
 * were. */
#ifndef SHARDLOAD_REPORT_SERIES_H
#define SHARDLOAD_REPORT_SERIES_H

#include <bson/bson.h>

#include "page.h"

#define SL_SERIES_STAGES_MAX 8
#define SL_SERIES_SHARDS_MAX 256

enum { SL_SERIES_DOCUMENTS, SL_SERIES_TEXT, SL_SERIES_BSON, SL_SERIES_STORED, SL_SERIES_FIXED };

typedef struct sl_series {
    size_t intervals;
    double *borders; /* intervals + 1 times in seconds, ascending from 0 */
    size_t stages, shards;
    const char *stage_names[SL_SERIES_STAGES_MAX];
    /* Per column (the fixed ones, then stages, then shards): intervals + 1 values at the borders,
     * which never fall. */
    double **columns;
} sl_series;

/* Of `record`, with at most `most` intervals. Without a series, or without memory, there are no
 * intervals. */
sl_series sl_series_read(sl_page *page, const bson_t *record, size_t most);

static inline size_t sl_series_stage(const sl_series *series, size_t stage) {
    (void)series;
    return SL_SERIES_FIXED + stage;
}
static inline size_t sl_series_shard(const sl_series *series, size_t shard) {
    return SL_SERIES_FIXED + series->stages + shard;
}

/* How much of `column` was added per second in an interval. */
double sl_series_rate(const sl_series *series, size_t column, size_t interval);
/* A curve of those rates, `offset` seconds later. */
void sl_series_curve(sl_page *page, sl_curves *curves, const char *name, const sl_series *series,
                     size_t column, double offset);
/* The mean length of an interval, in words. */
const char *sl_series_step(sl_page *page, const sl_series *series);

#endif
