/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a search, and the choice of the next cell. */
#ifndef SHARDLOAD_TRIAL_SEARCH_NEXT_H
#define SHARDLOAD_TRIAL_SEARCH_NEXT_H

#include "surface.h"

typedef struct sl_search_state {
    const sl_search_plan *plan;
    sl_search *search;
    sl_surface *surface;
    bool *usable;
    size_t allowance; /* maximum number of trials */
    size_t last;      /* the cell tried last; `count` before the first */
    uint64_t random;
    bool stopped;
} sl_search_state;

/* The functions below use the surface as it was last fitted. A cell is its index; search->count
 * means no cell. */

/* The measured cell with the highest expected rate. */
size_t sl_find_best(const sl_search_state *run);

/* The cheapest cell with at least `trials_min` trials that is expected to be as fast as the
 * best. */
size_t sl_find_cheapest(const sl_search_state *run, size_t best, size_t trials_min);

/* May the cell be faster than the best, by enough to be worth a trial? */
bool sl_is_contender(const sl_search_state *run, size_t cell, size_t best);

/* The next cell to try in order to find the best, or the cheapest; none when it has been found. */
size_t sl_next_for_the_best(const sl_search_state *run);
size_t sl_next_for_the_cheapest(const sl_search_state *run);

#endif
