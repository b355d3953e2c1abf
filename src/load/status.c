/* SPDX-License-Identifier: Apache-2.0 */
/* The status thread. One lock guards everything that changes; it is held while the figures are taken,
 * not while files are written, so that a slow disk delays no other thread.
 *
 *     main thread                               status thread
 *     sl_status_run(run): lock, set, unlock     every quarter of a second: lock
 *     ... workers run ...                         takes a view of `run`, if there is one
 *     sl_status_run(NULL): lock, keeps the        builds the texts once a second, or at once when
 *       last view, clears `run`, unlock             something has changed
 *     frees the run                             unlock; writes the files; looks for a request
 *
 * A run is freed only after sl_status_run(NULL), which waits for the lock, so the thread never reads
 * a run that is gone. Requests change only the rate limit, which has a lock of its own. */
#include "status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/process.h"

#include "metrics.h"
#include "progress_json.h"

#define POLL_NS INT64_C(250000000)
#define WRITE_SECONDS 1.0

/* The namespace of a restore. */
typedef struct sl_status_place {
    char name[300], folder[PATH_MAX];
    size_t number, count; /* 0: no restore */
    uint64_t before, bytes, total;
} sl_status_place;

struct sl_status {
    /* Set at the start. */
    sl_status_setup setup;
    char command[16], target[300], directory[PATH_MAX], metrics[PATH_MAX];
    char resume_command[200], resume_directory[PATH_MAX];
    char host[SL_HOST_ROOM], host_name[256];
    int64_t started_ms, started_ns;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    bool over, urgent; /* urgent: write the files at once */
    char phase[32];
    int64_t phase_since;
    const sl_run *run; /* NULL: none runs */
    const sl_destination *destination;
    sl_viewer viewer;
    sl_view view; /* the last one */
    bool viewed;
    uint64_t records_before, documents_before, rejects_before; /* of earlier namespaces */
    sl_status_place place;
    char request[40]; /* the last one that was carried out */
    bool ended;
    sl_exit code;
    char message[600];

    bool failed; /* the thread's: a warning was logged */
};

/* ---- the texts; under the lock ---- */

static const char *state_of(const sl_status *status) {
    return !status->ended                                                  ? "running"
           : status->code == SL_EXIT_OK || status->code == SL_EXIT_REJECTS ? "finished"
           : status->code == SL_EXIT_INTERRUPTED                           ? "interrupted"
                                                                           : "failed";
}

/* The share of all namespaces of a restore. */
static double share_of_all(const sl_status *status) {
    const sl_status_place *place = &status->place;
    double share = status->viewed && status->view.stored_total > 0 ? status->view.figures.share : 0;
    return place->total > 0
               ? ((double)place->before + share * (double)place->bytes) / (double)place->total
               : 0;
}

/* Seconds left of a restore, by its rate so far; below 0 when that is not known. */
static double left_of_all(const sl_status *status) {
    double share = share_of_all(status), seconds = sl_seconds_since(status->started_ns);
    return share > 0 && seconds > 1 ? seconds * (1 - share) / share : -1;
}

static void append_place(const sl_status *status, bson_t *json) {
    const sl_status_place *place = &status->place;
    bson_t inner;
    BSON_APPEND_DOCUMENT_BEGIN(json, "namespace", &inner);
    BSON_APPEND_UTF8(&inner, "name", place->name);
    BSON_APPEND_UTF8(&inner, "workDirectory", place->folder);
    BSON_APPEND_INT64(&inner, "number", (int64_t)place->number);
    BSON_APPEND_INT64(&inner, "count", (int64_t)place->count);
    bson_append_document_end(json, &inner);
    BSON_APPEND_INT64(json, "sourceBytesTotal", (int64_t)place->total);
    BSON_APPEND_INT64(json, "sourceBytes", (int64_t)(share_of_all(status) * (double)place->total));
    BSON_APPEND_DOUBLE(json, "share", share_of_all(status));
    if (left_of_all(status) >= 0)
        BSON_APPEND_DOUBLE(json, "secondsLeft", left_of_all(status));
    uint64_t records = status->records_before, documents = status->documents_before,
             rejects = status->rejects_before;
    if (status->viewed) {
        records += status->view.records;
        documents += status->view.documents;
        rejects += status->view.rejects;
    }
    BSON_APPEND_INT64(json, "records", (int64_t)records);
    BSON_APPEND_INT64(json, "documents", (int64_t)documents);
    BSON_APPEND_INT64(json, "rejects", (int64_t)rejects);
}

/* status.json; NULL without memory. */
static char *status_text(sl_status *status) {
    bson_t json = BSON_INITIALIZER, inner;
    sl_error error;
    BSON_APPEND_INT32(&json, "statusVersion", SL_STATUS_VERSION);
    BSON_APPEND_UTF8(&json, "version", status->setup.config->program_version);
    BSON_APPEND_UTF8(&json, "command", status->command);
    BSON_APPEND_UTF8(&json, "target", status->target);
    BSON_APPEND_UTF8(&json, "state", state_of(status));
    if (status->ended) {
        BSON_APPEND_INT32(&json, "exitCode", (int32_t)status->code);
        BSON_APPEND_UTF8(&json, "message", status->message);
    }
    BSON_APPEND_UTF8(&json, "phase", status->phase);
    BSON_APPEND_DOUBLE(&json, "phaseSeconds", sl_seconds_since(status->phase_since));
    BSON_APPEND_DOUBLE(&json, "elapsedSeconds", sl_seconds_since(status->started_ns));
    BSON_APPEND_INT64(&json, "startedMilliseconds", status->started_ms);
    BSON_APPEND_INT64(&json, "heartbeatMilliseconds", sl_wall_clock_ms());
    BSON_APPEND_DOCUMENT_BEGIN(&json, "process", &inner);
    BSON_APPEND_INT64(&inner, "pid", getpid());
    BSON_APPEND_INT64(&inner, "started", sl_process_start(getpid()));
    BSON_APPEND_UTF8(&inner, "host", status->host_name);
    BSON_APPEND_UTF8(&inner, "hostIdentity", status->host);
    bson_append_document_end(&json, &inner);
    BSON_APPEND_UTF8(&json, "workDirectory", status->directory);
    BSON_APPEND_BOOL(&json, "resumable", status->resume_command[0] != '\0');
    if (status->resume_command[0]) {
        BSON_APPEND_UTF8(&json, "resumeCommand", status->resume_command);
        BSON_APPEND_UTF8(&json, "resumeWorkDirectory", status->resume_directory);
    }
    uint64_t rate = atomic_load(&status->setup.limit->rate);
    BSON_APPEND_DOCUMENT_BEGIN(&json, "limit", &inner);
    if (rate > 0)
        BSON_APPEND_INT64(&inner, "documentsPerSecond", (int64_t)rate);
    else
        BSON_APPEND_NULL(&inner, "documentsPerSecond");
    BSON_APPEND_UTF8(&inner, "request", status->request);
    bson_append_document_end(&json, &inner);
    if (status->place.count > 0)
        append_place(status, &json);
    if (status->viewed && status->run) {
        BSON_APPEND_DOCUMENT_BEGIN(&json, "load", &inner);
        sl_view_append(&status->view, status->run, status->destination, &inner);
        bson_append_document_end(&json, &inner);
    } else if (status->viewed) {
        static const sl_destination none;
        BSON_APPEND_DOCUMENT_BEGIN(&json, "load", &inner);
        sl_view_append(&status->view, NULL, &none, &inner);
        bson_append_document_end(&json, &inner);
    }
    char *text = sl_json_text(&json, &error);
    bson_destroy(&json);
    return text;
}

static char *metrics_text(sl_status *status, size_t *length) {
    bool restore = status->place.count > 0, viewed = status->viewed;
    const sl_view *view = viewed ? &status->view : NULL;
    const sl_metrics_facts facts = {
        .command = status->command,
        .version = status->setup.config->program_version,
        .target = status->target,
        .phase = status->ended ? "ended" : status->phase,
        .started = (double)status->started_ms / 1e3,
        .now = (double)sl_wall_clock_ms() / 1e3,
        .elapsed = sl_seconds_since(status->started_ns),
        .ended = status->ended,
        .exit_code = status->code,
        .share = restore                            ? share_of_all(status)
                 : viewed && view->stored_total > 0 ? view->figures.share
                                                    : -1,
        .left = status->ended                                     ? -1
                : restore                                         ? left_of_all(status)
                : viewed && status->run && view->stored_total > 0 ? view->figures.left
                                                                  : -1,
        .rate_limit = atomic_load(&status->setup.limit->rate),
        .records_before = status->records_before,
        .documents_before = status->documents_before,
        .rejects_before = status->rejects_before,
    };
    return sl_metrics_text(&facts, view, status->run, status->destination, length);
}

/* ---- the thread ---- */

/* A file that cannot be written is reported once; the load goes on. */
static void publish(sl_status *status, const char *path, const char *text, size_t length,
                    bool readable, bool last) {
    sl_error error = {0};
    bool ok = last && !readable ? sl_private_file_replace(path, text, length, &error)
                                : sl_file_publish(path, text, length, readable, &error);
    if (ok) {
        status->failed = false;
        return;
    }
    if (!status->failed)
        sl_log_warning(SL_LINES "; the load continues", error.message);
    status->failed = true;
}

static void take_view(sl_status *status) {
    if (!status->run)
        return;
    status->view = sl_view_take(&status->viewer);
    status->viewed = true;
}

/* Writes both files. Called without the lock. */
static void write_files(sl_status *status) {
    char path[PATH_MAX + 32], *metrics = NULL, *text = NULL;
    size_t length = 0;
    pthread_mutex_lock(&status->lock);
    take_view(status);
    status->urgent = false;
    bool last = status->ended; /* the last status is synced: it must survive a power failure */
    if (status->directory[0])
        text = status_text(status);
    if (status->metrics[0])
        metrics = metrics_text(status, &length);
    pthread_mutex_unlock(&status->lock);
    snprintf(path, sizeof path, "%s/" SL_STATUS_FILE, status->directory);
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
        if (status->run && sl_seconds_since(status->viewer.start) >= status->viewer.next_moment)
            take_view(status);
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
    sl_status *made = calloc(1, sizeof *made);
    if (!made) {
        sl_log_warning("out of memory: no %s is written", SL_STATUS_FILE);
        return NULL;
    }
    made->setup = *setup;
    copy(made->command, sizeof made->command, setup->command);
    copy(made->target, sizeof made->target, setup->target);
    absolute(made->directory, setup->directory);
    copy(made->metrics, sizeof made->metrics, setup->metrics);
    const sl_status *above = setup->above;
    copy(made->resume_command, sizeof made->resume_command,
         above ? above->resume_command : setup->resume_command);
    absolute(made->resume_directory, above ? above->directory : setup->resume_directory);
    copy(made->phase, sizeof made->phase, "starting");
    sl_host_identity(made->host);
    if (gethostname(made->host_name, sizeof made->host_name - 1) != 0)
        copy(made->host_name, sizeof made->host_name, "?");
    made->started_ms = sl_wall_clock_ms();
    made->started_ns = made->phase_since = sl_clock_ns();
    pthread_mutex_init(&made->lock, NULL);
    sl_clock_init_condition(&made->changed);
    if (made->directory[0]) { /* a request to an earlier process */
        snprintf(path, sizeof path, "%s/" SL_CONTROL_FILE, made->directory);
        unlink(path);
    }
    write_files(made);
    int code = sl_thread_start(&made->thread, write_status, made);
    if (code == 0)
        return made;
    sl_log_warning("no thread for %s: %s", SL_STATUS_FILE, strerror(code));
    pthread_cond_destroy(&made->changed);
    pthread_mutex_destroy(&made->lock);
    free(made);
    return NULL;
}

/* Under the lock. */
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

void sl_status_run(sl_status *status, const sl_run *run, const sl_destination *destination) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    take_view(status); /* of a run that ends */
    status->run = run;
    status->destination = destination;
    if (run)
        sl_viewer_init(&status->viewer, run, sl_clock_ns());
    take_view(status);
    pthread_mutex_unlock(&status->lock);
    sl_status_run(status->setup.above, run, destination);
}

void sl_status_namespace(sl_status *status, const char *name, const char *folder, size_t number,
                         size_t count, uint64_t before, uint64_t bytes, uint64_t total) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    if (status->viewed) {
        status->records_before += status->view.records;
        status->documents_before += status->view.documents;
        status->rejects_before += status->view.rejects;
    }
    status->viewed = false;
    status->place = (sl_status_place){
        .number = number, .count = count, .before = before, .bytes = bytes, .total = total};
    copy(status->place.name, sizeof status->place.name, name);
    absolute(status->place.folder, folder);
    write_soon(status);
    pthread_mutex_unlock(&status->lock);
}

void sl_status_earlier(sl_status *status, uint64_t records, uint64_t documents, uint64_t rejects) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    status->records_before += records;
    status->documents_before += documents;
    status->rejects_before += rejects;
    pthread_mutex_unlock(&status->lock);
}

void sl_status_end(sl_status *status, sl_exit code, const char *message, bool resumable) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    status->ended = true;
    status->code = code;
    copy(status->message, sizeof status->message, message);
    status->over = true;
    bool complete = code == SL_EXIT_OK || code == SL_EXIT_REJECTS;
    if (complete || !resumable)
        status->resume_command[0] = '\0';
    if (complete && status->place.count > 0) { /* of a restore: all namespaces */
        status->place.before = status->place.total;
        status->place.bytes = 0;
    }
    pthread_cond_signal(&status->changed);
    pthread_mutex_unlock(&status->lock);
    pthread_join(status->thread, NULL);
    pthread_cond_destroy(&status->changed);
    pthread_mutex_destroy(&status->lock);
    free(status);
}
