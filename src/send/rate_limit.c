/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limit: a reservation of time. `free_at` is the time up to which sending has been
 * reserved. A thread that is about to send n documents reserves the next n / rate seconds in one
 * atomic step, and sleeps until its reservation begins. So at any time t after the start, at most
 * rate * t documents and one batch have been sent, for any number of threads, and in the order of
 * their calls.
 *
 * Time in which nothing was sent is lost, except for the last CREDIT_NS: without these, every sleep
 * that ends late would lower the rate, and the limit would never be reached. */
#include "rate_limit.h"

#include <time.h>

#include "util/clock.h"

#define CREDIT_NS INT64_C(50000000)
#define SLICE_NS INT64_C(100000000) /* a wait checks `stop` at this interval */

void sl_rate_limit_init(sl_rate_limit *limit, uint64_t rate) {
    limit->ns_per_document = rate > 0 ? 1e9 / (double)rate : 0;
    atomic_store(&limit->free_at, sl_clock_ns());
}

void sl_rate_limit_wait(sl_rate_limit *limit, uint32_t documents, const _Atomic bool *stop) {
    if (limit->ns_per_document <= 0)
        return;
    int64_t stretch = (int64_t)(limit->ns_per_document * documents);
    int64_t taken = atomic_load(&limit->free_at), begin;
    do {
        int64_t earliest = sl_clock_ns() - CREDIT_NS;
        begin = taken > earliest ? taken : earliest;
    } while (!atomic_compare_exchange_weak(&limit->free_at, &taken, begin + stretch));
    for (int64_t left = begin - sl_clock_ns(); left > 0 && !atomic_load(stop);
         left = begin - sl_clock_ns()) {
        int64_t slice = left < SLICE_NS ? left : SLICE_NS;
        nanosleep(&(struct timespec){slice / 1000000000, slice % 1000000000}, NULL);
    }
}
