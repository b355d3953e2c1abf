/* SPDX-License-Identifier: Apache-2.0 */
/* A view of a running load as JSON. */
#ifndef SHARDLOAD_PROGRESS_JSON_H
#define SHARDLOAD_PROGRESS_JSON_H

#include <bson/bson.h>

#include "job/destination.h"
#include "progress_figures.h"

/* Appends the view's figures. `run` NULL: it has ended, and the shards are left out. The keys
 * contain no blanks, except names of shards. */
void sl_view_append(const sl_view *view, const sl_run *run, const sl_destination *destination,
                    bson_t *json);

#endif
