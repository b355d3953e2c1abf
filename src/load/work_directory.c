/* SPDX-License-Identifier: Apache-2.0 */
/* The output files of a load: the work directory and the reports. They are checked before anything
 * is loaded, so that a file that cannot be written is an error at the start, not hours later. */
#include "engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report/json.h"
#include "util/log.h"
#include "util/private_file.h"

/* Creates a folder named after target and time; with a number behind it if another load of the same
 * second has taken that name. */
static bool make_named_directory(sl_load *load) {
    const sl_load_config *config = load->config;
    bool cluster = config->sink == SL_SINK_CLUSTER;
    time_t now = time(NULL);
    struct tm local;
    char stamp[32], number[16] = "";
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    for (unsigned attempt = 2;; attempt++) {
        snprintf(load->work_directory, sizeof load->work_directory, "shardload-%s%s%s-%s%s",
                 cluster ? config->database : "bson", cluster ? "." : "",
                 cluster ? config->collection : "", stamp, number);
        if (mkdir(load->work_directory, 0700) == 0)
            return true;
        if (errno != EEXIST || attempt > 1000)
            return false;
        snprintf(number, sizeof number, "-%u", attempt);
    }
}

bool sl_work_directory_make(sl_load *load, sl_error *error) {
    const sl_load_config *config = load->config;
    bool made;
    if (config->work_directory) {
        if (strlen(config->work_directory) >= sizeof load->work_directory)
            return sl_error_set(error, SL_EXIT_USAGE, "--work-dir: longer than %zu bytes",
                                sizeof load->work_directory - 1);
        strcpy(load->work_directory, config->work_directory);
        /* A load can be resumed only from an existing folder. */
        made = config->resume ? access(load->work_directory, W_OK) == 0
                              : mkdir(load->work_directory, 0700) == 0 || errno == EEXIST;
    } else if (config->sink == SL_SINK_NULL) {
        return true; /* only a measurement: without a work directory */
    } else {
        made = make_named_directory(load);
    }
    if (!made) {
        sl_error_set(error, SL_EXIT_USAGE,
                     "cannot %s the work directory %s: %s; name another "
                     "one with --work-dir",
                     config->resume ? "use" : "create", load->work_directory, strerror(errno));
        load->work_directory[0] = '\0';
        return false;
    }
    sl_private_parent_sync(load->work_directory); /* else a power failure may take it away */
    char path[600];
    snprintf(path, sizeof path, "%s/run.json", load->work_directory);
    bool ok = sl_json_may_write_file(path, error);
    snprintf(path, sizeof path, "%s/shardload.log", load->work_directory);
    if (!ok || !sl_log_open_file(path, error)) {
        load->work_directory[0] = '\0';
        return false;
    }
    return true;
}

bool sl_report_check(sl_load *load, sl_error *error) {
    const char **const paths[] = {&load->report, &load->html};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (!*paths[i] || sl_json_may_write_file(*paths[i], error))
            continue;
        *paths[i] = NULL; /* reported once */
        return false;
    }
    return true;
}
