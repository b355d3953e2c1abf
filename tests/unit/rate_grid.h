/* SPDX-License-Identifier: Apache-2.0 */
/* Grids of rates for tests of searches: recorded ones (tests/data/grids) and generated ones. A
 * trial on a recorded grid returns one of the measured rates of its cell, drawn at random, so that
 * the noise is real. Of generated grids the true rates are known. */
#ifndef SHARDLOAD_RATE_GRID_H
#define SHARDLOAD_RATE_GRID_H

#include "trial/search.h"
#include "unit.h"

#define SIDE_MAX 12

typedef struct grid {
    size_t threads, batches;  /* number of values */
    long values[2][SIDE_MAX]; /* of a recorded grid: threads, batch sizes */
    double rates[SIDE_MAX][SIDE_MAX][SL_SEARCH_REPEATS_MAX]; /* recorded rates, in any order */
    size_t repeats[SIDE_MAX][SIDE_MAX];
    size_t replayed[SIDE_MAX]
                   [SIDE_MAX];        /* trials return one of the first so many rates; see split */
    double truth[SIDE_MAX][SIDE_MAX]; /* true rates, or medians of the rates not replayed */
    double noise;                     /* of generated trials; 0: replay recorded rates */
    uint64_t random;
    size_t calls, stop_after;
    size_t last;
    bool twice_in_a_row;
    bool broken_corner; /* trials of cell 0, 0 fail */
} grid;

static inline double uniform(grid *g) {
    g->random ^= g->random << 13;
    g->random ^= g->random >> 7;
    g->random ^= g->random << 17;
    return (double)(g->random >> 11) / 9007199254740992.0;
}

static inline double normal(grid *g) {
    return sqrt(-2 * log(uniform(g) + 1e-18)) * cos(6.283185307179586 * uniform(g));
}

static inline sl_trial_result measure(void *context, const size_t *at, double *rate) {
    grid *g = context;
    size_t cell = at[0] * SIDE_MAX + at[1];
    if (g->stop_after && g->calls == g->stop_after)
        return SL_TRIAL_STOP;
    if (g->broken_corner && at[0] == 0 && at[1] == 0)
        return SL_TRIAL_IMPOSSIBLE;
    g->twice_in_a_row = g->twice_in_a_row || (g->calls > 0 && cell == g->last);
    g->calls++;
    g->last = cell;
    size_t drawn = (size_t)(uniform(g) * (double)g->replayed[at[0]][at[1]]);
    *rate = g->noise > 0 || g->replayed[at[0]][at[1]] == 0
                ? g->truth[at[0]][at[1]] * exp(g->noise * normal(g))
                : g->rates[at[0]][at[1]][drawn];
    return SL_TRIAL_MEASURED;
}

/* Three trials of each cell of a grid of so many threads and batch sizes. Valid until the next
 * call. */
static inline sl_search_plan plan_of(size_t threads, size_t batches,
                                     sl_trial_result measure_cell(void *, const size_t *, double *),
                                     void *context) {
    static sl_search_dimension dimensions[2];
    dimensions[0] = (sl_search_dimension){"threads", threads, true, 0};
    dimensions[1] = (sl_search_dimension){"batch-size", batches, true, 0};
    return (sl_search_plan){.dimensions = dimensions,
                            .dimension_count = 2,
                            .repeats = 3,
                            .measure = measure_cell,
                            .context = context};
}

/* The result is valid until the next search. */
static inline const sl_search *run_search(const sl_search_plan *plan) {
    static sl_search result;
    sl_error error = {0};
    sl_search_clear(&result);
    if (!sl_search_run(plan, &result, &error))
        fail_msg("%s", error.message);
    return &result;
}

/* As run_search. */
static inline const sl_search *search(grid *g, sl_search_kind kind, uint64_t seed) {
    sl_search_plan plan = plan_of(g->threads, g->batches, measure, g);
    plan.kind = kind;
    plan.seed = seed;
    g->calls = 0;
    g->twice_in_a_row = false;
    g->random = (seed + 1) * 0x9e3779b97f4a7c15u;
    const sl_search *result = run_search(&plan);
    assert_int_equal(result->trials, g->calls);
    return result;
}

static inline double truth_of(const grid *g, const sl_search *result, size_t cell) {
    return g->truth[result->cells[cell].at[0]][result->cells[cell].at[1]];
}

/* ---- recorded grids ---- */

static inline int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Reads a table of trials: threads, batch size, and the rate of each trial. False if the file does
 * not exist. */
static inline bool read_grid(const char *name, grid *g) {
    char path[1000], line[1000], *end;
    snprintf(path, sizeof path, TEST_DATA "/grids/%s.tsv", name);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    memset(g, 0, sizeof *g);
    for (long threads = 0; fgets(line, sizeof line, file);) {
        if (*line == '#')
            continue;
        if (strtol(line, &end, 10) != threads) {
            threads = strtol(line, NULL, 10);
            g->values[0][g->threads++] = threads;
            g->batches = 0;
        }
        assert_true(g->threads <= SIDE_MAX && g->batches < SIDE_MAX);
        size_t t = g->threads - 1, b = g->batches++, n = 0;
        g->values[1][b] = strtol(end, &end, 10);
        while (*end == '\t' && n < SL_SEARCH_REPEATS_MAX)
            g->rates[t][b][n++] = strtod(end, &end);
        assert_true(n >= 3);
        g->repeats[t][b] = n;
    }
    fclose(file);
    return true;
}

static inline double median(const double *values, size_t count) {
    double sorted[SL_SEARCH_REPEATS_MAX];
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    return (sorted[count / 2] + sorted[(count - 1) / 2]) / 2;
}

/* Divides the recorded rates of each setting at random: the larger half is replayed, and the
 * setting is rated by the other half. Rating a setting by the trials that it was selected by would
 * overestimate it, because the noise is larger than the differences between settings. */
static inline void split(grid *g, uint64_t seed) {
    g->random = (seed + 1) * 0x9e3779b97f4a7c15u;
    for (size_t t = 0; t < g->threads; t++) {
        for (size_t b = 0; b < g->batches; b++) {
            double *rates = g->rates[t][b];
            size_t n = g->repeats[t][b], half = (n + 1) / 2;
            for (size_t i = n; i > 1; i--) {
                size_t other = (size_t)(uniform(g) * (double)i);
                double kept = rates[i - 1];
                rates[i - 1] = rates[other];
                rates[other] = kept;
            }
            g->replayed[t][b] = half;
            g->truth[t][b] = median(rates + half, n - half);
        }
    }
}

/* The rate of the setting that a grid search selects, by all replayed trials. */
static inline double rate_of_grids_best(const grid *g) {
    double most = 0, rate = 0;
    for (size_t t = 0; t < g->threads; t++) {
        for (size_t b = 0; b < g->batches; b++) {
            double shown = median(g->rates[t][b], g->replayed[t][b]);
            if (shown > most)
                rate = g->truth[t][b];
            most = fmax(most, shown);
        }
    }
    return rate;
}

#endif
