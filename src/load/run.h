/* SPDX-License-Identifier: Apache-2.0 */
/* A run: the threads of a load or a verification, their pace, their counters, and how they end.
 *
 * Each worker has its own counters, latencies and parse counts. Counters are atomic, because the
 * main thread reads them while the workers run; latencies and parse counts are read after the
 * workers have ended. The first error and the number of working threads have a lock each, which is
 * held for a few instructions only, and never together with another lock. */
#ifndef SHARDLOAD_RUN_H
#define SHARDLOAD_RUN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <bson/bson.h>

#include "job/job.h"
#include "ledger/ledger.h"
#include "send/rate_limit.h"
#include "util/error.h"
#include "util/histogram.h"
#include "util/load_counts.h"

#include "pace.h"

/* Written by one worker, read by the progress line. */
#define SL_COUNTER(place, field, ...) _Atomic uint64_t field;
typedef struct sl_worker_counters {
    SL_WORKER_COUNTS(SL_COUNTER)
    _Alignas(64) _Atomic int64_t
        answered_ns; /* when the last batch was acknowledged, by sl_clock_ns */
    /* A batch that has no answer yet: since when, by sl_clock_ns, and its shard. 0: none. */
    _Atomic int64_t asked_ns;
    _Atomic uint32_t asked_shard;     /* job->shards: not known */
    _Atomic int64_t stage_ns[STAGES]; /* of stages that have ended */
    /* `stage` is what the worker does now, since `stage_since` (by sl_clock_ns); STAGES: nothing.
     * The worker increments `changes` before and after it writes these and stage_ns
     * (sl_stage_enter): while the number is odd, a reader must read again. */
    _Atomic uint32_t changes;
    _Atomic sl_stage stage;
    _Atomic int64_t stage_since;
} sl_worker_counters;

/* Ends the stage in progress, and begins `next` (STAGES: none). Only by the worker whose counters
 * these are. */
void sl_stage_enter(sl_worker_counters *counters, sl_stage next);

/* Adds to a counter that only this thread writes. */
static inline void sl_count(_Atomic uint64_t *counter, uint64_t more) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
                          memory_order_relaxed);
}

/* For each column, the number of values that did not fit their type, and were left out (`invalid:
 * missing` in a schema) or kept as text. All zero: empty. */
typedef struct sl_left_out {
    struct sl_left_out_column {
        char *name; /* in the header; owned */
        bool kept;
        uint64_t values;
    } * columns; /* in the order of their first values */
    size_t count;
} sl_left_out;

/* False without memory. */
bool sl_left_out_add(sl_left_out *list, const char *column, bool kept, uint64_t values);
/* Adds all columns of `more`. */
bool sl_left_out_merge(sl_left_out *list, const sl_left_out *more);
void sl_left_out_clear(sl_left_out *list);

/* Appends the arrays "leftOutByColumn" and "keptAsTextByColumn", [{column, values}],
 * without empty ones. */
void sl_left_out_append(const sl_left_out *list, bson_t *record);
/* Logs a line for each column of this run, and one for the values of earlier runs, so that they add
 * up to `total`. */
void sl_left_out_log(const sl_left_out *list, uint64_t total);

/* Loads that end because of their rejects. */
typedef enum sl_ending {
    SL_ENDED_OTHERWISE,
    SL_ENDED_BY_REJECT_LIMIT, /* --max-rejects */
    SL_ENDED_ALL_REJECTED,
} sl_ending;

/* Totals of the earlier runs of a load that is resumed. */
typedef struct sl_earlier_totals {
    uint64_t records, documents, rejects, text_bytes;
} sl_earlier_totals;

typedef struct sl_run {
    sl_job *job;      /* borrowed */
    unsigned threads; /* all workers; `pace` has the number of those that are active */
    sl_pace pace;
    sl_rate_limit own_limit;
    sl_rate_limit *rate_limit;    /* own_limit, or the limit of a command that runs several loads */
    sl_worker_counters *counters; /* one per worker */
    sl_histogram *latencies;      /* one per worker: nanoseconds per batch; read after the end */
    sl_parse_counts *parsed;      /* one per worker; read after the end */
    sl_left_out *left_out;        /* one per worker; read after the end */
    _Atomic uint64_t *shard_documents; /* per shard: documents sent to it, as far as known */
    uint64_t undelivered; /* records that were parsed and not acknowledged when the workers ended */
    double seconds;       /* how long the workers ran, in wall-clock time */
    sl_earlier_totals earlier;

    pthread_mutex_t held_lock;
    struct sl_held *held; /* blocks to be parsed later (worker.c); under held_lock */
    size_t held_bytes;    /* of their text; under held_lock */

    _Atomic bool begun;  /* something may have been created or changed on the cluster */
    _Atomic bool opened; /* the sink is open: its file is created or truncated */
    _Atomic bool stop;   /* workers end after their current block and batches */
    _Atomic sl_ending ended_by;
    pthread_mutex_t working_lock;
    pthread_cond_t all_ended; /* by the monotonic clock */
    unsigned working;         /* workers that have not ended; under working_lock */
    pthread_mutex_t failure_lock;
    sl_error failure; /* the first error; under failure_lock while workers run */
} sl_run;

/* Begins a run of the job, with the number of threads of its config. */
void sl_run_init(sl_run *run, sl_job *job);
void sl_run_clear(sl_run *run);

/* Allocates `counters`, `latencies`, `parsed` and `shard_documents`, all zero, once the job's
 * number of shards is known. False without memory. */
bool sl_run_create_counters(sl_run *run);

/* Starts run->threads threads; each runs `work_of` on one of `items`, which are `item_bytes` apart,
 * and calls sl_run_ended. Returns when all have ended; false with the first error. `tick` is called
 * about twenty times a second meanwhile. */
bool sl_run_threads(sl_run *run, void *(*work_of)(void *item), void *items, size_t item_bytes,
                    void (*tick)(void *context), void *context, sl_error *error);

/* Reports the end of a thread that sl_run_threads has started. Each `work_of` calls it once, as its
 * last action. */
void sl_run_ended(sl_run *run);

/* The number of documents at which a batch is sent now: by the pace, and by the rate limit unless
 * the run is stopping. Any thread. */
uint32_t sl_run_batch_documents(const sl_run *run);

/* Lets all workers end after their current block and batches. Any thread. */
void sl_run_stop(sl_run *run);

/* Keeps the first error and stops all workers. Any thread. */
void sl_run_fail(sl_run *run, const sl_error *error);

/* Sums over all workers at one time. */
typedef struct sl_run_totals {
    SL_WORKER_COUNTS(SL_COUNT_FIELD)
    int64_t answered_ns; /* the latest of all workers */
    double stage_seconds[STAGES];
} sl_run_totals;

sl_run_totals sl_run_sum(const sl_run *run);
void sl_run_totals_add(sl_run_totals *sum, const sl_run_totals *more);

/* ---- the limit of rejects ---- */

/* Loads that end because of their rejects. */

#define SL_REJECT_LIMIT_ROOM 32

/* The limit of --max-rejects as text: "10" or "2.5%". Returns out. */
char *sl_reject_limit_text(const sl_load_config *config, char out[SL_REJECT_LIMIT_ROOM]);
/* Are there more rejects than --max-rejects allows? Sets `error` if so. A percentage applies from
 * 100,000 records on; at the end of the load (`at_end`), to any number of records. Any thread. */
bool sl_rejects_pass_limit(sl_run *run, const sl_ledger *ledger, bool at_end, sl_error *error);
/* At the end of a load: was every record rejected (of at least one)? Sets `error` if so, with
 * the reasons. Always false for a shared load. */
bool sl_rejects_are_all(sl_run *run, const sl_ledger *ledger, sl_error *error);

#endif
