/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan from the preview of a load and the rates of an earlier load; its record, plan.json,
 * has the server, the sources, the estimate, the ranges and the predicted times. */
#include "plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/json.h"
#include "report/report.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"

#define INT64(document, key, value) BSON_APPEND_INT64(document, key, (int64_t)(value))

/* ---- plan.json ---- */

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
    bson_t sources, item;
    BSON_APPEND_ARRAY_BEGIN(record, "sources", &sources);
    for (size_t i = 0; i < preview->source_count; i++) {
        const sl_preview_source *source = &preview->sources[i];
        sl_record_begin_item(&sources, i, &item);
        BSON_APPEND_UTF8(&item, "path", source->name);
        if (source->record_bytes == 0)
            INT64(&item, "storedBytes", source->stored_bytes);
        BSON_APPEND_UTF8(&item, "format", source->format);
        BSON_APPEND_UTF8(&item, "dialect", source->dialect);
        BSON_APPEND_INT32(&item, "number", (int32_t)source->number);
        BSON_APPEND_BOOL(&item, "lookedAt", source->sampled);
        append_measure(&item, &source->measure);
        bson_append_document_end(&sources, &item);
    }
    bson_append_array_end(record, &sources);
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
    bson_t list, item, section;
    BSON_APPEND_DOCUMENT_BEGIN(record, "layout", &section);
    BSON_APPEND_UTF8(&section, "kind", names[preview->layout]);
    BSON_APPEND_BOOL(&section, "collectionExists", preview->exists);
    BSON_APPEND_UTF8(&section, "sharding", changes[preview->sharding]);
    INT64(&section, "splits", preview->steps.splits);
    INT64(&section, "moves", preview->steps.moves);
    INT64(&section, "occupied", preview->steps.occupied);
    bson_append_document_end(record, &section);
    BSON_APPEND_ARRAY_BEGIN(record, "ranges", &list);
    for (size_t i = 0; i < preview->range_count; i++) {
        const sl_preview_range *range = &preview->ranges[i];
        sl_record_begin_item(&list, i, &item);
        INT64(&item, "minimum", range->range.minimum);
        INT64(&item, "maximum", range->range.maximum);
        append_shard(&item, preview, range->shard);
        INT64(&item, "documents", range->documents + 0.5);
        if (range->stays)
            BSON_APPEND_BOOL(&item, "stays", true);
        bson_append_document_end(&list, &item);
    }
    bson_append_array_end(record, &list);
    BSON_APPEND_ARRAY_BEGIN(record, "shards", &list);
    for (uint32_t i = 0; i < preview->shards; i++) {
        sl_record_begin_item(&list, i, &item);
        append_shard(&item, preview, i);
        BSON_APPEND_DOUBLE(&item, "share", preview->shard_share[i]);
        INT64(&item, "documents", preview->shard_share[i] * preview->all.documents.value + 0.5);
        INT64(&item, "bsonBytes", preview->shard_share[i] * preview->all.bson_bytes.value + 0.5);
        bson_append_document_end(&list, &item);
    }
    bson_append_array_end(record, &list);
}

static void append_seconds(bson_t *document, const sl_estimate *seconds) {
    BSON_APPEND_DOUBLE(document, "seconds", seconds->value);
    BSON_APPEND_DOUBLE(document, "low", seconds->low);
    BSON_APPEND_DOUBLE(document, "high", seconds->high);
}

static void record_prediction(const sl_plan_times *prediction, const char *from, bson_t *record) {
    bson_t section, phases, item;
    BSON_APPEND_DOCUMENT_BEGIN(record, "predicted", &section);
    BSON_APPEND_ARRAY_BEGIN(&section, "phases", &phases);
    for (size_t i = 0; i < prediction->count; i++) {
        sl_record_begin_item(&phases, i, &item);
        BSON_APPEND_UTF8(&item, "name", prediction->phases[i].name);
        if (isnan(prediction->phases[i].seconds.value))
            BSON_APPEND_UTF8(&item, "unknownBecause", prediction->phases[i].why);
        else
            append_seconds(&item, &prediction->phases[i].seconds);
        bson_append_document_end(&phases, &item);
    }
    bson_append_array_end(&section, &phases);
    append_seconds(&section, &prediction->seconds);
    BSON_APPEND_BOOL(&section, "complete", prediction->complete);
    BSON_APPEND_UTF8(&section, "from", from);
    bson_append_document_end(record, &section);
}

/* Appends the plan to `record`. `prediction` and `from` are NULL when no rates are known. */
static void record_plan(const sl_preview *preview, const sl_plan_times *prediction,
                        const char *from, bson_t *record) {
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

/* ---- the command ---- */

static bool read_rates(const sl_plan_config *config, sl_rates *rates, bool *known,
                       sl_error *error) {
    *known = config->from != NULL || config->rate > 0;
    if (config->from)
        return sl_rates_read(config->from, rates, error);
    if (*known)
        sl_rates_from_number(config->rate, rates);
    return true;
}

static bool write_report(const sl_load_config *load, bson_t *record, sl_error *error) {
    return !load->report || sl_json_write_file(load->report, record, error);
}

/* Replaces the model's number and size of documents by those of the sources. */
static bool use_preview(const sl_preview *preview, sl_capacity_model *model, sl_error *error) {
    const sl_measure *all = &preview->all;
    static const char note[] = "a sample of the sources";
    size_t count = sl_capacity_find(model, "documents", 9);
    size_t size = sl_capacity_find(model, "document-bytes", 14);
    double documents = all->documents.value, each = all->bson_bytes.value / documents;
    if (count == model->input_count || size == model->input_count)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "sources replace the inputs documents and document-bytes, and this "
                            "model does not have both");
    if (documents < 1)
        return true;
    sl_capacity_replace(model, count, all->documents.low, documents, all->documents.high,
                        SL_ORIGIN_MEASURED, note);
    sl_capacity_replace(model, size, each, each, each, SL_ORIGIN_MEASURED, note);
    model->other_data = true;
    return true;
}

sl_exit sl_plan_run(const sl_plan_config *config) {
    const sl_load_config *load = config->load;
    sl_error error = {0};
    sl_rates rates;
    sl_plan_times prediction;
    sl_preview *preview = NULL;
    bool known = false;
    bson_t record = BSON_INITIALIZER;
    sl_record_head(&record, "plan", load->program_version, sl_wall_clock_ms(), load->options);
    bool ok = (!load->report || sl_json_may_write_file(load->report, &error)) &&
              read_rates(config, &rates, &known, &error) &&
              sl_preview_create(load, config->shards, config->blocks, &preview, &error);
    if (ok) {
        if (known)
            sl_predict(&rates, &preview->all, preview->steps.splits + preview->steps.moves,
                       load->index_count, load->verify, &prediction);
        ok = sl_plan_print_sources(preview, sl_output()) ||
             sl_error_memory(&error, "printing the plan");
        sl_plan_print_target(preview, load, sl_output());
        sl_plan_print_layout(preview, sl_output());
        sl_plan_print_times(known ? &prediction : NULL, known ? rates.from : NULL, sl_output());
        fflush(sl_output());
        record_plan(preview, known ? &prediction : NULL, known ? rates.from : NULL, &record);
        if (preview->refusal.code)
            sl_log_error("a load would refuse to start: " SL_LINES, preview->refusal.message);
        sl_record_tail(&record, preview->refusal.code);
        if (load->run_record)
            bson_concat(load->run_record, &record);
        ok = ok && write_report(load, &record, &error);
    }
    if (!ok) {
        sl_error_missing(&error, "the plan");
        sl_log_error(SL_LINES, error.message);
    }
    sl_exit code = !ok ? error.code : preview->refusal.code;
    sl_preview_destroy(preview);
    bson_destroy(&record);
    return code;
}

sl_exit sl_plan_run_model(const sl_model_config *config) {
    const sl_load_config *load = config->load;
    sl_error error = {0};
    sl_capacity_model model = *config->model;
    sl_preview *preview = NULL;
    bson_t record = BSON_INITIALIZER, section;
    const bson_t *const records[] = {&record};
    const char *const names[] = {model.name};
    const sl_report report = {.records = records, .names = names, .count = 1};
    sl_record_head(&record, "plan", load->program_version, sl_wall_clock_ms(), load->options);
    bool ok = !load->report || sl_json_may_write_file(load->report, &error);
    if (ok && (load->path_count > 0 || load->format_options.ycsb.records > 0))
        ok = sl_preview_create(load, 1, config->blocks, &preview, &error) &&
             use_preview(preview, &model, &error);
    BSON_APPEND_DOCUMENT_BEGIN(&record, "capacity", &section);
    ok = ok && sl_capacity_append(&section, &model, config->sweep, config->sweep_values,
                                  config->sweep_count, &error);
    bson_append_document_end(&record, &section);
    sl_record_tail(&record, SL_EXIT_OK);
    ok = ok && sl_report_text(&report, &(sl_report_terminal){.columns = 160, .ascii = true},
                              sl_output(), &error);
    if (ok && load->run_record)
        bson_concat(load->run_record, &record);
    ok = ok && write_report(load, &record, &error);
    if (!ok) {
        sl_error_missing(&error, "the plan");
        sl_log_error(SL_LINES, error.message);
    }
    sl_preview_destroy(preview);
    bson_destroy(&record);
    return ok ? SL_EXIT_OK : error.code;
}
