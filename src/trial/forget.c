/* SPDX-License-Identifier: Apache-2.0 */
/* Removes what loads leave: registries, temporary collections, the balancer's state, files. */
#include "forget.h"

#include <dirent.h>
#include <fcntl.h>
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
    sl_log_result("the balancer, which %s left stopped, is restored", sl_plural(view.dead, "load"));
    return true;
}

static bool forget_target(const sl_load_config *config, sl_error *error) {
    static const char *const kinds[] = {"tune", "drill"}; /* of temporary collections */
    const sl_target target = {.database = config->database, .collection = config->collection};
    sl_connection *connection = NULL;
    sl_registry *registry = NULL;
    uint32_t *numbers = NULL;
    size_t count = 0;
    bool ok =
        (connection = sl_load_open_connection(config, SL_FOR_WRITING, "shardload", 1, error)) &&
        none_runs(connection, error) && sl_registry_open(connection, &target, &registry, error) &&
        sl_registry_numbers(registry, &numbers, &count, error) &&
        sl_registry_settle(registry, &target, SL_SETTLE_FORGET, true, error) &&
        sl_registry_drop(connection, &target, error);
    if (ok)
        sl_log_result(count ? "%s.%s: its registry of %s is removed; its documents stay"
                            : "%s.%s: %s is registered: nothing is left of its registry",
                      target.database, target.collection,
                      count ? sl_plural(count, "source") : "no source");
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

/* Each folder is opened in the one above, without following a link, and its files are removed by
 * that descriptor: so another user cannot exchange a folder meanwhile. */

#define DEPTH_MAX 8u /* of folders in a work directory; loads make fewer */
#define HEAD_BYTES 64u

typedef struct removal {
    uint64_t removed, kept; /* files */
} removal;

/* Is this the name of a file that a load writes into one of the folders of its work directory? */
static bool is_of_folder(const char *folder, const char *name) {
    static const char *const embedded = "records|index|groups|complete|used|sources|orphans.json";
    static const char unmatched[] = "unmatched.json"; /* earlier: orphans.json */
    const size_t digits = strspn(name, "0123456789");
    if (strncmp(folder, SL_WORK_REJECTED, sizeof SL_WORK_REJECTED - 1) == 0) /* or rejected-1 */
        return digits == 6 && name[6] == '-';
    if (strcmp(folder, "unpacked") == 0)
        return sl_is_private_file(name, "list.bson") ||
               (digits == 6 && strcmp(name + digits, ".bson") == 0);
    return strcmp(folder, "embed") == 0 &&
           ((digits == 3 && !name[3]) || strncmp(name, "level", 5) == 0 ||
            strcmp(name, "apart") == 0 || sl_list_has(embedded, '|', sl_text_of(name)) ||
            sl_is_private_file(name, "sources") || sl_is_private_file(name, unmatched));
}

/* Opens a file, and reads its beginning. -1: it is no file, or that of another user. */
static int open_head(int folder, const char *name, char head[HEAD_BYTES]) {
    int file = sl_private_open_in(folder, name, false);
    ssize_t length = file < 0 ? 0 : read(file, head, HEAD_BYTES - 1);
    head[length < 0 ? 0 : length] = '\0';
    return file;
}

typedef enum finding {
    FOUND_NONE, /* no command has made this folder */
    FOUND_BUSY,
    FOUND_WORK, /* a work directory; its log is locked, so that no command begins to use it */
} finding;

/* Every line of a log begins with the time, which a user's file of this name does not. `within`: it
 * is in a work directory, where a log may be empty. The folder of a tuning has a record instead. */
static finding look_at(int folder, bool within, int *log) {
    static const char record[] = "{\n  \"program\": \"shardload\"";
    char head[HEAD_BYTES];
    int year, month, day, hour, minute, second, tune = open_head(folder, SL_WORK_TUNE, head);
    bool found = tune >= 0 && strncmp(head, record, sizeof record - 1) == 0;
    if (tune >= 0)
        close(tune);
    *log = open_head(folder, SL_WORK_LOG, head);
    found = found || (*log >= 0 &&
                      ((within && !head[0]) || sscanf(head, "%4d-%2d-%2dT%2d:%2d:%2d.", &year,
                                                      &month, &day, &hour, &minute, &second) == 6));
    if (!found)
        return FOUND_NONE;
    return *log < 0 || flock(*log, LOCK_EX | LOCK_NB) == 0 ? FOUND_WORK : FOUND_BUSY;
}

/* The folder of a namespace of a restore ends in a hash. Without a load it has no log. */
static bool is_of_namespace(const char *name) {
    const size_t length = strlen(name);
    return length > 17 && name[length - 17] == '-' &&
           strspn(name + length - 16, "0123456789abcdef") == 16;
}

static void remove_in(int folder, const char *kind, unsigned depth, removal *done);

/* Removes what loads left in a folder, and the folder if it is empty then. `kind`: NULL, if only a
 * work directory may have this name. */
static void remove_folder(int above, const char *name, const char *kind, unsigned depth,
                          removal *done) {
    int log = -1, folder = depth <= DEPTH_MAX ? sl_private_open_in(above, name, true) : -1;
    finding found = folder >= 0 ? look_at(folder, true, &log) : FOUND_BUSY;
    if (found == FOUND_NONE && is_of_namespace(name))
        found = FOUND_WORK;
    if (found == FOUND_WORK || (found == FOUND_NONE && kind))
        remove_in(folder, found == FOUND_WORK ? NULL : kind, depth, done);
    else
        done->kept++;
    if (log >= 0)
        close(log);
    if (folder >= 0)
        close(folder);
    sl_private_remove_in(above, name, true);
}

/* Names the collection of users or roles that a restore has not merged: only this file has its
 * name. */
static void name_merged(int folder) {
    char head[HEAD_BYTES];
    const bool restored = faccessat(folder, SL_WORK_RESTORED, F_OK, 0) == 0;
    const int file = restored ? -1 : open_head(folder, SL_WORK_MERGED, head);
    if (file < 0)
        return;
    sl_log_warning("admin.%s may hold users or roles of an interrupted restore: drop it", head);
    close(file);
}

/* `kind`: the name of a folder of a work directory; NULL: it is one. */
static void remove_in(int folder, const char *kind, unsigned depth, removal *done) {
    struct stat facts;
    int copy = sl_private_open_in(folder, ".", true);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    name_merged(folder);
    for (const struct dirent *entry; list && (entry = readdir(list)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        bool own = kind ? is_of_folder(kind, name) : sl_source_is_own_file(name);
        if (fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(facts.st_mode)) {
            remove_folder(folder, name, !own ? NULL : kind ? kind : name, depth + 1, done);
            continue;
        }
        bool removed = own && sl_private_remove_in(folder, name, false);
        done->removed += removed;
        done->kept += !removed;
    }
    if (list)
        closedir(list);
}

static bool forget_directory(const char *path, sl_error *error) {
    char shown[1024];
    removal done = {0};
    int log, folder = sl_private_folder_open(path, error);
    sl_text_printable(sl_text_of(path), shown, sizeof shown);
    if (folder < 0)
        return false;
    const finding found = look_at(folder, false, &log);
    if (found == FOUND_NONE)
        sl_error_set(error, SL_EXIT_USAGE,
                     "%s: this is no work directory: it has no " SL_WORK_LOG " that a load wrote",
                     shown);
    else if (found == FOUND_BUSY)
        sl_error_set(error, SL_EXIT_USAGE, "%s: a command is using this work directory", shown);
    else
        remove_in(folder, NULL, 0, &done);
    if (log >= 0)
        close(log);
    close(folder);
    if (found != FOUND_WORK)
        return false;
    sl_private_folder_remove(path);
    sl_log_result("%s: %s removed%s", shown, sl_plural(done.removed, "file[s] [is|are]"),
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
