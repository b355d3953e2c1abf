/* SPDX-License-Identifier: Apache-2.0 */
/* How the keys of a load are laid out over the shards.
 *
 * With one range per shard and source, cut at stripes (document_id.h), every shard gets its share of
 * every source from the first megabyte on. The shards take turns at being first, so that many small
 * sources, which fill only the first stripes, spread as well. When there are so many sources that
 * this would need thousands of ranges, whole runs of sources form a range. */
#include "engine.h"

#include <stdlib.h>

#define RANGES_MAX 4096u

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The numbers of the sources to load, ascending; malloc'd. */
static uint32_t *sorted_numbers(const sl_load *load) {
    uint32_t *numbers = malloc((load->active + 1) * sizeof *numbers);
    size_t used = 0;
    for (size_t i = 0; numbers && i < sl_source_set_count(load->set); i++) {
        if (!load->sources[i].skipped)
            numbers[used++] = load->sources[i].number;
    }
    if (numbers)
        qsort(numbers, used, sizeof *numbers, by_number);
    return numbers;
}

bool sl_ranges_lay_out(sl_load *load, sl_error *error) {
    uint32_t *numbers = sorted_numbers(load);
    uint32_t parts = load->by_range ? load->shards : 1; /* ranges per source */
    size_t run = 1;                                     /* sources per range */
    if (load->active * parts > RANGES_MAX) {
        parts = 1;
        run = (load->active + RANGES_MAX - 1) / RANGES_MAX;
    }
    load->ranges = calloc(load->active * parts, sizeof *load->ranges);
    load->accepted = calloc(load->active * parts, sizeof *load->accepted);
    if (!numbers || !load->ranges || !load->accepted) {
        free(numbers);
        return sl_error_memory(error, "laying out ranges");
    }
    for (size_t first = 0, next; first < load->active; first = next) {
        /* A run ends at a gap: the numbers in it belong to other loads, and so do their ids. */
        for (next = first + 1; next < load->active && next - first < run; next++) {
            if (numbers[next] != numbers[next - 1] + 1)
                break;
        }
        for (uint32_t part = 0; part < parts; part++) {
            /* Rounded up, so that stripe 0 starts a range and the ranges differ by one stripe. */
            uint32_t begin = (SL_STRIPES * part + parts - 1) / parts;
            uint32_t end = (SL_STRIPES * (part + 1) + parts - 1) / parts;
            load->ranges[load->range_count++] = (sl_range){
                .minimum = sl_stripe_first_id(numbers[first], begin),
                .maximum = sl_stripe_first_id(numbers[next - 1], end),
                .shard = (uint32_t)((part + numbers[first]) % load->shards),
            };
        }
    }
    free(numbers);
    return true;
}

size_t sl_load_range_of(const sl_load *load, int64_t id) {
    size_t low = 0, high = load->range_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (load->ranges[middle].minimum <= id)
            low = middle;
        else
            high = middle;
    }
    return low;
}
