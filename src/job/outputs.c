/* SPDX-License-Identifier: Apache-2.0 */
/* Compares output files with input files: by device and inode where both exist, so that links and
 * other spellings of a path are found; by folder and name where the output does not exist yet. */
#include "outputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct sl_output {
    const char *option, *path;
    bool no_record; /* it is not a copy of run.json */
    char folder[PATH_MAX], name[NAME_MAX + 1];
} sl_output;

/* Splits a path into its resolved folder and its name. False when the folder does not exist; then
 * another check refuses the file. */
static bool resolve(sl_output *output) {
    char *copy = strdup(output->path), *other = strdup(output->path);
    bool ok = copy && other && realpath(dirname(copy), output->folder);
    if (ok)
        snprintf(output->name, sizeof output->name, "%s", basename(other));
    free(copy);
    free(other);
    return ok;
}

static bool refuse(const sl_output *output, const char *what, const char *of, sl_error *error) {
    return sl_error_set(error, SL_EXIT_USAGE,
                        "%s %s is %s%s, which would be replaced: name another file", output->option,
                        output->path, what, of);
}

static bool is_file(const char *output, const char *path) {
    struct stat one, other;
    return path && stat(output, &one) == 0 && stat(path, &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static bool is_source(const char *output, const sl_source_set *set) {
    struct stat facts;
    if (!set || stat(output, &facts) != 0)
        return false;
    for (size_t i = 0; i < sl_source_set_count(set); i++) {
        const sl_source_identity *source = &sl_source_set_at(set, i)->identity;
        if (source->inode != 0 && source->inode == facts.st_ino && source->device == facts.st_dev)
            return true;
    }
    return false;
}

/* Is the output's folder `path` or below it? */
static bool is_below(const sl_output *output, const char *path) {
    char resolved[PATH_MAX];
    struct stat facts;
    if (!path || stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode) || !realpath(path, resolved))
        return false;
    size_t length = strlen(resolved);
    return strncmp(output->folder, resolved, length) == 0 &&
           (length == 1 || output->folder[length] == '/' || output->folder[length] == '\0');
}

/* Would the walk of a source folder find the file? */
static bool would_be_found(const sl_output *output, const char *include) {
    return output->name[0] != '.' && (!include || fnmatch(include, output->name, 0) == 0);
}

static bool check_folders(const sl_output *output, const sl_load_config *config, const char *dump,
                          sl_error *error) {
    if (!would_be_found(output, config->include))
        return true;
    for (size_t i = 0; i <= config->path_count; i++) {
        const char *folder = i < config->path_count ? config->paths[i] : dump;
        if (is_below(output, folder))
            return sl_error_set(error, SL_EXIT_USAGE,
                                "%s %s lies in the source folder %s: the next load of that folder "
                                "would load it; name a file elsewhere",
                                output->option, output->path, folder);
    }
    return true;
}

static bool check_one(const sl_output *output, const sl_load_config *config,
                      const sl_source_set *set, const char *dump, sl_error *error) {
    const struct {
        const char *path, *what;
    } inputs[] = {{dump, "the dump"},
                  {config->format_options.schema_name, "the file of --schema"},
                  {config->embed_path, "the source of --embed"},
                  {config->embed_schema_name, "the file of --embed-schema"},
                  {config->sink_path, "the file of --sink"}};
    char work[PATH_MAX];
    if (is_source(output->path, set))
        return refuse(output, "a source", "", error);
    for (size_t i = 0; i < config->path_count; i++) {
        if (is_file(output->path, config->paths[i]))
            return refuse(output, "a source", "", error);
    }
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (is_file(output->path, inputs[i].path))
            return refuse(output, inputs[i].what, "", error);
    }
    bool own = sl_source_is_own_file(output->name) &&
               (output->no_record || strcmp(output->name, "run.json") != 0);
    if (own && config->work_directory && realpath(config->work_directory, work) &&
        strcmp(work, output->folder) == 0)
        return refuse(output, "a file of the work directory", "", error);
    return check_folders(output, config, dump, error);
}

/* Is a source one of the files that the load replaces in its work directory? */
static bool check_work_directory(const char *directory, const sl_source_set *set, sl_error *error) {
    static const char *const names[] = {"shardload.log", "journal",     "run.json",
                                        "rejects.tsv",   "status.json", "control.json"};
    char path[PATH_MAX];
    for (size_t i = 0; directory && i < sizeof names / sizeof names[0]; i++) {
        if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, names[i]) < sizeof path &&
            is_source(path, set))
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--work-dir: %s is a source, and the load would replace it by its "
                                "own file of that name: name another directory",
                                path);
    }
    return true;
}

/* Is the output a file of a work directory that does not exist yet? */
static bool is_in_new_directory(const sl_output *output, const char *directory) {
    const char *slash = strrchr(output->path, '/');
    if (!directory || !slash || !sl_source_is_own_file(slash + 1) ||
        (!output->no_record && strcmp(slash + 1, "run.json") == 0))
        return false;
    size_t folder = (size_t)(slash - output->path), length = strlen(directory);
    while (folder > 1 && output->path[folder - 1] == '/')
        folder--;
    while (length > 1 && directory[length - 1] == '/')
        length--;
    return folder == length && memcmp(output->path, directory, length) == 0;
}

bool sl_outputs_check(const sl_load_config *config, const sl_source_set *set, const char *dump,
                      sl_error *error) {
    if (!check_work_directory(config->work_directory, set, error))
        return false;
    sl_output outputs[] = {
        {.option = "--report", .path = config->report},
        {.option = "--html", .path = config->html, .no_record = true},
        {.option = "--metrics-file", .path = config->metrics, .no_record = true}};
    enum { COUNT = sizeof outputs / sizeof outputs[0] };
    for (size_t i = 0; i < COUNT; i++) {
        if (!outputs[i].path || strcmp(outputs[i].path, "-") == 0 || !resolve(&outputs[i])) {
            if (outputs[i].path && is_in_new_directory(&outputs[i], config->work_directory))
                return refuse(&outputs[i], "a file of the work directory", "", error);
            outputs[i].path = NULL;
            continue;
        }
        if (!check_one(&outputs[i], config, set, dump, error))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (outputs[k].path && strcmp(outputs[k].folder, outputs[i].folder) == 0 &&
                strcmp(outputs[k].name, outputs[i].name) == 0)
                return refuse(&outputs[i], "the file of ", outputs[k].option, error);
        }
    }
    return true;
}

/* ---- the work directory ---- */

/* Every work directory has a log. Without it (it may have been deleted), a journal shows what the
 * folder is; its first record contains these bytes. */
static bool is_journal(int folder) {
    static const char mark[] = "shardloadjournal";
    char head[64];
    int file = openat(folder, "journal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    ssize_t length = file >= 0 ? read(file, head, sizeof head) : 0;
    if (file >= 0)
        close(file);
    return length > 0 && memmem(head, (size_t)length, mark, sizeof mark - 1);
}

/* Is it the name of a user's file? A file system of its own has a folder lost+found. */
static bool is_users(const char *name) {
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, "lost+found") != 0;
}

/* The name of a user's file in the folder; "" if it holds none. */
static void find_users_file(DIR *folder, char found[NAME_MAX + 1]) {
    found[0] = '\0';
    rewinddir(folder);
    for (const struct dirent *entry; !found[0] && (entry = readdir(folder)) != NULL;) {
        if (is_users(entry->d_name))
            snprintf(found, NAME_MAX + 1, "%s", entry->d_name);
    }
}

bool sl_outputs_check_folder(const char *directory, sl_error *error) {
    struct stat facts;
    char found[NAME_MAX + 1];
    DIR *folder = opendir(directory);
    if (!folder)
        return true;
    int at = dirfd(folder);
    bool ours, exists;
    do { /* again, if a load whose start failed has removed its files, the log last, meanwhile */
        find_users_file(folder, found);
        ours = !found[0] || fstatat(at, SL_WORK_LOG, &facts, AT_SYMLINK_NOFOLLOW) == 0 ||
               is_journal(at);
        exists = ours || fstatat(at, found, &facts, AT_SYMLINK_NOFOLLOW) == 0;
    } while (!exists);
    closedir(folder);
    return ours || sl_error_set(error, SL_EXIT_USAGE,
                                "--work-dir: %s holds files, such as %s, but no %s: it is no work "
                                "directory of this program, whose files might replace them. "
                                "Nothing has been changed; name a new or an empty folder",
                                directory, found, SL_WORK_LOG);
}
