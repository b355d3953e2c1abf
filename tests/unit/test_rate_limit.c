/* SPDX-License-Identifier: Apache-2.0 */
/* The rate limit: any number of threads together keep it, and waiting for it ends when the load is
 * stopped. */
#include <pthread.h>
#include <unistd.h>

#include "unit.h"
#include "util/clock.h"

#include "send/rate_limit.h"

#define THREADS 4
#define BATCHES 100
#define BATCH 10u
#define RATE 20000u

static sl_rate_limit limit;
static _Atomic bool stop;

static void *send_all(void *context) {
    (void)context;
    for (int i = 0; i < BATCHES; i++)
        sl_rate_limit_wait(&limit, BATCH, &stop);
    return NULL;
}

TEST(test_all_threads_together_keep_the_limit) {
    pthread_t threads[THREADS];
    int64_t start = sl_clock_ns();
    sl_rate_limit_init(&limit, RATE);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, send_all, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* The time for all batches but the last, less the credit of 50 ms. */
    double least = (double)(THREADS * BATCHES * BATCH - BATCH) / RATE - 0.05;
    assert_true(sl_seconds_since(start) >= least);
}

TEST(test_unused_time_is_lost) {
    sl_rate_limit_init(&limit, 1000);
    usleep(300000); /* time for 300 documents, of which 50 are credited */
    int64_t start = sl_clock_ns();
    for (int i = 0; i < 30; i++)
        sl_rate_limit_wait(&limit, BATCH, &stop);
    assert_true(sl_seconds_since(start) >= (300 - 10) / 1000.0 - 0.05);
}

TEST(test_no_limit) {
    sl_rate_limit_init(&limit, 0);
    for (int i = 0; i < 1000; i++)
        sl_rate_limit_wait(&limit, UINT32_MAX, &stop); /* would take years with any limit */
}

static void *stop_soon(void *context) {
    (void)context;
    usleep(50000);
    atomic_store(&stop, true);
    return NULL;
}

TEST(test_stopping_ends_the_wait) {
    pthread_t thread;
    alarm(60); /* the wait would take eleven days */
    sl_rate_limit_init(&limit, 1);
    sl_rate_limit_wait(&limit, 1000000, &stop);
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
    sl_rate_limit_wait(&limit, 1, &stop);
    pthread_join(thread, NULL);
    sl_rate_limit_wait(&limit, 1, &stop);
    atomic_store(&stop, false);
    alarm(0);
}
