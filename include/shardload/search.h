/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the fastest setting by noisy trials, without knowing what is tried.
 *
 * Settings are the cells of a grid, one axis per dimension. What is measured is a rate, the more the
 * better; every trial costs the same. The search draws on what such grids look like: neighbours
 * resemble each other, so that a trial says something of the cells around it, and a cell that
 * cannot be the best any more is not tried again. */
#ifndef SHARDLOAD_SEARCH_H
#define SHARDLOAD_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <shardload/error.h>

#define SL_SEARCH_DIMENSIONS_MAX 8
#define SL_SEARCH_CELLS_MAX 4096
#define SL_SEARCH_REPEATS_MAX 20

typedef struct sl_search_dimension {
    const char *name;
    size_t count;    /* of its values, at least 1 */
    bool ordered;    /* the values are steps of one quantity, the cheapest first; else just different */
    size_t standard; /* the value that is preferred where nothing speaks for another; not ordered */
} sl_search_dimension;

typedef enum sl_search_kind {
    SL_SEARCH_ADAPTIVE, /* few trials, chosen one after the other by what is known already */
    SL_SEARCH_GRID,     /* every cell `repeats` times */
} sl_search_kind;

typedef enum sl_trial_result {
    SL_TRIAL_MEASURED,
    SL_TRIAL_IMPOSSIBLE, /* this cell does not work: leave it out, with what it has given before */
    SL_TRIAL_STOP,       /* no more trials: make do with what there is */
} sl_trial_result;

typedef struct sl_search_plan {
    const sl_search_dimension *dimensions;
    size_t dimension_count;
    sl_search_kind kind;
    unsigned repeats;   /* of each cell in a full grid, 1..SL_SEARCH_REPEATS_MAX */
    size_t trials_max;  /* at most so many trials; 0: a quarter of the full grid's, but 8 at least */
    uint64_t seed;      /* of the order of trials */
    /* Is the cell at `at` (one index per dimension) worth a trial? May be NULL: all are. */
    bool (*usable)(void *context, const size_t *at);
    /* Runs a trial of the cell at `at` and gives its rate, above 0. */
    sl_trial_result (*measure)(void *context, const size_t *at, double *rate);
    void *context;
} sl_search_plan;

typedef struct sl_search_cell {
    size_t at[SL_SEARCH_DIMENSIONS_MAX]; /* index of its value in each dimension */
    double *rates;                       /* in the order they were measured */
    size_t trials;
    double rate;         /* the median; meaningless while trials is 0 */
    double low, high;    /* where the true rate is, by 90 %, from the spread of all repeated trials */
    const char *stopped; /* why it was not tried more often: a phrase; "" when it was tried to the
                            end. Never NULL */
} sl_search_cell;

typedef struct sl_search {
    sl_search_cell *cells; /* all of the grid, the last dimension running fastest */
    size_t count;
    size_t best;        /* the fastest cell; meaningless while trials is 0 */
    size_t recommended; /* the cheapest cell that is expected to be no more than 2 % slower */
    size_t trials;      /* that gave the rates of all cells; 0 when no cell works */
    size_t grid_trials; /* what the full grid costs */
    double noise;       /* relative standard deviation of a single trial */
    bool noise_measured; /* by repeated trials; else too few, and it is the likeliest of some */
    bool ended_early;   /* by SL_TRIAL_STOP */
} sl_search;

/* Searches. A search that was told to stop is no failure, nor one in which no cell works. False with
 * `error` set (SL_EXIT_USAGE) for a grid with no usable cell or too many, and without memory. Clear
 * `search` in any case.
 *
 * Cheapest means: the fewest dimensions off their standard, since those change more than the speed;
 * then the lowest values of the ordered dimensions, the first dimension first. */
bool sl_search_run(const sl_search_plan *plan, sl_search *search, sl_error *error);
void sl_search_clear(sl_search *search); /* all zero is fine */

/* The number of cells, of usable cells, and of trials that sl_search_run makes at most. */
size_t sl_search_grid_size(const sl_search_plan *plan);
size_t sl_search_cells(const sl_search_plan *plan);
size_t sl_search_trials_max(const sl_search_plan *plan);

#endif
