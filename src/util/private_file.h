/* SPDX-License-Identifier: Apache-2.0 */
/* Every file and folder that the programs write, and every file that they read back from a work
 * directory, is opened here. (Sources and other inputs that a user names are opened elsewhere, and
 * may be pipes.)
 *
 * The files contain data, so only their owner may read them, whatever the umask is. And another
 * user may have prepared the folder, or may change it meanwhile; if the user of the program is
 * root, every file of the machine is at stake. Therefore the folder is opened first; the file is
 * opened, created, replaced or removed relative to that descriptor, without following a link and
 * without waiting for the other end of a pipe; type, owner and mode are checked and set through
 * the file's descriptor, never by its name. */
#ifndef SHARDLOAD_PRIVATE_FILE_H
#define SHARDLOAD_PRIVATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "error.h"
#include "text.h"

/* ---- in a work directory: the folder must belong to the effective user or to root, and must not
 * be a symbolic link ---- */

/* Opens `path`. `flags`: O_RDONLY for a file that exists; or O_WRONLY or O_RDWR, with or without
 * O_APPEND and O_TRUNC, for a file that is created with mode 0600 if it does not exist; an existing
 * one gets this mode. Refuses symbolic links, FIFOs, devices and files of other users (to be read,
 * a file may belong to root); for writing also files with several hard links. Returns the
 * descriptor, or -1 with error (SL_EXIT_USAGE). */
int sl_private_file_open(const char *path, int flags, sl_error *error);

/* The same as a stream; NULL with error. */
FILE *sl_private_file_stream(const char *path, int flags, sl_error *error);

/* Removes a file, if it exists and the folder is as above. */
void sl_private_file_remove(const char *path);

/* Gives a file another name in its folder. */
bool sl_private_file_rename(const char *path, const char *name, sl_error *error);

/* Creates the folder `path` with mode 0700, and sets `*created` (which may be NULL), or accepts an
 * existing one. False with error (SL_EXIT_USAGE); errno is 0 if an existing one was refused. */
bool sl_private_folder_make(const char *path, bool *created, sl_error *error);
/* The same for a folder that must exist. */
bool sl_private_folder_check(const char *path, sl_error *error);
/* Takes the permission to write from all other users, if the folder belongs to the effective user:
 * they could exchange its files. With the sticky bit, as /tmp has it, they cannot. */
void sl_private_folder_protect(const char *path);
/* Checks the folder likewise, and opens it to list its files. -1 with error. */
int sl_private_folder_open(const char *path, sl_error *error);
/* In an open folder: opens a regular file, or a folder, of the effective user or of root, to be
 * read; -1: it is none. Removes a file, or an empty folder. */
int sl_private_open_in(int folder, const char *name, bool is_folder);
bool sl_private_remove_in(int folder, const char *name, bool is_folder);
/* Creates a folder with a unique name in $TMPDIR, or in /tmp. The caller frees the path. NULL with
 * error. */
char *sl_private_folder_temporary(const char *name, sl_error *error);
/* Removes a folder, if it is empty. */
void sl_private_folder_remove(const char *path);

/* Syncs the folder `path`, and with it the names of its files, which fsync of a file does not.
 * Failures are ignored, since not all file systems can sync folders. */
void sl_private_folder_sync(const char *path);
/* Syncs the folder that contains the file or folder `path`. */
void sl_private_parent_sync(const char *path);

/* Reads a work directory's file that may belong to another user, as sl_read_file does: a regular
 * file of the effective user, of root, or of the folder's owner. */
bool sl_private_file_read(const char *path, size_t most, sl_exit code, sl_text *text,
                          sl_error *error);

/* ---- in any folder; if that is a symbolic link, the link must belong to the effective user or to
 * root ---- */

/* Opens an output for writing, as sl_private_file_open, and empties it. */
int sl_output_file_open(const char *path, sl_error *error);

/* Writes a file of `length` bytes atomically, with mode 0600: writes and syncs a temporary file in
 * the same folder, then renames it to `path`. Replaces an existing regular file; refuses a symbolic
 * link, a directory or a device. False with error (SL_EXIT_USAGE). */
bool sl_private_file_replace(const char *path, const char *bytes, size_t length, sl_error *error);

typedef enum sl_file_readers {
    SL_READERS_USER,  /* mode 0600 */
    SL_READERS_ALL,   /* mode 0644 */
    SL_READERS_OWNER, /* mode 0600; if root writes it, it belongs to the folder's owner */
} sl_file_readers;

/* As sl_private_file_replace, for a file that is written every second and need not survive a power
 * failure: nothing is synced. */
bool sl_file_publish(const char *path, const char *bytes, size_t length, sl_file_readers readers,
                     sl_error *error);

/* Is `name` the file `of`, or the temporary file from which that is renamed? */
bool sl_is_private_file(const char *name, const char *of);

/* Checks beforehand that sl_private_file_replace can write to `path`, without writing: for commands
 * that compute for hours before they write. */
bool sl_private_file_may_replace(const char *path, sl_error *error);

/* Writes all bytes to a descriptor. False, with errno set, when it cannot. */
bool sl_write_all(int file, const void *bytes, size_t length);

/* ---- the names in a work directory ----
 *
 * All code that writes or reads a file or folder there takes its name from here: so loads never
 * read it as a source (sl_source_is_own_file), and `shardload forget` removes it. The files in
 * `embed`, `unpacked` and `rejected` are listed in forget.c. */

#define SL_WORK_LOG "shardload.log" /* every work directory of a load has one */
#define SL_WORK_JOURNAL "journal"
#define SL_WORK_STATUS "status.json"
#define SL_WORK_CONTROL "control.json"
#define SL_WORK_REJECTS "rejects.tsv"
/* A folder: the unchanged rejected records of each source; rejected-1, ...: of earlier loads. */
#define SL_WORK_REJECTED "rejected"
/* Names of the files in this folder: the number of the source, the beginning of its name, and, from
 * the second entry of an archive on, the number of the entry, as in 000001-NAME-2. */
#define SL_REJECTED_NUMBER "%06zu-"
#define SL_REJECTED_NUMBER_BYTES 7u
#define SL_REJECTED_NAME_MAX 200
#define SL_WORK_RECORD "run.json"
#define SL_WORK_EMBED "embed"              /* a folder: the records of --embed */
#define SL_WORK_OPTIONS "options.json"     /* of several tables, and of a restore */
#define SL_WORK_STDIN "standard-input.sql" /* the copy of a dump from a pipe */
#define SL_WORK_PART ".part"               /* ends its name until it is complete */
/* Of verify, tune and reload. */
#define SL_WORK_PROBLEMS "problems.tsv"
#define SL_WORK_VERIFY "verify.json"
#define SL_WORK_TUNE "tune.json"
#define SL_WORK_RELOAD "reload.json"
/* Of a restore. The last group is in the folder of a collection (restore_one.c). */
#define SL_WORK_RESTORE "restore" /* a folder */
#define SL_WORK_RESTORE_RECORD "restore.json"
#define SL_WORK_UNPACKED "unpacked" /* a folder: the collections of an archive */
#define SL_WORK_DUMP_FILES "dump-files.bson"
#define SL_WORK_OPLOG_POSITION "oplog-position"
#define SL_WORK_CREATED "created"
#define SL_WORK_DROPPING "dropping"
#define SL_WORK_MERGED "merged"
#define SL_WORK_LOADED "loaded.json"
#define SL_WORK_RESTORED "restored.json"

/* All of them, and a name that earlier versions wrote. */
#define SL_WORK_FILES                                                                              \
    SL_WORK_LOG, SL_WORK_JOURNAL, SL_WORK_STATUS, SL_WORK_CONTROL, SL_WORK_REJECTS,                \
        SL_WORK_REJECTED, SL_WORK_RECORD, SL_WORK_EMBED, SL_WORK_STDIN,                            \
        SL_WORK_STDIN SL_WORK_PART, SL_WORK_PROBLEMS, SL_WORK_VERIFY, SL_WORK_TUNE,                \
        SL_WORK_RELOAD, SL_WORK_RESTORE, SL_WORK_RESTORE_RECORD, SL_WORK_OPTIONS,                  \
        SL_WORK_UNPACKED, SL_WORK_DUMP_FILES, SL_WORK_OPLOG_POSITION, SL_WORK_CREATED,             \
        SL_WORK_DROPPING, SL_WORK_MERGED, SL_WORK_LOADED, SL_WORK_RESTORED, "registry"

/* Creates the folder shardload-NAME-TIME in the current folder; with a number appended if another
 * command of the same second has used that name. */
bool sl_private_folder_make_named(const char *name, char *path, size_t room, bool *created,
                                  sl_error *error);

#endif
