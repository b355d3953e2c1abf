/* SPDX-License-Identifier: Apache-2.0 */
/* A capacity model and its result as JSON: inputs, resources, missing inputs, times and costs. */
#include "capacity.h"

#include <math.h>

static void append_range(bson_t *document, const char *key, const sl_estimate *range) {
    bson_t section;
    if (isnan(range->value))
        return;
    bson_append_document_begin(document, key, -1, &section);
    BSON_APPEND_DOUBLE(&section, "value", range->value);
    BSON_APPEND_DOUBLE(&section, "low", range->low);
    BSON_APPEND_DOUBLE(&section, "high", range->high);
    bson_append_document_end(document, &section);
}

static void append_figure(bson_t *document, const char *key, double figure) {
    if (!isnan(figure))
        BSON_APPEND_DOUBLE(document, key, figure);
}

static void append_text(bson_t *document, const char *key, const char *text) {
    if (text[0])
        BSON_APPEND_UTF8(document, key, text);
}

/* Begins the next item of an array. */
static void begin_item(bson_t *list, uint32_t *count, bson_t *item) {
    char room[16];
    const char *key;
    bson_uint32_to_string((*count)++, &key, room, sizeof room);
    bson_append_document_begin(list, key, -1, item);
}

static void append_inputs(bson_t *document, const sl_capacity_model *model,
                          const sl_capacity_result *result) {
    bson_t inputs, item;
    BSON_APPEND_DOCUMENT_BEGIN(document, "inputs", &inputs);
    for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++) {
        const sl_capacity_value *value =
            i == SL_CAPACITY_HOSTS ? &result->hosts : &model->values[i];
        if (isnan(value->value))
            continue;
        bson_append_document_begin(&inputs, sl_capacity_inputs[i].name, -1, &item);
        BSON_APPEND_DOUBLE(&item, "value", value->value);
        BSON_APPEND_DOUBLE(&item, "low", value->low);
        BSON_APPEND_DOUBLE(&item, "high", value->high);
        BSON_APPEND_UTF8(&item, "unit", sl_capacity_inputs[i].unit);
        BSON_APPEND_UTF8(&item, "from", sl_capacity_origin_names[value->origin]);
        append_text(&item, "note", value->note);
        bson_append_document_end(&inputs, &item);
    }
    bson_append_document_end(document, &inputs);
}

static void append_resources(bson_t *document, const sl_capacity_result *result) {
    bson_t resources, item;
    uint32_t used = 0;
    BSON_APPEND_ARRAY_BEGIN(document, "resources", &resources);
    for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++) {
        const sl_capacity_row *row = &result->rows[i];
        if (!row->known)
            continue;
        begin_item(&resources, &used, &item);
        BSON_APPEND_UTF8(&item, "name", sl_capacity_resource_names[i]);
        BSON_APPEND_UTF8(&item, "unit", row->bytes ? "bytes" : "documents");
        BSON_APPEND_DOUBLE(&item, "demand", row->demand);
        BSON_APPEND_DOUBLE(&item, "capacityPerSecond", row->capacity);
        append_range(&item, "hours", &row->hours);
        BSON_APPEND_DOUBLE(&item, "utilisation", row->utilisation);
        bson_append_document_end(&resources, &item);
    }
    bson_append_array_end(document, &resources);
}

static void append_missing(bson_t *document, const sl_capacity_model *model,
                           const sl_capacity_result *result) {
    const char *names[SL_CAPACITY_MISSING_MAX];
    size_t count = sl_capacity_missing(model, result, names);
    bson_t list;
    BSON_APPEND_ARRAY_BEGIN(document, "notInModel", &list);
    for (uint32_t i = 0; i < count; i++) {
        char room[16];
        const char *key;
        bson_uint32_to_string(i, &key, room, sizeof room);
        BSON_APPEND_UTF8(&list, key, names[i]);
    }
    bson_append_array_end(document, &list);
}

static void append_published(bson_t *document, const sl_capacity_model *model) {
    if (isnan(model->published_hours) || model->other_data)
        return;
    BSON_APPEND_DOUBLE(document, "publishedHours", model->published_hours);
    BSON_APPEND_DOUBLE(document, "publishedLow", model->published_low);
    BSON_APPEND_DOUBLE(document, "publishedHigh", model->published_high);
    append_text(document, "publishedNote", model->published_note);
}

/* Appends the fields that a model and a row of its sweep both have. */
static void append_result(bson_t *document, const sl_capacity_result *result) {
    BSON_APPEND_UTF8(document, "bottleneck", sl_capacity_bottleneck_name(result));
    append_range(document, "hours", &result->hours);
    BSON_APPEND_DOUBLE(document, "documentsPerSecond", result->rate);
    BSON_APPEND_DOUBLE(document, "busyHosts", result->busy_hosts);
    append_figure(document, "hostShare", result->host_share);
    append_range(document, "cost", &result->cost);
}

static void append_sweep(bson_t *document, const sl_capacity_sweep *sweep) {
    bson_t section, rows, item;
    uint32_t used = 0;
    BSON_APPEND_DOCUMENT_BEGIN(document, "sweep", &section);
    BSON_APPEND_UTF8(&section, "input", sl_capacity_inputs[sweep->input].name);
    BSON_APPEND_ARRAY_BEGIN(&section, "rows", &rows);
    for (size_t i = 0; i < sweep->count; i++) {
        begin_item(&rows, &used, &item);
        BSON_APPEND_DOUBLE(&item, "value", sweep->values[i]);
        append_result(&item, &sweep->results[i]);
        bson_append_document_end(&rows, &item);
    }
    bson_append_array_end(&section, &rows);
    bson_append_document_end(document, &section);
}

void sl_capacity_append(bson_t *document, const sl_capacity_model *model,
                        const sl_capacity_result *result, const sl_capacity_sweep *sweep) {
    BSON_APPEND_UTF8(document, "model", model->name);
    BSON_APPEND_UTF8(document, "title", model->title);
    append_text(document, "about", model->about);
    append_inputs(document, model, result);
    append_resources(document, result);
    append_missing(document, model, result);
    append_result(document, result);
    BSON_APPEND_UTF8(document, "loadBottleneck", sl_capacity_resource_names[result->bottleneck]);
    append_range(document, "loadHours", &result->load_hours);
    append_range(document, "indexHours", &result->index_hours);
    BSON_APPEND_DOUBLE(document, "storedBytes", result->stored_bytes);
    append_published(document, model);
    if (sweep && sweep->count > 0)
        append_sweep(document, sweep);
}
