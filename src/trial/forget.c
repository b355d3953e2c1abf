/* SPDX-License-Identifier: Apache-2.0 */
/* Removes what loads leave: registries, temporary collections, the balancer's state, files. */
#include "forget.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/source.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"

#include "throwaway.h"

/* ---- on the cluster ---- */

/* A load that still runs must keep its registry. Only loads on a sharded cluster can be seen. */
static bool none_runs(sl_connection *connection, sl_error *error) {
    sl_balancer_view view;
    return sl_balancer_status(connection, &view, error) &&
           (view.holders == view.dead ||
            sl_error_set(error, SL_EXIT_USAGE,
                         "loads are running (%s): their registry is needed until they have ended",
                         view.names));
}

/* Restores the balancer, if dead loads have left it stopped, as the next load would. */
static bool restore_balancer(sl_connection *connection, sl_error *error) {
    sl_balancer_view view;
    sl_balancer *balancer = NULL;
    if (!sl_balancer_status(connection, &view, error))
        return false;
    if (view.dead == 0)
        return true;
    if (!sl_balancer_pause(connection, NULL, &balancer, error) ||
        !sl_balancer_restore(balancer, error))
        return false;
    sl_log_result("the balancer, which %u load%s left stopped, is restored", view.dead,
                  view.dead == 1 ? "" : "s");
    return true;
}

static bool forget_target(const sl_load_config *config, sl_error *error) {
    static const char *const kinds[] = {"tune", "drill"}; /* of temporary collections */
    const sl_target target = {.database = config->database, .collection = config->collection};
    sl_connection *connection = NULL;
    sl_registry *registry = NULL;
    uint32_t *numbers = NULL;
    size_t count = 0;
    bool ok = sl_load_open_connection(config, SL_FOR_WRITING, "shardload", 1, &connection, error) &&
              none_runs(connection, error) &&
              sl_registry_open(connection, &target, &registry, error) &&
              sl_registry_numbers(registry, &numbers, &count, error) &&
              sl_registry_drop(connection, &target, error);
    if (ok)
        sl_log_result("%s.%s: its registry of %zu source%s is removed; its documents stay",
                      target.database, target.collection, count, count == 1 ? "" : "s");
    for (size_t i = 0; ok && i < sizeof kinds / sizeof kinds[0]; i++)
        ok = sl_throwaway_begin(connection, target.database, target.collection, kinds[i], false,
                                error);
    ok = ok && restore_balancer(connection, error);
    free(numbers);
    sl_registry_close(registry);
    if (connection)
        sl_connection_close(connection);
    return ok;
}

/* ---- work directories ---- */

typedef struct removal {
    uint64_t removed, kept; /* files */
} removal;

/* Removes the files of loads in a folder, and the folder if it is empty then. `all`: the folder
 * belongs to a load, with all that is in it; otherwise only files with the names of its files, and
 * folders of loads. */
static void remove_in(const char *path, bool all, removal *done) {
    char inner[PATH_MAX], log[PATH_MAX];
    struct stat facts;
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        bool own = all || sl_source_is_own_file(entry->d_name);
        if (length >= PATH_MAX || lstat(inner, &facts) != 0)
            continue;
        if (S_ISDIR(facts.st_mode)) {
            length = snprintf(log, sizeof log, "%s/" SL_WORK_LOG, inner);
            bool load = length < PATH_MAX && access(log, F_OK) == 0;
            if (own || load)
                remove_in(inner, own, done);
            else
                done->kept++;
            continue;
        }
        if (own)
            sl_private_file_remove(inner);
        done->removed += own && access(inner, F_OK) != 0;
        done->kept += !own || access(inner, F_OK) == 0;
    }
    closedir(folder);
    sl_private_folder_remove(path);
}

/* Locks the log, so that no command begins to use the folder. The folder of a tuning has no log,
 * but its record. `*file`: -1 without a log. */
static bool lock(const char *path, const char *shown, int *file, sl_error *error) {
    char name[PATH_MAX];
    *file = -1;
    snprintf(name, sizeof name, "%s/tune.json", path);
    bool tuning = access(name, F_OK) == 0;
    snprintf(name, sizeof name, "%s/" SL_WORK_LOG, path);
    if (access(name, F_OK) != 0)
        return tuning ||
               sl_error_set(error, SL_EXIT_USAGE,
                            "%s: this is no work directory: it has no " SL_WORK_LOG, shown);
    *file = sl_private_file_open(name, O_WRONLY | O_APPEND, error);
    if (*file < 0 || flock(*file, LOCK_EX | LOCK_NB) == 0)
        return *file >= 0;
    close(*file);
    return sl_error_set(error, SL_EXIT_USAGE, "%s: a command is using this work directory", shown);
}

static bool forget_directory(const char *path, sl_error *error) {
    char shown[1024], number[SL_HUMAN_ROOM];
    removal done = {0};
    int file;
    sl_text_printable(sl_text_of(path), shown, sizeof shown);
    if (!lock(path, shown, &file, error))
        return false;
    remove_in(path, false, &done);
    if (file >= 0)
        close(file);
    sl_log_result("%s: %s files are removed%s", shown, sl_human_count(done.removed, number),
                  done.kept > 0 ? "; files that are not of loads stay" : "");
    return true;
}

/* ---- the command ---- */

sl_exit sl_forget_run(const sl_load_config *config, const char *const *directories, size_t count) {
    sl_error error = {0};
    bool ok = !config->database || forget_target(config, &error);
    for (size_t i = 0; ok && i < count; i++)
        ok = forget_directory(directories[i], &error);
    if (!ok) {
        sl_error_missing(&error, "removing what loads left");
        sl_log_error(SL_LINES, error.message);
    }
    return ok ? SL_EXIT_OK : error.code;
}
