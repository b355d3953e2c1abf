/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps between intervals of ids, as filters for the server. */
#include "gaps.h"

#include <math.h>
#include <stdlib.h>

#include "util/document_id.h"

sl_interval sl_interval_of_source(uint32_t number) {
    return (sl_interval){sl_stripe_first_id(number, 0), sl_stripe_first_id(number, SL_STRIPES)};
}

static int by_minimum(const void *a, const void *b) {
    int64_t x = ((const sl_interval *)a)->minimum, y = ((const sl_interval *)b)->minimum;
    return (x > y) - (x < y);
}

/* Appends the condition for numbers from `*low` to before `*high`. NULL: no bound. */
static void append_numbers(bson_t *filter, const int64_t *low, const int64_t *high) {
    bson_t bounds;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &bounds);
    if (low)
        BSON_APPEND_INT64(&bounds, "$gte", *low);
    else
        BSON_APPEND_DOUBLE(&bounds, "$gte", -INFINITY);
    if (high)
        BSON_APPEND_INT64(&bounds, "$lt", *high);
    bson_append_document_end(filter, &bounds);
}

/* Appends the condition for all other ids. A comparison with a number is true for numbers only, and
 * not for NaN, so its negation matches NaN and all other types. The server reads these from two
 * parts of the index: before the numbers and after them. */
static void append_no_numbers(bson_t *filter) {
    BCON_APPEND(filter, "_id", "{", "$not", "{", "$gte", BCON_DOUBLE(-INFINITY), "}", "}");
}

bool sl_gaps_walk(sl_interval *covered, size_t count, sl_gap_function *visit, void *context,
                  sl_error *error) {
    const int64_t *low = NULL;
    bool ok = true;
    if (count > 0)
        qsort(covered, count, sizeof *covered, by_minimum);
    for (size_t i = 0; ok && i <= count; i++) {
        const int64_t *high = i < count ? &covered[i].minimum : NULL;
        if (!low || !high || *low < *high) {
            bson_t filter = BSON_INITIALIZER;
            append_numbers(&filter, low, high);
            ok = visit(context, &(sl_gap){&filter, true, (double)i / (double)(count + 1)}, error);
            bson_destroy(&filter);
        }
        if (high && (!low || *low < covered[i].maximum))
            low = &covered[i].maximum;
    }
    bson_t filter = BSON_INITIALIZER;
    append_no_numbers(&filter);
    ok = ok && visit(context, &(sl_gap){&filter, false, 1}, error);
    bson_destroy(&filter);
    return ok;
}
