/* SPDX-License-Identifier: Apache-2.0 */
/* What each compressor makes of the sample: room on the disk, and how long queries take on it. */
#include "tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shardload/interrupt.h>
#include <shardload/log.h>

/* Sizes are those of the last checkpoint, which must therefore hold all of it. */
static void flush(sl_tune *tune) {
    sl_error error;
    bson_t *command = BCON_NEW("fsync", BCON_INT32(1));
    if (!sl_connection_command(tune->connection, "admin", command, NULL, NULL, &error))
        sl_log_warning("the storage figures may be those of an earlier moment: %s", error.message);
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

static bool run_suite(sl_tune *tune, const char *name, sl_tune_storage *storage, uint32_t *index,
                      sl_error *error) {
    sl_suite *suite = NULL;
    bool ok = sl_suite_open(name, &suite, error);
    for (size_t i = 0; ok && i < suite->count && !sl_interrupt_requested(); i++) {
        const sl_query_options options = {
            .database = tune->config->load->database, .collection = tune->scratch,
            .repeat = suite->repeat, .warm_up = suite->warm_up};
        sl_query_run run = {.count = 0};
        bson_t item;
        char room[16];
        const char *key;
        if (!sl_query_execute(tune->connection, &suite->queries[i], &options, &run)) {
            *error = run.error;
            ok = sl_error_prefix(error, "query %s", suite->queries[i].name);
        } else {
            bson_uint32_to_string((*index)++, &key, room, sizeof room);
            BSON_APPEND_DOCUMENT_BEGIN(&storage->queries, key, &item);
            BSON_APPEND_UTF8(&item, "name", suite->queries[i].name);
            BSON_APPEND_DOUBLE(&item, "medianMilliseconds", run.sample.median);
            bson_append_document_end(&storage->queries, &item);
        }
        sl_query_run_clear(&run);
    }
    sl_suite_destroy(suite);
    return ok;
}

bool sl_tune_compare_storage(sl_tune *tune, sl_error *error) {
    const sl_tune_values *compressors = &tune->config->values[SL_TUNE_COMPRESSOR];
    size_t at[SL_SEARCH_DIMENSIONS_MAX];
    memcpy(at, tune->search.cells[tune->search.recommended].at, sizeof at);
    for (size_t i = 0; i < compressors->count; i++) {
        sl_tune_storage *storage = &tune->storage[tune->storage_count];
        sl_tune_load figures;
        uint32_t index = 0;
        at[SL_TUNE_COMPRESSOR] = i;
        sl_log_info("what %s stores", compressors->items[i]);
        if (!sl_tune_load_once(tune, at, tune->share, true, &figures)) {
            *error = tune->failure;
            return tune->interrupted;
        }
        storage->compressor = compressors->items[i];
        storage->rate = (double)figures.documents / (figures.seconds > 0 ? figures.seconds : 1e-3);
        bson_init(&storage->queries);
        tune->storage_count++;
        if (!read_sizes(tune, storage, error))
            return false;
        for (size_t s = 0; s < tune->config->suite_count; s++) {
            if (!run_suite(tune, tune->config->suites[s], storage, &index, error))
                return false;
        }
        if (sl_interrupt_requested()) {
            tune->interrupted = true;
            return true;
        }
    }
    return true;
}
