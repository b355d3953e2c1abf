/* SPDX-License-Identifier: Apache-2.0 */
/* Extrapolation: from what a phase of a drill took at a few small sizes to what it will take at a
 * large one, with its error. Arithmetic only: no server, no clock. */
#ifndef SHARDLOAD_EXTRAPOLATE_H
#define SHARDLOAD_EXTRAPOLATE_H

#include <stdbool.h>
#include <stddef.h>

/* How the time of a phase grows with the number of documents n. */
typedef enum sl_growth {
    SL_GROWS_NOT,        /* connecting, placing ranges */
    SL_GROWS_LINEARLY,   /* a + b n^(1 + e): loading, counting, scanning */
    SL_GROWS_AS_SORTING, /* a + b n^(1 + e) log n: building an index */
} sl_growth;

/* What is known of a phase beforehand. */
typedef struct sl_growth_model {
    sl_growth growth;
    double fixed_deviation;     /* a is zero, give or take so many seconds; INFINITY: nothing is known */
    double steepness;           /* e is this, */
    double steepness_deviation; /* give or take this much; 0: it is known */
} sl_growth_model;

/* One measurement of a phase. */
typedef struct sl_timing {
    double size;      /* documents */
    double seconds;
    double deviation; /* standard deviation of the seconds: how far another try may be off; above 0 */
} sl_timing;

typedef struct sl_prediction {
    double seconds;
    double low, high; /* two standard deviations to either side, but never below 0 */
    double steep;     /* of these, the standard deviation for what is not known of e, in seconds */
} sl_prediction;

/* Documents of the whole, by a sample, with the standard deviation of that number. */
typedef struct sl_size {
    double documents;
    double deviation;
} sl_size;

/* What the phase will take at `size`.
 *
 * A line is laid through the timings, each weighted by its deviation. What is known beforehand of its
 * fixed part keeps that of a short sample, which cannot be told from noise, from being multiplied, and
 * hardly matters for a long one. Neither part of the line is ever negative. Lines are laid for many e,
 * and count by how well they fit and by what is known of e. With no timing at all the prediction is
 * zero. */
sl_prediction sl_extrapolate(const sl_growth_model *model, const sl_timing *timings, size_t count,
                             sl_size size);

/* The sum of phases that follow each other. Their errors are independent but for those of e, which have
 * one cause, what only large loads meet, and add up. */
sl_prediction sl_prediction_sum(const sl_prediction *parts, size_t count);

/* A point of a load's series: documents acknowledged since it began. */
typedef struct sl_series_point {
    double seconds;
    double documents;
} sl_series_point;

/* How far the mean rate of a load may be from the rate of a long one, relative to it: by the
 * scatter of the rate from point to point, and by how much it has changed from the first half to
 * the second. The first stretch, in which the load gets going, and stretches shorter than half of
 * the usual are left out. 0 when there are fewer than four stretches: nothing is known. */
double sl_rate_deviation(const sl_series_point *points, size_t count);

typedef enum sl_objective { SL_OBJECTIVE_MET, SL_OBJECTIVE_NOT_MET, SL_OBJECTIVE_UNKNOWN } sl_objective;

/* Is a prediction within the objective? Not known while the objective lies between its low and its
 * high. */
sl_objective sl_objective_of(const sl_prediction *prediction, double objective_seconds);
const char *sl_objective_text(sl_objective objective); /* "yes", "no", "cannot be told" */

#endif
