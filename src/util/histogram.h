/* SPDX-License-Identifier: Apache-2.0 */
/* A latency histogram: 256 buckets per power of two, so a quantile is at most 0.4 % above the exact
 * one, and never below. Its size is 114 KiB. It has one writing thread; merge the histograms of
 * several threads after they have ended. */
#ifndef SHARDLOAD_HISTOGRAM_H
#define SHARDLOAD_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define SL_HISTOGRAM_BITS 8
#define SL_HISTOGRAM_BUCKETS ((64 - SL_HISTOGRAM_BITS + 1) << SL_HISTOGRAM_BITS)
#define SL_HISTOGRAM_PRECISION (1.0 / (1 << SL_HISTOGRAM_BITS)) /* relative error of a quantile */

typedef struct sl_histogram {
    uint64_t count;
    uint64_t sum;     /* of the values */
    uint64_t minimum; /* undefined while count is 0 */
    uint64_t maximum;
    uint64_t buckets[SL_HISTOGRAM_BUCKETS];
} sl_histogram; /* all zero is an empty histogram */

void sl_histogram_add(sl_histogram *histogram, uint64_t value);
void sl_histogram_merge(sl_histogram *into, const sl_histogram *from);
/* The value that the share `quantile` (0..1) of the values does not exceed; 0 when empty. */
uint64_t sl_histogram_quantile(const sl_histogram *histogram, double quantile);
/* Are there enough values for this quantile? At least ten must lie above it, and ten below: 20
 * values for the median, 200 for 0.95, 10,000 for 0.999. */
bool sl_histogram_supports(const sl_histogram *histogram, double quantile);
/* The mean of the values, exact; 0 when empty. */
double sl_histogram_mean(const sl_histogram *histogram);

#endif
