/* SPDX-License-Identifier: Apache-2.0 */
/* The search against two simpler ways to choose a setting, on recorded grids: no search at all (the
 * default setting of a load), and the textbook's response surface (nine trials, a quadratic). A
 * search that is not better than these would cost users trials for nothing. */
#include "rate_grid.h"

#define DEFAULT_THREADS 4 /* two for each of the two processors on which the grids were recorded */
#define TERMS 6           /* of a quadratic of two variables */
#define SPLITS 200        /* of each grid */

typedef enum method { DEFAULT, QUADRATIC, SEARCH, METHODS } method;

static const char *const method_names[METHODS] = {"default", "quadratic", "search"};

/* The default setting: the largest batches. */
static void choose_default(grid *g, size_t at[2]) {
    at[0] = 0;
    for (size_t t = 0; t < g->threads; t++) {
        if (g->values[0][t] == DEFAULT_THREADS)
            at[0] = t;
    }
    assert_int_equal(g->values[0][at[0]], DEFAULT_THREADS);
    at[1] = g->batches - 1;
}

/* The terms of the quadratic at a cell, in the logarithms of threads and batch size. */
static void terms_at(const grid *g, const size_t at[2], double terms[TERMS]) {
    double x = log((double)g->values[0][at[0]]), y = log((double)g->values[1][at[1]]);
    const double all[TERMS] = {1, x, y, x * x, y * y, x * y};
    memcpy(terms, all, sizeof all);
}

/* Solves the normal equations, by Gaussian elimination with pivots; row i ends with the right
 * side. */
static void solve(double rows[TERMS][TERMS + 1], double solution[TERMS]) {
    for (size_t column = 0; column < TERMS; column++) {
        size_t pivot = column;
        for (size_t i = column; i < TERMS; i++) {
            if (fabs(rows[i][column]) > fabs(rows[pivot][column]))
                pivot = i;
        }
        for (size_t k = 0; k <= TERMS; k++) {
            double kept = rows[column][k];
            rows[column][k] = rows[pivot][k];
            rows[pivot][k] = kept;
        }
        for (size_t i = 0; i < TERMS; i++) {
            double factor = i == column ? 0 : rows[i][column] / rows[column][column];
            for (size_t k = column; k <= TERMS; k++)
                rows[i][k] -= factor * rows[column][k];
        }
    }
    for (size_t i = 0; i < TERMS; i++)
        solution[i] = rows[i][TERMS] / rows[i][i];
}

/* Tries the lowest, middle and highest of both values, fits a quadratic to the logarithms of the
 * nine rates, and chooses the cell where it is highest. */
static void choose_by_quadratic(grid *g, size_t at[2]) {
    const size_t places[2][3] = {{0, g->threads / 2, g->threads - 1},
                                 {0, g->batches / 2, g->batches - 1}};
    double rows[TERMS][TERMS + 1] = {{0}}, weights[TERMS], most = -HUGE_VAL;
    for (size_t trial = 0; trial < 9; trial++) {
        const size_t cell[2] = {places[0][trial / 3], places[1][trial % 3]};
        double terms[TERMS], rate = 0;
        measure(g, cell, &rate);
        terms_at(g, cell, terms);
        for (size_t i = 0; i < TERMS; i++) {
            for (size_t k = 0; k < TERMS; k++)
                rows[i][k] += terms[i] * terms[k];
            rows[i][TERMS] += terms[i] * log(rate);
        }
    }
    solve(rows, weights);
    for (size_t cell = 0; cell < g->threads * g->batches; cell++) {
        const size_t here[2] = {cell / g->batches, cell % g->batches};
        double terms[TERMS], expected = 0;
        terms_at(g, here, terms);
        for (size_t i = 0; i < TERMS; i++)
            expected += weights[i] * terms[i];
        if (expected > most)
            memcpy(at, here, sizeof here);
        most = fmax(most, expected);
    }
}

/* The mean true rate of the settings that each method chooses in SPLITS splits of the grid, as a
 * share of the grid search's. */
static void rate_methods(grid *g, double shares[METHODS], double trials[METHODS]) {
    double sums[METHODS] = {0}, of_grid = 0;
    memset(trials, 0, METHODS * sizeof *trials);
    for (uint64_t seed = 0; seed < SPLITS; seed++) {
        size_t at[2];
        split(g, seed);
        of_grid += rate_of_grids_best(g);
        choose_default(g, at);
        sums[DEFAULT] += g->truth[at[0]][at[1]];
        choose_by_quadratic(g, at);
        sums[QUADRATIC] += g->truth[at[0]][at[1]];
        const sl_search *result = search(g, SL_SEARCH_ADAPTIVE, seed);
        sums[SEARCH] += truth_of(g, result, result->recommended);
        trials[SEARCH] += (double)result->trials / SPLITS;
    }
    trials[QUADRATIC] = 9;
    for (size_t m = 0; m < METHODS; m++)
        shares[m] = sums[m] / of_grid;
}

TEST(test_the_search_is_better_than_simpler_methods) {
    static const char *const names[] = {"mongod",     "two-shards",  "replica",
                                        "distant-50", "distant-100", "busy"};
    static grid g;
    double least[METHODS] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        double shares[METHODS], trials[METHODS];
        assert_true(read_grid(names[i], &g));
        rate_methods(&g, shares, trials);
        for (size_t m = 0; m < METHODS; m++) {
            print_message("%s: %s: %.1f %% of the grid search's best, %.1f trials\n", names[i],
                          method_names[m], 100 * shares[m], trials[m]);
            least[m] = fmin(least[m], shares[m]);
        }
        assert_true(shares[SEARCH] >= (strcmp(names[i], "busy") == 0 ? 0.7 : 0.93));
    }
    /* Each simple method fails somewhere; otherwise the search should be deleted. */
    assert_true(least[SEARCH] > least[DEFAULT] && least[SEARCH] > least[QUADRATIC]);
}
