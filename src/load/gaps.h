/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps: the ids that do not lie in any of a set of intervals. */
#ifndef SHARDLOAD_GAPS_H
#define SHARDLOAD_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include <shardload/error.h>

/* Ids from minimum to before maximum. */
typedef struct sl_interval {
    int64_t minimum, maximum;
} sl_interval;

/* All ids of the source with this number. */
sl_interval sl_interval_of_source(uint32_t number);

typedef struct sl_gap {
    const bson_t *filter; /* of _id; for the call only */
    bool numbers;         /* a gap between numbers; else the ids of all other types, and NaN */
    double share;         /* of the gaps that have been looked at before, 0..1 */
} sl_gap;

typedef bool sl_gap_function(void *context, const sl_gap *gap, sl_error *error);

/* Calls `look` for each gap between the intervals, which it sorts, and at last for the ids that are
 * not numbers; until it returns false, which is then the result. Gaps hold fractions, too. */
bool sl_gaps_walk(sl_interval *covered, size_t count, sl_gap_function *look, void *context,
                  sl_error *error);

#endif
