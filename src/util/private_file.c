/* SPDX-License-Identifier: Apache-2.0 */
#include "private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool refuse(const char *path, const char *why, sl_error *error) {
    return sl_error_set(error, SL_EXIT_USAGE,
                        "cannot write %s: %s; remove it, or name another --work-dir", path, why);
}

int sl_private_file_open(const char *path, int flags, sl_error *error) {
    struct stat facts;
    /* O_NONBLOCK: opening a FIFO must not block. */
    int file = open(path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file < 0 || fstat(file, &facts) != 0) {
        if (errno == ELOOP)
            refuse(path, "it is a symbolic link", error);
        else if (errno == ENXIO)
            refuse(path, "it is a pipe or a socket", error);
        else
            sl_error_errno(error, SL_EXIT_USAGE, "cannot write %s", path);
        goto fail;
    }
    if (!S_ISREG(facts.st_mode) || facts.st_nlink > 1) {
        refuse(path,
               S_ISREG(facts.st_mode) ? "it has another hard link" : "it is not a regular file",
               error);
        goto fail;
    }
    /* On a file system without permissions fchmod fails; the user's own file is accepted there. */
    if ((facts.st_mode & 0777) != 0600 && fchmod(file, 0600) != 0 && facts.st_uid != geteuid()) {
        refuse(path, "it belongs to another user", error);
        goto fail;
    }
    return file;
fail:
    if (file >= 0)
        close(file);
    return -1;
}

bool sl_private_folder_make(const char *path, sl_error *error) {
    struct stat facts;
    if (mkdir(path, 0700) == 0)
        return true;
    if (errno != EEXIST || lstat(path, &facts) != 0)
        return sl_error_errno(error, SL_EXIT_USAGE, "cannot create %s", path);
    return S_ISDIR(facts.st_mode) || refuse(path, "it is not a folder", error);
}

void sl_private_folder_sync(const char *path) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
}

void sl_private_parent_sync(const char *path) {
    char *parent = strdup(path);
    if (parent)
        sl_private_folder_sync(dirname(parent));
    free(parent);
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

bool sl_private_file_may_replace(const char *path, sl_error *error) {
    struct stat facts;
    if (lstat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s: cannot be replaced, because it is not a regular file; give "
                            "another name",
                            path);
    char *folder = strdup(path);
    if (!folder)
        return sl_error_memory(error, "writing a file");
    bool ok = access(dirname(folder), W_OK | X_OK) == 0 ||
              sl_error_errno(error, SL_EXIT_USAGE, "%s: cannot be written", path);
    free(folder);
    return ok;
}

/* Writes a temporary file beside `path`, and renames it. */
static bool replace(const char *path, const char *bytes, size_t length, mode_t mode, bool sync,
                    sl_error *error) {
    bool ok = false;
    char *temporary = NULL;
    if (!sl_private_file_may_replace(path, error))
        return false;
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return sl_error_memory(error, "writing a file");
    int file = mkostemp(temporary, O_CLOEXEC); /* creates it with mode 0600 */
    if (file < 0) {
        sl_error_errno(error, SL_EXIT_USAGE, "%s: cannot be written", path);
        goto done;
    }
    ok = sl_write_all(file, bytes, length) && (mode == 0600 || fchmod(file, mode) == 0) &&
         (!sync || fsync(file) == 0);
    int closed = close(file);
    ok = ok && closed == 0 && rename(temporary, path) == 0;
    if (!ok) {
        sl_error_errno(error, SL_EXIT_USAGE, "%s: cannot be written", path);
        unlink(temporary);
    }
    if (sync)
        sl_private_parent_sync(path);
done:
    free(temporary);
    return ok;
}

bool sl_private_file_replace(const char *path, const char *bytes, size_t length, sl_error *error) {
    return replace(path, bytes, length, 0600, true, error);
}

bool sl_file_publish(const char *path, const char *bytes, size_t length, bool readable,
                     sl_error *error) {
    return replace(path, bytes, length, readable ? 0644 : 0600, false, error);
}
