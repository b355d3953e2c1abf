/* SPDX-License-Identifier: Apache-2.0 */
/* A log-linear histogram. Values below 2^SL_HISTOGRAM_BITS have a bucket each. The bucket of a
 * larger value is given by its highest bit and the SL_HISTOGRAM_BITS bits after it. */
#include "histogram.h"

#define BITS ((unsigned)SL_HISTOGRAM_BITS)
#define LINEAR (1u << BITS)
#define QUANTILE_VALUES 10.0 /* that must lie on each side of a quantile */

static unsigned bucket_of(uint64_t value) {
    if (value < LINEAR)
        return (unsigned)value;
    unsigned exponent = 63u - (unsigned)__builtin_clzll(value);
    unsigned within = (unsigned)(value >> (exponent - BITS)) & (LINEAR - 1);
    return (exponent - BITS + 1) * LINEAR + within;
}

/* The largest value that falls into `bucket`. */
static uint64_t bucket_top(unsigned bucket) {
    if (bucket < LINEAR)
        return bucket;
    unsigned exponent = bucket / LINEAR + BITS - 1;
    uint64_t step = (uint64_t)1 << (exponent - BITS);
    return ((uint64_t)1 << exponent) + (bucket % LINEAR) * step + (step - 1);
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
    double rank = quantile * (double)histogram->count;
    uint64_t seen = 0;
    for (unsigned i = 0; i < SL_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= rank) {
            uint64_t top = bucket_top(i);
            return top < histogram->maximum ? top : histogram->maximum;
        }
    }
    return histogram->maximum;
}

bool sl_histogram_supports(const sl_histogram *histogram, double quantile) {
    double smaller_share = quantile < 1 - quantile ? quantile : 1 - quantile;
    /* The tolerance is for rounding: 10,000 * (1 - 0.999) is slightly below 10. */
    return (double)histogram->count * smaller_share >= QUANTILE_VALUES * (1 - 1e-9);
}

double sl_histogram_mean(const sl_histogram *histogram) {
    return histogram->count ? (double)histogram->sum / (double)histogram->count : 0;
}
