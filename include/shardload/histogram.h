/* SPDX-License-Identifier: Apache-2.0 */
/* A latency histogram: 16 buckets per power of two, so every quantile is within 6.25 %. One writer;
 * merge the histograms of several threads after they have ended. */
#ifndef SHARDLOAD_HISTOGRAM_H
#define SHARDLOAD_HISTOGRAM_H

#include <stdint.h>

#define SL_HISTOGRAM_BUCKETS (61 * 16)

typedef struct sl_histogram {
    uint64_t count;
    uint64_t sum;     /* of the values, for the mean */
    uint64_t minimum; /* meaningless while count is 0 */
    uint64_t maximum;
    uint64_t buckets[SL_HISTOGRAM_BUCKETS];
} sl_histogram; /* all zero is an empty histogram */

void sl_histogram_add(sl_histogram *histogram, uint64_t value);
void sl_histogram_merge(sl_histogram *into, const sl_histogram *from);
/* The value below or at which the share `quantile` (0..1) of the values lies; 0 when empty. */
uint64_t sl_histogram_quantile(const sl_histogram *histogram, double quantile);

#endif
