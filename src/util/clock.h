/* SPDX-License-Identifier: Apache-2.0 */
/* Time: a monotonic clock for durations, and wall-clock timestamps for run records. */
#ifndef SHARDLOAD_CLOCK_H
#define SHARDLOAD_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* Nanoseconds of the monotonic clock; only differences are meaningful. */
static inline int64_t sl_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline double sl_seconds_since(int64_t start_ns) {
    return (double)(sl_clock_ns() - start_ns) / 1e9;
}

/* Initialises a condition whose timed waits use the monotonic clock. */
static inline void sl_clock_init_condition(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Milliseconds since 1970-01-01 UTC. */
static inline int64_t sl_wall_clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
