/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a folder recursively. Memory holds only the names in the folders on the current path: about
 * 30 bytes per file, so that folders of half a million files are possible. Logs its progress. */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/grow.h"
#include "util/log.h"

#include "names.h"
#include "source.h"

typedef struct folder_walk {
    const char *root, *include;
    sl_folder_visit *visit;
    void *context;
    char *path; /* of the current file or folder */
    size_t path_room;
    size_t listed, checked; /* number of names */
    int64_t logged_ns;      /* sl_clock_ns() of the last progress line */
} folder_walk;

/* The folders above the current one, to detect a link that leads back to one of them. */
typedef struct parent {
    const struct parent *above;
    dev_t device;
    ino_t inode;
} parent;

typedef struct listing {
    sl_names names;
    const char **sorted;
    size_t count, room;
} listing;

static bool walk_folder(folder_walk *walk, int folder, size_t path_length, const parent *above,
                        sl_error *error);

static void log_progress(folder_walk *walk) {
    if (sl_seconds_since(walk->logged_ns) < 2)
        return;
    char shown[SL_SHOWN_ROOM];
    sl_log_info("searching %s: %zu of %zu names checked so far", sl_path_shown(walk->root, shown),
                walk->checked, walk->listed);
    walk->logged_ns = sl_clock_ns();
}

static bool fail(const folder_walk *walk, sl_error *error) {
    char shown[SL_SHOWN_ROOM];
    return sl_error_errno(error, SL_EXIT_SOURCE, "%s", sl_path_shown(walk->path, shown));
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool add_name(listing *list, const char *name) {
    const char **sorted = sl_grow(list->sorted, list->count, &list->room, sizeof *sorted);
    if (!sorted)
        return false;
    list->sorted = sorted;
    list->sorted[list->count] = sl_names_add(&list->names, name);
    return list->sorted[list->count] && ++list->count;
}

static bool list_folder(folder_walk *walk, int folder, listing *list, sl_error *error) {
    int copy = dup(folder); /* closedir closes it */
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (!stream) {
        fail(walk, error);
        if (copy >= 0)
            close(copy);
        return false;
    }
    bool ok = true;
    struct dirent *entry;
    errno = 0;
    while (ok && (entry = readdir(stream)) != NULL) {
        bool dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "__MACOSX") != 0) {
            ok = add_name(list, entry->d_name) || sl_error_memory(error, "listing sources");
            walk->listed++;
        } else if (!dots) {
            char shown[SL_SHOWN_ROOM], name[SL_SHOWN_ROOM];
            sl_log_debug("%s/%s: hidden; skipped", sl_path_shown(walk->path, shown),
                         sl_path_shown(entry->d_name, name));
        }
        log_progress(walk);
        errno = 0;
    }
    if (ok && errno != 0)
        ok = fail(walk, error);
    closedir(stream);
    if (list->count > 1)
        qsort(list->sorted, list->count, sizeof *list->sorted, by_name);
    return ok;
}

/* Appends "/name" to the path; returns the new length, or 0 without memory. */
static size_t append(folder_walk *walk, size_t length, const char *name) {
    size_t need = length + strlen(name) + 2;
    if (need > walk->path_room) {
        char *path = realloc(walk->path, need * 2);
        if (!path)
            return 0;
        walk->path = path;
        walk->path_room = need * 2;
    }
    return length + (size_t)sprintf(walk->path + length, "%s%s",
                                    length > 0 && walk->path[length - 1] == '/' ? "" : "/", name);
}

static bool enter_folder(folder_walk *walk, int folder, const char *name, size_t path_length,
                         const struct stat *facts, const parent *above, sl_error *error) {
    for (const parent *each = above; each; each = each->above) {
        if (each->device == facts->st_dev && each->inode == facts->st_ino) {
            char shown[SL_SHOWN_ROOM];
            sl_log_warning("%s: leads back to a folder above it; not followed",
                           sl_path_shown(walk->path, shown));
            return true;
        }
    }
    int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (inner < 0)
        return fail(walk, error);
    parent here = {above, facts->st_dev, facts->st_ino};
    bool ok = walk_folder(walk, inner, path_length, &here, error);
    close(inner);
    return ok;
}

/* Is it a file that this program writes into a work directory? A work directory may lie within a
 * source folder, since the default one is created in the current directory. If its rejects were
 * read, they would be loaded as data, and a resumed load would find other sources than the first
 * run. */
bool sl_source_is_own_file(const char *name) {
    static const char *const names[] = {
        SL_WORK_LOG,    "journal",      "run.json",       "rejects.tsv",   "rejected",
        "verify.json",  "problems.tsv", "reload.json",    "tune.json",     "status.json",
        "control.json", "restore",      "restore.json",   "restored.json", "created",
        "unpacked",     "embed",        "dump-files.bson"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(name, names[i], length) == 0 &&
            (name[length] == '\0' || (name[length] == '.' && strlen(name + length) == 7)))
            return true;
    }
    return false;
}

static bool is_work_directory(const folder_walk *walk, int folder) {
    char shown[SL_SHOWN_ROOM];
    if (faccessat(folder, SL_WORK_LOG, F_OK, 0) != 0)
        return false;
    sl_log_info("%s: the work directory of a load; its journal, log, records and rejects are "
                "skipped",
                sl_path_shown(walk->path, shown));
    return true;
}

/* After a failed fstatat, whose errno is set: is the name a link to nothing, or has it been removed
 * since the folder was listed? Then `facts` become those of the link, or all zero. */
static bool is_dangling(int folder, const char *name, struct stat *facts) {
    if (errno != ENOENT && errno != ELOOP)
        return false;
    if (fstatat(folder, name, facts, AT_SYMLINK_NOFOLLOW) != 0)
        *facts = (struct stat){0};
    return true;
}

static bool walk_folder(folder_walk *walk, int folder, size_t path_length, const parent *above,
                        sl_error *error) {
    listing list = {0};
    bool work_directory = is_work_directory(walk, folder);
    bool ok = list_folder(walk, folder, &list, error);
    for (size_t i = 0; ok && i < list.count; i++) {
        const char *name = list.sorted[i];
        if (work_directory && sl_source_is_own_file(name))
            continue;
        size_t length = append(walk, path_length, name);
        struct stat facts;
        walk->checked++;
        log_progress(walk);
        if (length == 0)
            ok = sl_error_memory(error, "listing sources");
        else if (fstatat(folder, name, &facts, 0) != 0 && !is_dangling(folder, name, &facts))
            ok = fail(walk, error);
        else if (S_ISDIR(facts.st_mode))
            ok = enter_folder(walk, folder, name, length, &facts, above, error);
        else if (!walk->include || fnmatch(walk->include, name, 0) == 0)
            ok = walk->visit(walk->context, walk->path, &facts, error);
        if (length > 0)
            walk->path[path_length] = '\0';
    }
    free(list.sorted);
    sl_names_clear(&list.names);
    return ok;
}

bool sl_folder_walk(const char *path, const char *include, sl_folder_visit *visit, void *context,
                    sl_error *error) {
    folder_walk walk = {.root = path,
                        .include = include,
                        .visit = visit,
                        .context = context,
                        .path = strdup(path),
                        .path_room = strlen(path) + 1,
                        .logged_ns = sl_clock_ns()};
    if (!walk.path)
        return sl_error_memory(error, "listing sources");
    struct stat facts;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = folder >= 0 && fstat(folder, &facts) == 0;
    if (ok) {
        parent root = {NULL, facts.st_dev, facts.st_ino};
        ok = walk_folder(&walk, folder, strlen(path), &root, error);
    } else {
        fail(&walk, error);
    }
    if (folder >= 0)
        close(folder);
    free(walk.path);
    return ok;
}
