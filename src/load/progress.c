/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line.
 *
 * The time left is computed from the stored bytes of the sources, because their total is known
 * beforehand for compressed files, too; and from the rate of the last half minute, so that it
 * follows a cluster that slows down. For a pipe no total is known, and no time left is shown.
 * Generated records have equal stored sizes, so their stored bytes are proportional to the
 * records. */
#include "progress.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
#include "util/print.h"
#include "util/text.h"

#define SHARDS_SHOWN 16

struct sl_progress {
    const sl_run *run;
    const sl_job *job;
    const sl_destination *destination;
    sl_run_record *record;
    sl_progress_kind kind;
    const sl_surroundings *receiver; /* of JSON; NULL without a context */
    int64_t start;
    double next_draw, next_point;
    sl_viewer viewer;
    uint64_t *shard_now;
    uint64_t *shard_before; /* at the last draw */
    double shard_before_seconds;
    double *shard_rate;
    pthread_mutex_t screen; /* guards the fields below, and the line on the terminal */
    char line[SL_PROGRESS_LINE_ROOM + 8];
    bool drawn;
};

/* The log's hook: clears the line before a message, and draws it again afterwards. The screen stays
 * locked in between. */
static void on_screen(bool before, void *context) {
    sl_progress *progress = context;
    if (before)
        pthread_mutex_lock(&progress->screen);
    if (progress->drawn) {
        fputs(before ? "\r\033[K" : progress->line, sl_screen_stream());
        fflush(sl_screen_stream());
    }
    if (!before)
        pthread_mutex_unlock(&progress->screen);
}

sl_progress *sl_progress_start(const sl_run *run, const sl_destination *destination,
                               sl_run_record *record) {
    const sl_job *job = run->job;
    sl_progress *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    pthread_mutex_init(&made->screen, NULL);
    made->run = run;
    made->job = job;
    made->destination = destination;
    made->record = record;
    const sl_context *context = sl_context_current();
    made->receiver = context ? sl_context_surroundings(context) : NULL;
    bool received = made->receiver && made->receiver->progress;
    made->kind = received && !job->config->search ? SL_PROGRESS_JSON : job->config->progress;
    if (made->kind == SL_PROGRESS_AUTO)
        made->kind = sl_screen_is_terminal() ? SL_PROGRESS_TERMINAL : SL_PROGRESS_PLAIN;
    made->start = sl_clock_ns();
    sl_viewer_init(&made->viewer, run, made->start);
    made->next_draw = made->kind == SL_PROGRESS_TERMINAL ? 0.25 : 1;
    made->next_point = 1;
    made->shard_now = calloc(job->shards, sizeof *made->shard_now);
    made->shard_before = calloc(job->shards, sizeof *made->shard_before);
    made->shard_rate = calloc(job->shards, sizeof *made->shard_rate);
    if (!made->shard_now || !made->shard_before || !made->shard_rate) {
        sl_progress_end(made);
        return NULL;
    }
    if (made->kind == SL_PROGRESS_TERMINAL)
        sl_log_set_screen_hook(on_screen, made);
    return made;
}

static void read_shards(sl_progress *progress, double seconds) {
    const sl_job *job = progress->job;
    const sl_run *run = progress->run;
    double span = seconds - progress->shard_before_seconds;
    for (uint32_t i = 0; i < job->shards; i++) {
        progress->shard_now[i] =
            atomic_load_explicit(&run->shard_documents[i], memory_order_relaxed);
        if (span >= 0.9)
            progress->shard_rate[i] =
                (double)(progress->shard_now[i] - progress->shard_before[i]) / span;
    }
    if (span >= 0.9) {
        memcpy(progress->shard_before, progress->shard_now,
               job->shards * sizeof *progress->shard_before);
        progress->shard_before_seconds = seconds;
    }
}

/* The name of the shard, or of the server without shards. */
static const char *silent_name(const sl_view *view, const sl_destination *destination) {
    const sl_topology *topology = destination->topology;
    return topology && view->silent_shard < topology->count && topology->count > 1
               ? topology->shards[view->silent_shard].name
               : "the server";
}

/* Indices of the stages on which the workers spent most and second most of their time. False when
 * no time has been spent. */
static bool waits_of(const sl_figures *figures, unsigned *most, unsigned *second) {
    const double *share = figures->stage_share;
    *most = 0;
    for (unsigned k = 1; k < STAGES; k++)
        *most = share[k] > share[*most] ? k : *most;
    *second = *most == 0 ? 1 : 0;
    for (unsigned k = 0; k < STAGES; k++)
        *second = k != *most && share[k] > share[*second] ? k : *second;
    return share[*most] > 0;
}

static char *compose(sl_progress *progress, const sl_view *seen, unsigned columns,
                     char line[SL_PROGRESS_LINE_ROOM]) {
    const sl_job *job = progress->job;
    const sl_destination *destination = progress->destination;
    const char *names[SHARDS_SHOWN];
    unsigned most, second;
    sl_progress_facts facts = {.share = seen->stored_total > 0 ? seen->figures.share : -1,
                               .left = seen->stored_total > 0 ? seen->figures.left : -1,
                               .documents = seen->documents,
                               .rate_now = seen->figures.rate_now,
                               .rate_all = seen->figures.rate_all,
                               .bytes_now = seen->figures.bytes_now,
                               .bson = seen->generated,
                               .rejects = seen->rejects,
                               .rate_limit = seen->rate_limit,
                               .threads = progress->run->pace.adapt ? seen->threads : 0,
                               .shards = names,
                               .shard_rates = progress->shard_rate};
    if (waits_of(&seen->figures, &most, &second)) {
        facts.waits[0] = sl_stage_names[most];
        facts.waits[1] = sl_stage_names[second];
        facts.waits_share[0] = seen->figures.stage_share[most];
        facts.waits_share[1] = seen->figures.stage_share[second];
    }
    facts.silent = seen->silent;
    facts.silent_shard = silent_name(seen, destination);
    if (job->shards > 1 && sl_shard_map_route(destination->map) != SL_ROUTE_NONE) {
        facts.shard_count = job->shards < SHARDS_SHOWN ? job->shards : SHARDS_SHOWN;
        for (size_t i = 0; i < facts.shard_count; i++)
            names[i] = destination->topology->shards[i].name;
    }
    return sl_progress_line(&facts, columns, line);
}

static void draw_terminal(sl_progress *progress, const sl_view *seen) {
    char text[SL_PROGRESS_LINE_ROOM];
    compose(progress, seen, sl_screen_columns(), text);
    pthread_mutex_lock(&progress->screen);
    snprintf(progress->line, sizeof progress->line, "\r\033[K%s", text);
    progress->drawn = true;
    fputs(progress->line, sl_screen_stream());
    fflush(sl_screen_stream());
    pthread_mutex_unlock(&progress->screen);
}

static void draw_json(sl_progress *progress, const sl_view *seen) {
    bson_t line = BSON_INITIALIZER;
    sl_view_append(seen, progress->run, progress->destination, &line);
    char *text = sl_json_line(&line);
    if (text && progress->receiver && progress->receiver->progress) {
        progress->receiver->progress(progress->receiver->data, text);
    } else if (text) {
        sl_print_to(sl_progress_stream(), "%s\n", text);
        fflush(sl_progress_stream());
    }
    free(text);
    bson_destroy(&line);
}

static void take_point(sl_progress *progress) {
    const sl_job *job = progress->job;
    const sl_run *run = progress->run;
    sl_run_totals sum = sl_run_sum(run);
    sl_run_point point = {.seconds = sl_seconds_since(progress->start),
                          .documents = sum.inserted + sum.already_stored + sum.changed,
                          .text_bytes = sum.text_bytes,
                          .bson_bytes = sum.bson_bytes,
                          .stored_bytes =
                              sl_job_is_generated(job) ? 0 : sl_source_set_consumed_bytes(job->set),
                          .rejects = sum.parser_rejects + sum.server_rejects};
    memcpy(point.stage_seconds, sum.stage_seconds, sizeof point.stage_seconds);
    for (uint32_t i = 0; i < job->shards; i++)
        progress->shard_now[i] =
            atomic_load_explicit(&run->shard_documents[i], memory_order_relaxed);
    sl_run_record_point(progress->record, &point, progress->shard_now, job->shards);
}

void sl_progress_tick(sl_progress *progress) {
    if (!progress)
        return;
    double seconds = sl_seconds_since(progress->start);
    sl_log_show_details();
    if (seconds >= progress->next_point) {
        take_point(progress);
        progress->next_point += 1;
    }
    if (seconds < progress->next_draw) {
        if (seconds >= progress->viewer.next_moment)
            sl_view_take(&progress->viewer);
        return;
    }
    sl_view seen = sl_view_take(&progress->viewer);
    read_shards(progress, seconds);
    switch (progress->kind) {
    case SL_PROGRESS_TERMINAL:
        draw_terminal(progress, &seen);
        progress->next_draw = seconds + 0.25;
        break;
    case SL_PROGRESS_PLAIN: {
        char text[SL_PROGRESS_LINE_ROOM];
        sl_log_info("%s", compose(progress, &seen, 0, text));
        progress->next_draw = seconds < 10 ? seconds + 3 : seconds + 10;
        break;
    }
    case SL_PROGRESS_JSON:
        draw_json(progress, &seen);
        progress->next_draw = seconds + 1;
        break;
    case SL_PROGRESS_AUTO:
    case SL_PROGRESS_NONE:
        progress->next_draw = seconds + 3600;
        break;
    }
}

void sl_progress_end(sl_progress *progress) {
    if (!progress)
        return;
    if (progress->shard_now && progress->shard_rate) {
        take_point(progress);
        if (progress->kind == SL_PROGRESS_JSON) { /* its reader gets the final totals */
            sl_view seen = sl_view_take(&progress->viewer);
            draw_json(progress, &seen);
        }
    }
    sl_log_set_screen_hook(NULL, NULL);
    if (progress->drawn) {
        fputs("\r\033[K", sl_screen_stream());
        fflush(sl_screen_stream());
    }
    pthread_mutex_destroy(&progress->screen);
    free(progress->shard_now);
    free(progress->shard_before);
    free(progress->shard_rate);
    free(progress);
}

/* ---- figures ---- */

/* The figures of the progress line, computed from counters at given times. */

#define NOW_SAMPLES 4    /* the present rate is that of the last two seconds */
#define LEFT_MOST 3600.0 /* maximum of the time left, as a multiple of the observed time */

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
    const double seen_for = now->seconds - older.seconds;
    if (done > 0 && now->seconds > 1)
        seen.left = (double)(stored_total - now->stored_bytes) * seen_for / done;
    /* The completed bytes are an estimate: a few of them tell nothing about the time left. */
    if (seen.left > LEFT_MOST * seen_for)
        seen.left = -1;
    return seen;
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

/* The oldest batch without an answer. */
static void find_silent(const sl_run *run, sl_view *view) {
    for (unsigned i = 0; run->counters && i < run->threads; i++) {
        const sl_worker_counters *one = &run->counters[i];
        int64_t asked = atomic_load_explicit(&one->asked_ns, memory_order_acquire);
        double seconds = asked > 0 ? sl_seconds_since(asked) : 0;
        if (seconds < SL_SILENT_SECONDS || seconds <= view->silent)
            continue;
        view->silent = seconds;
        view->silent_shard = atomic_load_explicit(&one->asked_shard, memory_order_relaxed);
    }
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
    find_silent(run, &seen);
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
    if (waits_of(figures, &most, &second))
        BSON_APPEND_UTF8(json, "waitsMostFor", sl_stage_keys[most]);
    BSON_APPEND_DOCUMENT_BEGIN(json, "waitsFor", &inner);
    for (unsigned k = 0; k < STAGES; k++)
        BSON_APPEND_DOUBLE(&inner, sl_stage_keys[k], figures->stage_share[k]);
    bson_append_document_end(json, &inner);
    if (run && view->silent > 0)
        BCON_APPEND(json, "silent", "{", "shard", BCON_UTF8(silent_name(view, destination)),
                    "seconds", BCON_DOUBLE(view->silent), "}");
    BSON_APPEND_DOCUMENT_BEGIN(json, "shards", &inner);
    for (uint32_t i = 0; run && destination->topology && i < run->job->shards; i++)
        BSON_APPEND_INT64(
            &inner, destination->topology->shards[i].name,
            (int64_t)atomic_load_explicit(&run->shard_documents[i], memory_order_relaxed));
    bson_append_document_end(json, &inner);
}

/* ---- the line ---- */

/* The progress line is a row of parts. The four parts that are always shown have a short form that
 * fits into 40 columns; each part has a rank, and the parts are added by rank while they fit. The
 * bar takes the columns that are left. */

#define NARROWEST 40
#define BAR_LEAST 10 /* with its brackets */
#define BAR_MOST 34
#define PART_ROOM 200

/* "812", "85.2k", "1.31M". */
static char *short_number(double value, char out[SL_HUMAN_ROOM]) {
    if (!(value >= 0))
        value = 0;
    if (value < 999.5)
        snprintf(out, SL_HUMAN_ROOM, "%.0f", value);
    else if (value < 999950)
        snprintf(out, SL_HUMAN_ROOM, "%.1fk", value / 1e3);
    else if (value < 999.995e6)
        snprintf(out, SL_HUMAN_ROOM, "%.2fM", value / 1e6);
    else
        snprintf(out, SL_HUMAN_ROOM, "%.1fG", value / 1e9);
    return out;
}

/* "42s", "3m20s", "4h05m", "12d03h", "?": at most six characters. */
static char *short_time(double seconds, char out[SL_HUMAN_ROOM]) {
    bool known = seconds >= 0 && seconds < 99.5 * 86400;
    unsigned long long s = known ? (unsigned long long)(seconds + 0.5) : 0;
    if (!known)
        snprintf(out, SL_HUMAN_ROOM, "%s", seconds < 0 ? "?" : ">99d");
    else if (s < 60)
        snprintf(out, SL_HUMAN_ROOM, "%llus", s);
    else if (s < 3600)
        snprintf(out, SL_HUMAN_ROOM, "%llum%02llus", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, SL_HUMAN_ROOM, "%lluh%02llum", s / 3600, s / 60 % 60);
    else
        snprintf(out, SL_HUMAN_ROOM, "%llud%02lluh", s / 86400, s / 3600 % 24);
    return out;
}

/* A share below 1 is never shown as 100 %. */
static double percent(double share) {
    double shown = 100 * share;
    return share < 1 && shown > 99.9 ? 99.9 : shown > 100 ? 100 : shown;
}

typedef enum part_name {
    PART_BAR,
    PART_SHARE,
    PART_DOCUMENTS,
    PART_RATE,
    PART_BYTES,
    PART_LEFT,
    PART_REJECTS,
    PART_THREADS,
    PART_WAITS,
    PART_SECOND,
    PART_SHARDS,
    PARTS,
} part_name;

/* The order in which parts are added. Those of the first row are always there. */
static const part_name ranks[] = {
    PART_SHARE,     PART_RATE,  PART_LEFT,   PART_WAITS,   PART_REJECTS,
    PART_DOCUMENTS, PART_BYTES, PART_SECOND, PART_THREADS, PART_SHARDS,
};
enum { ALWAYS = 4, RANKS = sizeof ranks / sizeof ranks[0] };

typedef struct parts {
    char text[PARTS][PART_ROOM];
    const char *gap; /* between two parts */
} parts;

__attribute__((format(printf, 3, 4))) static void put(parts *all, part_name part,
                                                      const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(all->text[part], PART_ROOM, format, arguments);
    va_end(arguments);
}

static void put_shards(parts *all, const sl_progress_facts *facts) {
    char rate[SL_HUMAN_ROOM];
    size_t used = 0;
    for (size_t i = 0; i < facts->shard_count; i++)
        used += sl_print_text(all->text[PART_SHARDS] + used, PART_ROOM - used, "%s%s %s/s",
                              i ? "  " : "", facts->shards[i],
                              short_number(facts->shard_rates[i], rate));
}

/* The parts for a terminal. */
static void make_parts(parts *all, const sl_progress_facts *facts) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    if (facts->share >= 0) {
        put(all, PART_SHARE, "%.1f %%", percent(facts->share));
        put(all, PART_DOCUMENTS, "%s docs", short_number((double)facts->documents, a));
    } else {
        put(all, PART_SHARE, "%s docs", short_number((double)facts->documents, a));
    }
    put(all, PART_RATE, "%s/s", short_number(facts->rate_now, a));
    put(all, PART_LEFT, "ETA %s", short_time(facts->left, a));
    if (facts->silent > 0)
        put(all, PART_WAITS, "%s silent %s", facts->silent_shard, short_time(facts->silent, a));
    else if (facts->waits[0])
        put(all, PART_WAITS, "%s %.0f %%", facts->waits[0], 100 * facts->waits_share[0]);
    else
        put(all, PART_WAITS, "starting");
    if (facts->waits[0] && facts->waits[1] && facts->waits_share[1] >= 0.005)
        put(all, PART_SECOND, "%s %.0f %%", facts->waits[1], 100 * facts->waits_share[1]);
    put(all, PART_BYTES, "%s/s", sl_human_bytes(facts->bytes_now, a));
    if (facts->rejects > 0)
        put(all, PART_REJECTS, "%s rejects", short_number((double)facts->rejects, a));
    if (facts->threads > 0)
        put(all, PART_THREADS, "%s", sl_plural(facts->threads, "thread"));
    if (facts->rate_limit > 0)
        put(all, PART_THREADS, "limit %s/s", short_number((double)facts->rate_limit, b));
    put_shards(all, facts);
}

/* The parts that were chosen, with a bar of `bar` columns. Returns the length. */
static size_t join(const parts *all, const bool chosen[PARTS], double share, size_t bar,
                   char out[SL_PROGRESS_LINE_ROOM]) {
    size_t used = 0;
    out[0] = '\0';
    if (bar > 0) {
        size_t inside = bar - 2, full = (size_t)((double)inside * share);
        out[used++] = '[';
        for (size_t i = 0; i < inside; i++)
            out[used++] = i < full ? '=' : i == full ? '>' : ' ';
        out[used++] = ']';
        out[used] = '\0';
    }
    for (part_name part = PART_SHARE; part < PARTS; part++) {
        if (chosen[part] && all->text[part][0])
            used += (size_t)snprintf(out + used, SL_PROGRESS_LINE_ROOM - used, "%s%s",
                                     used ? all->gap : "", all->text[part]);
    }
    return used;
}

/* For narrow terminals: shows what the workers wait for without "the " and without the
 * percentage. */
static void shorten(parts *all, const sl_progress_facts *facts) {
    const char *waits = facts->waits[0];
    if (facts->silent > 0)
        put(all, PART_WAITS, "%.12s silent", facts->silent_shard);
    else if (waits)
        put(all, PART_WAITS, "%s", waits + (strncmp(waits, "the ", 4) == 0 ? 4 : 0));
}

/* For the narrowest terminals: also omits blanks and optional words. */
static void squeeze(parts *all, const sl_progress_facts *facts) {
    char number[SL_HUMAN_ROOM];
    if (facts->share >= 0)
        put(all, PART_SHARE, "%.1f%%", percent(facts->share));
    else
        put(all, PART_SHARE, "%s", short_number((double)facts->documents, number));
    all->gap = " ";
}

static char *terminal_line(const sl_progress_facts *facts, size_t room,
                           char out[SL_PROGRESS_LINE_ROOM]) {
    parts all = {.gap = "  "};
    bool chosen[PARTS] = {false};
    make_parts(&all, facts);
    for (unsigned i = 0; i < ALWAYS; i++)
        chosen[ranks[i]] = true;
    join(&all, chosen, 0, 0, out);
    if (sl_letters(sl_text_of(out)) > room)
        shorten(&all, facts);
    join(&all, chosen, 0, 0, out);
    if (sl_letters(sl_text_of(out)) > room)
        squeeze(&all, facts);
    for (unsigned i = ALWAYS; i < RANKS; i++) {
        chosen[ranks[i]] = true;
        join(&all, chosen, 0, 0, out);
        bool bar_first = ranks[i] != PART_REJECTS && ranks[i] != PART_DOCUMENTS;
        size_t least = facts->share >= 0 && bar_first ? BAR_LEAST + 2 : 0;
        if (sl_letters(sl_text_of(out)) + least > room)
            chosen[ranks[i]] = false;
    }
    join(&all, chosen, 0, 0, out);
    size_t used = sl_letters(sl_text_of(out)), bar = 0;
    if (facts->share >= 0 && used + BAR_LEAST + 2 <= room)
        bar = room - used - 2 < BAR_MOST ? room - used - 2 : BAR_MOST;
    join(&all, chosen, facts->share < 1 ? facts->share : 1, bar, out);
    return out;
}

__attribute__((format(printf, 3, 4))) static void append(char *line, size_t *used,
                                                         const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    *used += sl_print_text_v(line + *used, SL_PROGRESS_LINE_ROOM - *used, format, arguments);
    va_end(arguments);
}

static char *log_line(const sl_progress_facts *facts, char out[SL_PROGRESS_LINE_ROOM]) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM], c[SL_HUMAN_ROOM], d[SL_HUMAN_ROOM];
    size_t used = 0;
    if (facts->share >= 0)
        append(out, &used, "%5.1f %%  ", percent(facts->share));
    append(out, &used, "%s  %s/s now, %s/s overall  %s/s%s",
           sl_plural(facts->documents, "document"), short_number(facts->rate_now, b),
           short_number(facts->rate_all, c), sl_human_bytes(facts->bytes_now, d),
           facts->bson ? " of BSON" : "");
    append(out, &used, "  ETA %s", facts->left >= 0 ? sl_human_seconds(facts->left, a) : "?");
    if (facts->rejects > 0)
        append(out, &used, "  rejects %s", sl_human_count(facts->rejects, a));
    if (facts->threads > 0)
        append(out, &used, "  %s", sl_plural(facts->threads, "thread"));
    if (facts->rate_limit > 0)
        append(out, &used, "  limited to %s/s", sl_human_count(facts->rate_limit, a));
    if (facts->silent > 0)
        append(out, &used, "  no answer from %s for %s", facts->silent_shard,
               sl_human_seconds(facts->silent, a));
    append(out, &used, "  waits for %s", facts->waits[0] ? facts->waits[0] : "?");
    if (facts->waits[0])
        append(out, &used, " %.0f %%", 100 * facts->waits_share[0]);
    if (facts->waits[0] && facts->waits[1])
        append(out, &used, ", %s %.0f %%", facts->waits[1], 100 * facts->waits_share[1]);
    for (size_t i = 0; i < facts->shard_count; i++)
        append(out, &used, "  %s %s/s", facts->shards[i], short_number(facts->shard_rates[i], a));
    return out;
}

char *sl_progress_line(const sl_progress_facts *facts, unsigned columns,
                       char out[SL_PROGRESS_LINE_ROOM]) {
    if (columns == 0)
        return log_line(facts, out);
    size_t width = columns < NARROWEST ? NARROWEST : columns;
    if (width > SL_PROGRESS_LINE_ROOM / 2)
        width = SL_PROGRESS_LINE_ROOM / 2;
    return terminal_line(facts, width - 1, out);
}
