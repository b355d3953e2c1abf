/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of the loads of a restore, which run at the same time: one line for all loads on a
 * terminal, one log line per load, or JSON with the name of the namespace. */
#ifndef SHARDLOAD_RESTORE_PROGRESS_H
#define SHARDLOAD_RESTORE_PROGRESS_H

#include "job/load_config.h"

typedef struct sl_restore_progress sl_restore_progress;

/* The latest progress of one thread's namespace. Initialise with zeros. */
typedef struct sl_restore_line {
    struct sl_restore_line *next; /* of the same restore */
    const char *name;             /* borrowed; NULL: nothing is restored by this thread */
    char text[120];
    int64_t due; /* when the next line is logged, by sl_clock_ns */
    bool listed;
} sl_restore_line;

/* NULL for SL_PROGRESS_NONE, and without memory: then there is no progress. All functions accept
 * NULL. They are called in the context of the restore. */
sl_restore_progress *sl_restore_progress_create(sl_progress_kind kind);
void sl_restore_progress_destroy(sl_restore_progress *progress);

/* A namespace begins; `name` lives until it ends. Any thread. */
void sl_restore_progress_begin(sl_restore_progress *progress, sl_restore_line *line,
                               const char *name);
/* Shows the progress of its load, a JSON object (progress.h). */
void sl_restore_progress_take(sl_restore_progress *progress, sl_restore_line *line,
                              const char *json);
void sl_restore_progress_end(sl_restore_progress *progress, sl_restore_line *line);

#endif
