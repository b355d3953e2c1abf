/* SPDX-License-Identifier: Apache-2.0 */
/* The documents and bytes of the collection on each shard, at the end of a load. */
#include "record.h"

#include <stdlib.h>

#include "util/log.h"
#include "util/text_table.h"

#define INT64(document, key, value) BSON_APPEND_INT64(document, key, (int64_t)(value))

static uint64_t sum_documents(const sl_shard_statistics *rows, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += rows[i].documents;
    return sum;
}

/* Do the document counts in the servers' statistics agree with the registry's totals of finished
 * loads? After a crash these statistics are wrong, and stay so: then, and while another load is not
 * finished, the documents are counted at the end of a load with verification. False when the counts
 * in `rows` may be wrong. */
static bool make_exact(sl_load *load, bool succeeded, sl_shard_statistics *rows, size_t count) {
    uint64_t expected, all = sum_documents(rows, count);
    bool complete, counted;
    sl_error error;
    if (!load->destination.registry ||
        !sl_registry_total(load->destination.registry, NULL, &expected, &complete, &error))
        return false;
    if (complete && all == expected)
        return true;
    if (!succeeded || !load->job.config->verify || !load->destination.map || count == 0 ||
        !sl_statistics_count(load->destination.connection, &load->destination.target,
                             load->destination.topology, load->destination.map, rows, count,
                             &counted, &error))
        return false;
    uint64_t sum = sum_documents(rows, count);
    return counted && (!complete || count == 1 || sum == expected || sum == all);
}

/* If all values of the shard key belong to one shard, the collection uses only that shard. Smaller
 * collections than this get no warning. */
#define ONE_SHARD_LEAST 100
static void warn_of_one_shard(const sl_load *load, const sl_shard_statistics *rows, size_t count,
                              uint64_t all) {
    const sl_destination *destination = &load->destination;
    const sl_topology *topology = destination->topology;
    if (!topology || topology->count < 2 || all < ONE_SHARD_LEAST || load->job.by_range ||
        !destination->target.shard_key)
        return;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].documents != all)
            continue;
        char *key = bson_as_relaxed_extended_json(destination->target.shard_key, NULL);
        sl_log_warning("all documents are on shard %s, and none are on %zu other shard%s: the "
                       "shard key %s puts them into one range. A hashed field (--shard-key "
                       "'{\"_id\": \"hashed\"}') or a field with many values distributes them; the "
                       "key of this collection cannot be changed by a load, so load with --drop or "
                       "into another collection",
                       rows[i].shard, topology->count - 1, topology->count == 2 ? " has" : "s have",
                       key ? key : "");
        bson_free(key);
    }
}

static const sl_text_column columns[] = {
    {"shard", .left = true, .least = 12},
    {"documents", .least = 14, .unit = SL_UNIT_COUNT},
    {"share", .least = 7},
    {"data", .least = 11, .unit = SL_UNIT_BYTES},
    {"stored", .least = 11, .unit = SL_UNIT_BYTES},
    {"indexes", .least = 11, .unit = SL_UNIT_BYTES},
    {0},
};

void sl_shard_table(sl_load *load, bool succeeded) {
    sl_shard_statistics *rows = NULL;
    size_t count = 0;
    sl_error error;
    if (!load->destination.connection || !load->destination.target.database)
        return;
    if (!sl_statistics_read(load->destination.connection, &load->destination.target, &rows, &count,
                            &error)) {
        sl_log_warning("no storage figures: " SL_LINES, error.message);
        return;
    }
    bool exact = make_exact(load, succeeded, rows, count);
    uint64_t all = sum_documents(rows, count);
    bson_t array, item;
    bson_t *record = sl_run_record_document(load->record);
    BSON_APPEND_ARRAY_BEGIN(record, "shards", &array);
    sl_text_table *table = sl_text_table_create(columns);
    for (size_t i = 0; i < count; i++) {
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "shard", rows[i].shard);
        INT64(&item, "documents", rows[i].documents);
        BSON_APPEND_BOOL(&item, "exact", exact);
        INT64(&item, "dataBytes", rows[i].data_bytes);
        INT64(&item, "storageBytes", rows[i].storage_bytes);
        INT64(&item, "indexBytes", rows[i].index_bytes);
        bson_append_document_end(&array, &item);
        sl_text_table_cell(table, "%s", rows[i].shard);
        sl_text_table_number(table, (double)rows[i].documents);
        sl_text_table_cell(table, "%.1f %%",
                           all ? 100 * (double)rows[i].documents / (double)all : 0);
        sl_text_table_number(table, (double)rows[i].data_bytes);
        sl_text_table_number(table, (double)rows[i].storage_bytes);
        sl_text_table_number(table, (double)rows[i].index_bytes);
    }
    bson_append_array_end(record, &array);
    sl_text_table_log(table);
    warn_of_one_shard(load, rows, count, all);
    if (!exact && count > 0)
        sl_log_info("  documents as in the servers' statistics, which may be wrong after a crash");
    free(rows);
}
