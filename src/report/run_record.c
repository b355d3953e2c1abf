/* SPDX-License-Identifier: Apache-2.0 */
/* The record of one run: run.json. */
#include "run_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "json.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/text_table.h"

#define POINTS_MAX 7200
#define PHASES_MAX 32

typedef struct sl_phase {
    char name[48];
    double seconds;
} sl_phase;

typedef struct series_point {
    sl_run_point figures;
    uint64_t *shard_documents;
} series_point;

struct sl_run_record {
    bson_t *document;
    bool finished;
    sl_phase phases[PHASES_MAX];
    size_t phase_count;
    series_point *points;
    size_t point_count;
    unsigned stride; /* one of `stride` points is kept */
    unsigned skipped;
    size_t shards;
    const char *const *stages;
};

void sl_record_head(bson_t *record, const char *command, const char *version, int64_t started,
                    const bson_t *options) {
    struct utsname host;
    bson_t section;
    BSON_APPEND_UTF8(record, "program", "shardload");
    BSON_APPEND_UTF8(record, "command", command);
    BSON_APPEND_INT32(record, "schema", SL_RECORD_SCHEMA);
    BSON_APPEND_UTF8(record, "version", version);
    BSON_APPEND_DATE_TIME(record, "startedAt", started);
    if (uname(&host) == 0) {
        BSON_APPEND_DOCUMENT_BEGIN(record, "client", &section);
        BSON_APPEND_UTF8(&section, "host", host.nodename);
        BSON_APPEND_UTF8(&section, "system", host.sysname);
        BSON_APPEND_UTF8(&section, "release", host.release);
        BSON_APPEND_INT64(&section, "cores", sysconf(_SC_NPROCESSORS_ONLN));
        bson_append_document_end(record, &section);
    }
    bson_concat(record, options);
}

void sl_record_tail(bson_t *record, sl_exit code) {
    BSON_APPEND_DATE_TIME(record, "endedAt", sl_wall_clock_ms());
    BSON_APPEND_INT32(record, "exitCode", sl_context_exit(code));
}

bool sl_record_begin_item(bson_t *array, size_t index, bson_t *item) {
    char room[SL_ARRAY_KEY_ROOM];
    return bson_append_document_begin(array, sl_array_key(index, room), -1, item);
}

sl_run_record *sl_run_record_create(void) {
    sl_run_record *record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    record->points = calloc(POINTS_MAX, sizeof *record->points);
    if (!record->points) {
        free(record);
        return NULL;
    }
    record->stride = 1;
    record->document = bson_new();
    return record;
}

void sl_run_record_destroy(sl_run_record *record) {
    if (!record)
        return;
    bson_destroy(record->document);
    for (size_t i = 0; i < record->point_count; i++)
        free(record->points[i].shard_documents);
    free(record->points);
    free(record);
}

bson_t *sl_run_record_document(sl_run_record *record) {
    return record->document;
}

void sl_run_record_phase(sl_run_record *record, const char *name, double seconds) {
    if (record->phase_count == PHASES_MAX)
        return;
    sl_phase *made = &record->phases[record->phase_count++];
    snprintf(made->name, sizeof made->name, "%s", name);
    made->seconds = seconds;
}

double sl_run_record_seconds(const sl_run_record *record) {
    double sum = 0;
    for (size_t i = 0; i < record->phase_count; i++)
        sum += record->phases[i].seconds;
    return sum;
}

void sl_run_record_log_phases(const sl_run_record *record) {
    static const sl_text_column columns[] = {{"phase", .left = true, .least = 12},
                                             {"time", .least = 11, .unit = SL_UNIT_SECONDS},
                                             {"share", .least = 6},
                                             {0}};
    sl_text_table *table = sl_text_table_create(columns);
    double sum = sl_run_record_seconds(record);
    for (size_t i = 0; i < record->phase_count; i++) {
        sl_text_table_cell(table, "%s", record->phases[i].name);
        sl_text_table_number(table, record->phases[i].seconds);
        sl_text_table_cell(table, "%.1f %%", sum > 0 ? 100 * record->phases[i].seconds / sum : 0);
    }
    sl_text_table_cell(table, "total");
    sl_text_table_number(table, sum);
    sl_text_table_end_row(table);
    sl_text_table_log(table);
}

void sl_run_record_name_stages(sl_run_record *record, const char *const names[SL_RUN_STAGES]) {
    record->stages = names;
}

void sl_run_record_point(sl_run_record *record, const sl_run_point *figures,
                         const uint64_t *shard_documents, size_t shards) {
    if (++record->skipped < record->stride)
        return;
    record->skipped = 0;
    if (record->point_count == POINTS_MAX) { /* from now on only every second point is kept */
        for (size_t i = 0; i < POINTS_MAX; i++) {
            if (i % 2 == 1)
                free(record->points[i].shard_documents);
            else
                record->points[i / 2] = record->points[i];
        }
        record->point_count = POINTS_MAX / 2;
        record->stride *= 2;
    }
    uint64_t *copy = malloc((shards ? shards : 1) * sizeof *copy);
    if (!copy)
        return; /* without memory the series has a gap; the load continues */
    memcpy(copy, shard_documents, shards * sizeof *copy);
    record->shards = shards;
    record->points[record->point_count++] = (series_point){*figures, copy};
}

static void finish(sl_run_record *record) {
    bson_t array, item, inner;
    char room[SL_ARRAY_KEY_ROOM];
    BSON_APPEND_ARRAY_BEGIN(record->document, "phases", &array);
    for (uint32_t i = 0; i < record->phase_count; i++) {
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "name", record->phases[i].name);
        BSON_APPEND_DOUBLE(&item, "seconds", sl_rounded(record->phases[i].seconds, 1000));
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record->document, &array);

    BSON_APPEND_ARRAY_BEGIN(record->document, "series", &array);
    for (uint32_t i = 0; i < record->point_count; i++) {
        const series_point *one = &record->points[i];
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_DOUBLE(&item, "seconds", sl_rounded(one->figures.seconds, 1000));
        BSON_APPEND_INT64(&item, "documents", (int64_t)one->figures.documents);
        BSON_APPEND_INT64(&item, "textBytes", (int64_t)one->figures.text_bytes);
        BSON_APPEND_INT64(&item, "bsonBytes", (int64_t)one->figures.bson_bytes);
        BSON_APPEND_INT64(&item, "storedBytes", (int64_t)one->figures.stored_bytes);
        BSON_APPEND_INT64(&item, "rejects", (int64_t)one->figures.rejects);
        BSON_APPEND_ARRAY_BEGIN(&item, "shardDocuments", &inner);
        for (size_t k = 0; k < record->shards; k++)
            bson_append_int64(&inner, sl_array_key(k, room), -1, (int64_t)one->shard_documents[k]);
        bson_append_array_end(&item, &inner);
        BSON_APPEND_DOCUMENT_BEGIN(&item, "workerSeconds", &inner);
        for (unsigned k = 0; record->stages && k < SL_RUN_STAGES; k++)
            BSON_APPEND_DOUBLE(&inner, record->stages[k],
                               sl_rounded(one->figures.stage_seconds[k], 1000));
        bson_append_document_end(&item, &inner);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record->document, &array);
    record->finished = true;
}

void sl_run_record_copy(sl_run_record *record, bson_t *copy) {
    if (!record->finished)
        finish(record);
    bson_concat(copy, record->document);
}

bool sl_run_record_write(sl_run_record *record, const char *path, sl_error *error) {
    if (!record->finished)
        finish(record);
    return sl_json_write_file(path, record->document, error);
}
