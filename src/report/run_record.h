/* SPDX-License-Identifier: Apache-2.0 */
/* The record of one run, from which all reports are made: run.json. One thread. */
#ifndef SHARDLOAD_RUN_RECORD_H
#define SHARDLOAD_RUN_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "util/error.h"

/* The version of the records' keys: docs/run-record-2.schema.json. It is raised when a key is
 * removed or changes its meaning. */
#define SL_RECORD_SCHEMA 2

/* Append the first fields of every record (program, command, schema, version, startedAt, client,
 * and the fields in the document `options`), and the last ones (endedAt, exitCode). `started` is in
 * milliseconds since 1970. */
void sl_record_head(bson_t *record, const char *command, const char *version, int64_t started,
                    const bson_t *options);
void sl_record_tail(bson_t *record, sl_exit code);

/* Begins `item`, the document at `index` of an array; end it with bson_append_document_end. */
bool sl_record_begin_item(bson_t *array, size_t index, bson_t *item);

typedef struct sl_run_record sl_run_record;

sl_run_record *sl_run_record_create(void);         /* NULL without memory */
void sl_run_record_destroy(sl_run_record *record); /* NULL is fine */

/* The record's document, to append to; "phases" and "series" are added when it is written. */
bson_t *sl_run_record_document(sl_run_record *record);
/* The sum of the phases. */
double sl_run_record_seconds(const sl_run_record *record);

/* Adds a phase of the run that took `seconds`. */
void sl_run_record_phase(sl_run_record *record, const char *name, double seconds);
/* Logs the phases so far as a table. */
void sl_run_record_log_phases(const sl_run_record *record);

/* A point of the series: totals since the load phase began. A load adds about one point per second;
 * a very long run keeps about 3,600 evenly spaced points. */
#define SL_RUN_STAGES 5
typedef struct sl_run_point {
    double seconds;
    uint64_t documents; /* acknowledged */
    uint64_t text_bytes;
    uint64_t bson_bytes;
    uint64_t stored_bytes; /* read from the sources, as stored */
    uint64_t rejects;
    double stage_seconds[SL_RUN_STAGES]; /* summed over workers */
} sl_run_point;

/* Adds a point. `shard_documents` has `shards` entries and is copied. */
void sl_run_record_point(sl_run_record *record, const sl_run_point *point,
                         const uint64_t *shard_documents, size_t shards);
/* Sets the names of the stages, in the order of stage_seconds. Borrowed. */
void sl_run_record_name_stages(sl_run_record *record, const char *const names[SL_RUN_STAGES]);

/* Appends the complete record, with phases and series, to `copy`, which has been initialised. */
void sl_run_record_copy(sl_run_record *record, bson_t *copy);

/* Writes the complete record to `path`. May be called for several paths. */
bool sl_run_record_write(sl_run_record *record, const char *path, sl_error *error);

/* Rounded to 1/steps; not negative. */
static inline double sl_rounded(double value, double steps) {
    return (double)(int64_t)(value * steps + 0.5) / steps;
}

#endif
