/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the progress line, computed from counters at given times. */
#include "progress_figures.h"

#include <string.h>

#include "util/clock.h"

#define NOW_SAMPLES 4 /* the present rate is that of the last two seconds */

void sl_window_keep(sl_window *window, const sl_progress_sample *sample) {
    window->samples[window->count++ % SL_WINDOW] = *sample;
}

/* The sample `back` positions before the next one, or the oldest; zeros when none was kept. */
static sl_progress_sample sample_before(const sl_window *window, unsigned back) {
    unsigned depth = window->count < SL_WINDOW ? window->count : SL_WINDOW;
    if (depth == 0)
        return (sl_progress_sample){0};
    return window->samples[(window->count - (depth < back ? depth : back)) % SL_WINDOW];
}

sl_figures sl_figures_of(const sl_window *window, const sl_progress_sample *now,
                         uint64_t stored_total) {
    const sl_progress_sample recent = sample_before(window, NOW_SAMPLES);
    const sl_progress_sample older = sample_before(window, SL_WINDOW);
    sl_figures seen = {.left = -1};
    double span = now->seconds - recent.seconds;
    if (span > 0) {
        seen.rate_now = (double)(now->documents - recent.documents) / span;
        seen.bytes_now = (double)(now->bytes - recent.bytes) / span;
    }
    if (now->seconds > 0)
        seen.rate_all = (double)now->documents / now->seconds;
    double busy = 0;
    for (unsigned k = 0; k < STAGES; k++)
        busy += now->stage_seconds[k] - recent.stage_seconds[k];
    for (unsigned k = 0; k < STAGES && busy > 0; k++)
        seen.stage_share[k] = (now->stage_seconds[k] - recent.stage_seconds[k]) / busy;
    if (stored_total == 0)
        return seen;
    seen.share = (double)now->stored_bytes / (double)stored_total;
    double done = (double)now->stored_bytes - (double)older.stored_bytes;
    if (done > 0 && now->seconds > 1)
        seen.left =
            (double)(stored_total - now->stored_bytes) * (now->seconds - older.seconds) / done;
    return seen;
}

bool sl_figures_waits(const sl_figures *figures, unsigned *most, unsigned *second) {
    const double *share = figures->stage_share;
    *most = 0;
    for (unsigned k = 1; k < STAGES; k++)
        *most = share[k] > share[*most] ? k : *most;
    *second = *most == 0 ? 1 : 0;
    for (unsigned k = 0; k < STAGES; k++)
        *second = k != *most && share[k] > share[*second] ? k : *second;
    return share[*most] > 0;
}

/* ---- a running load ---- */

/* The stored bytes of blocks that are completed. The readers count the bytes of a block when they
 * read it; with many threads and small sources that is long before its documents are stored. */
static uint64_t completed_bytes(const sl_run *run, const sl_run_totals *sum) {
    uint64_t consumed = sl_source_set_consumed_bytes(run->job->set);
    uint64_t text = sum->text_begun + run->earlier.text_bytes;
    uint64_t begun =
        sum->text_begun > sum->text_completed ? sum->text_begun - sum->text_completed : 0;
    double stored_per_text = text > 0 ? (double)consumed / (double)text : 0;
    if (stored_per_text > 1)
        stored_per_text = 1;
    uint64_t open = (uint64_t)((double)begun * stored_per_text);
    return consumed > open ? consumed - open : 0;
}

void sl_viewer_init(sl_viewer *viewer, const sl_run *run, int64_t start) {
    *viewer = (sl_viewer){.run = run, .start = start};
    sl_run_totals none = {0};
    sl_progress_sample first = {.stored_bytes = completed_bytes(run, &none)};
    sl_window_keep(&viewer->window, &first);
}

sl_view sl_view_take(sl_viewer *viewer) {
    const sl_run *run = viewer->run;
    const sl_job *job = run->job;
    const sl_earlier_totals *earlier = &run->earlier;
    sl_run_totals sum = sl_run_sum(run);
    uint64_t documents = sum.inserted + sum.already_stored + sum.changed;
    sl_view seen = {.seconds = sl_seconds_since(viewer->start),
                    .sum = sum,
                    .records = earlier->records + sum.records,
                    .documents = earlier->documents + documents,
                    .rejects = earlier->rejects + sum.parser_rejects + sum.server_rejects,
                    .text_bytes = earlier->text_bytes + sum.text_bytes,
                    .stored_bytes = completed_bytes(run, &sum),
                    .stored_total = job->has_pipe ? 0 : sl_source_set_stored_bytes(job->set),
                    .generated = sl_job_is_generated(job),
                    .threads = atomic_load_explicit(&run->pace.active, memory_order_relaxed),
                    .threads_most = run->threads,
                    .batch_documents = sl_run_batch_documents(run),
                    .rate_limit = atomic_load(&run->rate_limit->rate)};
    sl_progress_sample now = {.seconds = seen.seconds,
                              .documents = documents,
                              .bytes = seen.generated ? sum.bson_bytes : sum.text_bytes,
                              .stored_bytes = seen.stored_bytes};
    memcpy(now.stage_seconds, sum.stage_seconds, sizeof now.stage_seconds);
    seen.figures = sl_figures_of(&viewer->window, &now, seen.stored_total);
    if (now.seconds >= viewer->next_moment) {
        sl_window_keep(&viewer->window, &now);
        viewer->next_moment = now.seconds + 0.5;
    }
    return seen;
}

void sl_view_add(sl_view *sum, const sl_view *view, bool runs) {
    sum->seconds += view->seconds;
    sum->records += view->records;
    sum->documents += view->documents;
    sum->rejects += view->rejects;
    sum->text_bytes += view->text_bytes;
    sl_run_totals_add(&sum->sum, &view->sum);
    if (!runs)
        return;
    sum->threads += view->threads;
    sum->threads_most += view->threads_most;
    if (view->batch_documents > sum->batch_documents)
        sum->batch_documents = view->batch_documents;
    sum->rate_limit = view->rate_limit; /* the same for all loads */
    sum->figures.rate_now += view->figures.rate_now;
    sum->figures.bytes_now += view->figures.bytes_now;
    for (unsigned k = 0; k < STAGES; k++)
        sum->figures.stage_share[k] += view->figures.stage_share[k];
}

/* ---- as JSON, for `--progress json` and status.json; docs/status.md lists the keys ---- */

/* The counts of this run that have the same keys as in run.json. */
static void append_live(const sl_run_totals *sum, bson_t *json) {
#define LIVE(place, name, ...) {{__VA_ARGS__}, sum->name},
    const struct {
        sl_count_row row;
        uint64_t number;
    } rows[] = {SL_RUN_COUNTS(LIVE)};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].row.live)
            BSON_APPEND_INT64(json, rows[i].row.key, (int64_t)rows[i].number);
    }
}

void sl_view_append(const sl_view *view, const sl_run *run, const sl_destination *destination,
                    bson_t *json) {
    const sl_figures *figures = &view->figures;
    bson_t inner;
    unsigned most, second;
    BSON_APPEND_DOUBLE(json, "seconds", view->seconds);
    BSON_APPEND_INT64(json, "records", (int64_t)view->records);
    BSON_APPEND_INT64(json, "documents", (int64_t)view->documents);
    BSON_APPEND_INT64(json, "rejects", (int64_t)view->rejects);
    BSON_APPEND_DOUBLE(json, "documentsPerSecond", figures->rate_now);
    BSON_APPEND_DOUBLE(json, "documentsPerSecondOverall", figures->rate_all);
    BSON_APPEND_DOUBLE(json, view->generated ? "bsonBytesPerSecond" : "textBytesPerSecond",
                       figures->bytes_now);
    if (!view->generated)
        BSON_APPEND_INT64(json, "textBytes", (int64_t)view->text_bytes);
    append_live(&view->sum, json);
    if (view->stored_total > 0)
        BSON_APPEND_DOUBLE(json, "share", figures->share);
    if (view->stored_total > 0 && !view->generated) {
        BSON_APPEND_INT64(json, "sourceBytes", (int64_t)view->stored_bytes);
        BSON_APPEND_INT64(json, "sourceBytesTotal", (int64_t)view->stored_total);
    }
    if (view->stored_total > 0 && figures->left >= 0)
        BSON_APPEND_DOUBLE(json, "secondsLeft", figures->left);
    BSON_APPEND_INT32(json, "threads", (int32_t)view->threads);
    BSON_APPEND_INT32(json, "threadsMost", (int32_t)view->threads_most);
    BSON_APPEND_INT32(json, "batchSize", (int32_t)view->batch_documents);
    if (view->rate_limit > 0)
        BSON_APPEND_INT64(json, "rateLimit", (int64_t)view->rate_limit);
    else
        BSON_APPEND_NULL(json, "rateLimit");
    if (sl_figures_waits(figures, &most, &second))
        BSON_APPEND_UTF8(json, "waitsMostFor", sl_stage_keys[most]);
    BSON_APPEND_DOCUMENT_BEGIN(json, "waitsFor", &inner);
    for (unsigned k = 0; k < STAGES; k++)
        BSON_APPEND_DOUBLE(&inner, sl_stage_keys[k], figures->stage_share[k]);
    bson_append_document_end(json, &inner);
    BSON_APPEND_DOCUMENT_BEGIN(json, "shards", &inner);
    for (uint32_t i = 0; run && destination->topology && i < run->job->shards; i++)
        BSON_APPEND_INT64(
            &inner, destination->topology->shards[i].name,
            (int64_t)atomic_load_explicit(&run->shard_documents[i], memory_order_relaxed));
    bson_append_document_end(json, &inner);
}
