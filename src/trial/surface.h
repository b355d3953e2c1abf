/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the rate of every cell of the grid from the trials: a Gaussian process over the
 * logarithms of rates. */
#ifndef SHARDLOAD_TRIAL_SURFACE_H
#define SHARDLOAD_TRIAL_SURFACE_H

#include <stdbool.h>
#include <stddef.h>

#include "search.h"

typedef struct sl_surface sl_surface;

/* For a grid of `count` cells; both arrays are borrowed. NULL without memory. */
sl_surface *sl_surface_create(const sl_search_dimension *dimensions, size_t dimension_count,
                              const sl_search_cell *cells, size_t count);
void sl_surface_destroy(sl_surface *surface); /* NULL is fine */

/* Fits the surface to all trials so far, at least one. False without memory. */
bool sl_surface_fit(sl_surface *surface);

/* The logarithm of a cell's true rate: the expected value, and its standard deviation. */
double sl_surface_mean(const sl_surface *surface, size_t cell);
double sl_surface_deviation(const sl_surface *surface, size_t cell);
/* The standard deviation of the difference of two cells. */
double sl_surface_difference(const sl_surface *surface, size_t a, size_t b);
/* The variance of the median of `trials` trials (at least 1), relative to that of one trial. */
double sl_surface_median_variance(size_t trials);
/* The number of repeated trials: all but the first of each cell. */
size_t sl_surface_repeated(const sl_surface *surface);
/* The relative standard deviation of one trial. `*measured`: computed from repeated trials; false
 * when there are too few of them, and it is the most likely value of a table. */
double sl_surface_noise(const sl_surface *surface, bool *measured);

#endif
