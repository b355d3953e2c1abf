/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line.
 *
 * The time left is computed from the stored bytes of the sources, because their total is known
 * beforehand for compressed files, too; and from the rate of the last half minute, so that it
 * follows a cluster that slows down. For a pipe no total is known, and no time left is shown.
 * Generated records have equal stored sizes, so their stored bytes are proportional to the
 * records. */
#include "progress.h"

#include "progress_figures.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
#include "util/text.h"

struct sl_progress {
    const sl_run *run;
    const sl_job *job;
    const sl_destination *destination;
    sl_run_record *record;
    sl_progress_kind kind;
    const sl_surroundings *receiver; /* of JSON; NULL without a context */
    int64_t start;
    double next_draw, next_point, next_moment;
    sl_window window;
    uint64_t *shard_now;
    uint64_t *shard_before; /* at the last draw */
    double shard_before_seconds;
    double *shard_rate;
    pthread_mutex_t screen; /* guards the fields below, and the line on the terminal */
    char line[1024];
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
    made->kind = received ? SL_PROGRESS_JSON : job->config->progress;
    if (made->kind == SL_PROGRESS_AUTO)
        made->kind = sl_screen_is_terminal() ? SL_PROGRESS_TERMINAL : SL_PROGRESS_PLAIN;
    made->start = sl_clock_ns();
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

static void append(char *line, size_t room, size_t *used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void append(char *line, size_t room, size_t *used, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    *used += sl_print_text_v(line + *used, room - *used, format, arguments);
    va_end(arguments);
}

/* "812", "85.2k", "1.31M": a short form for the progress line. */
static char *short_number(double value, char out[SL_HUMAN_ROOM]) {
    if (value < 1000)
        snprintf(out, SL_HUMAN_ROOM, "%.0f", value);
    else if (value < 999950)
        snprintf(out, SL_HUMAN_ROOM, "%.1fk", value / 1e3);
    else
        snprintf(out, SL_HUMAN_ROOM, "%.2fM", value / 1e6);
    return out;
}

typedef struct sl_view {
    sl_figures figures;
    double seconds;
    uint64_t documents, rejects;
    bool total_known;
} sl_view;

static sl_view take_view(sl_progress *progress) {
    const sl_job *job = progress->job;
    const sl_run *run = progress->run;
    sl_run_totals sum = sl_run_sum(run);
    sl_view seen = {.seconds = sl_seconds_since(progress->start),
                    .documents = sum.inserted + sum.already_stored + sum.changed,
                    .rejects = sum.parser_rejects + sum.server_rejects,
                    .total_known = !job->has_pipe && sl_source_set_stored_bytes(job->set) > 0};
    sl_progress_sample now = {seen.seconds,
                              seen.documents,
                              sl_job_is_generated(job) ? sum.bson_bytes : sum.text_bytes,
                              sl_source_set_consumed_bytes(job->set),
                              {0}};
    memcpy(now.stage_seconds, sum.stage_seconds, sizeof now.stage_seconds);
    seen.figures = sl_figures_of(&progress->window, &now,
                                 seen.total_known ? sl_source_set_stored_bytes(job->set) : 0);
    if (now.seconds >= progress->next_moment) {
        sl_window_keep(&progress->window, &now);
        progress->next_moment = now.seconds + 0.5;
    }
    return seen;
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

static void compose(sl_progress *progress, const sl_view *seen, char *line, size_t room) {
    const sl_job *job = progress->job;
    const sl_destination *destination = progress->destination;
    const sl_run *run = progress->run;
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM], c[SL_HUMAN_ROOM], d[SL_HUMAN_ROOM];
    size_t used = 0;
    if (seen->total_known)
        append(line, room, &used, "%5.1f %%  ", 100 * seen->figures.share);
    append(line, room, &used, "%s documents  %s/s now, %s/s overall  %s/s%s",
           sl_human_count(seen->documents, a), short_number(seen->figures.rate_now, b),
           short_number(seen->figures.rate_all, c), sl_human_bytes(seen->figures.bytes_now, d),
           sl_job_is_generated(job) ? " of BSON" : "");
    if (seen->total_known && seen->figures.left >= 0)
        append(line, room, &used, "  ETA %s", sl_human_seconds(seen->figures.left, a));
    if (seen->rejects > 0)
        append(line, room, &used, "  rejects %s", sl_human_count(seen->rejects, a));
    if (run->pace.adapt) {
        unsigned active = atomic_load_explicit(&run->pace.active, memory_order_relaxed);
        append(line, room, &used, "  %u thread%s", active, active == 1 ? "" : "s");
    }
    unsigned most = 0, second = 1;
    for (unsigned k = 1; k < STAGES; k++) {
        if (seen->figures.stage_share[k] > seen->figures.stage_share[most])
            most = k;
    }
    second = most == 0 ? 1 : 0;
    for (unsigned k = 0; k < STAGES; k++) {
        if (k != most && seen->figures.stage_share[k] > seen->figures.stage_share[second])
            second = k;
    }
    if (seen->figures.stage_share[most] > 0)
        append(line, room, &used, "  waits for %s %.0f %%, %s %.0f %%", sl_stage_names[most],
               100 * seen->figures.stage_share[most], sl_stage_names[second],
               100 * seen->figures.stage_share[second]);
    if (job->shards > 1 && sl_shard_map_route(destination->map) != SL_ROUTE_NONE) {
        for (uint32_t i = 0; i < job->shards && i < 16; i++)
            append(line, room, &used, "  %s %s/s", destination->topology->shards[i].name,
                   short_number(progress->shard_rate[i], a));
    }
}

static void draw_terminal(sl_progress *progress, const sl_view *seen) {
    struct winsize size = {0};
    unsigned columns = 80;
    if (ioctl(fileno(sl_screen_stream()), TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
        columns = size.ws_col;
    char text[900];
    compose(progress, seen, text, sizeof text);
    if (strlen(text) >= columns)
        text[columns - 1] = '\0';
    pthread_mutex_lock(&progress->screen);
    snprintf(progress->line, sizeof progress->line, "\r\033[K%s", text);
    progress->drawn = true;
    fputs(progress->line, sl_screen_stream());
    fflush(sl_screen_stream());
    pthread_mutex_unlock(&progress->screen);
}

static void draw_json(sl_progress *progress, const sl_view *seen) {
    const sl_job *job = progress->job;
    const sl_destination *destination = progress->destination;
    const sl_run *run = progress->run;
    bson_t line, inner;
    bson_init(&line);
    BSON_APPEND_DOUBLE(&line, "seconds", seen->seconds);
    BSON_APPEND_INT64(&line, "documents", (int64_t)seen->documents);
    BSON_APPEND_DOUBLE(&line, "documentsPerSecond", seen->figures.rate_now);
    BSON_APPEND_DOUBLE(&line, "documentsPerSecondOverall", seen->figures.rate_all);
    BSON_APPEND_DOUBLE(&line,
                       sl_job_is_generated(job) ? "bsonBytesPerSecond" : "textBytesPerSecond",
                       seen->figures.bytes_now);
    BSON_APPEND_INT64(&line, "rejects", (int64_t)seen->rejects);
    if (seen->total_known)
        BSON_APPEND_DOUBLE(&line, "share", seen->figures.share);
    if (seen->total_known && seen->figures.left >= 0)
        BSON_APPEND_DOUBLE(&line, "secondsLeft", seen->figures.left);
    if (run->pace.adapt) {
        BSON_APPEND_INT32(&line, "threads",
                          (int32_t)atomic_load_explicit(&run->pace.active, memory_order_relaxed));
        BSON_APPEND_INT32(
            &line, "batchSize",
            (int32_t)atomic_load_explicit(&run->pace.batch_documents, memory_order_relaxed));
    }
    BSON_APPEND_DOCUMENT_BEGIN(&line, "waitsFor", &inner);
    for (unsigned k = 0; k < STAGES; k++)
        BSON_APPEND_DOUBLE(&inner, sl_stage_names[k], seen->figures.stage_share[k]);
    bson_append_document_end(&line, &inner);
    BSON_APPEND_DOCUMENT_BEGIN(&line, "shards", &inner);
    for (uint32_t i = 0; destination->topology && i < job->shards; i++)
        BSON_APPEND_INT64(&inner, destination->topology->shards[i].name,
                          (int64_t)progress->shard_now[i]);
    bson_append_document_end(&line, &inner);
    char *text = sl_json_line(&line);
    if (text && progress->receiver && progress->receiver->progress)
        progress->receiver->progress(progress->receiver->data, text);
    else if (text)
        sl_print_to(sl_screen_stream(), "%s\n", text);
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
    if (seconds >= progress->next_point) {
        take_point(progress);
        progress->next_point += 1;
    }
    if (seconds < progress->next_draw) {
        if (seconds >= progress->next_moment)
            take_view(progress);
        return;
    }
    sl_view seen = take_view(progress);
    read_shards(progress, seconds);
    switch (progress->kind) {
    case SL_PROGRESS_TERMINAL:
        draw_terminal(progress, &seen);
        progress->next_draw = seconds + 0.25;
        break;
    case SL_PROGRESS_PLAIN: {
        char text[900];
        compose(progress, &seen, text, sizeof text);
        sl_log_info("%s", text);
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

/* A program that reads the JSON lines gets the final totals. */
static void draw_last(sl_progress *progress) {
    if (progress->kind != SL_PROGRESS_JSON)
        return;
    sl_view seen = take_view(progress);
    draw_json(progress, &seen);
}

void sl_progress_end(sl_progress *progress) {
    if (!progress)
        return;
    if (progress->shard_now && progress->shard_rate) {
        take_point(progress);
        draw_last(progress);
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
