/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload status`: shows the status.json of a work directory, and sends the process that runs
 * there a new rate limit.
 *
 * The file alone does not show whether that process is alive. On this host its pid and start time
 * are looked up; on another host only the age of the file counts. */
#include "commands.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "bson/bson_lookup.h"
#include "load/run.h"
#include "load/status.h"
#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/process.h"
#include "util/text.h"

#define SILENT_SECONDS 15  /* a running load writes its status every second */
#define CONFIRM_SECONDS 60 /* how long to wait for a load to carry out a request */

/* What is known about the process that writes the file. */
typedef enum sl_liveness {
    SL_LIVENESS_RUNNING,
    SL_LIVENESS_SILENT,  /* alive, but its status is old: it is stopped, or its disk hangs */
    SL_LIVENESS_UNKNOWN, /* on another host, and its status is old */
    SL_LIVENESS_DEAD,
    SL_LIVENESS_ENDED,
} sl_liveness;

/* The file may be damaged: a number that is not a count becomes 0. */
static uint64_t whole(double value) {
    return value > 0 && value < 1e18 ? (uint64_t)value : 0;
}

/* Seconds since the file was written. */
static double age_of(const bson_t *status) {
    const double when = sl_look_amount(status, "heartbeatMilliseconds", 0);
    return fmax(0, ((double)sl_wall_clock_ms() - when) / 1e3);
}

static const char *state_of(const bson_t *status, sl_liveness liveness) {
    static const char *const names[] = {[SL_LIVENESS_SILENT] = "silent",
                                        [SL_LIVENESS_UNKNOWN] = "unknown",
                                        [SL_LIVENESS_DEAD] = "dead"};
    return liveness == SL_LIVENESS_RUNNING || liveness == SL_LIVENESS_ENDED
               ? sl_look_string(status, "state")
               : names[liveness];
}

static bool print_json(const bson_t *status, sl_liveness liveness, sl_error *error) {
    bson_t shown = BSON_INITIALIZER;
    bson_copy_to_excluding_noinit(status, &shown, "state", NULL);
    BSON_APPEND_UTF8(&shown, "state", state_of(status, liveness));
    BSON_APPEND_DOUBLE(&shown, "statusAgeSeconds", age_of(status));
    char *text = sl_json_text(&shown, error);
    bson_destroy(&shown);
    if (text)
        sl_print(SL_LINES, text);
    free(text);
    return text != NULL;
}

/* ---- the table ---- */

__attribute__((format(printf, 2, 3))) static void row(const char *name, const char *format, ...) {
    char text[5000];
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(text, sizeof text, format, arguments);
    va_end(arguments);
    sl_print("  %-14s %-s\n", name, text);
}

static void print_waits(const bson_t *status) {
    bson_iter_t list, item;
    double shares[2] = {0, 0};
    const char *names[2] = {"", ""};
    if (!sl_look_find(status, "load.waitsFor", &list) || !BSON_ITER_HOLDS_DOCUMENT(&list) ||
        !bson_iter_recurse(&list, &item))
        return;
    while (bson_iter_next(&item)) {
        double share = BSON_ITER_HOLDS_NUMBER(&item) ? bson_iter_as_double(&item) : 0;
        unsigned at = share > shares[0] ? 0 : 1;
        if (share <= shares[at])
            continue;
        if (at == 0) {
            shares[1] = shares[0];
            names[1] = names[0];
        }
        shares[at] = share;
        names[at] = bson_iter_key(&item);
    }
    if (shares[0] > 0 && shares[1] >= 0.005)
        row("waits for", "%s %.0f %%, %s %.0f %%", sl_stage_name_of(names[0]), 100 * shares[0],
            sl_stage_name_of(names[1]), 100 * shares[1]);
    else if (shares[0] > 0)
        row("waits for", "%s %.0f %%", sl_stage_name_of(names[0]), 100 * shares[0]);
}

/* The share of a load, or of all namespaces of a restore. */
static void print_share(const bson_t *status, bool restore) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    const char *share = restore ? "share" : "load.share";
    double done = sl_look_amount(status, share, -1),
           left = sl_look_amount(status, restore ? "secondsLeft" : "load.secondsLeft", -1);
    double bytes = sl_look_amount(status, restore ? "sourceBytes" : "load.sourceBytes", 0),
           total =
               sl_look_amount(status, restore ? "sourceBytesTotal" : "load.sourceBytesTotal", 0);
    if (done >= 0 && total > 0)
        row("done", "%.1f %% (%s of %s)", 100 * done, sl_human_bytes(bytes, a),
            sl_human_bytes(total, b));
    else if (done >= 0)
        row("done", "%.1f %%", 100 * done);
    else
        row("done", "? (the size of the sources is not known)");
    if (left >= 0)
        row("time left", "about %s", sl_human_seconds(left, a));
    else
        row("time left", "?");
}

static void print_figures(const bson_t *status, bool running) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM], c[SL_HUMAN_ROOM];
    bson_iter_t iter;
    bool restore = sl_look_find(status, "namespaces", &iter);
    if (restore)
        row("namespaces", "%lld of %lld completed",
            (long long)sl_look_int64(status, "namespaces.completed", 0),
            (long long)sl_look_int64(status, "namespaces.count", 0));
    for (sl_walk walk = sl_walk_start(status, "namespaces.running");
         running && sl_walk_next(&walk);)
        row("loading", "%s, %.0f %%", sl_look_string(&walk.item, "name"),
            100 * sl_look_amount(&walk.item, "share", 0));
    if (sl_look_amount(status, "load.seconds", -1) < 0) {
        row("documents", "none yet");
        return;
    }
    if (running)
        print_share(status, restore);
    const char *documents = restore ? "documents" : "load.documents";
    row("documents", "%s", sl_human_count((uint64_t)sl_look_int64(status, documents, 0), a));
    if (running) {
        bool bson = sl_look_amount(status, "load.bsonBytesPerSecond", -1) >= 0;
        row("rate", "%s/s now, %s/s overall, %s/s of %s",
            sl_human_count(whole(sl_look_amount(status, "load.documentsPerSecond", 0)), a),
            sl_human_count(whole(sl_look_amount(status, "load.documentsPerSecondOverall", 0)), b),
            sl_human_bytes(
                sl_look_amount(status, bson ? "load.bsonBytesPerSecond" : "load.textBytesPerSecond",
                               0),
                c),
            bson ? "BSON" : "text");
    }
    int64_t rejects = sl_look_int64(status, restore ? "rejects" : "load.rejects", 0);
    if (rejects > 0)
        row("rejects", "%s; see %s%s/" SL_WORK_REJECTS, sl_human_count((uint64_t)rejects, a),
            sl_look_string(status, "workDirectory"), restore ? "/*" : "");
    int64_t retries = sl_look_int64(status, "load.retries", 0);
    if (retries > 0)
        row("retries", "%s", sl_plural((uint64_t)retries, "batch[|es] sent again"));
    if (!running)
        return;
    if (sl_look_amount(status, "load.silent.seconds", 0) > 0)
        row("no answer", "from %s for %s", sl_look_string(status, "load.silent.shard"),
            sl_human_seconds(sl_look_amount(status, "load.silent.seconds", 0), a));
    print_waits(status);
    row("threads", "%lld of at most %lld, batches of %s",
        (long long)sl_look_int64(status, "load.threads", 0),
        (long long)sl_look_int64(status, "load.threadsMost", 0),
        sl_plural((uint64_t)sl_look_int64(status, "load.batchSize", 0), "document"));
}

static void print_limit(const bson_t *status) {
    char a[SL_HUMAN_ROOM];
    int64_t limit = sl_look_int64(status, "limit.documentsPerSecond", 0);
    if (limit > 0)
        row("rate limit", "%s documents/s", sl_human_count((uint64_t)limit, a));
    else
        row("rate limit", "none");
}

static void print_advice(const bson_t *status, sl_liveness liveness) {
    char age[SL_HUMAN_ROOM], folder[SL_WORD_ROOM(4096)];
    sl_human_seconds(age_of(status), age);
    const char *host = sl_look_string(status, "process.host");
    long long pid = (long long)sl_look_int64(status, "process.pid", 0);
    if (liveness == SL_LIVENESS_SILENT)
        sl_print("the process has not written its status for %s: it is stopped, or its disk\n"
                 "hangs or is full\n",
                 age);
    if (liveness == SL_LIVENESS_UNKNOWN)
        sl_print("the status was last written %s ago: check on %s whether process %lld still "
                 "runs\n",
                 age, host, pid);
    if (liveness == SL_LIVENESS_DEAD)
        sl_print("process %lld ended without finishing, %s ago\n", pid, age);
    bool complete = strcmp(sl_look_string(status, "state"), "finished") == 0;
    if (liveness == SL_LIVENESS_RUNNING || liveness == SL_LIVENESS_SILENT || complete)
        return;
    if (sl_look_flag(status, "resumable"))
        sl_print(
            "to complete it%s, give the same command with\n  --resume --work-dir %s\n",
            liveness == SL_LIVENESS_UNKNOWN ? " if it does not" : "",
            sl_shell_word(sl_look_string(status, "resumeWorkDirectory"), folder, sizeof folder));
    else
        sl_print("it cannot be resumed\n");
}

/* The lines are indented, so that none of them seems to be one of this program: the file may be
 * that of another user. */
static void print_message(const char *message) {
    for (size_t length; *message; message += length + (message[length] != '\0')) {
        length = strcspn(message, "\n");
        sl_print("  %.*s\n", (int)length, message);
    }
}

static void print_status(const bson_t *status, sl_liveness liveness) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    bool running = liveness != SL_LIVENESS_ENDED;
    const char *target = sl_look_string(status, "target");
    sl_print("%s%s%s: %s\n", sl_look_string(status, "command"),
             !*target                                                    ? ""
             : strcmp(sl_look_string(status, "command"), "restore") == 0 ? " of "
                                                                         : " into ",
             target, state_of(status, liveness));
    row("work directory", "%s", sl_look_string(status, "workDirectory"));
    row("process", "%lld on %s", (long long)sl_look_int64(status, "process.pid", 0),
        sl_look_string(status, "process.host"));
    row("phase", "%s, for %s of %s", sl_look_string(status, "phase"),
        sl_human_seconds(sl_look_amount(status, "phaseSeconds", 0), a),
        sl_human_seconds(sl_look_amount(status, "elapsedSeconds", 0), b));
    print_figures(status, running);
    if (running)
        print_limit(status);
    if (!running) {
        row("exit code", "%lld", (long long)sl_look_int64(status, "exitCode", 0));
        print_message(sl_look_string(status, "message"));
    }
    print_advice(status, liveness);
}

/* ---- the status and its process ---- */

/* A load of several tables has a work directory for each of them in its own: sets the name of
 * one. */
static bool find_inside(const char *directory, char name[NAME_MAX + 1]) {
    char path[4200];
    struct stat facts;
    bool found = false;
    DIR *folder = opendir(directory);
    for (struct dirent *one; folder && !found && (one = readdir(folder));) {
        snprintf(name, NAME_MAX + 1, "%s", one->d_name);
        int length = snprintf(path, sizeof path, "%s/%s/" SL_WORK_STATUS, directory, name);
        found = *name != '.' && length < (int)sizeof path && stat(path, &facts) == 0;
    }
    if (folder)
        closedir(folder);
    return found;
}

static bool read_status(const char *directory, bson_t **status, sl_error *error) {
    char path[4200], name[NAME_MAX + 1];
    struct stat facts;
    snprintf(path, sizeof path, "%s/" SL_WORK_STATUS, directory);
    if (stat(directory, &facts) != 0)
        return sl_error_set(error, SL_EXIT_USAGE, "%s: %s; name the work directory of a load",
                            directory, strerror(errno));
    if (!S_ISDIR(facts.st_mode))
        return sl_error_set(error, SL_EXIT_USAGE, "%s is a file: name the work directory of a load",
                            directory);
    const bool none = stat(path, &facts) != 0 && errno == ENOENT;
    if (none && find_inside(directory, name))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s is of a load of several tables, each of which has a work directory "
                            "in it: name one of these, such as %s/%s",
                            directory, directory, name);
    if (none)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s has no %s: it is not a work directory, or its load was refused "
                            "before it began; see shardload.log there",
                            directory, SL_WORK_STATUS);
    if (!sl_json_read_private(path, status, error))
        return false;
    int64_t version = sl_look_int64(*status, "statusVersion", 0);
    if (version == SL_STATUS_VERSION)
        return true;
    bson_destroy(*status);
    *status = NULL;
    return sl_error_set(error, SL_EXIT_USAGE,
                        "%s is of version %lld, and this program reads version %d: use the version "
                        "of shardload that runs the load",
                        path, (long long)version, SL_STATUS_VERSION);
}

static sl_liveness liveness_of(const bson_t *status) {
    char here[SL_HOST_ROOM];
    if (strcmp(sl_look_string(status, "state"), "running") != 0)
        return SL_LIVENESS_ENDED;
    bool silent = age_of(status) > SILENT_SECONDS;
    sl_host_identity(here);
    if (strcmp(here, sl_look_string(status, "process.hostIdentity")) != 0)
        return silent ? SL_LIVENESS_UNKNOWN : SL_LIVENESS_RUNNING;
    int64_t began = sl_look_int64(status, "process.started", -1);
    int64_t begins = sl_process_start(sl_look_int64(status, "process.pid", 0));
    if (begins == 0 || (begins > 0 && began > 0 && begins != began))
        return SL_LIVENESS_DEAD;
    return silent ? SL_LIVENESS_SILENT : SL_LIVENESS_RUNNING;
}

/* Sends the request, and waits until the load has carried it out. */
static bool change_rate(const char *directory, uint64_t rate, bson_t **status, sl_error *error) {
    sl_control_request request = {.rate_limit = rate};
    sl_liveness liveness = liveness_of(*status);
    if (liveness != SL_LIVENESS_RUNNING && liveness != SL_LIVENESS_SILENT)
        return sl_error_set(error, SL_EXIT_USAGE, "%s: the rate limit cannot be changed, since %s",
                            directory,
                            liveness == SL_LIVENESS_ENDED  ? "the load has ended"
                            : liveness == SL_LIVENESS_DEAD ? "the load died"
                                                           : "its process has not written its "
                                                             "status");
    snprintf(request.id, sizeof request.id, "%ld-%lld", (long)getpid(),
             (long long)sl_wall_clock_ms());
    if (!sl_control_write(directory, &request, error))
        return false;
    for (int64_t begin = sl_clock_ns(); sl_seconds_since(begin) < CONFIRM_SECONDS;) {
        nanosleep(&(struct timespec){0, 50000000}, NULL);
        bson_t *now = NULL;
        if (!read_status(directory, &now, error))
            return false;
        bson_destroy(*status);
        *status = now;
        if (strcmp(sl_look_string(now, "limit.request"), request.id) == 0)
            return true;
        liveness = liveness_of(now);
        if (liveness == SL_LIVENESS_ENDED || liveness == SL_LIVENESS_DEAD) {
            sl_control_take(directory, &request);
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s: the load %s before the rate limit was changed", directory,
                                liveness == SL_LIVENESS_ENDED ? "ended" : "died");
        }
    }
    sl_control_take(directory, &request);
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "%s: the load did not apply the new rate limit within %d s; another `shardload "
        "status` may have replaced the request, or the process is stopped",
        directory, CONFIRM_SECONDS);
}

int sl_command_status(const sl_options *options) {
    sl_error error = {0};
    bson_t *status = NULL;
    /* One from the environment or a file is meant for loads. */
    const bool rate_given = sl_option_origin_of(options, "rate-limit") == SL_FROM_COMMAND_LINE;
    const char *directory =
        sl_options_argument_count(options) == 1 ? sl_options_argument(options, 0) : NULL;
    if (!directory)
        sl_error_set(&error, SL_EXIT_USAGE, "name one work directory of a load");
    bool ok = directory && read_status(directory, &status, &error);
    if (ok && rate_given) {
        uint64_t limit = sl_option_is_word(options, "rate-limit", "unlimited")
                             ? 0
                             : sl_option_number(options, "rate-limit");
        ok = change_rate(directory, limit, &status, &error);
    }
    sl_liveness liveness = ok ? liveness_of(status) : SL_LIVENESS_UNKNOWN;
    if (ok && sl_option_flag(options, "json"))
        ok = print_json(status, liveness, &error);
    else if (ok)
        print_status(status, liveness);
    if (!ok)
        sl_log_error(SL_LINES, error.message);
    bson_destroy(status);
    return !ok ? (int)error.code : liveness == SL_LIVENESS_DEAD ? SL_EXIT_INTERRUPTED : SL_EXIT_OK;
}
