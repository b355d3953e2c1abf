/* SPDX-License-Identifier: Apache-2.0 */
/* Options: no output of a command replaces one of its inputs. They are compared by device and inode
 * where both exist, so that links and other spellings of a path are found; by folder and name where
 * an output does not exist yet. */
#include <ctype.h>
#include <fnmatch.h>
#include <fts.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source/source.h"
#include "util/grow.h"

#include "options_internal.h"

/* A path, divided. */
typedef struct sl_location {
    char folder[PATH_MAX]; /* resolved; "" if it cannot be */
    char name[NAME_MAX + 1];
} sl_location;

/* There may be a hundred thousand inputs, but only a few other files. */
typedef struct sl_named_file {
    sl_option_file file;
    const char *option;    /* "report"; "" for an argument */
    char *path;            /* as given */
    struct stat facts;     /* st_mode is 0 if it does not exist */
    sl_location *location; /* not of inputs, nor of "-" */
} sl_named_file;

typedef struct sl_named_files {
    const sl_options *options;
    sl_named_file *items;
    size_t count, room;
} sl_named_files;

/* ---- collecting ---- */

/* Divides a path: leaves its folder, and copies its name. Slashes at the end do not count. */
static void split(char path[PATH_MAX], char name[NAME_MAX + 1]) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    char *slash = strrchr(path, '/');
    snprintf(name, NAME_MAX + 1, "%s", slash ? slash + 1 : path);
    if (slash)
        slash[slash == path] = '\0';
    else
        strcpy(path, ".");
}

/* Resolves the folder of a path as far as it exists. */
static void resolve(const char *path, sl_location *location) {
    char above[PATH_MAX], last[NAME_MAX + 1];
    size_t length = strlen(path);
    *location = (sl_location){0};
    if (length == 0 || length >= sizeof above)
        return;
    memcpy(above, path, length + 1);
    split(above, location->name);
    if (realpath(above, location->folder))
        return;
    /* The folder may be a work directory that does not exist yet. */
    split(above, last);
    length = realpath(above, location->folder) ? strlen(location->folder) : 0;
    if (length == 0 || length + strlen(last) + 2 > sizeof location->folder)
        location->folder[0] = '\0';
    else
        snprintf(location->folder + length, sizeof location->folder - length, "%s%s",
                 length > 1 ? "/" : "", last);
}

static bool add(sl_named_files *files, sl_option_file file, const char *option, const char *path,
                size_t length, sl_error *error) {
    sl_named_file *items = sl_grow(files->items, files->count, &files->room, sizeof *items);
    if (!items)
        return sl_error_memory(error, "comparing the files");
    files->items = items;
    sl_named_file *named = &files->items[files->count];
    *named = (sl_named_file){.file = file, .option = option, .path = strndup(path, length)};
    if (!named->path)
        return sl_error_memory(error, "comparing the files");
    files->count++;
    bool standard = strcmp(named->path, "-") == 0;
    if ((standard ? fstat(file == SL_FILE_WRITTEN ? STDOUT_FILENO : STDIN_FILENO, &named->facts)
                  : stat(named->path, &named->facts)) != 0)
        named->facts = (struct stat){0};
    if (standard || file == SL_FILE_READ)
        return true;
    named->location = malloc(sizeof *named->location);
    if (!named->location)
        return sl_error_memory(error, "comparing the files");
    resolve(named->path, named->location);
    return true;
}

/* Adds each part of a text between separators. */
static bool add_parts(sl_named_files *files, const char *option, const char *text,
                      const char *separators, sl_error *error) {
    for (size_t length; *text; text += length + (text[length] != '\0')) {
        length = strcspn(text, separators);
        if (length > 0 && !add(files, SL_FILE_READ, option, text, length, error))
            return false;
    }
    return true;
}

/* The parameters of a connection string that name files, such as tlsCAFile. */
static bool add_uri(sl_named_files *files, const char *option, const char *uri, sl_error *error) {
    const char *at = strchr(uri, '?');
    while (at && *++at) {
        const char *equals = at + strcspn(at, "=&;");
        const char *end = equals + strcspn(equals, "&;");
        if (*equals == '=' && equals - at > 4 && strncasecmp(equals - 4, "file", 4) == 0) {
            char path[PATH_MAX];
            size_t length = 0;
            for (const char *from = equals + 1; from < end && length + 1 < sizeof path; from++) {
                char digits[3] = {from[1], from[0] == '%' && from[1] ? from[2] : '\0', '\0'};
                bool code = *from == '%' && isxdigit((unsigned char)digits[0]) &&
                            isxdigit((unsigned char)digits[1]);
                path[length++] = code ? (char)strtol(digits, NULL, 16) : *from;
                from += code ? 2 : 0;
            }
            if (!add(files, SL_FILE_READ, option, path, length, error))
                return false;
        }
        at = *end ? end : NULL;
    }
    return true;
}

static bool add_value(sl_named_files *files, const sl_option_row *row, const char *text,
                      sl_error *error) {
    if (row->secret == SL_CREDENTIALS)
        return add_uri(files, row->name, text, error);
    if (row->file == SL_FILE_NONE)
        return true;
    if (row->file == SL_FILE_READ_WORDS)
        return add_parts(files, row->name, text, " \t\n'\"=", error);
    if (row->file_after) {
        text = strstr(text, row->file_after);
        if (!text)
            return true;
        text += strlen(row->file_after);
    }
    return add(files, row->file, row->name, text, strlen(text), error);
}

static bool collect(sl_named_files *files, sl_error *error) {
    const sl_options *options = files->options;
    bool ok = true;
    for (size_t i = 0; ok && i < options->rows; i++) {
        for (size_t k = 0; ok && k < options->values[i].count; k++)
            ok = add_value(files, &options->program->rows[i], options->values[i].texts[k], error);
    }
    if (ok && options->config_path)
        ok = add(files, SL_FILE_READ, "config", options->config_path, strlen(options->config_path),
                 error);
    for (size_t i = 0; ok && i < options->argument_count; i++) {
        const char *text = options->arguments[i];
        ok = add(files, SL_FILE_READ, "", text, strlen(text), error);
        /* `shardquery compare` accepts several reports, with commas between them. */
        if (ok && files->items[files->count - 1].facts.st_mode == 0 && strchr(text, ','))
            ok = add_parts(files, "", text, ",", error);
    }
    return ok;
}

/* ---- comparing ---- */

static bool is_regular(const sl_named_file *named) {
    return S_ISREG(named->facts.st_mode);
}

static bool same_file(const struct stat *one, const struct stat *other) {
    return one->st_ino == other->st_ino && one->st_dev == other->st_dev;
}

static bool refuse(const sl_named_file *output, const char *what, const char *of, sl_error *error) {
    return sl_error_set(error, SL_EXIT_USAGE,
                        "--%s %s is %s%s, which would be replaced: name another file",
                        output->option, output->path, what, of);
}

/* Does the command read the files with this name in a folder? */
static bool is_included(const sl_named_files *files, const char *name) {
    size_t row = sl_options_row(files->options, "include", strlen("include"));
    const char *include = row != SIZE_MAX && files->options->values[row].count > 0
                              ? files->options->values[row].texts[0]
                              : NULL;
    return name[0] != '.' && (!include || fnmatch(include, name, 0) == 0);
}

/* Does a file count, or a folder with its files? `own`: see find_in. */
static bool counts(const sl_named_files *files, const FTSENT *entry, bool own) {
    if (entry->fts_level == FTS_ROOTLEVEL || (own && entry->fts_level > 1))
        return true;
    if (own)
        return sl_source_is_own_file(entry->fts_name);
    return entry->fts_info == FTS_D ? entry->fts_name[0] != '.'
                                    : is_included(files, entry->fts_name);
}

/* Finds one of the named files, read or written ones, in a folder or below it: with `own` among the
 * files of a work directory, otherwise among the files that a command would read. NULL for none. */
static const sl_named_file *find_in(const sl_named_files *files, const char *folder,
                                    sl_option_file wanted, bool own) {
    const sl_named_file *found = NULL;
    bool any = false;
    for (size_t i = 0; i < files->count; i++)
        any |= files->items[i].file == wanted && is_regular(&files->items[i]);
    char *const paths[] = {(char *)(uintptr_t)folder, NULL};
    FTS *walk =
        any ? fts_open(paths, FTS_NOCHDIR | (own ? FTS_PHYSICAL : FTS_LOGICAL), NULL) : NULL;
    for (FTSENT *entry; walk && !found && (entry = fts_read(walk));) {
        bool counted = counts(files, entry, own);
        if (!counted && entry->fts_info == FTS_D)
            fts_set(walk, entry, FTS_SKIP);
        for (size_t i = 0; counted && entry->fts_info == FTS_F && !found && i < files->count; i++) {
            const sl_named_file *named = &files->items[i];
            if (named->file == wanted && same_file(&named->facts, entry->fts_statp))
                found = named;
        }
    }
    if (walk)
        fts_close(walk);
    return found;
}

/* Is the output in the folder `path`, or below it? */
static bool is_below(const sl_named_file *output, const char *path) {
    char resolved[PATH_MAX];
    if (!output->location || !output->location->folder[0] || !realpath(path, resolved))
        return false;
    const char *folder = output->location->folder;
    size_t length = strlen(resolved);
    return strncmp(folder, resolved, length) == 0 &&
           (length == 1 || folder[length] == '/' || folder[length] == '\0');
}

static bool compare_with_input(const sl_named_files *files, const sl_named_file *output,
                               const sl_named_file *input, sl_error *error) {
    if (is_regular(output) && is_regular(input) && same_file(&output->facts, &input->facts))
        return refuse(output, input->option[0] ? "the file of --" : "the input ",
                      input->option[0] ? input->option : input->path, error);
    return !S_ISDIR(input->facts.st_mode) || !is_below(output, input->path) ||
           !is_included(files, output->location->name) ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "--%s %s lies in the source folder %s: the next run with that folder would "
                        "read it; name a file elsewhere",
                        output->option, output->path, input->path);
}

static bool compare_outputs(const sl_named_file *output, const sl_named_file *other,
                            sl_error *error) {
    const sl_location *one = output->location, *two = other->location;
    bool same = is_regular(output) && is_regular(other) && same_file(&output->facts, &other->facts);
    same = same || (one && two && one->folder[0] && strcmp(one->folder, two->folder) == 0 &&
                    strcmp(one->name, two->name) == 0);
    return !same || refuse(output, "the file of --", other->option, error);
}

/* Is it one of the files that commands create in the work directory, or in a folder there? */
static bool is_of_work_directory(const sl_named_file *named, const sl_named_file *work) {
    char path[PATH_MAX + NAME_MAX + 2], file[PATH_MAX + NAME_MAX + 2];
    sl_location location;
    if (strcmp(named->path, "-") == 0)
        return false;
    resolve(named->path, &location);
    if (!work->location->folder[0] || !location.folder[0])
        return false;
    if (!realpath(work->path, path))
        snprintf(path, sizeof path, "%s/%s", work->location->folder, work->location->name);
    snprintf(file, sizeof file, "%s/%s", location.folder, location.name);
    size_t start = strlen(path);
    if (strncmp(file, path, start) != 0 || file[start] != '/')
        return false;
    file[start + 1 + strcspn(file + start + 1, "/")] = '\0';
    return sl_source_is_own_file(file + start + 1);
}

static bool refuse_in_work_directory(const sl_named_file *named, const sl_named_file *work,
                                     sl_error *error) {
    return sl_error_set(error, SL_EXIT_USAGE,
                        "--%s %s: %s%s%s%s is a file there that this command would replace by its "
                        "own: name another directory",
                        work->option, work->path, named->option[0] ? "--" : "", named->option,
                        named->option[0] ? " " : "", named->path);
}

static bool check_work_directory(const sl_named_files *files, const sl_named_file *work,
                                 sl_error *error) {
    for (size_t i = 0; i < files->count; i++) {
        const sl_named_file *named = &files->items[i];
        if (named == work || !is_of_work_directory(named, work))
            continue;
        /* The same record as in run.json may be written there, too. */
        bool record =
            strcmp(named->option, "report") == 0 && strcmp(named->location->name, "run.json") == 0;
        if (named->file != SL_FILE_WRITTEN)
            return refuse_in_work_directory(named, work, error);
        if (!record)
            return refuse(named, "a file of the work directory", "", error);
    }
    const sl_named_file *input =
        S_ISDIR(work->facts.st_mode) ? find_in(files, work->path, SL_FILE_READ, true) : NULL;
    return !input || refuse_in_work_directory(input, work, error);
}

static bool check_output(const sl_named_files *files, const sl_named_file *output,
                         sl_error *error) {
    bool ok = true;
    for (size_t i = 0; ok && i < files->count; i++) {
        const sl_named_file *other = &files->items[i];
        if (other->file == SL_FILE_READ)
            ok = compare_with_input(files, output, other, error);
        else if (other->file == SL_FILE_WRITTEN && other < output)
            ok = compare_outputs(output, other, error);
    }
    return ok;
}

static bool check_folder(const sl_named_files *files, const sl_named_file *input, sl_error *error) {
    const sl_named_file *output = find_in(files, input->path, SL_FILE_WRITTEN, false);
    return !output || refuse(output, "a file of the source folder ", input->path, error);
}

/* Are standard output and standard error, which every command may print to, another file than its
 * inputs? A text that is printed into an input would be read as records, or replace some. */
static bool check_streams(const sl_named_files *files, sl_error *error) {
    static const char *const names[] = {[STDOUT_FILENO] = "output", [STDERR_FILENO] = "error"};
    for (int stream = STDOUT_FILENO; stream <= STDERR_FILENO; stream++) {
        struct stat facts;
        bool regular = fstat(stream, &facts) == 0 && S_ISREG(facts.st_mode);
        for (size_t i = 0; regular && i < files->count; i++) {
            const sl_named_file *input = &files->items[i];
            if (input->file == SL_FILE_READ && same_file(&input->facts, &facts))
                return sl_error_set(error, SL_EXIT_USAGE,
                                    "standard %s is the input %s, which would be changed: redirect "
                                    "it to another file",
                                    names[stream], input->path);
        }
    }
    return true;
}

bool sl_option_files_check(const sl_options *options, sl_error *error) {
    sl_named_files files = {.options = options};
    bool ok = collect(&files, error);
    for (size_t i = 0; ok && i < files.count; i++) {
        const sl_named_file *named = &files.items[i];
        ok = named->file == SL_FILE_WRITTEN          ? check_output(&files, named, error)
             : named->file == SL_FILE_WORK_DIRECTORY ? check_work_directory(&files, named, error)
             : S_ISDIR(named->facts.st_mode)         ? check_folder(&files, named, error)
                                                     : true;
    }
    ok = ok && check_streams(&files, error);
    for (size_t i = 0; i < files.count; i++) {
        free(files.items[i].path);
        free(files.items[i].location);
    }
    free(files.items);
    return ok;
}
