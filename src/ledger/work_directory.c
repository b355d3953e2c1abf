/* SPDX-License-Identifier: Apache-2.0 */
/* The output files of a load: the work directory and the reports. They are checked before anything
 * is loaded, so that a file that cannot be written is an error at the start, not hours later. */
#include "work_directory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "report/json.h"
#include "util/log.h"
#include "util/private_file.h"

/* Creates a folder named after target and time; with a number appended if another load of the same
 * second has used that name. */
static bool make_named_directory(const sl_load_config *config,
                                 char directory[SL_WORK_DIRECTORY_ROOM]) {
    bool cluster = config->sink == SL_SINK_CLUSTER;
    time_t now = time(NULL);
    struct tm local;
    char stamp[32], number[16] = "";
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    for (unsigned attempt = 2;; attempt++) {
        snprintf(directory, SL_WORK_DIRECTORY_ROOM, "shardload-%s%s%s-%s%s",
                 cluster ? config->database : "bson", cluster ? "." : "",
                 cluster ? config->collection : "", stamp, number);
        if (mkdir(directory, 0700) == 0)
            return true;
        if (errno != EEXIST || attempt > 1000)
            return false;
        snprintf(number, sizeof number, "-%u", attempt);
    }
}

/* The files that a load creates before it changes anything. */
static const char *const files_of_a_start[] = {"shardload.log", "journal", "status.json",
                                               "control.json"};
enum { FILES_OF_A_START = sizeof files_of_a_start / sizeof files_of_a_start[0] };

static bool is_of_a_start(const char *name) {
    for (size_t i = 0; i < FILES_OF_A_START; i++) {
        if (strcmp(name, files_of_a_start[i]) == 0)
            return true;
    }
    return false;
}

/* Does the folder contain files? Unless `all`, the files of a start do not count. */
static bool holds_files(const char *path, bool all) {
    DIR *folder = opendir(path);
    bool found = !folder;
    for (const struct dirent *entry; !found && (entry = readdir(folder)) != NULL;)
        found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                (all || !is_of_a_start(entry->d_name));
    if (folder)
        closedir(folder);
    return found;
}

void sl_work_directory_abandon(const char *directory, sl_work_directory_before before) {
    char path[SL_WORK_DIRECTORY_ROOM + 16];
    if (!directory[0] || before == SL_WORK_DIRECTORY_USED || holds_files(directory, false))
        return;
    sl_log_close_file();
    for (size_t i = 0; i < FILES_OF_A_START; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files_of_a_start[i]);
        unlink(path);
    }
    if (before == SL_WORK_DIRECTORY_ABSENT)
        rmdir(directory);
}

bool sl_work_directory_make(const sl_load_config *config, char directory[SL_WORK_DIRECTORY_ROOM],
                            sl_work_directory_before *before, sl_error *error) {
    bool made;
    *before = SL_WORK_DIRECTORY_USED;
    if (config->work_directory) {
        if (strlen(config->work_directory) >= SL_WORK_DIRECTORY_ROOM)
            return sl_error_set(error, SL_EXIT_USAGE, "--work-dir: longer than %zu bytes",
                                (size_t)SL_WORK_DIRECTORY_ROOM - 1);
        strcpy(directory, config->work_directory);
        /* A load can be resumed only from an existing folder. */
        if (config->resume)
            made = access(directory, W_OK) == 0;
        else if ((made = mkdir(directory, 0700) == 0))
            *before = SL_WORK_DIRECTORY_ABSENT;
        else if ((made = errno == EEXIST) && !holds_files(directory, true))
            *before = SL_WORK_DIRECTORY_EMPTY;
    } else if (config->sink == SL_SINK_NULL) {
        return true; /* a measurement has no work directory */
    } else {
        made = make_named_directory(config, directory);
        *before = SL_WORK_DIRECTORY_ABSENT;
    }
    if (!made) {
        sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                     "cannot %s the work directory %s: %s; name another "
                     "one with --work-dir",
                     config->resume ? "use" : "create", directory, strerror(errno));
        directory[0] = '\0';
        return false;
    }
    sl_private_parent_sync(directory); /* otherwise a power failure may remove it */
    char path[600];
    snprintf(path, sizeof path, "%s/run.json", directory);
    bool ok = sl_json_may_write_file(path, error);
    snprintf(path, sizeof path, "%s/shardload.log", directory);
    if (!ok || !sl_log_open_file(path, error)) {
        sl_work_directory_abandon(directory, *before);
        directory[0] = '\0';
        return false;
    }
    return true;
}

bool sl_report_check(const char **path, sl_error *error) {
    if (!*path || sl_json_may_write_file(*path, error))
        return true;
    *path = NULL;
    return false;
}
