/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps: the ids that are in none of a set of intervals. */
#ifndef SHARDLOAD_GAPS_H
#define SHARDLOAD_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "util/error.h"

/* Ids from minimum to before maximum. */
typedef struct sl_interval {
    int64_t minimum, maximum;
} sl_interval;

/* All ids of the source with this number. */
sl_interval sl_interval_of_source(uint32_t number);

typedef struct sl_gap {
    const bson_t *filter; /* on _id; valid during the call only */
    bool numbers;         /* true: the ids of the gap are numbers; false: they are all ids of other
                             types, and NaN */
    double share;         /* share of the gaps visited before this one, 0..1 */
} sl_gap;

typedef bool sl_gap_function(void *context, const sl_gap *gap, sl_error *error);

/* Sorts the intervals and calls `visit` for each gap between them, and last for the ids that are
 * not numbers. Stops and returns false when `visit` returns false. Gaps include fractions. */
bool sl_gaps_walk(sl_interval *covered, size_t count, sl_gap_function *visit, void *context,
                  sl_error *error);

#endif
