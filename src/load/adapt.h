/* SPDX-License-Identifier: Apache-2.0 */
/* Adapt: finds, while a load runs, how many threads and how many documents per batch it goes fastest
 * with. It knows no threads and no clock: it is told figures about twenty times a second and answers
 * with the settings that should hold from then on; pace.c does the rest. One thread. */
#ifndef SHARDLOAD_ADAPT_H
#define SHARDLOAD_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

#define SL_ADAPT_STEPS 240 /* measurements that are kept for the record */
#define SL_ADAPT_MOVES 5

typedef struct sl_adapt_settings {
    unsigned threads;
    uint32_t batch_documents;
} sl_adapt_settings;

/* What may be changed, and how far. */
typedef struct sl_adapt_limits {
    sl_adapt_settings start;
    bool threads, batches; /* may they be changed? */
    unsigned threads_most;
    uint32_t batch_most;
} sl_adapt_limits;

/* What the load has done so far, by one look at it. */
typedef struct sl_adapt_figures {
    double seconds;     /* since the loading began */
    double answered;    /* when the last batch was acknowledged, by the same clock */
    uint64_t documents; /* acknowledged */
    uint64_t batches;   /* acknowledged */
    uint64_t retries;   /* batches sent again */
    double seconds_left; /* until the sources end, at this rate; below 0: not known */
    uint32_t batch_room; /* so many documents a batch has room for, by bytes; 0: not known */
} sl_adapt_figures;

/* One measurement. */
typedef struct sl_adapt_step {
    double seconds; /* its end */
    sl_adapt_settings settings;
    double rate; /* documents per second */
} sl_adapt_step;

typedef enum sl_adapt_stage {
    ADAPT_STARTING, /* the first batches: connections are made, caches are cold */
    ADAPT_BASE,     /* measures what holds now */
    ADAPT_TRIAL,    /* measures what might be better */
    ADAPT_SETTLED,  /* nothing near is better; goes on measuring what holds */
} sl_adapt_stage;

/* A stretch of time between two acknowledgements. */
typedef struct sl_adapt_window {
    double asked;           /* when it was begun; then it waits until old batches have gone */
    uint64_t asked_batches; /* acknowledged until then */
    uint64_t retries;       /* before it */
    bool open;
    double start, end, longest_gap;
    uint64_t start_documents, end_documents, start_batches, end_batches;
} sl_adapt_window;

/* Read it through the functions, but for `steps`. */
typedef struct sl_adapt {
    sl_adapt_limits limits;
    sl_adapt_stage stage;
    sl_adapt_settings base, trial, now;
    sl_adapt_window window;
    bool refused[SL_ADAPT_MOVES]; /* moves from `base` that were tried and are no gain */
    bool only_fewer_left;         /* of the moves that want for time */
    unsigned move;                /* the one being tried */
    unsigned pairs;               /* comparisons of it so far */
    double gains;                 /* their sum */
    double before, tried;         /* the last rates of base and of trial; 0: none */
    double settled_rate, settled_at; /* on `base`; at < 0: not yet */
    double search_rate;           /* of `base` when the search from it began; 0: not yet measured */
    bool repeated;                /* the search, because the rate had changed while it went on */
    double not_before;            /* no trial before this second */
    double patience;              /* seconds between searches once settled */
    unsigned odd_windows;         /* in a row, far from settled_rate */
    unsigned disturbances;        /* windows that were no measurement */
    unsigned stretch;             /* doublings of the least length of a window */
    sl_adapt_step steps[SL_ADAPT_STEPS];
    unsigned step_count; /* kept */
    unsigned steps_left_out;
} sl_adapt;

void sl_adapt_init(sl_adapt *adapt, const sl_adapt_limits *limits);

/* Takes a look. True when the settings to hold have changed. */
bool sl_adapt_tick(sl_adapt *adapt, const sl_adapt_figures *figures);

/* What should hold now, trials included. */
sl_adapt_settings sl_adapt_now(const sl_adapt *adapt);

/* The best that is known. */
sl_adapt_settings sl_adapt_best(const sl_adapt *adapt);

/* Of a load that has not settled: is it known that neither more threads nor larger batches are faster? */
bool sl_adapt_only_fewer_left(const sl_adapt *adapt);

/* When it was found that nothing near is better, in seconds since the loading began; below 0 while
 * that is not known. */
double sl_adapt_settled_at(const sl_adapt *adapt);

#endif
