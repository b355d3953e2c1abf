/* SPDX-License-Identifier: Apache-2.0 */
/* The output files of a load: the work directory and the reports. They are checked before anything
 * is loaded, so that a file that cannot be written is an error at the start, not hours later. */
#include "work_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/json.h"
#include "util/log.h"
#include "util/private_file.h"

/* Creates a folder named after target or label, and time. */
static bool make_named_directory(const sl_load_config *config, const char *label,
                                 char directory[SL_WORK_DIRECTORY_ROOM], bool *created,
                                 sl_error *error) {
    char name[300];
    bool cluster = !label && config->sink == SL_SINK_CLUSTER;
    snprintf(name, sizeof name, "%s%s%s",
             label     ? label
             : cluster ? config->database
                       : "bson",
             cluster ? "." : "", cluster ? config->collection : "");
    for (char *slash; (slash = strchr(name, '/')) != NULL;) /* of a collection's name */
        *slash = '-';
    return sl_private_folder_make_named(name, directory, SL_WORK_DIRECTORY_ROOM, created, error);
}

/* The files that a load creates before it changes anything. */
static const char *const files_of_a_start[] = {SL_WORK_LOG,     SL_WORK_JOURNAL, SL_WORK_STATUS,
                                               SL_WORK_CONTROL, SL_WORK_REJECTS, SL_WORK_OPTIONS};
enum { FILES_OF_A_START = sizeof files_of_a_start / sizeof files_of_a_start[0] };

/* Is there a file in the folder, besides the first `count` files of a start? */
static bool holds_files(const char *path, size_t count) {
    DIR *folder = opendir(path);
    bool found = !folder;
    for (const struct dirent *entry; !found && (entry = readdir(folder)) != NULL;)
        found = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                !sl_is_listed(entry->d_name, files_of_a_start, count);
    if (folder)
        closedir(folder);
    return found;
}

/* Is the locked log still the log of the folder? */
static bool is_log_of(const char *directory, int log) {
    char path[SL_WORK_DIRECTORY_ROOM + 32];
    struct stat locked, named;
    snprintf(path, sizeof path, "%s/" SL_WORK_LOG, directory);
    return fstat(log, &locked) == 0 && lstat(path, &named) == 0 && locked.st_ino == named.st_ino &&
           locked.st_dev == named.st_dev;
}

void sl_work_directory_abandon(const char *directory, const sl_work_directory_lock *lock) {
    char path[SL_WORK_DIRECTORY_ROOM + 16];
    /* Another folder may have the name now: it is not this load's. */
    if (!directory[0] || !lock->held || lock->before == SL_WORK_DIRECTORY_USED ||
        !is_log_of(directory, lock->file) || holds_files(directory, FILES_OF_A_START))
        return;
    sl_log_close_file();
    for (size_t i = FILES_OF_A_START; i-- > 0;) { /* the log, which is the lock, last of all */
        snprintf(path, sizeof path, "%s/%s", directory, files_of_a_start[i]);
        sl_private_file_remove(path);
    }
    if (lock->before == SL_WORK_DIRECTORY_ABSENT)
        sl_private_folder_remove(directory);
}

void sl_work_directory_release(sl_work_directory_lock *lock) {
    if (lock->held)
        close(lock->file);
    *lock = (sl_work_directory_lock){.held = false};
}

bool sl_work_directory_set_rejects_aside(const char *directory, sl_error *error) {
    char path[SL_WORK_DIRECTORY_ROOM + 32], other[sizeof path], name[32];
    struct stat facts;
    snprintf(path, sizeof path, "%s/" SL_WORK_REJECTED, directory);
    if (lstat(path, &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid())
        return true; /* the first reject ends the load, if it is not a folder of this user */
    for (unsigned number = 1;; number++) {
        snprintf(name, sizeof name, SL_WORK_REJECTED "-%u", number);
        snprintf(other, sizeof other, "%s/%s", directory, name);
        if (lstat(other, &facts) != 0)
            return sl_private_file_rename(path, name, error);
    }
}

/* ---- making it ---- */

/* Creates the folder, or uses an existing one. */
static bool make_directory(const sl_load_config *config, const char *label,
                           char directory[SL_WORK_DIRECTORY_ROOM], bool *created, sl_error *error) {
    *created = false;
    errno = 0;
    if (config->work_directory)
        strcpy(directory, config->work_directory);
    /* A load can be resumed only from an existing folder. */
    if (config->resume && config->work_directory
            ? sl_private_folder_check(directory, error) && access(directory, W_OK) == 0
        : config->work_directory ? sl_private_folder_make(directory, created, error)
                                 : make_named_directory(config, label, directory, created, error))
        return true;
    if (errno == 0) /* it was refused */
        return false;
    return sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                        "cannot %s the work directory %s: %s; name another one with --work-dir",
                        config->resume ? "use" : "create", directory, strerror(errno));
}

bool sl_work_directory_lock_file(int file, const char *directory, sl_error *error) {
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
        return true;
    int cause = errno == EACCES ? EWOULDBLOCK : errno; /* EACCES: some network file systems */
    if (cause == EWOULDBLOCK)
        sl_error_set(error, SL_EXIT_USAGE,
                     "%s: another command is using this work directory; name another one with "
                     "--work-dir, or wait until that command has ended",
                     directory);
    else
        sl_error_set(error, sl_exit_of_errno(cause, SL_EXIT_USAGE),
                     "%s: its files cannot be locked: %s; name a work directory on a local disk "
                     "with --work-dir",
                     directory, strerror(cause));
    errno = cause;
    return false;
}

/* Opens the log of the folder, or creates it, and locks it. Sets `*gone` if another command has
 * removed the log or the folder meanwhile, because its own start failed. */
static bool lock_log(const char *directory, sl_work_directory_lock *lock, bool *gone,
                     sl_error *error) {
    char path[SL_WORK_DIRECTORY_ROOM + 32];
    struct stat facts;
    snprintf(path, sizeof path, "%s/" SL_WORK_LOG, directory);
    *gone = false;
    bool existed = access(path, F_OK) == 0;
    int file = sl_private_file_open(path, O_WRONLY | O_APPEND, error);
    if (file < 0) {
        *gone = access(directory, F_OK) != 0 && errno == ENOENT;
        return false;
    }
    if (!sl_work_directory_lock_file(file, directory, error)) {
        if (errno != EWOULDBLOCK && !existed && fstat(file, &facts) == 0 && facts.st_size == 0)
            sl_private_file_remove(path);
        close(file);
        return false;
    }
    if (fstat(file, &facts) != 0 || !is_log_of(directory, file)) {
        *gone = true;
        close(file);
        return false;
    }
    *lock = (sl_work_directory_lock){.held = true, .file = file};
    /* Files that other commands left before they released the lock count, too. */
    if (facts.st_size == 0 && !holds_files(directory, 1))
        lock->before = SL_WORK_DIRECTORY_EMPTY;
    return true;
}

static bool make_and_lock(const sl_load_config *config, const char *label,
                          char directory[SL_WORK_DIRECTORY_ROOM], sl_work_directory_lock *lock,
                          sl_error *error) {
    bool created, gone = true, made = false;
    for (unsigned attempt = 0; gone && attempt < 100; attempt++) {
        if (!make_directory(config, label, directory, &created, error))
            return false;
        /* A load within a restore or a trial has a folder that this program has made. */
        if (!config->part_of_trial && !created && !sl_outputs_check_folder(directory, error))
            return false;
        made = lock_log(directory, lock, &gone, error);
    }
    if (gone)
        sl_error_set(error, SL_EXIT_USAGE,
                     "%s: other commands create and remove this work directory all the time; name "
                     "another one with --work-dir",
                     directory);
    if (created && lock->before == SL_WORK_DIRECTORY_EMPTY)
        lock->before = SL_WORK_DIRECTORY_ABSENT;
    else if (created && !made)
        sl_private_folder_remove(directory);
    return made;
}

bool sl_work_directory_make(const sl_load_config *config, const char *label,
                            char directory[SL_WORK_DIRECTORY_ROOM], sl_work_directory_lock *lock,
                            sl_error *error) {
    if (!config->work_directory && config->sink == SL_SINK_NULL)
        return true; /* only a measurement: without a work directory */
    if (config->work_directory && strlen(config->work_directory) >= SL_WORK_DIRECTORY_ROOM)
        return sl_error_set(error, SL_EXIT_USAGE, "--work-dir: longer than %zu bytes",
                            (size_t)SL_WORK_DIRECTORY_ROOM - 1);
    if (!make_and_lock(config, label, directory, lock, error)) {
        directory[0] = '\0';
        return false;
    }
    sl_private_folder_protect(directory);
    sl_private_parent_sync(directory); /* otherwise a power failure may remove it */
    char path[SL_WORK_DIRECTORY_ROOM + 32];
    snprintf(path, sizeof path, "%s/" SL_WORK_RECORD, directory);
    bool ok = sl_private_file_may_replace(path, error);
    snprintf(path, sizeof path, "%s/" SL_WORK_LOG, directory);
    if (!ok || !sl_log_open_file(path, error)) {
        sl_work_directory_abandon(directory, lock);
        directory[0] = '\0';
        return false;
    }
    sl_log_debug("the work directory is %s", directory); /* `forget` knows a log by its lines */
    return true;
}

bool sl_report_check(const char **path, sl_error *error) {
    if (!*path || sl_private_file_may_replace(*path, error))
        return true;
    *path = NULL;
    return false;
}
