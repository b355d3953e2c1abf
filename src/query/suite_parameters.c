/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the parameters of a query:
 *
 *   parameters:
 *     a: {range: [1, 1000]}
 *     b: {list: '["GB", "FR"]'}
 *     c: {zipf: {from: 1, count: 100000, skew: 0.99}}
 *     d: {sequence: {from: 0, step: 1}}
 *     e: {sample: {field: position.lat, count: 1000}} */
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define SKEW_DEFAULT 0.99
#define SAMPLE_DEFAULT 1000
#define SAMPLE_MAX 100000
#define COUNT_MAX (INT64_C(1) << 52) /* doubles represent every integer up to here */

static bool read_first(sl_yaml *r, const yaml_node_t *node, void *field) {
    return sl_suite_number(r, node, INT64_MIN, INT64_MAX, &((sl_parameter *)field)->first);
}

static bool read_step(sl_yaml *r, const yaml_node_t *node, void *field) {
    return sl_suite_number(r, node, INT64_MIN, INT64_MAX, &((sl_parameter *)field)->step);
}

static bool read_count_up_to(sl_yaml *r, const yaml_node_t *node, sl_parameter *parameter,
                             int64_t maximum) {
    int64_t count;
    if (!sl_suite_number(r, node, 1, maximum, &count))
        return false;
    parameter->count = (uint64_t)count;
    return true;
}

static bool read_count(sl_yaml *r, const yaml_node_t *node, void *field) {
    return read_count_up_to(r, node, field, COUNT_MAX);
}

static bool read_sample_count(sl_yaml *r, const yaml_node_t *node, void *field) {
    return read_count_up_to(r, node, field, SAMPLE_MAX);
}

static bool read_skew(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_parameter *parameter = field;
    return sl_suite_double(r, node, &parameter->skew) &&
           ((parameter->skew > 0 && parameter->skew <= 20) ||
            sl_yaml_fail(r, node->start_mark, "expected a skew above 0 and up to 20"));
}

/* Sets the kind of drawing. False when the parameter already has one: each kind sets a count. */
static bool set_draw(sl_yaml *r, const yaml_node_t *node, sl_parameter *parameter, sl_draw draw) {
    parameter->draw = draw;
    return parameter->count == 0 ||
           sl_yaml_fail(r, node->start_mark,
                        "expected one of range, list, zipf, sequence and sample, found two");
}

/* Reads a kind of drawing that is a mapping. `count` is the default. */
static bool read_mapping(sl_yaml *r, const yaml_node_t *node, sl_parameter *parameter, sl_draw draw,
                         uint64_t count, const sl_yaml_key *keys) {
    if (!set_draw(r, node, parameter, draw))
        return false;
    parameter->count = count;
    return sl_yaml_mapping(r, node, keys, parameter);
}

static bool read_range(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_parameter *p = field;
    if (!set_draw(r, node, p, SL_DRAW_RANGE))
        return false;
    if (node->type != YAML_SEQUENCE_NODE || sl_yaml_length(node) != 2)
        return sl_yaml_fail(r, node->start_mark, "expected [lowest, highest]");
    const yaml_node_t *low = sl_yaml_item(r, node, 0), *high = sl_yaml_item(r, node, 1);
    if (!sl_suite_double(r, low, &p->low) || !sl_suite_double(r, high, &p->high))
        return false;
    sl_error ignored = {0}, *error = r->error;
    r->error = &ignored; /* a bound with a fraction is not an error: the range is of doubles */
    p->integers = sl_suite_number(r, low, INT64_MIN, INT64_MAX, &p->first) &&
                  sl_suite_number(r, high, INT64_MIN, INT64_MAX, &p->last);
    r->error = error;
    p->count = 1;
    return (p->integers ? p->first <= p->last : p->low <= p->high) ||
           sl_yaml_fail(r, node->start_mark, "the lowest number is above the highest");
}

static bool read_list(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_parameter *p = field;
    if (!set_draw(r, node, p, SL_DRAW_LIST) || !sl_suite_json(r, node, "list", true, &p->values))
        return false;
    p->count = bson_count_keys(p->values);
    return p->count > 0 || sl_yaml_fail(r, node->start_mark, "the list is empty");
}

static bool read_zipf(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"count", read_count, 0, true},
        {"from", read_first, 0, false},
        {"skew", read_skew, 0, false},
        {0},
    };
    return read_mapping(r, node, field, SL_DRAW_ZIPF, 0, keys);
}

static bool read_sequence(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"from", read_first, 0, false},
        {"step", read_step, 0, false},
        {0},
    };
    return read_mapping(r, node, field, SL_DRAW_SEQUENCE, 1, keys);
}

static bool read_sample(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"field", sl_suite_name, offsetof(sl_parameter, field), true},
        {"count", read_sample_count, 0, false},
        {0},
    };
    return read_mapping(r, node, field, SL_DRAW_SAMPLE, SAMPLE_DEFAULT, keys);
}

static bool read_parameter(sl_yaml *r, const yaml_node_t *node, sl_parameter *parameter) {
    static const sl_yaml_key keys[] = {
        {"range", read_range, 0, false},   {"list", read_list, 0, false},
        {"zipf", read_zipf, 0, false},     {"sequence", read_sequence, 0, false},
        {"sample", read_sample, 0, false}, {0},
    };
    parameter->skew = SKEW_DEFAULT;
    parameter->step = 1;
    return sl_yaml_mapping(r, node, keys, parameter) &&
           (parameter->count > 0 ||
            sl_yaml_fail(r, node->start_mark,
                         "expected one of range, list, zipf, sequence and sample"));
}

static bool take_parameter(sl_yaml *r, const yaml_node_t *name, const yaml_node_t *value,
                           void *into /* sl_query * */) {
    sl_query *query = into;
    sl_parameter *parameter = &query->parameters[query->parameter_count++];
    if (!sl_suite_name(r, name, &parameter->name))
        return false;
    if (strcmp(parameter->name, SL_LIMIT_PARAMETER) == 0)
        return sl_yaml_fail(r, name->start_mark,
                            "the parameter \"%s\" is set by --limit and cannot be declared",
                            parameter->name);
    return read_parameter(r, value, parameter);
}

bool sl_suite_parameters(sl_yaml *r, const yaml_node_t *node, sl_query *query) {
    size_t pairs = sl_yaml_length(node);
    if (node->type == YAML_MAPPING_NODE && pairs > SL_PARAMETERS_MAX)
        return sl_yaml_fail(r, node->start_mark, "a query has at most %d parameters",
                            SL_PARAMETERS_MAX);
    query->parameters = calloc(pairs + 1, sizeof *query->parameters);
    if (!query->parameters)
        return sl_error_memory(r->error, "reading a query suite");
    return sl_yaml_each(r, node, "a mapping of names", take_parameter, query);
}

void sl_parameter_clear(sl_parameter *parameter) {
    free(parameter->name);
    free(parameter->field);
    bson_destroy(parameter->values);
}
