/* SPDX-License-Identifier: Apache-2.0 */
/* The output files of a load or restore, checked before anything is loaded. */
#ifndef SHARDLOAD_WORK_DIRECTORY_H
#define SHARDLOAD_WORK_DIRECTORY_H

#include "job/load_config.h"
#include "util/error.h"

#define SL_WORK_DIRECTORY_ROOM 512

/* The work directory before the command. */
typedef enum sl_work_directory_before {
    SL_WORK_DIRECTORY_USED, /* it held files, or there is none */
    SL_WORK_DIRECTORY_EMPTY,
    SL_WORK_DIRECTORY_ABSENT, /* the command has created it */
} sl_work_directory_before;

/* The lock on a work directory: only one command at a time uses it, and only its holder removes
 * files. If all members are zero, the lock is not held. */
typedef struct sl_work_directory_lock {
    bool held;
    int file; /* the log, locked; the operating system unlocks it when the process ends */
    sl_work_directory_before before;
} sl_work_directory_lock;

/* Creates the work directory, if the load has one, locks it, and opens the log file in it.
 * `directory` receives its path, or "". Without --work-dir its name contains `label`, or the target
 * if that is NULL. Refuses, without changing anything, a folder that another command uses, and one
 * with files that is no work directory of this program. */
bool sl_work_directory_make(const sl_load_config *config, const char *label,
                            char directory[SL_WORK_DIRECTORY_ROOM], sl_work_directory_lock *lock,
                            sl_error *error);

/* Locks a file of the work directory until it is closed. False with error (SL_EXIT_USAGE): another
 * command has locked it (errno is EWOULDBLOCK), or the file system has no locks. */
bool sl_work_directory_lock_file(int file, const char *directory, sl_error *error);

/* Restores the work directory of a command that has changed nothing: closes and removes the log,
 * removes the journal, and removes the folder if the command has created it. A folder with other
 * files (the records of --embed) is not changed, and neither is one without a lock. */
void sl_work_directory_abandon(const char *directory, const sl_work_directory_lock *lock);

/* Renames the folder of raw rejects of an earlier load, if there is one, to rejected-1 or so. */
bool sl_work_directory_set_rejects_aside(const char *directory, sl_error *error);

/* Releases the lock, if it is held. */
void sl_work_directory_release(sl_work_directory_lock *lock);

/* Checks that the file at `*path` can be written; NULL is fine. Otherwise sets `*path` to NULL, so
 * that the error is reported once. */
bool sl_report_check(const char **path, sl_error *error);

#endif
