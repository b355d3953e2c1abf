/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the results of a capacity model, and appends them to a record. */
#include "capacity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/run_record.h"

const char *const sl_capacity_origin_names[SL_ORIGINS] = {"",       "published", "measured",
                                                          "fitted", "assumed",   "given"};

size_t sl_capacity_find(const sl_capacity_model *model, const char *name, size_t length) {
    size_t i = 0;
    while (i < model->input_count && (strlen(model->inputs[i].name) != length ||
                                      memcmp(model->inputs[i].name, name, length) != 0))
        i++;
    return i;
}

/* ---- computing ---- */

typedef struct names {
    const sl_capacity_model *model;
    const double *set;
    const sl_capacity_value *values;
    size_t computed; /* values */
} names;

static bool look_up(void *context, const char *name, size_t length, sl_capacity_value *value) {
    const names *all = context;
    size_t input = sl_capacity_find(all->model, name, length);
    if (input < all->model->input_count) {
        const sl_capacity_input *one = &all->model->inputs[input];
        bool other = all->set && !isnan(all->set[input]);
        *value = (sl_capacity_value){.fitted = one->origin == SL_ORIGIN_FITTED};
        value->number = other ? sl_estimate_exactly(all->set[input])
                              : (sl_estimate){one->value, one->low, one->high};
        return true;
    }
    for (size_t i = 0; i < all->computed; i++) {
        if (strlen(all->model->results[i].name) == length &&
            memcmp(all->model->results[i].name, name, length) == 0) {
            *value = all->values[i];
            return true;
        }
    }
    return false;
}

bool sl_capacity_compute(const sl_capacity_model *model, const double *set,
                         sl_capacity_value values[SL_CAPACITY_RESULTS_MAX], sl_error *error) {
    names all = {model, set, values, 0};
    for (; all.computed < model->result_count; all.computed++) {
        const sl_capacity_result *result = &model->results[all.computed];
        sl_capacity_value value;
        if (!sl_capacity_formula(result->formula, look_up, &all, &value, error))
            return sl_error_prefix(error, "the formula of %s", result->name);
        values[all.computed] = value;
    }
    return true;
}

/* ---- changed inputs ---- */

void sl_capacity_replace(sl_capacity_model *model, size_t input, double low, double value,
                         double high, sl_capacity_origin origin, const char *note) {
    sl_capacity_input *one = &model->inputs[input];
    model->other_data = model->other_data || one->origin == SL_ORIGIN_PUBLISHED;
    one->low = low;
    one->value = value;
    one->high = high;
    one->origin = origin;
    snprintf(one->note, sizeof one->note, "%s", note);
    for (size_t i = 0; i < model->point_count; i++) /* otherwise points would keep the model's
                                                       value */
        model->other_data = model->other_data || !isnan(model->points[i].set[input]);
}

bool sl_capacity_set(sl_capacity_model *model, const char *assignment, sl_error *error) {
    const char *equals = strchr(assignment, '=');
    if (!equals)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "\"%.100s\" is not NAME=VALUE or NAME=LOW..VALUE..HIGH", assignment);
    size_t input = sl_capacity_find(model, assignment, (size_t)(equals - assignment));
    if (input == model->input_count) {
        char known[900] = "";
        size_t used = 0;
        for (size_t i = 0; i < model->input_count && used < sizeof known; i++)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                     model->inputs[i].name);
        return sl_error_set(
            error, SL_EXIT_USAGE, "the model has no input \"%.*s\"; its inputs are %s",
            (int)(equals - assignment > 60 ? 60 : equals - assignment), assignment, known);
    }
    double numbers[3];
    size_t count = 0;
    const char *at = equals + 1;
    bool more = true; /* a number is expected at `at` */
    for (; more && count < 3; count++) {
        const char *dots = strstr(at, "..");
        size_t length = dots ? (size_t)(dots - at) : strlen(at);
        if (!sl_capacity_number(at, length, &numbers[count]))
            break;
        at += length + (dots ? 2 : 0);
        more = dots != NULL;
    }
    if (more || *at || (count != 1 && count != 3))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s: \"%.60s\" is neither a number such as 85k nor LOW..VALUE..HIGH",
                            model->inputs[input].name, equals + 1);
    double value = numbers[count / 2], low = numbers[0], high = numbers[count - 1];
    if (!(low <= value && value <= high))
        return sl_error_set(error, SL_EXIT_USAGE, "%s: %g is not within %g to %g",
                            model->inputs[input].name, value, low, high);
    sl_capacity_replace(model, input, low, value, high, SL_ORIGIN_GIVEN, "");
    return true;
}

/* ---- the record ---- */

static void append_value(bson_t *item, const sl_capacity_value *value) {
    BSON_APPEND_DOUBLE(item, "value", value->number.value);
    BSON_APPEND_DOUBLE(item, "low", value->number.low);
    BSON_APPEND_DOUBLE(item, "high", value->number.high);
    if (value->decided[0])
        BSON_APPEND_UTF8(item, "decidedBy", value->decided);
}

/* Appends the figure beside a computed value, with their quotient. */
static void append_figure(bson_t *item, const sl_capacity_model *model,
                          const sl_capacity_figure *figure, const sl_capacity_value *value) {
    bool fitted = isnan(figure->published);
    double other = fitted ? figure->fitted : figure->published;
    if (isnan(other) || model->other_data) {
        BSON_APPEND_UTF8(item, "how", "computed");
        return;
    }
    BSON_APPEND_DOUBLE(item, "published", other);
    BSON_APPEND_DOUBLE(item, "quotient", value->number.value / other);
    BSON_APPEND_UTF8(item, "how", fitted ? "fitted" : "predicted");
}

static void append_inputs(bson_t *document, const sl_capacity_model *model) {
    bson_t list, item;
    BSON_APPEND_ARRAY_BEGIN(document, "inputs", &list);
    for (size_t i = 0; i < model->input_count; i++) {
        const sl_capacity_input *input = &model->inputs[i];
        sl_record_begin_item(&list, i, &item);
        BSON_APPEND_UTF8(&item, "name", input->name);
        BSON_APPEND_DOUBLE(&item, "value", input->value);
        BSON_APPEND_DOUBLE(&item, "low", input->low);
        BSON_APPEND_DOUBLE(&item, "high", input->high);
        BSON_APPEND_UTF8(&item, "unit", input->unit);
        BSON_APPEND_UTF8(&item, "from", sl_capacity_origin_names[input->origin]);
        BSON_APPEND_UTF8(&item, "note", input->note);
        bson_append_document_end(&list, &item);
    }
    bson_append_array_end(document, &list);
}

static void append_results(bson_t *document, const sl_capacity_model *model,
                           const sl_capacity_value *values) {
    bson_t list, item;
    BSON_APPEND_ARRAY_BEGIN(document, "results", &list);
    for (size_t i = 0; i < model->result_count; i++) {
        const sl_capacity_result *result = &model->results[i];
        sl_record_begin_item(&list, i, &item);
        BSON_APPEND_UTF8(&item, "name", result->name);
        BSON_APPEND_UTF8(&item, "formula", result->formula);
        BSON_APPEND_UTF8(&item, "unit", result->unit);
        append_value(&item, &values[i]);
        append_figure(&item, model, &result->figure, &values[i]);
        BSON_APPEND_UTF8(&item, "note", result->note);
        bson_append_document_end(&list, &item);
    }
    bson_append_array_end(document, &list);
}

/* Appends one row for each point and each result that was published for it. */
static bool append_points(bson_t *document, const sl_capacity_model *model, sl_error *error) {
    sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
    bson_t list, item;
    size_t used = 0;
    bool ok = true;
    BSON_APPEND_ARRAY_BEGIN(document, "points", &list);
    for (size_t k = 0; ok && k < model->result_count; k++) {
        for (size_t i = 0; ok && i < model->point_count && !model->other_data; i++) {
            const sl_capacity_point *point = &model->points[i];
            const sl_capacity_figure *figure = &point->figures[k];
            if (isnan(figure->published) && isnan(figure->fitted))
                continue;
            if (!(ok = sl_capacity_compute(model, point->set, values, error)))
                break;
            sl_record_begin_item(&list, used++, &item);
            BSON_APPEND_UTF8(&item, "result", model->results[k].name);
            BSON_APPEND_UTF8(&item, "unit", model->results[k].unit);
            BSON_APPEND_UTF8(&item, "name", point->name);
            append_value(&item, &values[k]);
            append_figure(&item, model, figure, &values[k]);
            bson_append_document_end(&list, &item);
        }
    }
    bson_append_array_end(document, &list);
    return ok;
}

static bool append_sweep(bson_t *document, const sl_capacity_model *model, size_t input,
                         const double *swept, size_t count, sl_error *error) {
    sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
    double set[SL_CAPACITY_INPUTS_MAX];
    bson_t section, rows, item;
    bool ok = true;
    for (size_t i = 0; i < SL_CAPACITY_INPUTS_MAX; i++)
        set[i] = NAN;
    BSON_APPEND_DOCUMENT_BEGIN(document, "sweep", &section);
    BSON_APPEND_UTF8(&section, "input", model->inputs[input].name);
    BSON_APPEND_UTF8(&section, "result", model->results[model->answer].name);
    BSON_APPEND_UTF8(&section, "unit", model->results[model->answer].unit);
    BSON_APPEND_ARRAY_BEGIN(&section, "rows", &rows);
    for (size_t i = 0; ok && i < count; i++) {
        set[input] = swept[i];
        if (!(ok = sl_capacity_compute(model, set, values, error)))
            break;
        sl_record_begin_item(&rows, i, &item);
        BSON_APPEND_DOUBLE(&item, "input", swept[i]);
        append_value(&item, &values[model->answer]);
        bson_append_document_end(&rows, &item);
    }
    bson_append_array_end(&section, &rows);
    bson_append_document_end(document, &section);
    return ok;
}

bool sl_capacity_append(bson_t *document, const sl_capacity_model *model, size_t input,
                        const double *swept, size_t count, sl_error *error) {
    sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
    if (!sl_capacity_compute(model, NULL, values, error))
        return false;
    BSON_APPEND_UTF8(document, "model", model->name);
    BSON_APPEND_UTF8(document, "title", model->title);
    BSON_APPEND_UTF8(document, "about", model->about);
    BSON_APPEND_UTF8(document, "answer", model->results[model->answer].name);
    append_inputs(document, model);
    append_results(document, model, values);
    return append_points(document, model, error) &&
           (count == 0 || append_sweep(document, model, input, swept, count, error));
}
