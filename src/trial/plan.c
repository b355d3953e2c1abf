/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan from the preview of a load and the rates of an earlier load. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "report/json.h"
#include "report/report.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"

#include "plan_print.h"
#include "plan_record.h"

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
        sl_plan_record(preview, known ? &prediction : NULL, known ? rates.from : NULL, &record);
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
