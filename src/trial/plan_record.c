/* SPDX-License-Identifier: Apache-2.0 */
/* plan.json: the server, the sources, the estimate, the ranges and the predicted times. */
#include "plan_record.h"

#include <math.h>

#define INT64(document, key, value) BSON_APPEND_INT64(document, key, (int64_t)(value))

/* An array that is being appended to. */
typedef struct array {
    bson_t list;
    uint32_t count;
} array;

static void begin_item(array *to, bson_t *item) {
    char room[16];
    const char *key;
    bson_uint32_to_string(to->count++, &key, room, sizeof room);
    bson_append_document_begin(&to->list, key, -1, item);
}

/* Appends a figure and its range: "records", "recordsLow", "recordsHigh". */
static void append_count(bson_t *document, const char *name, const sl_estimate *figure) {
    char key[40];
    INT64(document, name, figure->value + 0.5);
    snprintf(key, sizeof key, "%sLow", name);
    INT64(document, key, figure->low);
    snprintf(key, sizeof key, "%sHigh", name);
    INT64(document, key, ceil(figure->high));
}

static void append_measure(bson_t *document, const sl_measure *measure) {
    append_count(document, "records", &measure->records);
    append_count(document, "documents", &measure->documents);
    append_count(document, "textBytes", &measure->text_bytes);
    append_count(document, "bsonBytes", &measure->bson_bytes);
    BSON_APPEND_DOUBLE(
        document, "averageDocument",
        measure->documents.value > 0 ? measure->bson_bytes.value / measure->documents.value : 0);
    BSON_APPEND_DOUBLE(document, "rejectsShare", measure->rejects_share);
    INT64(document, "blocks", measure->blocks + 0.5);
    INT64(document, "blocksRead", measure->blocks_read);
}

static void record_server(const sl_preview *preview, bson_t *record) {
    bson_t section;
    sl_connection_record(preview->connection, record);
    const sl_balancer_view *balancer = &preview->balancer;
    if (balancer->mode[0]) {
        BSON_APPEND_DOCUMENT_BEGIN(record, "balancer", &section);
        BSON_APPEND_UTF8(&section, "now", balancer->mode);
        if (balancer->holders > 0) {
            BSON_APPEND_UTF8(&section, "before", balancer->before);
            BSON_APPEND_INT32(&section, "holders", (int32_t)balancer->holders);
            BSON_APPEND_INT32(&section, "endedHolders", (int32_t)balancer->dead);
            BSON_APPEND_UTF8(&section, "names", balancer->names);
        }
        bson_append_document_end(record, &section);
    }
}

static void record_sources(const sl_preview *preview, bson_t *record) {
    array sources = {.count = 0};
    BSON_APPEND_ARRAY_BEGIN(record, "sources", &sources.list);
    for (size_t i = 0; i < preview->source_count; i++) {
        const sl_preview_source *source = &preview->sources[i];
        bson_t item;
        begin_item(&sources, &item);
        BSON_APPEND_UTF8(&item, "path", source->name);
        if (source->record_bytes == 0)
            INT64(&item, "storedBytes", source->stored_bytes);
        BSON_APPEND_UTF8(&item, "format", source->format);
        BSON_APPEND_UTF8(&item, "dialect", source->dialect);
        BSON_APPEND_INT32(&item, "number", (int32_t)source->number);
        BSON_APPEND_BOOL(&item, "lookedAt", source->sampled);
        append_measure(&item, &source->measure);
        bson_append_document_end(&sources.list, &item);
    }
    bson_append_array_end(record, &sources.list);
}

/* Appends the name of a shard, or without a cluster its index. */
static void append_shard(bson_t *item, const sl_preview *preview, uint32_t shard) {
    if (preview->topology)
        BSON_APPEND_UTF8(item, "shard", preview->topology->shards[shard].name);
    else
        BSON_APPEND_INT32(item, "shard", (int32_t)shard);
}

static void record_layout(const sl_preview *preview, bson_t *record) {
    static const char *const names[] = {"unsharded", "ranges", "hashed", "key", "one", "quantiles"};
    static const char *const changes[] = {[SL_SHARDING_NONE] = "as it is",
                                          [SL_SHARDING_NEW] = "new",
                                          [SL_SHARDING_EXISTING] = "existing",
                                          [SL_SHARDING_LEFT] = "left"};
    array list = {.count = 0}, shards = {.count = 0};
    bson_t item, section;
    BSON_APPEND_DOCUMENT_BEGIN(record, "layout", &section);
    BSON_APPEND_UTF8(&section, "kind", names[preview->layout]);
    BSON_APPEND_BOOL(&section, "collectionExists", preview->exists);
    BSON_APPEND_UTF8(&section, "sharding", changes[preview->sharding]);
    INT64(&section, "splits", preview->steps.splits);
    INT64(&section, "moves", preview->steps.moves);
    INT64(&section, "occupied", preview->steps.occupied);
    bson_append_document_end(record, &section);
    BSON_APPEND_ARRAY_BEGIN(record, "ranges", &list.list);
    for (size_t i = 0; i < preview->range_count; i++) {
        const sl_preview_range *range = &preview->ranges[i];
        begin_item(&list, &item);
        INT64(&item, "minimum", range->range.minimum);
        INT64(&item, "maximum", range->range.maximum);
        append_shard(&item, preview, range->shard);
        INT64(&item, "documents", range->documents + 0.5);
        if (range->stays)
            BSON_APPEND_BOOL(&item, "stays", true);
        bson_append_document_end(&list.list, &item);
    }
    bson_append_array_end(record, &list.list);
    BSON_APPEND_ARRAY_BEGIN(record, "shards", &shards.list);
    for (uint32_t i = 0; i < preview->shards; i++) {
        begin_item(&shards, &item);
        append_shard(&item, preview, i);
        BSON_APPEND_DOUBLE(&item, "share", preview->shard_share[i]);
        INT64(&item, "documents", preview->shard_share[i] * preview->all.documents.value + 0.5);
        INT64(&item, "bsonBytes", preview->shard_share[i] * preview->all.bson_bytes.value + 0.5);
        bson_append_document_end(&shards.list, &item);
    }
    bson_append_array_end(record, &shards.list);
}

static void append_seconds(bson_t *document, const sl_estimate *seconds) {
    BSON_APPEND_DOUBLE(document, "seconds", seconds->value);
    BSON_APPEND_DOUBLE(document, "low", seconds->low);
    BSON_APPEND_DOUBLE(document, "high", seconds->high);
}

static void record_prediction(const sl_plan_times *prediction, const char *from, bson_t *record) {
    array phases = {.count = 0};
    bson_t section, item;
    BSON_APPEND_DOCUMENT_BEGIN(record, "predicted", &section);
    BSON_APPEND_ARRAY_BEGIN(&section, "phases", &phases.list);
    for (size_t i = 0; i < prediction->count; i++) {
        begin_item(&phases, &item);
        BSON_APPEND_UTF8(&item, "name", prediction->phases[i].name);
        if (isnan(prediction->phases[i].seconds.value))
            BSON_APPEND_UTF8(&item, "cannotBeTold", prediction->phases[i].why);
        else
            append_seconds(&item, &prediction->phases[i].seconds);
        bson_append_document_end(&phases.list, &item);
    }
    bson_append_array_end(&section, &phases.list);
    append_seconds(&section, &prediction->seconds);
    BSON_APPEND_BOOL(&section, "complete", prediction->complete);
    BSON_APPEND_UTF8(&section, "from", from);
    bson_append_document_end(record, &section);
}

void sl_plan_record(const sl_preview *preview, const sl_plan_times *prediction, const char *from,
                    bson_t *record) {
    bson_t section;
    if (preview->connection)
        record_server(preview, record);
    record_sources(preview, record);
    BSON_APPEND_DOCUMENT_BEGIN(record, "estimate", &section);
    append_measure(&section, &preview->all);
    bson_append_document_end(record, &section);
    record_layout(preview, record);
    if (prediction)
        record_prediction(prediction, from, record);
    if (preview->refusal.code)
        BSON_APPEND_UTF8(record, "refused", preview->refusal.message);
}
