/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a status. The figures of a restore are the sums of those of its namespaces. */
#include "status_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/json.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/memory_stream.h"
#include "util/print.h"
#include "util/text.h"

static const char *state_of(const sl_status *status) {
    return !status->ended                                                  ? "running"
           : status->code == SL_EXIT_OK || status->code == SL_EXIT_REJECTS ? "finished"
           : status->code == SL_EXIT_INTERRUPTED                           ? "interrupted"
                                                                           : "failed";
}

/* Appends a text that need not be UTF-8, because it may be a path or truncated. */
static void append_text(bson_t *json, const char *key, const char *text) {
    char printable[PATH_MAX];
    size_t where;
    if (!sl_utf8_valid(text, strlen(text), &where)) {
        sl_print_text(printable, sizeof printable, "%s", text);
        text = printable;
    }
    BSON_APPEND_UTF8(json, key, text);
}

bool sl_status_is_restore(const sl_status *status) {
    return status->setup.at_once > 0;
}

static double share_of(const sl_status_part *p) {
    return p->viewed && p->view.stored_total > 0 ? p->view.figures.share : 0;
}

double sl_status_done(const sl_status_part *p) {
    return share_of(p) * (double)p->bytes;
}

double sl_status_earlier(const sl_status_part *p) {
    double earlier = (double)p->view.text_bytes - (double)p->view.sum.text_bytes;
    double text = earlier + (double)p->view.sum.text_completed;
    return text > 0 ? sl_status_done(p) * earlier / text : 0;
}

/* The sum over all namespaces of a restore; `ended`: of those that have ended. */
static double sum_of(const sl_status *status, double ended, double of(const sl_status_part *p)) {
    for (size_t i = 0; i < status->part_count; i++) {
        if (status->parts[i].taken)
            ended += of(&status->parts[i]);
    }
    return ended;
}

static double done_of_all(const sl_status *status) {
    return sum_of(status, status->ended_bytes, sl_status_done);
}

/* The share of all namespaces of a restore. */
static double share_of_all(const sl_status *status) {
    double bytes = done_of_all(status);
    return status->bytes > 0 ? bytes / (double)status->bytes : 0;
}

/* Seconds left of a restore, by the rate of this run; below 0 when that is not known. */
static double left_of_all(const sl_status *status) {
    double done = done_of_all(status);
    double now = done - sum_of(status, status->earlier_bytes, sl_status_earlier);
    double seconds = sl_seconds_since(status->started_ns);
    return now > 1 && seconds > 1 ? seconds * ((double)status->bytes - done) / now : -1;
}

/* The sum of all namespaces of a restore. False before the first figures. */
static bool view_all(const sl_status *status, sl_view *all) {
    bool any = status->ended_view.seconds > 0 || status->ended_view.records > 0;
    unsigned running = 0;
    *all = status->ended_view;
    for (size_t i = 0; i < status->part_count; i++) {
        const sl_status_part *p = &status->parts[i];
        if (!p->viewed)
            continue;
        any = true;
        running += p->run != NULL;
        sl_view_add(all, &p->view, p->run != NULL);
    }
    double seconds = sl_seconds_since(status->started_ns);
    const sl_run_totals *sum = &all->sum;
    all->seconds = seconds;
    all->figures.rate_all =
        seconds > 0 ? (double)(sum->inserted + sum->already_stored + sum->changed) / seconds : 0;
    for (unsigned k = 0; k < STAGES && running > 0; k++)
        all->figures.stage_share[k] /= running;
    return any;
}

static void append_namespaces(const sl_status *status, const sl_view *all, bson_t *json) {
    bson_t inner, list;
    uint32_t count = 0;
    BSON_APPEND_DOCUMENT_BEGIN(json, "namespaces", &inner);
    BSON_APPEND_INT64(&inner, "count", (int64_t)status->namespaces);
    BSON_APPEND_INT64(&inner, "completed", (int64_t)status->ended_count);
    BSON_APPEND_ARRAY_BEGIN(&inner, "running", &list);
    for (size_t i = 0; i < status->part_count; i++) {
        const sl_status_part *p = &status->parts[i];
        bson_t item;
        if (!p->taken)
            continue;
        sl_record_begin_item(&list, count++, &item);
        append_text(&item, "name", p->name);
        append_text(&item, "workDirectory", p->folder);
        BSON_APPEND_DOUBLE(&item, "share", share_of(p));
        bson_append_document_end(&list, &item);
    }
    bson_append_array_end(&inner, &list);
    bson_append_document_end(json, &inner);
    double share = share_of_all(status);
    BSON_APPEND_INT64(json, "sourceBytesTotal", (int64_t)status->bytes);
    BSON_APPEND_INT64(json, "sourceBytes", (int64_t)(share * (double)status->bytes));
    BSON_APPEND_DOUBLE(json, "share", share);
    if (left_of_all(status) >= 0)
        BSON_APPEND_DOUBLE(json, "secondsLeft", left_of_all(status));
    BSON_APPEND_INT64(json, "records", (int64_t)all->records);
    BSON_APPEND_INT64(json, "documents", (int64_t)all->documents);
    BSON_APPEND_INT64(json, "rejects", (int64_t)all->rejects);
}

char *sl_status_text(const sl_status *status) {
    bson_t json = BSON_INITIALIZER, inner;
    sl_error error;
    BSON_APPEND_INT32(&json, "statusVersion", SL_STATUS_VERSION);
    BSON_APPEND_UTF8(&json, "version", status->setup.config->program_version);
    BSON_APPEND_UTF8(&json, "command", status->command);
    append_text(&json, "target", status->target);
    BSON_APPEND_UTF8(&json, "state", state_of(status));
    if (status->ended) {
        BSON_APPEND_INT32(&json, "exitCode", (int32_t)status->code);
        append_text(&json, "message", status->message);
    }
    BSON_APPEND_UTF8(&json, "phase", status->phase);
    BSON_APPEND_DOUBLE(&json, "phaseSeconds", sl_seconds_since(status->phase_since));
    BSON_APPEND_DOUBLE(&json, "elapsedSeconds", sl_seconds_since(status->started_ns));
    BSON_APPEND_INT64(&json, "startedMilliseconds", status->started_ms);
    BSON_APPEND_INT64(&json, "heartbeatMilliseconds", sl_wall_clock_ms());
    BCON_APPEND(&json, "process", "{", "pid", BCON_INT64(getpid()), "started",
                BCON_INT64(sl_process_start(getpid())), "host", BCON_UTF8(status->host_name),
                "hostIdentity", BCON_UTF8(status->host), "}");
    append_text(&json, "workDirectory", status->directory);
    BSON_APPEND_BOOL(&json, "resumable", status->resume_command[0] != '\0');
    if (status->resume_command[0]) {
        BSON_APPEND_UTF8(&json, "resumeCommand", status->resume_command);
        append_text(&json, "resumeWorkDirectory", status->resume_directory);
    }
    uint64_t rate = atomic_load(&status->setup.limit->rate);
    BSON_APPEND_DOCUMENT_BEGIN(&json, "limit", &inner);
    if (rate > 0)
        BSON_APPEND_INT64(&inner, "documentsPerSecond", (int64_t)rate);
    else
        BSON_APPEND_NULL(&inner, "documentsPerSecond");
    BSON_APPEND_UTF8(&inner, "request", status->request);
    bson_append_document_end(&json, &inner);
    const sl_status_part *own = &status->parts[0];
    sl_view view = own->view;
    bool restore = sl_status_is_restore(status),
         viewed = restore ? view_all(status, &view) : own->viewed;
    if (restore)
        append_namespaces(status, &view, &json);
    if (viewed) {
        static const sl_destination none;
        bool shards = !restore && own->run;
        BSON_APPEND_DOCUMENT_BEGIN(&json, "load", &inner);
        sl_view_append(&view, shards ? own->run : NULL, shards ? own->destination : &none, &inner);
        bson_append_document_end(&json, &inner);
    }
    char *text = sl_json_text(&json, &error);
    bson_destroy(&json);
    return text;
}

/* ---- metrics ----
 *
 * docs/status.md describes them. The names of counters end in _total; counters start at 0 with the
 * run and only grow. A metric whose value is not known is left out. */

#define PREFIX "shardload_"

static void head(FILE *out, const char *name, const char *type, const char *help) {
    sl_print_to(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void gauge(FILE *out, const char *name, const char *help, double value) {
    head(out, name, "gauge", help);
    sl_print_to(out, PREFIX "%s %.15g\n", name, value);
}

static void counter(FILE *out, const char *name, const char *help, uint64_t value) {
    head(out, name, "counter", help);
    sl_print_to(out, PREFIX "%s %llu\n", name, (unsigned long long)value);
}

/* A label's value, with backslash, quote and line end escaped. */
static void label(FILE *out, const char *name, const char *value) {
    char text[2 * 512 + 1];
    size_t used = 0;
    for (; *value && used < sizeof text - 3; value++) {
        if (*value == '\\' || *value == '"' || *value == '\n')
            text[used++] = '\\';
        text[used++] = *value == '\n' ? 'n' : *value;
    }
    text[used] = '\0';
    sl_print_to(out, "%s=\"%s\"", name, text);
}

static void labelled(FILE *out, const char *name, const char *key, const char *value,
                     double number) {
    sl_print_to(out, PREFIX "%s{", name);
    label(out, key, value);
    sl_print_to(out, "} %.15g\n", number);
}

static void write_state(FILE *out, const sl_status *status, double share, double left) {
    head(out, "info", "gauge", "The command that this process runs.");
    sl_print_to(out, PREFIX "info{");
    label(out, "command", status->command);
    sl_print_to(out, ",");
    label(out, "target", status->target);
    sl_print_to(out, ",");
    label(out, "version", status->setup.config->program_version);
    sl_print_to(out, "} 1\n");
    head(out, "phase", "gauge", "1 for the phase that runs.");
    labelled(out, "phase", "phase", status->ended ? "ended" : status->phase, 1);
    gauge(out, "running", "1 while the command runs, 0 when it has ended.", status->ended ? 0 : 1);
    if (status->ended)
        gauge(out, "exit_code", "The exit code of the command.", status->code);
    gauge(out, "start_time_seconds", "When the command began, in seconds since 1970.",
          (double)status->started_ms / 1e3);
    gauge(out, "heartbeat_time_seconds",
          "When this file was written, in seconds since 1970. It is written every second.",
          (double)sl_wall_clock_ms() / 1e3);
    gauge(out, "elapsed_seconds", "How long the command has been running.",
          sl_seconds_since(status->started_ns));
    gauge(out, "rate_limit_documents_per_second", "The rate limit; 0 without one.",
          (double)atomic_load(&status->setup.limit->rate));
    if (share >= 0)
        gauge(out, "progress_ratio", "Completed share of the sources, from 0 to 1.", share);
    if (left >= 0)
        gauge(out, "remaining_seconds", "Expected time until the sources have been loaded.", left);
}

/* The counts of this run. The samples of one metric are consecutive rows of the table. */
static void write_counts(FILE *out, const sl_run_totals *sum) {
#define METRIC(place, name, ...) {{__VA_ARGS__}, sum->name},
    const struct {
        sl_count_row row;
        uint64_t number;
    } rows[] = {SL_WORKER_COUNTS(METRIC)};
    const char *last = "";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const sl_count_row *row = &rows[i].row;
        if (!row->metric)
            continue;
        if (!row->metric_label)
            counter(out, row->metric, row->help, rows[i].number);
        else if (strcmp(last, row->metric) != 0)
            head(out, row->metric, "counter", row->help);
        if (row->metric_label)
            labelled(out, row->metric, row->metric_label, row->metric_value,
                     (double)rows[i].number);
        last = row->metric;
    }
}

static void write_figures(FILE *out, const sl_view *view) {
    const sl_run_totals *sum = &view->sum;
    counter(out, "records_total", "Records read from the sources, earlier runs included.",
            view->records);
    counter(out, "documents_total",
            "Documents that the server has acknowledged, earlier runs included.", view->documents);
    counter(out, "rejects_total", "Records that were rejected, earlier runs included.",
            view->rejects);
    write_counts(out, sum);
    if (!view->generated)
        counter(out, "text_bytes_total", "Text parsed, earlier runs included.", view->text_bytes);
    if (view->stored_total > 0 && !view->generated) {
        gauge(out, "source_bytes", "Size of the sources as they are stored.",
              (double)view->stored_total);
        counter(out, "source_read_bytes_total", "Part of the sources that is completed.",
                view->stored_bytes);
    }
    gauge(out, "threads", "Worker threads that are active.", view->threads);
    gauge(out, "batch_documents", "Documents at which a batch is sent.", view->batch_documents);
    head(out, "worker_seconds_total", "counter",
         "Time of the worker threads by what they did or waited for.");
    for (unsigned k = 0; k < STAGES; k++)
        labelled(out, "worker_seconds_total", "activity", sl_stage_metrics[k],
                 sum->stage_seconds[k]);
}

static void write_shards(FILE *out, const sl_run *run, const sl_destination *destination) {
    head(out, "shard_documents_total", "counter", "Documents of this run sent to each shard.");
    for (uint32_t i = 0; i < run->job->shards; i++)
        labelled(out, "shard_documents_total", "shard", destination->topology->shards[i].name,
                 (double)atomic_load_explicit(&run->shard_documents[i], memory_order_relaxed));
}

char *sl_status_metrics(const sl_status *status, size_t *length) {
    const sl_status_part *own = &status->parts[0];
    sl_view view = own->view;
    bool restore = sl_status_is_restore(status),
         viewed = restore ? view_all(status, &view) : own->viewed;
    bool sized = viewed && !restore && view.stored_total > 0, runs = own->run != NULL;
    double share = restore ? share_of_all(status) : sized ? view.figures.share : -1;
    double left = status->ended   ? -1
                  : restore       ? left_of_all(status)
                  : sized && runs ? view.figures.left
                                  : -1;
    char *text = NULL;
    FILE *out = sl_memory_stream(&text, length);
    if (!out)
        return NULL;
    write_state(out, status, share, left);
    if (viewed)
        write_figures(out, &view);
    if (!restore && runs && own->destination && own->destination->topology)
        write_shards(out, own->run, own->destination);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
