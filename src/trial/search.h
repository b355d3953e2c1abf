/* SPDX-License-Identifier: Apache-2.0 */
/* Search for the fastest setting by noisy trials, for settings of any meaning.
 *
 * Settings are the cells of a grid, one axis per dimension. A trial measures a rate (higher is
 * better); all trials cost the same. The search assumes that neighbouring cells have similar rates,
 * so a trial also gives information about the cells around it, and a cell that can no longer be the
 * best is not tried again. */
#ifndef SHARDLOAD_SEARCH_H
#define SHARDLOAD_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

#define SL_SEARCH_DIMENSIONS_MAX 8
#define SL_SEARCH_CELLS_MAX 4096
#define SL_SEARCH_REPEATS_MAX 20

typedef struct sl_search_dimension {
    const char *name;
    size_t count;    /* of its values, at least 1 */
    bool ordered;    /* the values are steps of one quantity, the cheapest first */
    size_t standard; /* unordered: index of the value to prefer unless another one is faster */
} sl_search_dimension;

typedef enum sl_search_kind {
    SL_SEARCH_ADAPTIVE, /* few trials, each chosen by the results so far */
    SL_SEARCH_GRID,     /* every cell `repeats` times */
} sl_search_kind;

typedef enum sl_trial_result {
    SL_TRIAL_MEASURED,
    SL_TRIAL_IMPOSSIBLE, /* this cell does not work: leave it out, with its earlier trials */
    SL_TRIAL_STOP,       /* no more trials: end the search with the results so far */
} sl_trial_result;

typedef struct sl_search_plan {
    const sl_search_dimension *dimensions;
    size_t dimension_count;
    sl_search_kind kind;
    unsigned repeats;  /* of each cell in a full grid, 1..SL_SEARCH_REPEATS_MAX */
    size_t trials_max; /* maximum; 0: a quarter of the full grid's trials, at least 8 */
    uint64_t seed;     /* of the order of trials */
    /* Is the cell at `at` (one index per dimension) worth a trial? May be NULL: all are. */
    bool (*usable)(void *context, const size_t *at);
    /* Runs a trial of the cell at `at` and returns its rate, above 0. */
    sl_trial_result (*measure)(void *context, const size_t *at, double *rate);
    void *context;
} sl_search_plan;

typedef struct sl_search_cell {
    size_t at[SL_SEARCH_DIMENSIONS_MAX]; /* index of its value in each dimension */
    double *rates;                       /* in the order of the trials */
    size_t trials;
    double rate;      /* the median; undefined while `trials` is 0 */
    double low, high; /* 90 % interval of the true rate, from all repeated trials; NAN: unknown */
    const char *stopped; /* why there are no more trials, or ""; never NULL */
} sl_search_cell;

typedef struct sl_search {
    sl_search_cell *cells; /* of the full grid; the index of the last dimension changes fastest */
    size_t count;
    size_t best; /* the cell that is expected from all trials to be the fastest, which need not
                            have the highest median; undefined while `trials` is 0 */
    size_t recommended;  /* the cheapest cell that is expected to be at most 2 % slower */
    size_t trials;       /* sum over all cells; 0 when no cell works */
    size_t grid_trials;  /* number of trials of the full grid */
    double noise;        /* relative standard deviation of a single trial */
    bool noise_measured; /* from repeated trials; if too few, `noise` is taken from a table */
    bool ended_early;    /* by SL_TRIAL_STOP */
} sl_search;

/* Runs a search. A search that ends early or in which no cell works is not a failure. False with
 * `error` set (SL_EXIT_USAGE) for a grid with no usable cell or too many cells, and without memory.
 * Clear `search` in any case.
 *
 * The cheapest cell has the fewest unordered dimensions off their standard, since these dimensions
 * change more than the speed. Among such cells it has the lowest values in the ordered dimensions,
 * compared in the order of the dimensions. */
bool sl_search_run(const sl_search_plan *plan, sl_search *search, sl_error *error);
void sl_search_clear(sl_search *search); /* all zero is fine */

/* The number of cells, the number of usable cells, and the maximum number of trials of a search. */
size_t sl_search_grid_size(const sl_search_plan *plan);
size_t sl_search_cells(const sl_search_plan *plan);
size_t sl_search_trials_max(const sl_search_plan *plan);

#endif
