/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs and files of work directories. */
#include "private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "read_file.h"

#define LINKS_MAX 40 /* in a path, as in the kernel */
#define ATTEMPTS 100 /* to create a folder that other commands create and remove */

/* Whose folder: rules of the header. */
typedef enum sl_folder_rule {
    RULE_WORK, /* a work directory */
    RULE_ANY,  /* an output that a user named */
} sl_folder_rule;

/* ---- folders ---- */

/* A path, divided into an open folder and a name in it. */
typedef struct sl_place {
    int folder; /* O_PATH; -1 if it could not be opened */
    char name[NAME_MAX + 1];
    const char *path;
} sl_place;

static bool trusted(uid_t owner) {
    return owner == geteuid() || owner == 0;
}

static bool refuse(const char *path, const char *why, const char *advice, sl_error *error) {
    sl_error_set(error, SL_EXIT_USAGE, "%s: %s; %s", path, why, advice);
    errno = 0;
    return false;
}

static bool refuse_folder(const char *path, const char *why, sl_error *error) {
    return refuse(path, why, "name another --work-dir", error);
}

static bool check_folder(int folder, const char *path, sl_error *error) {
    struct stat facts;
    if (fstat(folder, &facts) != 0)
        return sl_error_errno(error, SL_EXIT_USAGE, "cannot use %s", path);
    return trusted(facts.st_uid) ||
           refuse(path, "this folder belongs to another user, who could replace the files in it",
                  "run the command as that user, or name another --work-dir", error);
}

/* The folders of a path are opened one after the other, so that no link is followed whose owner has
 * not been checked: neither one above the last folder, nor one that was exchanged meanwhile. */
typedef struct sl_walk_to {
    const char *path; /* for messages */
    sl_folder_rule rule;
    unsigned links; /* followed so far */
    sl_error *error;
} sl_walk_to;

static int walk(sl_walk_to *to, int at, const char *path, bool is_target);

/* Follows `name` in an open folder, if it is a link. -1 as open_folder. */
static int follow(sl_walk_to *to, int at, const char *name, bool last) {
    struct stat facts;
    char target[PATH_MAX] = "";
    int file = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool is_link = file >= 0 && fstat(file, &facts) == 0 && S_ISLNK(facts.st_mode);
    bool read = is_link && readlinkat(file, "", target, sizeof target - 1) > 0;
    if (file >= 0)
        close(file);
    errno = is_link ? ELOOP : ENOTDIR;
    if (is_link && last && to->rule == RULE_WORK)
        refuse_folder(to->path, "it is a symbolic link", to->error);
    else if (is_link && !trusted(facts.st_uid))
        refuse(to->path,
               "a symbolic link in this path belongs to another user, who could change it",
               "name the folder to which it points", to->error);
    else if (read && to->links++ < LINKS_MAX)
        return walk(to, at, target, true);
    return -1;
}

static int walk(sl_walk_to *to, int at, const char *path, bool is_target) {
    int folder = openat(at, *path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (path += strspn(path, "/"); folder >= 0 && *path;) {
        char name[NAME_MAX + 2];
        const size_t length = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)length,
                 path); /* the kernel refuses a longer one */
        path += length + strspn(path + length, "/");
        int next = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0 && (errno == ENOTDIR || errno == ELOOP))
            next = follow(to, folder, name, !*path && !is_target);
        int why = errno;
        close(folder);
        errno = why;
        folder = next;
    }
    return folder;
}

/* Opens a folder, for use with the ...at functions. -1: errno is set, or it is 0 and the error is
 * set. */
static int open_folder(const char *path, sl_folder_rule rule, sl_error *error) {
    int folder = walk(&(sl_walk_to){path, rule, 0, error}, AT_FDCWD, path, false);
    if (folder >= 0 && rule == RULE_WORK && !check_folder(folder, path, error)) {
        close(folder);
        errno = 0;
        folder = -1;
    }
    return folder;
}

/* Opens the folder of a path. Slashes at its end do not count. */
static bool find_place(const char *path, sl_folder_rule rule, sl_place *place, sl_error *error) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    size_t above = start;
    while (above > 1 && path[above - 1] == '/')
        above--;
    *place = (sl_place){.folder = -1, .path = path};
    if (end - start > NAME_MAX || end == start) {
        errno = end == start ? ENOENT : ENAMETOOLONG;
        return sl_error_errno(error, SL_EXIT_USAGE, "cannot open %s", path);
    }
    memcpy(place->name, path + start, end - start);
    char *folder = above > 0 ? strndup(path, above) : strdup(".");
    if (!folder)
        return sl_error_memory(error, "opening a file");
    place->folder = open_folder(folder, rule, error);
    int why = errno;
    free(folder);
    errno = why;
    if (place->folder < 0 && why != 0) {
        sl_error_errno(error, SL_EXIT_USAGE, "cannot open %s", path);
        errno = why;
    }
    return place->folder >= 0;
}

static void leave(const sl_place *place) {
    int why = errno;
    if (place->folder >= 0)
        close(place->folder);
    errno = why;
}

bool sl_private_folder_check(const char *path, sl_error *error) {
    sl_place place;
    if (!find_place(path, RULE_ANY, &place, error))
        return false;
    struct stat facts;
    int folder = openat(place.folder, place.name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool ok = folder >= 0 && fstat(folder, &facts) == 0;
    if (!ok)
        sl_error_errno(error, SL_EXIT_USAGE, "cannot use %s", path);
    else if (S_ISLNK(facts.st_mode))
        ok = refuse_folder(path, "it is a symbolic link", error);
    else if (!S_ISDIR(facts.st_mode))
        ok = refuse_folder(path, "it is not a folder", error);
    else
        ok = check_folder(folder, path, error);
    int why = errno;
    if (folder >= 0)
        close(folder);
    leave(&place);
    errno = why;
    return ok;
}

/* Creates the folder, and sets `*exists` if there is one already, which is no error. */
static bool make_folder(const char *path, bool *exists, sl_error *error) {
    sl_place place;
    if (!find_place(path, RULE_ANY, &place, error))
        return false;
    bool made = mkdirat(place.folder, place.name, 0700) == 0;
    int why = errno;
    *exists = !made && why == EEXIST;
    if (!made && !*exists)
        sl_error_errno(error, SL_EXIT_USAGE, "cannot create %s", path);
    leave(&place);
    errno = why;
    return made || *exists;
}

bool sl_private_folder_make(const char *path, bool *created, sl_error *error) {
    for (unsigned attempt = 1;; attempt++) {
        bool exists;
        sl_error problem = {0};
        if (!make_folder(path, &exists, error))
            return false;
        if (created)
            *created = !exists;
        if (!exists || sl_private_folder_check(path, &problem))
            return true;
        /* ENOENT: another command has removed the folder since it was found. */
        if (errno != ENOENT || attempt == ATTEMPTS) {
            if (error)
                *error = problem;
            return false;
        }
    }
}

int sl_private_folder_open(const char *path, sl_error *error) {
    errno = 0;
    int place = open_folder(path, RULE_WORK, error);
    int folder = place < 0 ? -1 : openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && errno != 0)
        sl_error_errno(error, SL_EXIT_USAGE, "cannot open %s", path);
    if (place >= 0)
        close(place);
    return folder;
}

void sl_private_folder_protect(const char *path) {
    struct stat facts;
    sl_error ignored;
    int folder = sl_private_folder_open(path, &ignored);
    if (folder >= 0 && fstat(folder, &facts) == 0 && facts.st_uid == geteuid() &&
        !(facts.st_mode & S_ISVTX))
        fchmod(folder, facts.st_mode & 07755); /* fails on a file system without permissions */
    if (folder >= 0)
        close(folder);
}

int sl_private_open_in(int folder, const char *name, bool is_folder) {
    struct stat facts;
    int file = openat(folder, name,
                      (is_folder ? O_DIRECTORY : O_NONBLOCK) | O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file >= 0 && (fstat(file, &facts) != 0 || !trusted(facts.st_uid) ||
                      !(is_folder || S_ISREG(facts.st_mode)))) {
        close(file);
        file = -1;
    }
    return file;
}

bool sl_private_remove_in(int folder, const char *name, bool is_folder) {
    return unlinkat(folder, name, is_folder ? AT_REMOVEDIR : 0) == 0;
}

char *sl_private_folder_temporary(const char *name, sl_error *error) {
    const char *above = getenv("TMPDIR");
    char *path;
    if (asprintf(&path, "%s/%s-XXXXXX", above && *above ? above : "/tmp", name) < 0) {
        sl_error_memory(error, "creating a temporary folder");
        return NULL;
    }
    sl_place place; /* found: no link of another user leads there */
    bool found = find_place(path, RULE_ANY, &place, error);
    leave(&place);
    if (found && mkdtemp(path)) /* with mode 0700 */
        return path;
    if (found)
        sl_error_errno(error, SL_EXIT_USAGE, "cannot create the temporary folder %s", path);
    sl_error_prefix(error, "set TMPDIR to another folder");
    free(path);
    return NULL;
}

static void remove_name(const char *path, sl_folder_rule rule, int flags) {
    sl_place place;
    sl_error ignored;
    if (!find_place(path, rule, &place, &ignored))
        return;
    unlinkat(place.folder, place.name, flags);
    leave(&place);
}

void sl_private_file_remove(const char *path) {
    remove_name(path, RULE_WORK, 0);
}

bool sl_private_file_rename(const char *path, const char *name, sl_error *error) {
    sl_place place;
    if (!find_place(path, RULE_WORK, &place, error))
        return false;
    bool ok = renameat(place.folder, place.name, place.folder, name) == 0 ||
              sl_error_errno(error, SL_EXIT_USAGE, "cannot rename %s", path);
    leave(&place);
    return ok;
}

void sl_private_folder_remove(const char *path) {
    remove_name(path, RULE_ANY, AT_REMOVEDIR);
}

static void sync_folder(int at, const char *name) {
    int folder = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
}

void sl_private_folder_sync(const char *path) {
    sync_folder(AT_FDCWD, path);
}

void sl_private_parent_sync(const char *path) {
    sl_place place;
    sl_error ignored;
    if (find_place(path, RULE_ANY, &place, &ignored))
        sync_folder(place.folder, ".");
    leave(&place);
}

/* ---- files ---- */

/* Why a file must not be written; NULL if it may be. Its mode is set. On a file system without
 * permissions that fails; the user's own file is accepted there. */
static const char *objection_to_writing(int file, const struct stat *facts) {
    if (!S_ISREG(facts->st_mode))
        return "it is not a regular file";
    if (facts->st_nlink > 1)
        return "it has another hard link";
    if (facts->st_uid != geteuid())
        return "it belongs to another user";
    if ((facts->st_mode & 0777) != 0600)
        fchmod(file, 0600);
    return NULL;
}

/* Why a file must not be read; NULL if it may be. `also`: a user whose files may be read, too. */
static const char *objection_to_reading(const struct stat *facts, uid_t also) {
    return !S_ISREG(facts->st_mode)                           ? "it is not a regular file"
           : !trusted(facts->st_uid) && facts->st_uid != also ? "it belongs to another user"
                                                              : NULL;
}

static int open_at(const sl_place *place, int flags, uid_t also, sl_error *error) {
    struct stat facts;
    bool writing = (flags & O_ACCMODE) != O_RDONLY;
    const char *verb = writing ? "cannot write" : "cannot read";
    /* O_NONBLOCK: opening a FIFO must not block. */
    int file = openat(place->folder, place->name,
                      (flags & ~O_TRUNC) | (writing ? O_CREAT : 0) | O_CLOEXEC | O_NOFOLLOW |
                          O_NONBLOCK | O_NOCTTY,
                      0600);
    bool opened = file >= 0 && fstat(file, &facts) == 0;
    const char *why = opened && writing ? objection_to_writing(file, &facts)
                      : opened          ? objection_to_reading(&facts, also)
                      : errno == ELOOP  ? "it is a symbolic link"
                      : errno == ENXIO  ? "it is a pipe or a socket"
                                        : NULL;
    if (!why && (!opened || ((flags & O_TRUNC) && ftruncate(file, 0) != 0)))
        sl_error_errno(error, SL_EXIT_USAGE, "%s %s", verb, place->path);
    else if (why)
        sl_error_set(error, SL_EXIT_USAGE, "%s %s: %s; remove it, or name another %s", verb,
                     place->path, why, flags & O_TRUNC ? "file" : "--work-dir");
    else
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

int sl_private_file_open(const char *path, int flags, sl_error *error) {
    sl_place place;
    if (!find_place(path, RULE_WORK, &place, error))
        return -1;
    int file = open_at(&place, flags, 0, error);
    leave(&place);
    return file;
}

FILE *sl_private_file_stream(const char *path, int flags, sl_error *error) {
    int file = sl_private_file_open(path, flags, error);
    if (file < 0)
        return NULL;
    FILE *stream = fdopen(file, (flags & O_ACCMODE) == O_RDONLY ? "r"
                                : flags & O_APPEND              ? "a"
                                                                : "w");
    if (!stream) {
        sl_error_errno(error, SL_EXIT_USAGE, "cannot open %s", path);
        close(file);
    }
    return stream;
}

int sl_output_file_open(const char *path, sl_error *error) {
    sl_place place;
    if (!find_place(path, RULE_ANY, &place, error))
        return -1;
    int file = open_at(&place, O_WRONLY | O_TRUNC, 0, error);
    leave(&place);
    return file;
}

bool sl_private_file_read(const char *path, size_t most, sl_exit code, sl_text *text,
                          sl_error *error) {
    sl_place place;
    struct stat facts;
    if (!find_place(path, RULE_ANY, &place, error))
        return false;
    int file =
        fstat(place.folder, &facts) == 0 ? open_at(&place, O_RDONLY, facts.st_uid, error) : -1;
    leave(&place);
    FILE *stream = file >= 0 ? fdopen(file, "r") : NULL;
    if (!stream) {
        if (file >= 0) {
            sl_error_errno(error, SL_EXIT_RESOURCES, "cannot read %s", path);
            close(file);
        }
        return false;
    }
    bool ok = sl_read_stream(stream, most, code, text, error) || sl_error_prefix(error, "%s", path);
    fclose(stream);
    return ok;
}

bool sl_write_all(int file, const void *bytes, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t written = write(file, (const char *)bytes + done, length - done);
        if (written < 0 && errno != EINTR)
            return false;
        done += written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* ---- replacing files ---- */

static bool may_replace(const sl_place *place, sl_error *error) {
    struct stat facts;
    if (fstatat(place->folder, place->name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        !S_ISREG(facts.st_mode))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s: cannot be replaced, because it is not a regular file; give "
                            "another name",
                            place->path);
    return faccessat(place->folder, ".", W_OK | X_OK, 0) == 0 ||
           sl_error_errno(error, SL_EXIT_USAGE, "%s: cannot be written", place->path);
}

bool sl_private_file_may_replace(const char *path, sl_error *error) {
    sl_place place;
    bool ok = find_place(path, RULE_ANY, &place, error) && may_replace(&place, error);
    leave(&place);
    return ok;
}

#define SUFFIX ".~XXXXXX"
#define DRAWN 6u /* letters at its end */

bool sl_is_private_file(const char *name, const char *of) {
    const size_t length = strlen(of);
    if (strncmp(name, of, length) != 0)
        return false;
    return !name[length] || (strncmp(name + length, SUFFIX, sizeof SUFFIX - 1 - DRAWN) == 0 &&
                             strlen(name + length) == sizeof SUFFIX - 1);
}

/* Creates a file with a unique name beside the place's, with mode 0600. */
static int create_temporary(const sl_place *place, char name[NAME_MAX + sizeof SUFFIX]) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    size_t length = strlen(place->name);
    int file = -1;
    memcpy(name, place->name, length);
    memcpy(name + length, SUFFIX, sizeof SUFFIX);
    for (unsigned attempt = 0; attempt < 100 && file < 0; attempt++) {
        uint8_t drawn[DRAWN];
        if (getentropy(drawn, sizeof drawn) != 0)
            return -1;
        for (size_t i = 0; i < sizeof drawn; i++)
            name[length + sizeof SUFFIX - 1 - DRAWN + i] = letters[drawn[i] % 32];
        file =
            openat(place->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file < 0 && errno != EEXIST)
            return -1;
    }
    return file;
}

static bool set_readers(const sl_place *place, int file, sl_file_readers readers) {
    struct stat facts;
    if (readers == SL_READERS_OWNER && geteuid() == 0 &&
        (fstat(place->folder, &facts) != 0 ||
         (facts.st_uid != 0 && fchown(file, facts.st_uid, facts.st_gid) != 0)))
        return false;
    if (readers == SL_READERS_ALL)
        return fchmod(file, 0644) == 0;
    fchmod(file, 0600); /* fails on a file system without permissions */
    return true;
}

/* Writes a temporary file beside `path`, and renames it. */
static bool replace(const char *path, const char *bytes, size_t length, sl_file_readers readers,
                    bool sync, sl_error *error) {
    sl_place place;
    char temporary[NAME_MAX + sizeof SUFFIX];
    bool ok = find_place(path, RULE_ANY, &place, error) && may_replace(&place, error);
    if (!ok) {
        leave(&place);
        return false;
    }
    int file = create_temporary(&place, temporary);
    ok = file >= 0 && sl_write_all(file, bytes, length) && set_readers(&place, file, readers) &&
         (!sync || length == 0 || fsync(file) == 0);
    if (file >= 0)
        ok = close(file) == 0 && ok;
    ok = ok && renameat(place.folder, temporary, place.folder, place.name) == 0;
    if (!ok) {
        sl_error_errno(error, SL_EXIT_USAGE, "%s: cannot be written", path);
        if (file >= 0)
            unlinkat(place.folder, temporary, 0);
    }
    if (sync)
        sync_folder(place.folder, ".");
    leave(&place);
    return ok;
}

bool sl_private_file_replace(const char *path, const char *bytes, size_t length, sl_error *error) {
    return replace(path, bytes, length, SL_READERS_USER, true, error);
}

bool sl_file_publish(const char *path, const char *bytes, size_t length, sl_file_readers readers,
                     sl_error *error) {
    return replace(path, bytes, length, readers, false, error);
}

bool sl_private_folder_make_named(const char *name, char *path, size_t room, bool *created,
                                  sl_error *error) {
    time_t now = time(NULL);
    struct tm local;
    char stamp[32], number[16] = "";
    *created = false;
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    for (unsigned attempt = 2;; attempt++) {
        snprintf(path, room, "shardload-%s-%s%s", name, stamp, number);
        if (!sl_private_folder_make(path, created, error) || *created || attempt > 1000)
            return *created;
        snprintf(number, sizeof number, "-%u", attempt);
    }
}
