/* SPDX-License-Identifier: Apache-2.0 */
/* Pace: how many workers are at work, and how many documents make a batch. Both are fixed, or follow
 * what adapt.c finds while the load runs. */
#ifndef SHARDLOAD_PACE_H
#define SHARDLOAD_PACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <shardload/error.h>

struct sl_adapt;
struct sl_load;

typedef struct sl_pace {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic unsigned active;   /* workers of a lower index are at work; written under the lock */
    _Atomic uint32_t batch_documents; /* that a batch is sent with */
    bool over;                 /* nobody is to wait any more; under the lock */
    unsigned parked;           /* workers that wait; under the lock */
    struct sl_adapt *adapt;    /* NULL: nothing changes. The main thread's */
    unsigned most_active;      /* so many were at once. The main thread's */
} sl_pace;

/* The locks, and the config's settings. Any load and verification; clear it. */
void sl_pace_init(struct sl_load *load);
void sl_pace_clear(struct sl_load *load);

/* Before the workers start: lets the settings change, as far as the config allows. */
bool sl_pace_start(struct sl_load *load, sl_error *error);

/* By the main thread, about twenty times a second while the workers run, who were started at `start`
 * by sl_clock_ns. */
void sl_pace_tick(struct sl_load *load, int64_t start);

/* Lets so many workers (at least one, at most load->threads) be at work, with such batches, from now
 * on. Main thread. */
void sl_pace_hold(struct sl_load *load, unsigned threads, uint32_t batch_documents);

/* A worker whose index is not below `active` waits until it is, or the load is over. It must hold no
 * documents meanwhile. */
void sl_pace_wait(struct sl_load *load, unsigned index);

/* All blocks are drawn, or the load stops: wakes those who wait, for good. Any thread. */
void sl_pace_over(struct sl_load *load);

/* The number of threads to tell of: the best that is known, or that which was wanted. */
unsigned sl_pace_threads(const struct sl_load *load);

/* What was found, for run.json and for people. After the workers have ended; they do nothing when the
 * settings are fixed. */
void sl_pace_record(struct sl_load *load);
void sl_pace_say(const struct sl_load *load);

#endif
