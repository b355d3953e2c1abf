/* SPDX-License-Identifier: Apache-2.0 */
/* An estimated figure: the most likely value, and a range that should contain the true value. */
#ifndef SHARDLOAD_ESTIMATE_H
#define SHARDLOAD_ESTIMATE_H

typedef struct sl_estimate {
    double value, low, high; /* low <= value <= high; all NAN when unknown */
} sl_estimate;

static inline sl_estimate sl_estimate_exactly(double value) {
    return (sl_estimate){value, value, value};
}

/* The sum of two estimates. Their errors may have a common cause, so the ranges add up. */
static inline sl_estimate sl_estimate_sum(sl_estimate a, sl_estimate b) {
    return (sl_estimate){a.value + b.value, a.low + b.low, a.high + b.high};
}

/* `factor` is not negative. */
static inline sl_estimate sl_estimate_scaled(sl_estimate a, double factor) {
    return (sl_estimate){a.value * factor, a.low * factor, a.high * factor};
}

/* The order of doubles, for qsort. */
static inline int sl_by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
