/* SPDX-License-Identifier: Apache-2.0 */
/* Files for nobody else: what a load leaves behind holds its data. They are readable by their owner
 * alone whatever the umask, and are never written through what somebody else has put in their
 * place. */
#ifndef SHARDLOAD_PRIVATE_FILE_H
#define SHARDLOAD_PRIVATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <shardload/error.h>

/* Opens `path`, which is made with mode 0600 where there is none; `flags`: O_WRONLY or O_RDWR, with
 * O_APPEND or not. Something other than a regular file with one name (a link, a FIFO, a device) is
 * refused, and so is a file that others may read and that cannot be kept from them. The file's
 * descriptor, or -1 with error (SL_EXIT_USAGE). */
int sl_private_file_open(const char *path, int flags, sl_error *error);

/* Writes `length` bytes to `path`, mode 0600. The file appears whole or not at all: it is written and
 * synced beside its place and renamed into it. An existing regular file is replaced; a symbolic link,
 * a directory or a device is refused. False with error (SL_EXIT_USAGE). */
bool sl_private_file_replace(const char *path, const char *bytes, size_t length, sl_error *error);

/* Would sl_private_file_replace write to `path`, as far as can be told beforehand? For asking before
 * hours of work whose result is to go there. */
bool sl_private_file_may_replace(const char *path, sl_error *error);

/* Makes the folder `path`, mode 0700, or takes the one that is there; a link is refused. */
bool sl_private_folder_make(const char *path, sl_error *error);

/* Waits until the names of the files in folder `path` are on the disk; syncing a file does not do
 * that for its name. Where the file system cannot, nothing happens. */
void sl_private_folder_sync(const char *path);

/* The same for the folder that holds the file or folder `path`. */
void sl_private_parent_sync(const char *path);

#endif
