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
#include "progress_line.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
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
    made->kind = received ? SL_PROGRESS_JSON : job->config->progress;
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
    if (sl_figures_waits(&seen->figures, &most, &second)) {
        facts.waits[0] = sl_stage_names[most];
        facts.waits[1] = sl_stage_names[second];
        facts.waits_share[0] = seen->figures.stage_share[most];
        facts.waits_share[1] = seen->figures.stage_share[second];
    }
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

/* A program that reads the JSON lines gets the final totals. */
static void draw_last(sl_progress *progress) {
    if (progress->kind != SL_PROGRESS_JSON)
        return;
    sl_view seen = sl_view_take(&progress->viewer);
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
