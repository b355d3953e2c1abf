/* SPDX-License-Identifier: Apache-2.0 */
/* The output files of a load, checked before anything is loaded. */
#ifndef SHARDLOAD_WORK_DIRECTORY_H
#define SHARDLOAD_WORK_DIRECTORY_H

#include "job/load_config.h"
#include "util/error.h"

#define SL_WORK_DIRECTORY_ROOM 512

/* The work directory before the load. */
typedef enum sl_work_directory_before {
    SL_WORK_DIRECTORY_USED, /* it held files, or there is none */
    SL_WORK_DIRECTORY_EMPTY,
    SL_WORK_DIRECTORY_ABSENT, /* the load has created it */
} sl_work_directory_before;

/* Creates the work directory, if the load has one, and opens the log file in it. `directory`
 * receives its path, or "". */
bool sl_work_directory_make(const sl_load_config *config, char directory[SL_WORK_DIRECTORY_ROOM],
                            sl_work_directory_before *before, sl_error *error);

/* Restores the work directory of a load that has changed nothing: closes and removes the log,
 * removes the journal, and removes the folder if the load has created it. A folder with other files
 * (the records of --embed) is not changed. */
void sl_work_directory_abandon(const char *directory, sl_work_directory_before before);

/* Checks that the file at `*path` can be written; NULL is fine. Otherwise sets `*path` to NULL, so
 * that the error is reported once. */
bool sl_report_check(const char **path, sl_error *error);

#endif
