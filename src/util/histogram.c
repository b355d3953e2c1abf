/* SPDX-License-Identifier: Apache-2.0 */
/* A log-linear histogram: values below 16 have a bucket each; above, the bit length picks the
 * power of two and the next four bits the bucket within it. */
#include <shardload/histogram.h>

static unsigned bucket_of(uint64_t value) {
    if (value < 16)
        return (unsigned)value;
    unsigned exponent = 63u - (unsigned)__builtin_clzll(value);
    return (exponent - 3) * 16 + (unsigned)((value >> (exponent - 4)) & 15);
}

/* The largest value that falls into `bucket`. */
static uint64_t bucket_top(unsigned bucket) {
    if (bucket < 16)
        return bucket;
    unsigned exponent = bucket / 16 + 3;
    uint64_t step = (uint64_t)1 << (exponent - 4);
    return ((uint64_t)1 << exponent) + (bucket % 16) * step + (step - 1);
}

void sl_histogram_add(sl_histogram *histogram, uint64_t value) {
    if (histogram->count == 0 || value < histogram->minimum)
        histogram->minimum = value;
    if (value > histogram->maximum)
        histogram->maximum = value;
    histogram->count++;
    histogram->sum += value;
    histogram->buckets[bucket_of(value)]++;
}

void sl_histogram_merge(sl_histogram *into, const sl_histogram *from) {
    if (from->count == 0)
        return;
    if (into->count == 0 || from->minimum < into->minimum)
        into->minimum = from->minimum;
    if (from->maximum > into->maximum)
        into->maximum = from->maximum;
    into->count += from->count;
    into->sum += from->sum;
    for (unsigned i = 0; i < SL_HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

uint64_t sl_histogram_quantile(const sl_histogram *histogram, double quantile) {
    if (histogram->count == 0)
        return 0;
    double wanted = quantile * (double)histogram->count;
    uint64_t seen = 0;
    for (unsigned i = 0; i < SL_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= wanted) {
            uint64_t top = bucket_top(i);
            return top < histogram->maximum ? top : histogram->maximum;
        }
    }
    return histogram->maximum;
}
