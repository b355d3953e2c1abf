/* SPDX-License-Identifier: Apache-2.0 */
/* Private files: the files that a load writes contain its data, so only their owner may read them,
 * whatever the umask is. Writing never follows a link that another user has placed at the path. */
#ifndef SHARDLOAD_PRIVATE_FILE_H
#define SHARDLOAD_PRIVATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

/* Opens `path`, and creates it with mode 0600 if it does not exist. `flags`: O_WRONLY or O_RDWR,
 * with or without O_APPEND. Refuses symbolic links, files with several hard links, FIFOs and
 * devices, and a file of another user whose mode cannot be set to 0600. Returns the descriptor, or
 * -1 with error (SL_EXIT_USAGE). */
int sl_private_file_open(const char *path, int flags, sl_error *error);

/* Writes all bytes to a descriptor. False, with errno set, when it cannot. */
bool sl_write_all(int file, const void *bytes, size_t length);

/* Writes a file of `length` bytes atomically, with mode 0600: writes and syncs a temporary file in
 * the same folder, then renames it to `path`. Replaces an existing regular file; refuses a symbolic
 * link, a directory or a device. False with error (SL_EXIT_USAGE). */
bool sl_private_file_replace(const char *path, const char *bytes, size_t length, sl_error *error);

/* As sl_private_file_replace, for a file that is written every second and need not survive a power
 * failure: nothing is synced. `readable`: by all users (mode 0644). */
bool sl_file_publish(const char *path, const char *bytes, size_t length, bool readable,
                     sl_error *error);

/* Checks beforehand that sl_private_file_replace can write to `path`, without writing: for commands
 * that compute for hours before they write. */
bool sl_private_file_may_replace(const char *path, sl_error *error);

/* Creates the folder `path` with mode 0700. An existing folder is not changed; a link is
 * refused. */
bool sl_private_folder_make(const char *path, sl_error *error);

/* Syncs the folder `path`, and with it the names of its files, which fsync of a file does not.
 * Failures are ignored, since not all file systems can sync folders. */
void sl_private_folder_sync(const char *path);

/* Syncs the folder that contains the file or folder `path`. */
void sl_private_parent_sync(const char *path);

#endif
