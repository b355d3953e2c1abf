/* SPDX-License-Identifier: Apache-2.0 */
/* The record of one run, from which every report can be made again: run.json. One thread. */
#ifndef SHARDLOAD_RUN_RECORD_H
#define SHARDLOAD_RUN_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include <shardload/error.h>

/* How every record of the program begins (program, command, version, startedAt, client, options) and
 * ends (endedAt, exitCode), whatever command it is of. `started` is in milliseconds since 1970. */
void sl_record_head(bson_t *record, const char *command, const char *version, int64_t started,
                    const bson_t *options);
void sl_record_tail(bson_t *record, sl_exit code);

/* Begins `item`, the document at `index` of an array; ends with bson_append_document_end. */
void sl_record_begin_item(bson_t *array, size_t index, bson_t *item);

typedef struct sl_run_record sl_run_record;

sl_run_record *sl_run_record_create(void); /* NULL without memory */
void sl_run_record_destroy(sl_run_record *record); /* NULL is fine */

/* The record's document, to append to; "phases" and "series" are added when it is written. */
bson_t *sl_run_record_document(sl_run_record *record);

/* A phase of the run that took `seconds`. */
void sl_run_record_phase(sl_run_record *record, const char *name, double seconds);
/* Prints the phases so far as a table, to standard error through the log. */
void sl_run_record_log_phases(const sl_run_record *record);

/* A point of the series: what has been done since the load phase began. Points are taken about once
 * per second; a very long run keeps about 3,600 of them, evenly spread. */
#define SL_RUN_STAGES 5
typedef struct sl_run_point {
    double seconds;
    uint64_t documents; /* acknowledged */
    uint64_t text_bytes;
    uint64_t bson_bytes;
    uint64_t stored_bytes; /* of the sources, read */
    uint64_t rejects;
    double stage_seconds[SL_RUN_STAGES]; /* summed over workers */
} sl_run_point;

/* `shard_documents` has `shards` entries and is copied. */
void sl_run_record_point(sl_run_record *record, const sl_run_point *point,
                         const uint64_t *shard_documents, size_t shards);
/* The names of the stages, in the order of stage_seconds. Borrowed. */
void sl_run_record_name_stages(sl_run_record *record, const char *const names[SL_RUN_STAGES]);

/* The whole record, phases and series with it, into `copy`, which has been initialised. */
void sl_run_record_copy(sl_run_record *record, bson_t *copy);

/* Appends phases and series and writes to `path`. May be called for several paths. */
bool sl_run_record_write(sl_run_record *record, const char *path, sl_error *error);

#endif
