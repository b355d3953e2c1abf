/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limit: a maximum of documents per second, over all threads. It can be changed and
 * removed while threads wait for it. */
#ifndef SHARDLOAD_RATE_LIMIT_H
#define SHARDLOAD_RATE_LIMIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sl_rate_limit {
    _Atomic uint64_t rate; /* documents per second; 0: no limit. Written under the lock */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* by the monotonic clock */
    uint64_t changes;       /* how often the rate has been set; under the lock */
    int64_t free_at;        /* the time up to which sending is reserved; under the lock */
} sl_rate_limit;

/* `rate`: documents per second; 0 for no limit. */
void sl_rate_limit_init(sl_rate_limit *limit, uint64_t rate);
/* Call it when no thread waits any more. */
void sl_rate_limit_clear(sl_rate_limit *limit);

/* Changes the limit; 0 removes it. Reservations under the earlier rate lapse: threads that wait are
 * woken, and wait as the new rate requires. Any thread. */
void sl_rate_limit_set(sl_rate_limit *limit, uint64_t rate);

/* How often the limit has been changed. Any thread. */
uint64_t sl_rate_limit_changes(sl_rate_limit *limit);

/* Waits until `documents` more documents may be sent. Returns at once if *stop is true, and within
 * a tenth of a second if it becomes true. Any thread. */
void sl_rate_limit_wait(sl_rate_limit *limit, uint32_t documents, const _Atomic bool *stop);

/* The number of documents that a batch may have under the limit: a batch is sent at once, so it
 * holds at most the documents of a tenth of a second. UINT32_MAX without a limit. Any thread. */
uint32_t sl_rate_limit_batch(const sl_rate_limit *limit);

#endif
