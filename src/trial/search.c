/* SPDX-License-Identifier: Apache-2.0 */
/* The search: runs the trials, decides when to stop, and chooses the recommended cell.
 *
 * The adaptive search begins with a few cells spread over the grid. After each trial a surface is
 * fitted to all trials (below); it gives the expected rate and its uncertainty for every cell,
 * tried or not. Then
 *
 *  1. the search tries the cell with the highest upper bound: either the best cell so far, whose
 *     bound is high because it is fast, or a cell with a large uncertainty. No cell is
 *     tried twice in a row while there is another contender, so that disturbances of the machine
 *     affect all of them;
 *  2. a cell whose upper bound is below the best cell's rate is not a contender. When the best cell
 *     has no contender left, it has been found;
 *  3. the remaining trials go in turns to the cheapest cell that might be as fast as the best, and
 *     to the best, until both have enough trials to be compared. */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/estimate.h"
#include "util/hash.h"

/* ---- the surface ----
 *
 * A Gaussian process over the grid.
 *
 * The logarithm of the rate is modelled as a smooth surface with an unknown level. The covariance
 * between two cells falls with their distance: by a Matern function of the steps along each ordered
 * dimension, by a constant factor for a difference in an unordered dimension. A cell's observation
 * is the median of its trials' logarithms, so that a disturbed trial has little influence.
 *
 * The length scale along each ordered dimension, the height of the surface and the noise of trials
 * are chosen from small tables by maximum likelihood. Repeated trials of one cell are part of that
 * likelihood. Once there are enough of them, the reported noise is computed from them alone; the
 * noise of the table is for the model.
 *
 * A search has a few dozen cells with trials, so each fit computes everything again with dense
 * matrices. With more cells, an evenly spread subset chooses the model, because each candidate
 * model takes time proportional to the cube of their number. */

#define JITTER 1e-9
#define OTHER_VALUE 0.85 /* correlation of two cells that differ in an unordered dimension */
#define NOISE_USUAL 0.04 /* prior relative standard deviation of a trial */
#define MODEL_CELLS 64   /* maximum number of cells that choose the model */
#define FREEDOM_ENOUGH 8 /* degrees of freedom from which the noise is measured */
#define NOISE_LEAST 0.001

/* Length scales of the correlation, relative to the length of the ordered dimension. */
static const double scales[] = {0.6, 1.2, 2.5};
static const double heights[] = {0.1, 0.3, 0.7, 1.5}; /* standard deviation of the surface */
static const double noises[] = {0.01, 0.02, 0.035, 0.06, 0.1, 0.17, 0.3, 0.45, 0.6};
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

typedef struct surface_model {
    double scale[SL_SEARCH_DIMENSIONS_MAX];
    double height;
    double noise;
} surface_model;

typedef struct rate_surface {
    const sl_search_dimension *dimensions;
    size_t dimension_count;
    const sl_search_cell *cells;
    size_t count;
    size_t used;         /* number of cells with trials */
    size_t *measured;    /* the cells with trials */
    size_t *spread;      /* buffer to reorder `measured` */
    size_t room;         /* `used` for which the three matrices are allocated */
    double *values;      /* observations of the measured cells, less `level` */
    double *correlation; /* between measured cells, used * used, lower triangle */
    double *factor;      /* Cholesky factor of their covariance, used * used, lower triangle */
    double *weights;
    double *projection; /* factor^-1 * covariance with each cell: count rows of `used` */
    double *means;
    double *variances;
    double level;
    surface_model model;
    double scatter; /* sum of squares of repeated trials about their cells' means */
    size_t freedom; /* degrees of freedom of `scatter` */
} rate_surface;

/* NULL is fine. */
static void surface_destroy(rate_surface *surface) {
    if (!surface)
        return;
    free(surface->measured);
    free(surface->spread);
    free(surface->values);
    free(surface->correlation);
    free(surface->factor);
    free(surface->weights);
    free(surface->projection);
    free(surface->means);
    free(surface->variances);
    free(surface);
}

/* For a grid of `count` cells; both arrays are borrowed. NULL without memory. */
static rate_surface *surface_create(const sl_search_dimension *dimensions, size_t dimension_count,
                                    const sl_search_cell *cells, size_t count) {
    rate_surface *surface = calloc(1, sizeof *surface);
    if (!surface)
        return NULL;
    surface->dimensions = dimensions;
    surface->dimension_count = dimension_count;
    surface->cells = cells;
    surface->count = count;
    surface->measured = calloc(count, sizeof *surface->measured);
    surface->spread = calloc(count, sizeof *surface->spread);
    surface->values = calloc(count, sizeof *surface->values);
    surface->weights = calloc(count, sizeof *surface->weights);
    surface->means = calloc(count, sizeof *surface->means);
    surface->variances = calloc(count, sizeof *surface->variances);
    if (surface->measured && surface->spread && surface->values && surface->weights &&
        surface->means && surface->variances)
        return surface;
    surface_destroy(surface);
    return NULL;
}

/* ---- observations ---- */

/* The variance of the median of `trials` trials (at least 1), relative to that of one trial. */
static double surface_median_variance(size_t trials) {
    return (trials < 3 ? 1 : 1.4) / (double)trials;
}

static size_t greatest_common_divisor(size_t a, size_t b) {
    while (b > 0) {
        size_t remainder = a % b;
        a = b;
        b = remainder;
    }
    return a;
}

/* Reorders the observations so that the first ones are spread evenly: in steps of the golden
 * section, modulo their number, which reaches each of them once. */
static void spread_evenly(rate_surface *surface) {
    size_t n = surface->used, step = (size_t)(0.6180339887 * (double)n), at = 0;
    while (greatest_common_divisor(step, n) > 1)
        step++;
    for (size_t i = 0; i < n; i++, at = (at + step) % n) {
        surface->spread[i] = surface->measured[at];
        surface->weights[i] = surface->values[at];
    }
    memcpy(surface->measured, surface->spread, n * sizeof *surface->measured);
    memcpy(surface->values, surface->weights, n * sizeof *surface->values);
}

static void observe(rate_surface *surface) {
    surface->used = 0;
    surface->scatter = 0;
    surface->freedom = 0;
    double sum = 0;
    for (size_t i = 0; i < surface->count; i++) {
        const sl_search_cell *cell = &surface->cells[i];
        double logs[SL_SEARCH_REPEATS_MAX], mean = 0;
        size_t n = cell->trials;
        if (n == 0)
            continue;
        for (size_t k = 0; k < n; k++) {
            logs[k] = log(cell->rates[k]);
            mean += logs[k] / (double)n;
        }
        for (size_t k = 0; k < n; k++)
            surface->scatter += (logs[k] - mean) * (logs[k] - mean);
        surface->freedom += n - 1;
        qsort(logs, n, sizeof logs[0], sl_by_value);
        double median = (logs[n / 2] + logs[(n - 1) / 2]) / 2;
        surface->measured[surface->used] = i;
        surface->values[surface->used++] = median;
        sum += median;
    }
    surface->level = sum / (double)surface->used;
    for (size_t i = 0; i < surface->used; i++)
        surface->values[i] -= surface->level;
    if (surface->used > MODEL_CELLS)
        spread_evenly(surface);
}

/* ---- the model ---- */

static double correlation(const rate_surface *surface, const surface_model *model, size_t a,
                          size_t b) {
    double product = 1;
    for (size_t d = 0; d < surface->dimension_count; d++) {
        size_t x = surface->cells[a].at[d], y = surface->cells[b].at[d];
        if (x == y)
            continue;
        if (!surface->dimensions[d].ordered) {
            product *= OTHER_VALUE;
            continue;
        }
        double length = model->scale[d] * (double)(surface->dimensions[d].count - 1);
        double r = sqrt(5) * fabs((double)x - (double)y) / length;
        product *= (1 + r + r * r / 3) * exp(-r);
    }
    return product;
}

static double covariance(const rate_surface *surface, const surface_model *model, size_t a,
                         size_t b) {
    return model->height * model->height * correlation(surface, model, a, b);
}

/* Computes the correlations of the first n observations. They depend only on the length scales, so
 * they serve for many heights and noises. */
static void correlate(rate_surface *surface, const surface_model *model, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            surface->correlation[i * n + j] =
                correlation(surface, model, surface->measured[i], surface->measured[j]);
    }
}

/* Factorizes the covariance of the first n observations. Call correlate before. */
static void factorize(rate_surface *surface, const surface_model *model, size_t n) {
    double *factor = surface->factor;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = model->height * model->height * surface->correlation[i * n + j];
            size_t trials = surface->cells[surface->measured[i]].trials;
            if (i == j)
                sum += JITTER + model->noise * model->noise * surface_median_variance(trials);
            for (size_t k = 0; k < j; k++)
                sum -= factor[i * n + k] * factor[j * n + k];
            factor[i * n + j] = i == j ? sqrt(fmax(sum, JITTER)) : sum / factor[j * n + j];
        }
    }
}

/* Solves factor * x = x in place. */
static void solve_forward(const rate_surface *surface, double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= surface->factor[i * n + k] * x[k];
        x[i] /= surface->factor[i * n + i];
    }
}

/* The log likelihood of the first n observations under the model, up to a constant, with a weak
 * prior for the usual noise. Sets `factor` to the model's, and `weights` to factor^-1 * values. */
static double likelihood(rate_surface *surface, const surface_model *model, size_t n) {
    factorize(surface, model, n);
    memcpy(surface->weights, surface->values, n * sizeof *surface->weights);
    solve_forward(surface, surface->weights, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum -= surface->weights[i] * surface->weights[i] / 2 + log(surface->factor[i * n + i]);
    double unusual = log(model->noise / NOISE_USUAL) / log(2);
    return sum - (double)surface->freedom * log(model->noise) -
           surface->scatter / (2 * model->noise * model->noise) - unusual * unusual / 2;
}

typedef struct surface_choice {
    surface_model model;
    double likelihood;
} surface_choice;

/* Tries all heights and noises with the length scales of `model`; keeps the most likely model. */
static void choose_height_and_noise(rate_surface *surface, surface_model model,
                                    surface_choice *kept) {
    size_t n = surface->used < MODEL_CELLS ? surface->used : MODEL_CELLS;
    correlate(surface, &model, n);
    for (size_t h = 0; h < COUNT(heights); h++) {
        for (size_t s = 0; s < COUNT(noises); s++) {
            model.height = heights[h];
            model.noise = noises[s];
            double result = likelihood(surface, &model, n);
            if (result > kept->likelihood)
                *kept = (surface_choice){model, result};
        }
    }
}

/* Chooses the most likely model: the length scales one dimension at a time, starting from the
 * middle of the table. */
static void choose_model(rate_surface *surface) {
    surface_model best = {.height = heights[1], .noise = NOISE_USUAL};
    surface_choice kept = {best, -HUGE_VAL};
    for (size_t d = 0; d < SL_SEARCH_DIMENSIONS_MAX; d++)
        best.scale[d] = scales[1];
    choose_height_and_noise(surface, best, &kept); /* for grids without an ordered dimension */
    for (unsigned round = 0; round < 2; round++) {
        for (size_t d = 0; d < surface->dimension_count; d++) {
            if (!surface->dimensions[d].ordered || surface->dimensions[d].count < 2)
                continue;
            surface_model model = kept.model;
            for (size_t r = 0; r < COUNT(scales); r++) {
                model.scale[d] = scales[r];
                choose_height_and_noise(surface, model, &kept);
            }
        }
    }
    surface->model = kept.model;
}

/* Fits the surface to all trials so far, at least one. False without memory. */
static bool surface_fit(rate_surface *surface) {
    observe(surface);
    size_t n = surface->used;
    if (n > surface->room) { /* the matrices are computed again, so their content may be lost */
        free(surface->correlation);
        free(surface->factor);
        free(surface->projection);
        surface->room = n + 16 < surface->count ? n + 16 : surface->count;
        surface->correlation = calloc(surface->room * surface->room, sizeof *surface->correlation);
        surface->factor = calloc(surface->room * surface->room, sizeof *surface->factor);
        surface->projection = calloc(surface->room * surface->count, sizeof *surface->projection);
        if (!surface->correlation || !surface->factor || !surface->projection) {
            surface->room = 0;
            return false;
        }
    }
    choose_model(surface);
    correlate(surface, &surface->model, n);
    likelihood(surface, &surface->model, n);
    for (size_t c = 0; c < surface->count; c++) {
        double *row = &surface->projection[c * n];
        for (size_t i = 0; i < n; i++)
            row[i] = covariance(surface, &surface->model, c, surface->measured[i]);
        solve_forward(surface, row, n);
        double mean = 0, variance = surface->model.height * surface->model.height;
        for (size_t i = 0; i < n; i++) {
            mean += row[i] * surface->weights[i];
            variance -= row[i] * row[i];
        }
        surface->means[c] = surface->level + mean;
        surface->variances[c] = fmax(variance, JITTER);
    }
    return true;
}

/* The standard deviation of the difference of two cells. */
static double surface_difference(const rate_surface *surface, size_t a, size_t b) {
    size_t n = surface->used;
    if (a == b)
        return 0;
    double common = covariance(surface, &surface->model, a, b);
    for (size_t i = 0; i < n; i++)
        common -= surface->projection[a * n + i] * surface->projection[b * n + i];
    return sqrt(fmax(surface->variances[a] + surface->variances[b] - 2 * common, JITTER));
}

/* ---- the state of a search ---- */

#define TRIALS_MIN 8            /* for small grids, of which a quarter would be too few */
#define SHARE_FOR_THE_BEST 0.65 /* of the allowance; the remaining trials are for the cheapest */

/* Differences are of logarithms of rates, that is, relative. */
#define CONTENDER_TRIALS 3 /* of a cell before it is recommended, if enough trials are left */
#define OPTIMISM 1.6       /* standard deviations in the upper bound */
#define SURE 1.645         /* standard deviations of a one-sided 95 % bound */
#define WORTH_IT 0.015     /* a smaller gain does not make a contender */
#define EQUIVALENT 0.02    /* a cell slower by at most this is as fast as the best */
#define HOPE 1.0           /* standard deviations within which a cell may be as fast */
#define HOPE_NEARBY 3.0    /* the same for an untried neighbour */

static const char CANNOT_WIN[] = "cannot reach the best";
static const char NOT_USABLE[] = "left out";
static const char FAILED[] = "failed";

typedef struct search_state {
    const sl_search_plan *plan;
    sl_search *search;
    rate_surface *surface;
    bool *usable;
    size_t allowance; /* maximum number of trials */
    size_t last;      /* the cell tried last; `count` before the first */
    uint64_t random;
    bool stopped;
} search_state;

/* ---- the grid ---- */

size_t sl_search_grid_size(const sl_search_plan *plan) {
    size_t count = 1;
    for (size_t d = 0; d < plan->dimension_count; d++) {
        if (plan->dimensions[d].count > SL_SEARCH_CELLS_MAX / count)
            return SL_SEARCH_CELLS_MAX + 1;
        count *= plan->dimensions[d].count;
    }
    return count;
}

static void place_of(const sl_search_plan *plan, size_t cell, size_t at[]) {
    for (size_t d = plan->dimension_count; d-- > 0;) {
        at[d] = cell % plan->dimensions[d].count;
        cell /= plan->dimensions[d].count;
    }
}

static bool is_usable(const sl_search_plan *plan, const size_t at[]) {
    return !plan->usable || plan->usable(plan->context, at);
}

size_t sl_search_cells(const sl_search_plan *plan) {
    size_t count = sl_search_grid_size(plan), usable = 0, at[SL_SEARCH_DIMENSIONS_MAX];
    for (size_t i = 0; count <= SL_SEARCH_CELLS_MAX && i < count; i++) {
        place_of(plan, i, at);
        usable += is_usable(plan, at);
    }
    return usable;
}

size_t sl_search_trials_max(const sl_search_plan *plan) {
    size_t grid = sl_search_cells(plan) * plan->repeats;
    size_t allowance = plan->trials_max ? plan->trials_max : grid / 4;
    if (!plan->trials_max && allowance < TRIALS_MIN)
        allowance = TRIALS_MIN;
    return allowance > grid || plan->kind == SL_SEARCH_GRID ? grid : allowance;
}

/* ---- the next cell ----
 *
 * These functions use the surface as it was last fitted. A cell is its index; search->count means
 * no cell. */

/* Is cell `a` cheaper than `b`? See search.h. */
static bool is_cheaper(const search_state *run, size_t a, size_t b) {
    const sl_search_plan *plan = run->plan;
    const size_t *x = run->search->cells[a].at, *y = run->search->cells[b].at;
    int off = 0, cheaper = 0;
    for (size_t d = 0; d < plan->dimension_count; d++) {
        const sl_search_dimension *dimension = &plan->dimensions[d];
        if (!dimension->ordered)
            off += (x[d] != dimension->standard) - (y[d] != dimension->standard);
        else if (cheaper == 0)
            cheaper = (x[d] < y[d]) - (x[d] > y[d]);
    }
    return off < 0 || (off == 0 && cheaper > 0);
}

/* The measured cell with the highest expected rate. */
static size_t find_best(const search_state *run) {
    size_t best = run->search->count;
    for (size_t i = 0; i < run->search->count; i++) {
        if (run->usable[i] && run->search->cells[i].trials > 0 &&
            (best == run->search->count || run->surface->means[i] > run->surface->means[best]))
            best = i;
    }
    return best;
}

/* Is the cell one step from another along one dimension? */
static bool is_neighbour(const search_state *run, size_t a, size_t b) {
    size_t steps = 0;
    for (size_t d = 0; d < run->plan->dimension_count; d++) {
        size_t x = run->search->cells[a].at[d], y = run->search->cells[b].at[d];
        size_t step = x > y ? x - y : y - x;
        steps += run->plan->dimensions[d].ordered || step == 0 ? step : 1;
    }
    return steps == 1;
}

/* May the cell be faster than the best, by enough to be worth a trial? An untried neighbour of the
 * best cell always may: the surface may have an edge there. */
static bool is_contender(const search_state *run, size_t cell, size_t best) {
    if (run->usable[cell] && run->search->cells[cell].trials == 0 && is_neighbour(run, cell, best))
        return true;
    double ahead = run->surface->means[cell] - run->surface->means[best];
    return run->usable[cell] && cell != best &&
           ahead + SURE * surface_difference(run->surface, cell, best) > WORTH_IT;
}

/* The next cell to try in order to find the best; none when it has been found. */
static size_t next_for_the_best(const search_state *run) {
    const sl_search *search = run->search;
    size_t best = find_best(run), chosen = search->count, contenders = 0;
    double highest = -HUGE_VAL;
    for (size_t i = 0; i < search->count; i++)
        contenders += is_contender(run, i, best);
    if (contenders == 0)
        return search->count;
    for (size_t i = 0; i < search->count; i++) {
        double bound = run->surface->means[i] + OPTIMISM * sqrt(run->surface->variances[i]);
        if ((i == best || is_contender(run, i, best)) && i != run->last &&
            search->cells[i].trials < SL_SEARCH_REPEATS_MAX && bound > highest) {
            highest = bound;
            chosen = i;
        }
    }
    return chosen;
}

/* May the cell be as fast as the best, within its uncertainty? Untried neighbours of the cheapest
 * cell get a wider margin, because the surface is smoother than the true rates. */
static bool may_be_as_fast(const search_state *run, size_t cell, size_t best, size_t cheapest) {
    double behind = run->surface->means[best] - run->surface->means[cell];
    bool near = run->search->cells[cell].trials == 0 && is_neighbour(run, cell, cheapest);
    double hope = near ? HOPE_NEARBY : HOPE;
    return behind - hope * surface_difference(run->surface, best, cell) <= EQUIVALENT;
}

/* The cheapest cell with at least `trials_min` trials that is expected to be as fast as the
 * best. */
static size_t find_cheapest(const search_state *run, size_t best, size_t trials_min) {
    size_t found = best;
    for (size_t i = 0; i < run->search->count; i++) {
        if (run->usable[i] && run->search->cells[i].trials >= trials_min &&
            is_cheaper(run, i, found) &&
            run->surface->means[best] - run->surface->means[i] <= EQUIVALENT)
            found = i;
    }
    return found;
}

/* The second best of the measured cells; the best when there is no other. */
static size_t find_second(const search_state *run, size_t best) {
    size_t second = best;
    for (size_t i = 0; i < run->search->count; i++) {
        if (i != best && run->usable[i] && run->search->cells[i].trials > 0 &&
            (second == best || run->surface->means[i] > run->surface->means[second]))
            second = i;
    }
    return second;
}

/* The same for the cheapest: confirms the cheapest cell first, then tries the cheaper cell with the
 * highest expected rate. */
static size_t next_for_the_cheapest(const search_state *run) {
    const sl_search_cell *cells = run->search->cells;
    size_t count = run->search->count, best = find_best(run), next = count;
    size_t cheapest = find_cheapest(run, best, 1);
    if (cells[cheapest].trials < CONTENDER_TRIALS)
        next = cheapest;
    for (size_t i = 0; next != cheapest && i < count; i++) {
        if (run->usable[i] && cells[i].trials < CONTENDER_TRIALS && is_cheaper(run, i, cheapest) &&
            may_be_as_fast(run, i, best, cheapest) &&
            (next == count || run->surface->means[i] > run->surface->means[next]))
            next = i;
    }
    if (next == count && cells[best].trials < CONTENDER_TRIALS)
        next = best;
    if (next == count || next != run->last)
        return next;
    /* In turns, so that disturbances of the machine affect both. */
    return next != best ? best : cheapest != best ? cheapest : find_second(run, best);
}

/* ---- trials ---- */

static bool may_go_on(const search_state *run) {
    return !run->stopped && run->search->trials < run->allowance;
}

static void try_cell(search_state *run, size_t index) {
    sl_search_cell *cell = &run->search->cells[index];
    double rate = 0;
    run->last = index;
    sl_trial_result result = run->plan->measure(run->plan->context, cell->at, &rate);
    if (result == SL_TRIAL_STOP) {
        run->stopped = true;
        run->search->ended_early = true;
    } else if (result == SL_TRIAL_MEASURED && rate > 0 && isfinite(rate)) {
        cell->rates[cell->trials++] = rate;
        run->search->trials++;
    } else {
        run->usable[index] = false;
        run->search->trials -= cell->trials; /* earlier rates of a failing cell do not count */
        cell->trials = 0;
        cell->stopped = FAILED;
    }
}

static bool search_grid(search_state *run, sl_error *error) {
    size_t count = run->search->count;
    size_t *order = calloc(count, sizeof *order);
    if (!order)
        return sl_error_memory(error, "searching");
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (unsigned repeat = 0; repeat < run->plan->repeats && may_go_on(run); repeat++) {
        for (size_t i = count; i > 1; i--) { /* shuffle, so that a disturbance hits other cells */
            size_t other = (size_t)(sl_random_next(&run->random) % i), kept = order[i - 1];
            order[i - 1] = order[other];
            order[other] = kept;
        }
        for (size_t i = 0; i < count && may_go_on(run); i++) {
            if (run->usable[order[i]])
                try_cell(run, order[i]);
        }
    }
    free(order);
    return true;
}

/* ---- the adaptive search ---- */

/* The usable cell with the fewest steps from `at`; untried cells first. */
static size_t nearest_usable(const search_state *run, const size_t at[]) {
    size_t found = run->search->count, least = SIZE_MAX;
    for (size_t i = 0; i < run->search->count; i++) {
        size_t steps = run->search->cells[i].trials ? 1000 : 0;
        for (size_t d = 0; d < run->plan->dimension_count; d++) {
            size_t x = run->search->cells[i].at[d];
            steps += run->plan->dimensions[d].ordered ? (x > at[d] ? x - at[d] : at[d] - x)
                                                      : (x != at[d] ? 100 : 0);
        }
        if (run->usable[i] && steps < least) {
            least = steps;
            found = i;
        }
    }
    return found;
}

static void try_near(search_state *run, const size_t at[]) {
    size_t cell = nearest_usable(run, at);
    if (cell < run->search->count && may_go_on(run) && run->search->cells[cell].trials == 0)
        try_cell(run, cell);
}

/* Tries the middle, the corners (a fifth from the edges), and every other value of the unordered
 * dimensions once. */
static void try_spread_cells(search_state *run) {
    const sl_search_plan *plan = run->plan;
    size_t at[SL_SEARCH_DIMENSIONS_MAX], middle[SL_SEARCH_DIMENSIONS_MAX] = {0}, ordered = 0;
    for (size_t d = 0; d < plan->dimension_count; d++) {
        const sl_search_dimension *dimension = &plan->dimensions[d];
        middle[d] = dimension->ordered ? dimension->count / 2 : dimension->standard;
        ordered += dimension->ordered;
    }
    try_near(run, middle);
    for (size_t corner = 0; corner < (size_t)1 << ordered; corner++) {
        size_t bit = 0;
        memcpy(at, middle, sizeof at);
        for (size_t d = 0; d < plan->dimension_count; d++) {
            if (!plan->dimensions[d].ordered)
                continue;
            size_t edge = plan->dimensions[d].count / 5, last = plan->dimensions[d].count - 1;
            at[d] = (corner >> bit++) & 1 ? last - edge : edge;
        }
        try_near(run, at);
    }
    for (size_t d = 0; d < plan->dimension_count; d++) {
        memcpy(at, middle, sizeof at);
        for (size_t v = 0; !plan->dimensions[d].ordered && v < plan->dimensions[d].count; v++) {
            at[d] = v;
            if (v != plan->dimensions[d].standard)
                try_near(run, at);
        }
    }
}

static bool fit(search_state *run, sl_error *error) {
    return surface_fit(run->surface) || sl_error_memory(error, "searching");
}

static bool search_adaptively(search_state *run, sl_error *error) {
    size_t count = run->search->count;
    size_t for_the_best = (size_t)(SHARE_FOR_THE_BEST * (double)run->allowance);
    bool best_found = false; /* or its share of the trials is used up */
    try_spread_cells(run);
    while (may_go_on(run)) {
        if (run->search->trials == 0) { /* all trials so far have failed */
            size_t any = 0;
            while (any < count && !run->usable[any])
                any++;
            if (any == count)
                break;
            try_cell(run, any);
            continue;
        }
        if (!fit(run, error))
            return false;
        best_found = best_found || run->search->trials >= for_the_best;
        size_t next = best_found ? count : next_for_the_best(run);
        if (next == count)
            next = next_for_the_cheapest(run);
        if (next == count || run->search->cells[next].trials == SL_SEARCH_REPEATS_MAX)
            break;
        try_cell(run, next);
    }
    return true;
}

/* ---- results ---- */

/* Sets the rates, the best and the recommended cell. */
static void conclude(search_state *run) {
    sl_search *search = run->search;
    const rate_surface *surface = run->surface;
    /* With too few repeated trials, the noise is the most likely value of a table. */
    search->noise_measured = surface->freedom >= FREEDOM_ENOUGH;
    search->noise = search->noise_measured
                        ? fmax(sqrt(surface->scatter / (double)surface->freedom), NOISE_LEAST)
                        : surface->model.noise;
    double interval = sl_student_quantile(SL_90_PERCENT, (double)surface->freedom);
    search->best = find_best(run);
    for (size_t i = 0; i < search->count; i++) {
        sl_search_cell *cell = &search->cells[i];
        if (cell->trials == 0)
            continue;
        /* One trial, or a noise that was not measured, says nothing about the error of a rate. */
        double spread = search->noise_measured && cell->trials > 1
                            ? interval * search->noise * sqrt(surface_median_variance(cell->trials))
                            : NAN;
        double sorted[SL_SEARCH_REPEATS_MAX];
        memcpy(sorted, cell->rates, cell->trials * sizeof sorted[0]);
        qsort(sorted, cell->trials, sizeof sorted[0], sl_by_value);
        cell->rate = (sorted[cell->trials / 2] + sorted[(cell->trials - 1) / 2]) / 2;
        cell->low = cell->rate * exp(-spread);
        cell->high = cell->rate * exp(spread);
    }
    size_t trusted =
        search->cells[search->best].trials < 2 ? search->cells[search->best].trials : 2;
    search->recommended = find_cheapest(run, search->best, trusted);
    for (size_t i = 0; i < search->count; i++) {
        if (run->usable[i] && run->plan->kind == SL_SEARCH_ADAPTIVE && i != search->best &&
            !is_contender(run, i, search->best))
            search->cells[i].stopped = CANNOT_WIN;
    }
}

static bool start(search_state *run, sl_error *error) {
    const sl_search_plan *plan = run->plan;
    sl_search *search = run->search;
    size_t count = sl_search_grid_size(plan);
    if (count > SL_SEARCH_CELLS_MAX)
        return sl_error_set(error, SL_EXIT_USAGE, "more than %d settings to try: name fewer values",
                            SL_SEARCH_CELLS_MAX);
    search->cells = calloc(count, sizeof *search->cells);
    run->usable = calloc(count, sizeof *run->usable);
    if (!search->cells || !run->usable)
        return sl_error_memory(error, "searching");
    search->count = count;
    size_t usable = 0;
    for (size_t i = 0; i < count; i++) {
        sl_search_cell *cell = &search->cells[i];
        place_of(plan, i, cell->at);
        cell->stopped = "";
        cell->rates = calloc(SL_SEARCH_REPEATS_MAX, sizeof *cell->rates);
        if (!cell->rates)
            return sl_error_memory(error, "searching");
        run->usable[i] = is_usable(plan, cell->at);
        usable += run->usable[i];
        if (!run->usable[i])
            cell->stopped = NOT_USABLE;
    }
    if (usable == 0)
        return sl_error_set(error, SL_EXIT_USAGE, "no setting is left to try");
    search->grid_trials = usable * plan->repeats;
    run->allowance = sl_search_trials_max(plan);
    run->last = count;
    run->random = (plan->seed + 1) * 0x9e3779b97f4a7c15u;
    run->surface = surface_create(plan->dimensions, plan->dimension_count, search->cells, count);
    return run->surface || sl_error_memory(error, "searching");
}

bool sl_search_run(const sl_search_plan *plan, sl_search *search, sl_error *error) {
    search_state run = {.plan = plan, .search = search};
    *search = (sl_search){.best = 0};
    bool ok = start(&run, error) && (plan->kind == SL_SEARCH_GRID ? search_grid(&run, error)
                                                                  : search_adaptively(&run, error));
    if (ok && search->trials > 0) {
        ok = fit(&run, error);
        if (ok)
            conclude(&run);
    }
    surface_destroy(run.surface);
    free(run.usable);
    return ok;
}

void sl_search_clear(sl_search *search) {
    for (size_t i = 0; search->cells && i < search->count; i++)
        free(search->cells[i].rates);
    free(search->cells);
    *search = (sl_search){.best = 0};
}
