/* SPDX-License-Identifier: Apache-2.0 */
/* Compares compressors: storage size of the sample, and query times on it. */
#include "tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/run_record.h"
#include "util/interrupt.h"
#include "util/log.h"

/* Forces a checkpoint: the servers report the sizes of the last one. */
static void flush(sl_tune *tune) {
    sl_error error;
    bson_t *command = BCON_NEW("fsync", BCON_INT32(1));
    if (!sl_connection_command(tune->connection, "admin", command, NULL, NULL, &error))
        sl_log_warning("the storage figures may be out of date: " SL_LINES, error.message);
    bson_destroy(command);
}

static bool read_sizes(sl_tune *tune, sl_tune_storage *storage, sl_error *error) {
    const sl_target target = {.database = tune->config->load->database,
                              .collection = tune->scratch};
    sl_shard_statistics *rows = NULL;
    size_t count = 0;
    flush(tune);
    if (!sl_statistics_read(tune->connection, &target, &rows, &count, error))
        return false;
    storage->sized = true;
    storage->documents = 0;
    for (size_t i = 0; i < count; i++) {
        storage->documents += rows[i].documents;
        storage->data_bytes += rows[i].data_bytes;
        storage->storage_bytes += rows[i].storage_bytes;
        storage->index_bytes += rows[i].index_bytes;
    }
    free(rows);
    return true;
}

static void run_suite(sl_tune *tune, const char *name, sl_tune_storage *storage, uint32_t *index) {
    sl_suite *suite = NULL;
    sl_error error = {0};
    bool open = sl_suite_open(name, &suite, &error);
    if (open)
        sl_suite_remove_writes(suite);
    else
        sl_log_warning(SL_LINES, error.message);
    for (size_t i = 0; open && i < suite->count && !sl_interrupt_requested(); i++) {
        const sl_query_options options = {.database = tune->config->load->database,
                                          .collection = tune->scratch,
                                          .repeat = suite->repeat,
                                          .warm_up = suite->warm_up,
                                          .limit = suite->limit};
        sl_query_run run = {.count = 0};
        bson_t item;
        bool answered = sl_query_execute(tune->connection, &suite->queries[i], &options, &run);
        sl_record_begin_item(&storage->queries, (*index)++, &item);
        BSON_APPEND_UTF8(&item, "name", suite->queries[i].name);
        if (answered)
            BSON_APPEND_DOUBLE(&item, "medianMilliseconds", run.sample.median);
        else
            sl_log_warning("with compressor %s, query %s was not timed: " SL_LINES,
                           storage->compressor, suite->queries[i].name, run.error.message);
        bson_append_document_end(&storage->queries, &item);
        sl_query_run_clear(&run);
    }
    sl_suite_destroy(suite);
}

/* Measures one compressor. False when its load fails. */
static bool measure(sl_tune *tune, const size_t *at, const char *compressor) {
    sl_tune_storage *storage = &tune->storage[tune->storage_count];
    sl_tune_load figures;
    sl_error error = {0};
    uint32_t index = 0;
    if (!sl_tune_load_once(tune, at, tune->share, SL_TUNE_FOR_STORAGE, &figures))
        return false;
    *storage = (sl_tune_storage){.compressor = compressor,
                                 .documents = figures.documents,
                                 .rate = (double)figures.documents /
                                         (figures.seconds > 0 ? figures.seconds : 1e-3)};
    bson_init(&storage->queries);
    tune->storage_count++;
    if (!read_sizes(tune, storage, &error))
        sl_log_warning("the storage size with compressor %s is not known: " SL_LINES, compressor,
                       error.message);
    for (size_t s = 0; s < tune->config->suite_count; s++)
        run_suite(tune, tune->config->suites[s], storage, &index);
    return true;
}

void sl_tune_compare_storage(sl_tune *tune) {
    const sl_tune_values *compressors = &tune->config->values[SL_TUNE_COMPRESSOR];
    size_t at[SL_SEARCH_DIMENSIONS_MAX];
    memcpy(at, tune->search.cells[tune->search.recommended].at, sizeof at);
    for (size_t i = 0; i < compressors->count && !sl_interrupt_requested(); i++) {
        at[SL_TUNE_COMPRESSOR] = i;
        if (sl_tune_is_refused(tune, at))
            continue;
        if (sl_tune_time_is_up(tune)) {
            sl_log_warning("--max-time is reached: compressor %s is not compared%s",
                           compressors->items[i],
                           i + 1 < compressors->count ? ", nor are the ones after it" : "");
            break;
        }
        sl_log_info("measuring compressor %s", compressors->items[i]);
        if (!measure(tune, at, compressors->items[i]) && !tune->interrupted) {
            sl_log_warning("compressor %s is not compared: " SL_LINES, compressors->items[i],
                           tune->failure.message);
            tune->failure = (sl_error){0};
        }
    }
    tune->interrupted = tune->interrupted || sl_interrupt_requested();
}
