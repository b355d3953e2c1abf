/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a search, and which cell it should try next. */
#ifndef SHARDLOAD_TRIAL_SEARCH_NEXT_H
#define SHARDLOAD_TRIAL_SEARCH_NEXT_H

#include "surface.h"

typedef struct sl_search_state {
    const sl_search_plan *plan;
    sl_search *search;
    sl_surface *surface;
    bool *usable;
    size_t allowance;
    size_t last; /* the cell tried last; `count` before the first */
    uint64_t random;
    bool stopped;
} sl_search_state;

/* What follows goes by the surface as it was fitted last. Cells are indexes; `count` of the search is
 * none. */

/* The measured cell with the highest expected rate. */
size_t sl_find_best(const sl_search_state *run);

/* The cheapest cell with at least `trials_min` trials that is expected to be as good as the best. */
size_t sl_find_cheapest(const sl_search_state *run, size_t best, size_t trials_min);

/* May the cell be faster than the best, by enough to be worth it? */
bool sl_is_contender(const sl_search_state *run, size_t cell, size_t best);

/* The next cell on the way to the best, and on the way to the cheapest; none when that is settled. */
size_t sl_next_for_the_best(const sl_search_state *run);
size_t sl_next_for_the_cheapest(const sl_search_state *run);

#endif
