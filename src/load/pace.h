/* SPDX-License-Identifier: Apache-2.0 */
/* Pace: the number of active workers and of documents per batch. Both are fixed, or set by adapt.c
 * while the load runs. */
#ifndef SHARDLOAD_PACE_H
#define SHARDLOAD_PACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <bson/bson.h>

#include "util/error.h"

struct sl_adapt;
struct sl_run;

typedef struct sl_pace {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic unsigned active;          /* workers with a lower index work; written under the lock */
    _Atomic uint32_t batch_documents; /* a batch is sent when it has this many */
    bool over;                        /* the load ends: no worker waits any more; guarded by the
                                         lock */
    unsigned parked;                  /* number of waiting workers; guarded by the lock */
    struct sl_adapt *adapt;           /* NULL: the settings are fixed. Used by the main thread */
    unsigned most_active;             /* the highest `active` so far. Used by the main thread */
} sl_pace;

/* Initialises the locks and the first settings. */
void sl_pace_init(sl_pace *pace, unsigned threads, uint32_t batch_documents);
void sl_pace_clear(sl_pace *pace);

/* Before the workers start: begins the adaptation of the settings that the config lets adapt.
 * `batch_most`: the documents that the server accepts in one batch. */
bool sl_pace_start(struct sl_run *run, uint32_t batch_most, sl_error *error);

/* Called by the main thread about twenty times a second while the workers run. `start`: when the
 * workers started, by sl_clock_ns. */
void sl_pace_tick(struct sl_run *run, int64_t start);

/* Sets the number of active workers (1 to run->threads) and of documents per batch. Main
 * thread. */
void sl_pace_hold(sl_pace *pace, unsigned threads, uint32_t batch_documents);

/* A worker whose index is not below `active` waits until it is, or the load ends. It must not hold
 * documents meanwhile. */
void sl_pace_wait(sl_pace *pace, unsigned index);

/* Ends the wait of all workers permanently: all blocks have been taken, or the load stops. Any
 * thread. */
void sl_pace_over(sl_pace *pace);

/* The number of threads for the summary: the fastest found, or the fixed one. */
unsigned sl_pace_threads(const struct sl_run *run);

/* The result of the adaptation, for run.json and for the log. Call these functions after the
 * workers have ended; they do nothing when the settings are fixed. */
void sl_pace_record(const sl_pace *pace, bson_t *record);
void sl_pace_log(const sl_pace *pace);

#endif
