/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the input of `shardload plan`: capacity models in YAML, assignments, and run records. The
 * first byte of the input selects one of the three. The result is estimates with
 * low <= value <= high, or an error message. */
#include "report/json.h"
#include "trial/capacity.h"
#include "trial/plan.h"
#include <math.h>

#include "check.h"

static void check_estimate(const sl_estimate *estimate) {
    require(estimate->low <= estimate->value && estimate->value <= estimate->high,
            "low <= value <= high");
}

static void compute(const sl_capacity_model *model) {
    sl_capacity_value results[SL_CAPACITY_RESULTS_MAX];
    sl_error error = {0};
    bson_t record = BSON_INITIALIZER;
    static const double values[] = {1, 2, 1000};
    if (!sl_capacity_compute(model, NULL, results, &error)) {
        check_error(&error);
    } else {
        for (size_t i = 0; i < model->result_count; i++)
            check_estimate(&results[i].number);
        if (!sl_capacity_append(&record, model, 0, values, model->input_count > 0 ? 3 : 0, &error))
            check_error(&error);
        free(sl_json_text(&record, &error));
    }
    bson_destroy(&record);
}

static void fuzz_model(const char *text, size_t length) {
    static sl_capacity_model model;
    sl_error error = {0};
    if (sl_capacity_parse(text, length, "fuzz.yaml", &model, &error))
        compute(&model);
    else
        check_error(&error);
}

static void fuzz_assignment(const char *text, size_t length) {
    static sl_capacity_model model;
    sl_error error = {0};
    char *assignment = strndup(text, length);
    sl_capacity_open("petabyte", &model, &error);
    if (assignment && !sl_capacity_set(&model, assignment, &error))
        check_error(&error);
    else
        compute(&model);
    free(assignment);
}

static void fuzz_record(const char *text, size_t length) {
    bson_error_t wrong;
    sl_rates rates;
    sl_error error = {0};
    sl_plan_times prediction;
    sl_measure measure = {.documents = {10, 9, 11}, .bson_bytes = {1000, 900, 1100}};
    bson_t *record = sl_json_parse(text, length, &wrong);
    if (!record)
        return;
    if (sl_rates_from_record(record, "fuzz.json", &rates, &error)) {
        sl_predict(&rates, &measure, 7, 2, true, &prediction);
        for (size_t i = 0; i < prediction.count; i++) {
            const sl_estimate *seconds = &prediction.phases[i].seconds;
            if (!isnan(seconds->value))
                check_estimate(seconds);
        }
    } else {
        check_error(&error);
    }
    bson_destroy(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const kinds[])(const char *text, size_t length) = {fuzz_model, fuzz_assignment,
                                                                     fuzz_record};
    if (size > 0)
        kinds[data[0] % 3]((const char *)data + 1, size - 1);
    return 0;
}
