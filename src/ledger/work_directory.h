/* SPDX-License-Identifier: Apache-2.0 */
/* The output files of a load, checked before anything is loaded. */
#ifndef SHARDLOAD_WORK_DIRECTORY_H
#define SHARDLOAD_WORK_DIRECTORY_H

#include "job/load_config.h"
#include "util/error.h"

#define SL_WORK_DIRECTORY_ROOM 512

/* Creates the work directory, if the load has one, and opens the log file in it. `directory`
 * receives its path, or "". */
bool sl_work_directory_make(const sl_load_config *config, char directory[SL_WORK_DIRECTORY_ROOM],
                            sl_error *error);

/* Checks that the file at `*path` can be written; NULL is fine. Otherwise sets `*path` to NULL, so
 * that the error is reported once. */
bool sl_report_check(const char **path, sl_error *error);

#endif
