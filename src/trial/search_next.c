/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the next cell of a search by the fitted surface (see search.c). */
#include "search_next.h"

#include <math.h>

/* Differences are of logarithms of rates, that is, relative. */
#define CONTENDER_TRIALS 3 /* of a cell before it is recommended, if enough trials are left */
#define OPTIMISM 1.6       /* standard deviations in the upper bound */
#define SURE 1.645         /* standard deviations of a one-sided 95 % bound */
#define WORTH_IT 0.015     /* a smaller gain does not make a contender */
#define EQUIVALENT 0.02    /* a cell slower by at most this is as fast as the best */
#define HOPE 1.0           /* standard deviations within which a cell may be as fast */
#define HOPE_NEARBY 3.0    /* the same for an untried neighbour */

/* Is cell `a` cheaper than `b`? See search.h. */
static bool is_cheaper(const sl_search_state *run, size_t a, size_t b) {
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

size_t sl_find_best(const sl_search_state *run) {
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
static bool is_neighbour(const sl_search_state *run, size_t a, size_t b) {
    size_t steps = 0;
    for (size_t d = 0; d < run->plan->dimension_count; d++) {
        size_t x = run->search->cells[a].at[d], y = run->search->cells[b].at[d];
        size_t step = x > y ? x - y : y - x;
        steps += run->plan->dimensions[d].ordered || step == 0 ? step : 1;
    }
    return steps == 1;
}

/* An untried neighbour of the best cell is always a contender: the surface may have an edge
 * there. */
bool sl_is_contender(const sl_search_state *run, size_t cell, size_t best) {
    if (run->usable[cell] && run->search->cells[cell].trials == 0 && is_neighbour(run, cell, best))
        return true;
    double ahead = sl_surface_mean(run->surface, cell) - sl_surface_mean(run->surface, best);
    return run->usable[cell] && cell != best &&
           ahead + SURE * sl_surface_difference(run->surface, cell, best) > WORTH_IT;
}

size_t sl_next_for_the_best(const sl_search_state *run) {
    const sl_search *search = run->search;
    size_t best = sl_find_best(run), chosen = search->count, contenders = 0;
    double highest = -HUGE_VAL;
    for (size_t i = 0; i < search->count; i++)
        contenders += sl_is_contender(run, i, best);
    if (contenders == 0)
        return search->count;
    for (size_t i = 0; i < search->count; i++) {
        double bound =
            sl_surface_mean(run->surface, i) + OPTIMISM * sl_surface_deviation(run->surface, i);
        if ((i == best || sl_is_contender(run, i, best)) && i != run->last &&
            search->cells[i].trials < SL_SEARCH_REPEATS_MAX && bound > highest) {
            highest = bound;
            chosen = i;
        }
    }
    return chosen;
}

/* Is the cell expected to be as fast as the best? */
static bool is_as_fast(const sl_search_state *run, size_t cell, size_t best) {
    return sl_surface_mean(run->surface, best) - sl_surface_mean(run->surface, cell) <= EQUIVALENT;
}

/* May the cell be as fast as the best, within its uncertainty? Untried neighbours of the cheapest
 * cell get a wider margin, because the surface is smoother than the true rates. */
static bool may_be_as_fast(const sl_search_state *run, size_t cell, size_t best, size_t cheapest) {
    double behind = sl_surface_mean(run->surface, best) - sl_surface_mean(run->surface, cell);
    bool near = run->search->cells[cell].trials == 0 && is_neighbour(run, cell, cheapest);
    double hope = near ? HOPE_NEARBY : HOPE;
    return behind - hope * sl_surface_difference(run->surface, best, cell) <= EQUIVALENT;
}

size_t sl_find_cheapest(const sl_search_state *run, size_t best, size_t trials_min) {
    size_t found = best;
    for (size_t i = 0; i < run->search->count; i++) {
        if (run->usable[i] && run->search->cells[i].trials >= trials_min &&
            is_cheaper(run, i, found) && is_as_fast(run, i, best))
            found = i;
    }
    return found;
}

/* The second best of the measured cells; the best when there is no other. */
static size_t find_second(const sl_search_state *run, size_t best) {
    size_t second = best;
    for (size_t i = 0; i < run->search->count; i++) {
        if (i != best && run->usable[i] && run->search->cells[i].trials > 0 &&
            (second == best ||
             sl_surface_mean(run->surface, i) > sl_surface_mean(run->surface, second)))
            second = i;
    }
    return second;
}

/* Confirms the cheapest cell first; then tries the cheaper cell with the highest expected rate. */
size_t sl_next_for_the_cheapest(const sl_search_state *run) {
    const sl_search_cell *cells = run->search->cells;
    size_t count = run->search->count, best = sl_find_best(run), next = count;
    size_t cheapest = sl_find_cheapest(run, best, 1);
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
