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

/* The share of all values that a range contains. */
typedef enum sl_confidence {
    SL_90_PERCENT,
    SL_95_PERCENT,
    SL_99_PERCENT,
    SL_CONFIDENCES
} sl_confidence;

/* The quantile of Student's t distribution for a range of this confidence: half its width, in
 * standard errors. `freedom` is above 0, and may be fractional or INFINITY; below 1 it counts as
 * 1. */
double sl_student_quantile(sl_confidence confidence, double freedom);

/* The order of doubles, for qsort. */
static inline int sl_by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
