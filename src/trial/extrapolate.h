/* SPDX-License-Identifier: Apache-2.0 */
/* Extrapolation: predicts the time of a drill's phase at a large size, with its error, from timings
 * at a few small sizes. Arithmetic only: no server, no clock. */
#ifndef SHARDLOAD_EXTRAPOLATE_H
#define SHARDLOAD_EXTRAPOLATE_H

#include <stdbool.h>
#include <stddef.h>

/* How the time of a phase grows with the number of documents n. */
typedef enum sl_growth {
    SL_GROWS_NOT,        /* connecting, distributing ranges */
    SL_GROWS_LINEARLY,   /* a + b n^(1 + e): loading, counting, scanning */
    SL_GROWS_AS_SORTING, /* a + b n^(1 + e) log n: building an index */
} sl_growth;

/* The prior of e: its expected value and standard deviation (docs/internals/reload.md). */
#define SL_STEEPNESS 0.03
#define SL_STEEPNESS_DEVIATION 0.03

/* Prior assumptions about a phase. */
typedef struct sl_growth_model {
    sl_growth growth;
    double fixed_deviation;     /* standard deviation of a around 0, seconds; INFINITY: unknown */
    double steepness;           /* expected value of e */
    double steepness_deviation; /* standard deviation of e; 0: e is known */
} sl_growth_model;

/* One measurement of a phase. */
typedef struct sl_timing {
    double size; /* documents */
    double seconds;
    double deviation; /* standard deviation of the seconds, above 0 */
} sl_timing;

typedef struct sl_prediction {
    double seconds;
    double low, high; /* the range of 95 %, but never below 0 */
    double steep;     /* standard deviation because of e, in seconds */
    double varying;   /* standard deviation if runs vary by 100 %, in seconds */
    double common;    /* the part of both in the half width of the range, in seconds */
} sl_prediction;

/* The variation between runs of the same size. */
typedef struct sl_variation {
    double relative; /* standard deviation of the seconds, relative to their mean */
    double freedom;  /* degrees of freedom of that estimate; 0: no size was run twice */
} sl_variation;

/* Estimates the variation from the timings of equal size, over all sizes. */
sl_variation sl_variation_of(const sl_timing *timings, size_t count);

/* The number of documents of all sources, estimated from a sample, with its standard deviation. */
typedef struct sl_size {
    double documents;
    double deviation;
} sl_size;

/* Predicts the time of the phase at `size`.
 *
 * A line a + b g(n) is fitted to the timings, each weighted by its deviation. The prior for the
 * fixed part a keeps the noise of a short sample from being multiplied; it hardly matters for a
 * long sample. Neither a nor b is negative. Lines are fitted for many values of e; each is weighted
 * by its fit and by the prior of e. Without timings the prediction is zero.
 *
 * The range is for one more run, so it includes the variation between runs twice: that of the
 * timings, and that of the predicted run. The variation is estimated from timings of the same size,
 * and is at least their `deviation`. */
sl_prediction sl_extrapolate(const sl_growth_model *model, const sl_timing *timings, size_t count,
                             sl_size size);

/* The sum of consecutive phases. `variation`: of such sums between runs of the same size, since a
 * slow run may be slow in one phase or in all. The deviations because of e are added. All other
 * errors are independent. */
sl_prediction sl_prediction_sum(const sl_prediction *parts, size_t count, sl_variation variation);

/* A point of a load's series: documents acknowledged since its start. */
typedef struct sl_series_point {
    double seconds;
    double documents;
} sl_series_point;

/* The relative standard deviation of a load's mean rate as an estimate for a longer load. It is
 * computed from the scatter of the rate between points, and from the change of the rate from the
 * first half to the second. The time before the first point, and intervals shorter than half of the
 * average, are left out. 0 (unknown) with fewer than four intervals. */
double sl_rate_deviation(const sl_series_point *points, size_t count);

typedef enum sl_objective {
    SL_OBJECTIVE_MET,
    SL_OBJECTIVE_NOT_MET,
    SL_OBJECTIVE_UNKNOWN,
    SL_OBJECTIVE_UNSHOWN, /* nothing was recovered, or no query was answered */
} sl_objective;

/* Is a prediction within the objective? Unknown if the objective lies between `low` and `high`. */
sl_objective sl_objective_of(const sl_prediction *prediction, double objective_seconds);
const char *sl_objective_text(sl_objective objective); /* "yes", "no", "unknown", "not shown" */

#endif
