/* SPDX-License-Identifier: Apache-2.0 */
/* Reads capacity models from YAML files, built in or the user's (capacity.h shows one). */
#include "capacity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/embedded.h"
#include "util/read_file.h"
#include "util/text.h"
#include "util/yaml_reader.h"

#define MODEL_BYTES_MAX ((size_t)1 << 20)

static bool complain(sl_yaml *r, const yaml_node_t *node, const char *problem) {
    return sl_yaml_fail(r, node->start_mark, "%s", problem);
}

/* ---- values ---- */

static bool read_text(sl_yaml *r, const yaml_node_t *node, char *field, size_t room) {
    sl_text text = sl_yaml_text(node);
    if (node->type != YAML_SCALAR_NODE)
        return sl_yaml_expected(r, node, "a plain value");
    if (text.length >= room)
        return complain(r, node, "this text is too long");
    if (memchr(text.bytes, 0, text.length)) /* the text would end there */
        return complain(r, node, "this text contains a null character");
    memcpy(field, text.bytes, text.length);
    field[text.length] = '\0';
    return true;
}

/* Defines the reader of a text whose field has this type. */
#define TEXT(reader, type, member)                                                                 \
    static bool reader(sl_yaml *r, const yaml_node_t *node, void *field) {                         \
        return read_text(r, node, field, sizeof((type *)0)->member);                               \
    }
TEXT(read_title, sl_capacity_model, title)
TEXT(read_about, sl_capacity_model, about)
TEXT(read_name, sl_capacity_input, name)
TEXT(read_unit, sl_capacity_input, unit)
TEXT(read_input_note, sl_capacity_input, note)
TEXT(read_formula, sl_capacity_result, formula)
TEXT(read_result_note, sl_capacity_result, note)
TEXT(read_point_name, sl_capacity_point, name)

static bool read_number(sl_yaml *r, const yaml_node_t *node, void *field /* double * */) {
    sl_text text = sl_yaml_text(node);
    return sl_capacity_number(text.bytes, text.length, field) ||
           sl_yaml_expected(r, node, "a number, like 85000, 85k or 2.5G");
}

static bool read_origin(sl_yaml *r, const yaml_node_t *node, void *field) {
    size_t index;
    bool ok = sl_yaml_choice(r, node, &sl_capacity_origin_names[SL_ORIGIN_PUBLISHED],
                             SL_ORIGIN_ASSUMED - SL_ORIGIN_PUBLISHED + 1,
                             "published, measured, fitted or assumed", &index);
    *(sl_capacity_origin *)field = (sl_capacity_origin)(SL_ORIGIN_PUBLISHED + index);
    return ok;
}

/* ---- inputs and results ---- */

/* The index of a result; result_count if there is none of this name. */
static size_t find_result(const sl_capacity_model *model, sl_text name) {
    size_t i = 0;
    while (i < model->result_count && !sl_text_equal(name, sl_text_of(model->results[i].name)))
        i++;
    return i;
}

static bool take_name(sl_yaml *r, const yaml_node_t *key, const sl_capacity_model *model,
                      char *field) {
    sl_text name = sl_yaml_text(key);
    for (size_t i = 0; i < name.length; i++) {
        char c = name.bytes[i];
        if (!(c >= 'a' && c <= 'z') && (i == 0 || (c != '-' && !(c >= '0' && c <= '9'))))
            return complain(r, key, "a name consists of lower-case letters, digits and hyphens");
    }
    if (name.length == 0 || find_result(model, name) < model->result_count ||
        sl_capacity_find(model, name.bytes, name.length) < model->input_count)
        return complain(r, key, "this name is empty or already exists");
    return read_name(r, key, field);
}

static bool read_input(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *node, void *into) {
    static const sl_yaml_key keys[] = {
        {"value", read_number, offsetof(sl_capacity_input, value), false},
        {"low", read_number, offsetof(sl_capacity_input, low), false},
        {"high", read_number, offsetof(sl_capacity_input, high), false},
        {"unit", read_unit, offsetof(sl_capacity_input, unit), false},
        {"from", read_origin, offsetof(sl_capacity_input, origin), false},
        {"note", read_input_note, offsetof(sl_capacity_input, note), false},
        {0},
    };
    sl_capacity_model *model = into;
    sl_capacity_input *input = &model->inputs[model->input_count];
    if (model->input_count == SL_CAPACITY_INPUTS_MAX)
        return complain(r, key, "too many inputs");
    *input = (sl_capacity_input){.value = NAN, .low = NAN, .high = NAN};
    if (!take_name(r, key, model, input->name) || !sl_yaml_mapping(r, node, keys, input))
        return false;
    input->low = isnan(input->low) ? input->value : input->low;
    input->high = isnan(input->high) ? input->value : input->high;
    if (isnan(input->value))
        return complain(r, node, "its value is missing");
    if (!(input->low <= input->value && input->value <= input->high))
        return complain(r, node, "its value is not within low and high");
    if (input->origin == SL_ORIGIN_NONE)
        return complain(r, node, "from is missing: published, measured, fitted or assumed");
    model->input_count++;
    return true;
}

static bool read_result(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *node, void *into) {
    static const sl_yaml_key keys[] = {
        {"is", read_formula, offsetof(sl_capacity_result, formula), false},
        {"unit", read_unit, offsetof(sl_capacity_result, unit), false},
        {"published", read_number, offsetof(sl_capacity_result, figure.published), false},
        {"fitted", read_number, offsetof(sl_capacity_result, figure.fitted), false},
        {"note", read_result_note, offsetof(sl_capacity_result, note), false},
        {0},
    };
    sl_capacity_model *model = into;
    sl_capacity_result *result = &model->results[model->result_count];
    if (model->result_count == SL_CAPACITY_RESULTS_MAX)
        return complain(r, key, "too many results");
    *result = (sl_capacity_result){.figure = {NAN, NAN}};
    if (!take_name(r, key, model, result->name) || !sl_yaml_mapping(r, node, keys, result))
        return false;
    if (!result->formula[0])
        return complain(r, node, "its formula is missing: is");
    model->result_count++;
    return true;
}

/* Defines the reader of a mapping whose pairs `one` reads. */
#define EACH(reader, one)                                                                          \
    static bool reader(sl_yaml *r, const yaml_node_t *node, void *into) {                          \
        return sl_yaml_each(r, node, "a mapping of keys to values", one, into);                    \
    }
EACH(read_inputs, read_input)
EACH(read_results, read_result)

/* ---- points ---- */

/* A point that is read, and the model of which it replaces some inputs. */
typedef struct new_point {
    sl_capacity_point point;
    const sl_capacity_model *model;
} new_point;

static bool set_one(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *node, void *into) {
    new_point *new = into;
    sl_text name = sl_yaml_text(key);
    size_t input = sl_capacity_find(new->model, name.bytes, name.length);
    if (input == new->model->input_count)
        return complain(r, key, "no input above has this name");
    return read_number(r, node, &new->point.set[input]);
}

static sl_capacity_figure *figure_of(sl_yaml *r, const yaml_node_t *key, new_point *new) {
    size_t result = find_result(new->model, sl_yaml_text(key));
    if (result == new->model->result_count)
        complain(r, key, "no result above has this name");
    return result == new->model->result_count ? NULL : &new->point.figures[result];
}

static bool publish_one(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *node, void *into) {
    sl_capacity_figure *figure = figure_of(r, key, into);
    return figure && read_number(r, node, &figure->published);
}

static bool fit_one(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *node, void *into) {
    sl_capacity_figure *figure = figure_of(r, key, into);
    return figure && read_number(r, node, &figure->fitted);
}

EACH(read_set, set_one)
EACH(read_published, publish_one)
EACH(read_fitted, fit_one)

static bool read_points(sl_yaml *r, const yaml_node_t *node, void *into) {
    static const sl_yaml_key keys[] = {
        {"name", read_point_name, offsetof(new_point, point.name), false},
        {"set", read_set, 0, false},
        {"published", read_published, 0, false},
        {"fitted", read_fitted, 0, false},
        {0},
    };
    sl_capacity_model *model = into;
    const yaml_node_t *item;
    if (node->type != YAML_SEQUENCE_NODE)
        return sl_yaml_expected(r, node, "a list");
    for (size_t k = 0; (item = sl_yaml_item(r, node, k)); k++) {
        new_point new = {.model = model};
        if (model->point_count == SL_CAPACITY_POINTS_MAX)
            return complain(r, item, "too many points");
        for (size_t i = 0; i < SL_CAPACITY_INPUTS_MAX; i++)
            new.point.set[i] = NAN;
        for (size_t i = 0; i < SL_CAPACITY_RESULTS_MAX; i++)
            new.point.figures[i] = (sl_capacity_figure){NAN, NAN};
        if (!sl_yaml_mapping(r, item, keys, &new))
            return false;
        model->points[model->point_count++] = new.point;
    }
    return true;
}

/* ---- the model ---- */

/* Computes the model and its points once. A published figure of a result that depends on a fitted
 * input would look like a prediction. Only points may have such figures, because an input fitted to
 * one point does predict the other points. */
static bool check(const sl_yaml *r, sl_capacity_model *model) {
    sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
    model->answer = find_result(model, sl_text_of(model->answer_name));
    if (model->answer == model->result_count)
        return sl_error_set(r->error, SL_EXIT_USAGE, "%s: \"answer\" must name one of the results",
                            r->file);
    for (size_t i = 0; i < model->point_count; i++) {
        if (!sl_capacity_compute(model, model->points[i].set, values, r->error))
            return sl_error_prefix(r->error, "%s", r->file);
    }
    if (!sl_capacity_compute(model, NULL, values, r->error))
        return sl_error_prefix(r->error, "%s", r->file);
    for (size_t i = 0; i < model->result_count; i++) {
        if (values[i].fitted && !isnan(model->results[i].figure.published))
            return sl_error_set(r->error, SL_EXIT_USAGE,
                                "%s: %s depends on a fitted input, so it is not a prediction: give "
                                "its figure as \"fitted\" instead of \"published\"",
                                r->file, model->results[i].name);
    }
    return true;
}

bool sl_capacity_parse(const char *text, size_t length, const char *name, sl_capacity_model *model,
                       sl_error *error) {
    static const sl_yaml_key keys[] = {
        {"title", read_title, offsetof(sl_capacity_model, title), false},
        {"about", read_about, offsetof(sl_capacity_model, about), false},
        {"answer", read_name, offsetof(sl_capacity_model, answer_name), false},
        {"inputs", read_inputs, 0, false},
        {"results", read_results, 0, false},
        {"points", read_points, 0, false},
        {0},
    };
    sl_yaml r = {.text = {text, length}, .file = name, .code = SL_EXIT_USAGE, .error = error};
    const yaml_node_t *root;
    *model = (sl_capacity_model){.name = ""};
    sl_text_printable((sl_text){name, strcspn(name, ".")}, model->name, sizeof model->name);
    if (!sl_yaml_read(&r, &root))
        return false;
    bool ok = root ? sl_yaml_mapping(&r, root, keys, model) && check(&r, model)
                   : sl_error_set(error, SL_EXIT_USAGE, "%s: the file is empty", name);
    yaml_document_delete(&r.document);
    return ok;
}

/* ---- built-in models and files ---- */

static bool open_file(const char *path, sl_capacity_model *model, sl_error *error) {
    char shown[300], known[400] = "";
    size_t used = 0;
    sl_text text;
    sl_error why;
    sl_text_printable(sl_text_of(path), shown, sizeof shown);
    for (const sl_embedded *one = sl_embedded_models; one->name && used < sizeof known; one++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%.*s", used ? ", " : "",
                                 (int)strcspn(one->name, "."), one->name);
    if (!sl_read_file(path, MODEL_BYTES_MAX, SL_EXIT_USAGE, &text, &why))
        return sl_error_set(error, why.code,
                            "%s is not a built-in model (%s), and cannot be read as a file: %s",
                            shown, known, why.message);
    const char *name = strrchr(shown, '/');
    bool ok = sl_capacity_parse(text.bytes, text.length, name ? name + 1 : shown, model, error);
    free((char *)text.bytes);
    return ok;
}

bool sl_capacity_open(const char *name, sl_capacity_model *model, sl_error *error) {
    for (const sl_embedded *one = sl_embedded_models; one->name; one++) {
        size_t length = strcspn(one->name, ".");
        if (strlen(name) == length && memcmp(one->name, name, length) == 0)
            return sl_capacity_parse(one->text, one->length, one->name, model, error);
    }
    return open_file(name, model, error);
}
