/* SPDX-License-Identifier: Apache-2.0 */
/* The search: runs the trials, decides when to stop, and chooses the recommended cell.
 *
 * The adaptive search begins with a few cells spread over the grid. After each trial a surface is
 * fitted to all trials (surface.c); it gives the expected rate and its uncertainty for every cell,
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

#include "surface.h"

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
    sl_surface *surface;
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
            (best == run->search->count ||
             sl_surface_mean(run->surface, i) > sl_surface_mean(run->surface, best)))
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
    double ahead = sl_surface_mean(run->surface, cell) - sl_surface_mean(run->surface, best);
    return run->usable[cell] && cell != best &&
           ahead + SURE * sl_surface_difference(run->surface, cell, best) > WORTH_IT;
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
        double bound =
            sl_surface_mean(run->surface, i) + OPTIMISM * sl_surface_deviation(run->surface, i);
        if ((i == best || is_contender(run, i, best)) && i != run->last &&
            search->cells[i].trials < SL_SEARCH_REPEATS_MAX && bound > highest) {
            highest = bound;
            chosen = i;
        }
    }
    return chosen;
}

/* Is the cell expected to be as fast as the best? */
static bool is_as_fast(const search_state *run, size_t cell, size_t best) {
    return sl_surface_mean(run->surface, best) - sl_surface_mean(run->surface, cell) <= EQUIVALENT;
}

/* May the cell be as fast as the best, within its uncertainty? Untried neighbours of the cheapest
 * cell get a wider margin, because the surface is smoother than the true rates. */
static bool may_be_as_fast(const search_state *run, size_t cell, size_t best, size_t cheapest) {
    double behind = sl_surface_mean(run->surface, best) - sl_surface_mean(run->surface, cell);
    bool near = run->search->cells[cell].trials == 0 && is_neighbour(run, cell, cheapest);
    double hope = near ? HOPE_NEARBY : HOPE;
    return behind - hope * sl_surface_difference(run->surface, best, cell) <= EQUIVALENT;
}

/* The cheapest cell with at least `trials_min` trials that is expected to be as fast as the
 * best. */
static size_t find_cheapest(const search_state *run, size_t best, size_t trials_min) {
    size_t found = best;
    for (size_t i = 0; i < run->search->count; i++) {
        if (run->usable[i] && run->search->cells[i].trials >= trials_min &&
            is_cheaper(run, i, found) && is_as_fast(run, i, best))
            found = i;
    }
    return found;
}

/* The second best of the measured cells; the best when there is no other. */
static size_t find_second(const search_state *run, size_t best) {
    size_t second = best;
    for (size_t i = 0; i < run->search->count; i++) {
        if (i != best && run->usable[i] && run->search->cells[i].trials > 0 &&
            (second == best ||
             sl_surface_mean(run->surface, i) > sl_surface_mean(run->surface, second)))
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
            (next == count ||
             sl_surface_mean(run->surface, i) > sl_surface_mean(run->surface, next)))
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

static uint64_t draw(search_state *run, uint64_t below) {
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return run->random % below;
}

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
            size_t other = (size_t)draw(run, i), kept = order[i - 1];
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

/* The first usable cell; `count` when there is none. */
static size_t first_usable(const search_state *run) {
    size_t cell = 0;
    while (cell < run->search->count && !run->usable[cell])
        cell++;
    return cell;
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
    return sl_surface_fit(run->surface) || sl_error_memory(error, "searching");
}

static bool search_adaptively(search_state *run, sl_error *error) {
    size_t count = run->search->count;
    size_t for_the_best = (size_t)(SHARE_FOR_THE_BEST * (double)run->allowance);
    bool best_found = false; /* or its share of the trials is used up */
    try_spread_cells(run);
    while (may_go_on(run)) {
        if (run->search->trials == 0) { /* all trials so far have failed */
            size_t any = first_usable(run);
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

static double median_of(const double *rates, size_t count) {
    double sorted[SL_SEARCH_REPEATS_MAX];
    memcpy(sorted, rates, count * sizeof sorted[0]);
    qsort(sorted, count, sizeof sorted[0], sl_by_value);
    return (sorted[count / 2] + sorted[(count - 1) / 2]) / 2;
}

/* Sets the rates, the best and the recommended cell. */
static void conclude(search_state *run) {
    sl_search *search = run->search;
    search->noise = sl_surface_noise(run->surface, &search->noise_measured);
    double interval = sl_student_quantile(
        SL_90_PERCENT,
        search->noise_measured ? (double)sl_surface_repeated(run->surface) : INFINITY);
    search->best = find_best(run);
    for (size_t i = 0; i < search->count; i++) {
        sl_search_cell *cell = &search->cells[i];
        if (cell->trials == 0)
            continue;
        double spread = interval * search->noise * sqrt(sl_surface_median_variance(cell->trials));
        cell->rate = median_of(cell->rates, cell->trials);
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
    run->surface = sl_surface_create(plan->dimensions, plan->dimension_count, search->cells, count);
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
    sl_surface_destroy(run.surface);
    free(run.usable);
    return ok;
}

void sl_search_clear(sl_search *search) {
    for (size_t i = 0; search->cells && i < search->count; i++)
        free(search->cells[i].rates);
    free(search->cells);
    *search = (sl_search){.best = 0};
}
