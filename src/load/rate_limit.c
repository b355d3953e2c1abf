/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limit: a token bucket without tokens. There is one moment, `free_at`, up to which the line is taken.
 * Who wants to send n documents takes the stretch of n / rate behind it, in one atomic step, and
 * sleeps until his stretch begins. So each sends when those before him have been paid for: by any
 * moment t after the start, rate * t documents have been sent and one batch, however many threads
 * there are, and in the order in which they came.
 *
 * Nobody who comes late gets the time back in which nothing was sent, but for a moment (CREDIT_NS):
 * else every sleep that ends late would be lost, and the rate never be reached. */
#include "rate_limit.h"

#include <time.h>

#include <shardload/clock.h>

#define CREDIT_NS INT64_C(50000000)
#define SLICE_NS INT64_C(100000000) /* how long a wait may go on unaware of `stop` */

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
