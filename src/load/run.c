/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a run, from their start to the last one's end, and their counters. */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/context.h"

void sl_run_init(sl_run *run, sl_job *job) {
    const sl_load_config *config = job->config;
    *run = (sl_run){.job = job, .threads = config->threads};
    if (config->threads_most > run->threads)
        run->threads = config->threads_most;
    sl_clock_init_condition(&run->all_ended);
    pthread_mutex_init(&run->working_lock, NULL);
    pthread_mutex_init(&run->failure_lock, NULL);
    sl_pace_init(&run->pace, config->threads, config->batch_documents);
    sl_rate_limit_init(&run->own_limit, config->rate_limit);
    run->rate_limit = config->shared_limit ? config->shared_limit : &run->own_limit;
}

void sl_run_clear(sl_run *run) {
    free(run->counters);
    free(run->latencies);
    free(run->parsed);
    for (unsigned i = 0; run->left_out && i < run->threads; i++)
        sl_left_out_clear(&run->left_out[i]);
    free(run->left_out);
    free(run->shard_documents);
    pthread_cond_destroy(&run->all_ended);
    pthread_mutex_destroy(&run->working_lock);
    pthread_mutex_destroy(&run->failure_lock);
    sl_pace_clear(&run->pace);
    sl_rate_limit_clear(&run->own_limit);
}

bool sl_run_create_counters(sl_run *run) {
    size_t bytes = run->threads * sizeof *run->counters;
    run->counters = aligned_alloc(_Alignof(sl_worker_counters), bytes);
    if (run->counters)
        memset(run->counters, 0, bytes);
    for (unsigned i = 0; run->counters && i < run->threads; i++)
        atomic_store(&run->counters[i].stage, STAGES);
    run->parsed = calloc(run->threads, sizeof *run->parsed);
    run->left_out = calloc(run->threads, sizeof *run->left_out);
    run->shard_documents = calloc(run->job->shards, sizeof *run->shard_documents);
    run->latencies = calloc(run->threads, sizeof *run->latencies);
    return run->counters && run->parsed && run->left_out && run->shard_documents && run->latencies;
}

/* Once the run stops, the rate limit no longer applies. */
uint32_t sl_run_batch_documents(const sl_run *run) {
    uint32_t pace = atomic_load_explicit(&run->pace.batch_documents, memory_order_relaxed);
    uint32_t limit = atomic_load_explicit(&run->stop, memory_order_relaxed)
                         ? UINT32_MAX
                         : sl_rate_limit_batch(run->rate_limit);
    return pace < limit ? pace : limit;
}

void sl_run_stop(sl_run *run) {
    atomic_store(&run->stop, true);
    sl_source_set_stop(run->job->set);
    sl_pace_over(&run->pace);
}

void sl_run_fail(sl_run *run, const sl_error *error) {
    sl_error why = *error;
    sl_error_missing(&why, "a worker");
    pthread_mutex_lock(&run->failure_lock);
    if (!run->failure.code)
        run->failure = why;
    pthread_mutex_unlock(&run->failure_lock);
    sl_run_stop(run);
}

void sl_run_ended(sl_run *run) {
    pthread_mutex_lock(&run->working_lock);
    if (--run->working == 0)
        pthread_cond_signal(&run->all_ended);
    pthread_mutex_unlock(&run->working_lock);
}

static bool is_working(sl_run *run) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 50000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&run->working_lock);
    if (run->working > 0)
        pthread_cond_timedwait(&run->all_ended, &run->working_lock, &until);
    bool working = run->working > 0;
    pthread_mutex_unlock(&run->working_lock);
    return working;
}

bool sl_run_threads(sl_run *run, void *(*work_of)(void *item), void *items, size_t item_bytes,
                    void (*tick)(void *context), void *context, sl_error *error) {
    unsigned threads = run->threads, started = 0;
    pthread_t *running = malloc(threads * sizeof *running);
    if (!running)
        return sl_error_memory(error, "starting threads");
    run->working = threads;
    for (unsigned i = 0; i < threads; i++) {
        int code = sl_thread_start(&running[started], work_of, (char *)items + i * item_bytes);
        started += code == 0;
        if (code != 0 && started >= run->job->config->threads) { /* enough threads to start with */
            sl_run_ended(run);
        } else if (code != 0) {
            sl_error why;
            sl_error_set(&why, SL_EXIT_RESOURCES, "cannot start %u threads: %s; use fewer (-j)",
                         threads, strerror(code));
            sl_run_fail(run, &why);
            sl_run_ended(run);
        }
    }
    while (is_working(run))
        tick(context);
    for (unsigned i = 0; i < started; i++)
        pthread_join(running[i], NULL);
    free(running);
    if (run->failure.code)
        *error = run->failure;
    return !run->failure.code;
}

/* ---- stages ---- */

void sl_stage_enter(sl_worker_counters *counters, sl_stage next) {
    sl_stage ended = atomic_load(&counters->stage);
    int64_t now = sl_clock_ns(), since = atomic_load(&counters->stage_since);
    atomic_fetch_add(&counters->changes, 1);
    if (ended != STAGES)
        atomic_fetch_add(&counters->stage_ns[ended], now - since);
    atomic_store(&counters->stage, next);
    atomic_store(&counters->stage_since, now);
    atomic_fetch_add(&counters->changes, 1);
}
