/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the results of a tuning: tune.json, and the recommended options as a configuration
 * file. */
#include "tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bson/bson_lookup.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/memory_stream.h"
#include "util/print.h"
#include "util/text.h"

#define INT64(document, key, value) BSON_APPEND_INT64(document, key, (int64_t)(value))

static double rounded(double value, double steps) {
    return (double)(int64_t)(value * steps + 0.5) / steps;
}

static void append_start(const sl_tune *tune, bson_t *record) {
    bson_t section;
    sl_record_head(record, "tune", tune->config->load->program_version, tune->begun_at,
                   tune->config->load->options);
    if (tune->connection)
        sl_connection_record(tune->connection, record);
    BSON_APPEND_DOCUMENT_BEGIN(record, "sample", &section);
    BSON_APPEND_DOUBLE(&section, "share", tune->share);
    INT64(&section, "records", tune->documents);
    INT64(&section, "textBytes", tune->text_bytes);
    INT64(&section, "bsonBytes", tune->bson_bytes);
    bson_append_document_end(record, &section);
}

static void append_dimensions(const sl_tune *tune, bson_t *record) {
    bson_t section, array;
    BSON_APPEND_DOCUMENT_BEGIN(record, "dimensions", &section);
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++) {
        const sl_tune_values *values = &tune->config->values[d];
        bson_append_array_begin(&section, sl_tune_key(d), -1, &array);
        for (size_t i = 0; i < values->count; i++) {
            char room[SL_ARRAY_KEY_ROOM];
            sl_tune_append_value(&array, sl_array_key(i, room), d, values->items[i]);
        }
        bson_append_array_end(&section, &array);
    }
    bson_append_document_end(record, &section);
}

static void append_settings(const sl_tune *tune, bson_t *record) {
    bson_t settings, setting, trials, trial;
    BSON_APPEND_ARRAY_BEGIN(record, "settings", &settings);
    for (size_t i = 0; i < tune->search.count; i++) {
        const sl_search_cell *cell = &tune->search.cells[i];
        sl_record_begin_item(&settings, i, &setting);
        sl_tune_append_setting(tune, cell->at, &setting);
        BSON_APPEND_ARRAY_BEGIN(&setting, "trials", &trials);
        for (size_t k = 0; k < cell->trials; k++) {
            const sl_tune_trial *one = &tune->trials[i * SL_TUNE_TIMES_MAX + k];
            sl_record_begin_item(&trials, k, &trial);
            BSON_APPEND_DOUBLE(&trial, "afterSeconds", rounded(one->after, 1000));
            INT64(&trial, "documents", one->documents);
            BSON_APPEND_DOUBLE(&trial, "seconds", one->seconds);
            BSON_APPEND_DOUBLE(&trial, "rate", rounded(cell->rates[k], 10));
            bson_append_document_end(&trials, &trial);
        }
        bson_append_array_end(&setting, &trials);
        if (cell->trials > 0) {
            BSON_APPEND_DOUBLE(&setting, "rate", rounded(cell->rate, 10));
            BSON_APPEND_DOUBLE(&setting, "low", rounded(cell->low, 10));
            BSON_APPEND_DOUBLE(&setting, "high", rounded(cell->high, 10));
        }
        BSON_APPEND_UTF8(&setting, "stopped",
                         sl_tune_is_refused(tune, cell->at) ? "refused" : cell->stopped);
        bson_append_document_end(&settings, &setting);
    }
    bson_append_array_end(record, &settings);
    if (tune->search.trials > 0) {
        INT64(record, "best", tune->search.best);
        INT64(record, "recommended", tune->search.recommended);
        BSON_APPEND_DOUBLE(record, "noise", rounded(tune->search.noise, 10000));
        BSON_APPEND_BOOL(record, "noiseMeasured", tune->search.noise_measured);
    }
    INT64(record, "trials", tune->search.trials);
    INT64(record, "gridTrials", tune->search.grid_trials);
}

static void append_storage(const sl_tune *tune, bson_t *record) {
    bson_t array, item;
    if (tune->storage_count == 0)
        return;
    BSON_APPEND_ARRAY_BEGIN(record, "storage", &array);
    for (size_t i = 0; i < tune->storage_count; i++) {
        const sl_tune_storage *storage = &tune->storage[i];
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "compressor", storage->compressor);
        INT64(&item, "documents", storage->documents);
        if (storage->sized) {
            INT64(&item, "dataBytes", storage->data_bytes);
            INT64(&item, "storageBytes", storage->storage_bytes);
            INT64(&item, "indexBytes", storage->index_bytes);
        }
        if (storage->sized && storage->storage_bytes > 0)
            BSON_APPEND_DOUBLE(
                &item, "ratio",
                rounded((double)storage->data_bytes / (double)storage->storage_bytes, 1000));
        BSON_APPEND_DOUBLE(&item, "rate", rounded(storage->rate, 10));
        BSON_APPEND_ARRAY(&item, "queries", &storage->queries);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(record, &array);
}

void sl_tune_record(const sl_tune *tune, sl_exit code, bson_t *record) {
    append_start(tune, record);
    append_dimensions(tune, record);
    append_settings(tune, record);
    append_storage(tune, record);
    sl_record_tail(record, code);
}

/* ---- the recommendation as options ---- */

char *sl_tune_yaml(const sl_tune *tune) {
    const sl_search_cell *cell = &tune->search.cells[tune->search.recommended];
    char *text = NULL, stamp[32], rate[SL_HUMAN_ROOM];
    size_t length = 0;
    FILE *out = sl_memory_stream(&text, &length);
    if (!out)
        return NULL;
    time_t now = time(NULL);
    struct tm local;
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M", localtime_r(&now, &local));
    sl_print_to(
        out, "# Recommended by shardload tune on %s for %s.%s: %s documents/s in %zu trial%s\n",
        stamp, tune->config->load->database, tune->config->load->collection,
        sl_human_count((uint64_t)cell->rate, rate), cell->trials, cell->trials == 1 ? "" : "s");
    fputs(
        "# These values are fixed. To start with them and change them during the load if that is\n"
        "# faster, add to the command line: --threads auto --batch-size auto\n",
        out);
    for (size_t d = 0; d < SL_TUNE_DIMENSIONS; d++) {
        const char *value = sl_tune_value(tune, tune->search.recommended, d);
        if (*value)
            sl_print_to(out, "%s: %s\n", sl_tune_option(d), value);
    }
    return fclose(out) == 0 ? text : NULL;
}
