/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values from records, beside those of bson_lookup.h. */
#ifndef SHARDLOAD_LOOKUP_H
#define SHARDLOAD_LOOKUP_H

#include "bson/bson_lookup.h"

/* The sum of the seconds of the phases in the array at `path`: all, or those named `name` unless
 * it is NULL. NAN if there is no such phase. */
double sl_look_phase_seconds(const bson_t *record, const char *path, const char *name);

/* The inserted, changed and already stored documents in the totals at `path`, such as "accounting";
 * NAN if there are none. */
double sl_look_documents(const bson_t *record, const char *path);

/* Finds an option of a record. */
bool sl_option_find(const bson_t *record, const char *name, bson_iter_t *at);
/* Do two records differ in an option? An option that is missing is off. */
bool sl_option_differs(const bson_t *a, const bson_t *b, const char *name);

/* Did the drill in a record of `reload` complete, including its queries? From its field "ended";
 * older records without it are judged by their exit code. */
bool sl_look_drill_ended(const bson_t *record);

/* Why do the figures of an entry of `queries`, of shardquery run or a drill, not count? Because its
 * answer is wrong, it failed, no operation ended in time, or more than 0.1 % of its operations
 * failed or were skipped: the figures are those of the other operations. False: they count. */
#define SL_UNSOUND_ROOM 100
bool sl_look_unsound(const bson_t *entry, char why[SL_UNSOUND_ROOM]);

/* Can an option of a record change the results of a run? False for options about output. */
bool sl_option_matters(const char *name);

#endif
