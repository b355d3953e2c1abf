/* SPDX-License-Identifier: Apache-2.0 */
/* Pace: applies the settings of adapt.c to the threads.
 *
 * Workers have indices; workers with an index below `active` work, the others wait. A worker reads
 * `active` between two blocks (worker.c). An inactive worker first sends the documents it holds, so
 * that their blocks can be completed, frees its batches, and waits here.
 *
 * Why no worker waits for ever: the condition it waits for - its index is below `active`, or `over`
 * is set - is read under the lock; both variables are changed under the lock, followed by a
 * broadcast. So either the worker reads after the change, or it is waiting already when the
 * broadcast comes:
 *
 *     worker (index 5)                          main thread, or a thread that ends the load
 *     lock; 5 < active (4)? no; over? no
 *     wait (unlocks) ........................   lock; active = 8, or over = true; unlock; broadcast
 *     woken; lock; 5 < 8: unlock, work
 *
 * `active` is atomic only so that active workers need not take the lock for each block. A worker
 * that reads an old value processes one more block, or comes here and reads again under the lock.
 *
 * `over` is set by everything that ends a load: a worker that finds no block left (then no worker
 * finds one: sl_reader_next), the first failure, Ctrl-C. It is never reset, so the order in which
 * it and `active` change does not matter. Index 0 is always below `active`: at least one worker is
 * active and ends in one of these ways. A parked worker holds nothing that another worker could
 * wait for: no document, no lock, no part of a block. If it began to read a sequential source,
 * another reader continues with that source when no other source is left to begin (block.c). */
#include "pace.h"

#include <stdlib.h>

#include "bson/bson_lookup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#include "adapt.h"
#include "run.h"

#define DISTURBANCES_MANY                                                                          \
    4 /* from this number on, the summary names them as the reason for not
                               settling */

void sl_pace_init(sl_pace *pace, unsigned threads, uint32_t batch_documents) {
    pthread_mutex_init(&pace->lock, NULL);
    pthread_cond_init(&pace->changed, NULL);
    atomic_store(&pace->active, threads);
    atomic_store(&pace->batch_documents, batch_documents);
    pace->most_active = threads;
}

void sl_pace_clear(sl_pace *pace) {
    free(pace->adapt);
    pthread_cond_destroy(&pace->changed);
    pthread_mutex_destroy(&pace->lock);
}

void sl_pace_hold(sl_pace *pace, unsigned threads, uint32_t batch_documents) {
    atomic_store_explicit(&pace->batch_documents, batch_documents, memory_order_relaxed);
    pthread_mutex_lock(&pace->lock);
    atomic_store_explicit(&pace->active, threads, memory_order_relaxed);
    pthread_cond_broadcast(&pace->changed);
    pthread_mutex_unlock(&pace->lock);
    if (threads > pace->most_active)
        pace->most_active = threads;
}

static void hold_now(sl_pace *pace) {
    sl_adapt_settings now = pace->adapt->now;
    sl_pace_hold(pace, now.threads, now.batch_documents);
}

bool sl_pace_start(sl_run *run, uint32_t batch_most, sl_error *error) {
    const sl_load_config *config = run->job->config;
    sl_pace *pace = &run->pace;
    if (config->threads_most == 0 && !config->adapt_batches)
        return true;
    pace->adapt = malloc(sizeof *pace->adapt);
    if (!pace->adapt)
        return sl_error_memory(error, "starting workers");
    uint32_t batch = config->batch_documents < batch_most ? config->batch_documents : batch_most;
    sl_adapt_init(pace->adapt, &(sl_adapt_limits){.start = {config->threads, batch},
                                                  .threads = config->threads_most > 0,
                                                  .batches = config->adapt_batches,
                                                  .threads_most = run->threads,
                                                  .batch_most = batch_most});
    hold_now(pace);
    return true;
}

/* Seconds until the sources have been read, at the rate so far; below 0 if that is not known. */
static double seconds_left(const sl_job *job, double seconds) {
    if (job->has_pipe)
        return -1;
    double all = (double)sl_source_set_stored_bytes(job->set);
    double done = (double)sl_source_set_consumed_bytes(job->set);
    return done > 0 && done < all ? seconds * (all - done) / done : done > 0 ? 0 : -1;
}

void sl_pace_tick(sl_run *run, int64_t start) {
    const sl_load_config *config = run->job->config;
    sl_pace *pace = &run->pace;
    /* Under a rate limit, which may be set while the load runs, no rate can be compared. */
    if (!pace->adapt || sl_rate_limit_batch(run->rate_limit) != UINT32_MAX)
        return;
    sl_run_totals sum = sl_run_sum(run);
    double seconds = sl_seconds_since(start);
    sl_adapt_figures figures = {
        .seconds = seconds,
        .answered = sum.answered_ns > start ? (double)(sum.answered_ns - start) / 1e9 : 0,
        .documents = sum.inserted + sum.already_stored + sum.changed + sum.server_rejects,
        .batches = sum.batches,
        .retries = sum.retries + sl_rate_limit_changes(run->rate_limit), /* invalidates the
                                                                            measurement */
        .seconds_left = seconds_left(run->job, seconds),
    };
    if (sum.inserted + sum.already_stored + sum.changed > 0) {
        double mean = (double)sum.bson_bytes / (double)figures.documents;
        double room = (double)sl_load_batch_room(config, run->job->shards) / (mean > 1 ? mean : 1);
        figures.batch_room = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
    }
    if (sl_adapt_tick(pace->adapt, &figures))
        hold_now(pace);
}

void sl_pace_wait(sl_pace *pace, unsigned index) {
    pthread_mutex_lock(&pace->lock);
    pace->parked++;
    while (index >= atomic_load_explicit(&pace->active, memory_order_relaxed) && !pace->over)
        pthread_cond_wait(&pace->changed, &pace->lock);
    pace->parked--;
    pthread_mutex_unlock(&pace->lock);
}

void sl_pace_over(sl_pace *pace) {
    pthread_mutex_lock(&pace->lock);
    pace->over = true;
    pthread_cond_broadcast(&pace->changed);
    pthread_mutex_unlock(&pace->lock);
}

/* ---- the result ---- */

unsigned sl_pace_threads(const sl_run *run) {
    return run->pace.adapt ? run->pace.adapt->base.threads : run->threads;
}

void sl_pace_record(const sl_pace *pace, bson_t *record) {
    const sl_adapt *adapt = pace->adapt;
    if (!adapt)
        return;
    bson_t section, array;
    sl_adapt_settings best = adapt->base;
    BSON_APPEND_DOCUMENT_BEGIN(record, "adaptation", &section);
    BSON_APPEND_INT32(&section, "threads", (int32_t)best.threads);
    BSON_APPEND_INT32(&section, "batchSize", (int32_t)best.batch_documents);
    BSON_APPEND_INT32(&section, "threadsMost", (int32_t)pace->most_active);
    if (adapt->settled_at >= 0)
        BSON_APPEND_DOUBLE(&section, "settledAfterSeconds", adapt->settled_at);
    if (adapt->disturbances > 0)
        BSON_APPEND_INT32(&section, "disturbances", (int32_t)adapt->disturbances);
    if (adapt->steps_left_out > 0)
        BSON_APPEND_INT32(&section, "stepsLeftOut", (int32_t)adapt->steps_left_out);
    BSON_APPEND_ARRAY_BEGIN(&section, "steps", &array);
    for (unsigned i = 0; i < adapt->step_count; i++) {
        const sl_adapt_step *step = &adapt->steps[i];
        char room[SL_ARRAY_KEY_ROOM];
        BCON_APPEND(&array, sl_array_key(i, room), "{", "seconds", BCON_DOUBLE(step->seconds),
                    "threads", BCON_INT32((int32_t)step->settings.threads), "batchSize",
                    BCON_INT32((int32_t)step->settings.batch_documents), "rate",
                    BCON_DOUBLE(step->rate), "}");
    }
    bson_append_array_end(&section, &array);
    bson_append_document_end(record, &section);
}

void sl_pace_log(const sl_pace *pace) {
    const sl_adapt *adapt = pace->adapt;
    char batch[SL_HUMAN_ROOM], after[SL_HUMAN_ROOM];
    if (!adapt)
        return;
    sl_adapt_settings best = adapt->base;
    const char *plural = best.threads == 1 ? "" : "s";
    sl_human_count(best.batch_documents, batch);
    if (adapt->settled_at >= 0)
        sl_log_info("  settled on %u thread%s, batches of %s after %s", best.threads, plural, batch,
                    sl_human_seconds(adapt->settled_at, after));
    else
        sl_log_info(
            "  %u thread%s, batches of %s: %s", best.threads, plural, batch,
            adapt->disturbances >= DISTURBANCES_MANY
                ? "pauses of the server and batches sent again left no time to compare other "
                  "settings"
            : adapt->only_fewer_left
                ? "more threads and larger batches are not faster; the load was too short to "
                  "compare fewer threads and smaller batches"
                : "the load was too short to compare other settings");
}
