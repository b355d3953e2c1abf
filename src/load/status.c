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

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/process.h"

#include "status_text.h"

#define POLL_NS INT64_C(250000000)
#define WRITE_SECONDS 1.0

/* ---- the thread ---- */

/* A file that cannot be written is reported once; the load continues. */
static void publish(sl_status *status, const char *path, const char *text, size_t length,
                    bool readable, bool last) {
    sl_error error = {0};
    bool ok = last && !readable
                  ? sl_private_file_replace(path, text, length, &error)
                  : sl_file_publish(path, text, length, readable ? SL_READERS_ALL : SL_READERS_USER,
                                    &error);
    if (ok) {
        status->failed = false;
        return;
    }
    if (!status->failed)
        sl_log_warning(SL_LINES "; the load continues", error.message);
    status->failed = true;
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
    bool last = status->ended; /* the last status is synced: it must survive a power failure */
    if (status->directory[0])
        text = sl_status_text(status);
    if (status->metrics[0])
        metrics = sl_status_metrics(status, &length);
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
        sl_log_warning("out of memory: no %s is written", SL_STATUS_FILE);
        return NULL;
    }
    made->setup = *setup;
    made->part_count = parts;
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
        sl_private_file_remove(path);
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
    if (!sl_status_is_restore(status))
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
        copy(p->folder, sizeof p->folder, status->directory);
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
        status->earlier_bytes += p->viewed ? sl_status_earlier(p) : (double)p->bytes;
        status->ended_bytes += outcome->completed ? (double)p->bytes : sl_status_done(p);
        *p = (sl_status_part){0};
    }
    write_soon(status);
    pthread_mutex_unlock(&status->lock);
}

/* Waits until another thread has stopped the status. Under the lock. */
static void await_stop(sl_status *status) {
    while (!status->stopped)
        pthread_cond_wait(&status->changed, &status->lock);
}

void sl_status_stop(sl_status *status, sl_exit code, const char *message, bool resumable) {
    if (!status)
        return;
    pthread_mutex_lock(&status->lock);
    if (status->ended) {
        await_stop(status);
        pthread_mutex_unlock(&status->lock);
        return;
    }
    status->ended = true;
    status->code = sl_context_exit(code);
    copy(status->message, sizeof status->message, message);
    status->over = true;
    bool complete = code == SL_EXIT_OK || code == SL_EXIT_REJECTS;
    if (complete || !resumable)
        status->resume_command[0] = '\0';
    if (complete && sl_status_is_restore(status)) /* also of namespaces without documents */
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
    snprintf(path, CONTROL_PATH, "%s/" SL_CONTROL_FILE, directory);
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
