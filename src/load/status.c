/* SPDX-License-Identifier: Apache-2.0 */
/* The status thread. One lock guards everything that changes; it is held while the figures are
 * taken, not while files are written, so that a slow disk delays no other thread.
 *
 *     thread of a load                          status thread
 *     sl_status_run(run): lock, set, unlock     every quarter of a second: lock
 *     ... workers run ...                         takes a view of each run
 *     sl_status_run(NULL): lock, keeps the        builds the texts once a second, or at once when
 *       last view, clears `run`, unlock             something has changed
 *     frees the run                             unlock; writes the files; looks for a request
 *
 * A second request to stop may stop the status while the main thread does: the one that comes first
 * ends the thread, the other one waits for it.
 *
 * A run is freed only after sl_status_run(NULL), which waits for the lock, so the thread never
 * reads a run that is gone. Requests change only the rate limit, which has a lock of its own. */
#include "status.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/json.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
#include "util/memory_stream.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/process.h"
#include "util/text.h"

#include "progress.h"

/* A load that runs: the command's own, or that of one of a restore's namespaces. */
typedef struct sl_status_part {
    bool taken;
    size_t item;
    char name[300], folder[PATH_MAX]; /* of a namespace */
    uint64_t bytes;
    const sl_run *run; /* NULL: none runs */
    const sl_destination *destination;
    sl_viewer viewer;
    sl_view view; /* the last one */
    bool viewed;
} sl_status_part;

struct sl_status {
    /* Constant once the thread runs. */
    sl_status_setup setup;
    char command[16], target[300], directory[PATH_MAX], metrics[PATH_MAX];
    /* Only shown: another user may have put a link in the path when it was resolved. */
    char absolute_directory[PATH_MAX];
    char resume_command[200], resume_directory[PATH_MAX];
    char host[SL_HOST_ROOM], host_name[256];
    int64_t started_ms, started_ns;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    bool over, urgent; /* urgent: write the files at once */
    bool stopped;      /* the thread has ended */
    char phase[32];
    int64_t phase_since;
    size_t namespaces;    /* of a restore */
    uint64_t bytes;       /* of all of them */
    sl_view ended_view;   /* sum of the namespaces that have ended */
    size_t ended_count;   /* of namespaces that have been completed */
    double ended_bytes;   /* completed ones of the namespaces that have ended */
    double earlier_bytes; /* completed ones of earlier runs */
    char request[40];     /* the last one that was carried out */
    bool ended;
    sl_exit code;
    char message[600];

    bool failed[2]; /* used by the thread: status.json, or the metrics, could not be written */

    size_t part_count;
    sl_status_part parts[]; /* of a load: one */
};

/* ==== the texts ====
 *
 * The figures of a restore are the sums of those of its namespaces. */

static const char *state_of(const sl_status *status) {
    return !status->ended                        ? "running"
           : sl_exit_is_complete(status->code)   ? "finished"
           : status->code == SL_EXIT_INTERRUPTED ? "interrupted"
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

static bool is_restore(const sl_status *status) {
    return status->setup.at_once > 0;
}

static double share_of(const sl_status_part *p) {
    return p->viewed && p->view.stored_total > 0 ? p->view.figures.share : 0;
}

static double done_of(const sl_status_part *p) {
    return share_of(p) * (double)p->bytes;
}

static double earlier_of(const sl_status_part *p) {
    double earlier = (double)p->view.text_bytes - (double)p->view.sum.text_bytes;
    double text = earlier + (double)p->view.sum.text_completed;
    return text > 0 ? done_of(p) * earlier / text : 0;
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
    return sum_of(status, status->ended_bytes, done_of);
}

/* The share of all namespaces of a restore. */
static double share_of_all(const sl_status *status) {
    double bytes = done_of_all(status);
    return status->bytes > 0 ? bytes / (double)status->bytes : 0;
}

/* Seconds left of a restore, by the rate of this run; below 0 when that is not known. */
static double left_of_all(const sl_status *status) {
    double done = done_of_all(status);
    double now = done - sum_of(status, status->earlier_bytes, earlier_of);
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

/* status.json. Under the lock. Free it; NULL without memory. */
static char *status_text(const sl_status *status) {
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
    append_text(&json, "workDirectory", status->absolute_directory);
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
    bool restore = is_restore(status), viewed = restore ? view_all(status, &view) : own->viewed;
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
 * docs/status.md describes them. A metric whose value is not known is left out. */

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

/* As status_text: the metrics in the text format of Prometheus. */
static char *metrics_text(const sl_status *status, size_t *length) {
    const sl_status_part *own = &status->parts[0];
    sl_view view = own->view;
    bool restore = is_restore(status), viewed = restore ? view_all(status, &view) : own->viewed;
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
    if (!restore && runs && own->destination && own->destination->topology) {
        head(out, "shard_documents_total", "counter", "Documents of this run sent to each shard.");
        for (uint32_t i = 0; i < own->run->job->shards; i++)
            labelled(
                out, "shard_documents_total", "shard", own->destination->topology->shards[i].name,
                (double)atomic_load_explicit(&own->run->shard_documents[i], memory_order_relaxed));
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* ==== the thread and the main thread ==== */

#define POLL_NS INT64_C(250000000)
#define WRITE_SECONDS 1.0

/* ---- the thread ---- */

/* A failure is reported once, and again only after the file was written; the load continues. */
static void publish(sl_status *status, const char *path, const char *text, size_t length,
                    bool readable, bool last) {
    sl_error error = {0};
    bool ok = last && !readable
                  ? sl_private_file_replace(path, text, length, &error)
                  : sl_file_publish(path, text, length, readable ? SL_READERS_ALL : SL_READERS_USER,
                                    &error);
    if (!ok && !status->failed[readable])
        sl_log_warning(SL_LINES "; the load continues", error.message);
    status->failed[readable] = !ok;
}

static void take_view(sl_status_part *p) {
    if (!p->run)
        return;
    p->view = sl_view_take(&p->viewer);
    p->viewed = true;
}

/* Writes both files. Called without the lock. */
static void write_files(sl_status *status) {
    char path[PATH_MAX + 32], *metrics = NULL, *text = NULL;
    size_t length = 0;
    pthread_mutex_lock(&status->lock);
    for (size_t i = 0; i < status->part_count; i++)
        take_view(&status->parts[i]);
    status->urgent = false;
    /* The last status must survive a power failure; the restore of a load has its outcome. */
    bool last = status->ended && !status->setup.above;
    if (status->directory[0])
        text = status_text(status);
    if (status->metrics[0])
        metrics = metrics_text(status, &length);
    pthread_mutex_unlock(&status->lock);
    snprintf(path, sizeof path, "%s/" SL_WORK_STATUS, status->directory);
    if (text)
        publish(status, path, text, strlen(text), false, last);
    if (metrics)
        publish(status, status->metrics, metrics, length, true, last);
    free(text);
    free(metrics);
}

/* Carries out a request, if there is one. */
static void take_request(sl_status *status) {
    sl_control_request request;
    if (!status->directory[0] || !sl_control_take(status->directory, &request))
        return;
    sl_rate_limit_set(status->setup.limit, request.rate_limit);
    if (request.rate_limit > 0)
        sl_log_info("rate limit changed to %llu documents/s by `shardload status`",
                    (unsigned long long)request.rate_limit);
    else
        sl_log_info("rate limit removed by `shardload status`");
    pthread_mutex_lock(&status->lock);
    memcpy(status->request, request.id, sizeof status->request);
    status->urgent = true;
    pthread_mutex_unlock(&status->lock);
}

static void *write_status(void *context) {
    sl_status *status = context;
    int64_t written = 0;
    bool over = false;
    while (!over) {
        take_request(status);
        pthread_mutex_lock(&status->lock);
        for (size_t i = 0; i < status->part_count; i++) {
            sl_status_part *p = &status->parts[i];
            if (p->run && sl_seconds_since(p->viewer.start) >= p->viewer.next_moment)
                take_view(p);
        }
        bool due = status->urgent || written == 0 || sl_seconds_since(written) >= WRITE_SECONDS;
        pthread_mutex_unlock(&status->lock);
        if (due) {
            write_files(status);
            written = sl_clock_ns();
        }
        int64_t end = sl_clock_ns() + POLL_NS;
        pthread_mutex_lock(&status->lock);
        if (!status->over && !status->urgent)
            pthread_cond_timedwait(&status->changed, &status->lock,
                                   &(struct timespec){end / 1000000000, end % 1000000000});
        over = status->over;
        pthread_mutex_unlock(&status->lock);
    }
    write_files(status);
    return NULL;
}

/* ---- the main thread ---- */

static void copy(char *to, size_t room, const char *text) {
    snprintf(to, room, "%s", text ? text : "");
}

static void absolute(char to[PATH_MAX], const char *path) {
    if (!path || !*path || !realpath(path, to))
        copy(to, PATH_MAX, path);
}

sl_status *sl_status_start(const sl_status_setup *setup) {
    char path[PATH_MAX + 32];
    if (!setup->directory[0] && !setup->metrics)
        return NULL;
    size_t parts = setup->at_once > 0 ? setup->at_once : 1;
    sl_status *made = calloc(1, sizeof *made + parts * sizeof made->parts[0]);
    if (!made) {
        sl_log_warning("out of memory: no %s is written", SL_WORK_STATUS);
        return NULL;
    }
    made->setup = *setup;
    made->part_count = parts;
    copy(made->command, sizeof made->command, setup->command);
    copy(made->target, sizeof made->target, setup->target);
    copy(made->directory, sizeof made->directory, setup->directory);
    absolute(made->absolute_directory, setup->directory);
    copy(made->metrics, sizeof made->metrics, setup->metrics);
    const sl_status *above = setup->above;
    copy(made->resume_command, sizeof made->resume_command,
         above ? above->resume_command : setup->resume_command);
    absolute(made->resume_directory, above ? above->absolute_directory : setup->resume_directory);
    copy(made->phase, sizeof made->phase, "starting");
    sl_host_identity(made->host);
    if (gethostname(made->host_name, sizeof made->host_name - 1) != 0)
        copy(made->host_name, sizeof made->host_name, "?");
    made->started_ms = sl_wall_clock_ms();
    made->started_ns = made->phase_since = sl_clock_ns();
    pthread_mutex_init(&made->lock, NULL);
    sl_clock_init_condition(&made->changed);
    if (made->directory[0]) { /* a request to an earlier process */
        snprintf(path, sizeof path, "%s/" SL_WORK_CONTROL, made->directory);
        sl_private_file_remove(path);
    }
    write_files(made);
    int code = sl_thread_start(&made->thread, write_status, made);
    if (code == 0)
        return made;
    sl_log_warning("no thread for %s: %s", SL_WORK_STATUS, strerror(code));
    if (made->directory[0]) { /* it would show a running load for ever */
        snprintf(path, sizeof path, "%s/" SL_WORK_STATUS, made->directory);
        sl_private_file_remove(path);
    }
    pthread_cond_destroy(&made->changed);
    pthread_mutex_destroy(&made->lock);
    free(made);
    return NULL;
}

/* Call it under the lock. */
static void write_soon(sl_status *status) {
    status->urgent = true;
    pthread_cond_signal(&status->changed);
}

void sl_status_phase(sl_status *status, const char *phase) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    copy(status->phase, sizeof status->phase, phase);
    status->phase_since = sl_clock_ns();
    write_soon(status);
    pthread_mutex_unlock(&status->lock);
}

/* The load's part, or that of the namespace `item`. NULL: there is none. */
static sl_status_part *part_of(sl_status *status, size_t item) {
    if (!is_restore(status))
        return &status->parts[0];
    for (size_t i = 0; i < status->part_count; i++) {
        if (status->parts[i].taken && status->parts[i].item == item)
            return &status->parts[i];
    }
    return NULL;
}

static void set_run(sl_status *status, size_t item, const sl_run *run,
                    const sl_destination *destination) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    sl_status_part *p = part_of(status, item);
    if (p) {
        take_view(p); /* of a run that ends */
        p->run = run;
        p->destination = destination;
        if (run)
            sl_viewer_init(&p->viewer, run, sl_clock_ns());
        take_view(p);
    }
    pthread_mutex_unlock(&status->lock);
}

void sl_status_run(sl_status *status, const sl_run *run, const sl_destination *destination) {
    if (!status)
        return;
    set_run(status, 0, run, destination);
    set_run(status->setup.above, status->setup.item, run, destination);
}

void sl_status_restore(sl_status *status, size_t namespaces, uint64_t bytes) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    status->namespaces = namespaces;
    status->bytes = bytes;
    pthread_mutex_unlock(&status->lock);
}

void sl_status_namespace(sl_status *status, size_t item, const char *name, const char *folder,
                         uint64_t bytes) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    for (size_t i = 0; i < status->part_count; i++) {
        sl_status_part *p = &status->parts[i];
        if (p->taken)
            continue;
        *p = (sl_status_part){.taken = true, .item = item, .bytes = bytes};
        copy(p->name, sizeof p->name, name);
        /* It may not exist yet, so realpath would not find it. */
        copy(p->folder, sizeof p->folder, status->absolute_directory);
        size_t used = strlen(p->folder);
        copy(p->folder + used, sizeof p->folder - used, strrchr(folder, '/'));
        break;
    }
    write_soon(status);
    pthread_mutex_unlock(&status->lock);
}

void sl_status_namespace_end(sl_status *status, size_t item, const sl_status_outcome *outcome) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    sl_status_part *p = part_of(status, item);
    if (p) {
        sl_view view = p->view;
        if (!p->viewed) /* an earlier run has loaded this namespace */
            view = (sl_view){.records = outcome->records,
                             .documents = outcome->documents,
                             .rejects = outcome->rejects};
        sl_view_add(&status->ended_view, &view, false);
        status->ended_count += outcome->completed;
        status->earlier_bytes += p->viewed ? earlier_of(p) : (double)p->bytes;
        status->ended_bytes += outcome->completed ? (double)p->bytes : done_of(p);
        *p = (sl_status_part){0};
    }
    write_soon(status);
    pthread_mutex_unlock(&status->lock);
}

void sl_status_stop(sl_status *status, sl_exit code, const char *message, bool resumable) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    if (status->ended) {
        while (!status->stopped) /* another thread stops it */
            pthread_cond_wait(&status->changed, &status->lock);
        pthread_mutex_unlock(&status->lock);
        return;
    }
    status->ended = true;
    status->code = sl_context_exit(code);
    bool complete = sl_exit_is_complete(code);
    copy(status->message, sizeof status->message, complete ? "" : message);
    status->over = true;
    if (complete || !resumable)
        status->resume_command[0] = '\0';
    if (complete && is_restore(status)) /* also of namespaces without documents */
        status->ended_bytes = (double)status->bytes;
    pthread_cond_signal(&status->changed);
    pthread_mutex_unlock(&status->lock);
    pthread_join(status->thread, NULL);
    pthread_mutex_lock(&status->lock);
    status->stopped = true;
    pthread_cond_broadcast(&status->changed);
    pthread_mutex_unlock(&status->lock);
}

void sl_status_end(sl_status *status, sl_exit code, const char *message, bool resumable) {
    if (!status)
        return;
    sl_status_stop(status, code, message, resumable);
    pthread_cond_destroy(&status->changed);
    pthread_mutex_destroy(&status->lock);
    free(status);
}

/* ---- requests: control.json, removed by the load, which then shows the request's id ---- */

#define CONTROL_PATH (PATH_MAX + 32)
#define CONTROL_BYTES_MAX 4096
#define RATE_MAX 1000000000000

static char *path_of(const char *directory, char path[CONTROL_PATH]) {
    snprintf(path, CONTROL_PATH, "%s/" SL_WORK_CONTROL, directory);
    return path;
}

bool sl_control_write(const char *directory, const sl_control_request *request, sl_error *error) {
    char path[CONTROL_PATH];
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "request", request->id);
    if (request->rate_limit > 0)
        BSON_APPEND_INT64(&document, "rateLimit", (int64_t)request->rate_limit);
    else
        BSON_APPEND_NULL(&document, "rateLimit");
    char *text = sl_json_text(&document, error);
    bson_destroy(&document);
    /* Root may send a request to another user's load, which must be able to read the file. */
    bool ok = text && sl_file_publish(path_of(directory, path), text, strlen(text),
                                      SL_READERS_OWNER, error);
    free(text);
    return ok;
}

/* Reads the first bytes of a file. False when there is none that this process should read. */
static bool read_small(const char *path, char text[CONTROL_BYTES_MAX + 1], size_t *length) {
    int file = sl_private_file_open(path, O_RDONLY, NULL);
    if (file < 0)
        return false;
    ssize_t got = read(file, text, CONTROL_BYTES_MAX);
    close(file);
    *length = got > 0 ? (size_t)got : 0;
    return got >= 0;
}

static bool parse(const char *text, size_t length, sl_control_request *request) {
    bson_error_t wrong;
    bson_iter_t iter;
    uint32_t id_length = 0;
    bson_t *document = sl_json_parse(text, length, &wrong);
    bool ok =
        document && bson_iter_init_find(&iter, document, "request") && BSON_ITER_HOLDS_UTF8(&iter);
    if (ok) {
        const char *id = bson_iter_utf8(&iter, &id_length);
        ok = id_length > 0 && id_length < sizeof request->id;
        if (ok)
            memcpy(request->id, id, id_length + 1);
    }
    ok = ok && bson_iter_init_find(&iter, document, "rateLimit");
    if (ok && BSON_ITER_HOLDS_NULL(&iter)) {
        request->rate_limit = 0;
    } else if (ok) {
        int64_t rate = BSON_ITER_HOLDS_INT(&iter) ? bson_iter_as_int64(&iter) : 0;
        ok = rate > 0 && rate <= RATE_MAX;
        request->rate_limit = (uint64_t)rate;
    }
    bson_destroy(document);
    return ok;
}

bool sl_control_take(const char *directory, sl_control_request *request) {
    char path[CONTROL_PATH], text[CONTROL_BYTES_MAX + 1];
    size_t length;
    if (!read_small(path_of(directory, path), text, &length))
        return false;
    sl_private_file_remove(path);
    if (parse(text, length, request))
        return true;
    sl_log_warning("%s: not a request of `shardload status`; the file has been removed", path);
    return false;
}
