/* SPDX-License-Identifier: Apache-2.0 */
/* Pace: the number of active workers and of documents per batch. Both are fixed, or set by
 * the search while the load runs. */
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

/* ---- the search ---- */

/* Adaptation: finds, while a load runs, the number of threads and the batch size with which it is
 * fastest. This module starts no threads and reads no clock: it receives figures about twenty times
 * a second and returns the settings to use, which are then applied. Used by one thread. */

#define SL_ADAPT_STEPS 240 /* measurements that are kept for the record */
#define SL_ADAPT_MOVES 5

typedef struct sl_adapt_settings {
    unsigned threads;
    uint32_t batch_documents;
} sl_adapt_settings;

/* The settings that may be changed, and their limits. */
typedef struct sl_adapt_limits {
    sl_adapt_settings start;
    bool threads, batches; /* may the number of threads, the batch size be changed? */
    unsigned threads_most;
    uint32_t batch_most;
} sl_adapt_limits;

/* The figures of a load at one time. */
typedef struct sl_adapt_figures {
    double seconds;      /* since the loading began */
    double answered;     /* time of the last acknowledgement, in seconds since the loading began */
    uint64_t documents;  /* acknowledged */
    uint64_t batches;    /* acknowledged */
    uint64_t retries;    /* batches sent again */
    double seconds_left; /* until the sources end, at this rate; below 0: not known */
    uint32_t batch_room; /* documents of average size that a batch has room for; 0: not known */
} sl_adapt_figures;

/* One measurement. */
typedef struct sl_adapt_step {
    double seconds; /* at its end, since the loading began */
    sl_adapt_settings settings;
    double rate; /* documents per second */
} sl_adapt_step;

typedef enum sl_adapt_stage {
    ADAPT_STARTING, /* the first batches: connections are made, caches are cold */
    ADAPT_BASE,     /* measures the present settings */
    ADAPT_TRIAL,    /* measures settings that may be faster */
    ADAPT_SETTLED,  /* keeps the present settings for a time, and measures them */
} sl_adapt_stage;

/* The time between two acknowledgements, over which a rate is measured. */
typedef struct sl_adapt_window {
    double requested; /* when it was requested; it opens after earlier batches are answered */
    uint64_t requested_batches; /* acknowledged at that time */
    uint64_t retries;           /* at that time */
    bool open;
    double start, end, longest_gap;
    uint64_t start_documents, end_documents, start_batches, end_batches;
} sl_adapt_window;

/* Other modules read `base`, `now`, `only_fewer_left`, `settled_at` and the fields from
 * `disturbances` on, and change nothing. */
typedef struct sl_adapt {
    sl_adapt_limits limits;
    sl_adapt_stage stage;
    sl_adapt_settings base; /* the fastest settings found so far */
    sl_adapt_settings trial;
    sl_adapt_settings now; /* the settings to use, which may be those of the trial */
    sl_adapt_window window;
    bool refused[SL_ADAPT_MOVES]; /* moves from `base` that were tried and gained nothing */
    bool only_fewer_left; /* only moves to fewer threads or documents are left, for lack of time */
    unsigned move;        /* the move being tried */
    unsigned pairs;       /* comparisons of this move so far */
    double gains;         /* sum of their gains */
    double before, tried; /* the last rates of the base and of the trial; 0: none */
    double settled_rate;
    /* When (s) the search ended that found `base`; below 0: a search runs, the first one, or one
     * that has changed `base`. */
    double settled_at;
    double search_rate;    /* of `base` when the search from it began; 0: not yet measured */
    bool repeated;         /* the search was repeated because the rate changed meanwhile */
    double search_began;   /* or was continued, at this second */
    bool moves_left;       /* the last search ended for lack of time, and is to be continued */
    double not_before;     /* no trial before this second */
    double patience;       /* seconds between searches once settled */
    unsigned odd_windows;  /* consecutive windows whose rate is far from settled_rate */
    unsigned disturbances; /* windows that could not be used as a measurement */
    unsigned stretch;      /* doublings of the minimum length of a window */
    sl_adapt_step steps[SL_ADAPT_STEPS];
    unsigned step_count;     /* in `steps` */
    unsigned steps_left_out; /* measured after `steps` was full */
} sl_adapt;

void sl_adapt_init(sl_adapt *adapt, const sl_adapt_limits *limits);

/* Processes the present figures. True when the settings to use have changed. */
bool sl_adapt_tick(sl_adapt *adapt, const sl_adapt_figures *figures);

#endif
