/* SPDX-License-Identifier: Apache-2.0 */
/* The search's estimate of the noise of its trials. An error here would give wrong confidence
 * intervals, or report an assumed noise as a measured one. */
#include "rate_grid.h"

#define SEEDS 400
#define RATE 1e5

static sl_trial_result measure_noise(void *context, const size_t *at, double *rate) {
    grid *g = context;
    (void)at;
    *rate = RATE * exp(g->noise * normal(g));
    return SL_TRIAL_MEASURED;
}

/* Searches a grid of two by two settings that have the same rate. */
static const sl_search *search_noise(double noise, unsigned repeats, uint64_t seed) {
    grid g = {.noise = noise, .random = (seed + 1) * 0x9e3779b97f4a7c15u};
    sl_search_plan plan = plan_of(2, 2, measure_noise, &g);
    plan.repeats = repeats;
    plan.kind = SL_SEARCH_GRID;
    plan.seed = seed;
    for (int i = 0; i < 10; i++)
        uniform(&g);
    return run_search(&plan);
}

/* Noise of any size, also larger than the largest that the model assumes. */
TEST(noise_is_measured) {
    static const double noises[] = {0.004, 0.025, 0.13, 0.27, 0.45, 0.9};
    for (size_t i = 0; i < sizeof noises / sizeof noises[0]; i++) {
        double square = 0;
        size_t covered = 0, cells = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const sl_search *result = search_noise(noises[i], 5, seed + 1000 * i);
            assert_true(result->noise_measured);
            square += result->noise * result->noise / SEEDS;
            for (size_t c = 0; c < result->count; c++, cells++)
                covered += result->cells[c].low < RATE && RATE < result->cells[c].high;
        }
        print_message(
            "noise %.3f: measured as %.3f; %zu intervals of 90 %%, %zu contain the true rate\n",
            noises[i], sqrt(square), cells, covered);
        assert_true(fabs(sqrt(square) / noises[i] - 1) < 0.1);
        assert_in_range(covered * 100, 87 * cells, 93 * cells);
    }
}

/* The sum of the squared deviations of log rates from the means of their cells. */
static double squares_of(const sl_search *result, size_t *degrees_of_freedom) {
    double squares = 0;
    *degrees_of_freedom = 0;
    for (size_t c = 0; c < result->count; c++) {
        const sl_search_cell *cell = &result->cells[c];
        double mean = 0;
        for (size_t k = 0; k < cell->trials; k++)
            mean += log(cell->rates[k]) / (double)cell->trials;
        for (size_t k = 0; k < cell->trials; k++)
            squares += pow(log(cell->rates[k]) - mean, 2);
        *degrees_of_freedom += cell->trials - 1;
    }
    return squares;
}

/* With at least eight degrees of freedom the noise is computed from repeated trials alone. */
TEST(eight_degrees_of_freedom_are_enough) {
    for (unsigned repeats = 1; repeats <= 4; repeats++) {
        size_t freedom;
        const sl_search *result = search_noise(0.2, repeats, 7);
        double squares = squares_of(result, &freedom);
        assert_int_equal(freedom, 4 * (repeats - 1));
        assert_true(result->noise_measured == (freedom >= 8));
        if (result->noise_measured)
            assert_true(fabs(result->noise - sqrt(squares / (double)freedom)) < 1e-9);
    }
}
