/* SPDX-License-Identifier: Apache-2.0 */
/* The series of a load's record as rates over a few hundred intervals. The rates are exact, since
 * they are differences of totals, whatever the number of points in the record. */
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
    /* Per column (SL_SERIES_FIXED columns, then stages, then shards): the totals at the intervals +
     * 1 borders, which never fall. */
    double **columns;
} sl_series;

/* Reads the series of `record` into at most `most` intervals. Without a series, or without memory,
 * there are no intervals. */
sl_series sl_series_read(sl_page *page, const bson_t *record, size_t most);

static inline size_t sl_series_stage(const sl_series *series, size_t stage) {
    (void)series;
    return SL_SERIES_FIXED + stage;
}
static inline size_t sl_series_shard(const sl_series *series, size_t shard) {
    return SL_SERIES_FIXED + series->stages + shard;
}

/* The rate of `column` in an interval, per second. */
double sl_series_rate(const sl_series *series, size_t column, size_t interval);
/* Adds a curve of the rates, shifted by `offset` seconds. */
void sl_series_curve(sl_page *page, sl_curves *curves, const char *name, const sl_series *series,
                     size_t column, double offset);
/* The mean length of an interval as text. */
const char *sl_series_step(sl_page *page, const sl_series *series);

#endif
