/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a load's ids over the shards.
 *
 * With one range per shard and source, split at stripes (document_id.h), every shard gets its share
 * of every source from the first megabyte on. The first range of each source goes to another shard,
 * so that many small sources, which fill only the first stripes, are spread, too.
 *
 * Placing a range takes about a tenth of a second. Where so many sources would take long compared
 * with the load itself, runs of complete sources form a range, about equal in bytes. */
#include "engine.h"

#include <stdlib.h>

#include "util/log.h"

#define BYTES_PER_RANGE ((uint64_t)32 << 20) /* stored bytes that justify a range of their own */
#define RANGES_PER_SHARD 16u                 /* always allowed */
#define RANGES_MAX 4096u
#define RANGES_COUNTED 256u /* limit where ranges are not placed, but only counted at the end */

typedef struct numbered {
    uint32_t number;
    uint64_t bytes;
    sl_load_source *source;
} numbered;

static int by_number(const void *a, const void *b) {
    uint32_t x = ((const numbered *)a)->number, y = ((const numbered *)b)->number;
    return (x > y) - (x < y);
}

/* The sources to load, by ascending number; malloc'd. */
static numbered *sorted_sources(const sl_load *load) {
    numbered *list = malloc((load->active + 1) * sizeof *list);
    size_t used = 0;
    for (size_t i = 0; list && i < sl_source_set_count(load->set); i++) {
        if (!load->sources[i].skipped)
            list[used++] =
                (numbered){load->sources[i].number,
                           sl_source_set_at(load->set, i)->stored_bytes + 1, &load->sources[i]};
    }
    if (list)
        qsort(list, used, sizeof *list, by_number);
    return list;
}

static size_t ranges_worth_it(const sl_load *load) {
    if (!load->by_range)
        return RANGES_COUNTED;
    uint64_t worth = sl_source_set_stored_bytes(load->set) / BYTES_PER_RANGE;
    if (worth < RANGES_PER_SHARD * load->shards)
        worth = RANGES_PER_SHARD * load->shards;
    return worth < RANGES_MAX ? (size_t)worth : RANGES_MAX;
}

/* Sets the number of pieces of each source, and the shard of its first piece. */
static void deal_out(const sl_load *load, const numbered *list) {
    uint32_t pieces = 1;
    uint64_t run_bytes = 0; /* minimum of stored bytes per range; 0: one source per range */
    size_t most = ranges_worth_it(load);
    if (load->by_range)
        pieces = load->shards < SL_STRIPES ? load->shards : SL_STRIPES;
    if (load->active > 1 && load->active * pieces > most) {
        pieces = 1;
        run_bytes = (sl_source_set_stored_bytes(load->set) + load->active) / most;
    }
    uint32_t turn = 0; /* the shard of the next run, modulo shards */
    for (size_t first = 0, next; first < load->active; first = next, turn++) {
        uint64_t bytes = list[first].bytes;
        /* A run ends at a gap in the numbers: these belong to sources of other loads. */
        for (next = first + 1; next < load->active && bytes < run_bytes &&
                               list[next].number == list[next - 1].number + 1;
             next++)
            bytes += list[next].bytes;
        for (size_t i = first; i < next; i++) {
            list[i].source->pieces = pieces;
            list[i].source->leading = run_bytes > 0 ? turn : list[i].number;
        }
    }
}

/* Are two sources, consecutive in the list, of one range? */
static bool same_run(const numbered *a, const numbered *b) {
    return a->source->pieces == 1 && b->source->pieces == 1 && b->number == a->number + 1 &&
           a->source->leading == b->source->leading;
}

static void make_ranges(sl_load *load, const numbered *list) {
    for (size_t first = 0, next; first < load->active; first = next) {
        const sl_load_source *source = list[first].source;
        for (next = first + 1; next < load->active && same_run(&list[next - 1], &list[next]);)
            next++;
        for (uint32_t piece = 0; piece < source->pieces; piece++) {
            uint32_t begin = sl_load_piece_begin(source, piece);
            uint32_t end = sl_load_piece_begin(source, piece + 1);
            load->ranges[load->range_count++] = (sl_range){
                .minimum = sl_stripe_first_id(list[first].number, begin),
                .maximum = sl_stripe_first_id(list[next - 1].number, end),
                .shard = sl_load_shard_of(load, source, piece),
            };
        }
    }
}

bool sl_ranges_lay_out(sl_load *load, sl_error *error) {
    numbered *list = sorted_sources(load);
    size_t count = 0;
    if (!list)
        return sl_error_memory(error, "laying out ranges");
    deal_out(load, list);
    if (!sl_sources_agree_on_layout(load, error)) {
        free(list);
        return false;
    }
    for (size_t i = 0; i < load->active; i++)
        count += list[i].source->pieces;
    load->ranges = calloc(count, sizeof *load->ranges);
    load->accepted = calloc(count, sizeof *load->accepted);
    bool ok = load->ranges && load->accepted;
    if (ok)
        make_ranges(load, list);
    free(list);
    return ok || sl_error_memory(error, "laying out ranges");
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

bool sl_ranges_decide_sharding(sl_load *load, sl_error *error) {
    const sl_target *target = &load->target;
    sl_sharding_change change;
    if (!sl_decide_sharding(load->connection, target, &change, error))
        return false;
    if (change == SL_SHARDING_EXISTING)
        sl_log_warning("%s.%s exists and is not sharded: --shard-existing shards it now",
                       target->database, target->collection);
    if (change != SL_SHARDING_LEFT)
        return true;
    if (load->config->only_shards)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--only-shards: %s.%s exists and is not sharded; --shard-existing "
                            "shards it, or share the load with --part",
                            target->database, target->collection);
    sl_log_info("%s.%s exists and is not sharded: it is loaded as it is; --shard-existing would "
                "shard it",
                target->database, target->collection);
    load->target.shard_key = NULL;
    return true;
}
