/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the status of a load, read from its status.json. */
#ifndef SHARDLOAD_STATUS_SHOW_H
#define SHARDLOAD_STATUS_SHOW_H

#include <bson/bson.h>

#include "util/error.h"

/* What is known about the process that writes the file. */
typedef enum sl_liveness {
    SL_LIVENESS_RUNNING,
    SL_LIVENESS_SILENT,  /* alive, but its status is old: it is stopped, or its disk hangs */
    SL_LIVENESS_UNKNOWN, /* on another host, and its status is old */
    SL_LIVENESS_DEAD,
    SL_LIVENESS_ENDED,
} sl_liveness;

/* Seconds since the file was written. */
double sl_status_age(const bson_t *status);

/* Prints the status as a table. */
void sl_status_print(const bson_t *status, sl_liveness liveness);
/* Prints the status as JSON: the file's content, with the present state and the age of the file. */
bool sl_status_print_json(const bson_t *status, sl_liveness liveness, sl_error *error);

#endif
