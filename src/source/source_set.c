/* SPDX-License-Identifier: Apache-2.0 */
/* The set of sources: finds the files that a load names, also those in folders, identifies
 * them, and detects that one has changed. Their names are stored consecutively in chunks that
 * never move. */
#include "source_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/document_id.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/read_file.h"
#include "util/text.h"

#include "sql_dump.h"

#define CHUNK_BYTES ((size_t)64 << 10)

struct sl_name_chunk {
    sl_name_chunk *before;
    size_t used, room;
    char bytes[];
};

/* Copies `name`; the copy is valid until sl_names_clear. NULL without memory. */
static const char *names_add(sl_names *names, const char *name) {
    size_t size = strlen(name) + 1;
    sl_name_chunk *chunk = names->last;
    if (!chunk || chunk->room - chunk->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = malloc(sizeof *chunk + room);
        if (!chunk)
            return NULL;
        *chunk = (sl_name_chunk){.before = names->last, .room = room};
        names->last = chunk;
    }
    char *copy = memcpy(chunk->bytes + chunk->used, name, size);
    chunk->used += size;
    return copy;
}

static void names_clear(sl_names *names) {
    while (names->last) {
        sl_name_chunk *before = names->last->before;
        free(names->last);
        names->last = before;
    }
}

/* ---- sets of paths ---- */

#define FIRST_ROOM ((size_t)256)

/* The hash of a path's components, without empty ones and `.`; never 0. */
static uint64_t hash_of(const char *path) {
    uint64_t hash = sl_process_seed();
    while (*path) {
        size_t length = strcspn(path, "/");
        if (length > 0 && !(length == 1 && path[0] == '.'))
            hash = sl_seeded_hash(path, length, hash);
        path += length + (path[length] == '/');
    }
    return hash ? hash : 1;
}

/* The slot of a hash, or the free slot for it. The room is a power of two, with free slots. */
static uint64_t *slot_of(uint64_t *hashes, size_t room, uint64_t hash) {
    size_t at = hash & (room - 1);
    while (hashes[at] && hashes[at] != hash)
        at = (at + 1) & (room - 1);
    return &hashes[at];
}

/* Three quarters of the slots are used at most. */
static bool grow(sl_path_set *set) {
    if (set->count + 1 <= set->room / 4 * 3)
        return true;
    size_t room = set->room ? set->room * 2 : FIRST_ROOM;
    uint64_t *hashes = calloc(room, sizeof *hashes);
    if (!hashes)
        return false;
    for (size_t i = 0; i < set->room; i++) {
        if (set->hashes[i])
            *slot_of(hashes, room, set->hashes[i]) = set->hashes[i];
    }
    free(set->hashes);
    set->hashes = hashes;
    set->room = room;
    return true;
}

sl_path_added sl_path_set_add(sl_path_set *set, const char *path) {
    uint64_t hash = hash_of(path);
    if (!grow(set))
        return SL_PATH_NO_MEMORY;
    uint64_t *slot = slot_of(set->hashes, set->room, hash);
    if (*slot)
        return SL_PATH_KNOWN;
    if (set->count >= (set->most ? set->most : SL_PATH_SET_MOST))
        return SL_PATH_TOO_MANY;
    *slot = hash;
    set->count++;
    return SL_PATH_NEW;
}

bool sl_path_set_has(const sl_path_set *set, const char *path) {
    return set->count > 0 && *slot_of(set->hashes, set->room, hash_of(path)) != 0;
}

bool sl_path_same(const char *a, const char *b) {
    return hash_of(a) == hash_of(b);
}

void sl_path_set_clear(sl_path_set *set) {
    free(set->hashes);
    *set = (sl_path_set){0};
}

/* ---- paths ---- */

/* Writes a path for messages: control bytes are escaped, so that a file name can neither control
 * the terminal nor begin a new line; only the end of a long path is shown. Returns out. */
#define SHOWN_ROOM 512
static char *path_shown(const char *path, char out[SHOWN_ROOM]) {
    size_t start = strlen(path), bytes = sizeof "...";
    while (start > 0) { /* backwards, while the escaped bytes fit */
        unsigned char byte = (unsigned char)path[start - 1];
        bytes += byte >= 0x20 && byte < 0x7F ? 1 : sizeof "\\xHH" - 1;
        if (bytes > SHOWN_ROOM)
            break;
        start--;
    }
    size_t dots = start > 0 ? 3 : 0;
    memcpy(out, "...", dots);
    while (dots && ((unsigned char)path[start] & 0xC0) == 0x80) /* skip a partial character */
        start++;
    sl_text_printable(sl_text_of(path + start), out + dots, SHOWN_ROOM - dots);
    return out;
}

/* ---- folders ---- */

/* Called for everything that is not a folder; false ends the walk with its error. `facts` are those
 * of the file, of a link that leads to no file, or all zero for a file that has been removed since
 * its folder was listed. */
typedef bool folder_visit(void *context, const char *path, const struct stat *facts,
                          sl_error *error);

/* Walks a folder recursively. Memory holds only the names in the folders on the current path: about
 * 30 bytes per file, so that folders of half a million files are possible. Logs its progress. */

typedef struct folder_walk {
    const char *root, *include;
    folder_visit *visit;
    void *context;
    char *path; /* of the current file or folder */
    size_t path_room;
    size_t listed, checked; /* number of names */
    int64_t logged_ns;      /* sl_clock_ns() of the last progress line */
    bool again;             /* it is listed again; its work directories have been logged */
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
    char shown[SHOWN_ROOM];
    sl_log_info("searching %s: %zu of %zu names checked so far", path_shown(walk->root, shown),
                walk->checked, walk->listed);
    walk->logged_ns = sl_clock_ns();
}

static bool fail(const folder_walk *walk, sl_error *error) {
    char shown[SHOWN_ROOM];
    return sl_error_errno(error, SL_EXIT_SOURCE, "%s", path_shown(walk->path, shown));
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool add_name(listing *list, const char *name) {
    const char **sorted = sl_grow(list->sorted, list->count, &list->room, sizeof *sorted);
    if (!sorted)
        return false;
    list->sorted = sorted;
    list->sorted[list->count] = names_add(&list->names, name);
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
            char shown[SHOWN_ROOM], name[SHOWN_ROOM];
            sl_log_debug("%s/%s: hidden; skipped", path_shown(walk->path, shown),
                         path_shown(entry->d_name, name));
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
            char shown[SHOWN_ROOM];
            sl_log_warning("%s: leads back to a folder above it; not followed",
                           path_shown(walk->path, shown));
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
    static const char *const names[] = {SL_WORK_FILES};
    const size_t aside = sizeof SL_WORK_REJECTED; /* length of rejected- */
    if (strncmp(name, SL_WORK_REJECTED "-", aside) == 0 && name[aside])
        return !name[aside + strspn(name + aside, "0123456789")];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (sl_is_private_file(name, names[i]))
            return true;
    }
    return false;
}

static bool is_work_directory(const folder_walk *walk, int folder) {
    char shown[SHOWN_ROOM];
    if (faccessat(folder, SL_WORK_LOG, F_OK, 0) != 0)
        return false;
    if (!walk->again)
        sl_log_info("%s: the work directory of a load; its journal, log, records and rejects are "
                    "skipped",
                    path_shown(walk->path, shown));
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
    names_clear(&list.names);
    return ok;
}

/* Visits all files below `path` whose names match the shell pattern `include` (NULL: all), in order
 * of name, folder by folder; also pipes, sockets and devices. Follows links, except links that lead
 * back to a folder above. Skips hidden files, __MACOSX, and the files of work directories. Logs its
 * progress every two seconds. Opens no file. */
static bool visit_folder(const char *path, const char *include, bool again, folder_visit *visit,
                         void *context, sl_error *error) {
    folder_walk walk = {.root = path,
                        .include = include,
                        .again = again,
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

/* ---- has a file changed? ---- */

/* Threads open the same path at different times, and a load takes hours. If a file is replaced,
 * appended to, truncated or rewritten meanwhile, the load would contain a mixture of two texts. So
 * each source has an identity, taken when the set is created. After bytes are read from a
 * descriptor, its identity is compared: if it is unchanged, the bytes are text of the original
 * file.
 *
 * The ctime shows changes that size, mtime and inode do not: contents rewritten at the same size
 * with the mtime restored, and an open file whose path was given to another file (this removes a
 * link, which changes the ctime). A file of which only the permissions or links have changed is
 * refused as well; a resume then compares its text. */

static int64_t nanoseconds(struct timespec time) {
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The identity of a regular file; all zero for other kinds. */
static sl_source_identity identity_of(const struct stat *facts) {
    if (!S_ISREG(facts->st_mode))
        return (sl_source_identity){0};
    return (sl_source_identity){.device = facts->st_dev,
                                .inode = facts->st_ino,
                                .size = (uint64_t)facts->st_size,
                                .modified_ns = nanoseconds(facts->st_mtim),
                                .changed_ns = nanoseconds(facts->st_ctim)};
}

sl_source_identity sl_source_identity_at(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 ? identity_of(&facts) : (sl_source_identity){0};
}

sl_source_identity sl_source_identity_of(int file) {
    struct stat facts;
    return fstat(file, &facts) == 0 ? identity_of(&facts) : (sl_source_identity){0};
}

_Static_assert(sizeof(sl_source_identity) == 5 * sizeof(uint64_t), "memcmp must not see padding");

bool sl_source_same_identity(const sl_source_identity *a, const sl_source_identity *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

const char *sl_file_time_shown(int64_t ns, char out[SL_FILE_TIME_ROOM]) {
    const int64_t second = 1000000000, part = (ns % second + second) % second;
    time_t seconds = (time_t)((ns - part) / second); /* before 1970, too */
    struct tm utc;
    char day[32] = "?";
    if (gmtime_r(&seconds, &utc))
        strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out, SL_FILE_TIME_ROOM, "%s.%09lldZ", day, (long long)part);
    return out;
}

/* Sets the error to the most important change; returns false. `now` NULL: the file no longer
 * exists. */
static bool report_change(sl_source_set *set, size_t index, const sl_source_identity *now,
                          sl_error *error) {
    const sl_source *source = &set->states[index].source;
    const sl_source_identity *was = &source->identity;
    char how[300], before[SL_FILE_TIME_ROOM], after[SL_FILE_TIME_ROOM];
    if (!now)
        snprintf(how, sizeof how, "was removed or renamed");
    else if (now->inode == 0)
        snprintf(how, sizeof how, "was replaced by something that is not a regular file");
    else if (now->device != was->device || now->inode != was->inode)
        snprintf(how, sizeof how,
                 "was replaced by another file (inode %llu, before: %llu; %llu bytes, before: "
                 "%llu)",
                 (unsigned long long)now->inode, (unsigned long long)was->inode,
                 (unsigned long long)now->size, (unsigned long long)was->size);
    else if (now->size != was->size)
        snprintf(how, sizeof how, "has %s from %llu to %llu bytes",
                 now->size > was->size ? "grown" : "shrunk", (unsigned long long)was->size,
                 (unsigned long long)now->size);
    else if (now->modified_ns != was->modified_ns)
        snprintf(how, sizeof how, "was modified at %s (before: %s) at the same size of %llu bytes",
                 sl_file_time_shown(now->modified_ns, after),
                 sl_file_time_shown(was->modified_ns, before), (unsigned long long)now->size);
    else
        snprintf(how, sizeof how,
                 "had its status changed at %s (before: %s): its permissions, owner, links or "
                 "times, or its contents with the times restored",
                 sl_file_time_shown(now->changed_ns, after),
                 sl_file_time_shown(was->changed_ns, before));
    atomic_store(&set->changed, true);
    return sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: %s while it was being read; do not change sources until the command "
                        "has ended",
                        source->shown, how);
}

static bool has_identity(const sl_source *source) {
    return source->identity.inode != 0;
}

bool sl_identity_check_path(sl_source_set *set, size_t index, sl_error *error) {
    const sl_source *source = &set->states[index].source;
    struct stat facts;
    if (!has_identity(source))
        return true;
    bool standard_input = strcmp(source->path, "-") == 0;
    if ((standard_input ? fstat(0, &facts) : stat(source->path, &facts)) != 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? report_change(set, index, NULL, error)
                   : sl_error_errno(error, SL_EXIT_SOURCE, "%s", source->shown);
    sl_source_identity now = identity_of(&facts);
    return sl_source_same_identity(&source->identity, &now) ||
           report_change(set, index, &now, error);
}

bool sl_identity_check_open(sl_source_set *set, size_t index, int file, sl_error *error) {
    const sl_source *source = &set->states[index].source;
    struct stat facts;
    if (!has_identity(source))
        return true;
    if (fstat(file, &facts) != 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s", source->shown);
    sl_source_identity now = identity_of(&facts);
    if (sl_source_same_identity(&source->identity, &now))
        return true;
    /* If the path now names another file, the descriptor shows only a new ctime: report the
     * path. */
    return sl_identity_check_path(set, index, error) && report_change(set, index, &now, error);
}

/* Fails for a file that a folder of the sources did not have when the set was created. */
static bool is_known(void *context, const char *path, const struct stat *facts, sl_error *error) {
    char shown[SHOWN_ROOM];
    return facts->st_mode == 0 || sl_path_set_has(context, path) ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: was added to a folder of the sources after the command began, and is "
                        "not included; move it to another folder, and load it on its own",
                        path_shown(path, shown));
}

bool sl_source_set_unchanged(sl_source_set *set, sl_error *error) {
    for (size_t i = 0; i < set->count; i++) {
        if (!set->states[i].skip && !sl_identity_check_path(set, i, error))
            return false;
    }
    bool ok = true;
    sl_path_set known = {0};
    for (size_t i = 0; ok && set->folder_count > 0 && i < set->count; i++)
        ok = sl_path_set_add(&known, set->states[i].source.path) != SL_PATH_NO_MEMORY ||
             sl_error_memory(error, "comparing folders");
    for (size_t i = 0; ok && i < set->folder_count; i++)
        ok = visit_folder(set->folders[i], set->include, true, is_known, &known, error);
    sl_path_set_clear(&known);
    if (!ok)
        atomic_store(&set->changed, true);
    return ok;
}

bool sl_source_set_has_changed(const sl_source_set *set) {
    return atomic_load(&set->changed);
}

/* ---- the set ---- */

#define END_BYTES ((size_t)65536)

static source_state *add(sl_source_set *set, const char *path, sl_error *error) {
    source_state *states = sl_grow(set->states, set->count, &set->room, sizeof *states);
    if (!states) {
        sl_error_memory(error, "listing sources");
        return NULL;
    }
    set->states = states;
    source_state *state = &states[set->count];
    char shown[SHOWN_ROOM];
    const char *kept = names_add(&set->paths, path);
    *state = (source_state){.source = {.path = kept, .shown = kept},
                            .spread = set->count * UINT64_C(0xC13FA9A902A6328F)};
    if (kept && strcmp(path_shown(path, shown), path) != 0)
        state->source.shown = names_add(&set->paths, shown);
    if (!kept || !state->source.shown) {
        sl_error_memory(error, "listing sources");
        return NULL;
    }
    set->count++;
    return state;
}

bool sl_source_set_open(sl_source_set *set, size_t index, sl_stream **stream, sl_error *error) {
    sl_source *source = &set->states[index].source;
    const char *special = set->states[index].special;
    bool not_text;
    *stream = NULL;
    if (special)
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: %s", source->shown, special);
    if (source->kind == SL_SOURCE_PIPE) {
        if (set->states[index].opened)
            return sl_error_set(error, SL_EXIT_SOURCE, "%s: a pipe can be read only once",
                                source->shown);
        set->states[index].opened = true;
    }
    if (!sl_identity_check_path(set, index, error)) /* otherwise a pipe at this path could block */
        return false;
    /* `include` has matched the name of an archive found in a folder: all its entries are read. */
    if (sl_stream_open(source->path, source->shown, source->named ? set->include : NULL, set->dumps,
                       &set->stopped, &not_text, stream, error)) {
        if (sl_identity_check_open(set, index, sl_stream_file(*stream), error)) {
            const bool same = set->map && source->identity.inode != 0 &&
                              sl_source_same_identity(&set->map->identity, &source->identity);
            if (same && sl_stream_dump(*stream))
                sl_sql_dump_read_only(sl_stream_dump(*stream), set->map->table);
            if (same || !set->map || !set->map->files)
                return true;
            sl_error_set(error, SL_EXIT_SOURCE, "%s was replaced: load it again", source->shown);
        }
        sl_stream_close(*stream);
        *stream = NULL;
        return false;
    }
    if (!sl_identity_check_path(set, index, error)) /* a change explains the failure: report it */
        return false;
    if (not_text) {
        pthread_mutex_lock(&set->lock);
        source->kind = SL_SOURCE_NOT_TEXT;
        pthread_mutex_unlock(&set->lock);
    }
    return false;
}

bool sl_source_is_complete(const sl_source *source, const sl_stream *stream, sl_error *error) {
    uint64_t end = sl_stream_stored_bytes(stream);
    return end >= source->stored_bytes ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "%s: cannot be read after byte %llu, but its file system states more; if "
                        "the file is complete, copy it to a local disk, and name the copy",
                        source->shown, (unsigned long long)end);
}

/* Sets the kind of a regular file from its opened stream. */
static bool set_kind(sl_source_set *set, size_t index, const sl_stream *stream, sl_error *error) {
    sl_source *source = &set->states[index].source;
    sl_source_kind kind = sl_stream_kind(stream);
    char more;
    if (kind == SL_SOURCE_PLAIN && source->stored_bytes > SL_SOURCE_BYTES_MAX)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: a source may hold 1 TiB at most; split the file", source->shown);
    /* Only so many bytes will be read. */
    if (kind == SL_SOURCE_PLAIN &&
        sl_read_at(sl_stream_file(stream), &more, 1, source->stored_bytes) > 0)
        return sl_identity_check_open(set, index, sl_stream_file(stream), error) &&
               sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: holds more than the %llu bytes that its file system states; copy "
                            "it to a local disk, and name the copy",
                            source->shown, (unsigned long long)source->stored_bytes);
    pthread_mutex_lock(&set->lock);
    source->kind = kind;
    source->storage = sl_stream_storage(stream);
    pthread_mutex_unlock(&set->lock);
    return true;
}

bool sl_source_set_detect_kind(sl_source_set *set, size_t index, sl_error *error) {
    sl_stream *stream;
    bool ok = sl_source_set_open(set, index, &stream, error) && set_kind(set, index, stream, error);
    sl_stream_close(stream);
    return ok;
}

bool sl_source_holds_dump(sl_source_set *set, size_t index, char *how, size_t room) {
    const char *path = set->states[index].source.path, *ending = strrchr(path, '.');
    char file[1024], folder[SL_ENTRY_NAME_ROOM + 8] = "", word[1024];
    bool documents = false, metadata = false, more = true;
    sl_reader_times times = {0};
    sl_error ignored = {0};
    sl_stream *stream = NULL;
    if (set->states[index].source.kind != SL_SOURCE_ARCHIVE ||
        !sl_source_set_open(set, index, &stream, &ignored))
        return false;
    while (!(documents && metadata) && !sl_interrupt_requested() &&
           sl_stream_next_entry(stream, &more, &times, &ignored) && more) {
        const char *entry = sl_stream_entry_name(stream);
        documents =
            documents || fnmatch("*.bson", entry, 0) == 0 || fnmatch("*.bson.gz", entry, 0) == 0;
        if (metadata || fnmatch("*.metadata.json*", entry, 0) != 0)
            continue;
        metadata = true;
        snprintf(folder, sizeof folder, "dump/%s", entry);
    }
    sl_stream_close(stream);
    for (int level = 0; level < 2; level++) { /* removes DATABASE/NAME.metadata.json */
        char *last = strrchr(folder, '/');
        if (last)
            *last = '\0';
    }
    sl_shell_word(path, file, sizeof file);
    sl_shell_word(*folder ? folder : ".", word, sizeof word);
    if (ending && strcasecmp(ending, ".zip") == 0)
        snprintf(how, room, "unzip -d dump %s && shardload restore %s", file, word);
    else
        snprintf(how, room, "mkdir dump && tar -xf %s -C dump && shardload restore %s", file, word);
    return documents && metadata;
}

/* What cannot be read as a file of a folder; NULL for a regular file. */
static const char *special_kind(const struct stat *facts) {
    switch (facts->st_mode & S_IFMT) {
    case S_IFREG:
        return NULL;
    case 0:
        return "it was removed after its folder had been listed";
    case S_IFLNK:
        return "this is a link to a file that does not exist";
    case S_IFIFO:
        return "this is a named pipe; only a pipe named as a source is read";
    case S_IFSOCK:
        return "this is a socket";
    default:
        return "this is a device";
    }
}

/* Adds a file found in a folder, without opening it. */
static bool add_from_folder(void *context, const char *path, const struct stat *facts,
                            sl_error *error) {
    sl_source_set *set = context;
    source_state *state = add(set, path, error);
    if (!state)
        return false;
    state->special = special_kind(facts);
    state->source.kind = state->special ? SL_SOURCE_NOT_TEXT : SL_SOURCE_UNOPENED;
    if (state->special)
        return true;
    state->source.identity = identity_of(facts);
    state->source.stored_bytes = (uint64_t)facts->st_size;
    return true;
}

static bool add_folder(sl_source_set *set, const char *path, sl_error *error) {
    size_t before = set->count;
    char shown[SHOWN_ROOM];
    path_shown(path, shown);
    const char **folders =
        sl_grow(set->folders, set->folder_count, &set->folder_room, sizeof *folders);
    const char *kept = folders ? names_add(&set->paths, path) : NULL;
    set->folders = folders ? folders : set->folders;
    if (!kept)
        return sl_error_memory(error, "listing sources");
    set->folders[set->folder_count++] = kept;
    if (!visit_folder(path, set->include, false, add_from_folder, set, error))
        return false;
    return set->count > before ||
           sl_error_set(error, SL_EXIT_SOURCE, "%s: this folder holds no files%s%s", shown,
                        set->include ? " that match --include " : "",
                        set->include ? set->include : "");
}

static bool add_path(sl_source_set *set, const char *path, bool *piped, sl_error *error) {
    bool standard_input = strcmp(path, "-") == 0;
    if (standard_input && *piped)
        return sl_error_set(error, SL_EXIT_SOURCE, "-: standard input can be read only once");
    *piped = *piped || standard_input;
    struct stat facts;
    char shown[SHOWN_ROOM];
    if ((standard_input ? fstat(STDIN_FILENO, &facts) : stat(path, &facts)) != 0)
        return sl_error_errno(error, SL_EXIT_SOURCE, "%s", path_shown(path, shown));
    if (!standard_input && S_ISDIR(facts.st_mode))
        return add_folder(set, path, error);
    const char *unsupported = S_ISSOCK(facts.st_mode)  ? "socket"
                              : S_ISBLK(facts.st_mode) ? "disk"
                                                       : NULL;
    if (unsupported)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: this is a %s; only files, folders and pipes can be loaded",
                            path_shown(path, shown), unsupported);
    source_state *state = add(set, path, error);
    if (!state)
        return false;
    state->source.named = true;
    state->source.kind = SL_SOURCE_PIPE;
    state->source.identity = identity_of(&facts); /* standard input may be a regular file */
    if (standard_input || !S_ISREG(facts.st_mode))
        return true;
    state->source.stored_bytes = (uint64_t)facts.st_size;
    return sl_source_set_detect_kind(set, set->count - 1, error);
}

static bool create(const char *const *paths, size_t count, const char *include, bool dumps,
                   sl_source_set **result, sl_error *error) {
    *result = NULL;
    sl_source_set *set = calloc(1, sizeof *set);
    if (!set)
        return sl_error_memory(error, "listing sources");
    pthread_mutex_init(&set->lock, NULL);
    set->share = (source_share){.parts = 1, .sample = UINT64_MAX};
    set->dumps = dumps;
    if (include && !(set->include = names_add(&set->paths, include))) {
        sl_source_set_destroy(set);
        return sl_error_memory(error, "listing sources");
    }
    char report[sizeof error->message] = "";
    size_t used = 0;
    bool piped = false;
    sl_exit code = SL_EXIT_SOURCE;
    for (size_t i = 0; i < count; i++) {
        sl_error why = {0};
        if (add_path(set, paths[i], &piped, &why))
            continue;
        if (why.code == SL_EXIT_RESOURCES)
            code = why.code;
        used += sl_print_text(report + used, sizeof report - used, SL_LINES SL_LINES,
                              used ? "\n" : "", why.message);
    }
    if (used > 0) {
        sl_source_set_destroy(set);
        return sl_error_set(error, code, SL_LINES, report);
    }
    bool selects = !include;
    for (size_t i = 0; i < set->count; i++) {
        const sl_source *one = &set->states[i].source;
        set->stored_bytes += one->stored_bytes;
        selects |= !one->named || one->kind == SL_SOURCE_ARCHIVE || one->kind == SL_SOURCE_PIPE;
    }
    if (!selects) {
        sl_source_set_destroy(set);
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--include selects files of folders, entries of archives and tables of "
                            "SQL dumps, and no source is one of these: leave it out");
    }
    *result = set;
    return true;
}

bool sl_source_set_create(const char *const *paths, size_t count, const char *include,
                          sl_source_set **set, sl_error *error) {
    return create(paths, count, include, false, set, error);
}

bool sl_source_set_create_dump(const char *path, sl_source_set **set, sl_error *error) {
    return create(&path, 1, NULL, true, set, error);
}

bool sl_source_is_none(const char *path) {
    struct stat facts;
    return (strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &facts) : stat(path, &facts)) != 0 ||
           S_ISCHR(facts.st_mode);
}

bool sl_source_set_add_generated(sl_source_set *set, const char *name, uint64_t records,
                                 uint32_t record_bytes, sl_error *error) {
    source_state *state = add(set, name, error);
    if (!state)
        return false;
    state->source.kind = SL_SOURCE_GENERATED;
    state->source.named = true;
    state->source.record_bytes = record_bytes;
    state->source.stored_bytes = records * record_bytes;
    set->stored_bytes += state->source.stored_bytes;
    return true;
}

void sl_source_set_use_map(sl_source_set *set, const struct sl_sql_map *map) {
    set->map = map;
}

uint64_t sl_source_line_of_row(sl_source_set *set, sl_row_lines *at, size_t index,
                               const char *entry, uint64_t row) {
    sl_error unused;
    sl_reader_times times = {0};
    sl_input *rows;
    const sl_source *source = &set->states[index].source;
    if (!source->schema || source->identity.inode == 0 || strcmp(source->path, "-") == 0)
        return 0; /* no dump, or its text cannot be read a second time */
    if (at->source != index || strcmp(at->entry, entry) != 0 || row < at->row) {
        sl_stream_close(at->stream);
        *at = (sl_row_lines){.source = index};
        snprintf(at->entry, sizeof at->entry, "%s", entry);
        sl_sql_dump *dump = sl_source_set_open(set, index, &at->stream, &unused)
                                ? sl_stream_dump(at->stream)
                                : NULL;
        do {
            if (!dump || !sl_sql_dump_next(dump, &rows, &times, &unused) || !rows)
                return sl_row_lines_clear(at), 0;
        } while (strcmp(sl_sql_dump_shown(dump), entry) != 0);
    }
    at->row = row;
    return !at->stream ? 0 : sl_sql_dump_line_of(sl_stream_dump(at->stream), row, &times, &unused);
}

void sl_row_lines_clear(sl_row_lines *at) {
    sl_stream_close(at->stream);
    at->stream = NULL;
}

void sl_source_set_destroy(sl_source_set *set) {
    if (!set)
        return;
    while (set->kept) {
        sl_kept_pipe *kept = set->kept;
        set->kept = kept->next;
        sl_kept_pipe_destroy(kept);
    }
    for (size_t i = 0; i < set->open_count; i++)
        sl_open_source_destroy(set->open[i]);
    free(set->open);
    free(set->order);
    free(set->states);
    free(set->folders);
    names_clear(&set->entry_names);
    names_clear(&set->paths);
    pthread_mutex_destroy(&set->lock);
    free(set);
}

size_t sl_source_set_count(const sl_source_set *set) {
    return set->count;
}

const sl_source *sl_source_set_at(const sl_source_set *set, size_t index) {
    return &set->states[index].source;
}

void sl_source_set_report_skipped(sl_source_set *set, sl_skipped_entry_report *report,
                                  void *context) {
    set->report = report;
    set->report_context = context;
}

uint64_t sl_source_set_stored_bytes(const sl_source_set *set) {
    return set->stored_bytes;
}

void sl_source_set_reset_consumed(sl_source_set *set) {
    atomic_store_explicit(&set->consumed_bytes, 0, memory_order_relaxed);
}

uint64_t sl_source_set_consumed_bytes(const sl_source_set *set) {
    return atomic_load_explicit(&set->consumed_bytes, memory_order_relaxed);
}

void sl_source_set_skip(sl_source_set *set, size_t index) {
    if (!set->states[index].skip)
        set->stored_bytes -= set->states[index].source.stored_bytes;
    set->states[index].skip = true;
}

void sl_source_set_splitter(sl_source_set *set, size_t index, const sl_splitter *splitter,
                            const void *context, bool lines) {
    source_state *state = &set->states[index];
    bool plain = state->source.kind == SL_SOURCE_PLAIN;
    state->splitter = plain && lines ? NULL : splitter;
    state->split_context = context;
    state->source.sequential = plain && !lines;
}

void sl_source_set_skip_blocks(sl_source_set *set, size_t index, const uint64_t *done, size_t words,
                               bool compare) {
    source_state *state = &set->states[index];
    state->done = done;
    state->done_words = words;
    state->compare = compare || !sl_source_is_splittable(&state->source);
    uint64_t size = state->source.stored_bytes, skipped = 0;
    for (uint64_t start = 0; !state->compare && start < size; start += SL_BLOCK_BYTES) {
        if (sl_source_block_is_done(state, start >> SL_BLOCK_BITS))
            skipped += size - start < SL_BLOCK_BYTES ? size - start : SL_BLOCK_BYTES;
    }
    atomic_fetch_add_explicit(&set->consumed_bytes, skipped, memory_order_relaxed);
}

/* Keeps a pipe's stream, which the set now owns, and the bytes read from it. */
static bool keep(sl_source_set *set, size_t index, sl_stream *stream, sl_text head, bool whole,
                 sl_error *error) {
    sl_kept_pipe *kept = malloc(sizeof *kept);
    char *copy = malloc(head.length ? head.length : 1);
    if (!kept || !copy) {
        free(kept);
        free(copy);
        sl_stream_close(stream);
        return sl_error_memory(error, "reading a pipe");
    }
    memcpy(copy, head.bytes, head.length);
    *kept = (sl_kept_pipe){set->kept, index, stream, copy, head.length, whole};
    set->kept = kept;
    return true;
}

void sl_source_set_sample(sl_source_set *set, double share) {
    set->share.sample = (uint64_t)(share * 0x1p64);
}

void sl_source_set_part(sl_source_set *set, uint32_t part, uint32_t parts) {
    set->share.part = part - 1;
    set->share.parts = parts;
}

void sl_source_set_filter(sl_source_set *set, sl_block_filter *filter, const void *context) {
    set->filter = filter;
    set->filter_context = context;
}

/* Is the block part of the sample and of the part? Each block has a position from 0 to 1 (in units
 * of 2^-64): its sequence times the golden ratio, plus `spread`, modulo 1. Such positions are
 * evenly distributed for any series of consecutive blocks, and for blocks whose sequences have the
 * same low bits, so each range gets its share (see job/numbers.c). `spread` differs between
 * sources: otherwise all or none of many files with one block each would be selected. Part k is the
 * interval from k/parts to (k+1)/parts; the sample is the beginning of each part's interval. */
bool sl_source_set_selects(const sl_source_set *set, size_t index, uint64_t sequence,
                           uint64_t offset) {
    uint64_t position = sequence * UINT64_C(0x9E3779B97F4A7C15) + set->states[index].spread;
    unsigned __int128 scaled = (unsigned __int128)position * set->share.parts;
    return (uint64_t)(scaled >> 64) == set->share.part && (uint64_t)scaled <= set->share.sample &&
           (!set->filter || set->filter(set->filter_context, index, offset));
}

void sl_source_set_spread(sl_source_set *set, size_t index, uint64_t spread) {
    set->states[index].spread = spread;
}

void sl_source_set_passed(sl_source_set *set, size_t index, unsigned entries) {
    set->states[index].passed = entries;
}

void sl_source_set_cr_lines(sl_source_set *set, size_t index) {
    set->states[index].source.cr_lines = true;
}

void sl_source_set_line_escape(sl_source_set *set, size_t index, char escape) {
    set->states[index].source.line_escape = escape;
}

void sl_source_replace_cr(char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\r')
            text[i] = '\n';
    }
}

void sl_source_set_stop(sl_source_set *set) {
    atomic_store(&set->stopped, true);
}

/* ---- comparing two files ---- */

#define COMPARED_BYTES ((size_t)1 << 20)

/* Reads the next text of both streams, and moves to the next entries when both have ended. */
static bool same_part(sl_stream *const streams[2], char *bytes, bool *more, bool *same,
                      uint64_t *where, sl_error *error) {
    size_t got[2], at = 0;
    bool next[2] = {true, true};
    sl_reader_times times = {0};
    for (int i = 0; i < 2; i++) {
        if (!sl_stream_read(streams[i], bytes + (size_t)i * COMPARED_BYTES, COMPARED_BYTES, &got[i],
                            &times, error))
            return false;
    }
    while (at < got[0] && at < got[1] && bytes[at] == bytes[COMPARED_BYTES + at])
        at++;
    *where += at;
    *same = at == got[0] && at == got[1];
    for (int i = 0; i < 2 && *same && at < COMPARED_BYTES; i++) {
        if (!sl_stream_next_entry(streams[i], &next[i], &times, error))
            return false;
    }
    *same = *same && next[0] == next[1];
    *more = next[0];
    return true;
}

bool sl_source_same_text(sl_source_set *set, size_t a, size_t b, bool *same, uint64_t *where,
                         sl_error *error) {
    const sl_source *x = &set->states[a].source, *y = &set->states[b].source;
    const size_t indexes[2] = {a, b};
    sl_stream *streams[2] = {NULL, NULL};
    bool more = x->kind != SL_SOURCE_GENERATED, has[2] = {more, more};
    *where = 0;
    *same = x->kind != SL_SOURCE_PLAIN || y->kind != SL_SOURCE_PLAIN ||
            x->stored_bytes == y->stored_bytes;
    char *bytes = malloc(2 * COMPARED_BYTES);
    bool ok = bytes || sl_error_memory(error, "comparing sources");
    sl_reader_times times = {0};
    for (int i = 0; ok && more && *same && i < 2; i++)
        ok = sl_source_set_open(set, indexes[i], &streams[i], error) &&
             sl_stream_next_entry(streams[i], &has[i], &times, error);
    *same = *same && has[0] == has[1];
    more = has[0];
    while (ok && more && *same)
        ok = same_part(streams, bytes, &more, same, where, error);
    for (int i = 0; i < 2; i++) {
        ok = ok && (!streams[i] ||
                    sl_identity_check_open(set, indexes[i], sl_stream_file(streams[i]), error));
        sl_stream_close(streams[i]);
    }
    free(bytes);
    return ok;
}

bool sl_source_text_bytes(sl_source_set *set, size_t index, uint64_t *bytes, sl_error *error) {
    const sl_source *source = &set->states[index].source;
    sl_reader_times times = {0};
    sl_stream *stream;
    *bytes = source->stored_bytes;
    if (sl_source_is_splittable(source))
        return true;
    char *text = malloc(COMPARED_BYTES);
    bool more, ok = text || sl_error_memory(error, "comparing sources");
    if (ok)
        sl_log_info("reading %s, to compare the size of its text", source->shown);
    ok = ok && sl_source_set_open(set, index, &stream, error);
    if (!ok) {
        free(text);
        return false;
    }
    sl_stream_add_line_ends(stream);
    ok = sl_stream_next_entry(stream, &more, &times, error);
    for (*bytes = 0; ok && more;) {
        size_t got;
        ok = sl_stream_read(stream, text, COMPARED_BYTES, &got, &times, error);
        *bytes += got;
        if (ok && got < COMPARED_BYTES)
            ok = sl_stream_next_entry(stream, &more, &times, error);
    }
    sl_stream_close(stream);
    free(text);
    return ok;
}

/* Keeps the schema of an SQL dump's first table. A dump without rows is left out like other files
 * without text. */
static bool take_schema(sl_source_set *set, size_t index, const sl_stream *stream, bool rows,
                        sl_error *error) {
    sl_source *source = &set->states[index].source;
    if (!sl_stream_dump(stream))
        return true;
    if (!rows) {
        source->kind = SL_SOURCE_NOT_TEXT;
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: this is an SQL dump without rows%s%s",
                            source->shown, set->include ? " of tables that match --include " : "",
                            set->include ? set->include : "");
    }
    source->schema = names_add(&set->entry_names, sl_stream_schema(stream));
    return source->schema || sl_error_memory(error, "examining the sources");
}

/* The name that tells a source's format: that of the stream's entry, or the path. */
static bool name_of(sl_source_set *set, const sl_source *source, const sl_stream *stream,
                    const char **name, sl_error *error) {
    const char *entry = sl_stream_entry_name(stream);
    *name = entry ? names_add(&set->entry_names, entry) : source->path;
    return *name || sl_error_memory(error, "examining the sources");
}

bool sl_source_head(sl_source_set *set, size_t index, char *head, size_t room, size_t *length,
                    bool *whole, const char **name, sl_error *error) {
    const sl_source *source = &set->states[index].source;
    if (source->kind == SL_SOURCE_GENERATED) {
        *length = 0;
        *whole = true;
        if (name)
            *name = source->path;
        return true;
    }
    bool pipe = source->kind == SL_SOURCE_PIPE;
    const sl_kept_pipe *kept = pipe ? *sl_kept_pipe_link(set, index) : NULL;
    if (kept) { /* its first bytes can be read only once */
        *length = kept->length < room ? kept->length : room;
        *whole = kept->whole && kept->length <= room;
        memcpy(head, kept->head, *length);
        return !name || name_of(set, source, kept->stream, name, error);
    }
    sl_reader_times times = {0};
    sl_stream *stream;
    bool more;
    bool ok = sl_source_set_open(set, index, &stream, error);
    if (ok && pipe) /* a file is read again, and its skipped entries are reported at that time */
        sl_stream_report_skipped(stream, set, index);
    if (ok && !pipe) /* the bytes of a pipe are kept, and its format is not known yet */
        sl_stream_add_line_ends(stream);
    ok = ok && (pipe || set_kind(set, index, stream, error)) &&
         sl_stream_next_entry(stream, &more, &times, error) &&
         take_schema(set, index, stream, more, error);
    for (unsigned left = set->states[index].passed; ok && more && left > 0; left--)
        ok = sl_stream_next_entry(stream, &more, &times, error);
    *length = 0;
    ok = ok && (!more || sl_stream_read(stream, head, room, length, &times, error));
    *whole = ok && *length < room;
    if (*whole && source->kind == SL_SOURCE_PLAIN)
        ok = sl_identity_check_open(set, index, sl_stream_file(stream), error) &&
             sl_source_is_complete(source, stream, error);
    ok = ok && (!name || name_of(set, source, stream, name, error));
    if (ok && pipe)
        return keep(set, index, stream, (sl_text){head, *length}, *whole, error);
    sl_stream_close(stream);
    return ok;
}

/* FNV-1a. */
#define FNV_BASIS UINT64_C(0xCBF29CE484222325)
#define FNV_PRIME UINT64_C(0x100000001B3)

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ p[i]) * FNV_PRIME;
    return hash;
}

/* MurmurHash3's final mix: similar inputs give very different hashes. */
static uint64_t mix(uint64_t hash) {
    hash = (hash ^ (hash >> 33)) * 0xFF51AFD7ED558CCDu;
    hash = (hash ^ (hash >> 33)) * 0xC4CEB9FE1A85EC53u;
    return hash ^ (hash >> 33);
}

/* Adds a file's first and last END_BYTES bytes to the hashes. */
static bool hash_ends(sl_source_set *set, size_t index, uint64_t *hash, uint64_t *content,
                      sl_error *error) {
    const sl_source *source = &set->states[index].source;
    char *bytes = malloc(END_BYTES);
    if (!bytes)
        return sl_error_memory(error, "reading sources");
    uint64_t size = source->stored_bytes;
    uint64_t starts[2] = {0, size > END_BYTES ? size - END_BYTES : 0};
    int file = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool ok = file >= 0;
    for (int end = 0; ok && end < (size > END_BYTES ? 2 : 1); end++) {
        ssize_t got = pread(file, bytes, END_BYTES, (off_t)starts[end]);
        ok = got >= 0;
        for (ssize_t i = 0; i < got; i++) { /* computing both hashes in one loop takes the time of
                                               one */
            *hash = (*hash ^ (unsigned char)bytes[i]) * FNV_PRIME;
            *content = (*content ^ (unsigned char)bytes[i]) * FNV_PRIME;
        }
    }
    if (!ok)
        sl_error_errno(error, SL_EXIT_SOURCE, "%s", source->shown);
    ok = ok ? sl_identity_check_open(set, index, file, error)
            : sl_identity_check_path(set, index, error) && false;
    if (file >= 0)
        close(file);
    free(bytes);
    return ok;
}

bool sl_source_fingerprint(sl_source_set *set, size_t index, char fingerprint[SL_FINGERPRINT_ROOM],
                           sl_error *error) {
    sl_source *source = &set->states[index].source;
    if (source->kind == SL_SOURCE_PIPE) {
        uint64_t random = 0;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            random = (uint64_t)sl_clock_ns() << 16 ^ (uint64_t)getpid();
        snprintf(fingerprint, SL_FINGERPRINT_ROOM, SL_PIPE_FINGERPRINT "%zu-%" PRIx64, index,
                 random);
        return true;
    }
    const char *name = sl_base_name(source->path);
    uint64_t size = source->stored_bytes;
    uint64_t hash = hash_bytes(FNV_BASIS, name, strlen(name) + 1);
    uint64_t content = hash_bytes(FNV_BASIS, &size, sizeof size);
    hash = hash_bytes(hash, &size, sizeof size);
    if (source->kind != SL_SOURCE_GENERATED) {
        if (!hash_ends(set, index, &hash, &content, error))
            return false;
        source->content = mix(content);
    }
    snprintf(fingerprint, SL_FINGERPRINT_ROOM, "%016" PRIx64 "-%" PRIu64, mix(hash), size);
    return true;
}
