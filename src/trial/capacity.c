/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a capacity model, computes its results, and appends them to a record. The file follows this
 * order: the law, changed inputs, the record, the YAML. */
#include "capacity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/run_record.h"
#include "util/embedded.h"
#include "util/read_file.h"
#include "util/text.h"
#include "util/yaml_reader.h"

#define MODEL_BYTES_MAX ((size_t)1 << 20)

const char *const sl_capacity_origin_names[SL_ORIGINS] = {"",       "published", "measured",
                                                          "fitted", "assumed",   "given"};

size_t sl_capacity_find(const sl_capacity_model *model, const char *name, size_t length) {
    size_t i = 0;
    while (i < model->input_count && (strlen(model->inputs[i].name) != length ||
                                      memcmp(model->inputs[i].name, name, length) != 0))
        i++;
    return i;
}

bool sl_capacity_number(const char *text, size_t length, double *number) {
    static const char suffixes[] = "kMGTP";
    char copy[40], *end;
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if (strspn(copy, "0123456789.eE+-kMGTP") != length)
        return false;
    *number = strtod(copy, &end);
    const char *suffix = *end && end != copy ? strchr(suffixes, *end) : NULL;
    for (int i = 0; suffix && i <= suffix - suffixes; i++)
        *number *= 1000;
    end += suffix != NULL;
    return end != copy && !*end && isfinite(*number);
}

/* ---- the law ---- */

typedef struct computing {
    const sl_capacity_model *model;
    const double *set;
    const sl_capacity_value *values; /* of the results before */
    sl_error *error;
} computing;

static bool complain_of(const computing *at, const char *problem) {
    return sl_error_set(at->error, SL_EXIT_USAGE, "%s", problem);
}

static sl_capacity_value value_of(const computing *at, const sl_capacity_term *term) {
    if (term->kind == SL_TERM_RESULT)
        return at->values[term->index];
    if (term->kind == SL_TERM_NUMBER)
        return (sl_capacity_value){.number = sl_estimate_exactly(term->number)};
    const sl_capacity_input *input = &at->model->inputs[term->index];
    bool other = at->set && !isnan(at->set[term->index]);
    return (sl_capacity_value){.number = other
                                             ? sl_estimate_exactly(at->set[term->index])
                                             : (sl_estimate){input->value, input->low, input->high},
                               .fitted = input->origin == SL_ORIGIN_FITTED};
}

static const char *name_of(const sl_capacity_model *model, const sl_capacity_term *term) {
    return term->kind == SL_TERM_INPUT ? model->inputs[term->index].name
                                       : model->results[term->index].name;
}

/* Takes the numbers of the terms, and marks the value as fitted if one of them is. */
static void take_terms(const computing *at, const sl_capacity_terms *terms,
                       sl_estimate of[SL_CAPACITY_TERMS_MAX], sl_capacity_value *value) {
    for (size_t i = 0; i < terms->count; i++) {
        sl_capacity_value one = value_of(at, &terms->of[i]);
        of[i] = one.number;
        value->fitted = value->fitted || one.fitted;
    }
}

/* No factor is negative, so the bounds of the product are the products of the bounds. */
static sl_estimate product(sl_estimate a, sl_estimate b) {
    return (sl_estimate){a.value * b.value, a.low * b.low, a.high * b.high};
}

/* The terms, joined one after the other, beginning with `made`. */
static sl_estimate joined(const computing *at, const sl_capacity_terms *terms,
                          sl_capacity_value *value, sl_estimate made,
                          sl_estimate (*join)(sl_estimate, sl_estimate)) {
    sl_estimate of[SL_CAPACITY_TERMS_MAX];
    take_terms(at, terms, of, value);
    for (size_t i = 0; i < terms->count; i++)
        made = join(made, of[i]);
    return made;
}

static sl_estimate product_of(const computing *at, const sl_capacity_terms *terms,
                              sl_capacity_value *value) {
    return joined(at, terms, value, sl_estimate_exactly(1), product);
}

/* The largest of the terms; `decided` becomes its name. */
static sl_estimate slowest_of(const computing *at, const sl_capacity_terms *terms,
                              sl_capacity_value *value) {
    sl_estimate of[SL_CAPACITY_TERMS_MAX], made = sl_estimate_exactly(0);
    size_t decides = 0;
    take_terms(at, terms, of, value);
    for (size_t i = 0; i < terms->count; i++) {
        decides = of[i].value > of[decides].value ? i : decides;
        made = (sl_estimate){fmax(made.value, of[i].value), fmax(made.low, of[i].low),
                             fmax(made.high, of[i].high)};
    }
    if (terms->count > 0)
        value->decided = name_of(at->model, &terms->of[decides]);
    return made;
}

/* Extends the range of `into` so that it contains x. */
static void include(sl_estimate *into, double x) {
    into->low = fmin(into->low, x);
    into->high = fmax(into->high, x);
}

double sl_capacity_speed(double n, double contention, double coherency) {
    return n / (1 + contention * (n - 1) + coherency * n * (n - 1));
}

/* The speed of n units. The law decreases with both of its parameters. With a coherency above 0, it
 * has one maximum in n. */
static bool units_of(const computing *at, const sl_capacity_terms *terms, sl_capacity_value *value,
                     sl_estimate *made) {
    sl_estimate of[SL_CAPACITY_TERMS_MAX] = {sl_estimate_exactly(1)};
    take_terms(at, terms, of, value);
    if (of[0].low < 1 || of[1].high > 1 || of[2].high > 1)
        return complain_of(at, "units need a number of at least 1, and parameters of 0 to 1");
    *made = sl_estimate_exactly(sl_capacity_speed(of[0].value, of[1].value, of[2].value));
    include(made, sl_capacity_speed(of[0].low, of[1].low, of[2].low));
    include(made, sl_capacity_speed(of[0].low, of[1].high, of[2].high));
    include(made, sl_capacity_speed(of[0].high, of[1].low, of[2].low));
    include(made, sl_capacity_speed(of[0].high, of[1].high, of[2].high));
    double best = of[2].low > 0 ? sqrt((1 - of[1].low) / of[2].low) : INFINITY;
    if (best > of[0].low && best < of[0].high)
        include(made, sl_capacity_speed(best, of[1].low, of[2].low));
    return true;
}

/* The work for n copies. */
static bool copies_of(const computing *at, const sl_capacity_terms *terms, sl_capacity_value *value,
                      sl_estimate *made) {
    sl_estimate of[SL_CAPACITY_TERMS_MAX] = {sl_estimate_exactly(1)};
    take_terms(at, terms, of, value);
    if (of[0].low < 1)
        return complain_of(at, "copies need a number of at least 1");
    *made = (sl_estimate){1 + (of[0].value - 1) * of[1].value, 1 + (of[0].low - 1) * of[1].low,
                          1 + (of[0].high - 1) * of[1].high};
    return true;
}

static bool quotient_of(const computing *at, const sl_capacity_result *result,
                        sl_capacity_value *value, sl_estimate *made) {
    sl_estimate copies = sl_estimate_exactly(1), units = copies;
    *made = sl_estimate_exactly(0);
    if (result->work.count == 0)
        return true;
    if (!copies_of(at, &result->copies, value, &copies) ||
        !units_of(at, &result->units, value, &units))
        return false;
    sl_estimate work = product(product_of(at, &result->work, value), copies);
    sl_estimate rate = product(product_of(at, &result->rate, value), units);
    if (!(rate.low > 0))
        return complain_of(at, "division by a value whose range contains 0");
    *made = product(work, (sl_estimate){1 / rate.value, 1 / rate.high, 1 / rate.low});
    return true;
}

static bool compute(const computing *at, const sl_capacity_result *result,
                    sl_capacity_value *value) {
    sl_estimate quotient;
    *value = (sl_capacity_value){.decided = ""};
    if (!quotient_of(at, result, value, &quotient))
        return false;
    value->number = sl_estimate_sum(
        sl_estimate_sum(joined(at, &result->sum, value, sl_estimate_exactly(0), sl_estimate_sum),
                        slowest_of(at, &result->slowest, value)),
        quotient);
    /* Rounding may move a bound beyond the value in the last digit. */
    include(&value->number, value->number.value);
    return (isfinite(value->number.low) && isfinite(value->number.high)) ||
           complain_of(at, "a value is too large");
}

bool sl_capacity_compute(const sl_capacity_model *model, const double *set,
                         sl_capacity_value values[SL_CAPACITY_RESULTS_MAX], sl_error *error) {
    computing at = {model, set, values, error};
    for (size_t i = 0; i < model->result_count; i++) {
        sl_capacity_value value;
        if (!compute(&at, &model->results[i], &value))
            return sl_error_prefix(error, "the result %s", model->results[i].name);
        values[i] = value;
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
    if (low < 0)
        return sl_error_set(error, SL_EXIT_USAGE, "%s: %g is below 0", model->inputs[input].name,
                            low);
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

/* The law of a result as text, for people. */
typedef struct law_text {
    char text[2000]; /* cut, if it is longer */
    size_t length;
} law_text;

static void add_text(law_text *to, const char *text) {
    to->length += (size_t)snprintf(to->text + to->length, sizeof to->text - to->length, "%s", text);
    to->length = to->length < sizeof to->text ? to->length : sizeof to->text - 1;
}

/* Adds `before` and the terms, with `between` after each but the last; nothing without terms. */
static void add_terms(law_text *to, const sl_capacity_model *model, const sl_capacity_terms *terms,
                      const char *before, const char *between, const char *after) {
    for (size_t i = 0; i < terms->count; i++) {
        char number[32];
        snprintf(number, sizeof number, "%g", terms->of[i].number);
        add_text(to, i == 0 ? before : between);
        add_text(to, terms->of[i].kind == SL_TERM_NUMBER ? number : name_of(model, &terms->of[i]));
    }
    if (terms->count > 0)
        add_text(to, after);
}

static void make_formula(const sl_capacity_model *model, const sl_capacity_result *result,
                         law_text *to) {
    bool divided = result->rate.count + result->units.count > 0;
    bool one = result->rate.count + (result->units.count > 0) == 1;
    *to = (law_text){.length = 0};
    add_terms(to, model, &result->sum, "", " + ", "");
    add_terms(to, model, &result->slowest, to->length ? " + max(" : "max(", ", ", ")");
    add_terms(to, model, &result->work, to->length ? " + " : "", " * ", "");
    add_terms(to, model, &result->copies, " * copies(", ", ", ")");
    add_text(to, !divided ? "" : one ? " / " : " / (");
    add_terms(to, model, &result->rate, "", " * ", "");
    add_terms(to, model, &result->units, result->rate.count ? " * units(" : "units(", ", ", ")");
    add_text(to, divided && !one ? ")" : "");
}

static void append_results(bson_t *document, const sl_capacity_model *model,
                           const sl_capacity_value *values) {
    bson_t list, item;
    law_text formula;
    BSON_APPEND_ARRAY_BEGIN(document, "results", &list);
    for (size_t i = 0; i < model->result_count; i++) {
        const sl_capacity_result *result = &model->results[i];
        sl_record_begin_item(&list, i, &item);
        BSON_APPEND_UTF8(&item, "name", result->name);
        make_formula(model, result, &formula);
        BSON_APPEND_UTF8(&item, "formula", formula.text);
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

/* ---- the YAML: values ---- */

static bool complain(sl_yaml *r, const yaml_node_t *node, const char *problem) {
    return sl_yaml_fail(r, node->start_mark, "%s", problem);
}

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
TEXT(read_result_note, sl_capacity_result, note)
TEXT(read_point_name, sl_capacity_point, name)

static bool read_number(sl_yaml *r, const yaml_node_t *node, void *field /* double * */) {
    sl_text text = sl_yaml_text(node);
    return sl_capacity_number(text.bytes, text.length, field) ||
           sl_yaml_expected(r, node, "a number, like 85000, 85k or 2.5G");
}

/* Reads a number that is not negative: the law has no others. */
static bool read_amount(sl_yaml *r, const yaml_node_t *node, void *field /* double * */) {
    return read_number(r, node, field) &&
           (*(double *)field >= 0 || complain(r, node, "a number below 0 has no meaning here"));
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
        {"value", read_amount, offsetof(sl_capacity_input, value), false},
        {"low", read_amount, offsetof(sl_capacity_input, low), false},
        {"high", read_amount, offsetof(sl_capacity_input, high), false},
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

/* A result that is read, and the model of which it uses inputs and results. */
typedef struct new_result {
    sl_capacity_result result;
    const sl_capacity_model *model;
} new_result;

static bool read_term(sl_yaml *r, const yaml_node_t *node, const sl_capacity_model *model,
                      sl_capacity_term *term) {
    sl_text text = sl_yaml_text(node);
    if (sl_capacity_number(text.bytes, text.length, &term->number))
        return read_amount(r, node, &term->number);
    term->kind = SL_TERM_INPUT;
    term->index = sl_capacity_find(model, text.bytes, text.length);
    if (term->index < model->input_count)
        return true;
    term->kind = SL_TERM_RESULT;
    term->index = find_result(model, text);
    return term->index < model->result_count ||
           sl_yaml_expected(r, node, "a number, or the name of an input or a result above");
}

static bool read_terms(sl_yaml *r, const yaml_node_t *node, const sl_capacity_model *model,
                       size_t most, sl_capacity_terms *terms) {
    const yaml_node_t *item;
    if (node->type != YAML_SEQUENCE_NODE || sl_yaml_length(node) == 0)
        return sl_yaml_expected(r, node, "a list of names");
    for (size_t i = 0; (item = sl_yaml_item(r, node, i)); i++) {
        if (terms->count == most)
            return complain(r, item, "too many terms");
        if (!read_term(r, item, model, &terms->of[terms->count++]))
            return false;
    }
    return true;
}

/* Defines the reader of a list of at most `most` terms. */
#define TERMS(list, most)                                                                          \
    static bool read_##list(sl_yaml *r, const yaml_node_t *node, void *into) {                     \
        new_result *new = into;                                                                    \
        return read_terms(r, node, new->model, most, &new->result.list);                           \
    }
TERMS(sum, SL_CAPACITY_TERMS_MAX)
TERMS(slowest, SL_CAPACITY_TERMS_MAX)
TERMS(work, SL_CAPACITY_TERMS_MAX)
TERMS(copies, 2)
TERMS(rate, SL_CAPACITY_TERMS_MAX)
TERMS(units, 3)

/* A number has no name that could be shown as the one that decides. */
static bool check_result(sl_yaml *r, const yaml_node_t *node, const sl_capacity_result *result) {
    if (result->sum.count + result->slowest.count + result->work.count == 0)
        return complain(r, node, "nothing to compute: it has neither sum, slowest nor work");
    if (result->work.count == 0 &&
        result->copies.count + result->rate.count + result->units.count > 0)
        return complain(r, node, "copies, rate and units need work");
    for (size_t i = 0; i < result->slowest.count; i++) {
        if (result->slowest.of[i].kind == SL_TERM_NUMBER)
            return complain(r, node, "slowest consists of names");
    }
    return true;
}

static bool read_result(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *node, void *into) {
    static const sl_yaml_key keys[] = {
        {"sum", read_sum, 0, false},
        {"slowest", read_slowest, 0, false},
        {"work", read_work, 0, false},
        {"copies", read_copies, 0, false},
        {"rate", read_rate, 0, false},
        {"units", read_units, 0, false},
        {"unit", read_unit, offsetof(new_result, result.unit), false},
        {"published", read_number, offsetof(new_result, result.figure.published), false},
        {"fitted", read_number, offsetof(new_result, result.figure.fitted), false},
        {"note", read_result_note, offsetof(new_result, result.note), false},
        {0},
    };
    sl_capacity_model *model = into;
    new_result new = {.result = {.figure = {NAN, NAN}}, .model = model};
    if (model->result_count == SL_CAPACITY_RESULTS_MAX)
        return complain(r, key, "too many results");
    if (!take_name(r, key, model, new.result.name) || !sl_yaml_mapping(r, node, keys, &new) ||
        !check_result(r, node, &new.result))
        return false;
    model->results[model->result_count++] = new.result;
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
    return read_amount(r, node, &new->point.set[input]);
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
    bool ok = sl_capacity_parse(text.bytes, text.length, sl_base_name(shown), model, error);
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
