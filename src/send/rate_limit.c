/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limit: a reservation of time. `free_at` is the time up to which sending has been
 * reserved. A thread that is about to send n documents reserves the next n / rate seconds under the
 * lock, and sleeps until its reservation begins. So at any time t after the start, at most rate * t
 * documents and one batch have been sent, for any number of threads, and in the order of their
 * calls.
 *
 * Time in which nothing was sent cannot be made up later, except for the last CREDIT_NS. Without
 * this exception every sleep that ends late would lower the rate, and the limit would never be
 * reached.
 *
 * Why a change stalls no thread: the rate, the number of changes and the reservations change
 * together under the lock, followed by a broadcast. A waiting thread has stored the number of
 * changes under the lock, with its reservation; it finds a different number either when the
 * broadcast wakes it or at the end of a slice, drops its reservation, and makes a new one, which
 * begins now at the earliest:
 *
 *     worker                                  thread that changes the limit
 *     lock; reserves 2000 s at 10/s; change 4
 *     waits (unlocks) .....................   lock; rate = 0; change 5; free_at = now; broadcast
 *     woken; lock; 5 != 4; no limit: returns */
#include "rate_limit.h"

#include <time.h>

#include "util/clock.h"

#define CREDIT_NS INT64_C(50000000)
#define SLICE_NS INT64_C(100000000) /* a wait checks `stop` at this interval */

/* The longest reservation: a batch that is larger than the limit of a batch may have been filled
 * before the rate was set. */
#define STRETCH_NS_MOST 3.6e18

void sl_rate_limit_init(sl_rate_limit *limit, uint64_t rate) {
    pthread_mutex_init(&limit->lock, NULL);
    sl_clock_init_condition(&limit->changed);
    atomic_store(&limit->rate, rate);
    limit->changes = 0;
    limit->free_at = sl_clock_ns();
}

void sl_rate_limit_clear(sl_rate_limit *limit) {
    pthread_cond_destroy(&limit->changed);
    pthread_mutex_destroy(&limit->lock);
}

void sl_rate_limit_set(sl_rate_limit *limit, uint64_t rate) {
    pthread_mutex_lock(&limit->lock);
    if (atomic_load(&limit->rate) != rate) {
        atomic_store(&limit->rate, rate);
        limit->changes++;
        limit->free_at = sl_clock_ns();
        pthread_cond_broadcast(&limit->changed);
    }
    pthread_mutex_unlock(&limit->lock);
}

uint64_t sl_rate_limit_changes(sl_rate_limit *limit) {
    pthread_mutex_lock(&limit->lock);
    uint64_t changes = limit->changes;
    pthread_mutex_unlock(&limit->lock);
    return changes;
}

/* Reserves the time for `documents`. Returns the time at which the reservation begins. Call it
 * under the lock. */
static int64_t reserve(sl_rate_limit *limit, uint64_t rate, uint32_t documents) {
    double stretch = 1e9 / (double)rate * documents;
    int64_t earliest = sl_clock_ns() - CREDIT_NS;
    int64_t begin = limit->free_at > earliest ? limit->free_at : earliest;
    double end = (double)begin + stretch;
    limit->free_at = end < STRETCH_NS_MOST ? begin + (int64_t)stretch : (int64_t)STRETCH_NS_MOST;
    return begin;
}

/* Waits until `begin`. False when the limit has been changed meanwhile. Call it under the lock. */
static bool wait_until(sl_rate_limit *limit, int64_t begin, const _Atomic bool *stop) {
    uint64_t changes = limit->changes;
    for (int64_t left = begin - sl_clock_ns();
         left > 0 && limit->changes == changes && !atomic_load(stop);
         left = begin - sl_clock_ns()) {
        int64_t end = sl_clock_ns() + (left < SLICE_NS ? left : SLICE_NS);
        pthread_cond_timedwait(&limit->changed, &limit->lock,
                               &(struct timespec){end / 1000000000, end % 1000000000});
    }
    return limit->changes == changes;
}

void sl_rate_limit_wait(sl_rate_limit *limit, uint32_t documents, const _Atomic bool *stop) {
    if (atomic_load(&limit->rate) == 0)
        return;
    pthread_mutex_lock(&limit->lock);
    bool waited = false;
    while (!waited && !atomic_load(stop)) {
        uint64_t rate = atomic_load(&limit->rate);
        waited = rate == 0 || wait_until(limit, reserve(limit, rate, documents), stop);
    }
    pthread_mutex_unlock(&limit->lock);
}

uint32_t sl_rate_limit_batch(const sl_rate_limit *limit) {
    uint64_t rate = atomic_load_explicit(&limit->rate, memory_order_relaxed);
    return rate == 0                 ? UINT32_MAX
           : rate < 10               ? 1
           : rate / 10 >= UINT32_MAX ? UINT32_MAX
                                     : (uint32_t)(rate / 10);
}
