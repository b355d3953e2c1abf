/* SPDX-License-Identifier: Apache-2.0 */
/* Files and archive entries that are not loaded. */
#ifndef SHARDLOAD_NOT_LOADED_H
#define SHARDLOAD_NOT_LOADED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "util/error.h"

struct sl_job;

typedef struct sl_not_loaded_item {
    size_t source; /* index into the set */
    char *entry;   /* name of the archive's entry; NULL: the file itself */
    char *reason;
} sl_not_loaded_item;

typedef struct sl_not_loaded {
    pthread_mutex_t lock; /* guards the fields below while workers run */
    uint64_t count;
    uint64_t empty;           /* files and entries, not in the list: they do not fail the load */
    sl_not_loaded_item *kept; /* the first ones, for the messages and run.json */
    size_t kept_count;
} sl_not_loaded;

/* Logs and lists a file (`entry` NULL), or an archive's entry, that is not loaded. `reason` NULL:
 * it is empty, and only logged. `entry` and `reason` must be printable. Any thread. */
void sl_not_loaded_add(struct sl_job *job, size_t source, const char *entry, const char *reason);
/* False with SL_EXIT_SOURCE if the list is not empty and --skip-other is not given. */
bool sl_not_loaded_check(struct sl_job *job, sl_error *error);
/* Appends the section "notLoaded", unless the list is empty. */
void sl_not_loaded_record(const struct sl_job *job, bson_t *record);
void sl_not_loaded_init(sl_not_loaded *list);
void sl_not_loaded_clear(sl_not_loaded *list);

#endif
