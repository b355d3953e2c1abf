/* SPDX-License-Identifier: Apache-2.0 */
/* A library for LD_PRELOAD: records a program's file operations below a folder, in order.
 *
 * RECORD_UNDER is the folder, RECORD_INTO the file that receives one record per operation: writes
 * with their data, truncations, new, renamed and removed names, and the beginning and end of each
 * fsync and fdatasync. power_cut.py computes from the records the contents of the disk after a
 * power failure at any time.
 *
 * An operation and its record are made under one lock; only a sync runs without it, since other
 * threads may write meanwhile. The C library flushes its streams (FILE) by internal calls that a
 * preloaded library cannot intercept. So before each record the sizes of all open files are
 * checked, and bytes by which a file has grown are recorded as a write. A stream that writes before
 * the end of a file is not recorded. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FILES 4096
#define REAL(name, result, ...)                                                                    \
    static result (*real)(__VA_ARGS__);                                                            \
    if (!real)                                                                                     \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

enum { OPENED = 1, FOLDER_MADE, RENAMED, REMOVED, WRITTEN, TRUNCATED, SYNC_BEGUN, SYNC_ENDED };

typedef struct sl_record {
    uint64_t nanoseconds; /* of the monotonic clock */
    uint64_t kind, file;  /* one of the enumeration; inode */
    uint64_t offset;      /* WRITTEN: in the file; TRUNCATED: new size; SYNC_ENDED: number of the
                             SYNC_BEGUN record */
    uint64_t path_bytes, data_bytes;
} sl_record;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int into = -1;
static uint64_t records;
static struct {
    bool open;
    uint64_t file;
    off_t size; /* recorded so far */
} files[FILES];

/* ---- records ---- */

static bool is_ours(const char *path) {
    const char *under = getenv("RECORD_UNDER");
    return under && path && strncmp(path, under, strlen(under)) == 0;
}

static uint64_t append(uint64_t kind, uint64_t file, uint64_t offset, const char *path,
                       const void *data, size_t bytes) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (into < 0)
        into = openat(AT_FDCWD, getenv("RECORD_INTO"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                      0600);
    sl_record head = {(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
                      kind,
                      file,
                      offset,
                      path ? strlen(path) : 0,
                      bytes};
    struct iovec parts[] = {{&head, sizeof head},
                            {(void *)(uintptr_t)path, head.path_bytes},
                            {(void *)(uintptr_t)data, bytes}};
    REAL(writev, ssize_t, int, const struct iovec *, int);
    if (real(into, parts, 3) < 0)
        abort(); /* without this record every later disk would be wrong */
    return records++;
}

/* Records the bytes that streams have written since the last record. */
static void record_growth(void) {
    for (int i = 0; i < FILES; i++) {
        struct stat facts;
        if (!files[i].open || fstat(i, &facts) != 0 || facts.st_size <= files[i].size)
            continue;
        size_t bytes = (size_t)(facts.st_size - files[i].size);
        char path[64], *data = malloc(bytes);
        snprintf(path, sizeof path, "/proc/self/fd/%d", i);
        /* Opened again, since `i` may be write-only. The path is not ours. */
        int again = data ? openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
        if (again < 0 || pread(again, data, bytes, files[i].size) != (ssize_t)bytes)
            abort();
        append(WRITTEN, files[i].file, (uint64_t)files[i].size, NULL, data, bytes);
        files[i].size = facts.st_size;
        close(again);
        free(data);
    }
}

static bool is_open(int file) {
    return file >= 0 && file < FILES && files[file].open;
}

static void set_size(int file, off_t size) {
    for (int i = 0; i < FILES; i++) {
        if (files[i].open && files[i].file == files[file].file)
            files[i].size = size;
    }
}

static void begin(void) {
    int saved = errno;
    pthread_mutex_lock(&lock);
    record_growth();
    errno = saved;
}

static void end(void) {
    int saved = errno;
    pthread_mutex_unlock(&lock);
    errno = saved;
}

/* ---- names ---- */

/* The path of a name in the folder `at`. */
static const char *path_at(int at, const char *path, char out[4096]) {
    char link[64];
    if (at == AT_FDCWD || path[0] == '/')
        return path;
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t length = readlink(link, out, 2048);
    if (length < 0)
        return path;
    snprintf(out + length, 4096 - (size_t)length, "/%s", path);
    return out;
}

static void record_open(const char *path, int file, int flags) {
    struct stat facts;
    int saved = errno;
    if (file >= 0 && file < FILES && fstat(file, &facts) == 0) {
        bool folder = S_ISDIR(facts.st_mode);
        files[file].open = true;
        files[file].file = facts.st_ino;
        files[file].size = folder ? INT64_MAX : facts.st_size;
        if (!folder)
            append(OPENED, facts.st_ino, (uint64_t)facts.st_size, path, NULL, 0);
        if (flags & O_TRUNC)
            append(TRUNCATED, facts.st_ino, 0, NULL, NULL, 0);
    }
    errno = saved;
}

static int open_at(int at, const char *name, int flags, mode_t mode) {
    REAL(openat, int, int, const char *, int, ...);
    char room[4096];
    const char *path = path_at(at, name, room);
    if (!is_ours(path) || (flags & O_PATH))
        return real(at, name, flags, mode);
    begin();
    int file = real(at, name, flags, mode);
    record_open(path, file, flags);
    end();
    return file;
}

#define MODE_OF(flags)                                                                             \
    va_list arguments;                                                                             \
    va_start(arguments, flags);                                                                    \
    mode_t mode = (flags) & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;               \
    va_end(arguments)

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...) {                                                   \
        MODE_OF(flags);                                                                            \
        return open_at(AT_FDCWD, path, flags, mode);                                               \
    }
OPEN(open)
OPEN(open64)

#define OPEN_AT(name)                                                                              \
    int name(int at, const char *path, int flags, ...) {                                           \
        MODE_OF(flags);                                                                            \
        return open_at(at, path, flags, mode);                                                     \
    }
OPEN_AT(openat)
OPEN_AT(openat64)

#define STREAM(name)                                                                               \
    FILE *name(const char *restrict path, const char *restrict mode) {                             \
        REAL(name, FILE *, const char *, const char *);                                            \
        if (!is_ours(path))                                                                        \
            return real(path, mode);                                                               \
        begin();                                                                                   \
        FILE *stream = real(path, mode);                                                           \
        if (stream)                                                                                \
            record_open(path, fileno(stream), *mode == 'w' ? O_TRUNC : 0);                         \
        end();                                                                                     \
        return stream;                                                                             \
    }
STREAM(fopen)
STREAM(fopen64)

static int record_name(int status, uint64_t kind, const char *path, const char *to) {
    if (status == 0)
        append(kind, 0, 0, path, to, to ? strlen(to) : 0);
    end();
    return status;
}

int mkdirat(int at, const char *name, mode_t mode) {
    REAL(mkdirat, int, int, const char *, mode_t);
    char room[4096];
    const char *path = path_at(at, name, room);
    if (!is_ours(path))
        return real(at, name, mode);
    begin();
    return record_name(real(at, name, mode), FOLDER_MADE, path, NULL);
}

int renameat(int at, const char *from, int into_folder, const char *to) {
    REAL(renameat, int, int, const char *, int, const char *);
    char room[4096], other[4096];
    const char *path = path_at(at, from, room);
    if (!is_ours(path))
        return real(at, from, into_folder, to);
    begin();
    return record_name(real(at, from, into_folder, to), RENAMED, path,
                       path_at(into_folder, to, other));
}

int unlinkat(int at, const char *name, int flags) {
    REAL(unlinkat, int, int, const char *, int);
    char room[4096];
    const char *path = path_at(at, name, room);
    if (!is_ours(path))
        return real(at, name, flags);
    begin();
    return record_name(real(at, name, flags), REMOVED, path, NULL);
}

/* ---- contents ---- */

static ssize_t record_write(int file, off_t offset, const void *data, ssize_t bytes) {
    struct stat facts;
    int saved = errno;
    if (bytes > 0)
        append(WRITTEN, files[file].file, (uint64_t)offset, NULL, data, (size_t)bytes);
    if (bytes > 0 && fstat(file, &facts) == 0)
        set_size(file, facts.st_size);
    errno = saved;
    end();
    return bytes;
}

ssize_t write(int file, const void *data, size_t bytes) {
    REAL(write, ssize_t, int, const void *, size_t);
    if (!is_open(file))
        return real(file, data, bytes);
    begin();
    ssize_t done = real(file, data, bytes);
    off_t at = lseek(file, 0, SEEK_CUR);
    return record_write(file, at - (done > 0 ? done : 0), data, done);
}

#define PWRITE(name)                                                                               \
    ssize_t name(int file, const void *data, size_t bytes, off_t offset) {                         \
        REAL(name, ssize_t, int, const void *, size_t, off_t);                                     \
        if (!is_open(file))                                                                        \
            return real(file, data, bytes, offset);                                                \
        begin();                                                                                   \
        return record_write(file, offset, data, real(file, data, bytes, offset));                  \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define TRUNCATE(name)                                                                             \
    int name(int file, off_t size) {                                                               \
        REAL(name, int, int, off_t);                                                               \
        if (!is_open(file))                                                                        \
            return real(file, size);                                                               \
        begin();                                                                                   \
        int status = real(file, size);                                                             \
        if (status == 0) {                                                                         \
            append(TRUNCATED, files[file].file, (uint64_t)size, NULL, NULL, 0);                    \
            set_size(file, size);                                                                  \
        }                                                                                          \
        end();                                                                                     \
        return status;                                                                             \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define SYNC(name)                                                                                 \
    int name(int file) {                                                                           \
        REAL(name, int, int);                                                                      \
        if (!is_open(file))                                                                        \
            return real(file);                                                                     \
        char path[64], folder[4096] = "";                                                          \
        if (files[file].size == INT64_MAX) {                                                       \
            snprintf(path, sizeof path, "/proc/self/fd/%d", file);                                 \
            ssize_t length = readlink(path, folder, sizeof folder - 1);                            \
            folder[length > 0 ? length : 0] = '\0';                                                \
        }                                                                                          \
        begin();                                                                                   \
        uint64_t number = append(SYNC_BEGUN, files[file].file, 0, folder, NULL, 0);                \
        end();                                                                                     \
        int status = real(file);                                                                   \
        begin();                                                                                   \
        if (status == 0)                                                                           \
            append(SYNC_ENDED, files[file].file, number, NULL, NULL, 0);                           \
        end();                                                                                     \
        return status;                                                                             \
    }
SYNC(fsync)
SYNC(fdatasync)

static void forget(int file) {
    begin();
    files[file].open = false;
    end();
}

int close(int file) {
    REAL(close, int, int);
    if (is_open(file))
        forget(file);
    return real(file);
}

int fclose(FILE *stream) {
    REAL(fclose, int, FILE *);
    if (is_open(fileno(stream))) {
        fflush(stream);
        forget(fileno(stream));
    }
    return real(stream);
}
