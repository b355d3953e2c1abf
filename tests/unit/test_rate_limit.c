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
    int64_t start = sl_clock_ns();
    sl_rate_limit_init(&limit, RATE);
    unit_run_threads(THREADS, send_all, NULL, 0);
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

/* ---- a limit that is changed while threads wait ---- */

static _Atomic unsigned sent;

static void *wait_and_count(void *context) {
    sl_rate_limit_wait(&limit, *(const uint32_t *)context, &stop);
    atomic_fetch_add(&sent, 1);
    return NULL;
}

/* Four threads wait for hours; returns when a change has let all of them send. */
static void change_wakes_all(uint64_t rate, uint32_t documents) {
    pthread_t threads[THREADS];
    alarm(120);
    atomic_store(&sent, 0);
    sl_rate_limit_init(&limit, 1);
    sl_rate_limit_wait(&limit, 100000, &stop);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_and_count, &documents), 0);
    usleep(100000);
    assert_int_equal(atomic_load(&sent), 0);
    sl_rate_limit_set(&limit, rate);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&sent), THREADS);
    assert_int_equal(sl_rate_limit_changes(&limit), 1);
    sl_rate_limit_clear(&limit);
    alarm(0);
}

TEST(test_a_removed_limit_wakes_all_who_wait) {
    change_wakes_all(0, UINT32_MAX);
}

TEST(test_a_raised_limit_wakes_all_who_wait) {
    change_wakes_all(1000000, 10);
}

TEST(test_a_new_limit_holds_from_then_on) {
    sl_rate_limit_init(&limit, 0);
    sl_rate_limit_wait(&limit, UINT32_MAX, &stop);
    sl_rate_limit_set(&limit, 1000);
    int64_t start = sl_clock_ns();
    for (int i = 0; i < 30; i++)
        sl_rate_limit_wait(&limit, BATCH, &stop);
    assert_true(sl_seconds_since(start) >= (300 - 10) / 1000.0 - 0.05);
    sl_rate_limit_clear(&limit);
}

TEST(test_a_batch_holds_a_tenth_of_a_second) {
    sl_rate_limit_init(&limit, 20000);
    assert_int_equal(sl_rate_limit_batch(&limit), 2000);
    sl_rate_limit_set(&limit, 3);
    assert_int_equal(sl_rate_limit_batch(&limit), 1);
    sl_rate_limit_set(&limit, 0);
    assert_true(sl_rate_limit_batch(&limit) == UINT32_MAX);
    sl_rate_limit_clear(&limit);
}
