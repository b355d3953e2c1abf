/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limit: a maximum of documents per second, over all threads. */
#ifndef SHARDLOAD_RATE_LIMIT_H
#define SHARDLOAD_RATE_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sl_rate_limit {
    double ns_per_document;  /* 0: no limit */
    _Atomic int64_t free_at; /* the time up to which sending is reserved, by sl_clock_ns */
} sl_rate_limit;

/* `rate`: documents per second; 0 for no limit. */
void sl_rate_limit_init(sl_rate_limit *limit, uint64_t rate);

/* Waits until `documents` more may be sent. Returns at once if *stop is true, and within a tenth of
 * a second if it becomes true. Any thread. */
void sl_rate_limit_wait(sl_rate_limit *limit, uint32_t documents, const _Atomic bool *stop);

#endif
