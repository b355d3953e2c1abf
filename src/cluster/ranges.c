/* SPDX-License-Identifier: Apache-2.0 */
/* Places ranges of _id on their shards before documents are inserted.
 *
 * The chunk map is read and compared with the ranges. Each empty range on a wrong shard is split
 * off its chunks and moved. A range that is on its shard needs no step, even if its chunk is larger
 * than the range, so preparing the same ranges again costs one read. When a step fails, perhaps
 * because the balancer or another loader has changed the chunks, the map is read and planned again.
 * If the change was the cause, the new plan does not contain the step; it is an error only if the
 * same step fails twice in a row. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/context.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"

#include "cluster.h"
#include "internal.h"

/* ---- planning ---- */

static bool add_step(sl_chunk_steps *steps, const sl_chunk_step *step, sl_error *error) {
    sl_chunk_step *items = sl_grow(steps->items, steps->count, &steps->room, sizeof *items);
    if (!items)
        return sl_error_memory(error, "planning the ranges");
    steps->items = items;
    steps->items[steps->count++] = *step;
    return true;
}

/* Adds a split unless the last split was at the same id: adjacent ranges share a bound. */
static bool add_split(sl_chunk_steps *steps, int64_t id, bson_value_t *bound, sl_error *error) {
    *bound = (bson_value_t){.value_type = BSON_TYPE_INT64, .value.v_int64 = id};
    if (steps->any_split && steps->last_split == id)
        return true;
    steps->any_split = true;
    steps->last_split = id;
    return add_step(steps, &(sl_chunk_step){.minimum = *bound}, error);
}

bool sl_range_is_placed(const sl_shard_map *map, const sl_range *range) {
    for (size_t i = sl_shard_map_find(map, range->minimum);
         i < map->count && map->chunks[i].first < range->maximum; i++) {
        if (map->chunks[i].shard != range->shard)
            return false;
    }
    return true;
}

bool sl_plan_range(const sl_shard_map *map, const sl_range *range, sl_chunk_steps *steps,
                   sl_error *error) {
    for (size_t i = sl_shard_map_find(map, range->minimum);
         i < map->count && map->chunks[i].first < range->maximum; i++) {
        const sl_chunk *chunk = &map->chunks[i];
        if (chunk->shard == range->shard)
            continue;
        sl_chunk_step move = {.move = true,
                              .minimum = chunk->minimum,
                              .maximum = chunk->maximum,
                              .shard = range->shard};
        bool last = i + 1 == map->count;
        if (chunk->first < range->minimum &&
            !add_split(steps, range->minimum, &move.minimum, error))
            return false;
        if ((last || map->chunks[i + 1].first > range->maximum) &&
            !add_split(steps, range->maximum, &move.maximum, error))
            return false;
        if (!add_step(steps, &move, error))
            return false;
    }
    return true;
}

/* ---- running the steps ---- */

typedef struct placement {
    sl_connection *connection;
    const sl_target *target;
    const sl_topology *topology;
    const sl_topology *now; /* read again: shards may have been removed; or NULL */
    bool (*progress)(void *context, size_t done, size_t all);
    void *context;
    size_t done;
    size_t all;
} placement;

static bool report(void *context) {
    placement *work = context;
    return !work->progress || work->progress(work->context, work->done, work->all);
}

/* Whether a range is moved: read once per range. */
enum { UNREAD, EMPTY, OCCUPIED, DIVIDED };

static bool examine(const placement *work, const sl_shard_map *map, const sl_range *range,
                    unsigned char *seen, sl_error *error) {
    size_t first = sl_shard_map_find(map, range->minimum);
    bool empty = false;
    if (sl_shard_map_find(map, range->maximum - 1) - first >= SL_CHUNKS_MOVED_MOST) {
        *seen = DIVIDED;
        return true;
    }
    bson_t *filter = sl_range_filter(range->minimum, range->maximum);
    bool ok = sl_is_empty(work->connection, work->target, filter, &empty, error);
    bson_destroy(filter);
    *seen = empty ? EMPTY : OCCUPIED;
    return ok;
}

/* The commands that split a chunk, and move a chunk to a shard, for database "admin". Destroy
 * them. */
static bson_t *split_command(const sl_target *target, const bson_t *middle) {
    char ns[SL_NAMESPACE_ROOM];
    return BCON_NEW("split", BCON_UTF8(sl_target_namespace(target, ns)), "middle",
                    BCON_DOCUMENT(middle));
}

static bson_t *move_command(const sl_target *target, const bson_t *minimum, const bson_t *maximum,
                            const char *shard) {
    char ns[SL_NAMESPACE_ROOM];
    return BCON_NEW("moveChunk", BCON_UTF8(sl_target_namespace(target, ns)), "bounds", "[",
                    BCON_DOCUMENT(minimum), BCON_DOCUMENT(maximum), "]", "to", BCON_UTF8(shard));
}

static bool run_step(const placement *work, const sl_chunk_step *step, int32_t *code,
                     sl_error *error) {
    bson_t minimum = BSON_INITIALIZER, maximum = BSON_INITIALIZER;
    BSON_APPEND_VALUE(&minimum, "_id", &step->minimum);
    if (step->move)
        BSON_APPEND_VALUE(&maximum, "_id", &step->maximum);
    bson_t *command = step->move ? move_command(work->target, &minimum, &maximum,
                                                work->topology->shards[step->shard].name)
                                 : split_command(work->target, &minimum);
    bool ok = sl_connection_command(work->connection, "admin", command, NULL, code, error);
    bson_destroy(command);
    bson_destroy(&minimum);
    bson_destroy(&maximum);
    return ok;
}

/* The outcome of planning once and running the steps. */
typedef enum round_outcome { FINISHED, FAILED, STEP_FAILED, STOPPED } round_outcome;

/* The step that failed last, with the fields that identify it in the next plan. */
typedef struct failed_step {
    unsigned times; /* in a row; 0: the last step did not fail */
    bool move;
    int64_t minimum; /* INT64_MIN if it is not a 64-bit id */
    uint32_t shard;
} failed_step;

static void note_failure(failed_step *failed, const sl_chunk_step *step) {
    failed_step now = {.move = step->move,
                       .minimum = step->minimum.value_type == BSON_TYPE_INT64
                                      ? step->minimum.value.v_int64
                                      : INT64_MIN,
                       .shard = step->shard};
    bool again = failed->times > 0 && failed->move == now.move && failed->minimum == now.minimum &&
                 failed->shard == now.shard;
    now.times = again ? failed->times + 1 : 1;
    *failed = now;
}

/* Runs the plan until a step fails. A move that the servers do not permit, because of a zone, is
 * left out. */
static round_outcome run_steps(placement *work, const sl_chunk_steps *steps, failed_step *failed,
                               int32_t *code, sl_error *error) {
    work->all = work->done + steps->count;
    for (size_t i = 0; i < steps->count; i++) {
        if (!report(work))
            return STOPPED;
        bool ok = run_step(work, &steps->items[i], code, error);
        if (!ok && steps->items[i].move && *code == SL_CODE_ILLEGAL_OPERATION) {
            sl_log_warning("a range stays on its shard: " SL_LINES, error->message);
            *error = (sl_error){.code = SL_EXIT_OK};
        } else if (!ok) {
            note_failure(failed, &steps->items[i]);
            return STEP_FAILED;
        }
        failed->times = 0;
        work->done++;
    }
    return steps->count == 0 || report(work) ? FINISHED : STOPPED;
}

/* The steps for all ranges that are on a wrong shard and empty. The ranges of a shard that is
 * being removed are placed on the next one. */
static bool plan_round(const placement *work, const sl_shard_map *map, const sl_range *ranges,
                       size_t count, unsigned char *seen, sl_chunk_steps *steps, sl_error *error) {
    for (size_t i = 0; map->by_id && i < count; i++) {
        sl_range range = ranges[i];
        if (work->now)
            range.shard = sl_topology_receiver(work->topology, work->now, range.shard);
        if (sl_range_is_placed(map, &range))
            continue;
        if (seen[i] == UNREAD && !examine(work, map, &range, &seen[i], error))
            return false;
        if (seen[i] != EMPTY)
            sl_log_debug("the range of ids %lld to %lld %s and is not moved",
                         (long long)range.minimum, (long long)range.maximum,
                         seen[i] == OCCUPIED ? "holds documents" : "has many chunks");
        else if (!sl_plan_range(map, &range, steps, error))
            return false;
    }
    return true;
}

static round_outcome run_round(placement *work, const sl_range *ranges, size_t count,
                               unsigned char *seen, failed_step *failed, int32_t *code,
                               sl_error *error) {
    round_outcome outcome = FAILED;
    sl_shard_map *map;
    sl_topology *now;
    sl_chunk_steps steps = {.items = NULL};
    if (!sl_shard_map_read(work->connection, work->target, work->topology, &map, error))
        return FAILED;
    bool ok = sl_topology_read(work->connection, &now, error);
    work->now = now;
    if (ok && plan_round(work, map, ranges, count, seen, &steps, error))
        outcome = run_steps(work, &steps, failed, code, error);
    free(steps.items);
    sl_topology_destroy(now);
    sl_shard_map_destroy(map);
    return outcome;
}

bool sl_count_steps(sl_connection *connection, const sl_target *target, const sl_shard_map *map,
                    const sl_range *ranges, size_t count, bool *stays, sl_step_counts *counts,
                    sl_error *error) {
    placement work = {.connection = connection, .target = target};
    sl_chunk_steps steps = {.items = NULL};
    unsigned char *seen = malloc(count + 1);
    *counts = (sl_step_counts){0};
    if (!seen)
        return sl_error_memory(error, "planning the ranges");
    memset(seen, connection ? UNREAD : EMPTY, count + 1);
    bool ok = plan_round(&work, map, ranges, count, seen, &steps, error);
    for (size_t i = 0; ok && i < steps.count; i++)
        *(steps.items[i].move ? &counts->moves : &counts->splits) += 1;
    for (size_t i = 0; ok && i < count; i++) {
        stays[i] = seen[i] != UNREAD && seen[i] != EMPTY;
        counts->occupied += stays[i];
    }
    free(steps.items);
    free(seen);
    return ok;
}

bool sl_prepare_ranges(sl_connection *connection, const sl_target *target,
                       const sl_topology *topology, const sl_range *ranges, size_t count,
                       bool (*progress)(void *context, size_t done, size_t all), void *context,
                       sl_error *error) {
    placement work = {.connection = connection,
                      .target = target,
                      .topology = topology,
                      .progress = progress,
                      .context = context};
    unsigned char *seen = calloc(count + 1, sizeof *seen);
    if (!seen)
        return sl_error_memory(error, "planning the ranges");
    round_outcome outcome;
    failed_step failed = {.times = 0};
    for (;;) {
        int32_t code = 0;
        outcome = run_round(&work, ranges, count, seen, &failed, &code, error);
        if (outcome != STEP_FAILED)
            break;
        /* A step may fail because another loader splits chunks of the collection at this moment. */
        if ((failed.times > (sl_code_is_refusal(code) ? 1u : 5u) && !sl_code_is_transient(code)) ||
            !sl_backoff(failed.times - 1, report, &work))
            break;
        sl_log_debug("the chunks may have changed: %s", error->message);
    }
    free(seen);
    if (outcome == STOPPED || (outcome == STEP_FAILED && !report(&work)))
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "stopped while preparing the ranges");
    if (outcome != FINISHED)
        return sl_error_prefix(error, "cannot prepare the ranges of %s.%s", target->database,
                               target->collection);
    return true;
}

bool sl_count_matching(sl_connection *connection, const sl_target *target, const bson_t *filter,
                       uint64_t *count, sl_error *error) {
    *count = 0;
    bson_t reply;
    int32_t code;
    /* An aggregation, because the count command also counts orphans of an interrupted chunk
     * move. */
    bson_t *command =
        BCON_NEW("aggregate", BCON_UTF8(target->collection), "pipeline", "[", "{", "$match",
                 BCON_DOCUMENT(filter), "}", "{", "$count", "n", "}", "]", "cursor", "{", "}");
    sl_target_append_uuid(target, command);
    bool ok = sl_cluster_run(connection, target->database, command, &reply, &code, error);
    if (code == SL_CODE_COLLECTION_UUID_MISMATCH)
        sl_target_mismatch(connection, target, error);
    if (ok)
        *count = (uint64_t)sl_look_int64(&reply, "cursor.firstBatch.0.n", 0);
    bson_destroy(&reply);
    return ok;
}

bool sl_count_range(sl_connection *connection, const sl_target *target, int64_t minimum,
                    int64_t maximum, uint64_t *count, sl_error *error) {
    bson_t *filter = sl_range_filter(minimum, maximum);
    bool ok = sl_count_matching(connection, target, filter, count, error);
    bson_destroy(filter);
    return ok;
}

/* Ranges that threads count; each takes the next one. */
typedef struct range_counting {
    sl_connection *connection;
    const sl_target *target;
    const sl_range *ranges;
    size_t count;
    const bool *shards;
    uint64_t *found;
    atomic_size_t next;
    pthread_mutex_t lock; /* guards what follows */
    int64_t logged;
    sl_error failure; /* the first one */
} range_counting;

static void *count_each(void *argument) {
    range_counting *work = argument;
    bool ok = true;
    for (size_t i; ok && (i = atomic_fetch_add(&work->next, 1)) < work->count;) {
        const sl_range *range = &work->ranges[i];
        sl_error error = {.code = SL_EXIT_OK};
        if (work->shards && !work->shards[range->shard])
            continue;
        ok = sl_interrupt_requested()
                 ? sl_error_set(&error, SL_EXIT_INTERRUPTED, "verification was interrupted")
                 : sl_count_range(work->connection, work->target, range->minimum, range->maximum,
                                  &work->found[i], &error);
        pthread_mutex_lock(&work->lock);
        if (!ok && !work->failure.code)
            work->failure = error;
        if (!ok)
            atomic_store(&work->next, work->count);
        if (sl_seconds_since(work->logged) > 3) {
            sl_log_info("counting: %zu of %zu ranges", i + 1, work->count);
            work->logged = sl_clock_ns();
        }
        pthread_mutex_unlock(&work->lock);
    }
    return NULL;
}

bool sl_count_ranges(sl_connection *connection, const sl_target *target, const sl_range *ranges,
                     size_t count, const bool *shards, uint64_t *found, sl_error *error) {
    range_counting work = {.connection = connection,
                           .target = target,
                           .ranges = ranges,
                           .count = count,
                           .shards = shards,
                           .found = found,
                           .lock = PTHREAD_MUTEX_INITIALIZER,
                           .logged = sl_clock_ns()};
    pthread_t threads[SL_RANGES_AT_ONCE];
    unsigned started = 0; /* beside this thread */
    while (started + 1 < SL_RANGES_AT_ONCE && started + 1 < count &&
           sl_thread_start(&threads[started], count_each, &work) == 0)
        started++;
    count_each(&work);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    pthread_mutex_destroy(&work.lock);
    if (work.failure.code)
        *error = work.failure;
    return !work.failure.code;
}

/* ---- splits at quantiles of a sample ---- */

/* A sample of shard keys, by reservoir sampling, and the chunks made of it. */

#define SAMPLE_MOST 4000u
#define KEY_BYTES_MOST 1024u /* larger keys are not sampled */

struct sl_key_sample {
    bson_t key;
    bson_t *values[SAMPLE_MOST]; /* {path: value, ...} */
    size_t count;
    uint64_t offered;
    uint64_t random; /* state; the same documents always give the same sample */
};

sl_key_sample *sl_key_sample_create(const bson_t *key) {
    sl_key_sample *made = sl_zeroed(1, sizeof *made);
    if (made) {
        bson_copy_to(key, &made->key);
        made->random = UINT64_C(0x9E3779B97F4A7C15);
    }
    return made;
}

void sl_key_sample_destroy(sl_key_sample *sample) {
    if (!sample)
        return;
    for (size_t i = 0; i < sample->count; i++)
        bson_destroy(sample->values[i]);
    bson_destroy(&sample->key);
    free(sample);
}

bool sl_shard_key_is_hashed(const bson_t *key) {
    bson_iter_t iter;
    bool hashed = false;
    for (bool more = bson_iter_init(&iter, key); more && bson_iter_next(&iter);)
        hashed = hashed || BSON_ITER_HOLDS_UTF8(&iter);
    return hashed;
}

size_t sl_key_sample_count(const sl_key_sample *sample) {
    return sample->count;
}

/* The key of a document. `*known`: all of its values can be compared. */
static bson_t *key_of(const sl_key_sample *sample, const uint8_t *document, bool *known) {
    bson_t *made = bson_new();
    bson_iter_t iter;
    *known = true;
    for (bool more = bson_iter_init(&iter, &sample->key);
         more && *known && bson_iter_next(&iter);) {
        bson_value_t value;
        *known = sl_key_value_at(document, bson_iter_key(&iter), true, &value) &&
                 bson_append_value(made, bson_iter_key(&iter), -1, &value);
    }
    *known = *known && made->len <= KEY_BYTES_MOST;
    return made;
}

bool sl_key_sample_offer(sl_key_sample *sample, const uint8_t *document) {
    size_t slot = sample->count;
    sample->offered++;
    if (sample->count == SAMPLE_MOST) {
        uint64_t drawn = sl_random_next(&sample->random) % sample->offered;
        if (drawn >= SAMPLE_MOST)
            return true;
        slot = (size_t)drawn;
    }
    bool known;
    bson_t *value = key_of(sample, document, &known);
    if (!value)
        return false;
    if (!known) {
        bson_destroy(value);
        return true;
    }
    if (slot < sample->count)
        bson_destroy(sample->values[slot]);
    else
        sample->count++;
    sample->values[slot] = value;
    return true;
}

static int compare_keys(const void *one, const void *other) {
    bson_iter_t a, b;
    int result = 0;
    bool more =
        bson_iter_init(&a, *(bson_t *const *)one) && bson_iter_init(&b, *(bson_t *const *)other);
    while (more && result == 0 && bson_iter_next(&a) && bson_iter_next(&b))
        result = sl_value_compare(bson_iter_value(&a), bson_iter_value(&b));
    return result;
}

/* ---- chunks ---- */

/* The lowest or highest key. */
static bson_t *end_of(const bson_t *key, bool highest) {
    bson_t *made = bson_new();
    bson_iter_t iter;
    for (bool more = bson_iter_init(&iter, key); more && bson_iter_next(&iter);) {
        if (highest)
            bson_append_maxkey(made, bson_iter_key(&iter), -1);
        else
            bson_append_minkey(made, bson_iter_key(&iter), -1);
    }
    return made;
}

/* Picks the bounds from the sorted sample: different keys, above the smallest. */
static size_t pick(const sl_key_sample *sample, size_t pieces, const bson_t **bounds) {
    size_t count = 0;
    for (size_t i = 1; i < pieces; i++) {
        bson_t *const *candidate = &sample->values[i * sample->count / pieces];
        const bson_t *before = count > 0 ? bounds[count - 1] : sample->values[0];
        if (compare_keys(&before, candidate) < 0)
            bounds[count++] = *candidate;
    }
    return count;
}

bool sl_presplit(sl_connection *connection, const sl_target *target, const sl_topology *topology,
                 sl_key_sample *sample, size_t per_shard, size_t *chunks, sl_error *error) {
    size_t pieces = topology->count * per_shard;
    sl_shard_map *map;
    *chunks = 1;
    if (sample->count < 2 || topology->count < 2)
        return true;
    if (!sl_shard_map_read(connection, target, topology, &map, error))
        return false;
    const uint32_t home = sl_shard_map_first(map);
    sl_shard_map_destroy(map);
    qsort(sample->values, sample->count, sizeof sample->values[0], compare_keys);
    const bson_t **bounds = calloc(pieces + 2, sizeof *bounds);
    if (!bounds)
        return sl_error_memory(error, "splitting a collection");
    size_t count = pick(sample, pieces, bounds + 1);
    bson_t *lowest = end_of(&sample->key, false), *highest = end_of(&sample->key, true);
    bounds[0] = lowest;
    bounds[count + 1] = highest;
    bool ok = true;
    for (size_t i = 1; ok && i <= count; i++)
        ok = sl_cluster_change(connection, "admin", split_command(target, bounds[i]), 0, error);
    for (size_t i = 0; ok && i <= count; i++) {
        uint32_t shard =
            sl_topology_receiver(topology, topology, (uint32_t)((home + i) % topology->count));
        ok = shard == home || sl_cluster_change(connection, "admin",
                                                move_command(target, bounds[i], bounds[i + 1],
                                                             topology->shards[shard].name),
                                                SL_CODE_ILLEGAL_OPERATION, error);
    }
    *chunks = count + 1;
    bson_destroy(lowest);
    bson_destroy(highest);
    free(bounds);
    return ok;
}
