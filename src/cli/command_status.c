/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload status`: shows the status.json of a work directory, and sends the process that runs
 * there a new rate limit.
 *
 * The file alone does not show whether that process is alive. On this host its pid and start time
 * are looked up; on another host only the age of the file counts. */
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "load/status.h"
#include "report/json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
#include "util/process.h"
#include "util/text.h"

#include "status_show.h"

#define SILENT_SECONDS 15  /* a running load writes its status every second */
#define CONFIRM_SECONDS 60 /* how long to wait for a load to carry out a request */

static bool read_status(const char *directory, bson_t **status, sl_error *error) {
    char path[4200];
    struct stat facts;
    snprintf(path, sizeof path, "%s/" SL_STATUS_FILE, directory);
    if (stat(directory, &facts) != 0)
        return sl_error_set(error, SL_EXIT_USAGE, "%s: %s; name the work directory of a load",
                            directory, strerror(errno));
    if (!S_ISDIR(facts.st_mode))
        return sl_error_set(error, SL_EXIT_USAGE, "%s is a file: name the work directory of a load",
                            directory);
    if (stat(path, &facts) != 0 && errno == ENOENT)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s has no %s: it is not a work directory, or its load was refused "
                            "before it began; see shardload.log there",
                            directory, SL_STATUS_FILE);
    if (!sl_json_read_file(path, status, error))
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
    bool silent = sl_status_age(status) > SILENT_SECONDS;
    sl_host_identity(here);
    if (strcmp(here, sl_look_string(status, "process.hostIdentity")) != 0)
        return silent ? SL_LIVENESS_UNKNOWN : SL_LIVENESS_RUNNING;
    int64_t began = sl_look_int64(status, "process.started", -1);
    int64_t begins = sl_process_start(sl_look_int64(status, "process.pid", 0));
    if (begins == 0 || (begins > 0 && began > 0 && begins != began))
        return SL_LIVENESS_DEAD;
    return silent ? SL_LIVENESS_SILENT : SL_LIVENESS_RUNNING;
}

/* The number of documents per second on the command line; not from the environment or a file, which
 * are meant for loads. */
typedef struct given_rate {
    bool given;
} given_rate;

static void look_for_rate(void *context, const char *name, const char *value, const char *origin) {
    given_rate *rate = context;
    (void)value;
    if (strcmp(name, "rate-limit") == 0 && strcmp(origin, "command line") == 0)
        rate->given = true;
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
    given_rate rate = {0};
    const char *directory =
        sl_options_argument_count(options) == 1 ? sl_options_argument(options, 0) : NULL;
    sl_options_each(options, look_for_rate, &rate);
    if (!directory)
        sl_error_set(&error, SL_EXIT_USAGE, "name one work directory of a load");
    bool ok = directory && read_status(directory, &status, &error);
    if (ok && rate.given) {
        uint64_t limit = sl_option_is_word(options, "rate-limit", "unlimited")
                             ? 0
                             : sl_option_number(options, "rate-limit");
        ok = change_rate(directory, limit, &status, &error);
    }
    if (!ok) {
        sl_log_error(SL_LINES, error.message);
        bson_destroy(status);
        return error.code;
    }
    sl_liveness liveness = liveness_of(status);
    if (sl_option_flag(options, "json"))
        ok = sl_status_print_json(status, liveness, &error);
    else
        sl_status_print(status, liveness);
    if (!ok)
        sl_log_error(SL_LINES, error.message);
    bson_destroy(status);
    if (!ok)
        return error.code;
    return liveness == SL_LIVENESS_DEAD ? SL_EXIT_INTERRUPTED : SL_EXIT_OK;
}
