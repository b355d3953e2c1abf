/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a load's ids over the shards.
 *
 * With one range per shard and source, split at stripes (document_id.h), every shard gets its share
 * of every source from the first megabyte on. The first range of each source is on the shard after
 * that of the previous source, so that many small sources, which fill only the first stripes, are
 * spread, too.
 *
 * Placing a range takes about a tenth of a second. If placing many sources would take long compared
 * with the load itself, a range contains several consecutive sources, such that ranges have about
 * equal numbers of bytes. */
#include "ranges.h"
#include "numbers.h"

#include <stdlib.h>

#define BYTES_PER_RANGE ((uint64_t)32 << 20) /* stored bytes that justify a separate range */
#define RANGES_PER_SHARD 16u                 /* always allowed */
#define RANGES_MAX 4096u
#define RANGES_COUNTED 256u /* maximum when ranges are not placed, but only counted at the end */

typedef struct numbered {
    uint32_t number;
    uint64_t bytes;
    sl_job_source *source;
} numbered;

static int by_number(const void *a, const void *b) {
    uint32_t x = ((const numbered *)a)->number, y = ((const numbered *)b)->number;
    return (x > y) - (x < y);
}

/* The sources to load, by ascending number; malloc'd. */
static numbered *sorted_sources(const sl_job *job) {
    numbered *list = malloc((job->active + 1) * sizeof *list);
    size_t used = 0;
    for (size_t i = 0; list && i < sl_source_set_count(job->set); i++) {
        if (!job->sources[i].skipped)
            list[used++] =
                (numbered){job->sources[i].number, sl_source_set_at(job->set, i)->stored_bytes + 1,
                           &job->sources[i]};
    }
    if (list)
        qsort(list, used, sizeof *list, by_number);
    return list;
}

static size_t ranges_worth_it(const sl_job *job) {
    if (!job->by_range)
        return RANGES_COUNTED;
    uint64_t worth = sl_source_set_stored_bytes(job->set) / BYTES_PER_RANGE;
    if (worth < RANGES_PER_SHARD * job->shards)
        worth = RANGES_PER_SHARD * job->shards;
    return worth < RANGES_MAX ? (size_t)worth : RANGES_MAX;
}

/* Sets the number of pieces of each source, and the shard of its first piece. */
static void deal_out(const sl_job *job, const numbered *list) {
    uint32_t pieces = 1;
    uint64_t run_bytes = 0; /* minimum of stored bytes per range; 0: one source per range */
    size_t most = ranges_worth_it(job);
    if (job->by_range)
        pieces = job->shards < SL_STRIPES ? job->shards : SL_STRIPES;
    if (job->active > 1 && job->active * pieces > most) {
        pieces = 1;
        run_bytes = (sl_source_set_stored_bytes(job->set) + job->active) / most;
    }
    uint32_t turn = 0; /* the shard of the next run, modulo shards */
    for (size_t first = 0, next; first < job->active; first = next, turn++) {
        uint64_t bytes = list[first].bytes;
        /* A run ends at a gap in the numbers, because the missing numbers belong to sources of
         * other loads. */
        for (next = first + 1; next < job->active && bytes < run_bytes &&
                               list[next].number == list[next - 1].number + 1;
             next++)
            bytes += list[next].bytes;
        for (size_t i = first; i < next; i++) {
            list[i].source->pieces = pieces;
            list[i].source->leading = run_bytes > 0 ? turn : list[i].number;
        }
    }
}

/* Do two consecutive sources of the list belong to one range? */
static bool same_run(const numbered *a, const numbered *b) {
    return a->source->pieces == 1 && b->source->pieces == 1 && b->number == a->number + 1 &&
           a->source->leading == b->source->leading;
}

static void make_ranges(sl_job *job, const numbered *list) {
    for (size_t first = 0, next; first < job->active; first = next) {
        const sl_job_source *source = list[first].source;
        for (next = first + 1; next < job->active && same_run(&list[next - 1], &list[next]);)
            next++;
        for (uint32_t piece = 0; piece < source->pieces; piece++) {
            uint32_t begin = sl_piece_begin(source, piece);
            uint32_t end = sl_piece_begin(source, piece + 1);
            job->ranges[job->range_count++] = (sl_range){
                .minimum = sl_stripe_first_id(list[first].number, begin),
                .maximum = sl_stripe_first_id(list[next - 1].number, end),
                .shard = sl_job_shard_of(job, source, piece),
            };
        }
    }
}

bool sl_ranges_lay_out(sl_job *job, const sl_destination *destination, sl_error *error) {
    numbered *list = sorted_sources(job);
    size_t count = 0;
    if (!list)
        return sl_error_memory(error, "laying out ranges");
    deal_out(job, list);
    if (!sl_sources_agree_on_layout(job, destination, error)) {
        free(list);
        return false;
    }
    for (size_t i = 0; i < job->active; i++)
        count += list[i].source->pieces;
    job->ranges = calloc(count, sizeof *job->ranges);
    bool ok = job->ranges;
    if (ok)
        make_ranges(job, list);
    free(list);
    return ok || sl_error_memory(error, "laying out ranges");
}
