/* SPDX-License-Identifier: Apache-2.0 */
/* Reads capacity models from YAML files, built in or the user's (capacity.h shows one). */
#include "capacity.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "util/embedded.h"
#include "util/text.h"
#include "util/yaml_limits.h"

#define MODEL_BYTES_MAX ((size_t)1 << 20)

typedef struct reader {
    yaml_document_t document;
    const char *name;
    sl_capacity_model *model;
    sl_error *error;
} reader;

static bool complain(const reader *r, const yaml_node_t *node, const char *problem) {
    return sl_error_set(r->error, SL_EXIT_USAGE, "%s:%zu:%zu: %s", r->name,
                        node->start_mark.line + 1, node->start_mark.column + 1, problem);
}

static bool scalar(const yaml_node_t *node, sl_text *text) {
    if (node->type != YAML_SCALAR_NODE)
        return false;
    *text = (sl_text){(const char *)node->data.scalar.value, node->data.scalar.length};
    return true;
}

/* ---- mappings by tables of keys ---- */

/* A key of a mapping: a field for its value, or a function that reads it. */
typedef struct key_row {
    const char *name;
    enum { TEXT, NUMBER, ORIGIN, NESTED } kind;
    size_t offset;
    size_t room; /* of a TEXT */
    bool (*nested)(reader *r, const yaml_node_t *node, void *into);
} key_row;

#define FIELD(type, name, kind, field)                                                             \
    { name, kind, offsetof(type, field), sizeof(((type *)0)->field), NULL }

static bool take_text(const reader *r, const yaml_node_t *node, sl_text text, char *field,
                      size_t room) {
    if (text.length >= room)
        return complain(r, node, "this text is too long");
    if (text.length > 0 && memchr(text.bytes, 0, text.length)) /* the text would end there */
        return complain(r, node, "this text contains a null character");
    if (text.length > 0)
        memcpy(field, text.bytes, text.length);
    field[text.length] = '\0';
    return true;
}

static bool take(reader *r, const yaml_node_t *node, const key_row *row, void *into) {
    sl_text text;
    char *field = (char *)into + row->offset;
    if (row->kind == NESTED)
        return row->nested(r, node, into);
    if (!scalar(node, &text))
        return complain(r, node, "expected a plain value");
    switch (row->kind) {
    case TEXT:
        return take_text(r, node, text, field, row->room);
    case NUMBER:
        return sl_capacity_number(text.bytes, text.length, (double *)(void *)field) ||
               complain(r, node, "expected a number, like 85000, 85k or 2.5G");
    default:
        for (sl_capacity_origin i = SL_ORIGIN_PUBLISHED; i <= SL_ORIGIN_ASSUMED; i++) {
            if (sl_text_equal(text, sl_text_of(sl_capacity_origin_names[i]))) {
                *(sl_capacity_origin *)(void *)field = i;
                return true;
            }
        }
        return complain(r, node, "expected published, measured, fitted or assumed");
    }
}

/* Does an earlier pair of the mapping have this key? */
static bool repeated(reader *r, const yaml_node_t *node, const yaml_node_pair_t *pair,
                     sl_text name) {
    for (const yaml_node_pair_t *at = node->data.mapping.pairs.start; at < pair; at++) {
        sl_text other;
        if (scalar(yaml_document_get_node(&r->document, at->key), &other) &&
            sl_text_equal(name, other))
            return true;
    }
    return false;
}

/* Calls `one` for each pair of a mapping. */
static bool each(reader *r, const yaml_node_t *node, void *into,
                 bool (*one)(reader *r, const yaml_node_t *key, sl_text name,
                             const yaml_node_t *value, void *into)) {
    if (node->type != YAML_MAPPING_NODE)
        return complain(r, node, "expected a mapping of keys to values");
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&r->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(&r->document, pair->value);
        sl_text name;
        if (!scalar(key, &name))
            return complain(r, key, "expected a key");
        if (repeated(r, node, pair, name))
            return complain(r, key, "this key is given twice in the mapping");
        if (!one(r, key, name, value, into))
            return false;
    }
    return true;
}

/* A mapping that is read by its rows (which end with a NULL name) into a struct. */
typedef struct target {
    const key_row *rows;
    void *into;
} target;

static bool by_row(reader *r, const yaml_node_t *key, sl_text name, const yaml_node_t *value,
                   void *into) {
    const target *to = into;
    const key_row *row = to->rows;
    while (row->name && !sl_text_equal(name, sl_text_of(row->name)))
        row++;
    return row->name ? take(r, value, row, to->into) : complain(r, key, "unknown key");
}

static bool read_rows(reader *r, const yaml_node_t *node, const key_row *rows, void *into) {
    return each(r, node, &(target){rows, into}, by_row);
}

/* ---- inputs and results ---- */

/* The index of a result; result_count if there is none of this name. */
static size_t find_result(const sl_capacity_model *model, sl_text name) {
    size_t i = 0;
    while (i < model->result_count && !sl_text_equal(name, sl_text_of(model->results[i].name)))
        i++;
    return i;
}

static bool take_name(reader *r, const yaml_node_t *key, sl_text name, char *field) {
    for (size_t i = 0; i < name.length; i++) {
        char c = name.bytes[i];
        if (!(c >= 'a' && c <= 'z') && (i == 0 || (c != '-' && !(c >= '0' && c <= '9'))))
            return complain(r, key, "a name consists of lower-case letters, digits and hyphens");
    }
    if (name.length == 0 || find_result(r->model, name) < r->model->result_count ||
        sl_capacity_find(r->model, name.bytes, name.length) < r->model->input_count)
        return complain(r, key, "this name is empty or already exists");
    return take_text(r, key, name, field, SL_CAPACITY_NAME_ROOM);
}

static bool read_input(reader *r, const yaml_node_t *key, sl_text name, const yaml_node_t *node,
                       void *into) {
    static const key_row rows[] = {
        FIELD(sl_capacity_input, "value", NUMBER, value),
        FIELD(sl_capacity_input, "low", NUMBER, low),
        FIELD(sl_capacity_input, "high", NUMBER, high),
        FIELD(sl_capacity_input, "unit", TEXT, unit),
        FIELD(sl_capacity_input, "from", ORIGIN, origin),
        FIELD(sl_capacity_input, "note", TEXT, note),
        {NULL, NESTED, 0, 0, NULL},
    };
    sl_capacity_model *model = r->model;
    sl_capacity_input *input = &model->inputs[model->input_count];
    (void)into;
    if (model->input_count == SL_CAPACITY_INPUTS_MAX)
        return complain(r, key, "too many inputs");
    *input = (sl_capacity_input){.value = NAN, .low = NAN, .high = NAN};
    if (!take_name(r, key, name, input->name) || !read_rows(r, node, rows, input))
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

static bool read_result(reader *r, const yaml_node_t *key, sl_text name, const yaml_node_t *node,
                        void *into) {
    static const key_row rows[] = {
        FIELD(sl_capacity_result, "is", TEXT, formula),
        FIELD(sl_capacity_result, "unit", TEXT, unit),
        FIELD(sl_capacity_result, "published", NUMBER, figure.published),
        FIELD(sl_capacity_result, "fitted", NUMBER, figure.fitted),
        FIELD(sl_capacity_result, "note", TEXT, note),
        {NULL, NESTED, 0, 0, NULL},
    };
    sl_capacity_model *model = r->model;
    sl_capacity_result *result = &model->results[model->result_count];
    (void)into;
    if (model->result_count == SL_CAPACITY_RESULTS_MAX)
        return complain(r, key, "too many results");
    *result = (sl_capacity_result){.figure = {NAN, NAN}};
    if (!take_name(r, key, name, result->name) || !read_rows(r, node, rows, result))
        return false;
    if (!result->formula[0])
        return complain(r, node, "its formula is missing: is");
    model->result_count++;
    return true;
}

static bool read_inputs(reader *r, const yaml_node_t *node, void *into) {
    return each(r, node, into, read_input);
}

static bool read_results(reader *r, const yaml_node_t *node, void *into) {
    return each(r, node, into, read_result);
}

/* ---- points ---- */

static bool read_number(reader *r, const yaml_node_t *node, double *number) {
    return take(r, node, &(key_row){"", NUMBER, 0, 0, NULL}, number);
}

static bool set_one(reader *r, const yaml_node_t *key, sl_text name, const yaml_node_t *node,
                    void *into) {
    size_t input = sl_capacity_find(r->model, name.bytes, name.length);
    sl_capacity_point *point = into;
    if (input == r->model->input_count)
        return complain(r, key, "no input above has this name");
    return read_number(r, node, &point->set[input]);
}

static sl_capacity_figure *figure_of(reader *r, const yaml_node_t *key, sl_text name, void *into) {
    size_t result = find_result(r->model, name);
    if (result == r->model->result_count)
        complain(r, key, "no result above has this name");
    return result == r->model->result_count ? NULL : &((sl_capacity_point *)into)->figures[result];
}

static bool publish_one(reader *r, const yaml_node_t *key, sl_text name, const yaml_node_t *node,
                        void *into) {
    sl_capacity_figure *figure = figure_of(r, key, name, into);
    return figure && read_number(r, node, &figure->published);
}

static bool fit_one(reader *r, const yaml_node_t *key, sl_text name, const yaml_node_t *node,
                    void *into) {
    sl_capacity_figure *figure = figure_of(r, key, name, into);
    return figure && read_number(r, node, &figure->fitted);
}

static bool read_set(reader *r, const yaml_node_t *node, void *into) {
    return each(r, node, into, set_one);
}

static bool read_published(reader *r, const yaml_node_t *node, void *into) {
    return each(r, node, into, publish_one);
}

static bool read_fitted(reader *r, const yaml_node_t *node, void *into) {
    return each(r, node, into, fit_one);
}

static bool read_points(reader *r, const yaml_node_t *node, void *into) {
    static const key_row rows[] = {
        FIELD(sl_capacity_point, "name", TEXT, name),
        {"set", NESTED, 0, 0, read_set},
        {"published", NESTED, 0, 0, read_published},
        {"fitted", NESTED, 0, 0, read_fitted},
        {NULL, NESTED, 0, 0, NULL},
    };
    sl_capacity_model *model = r->model;
    (void)into;
    if (node->type != YAML_SEQUENCE_NODE)
        return complain(r, node, "expected a list");
    for (const yaml_node_item_t *at = node->data.sequence.items.start;
         at < node->data.sequence.items.top; at++) {
        const yaml_node_t *item = yaml_document_get_node(&r->document, *at);
        sl_capacity_point *point = &model->points[model->point_count];
        if (model->point_count == SL_CAPACITY_POINTS_MAX)
            return complain(r, item, "too many points");
        *point = (sl_capacity_point){.name = ""};
        for (size_t i = 0; i < SL_CAPACITY_INPUTS_MAX; i++)
            point->set[i] = NAN;
        for (size_t i = 0; i < SL_CAPACITY_RESULTS_MAX; i++)
            point->figures[i] = (sl_capacity_figure){NAN, NAN};
        if (!read_rows(r, item, rows, point))
            return false;
        model->point_count++;
    }
    return true;
}

/* ---- the model ---- */

/* Computes the model and its points once. A published figure of a result that depends on a fitted
 * input would look like a prediction. Only points may have such figures, because an input fitted to
 * one point does predict the other points. */
static bool check(const reader *r) {
    sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
    sl_capacity_model *model = r->model;
    model->answer = find_result(model, sl_text_of(model->answer_name));
    if (model->answer == model->result_count)
        return sl_error_set(r->error, SL_EXIT_USAGE, "%s: \"answer\" must name one of the results",
                            r->name);
    for (size_t i = 0; i < model->point_count; i++) {
        if (!sl_capacity_compute(model, model->points[i].set, values, r->error))
            return sl_error_prefix(r->error, "%s", r->name);
    }
    if (!sl_capacity_compute(model, NULL, values, r->error))
        return sl_error_prefix(r->error, "%s", r->name);
    for (size_t i = 0; i < model->result_count; i++) {
        if (values[i].fitted && !isnan(model->results[i].figure.published))
            return sl_error_set(r->error, SL_EXIT_USAGE,
                                "%s: %s depends on a fitted input, so it is not a prediction: give "
                                "its figure as \"fitted\" instead of \"published\"",
                                r->name, model->results[i].name);
    }
    return true;
}

bool sl_capacity_parse(const char *text, size_t length, const char *name, sl_capacity_model *model,
                       sl_error *error) {
    static const key_row rows[] = {
        FIELD(sl_capacity_model, "title", TEXT, title),
        FIELD(sl_capacity_model, "about", TEXT, about),
        FIELD(sl_capacity_model, "answer", TEXT, answer_name),
        {"inputs", NESTED, 0, 0, read_inputs},
        {"results", NESTED, 0, 0, read_results},
        {"points", NESTED, 0, 0, read_points},
        {NULL, NESTED, 0, 0, NULL},
    };
    reader r = {.name = name, .model = model, .error = error};
    *model = (sl_capacity_model){.name = ""};
    sl_text_printable((sl_text){name, strcspn(name, ".")}, model->name, sizeof model->name);
    if (!sl_yaml_read_document((sl_text){text, length}, name, &r.document, error))
        return false;
    const yaml_node_t *root = yaml_document_get_root_node(&r.document);
    bool ok = root ? read_rows(&r, root, rows, model) && check(&r)
                   : sl_error_set(error, SL_EXIT_USAGE, "%s: the file is empty", name);
    yaml_document_delete(&r.document);
    return ok;
}

/* ---- built-in models and files ---- */

static bool read_file(const char *path, sl_capacity_model *model, sl_error *error) {
    char shown[300], known[400] = "";
    size_t used = 0;
    FILE *file = fopen(path, "r");
    sl_text_printable(sl_text_of(path), shown, sizeof shown);
    for (const sl_embedded *one = sl_embedded_models; one->name && used < sizeof known; one++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%.*s", used ? ", " : "",
                                 (int)strcspn(one->name, "."), one->name);
    if (!file)
        return sl_error_set(error, sl_exit_of_errno(errno, SL_EXIT_USAGE),
                            "%s is not a built-in model (%s), and cannot be opened as a file: %s",
                            shown, known, strerror(errno));
    char *text = malloc(MODEL_BYTES_MAX + 1);
    size_t length = text ? fread(text, 1, MODEL_BYTES_MAX + 1, file) : 0;
    bool ok = text != NULL || sl_error_memory(error, "reading a model");
    if (ok && (ferror(file) || length > MODEL_BYTES_MAX))
        ok = sl_error_set(error, SL_EXIT_USAGE, "%s: %s", shown,
                          ferror(file) ? "cannot be read" : "larger than 1 MiB: not a model");
    const char *name = strrchr(shown, '/');
    ok = ok && sl_capacity_parse(text, length, name ? name + 1 : shown, model, error);
    free(text);
    fclose(file);
    return ok;
}

bool sl_capacity_open(const char *name, sl_capacity_model *model, sl_error *error) {
    for (const sl_embedded *one = sl_embedded_models; one->name; one++) {
        size_t length = strcspn(one->name, ".");
        if (strlen(name) == length && memcmp(one->name, name, length) == 0)
            return sl_capacity_parse(one->text, one->length, one->name, model, error);
    }
    return read_file(name, model, error);
}
