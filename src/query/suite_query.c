/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one query of a suite. The table `fields` lists the keys of each operation. */
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#include "report/json.h"

static const char *const operation_names[SL_OPERATIONS] = {
    "aggregate", "find", "findOne", "count", "distinct", "mapReduce", "update", "insert"};

const char *sl_operation_name(sl_operation operation) {
    return operation_names[operation];
}

/* ---- keys of operations ---- */

#define OF(operation) (1u << (operation))
#define FINDS (OF(SL_FIND) | OF(SL_FIND_ONE))

static const struct {
    const char *key;
    unsigned takes, needs; /* sets of operations that may have the key, that must have it */
} fields[] = {
    {"pipeline", OF(SL_AGGREGATE), OF(SL_AGGREGATE)},
    {"filter", FINDS | OF(SL_COUNT) | OF(SL_DISTINCT) | OF(SL_MAP_REDUCE) | OF(SL_UPDATE), 0},
    {"projection", FINDS, 0},
    {"sort", FINDS | OF(SL_MAP_REDUCE), 0},
    {"skip", FINDS | OF(SL_COUNT), 0},
    {"limit", OF(SL_FIND) | OF(SL_COUNT) | OF(SL_MAP_REDUCE), 0},
    {"key", OF(SL_DISTINCT), OF(SL_DISTINCT)},
    {"map", OF(SL_MAP_REDUCE), OF(SL_MAP_REDUCE)},
    {"reduce", OF(SL_MAP_REDUCE), OF(SL_MAP_REDUCE)},
    {"finalize", OF(SL_MAP_REDUCE), 0},
    {"scope", OF(SL_MAP_REDUCE), 0},
    {"jsMode", OF(SL_MAP_REDUCE), 0},
    {"update", OF(SL_UPDATE), OF(SL_UPDATE)},
    {"upsert", OF(SL_UPDATE), 0},
    {"multi", OF(SL_UPDATE), 0},
    {"document", OF(SL_INSERT), OF(SL_INSERT)},
    {"statistic", OF(SL_FIND), 0},
};

static bool has_key(const sl_query *query, const char *key) {
    if (strcmp(key, "pipeline") == 0)
        return query->pipeline != NULL;
    if (strcmp(key, "statistic") == 0)
        return query->statistic_field != NULL;
    return bson_has_field(query->body, key);
}

static bool check_keys(sl_yaml *r, const yaml_node_t *node, const sl_query *query) {
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        bool present = has_key(query, fields[i].key);
        const char *name = operation_names[query->operation];
        if (present && !(fields[i].takes & OF(query->operation)))
            return sl_yaml_fail(r, node->start_mark, "the operation %s takes no key \"%s\"", name,
                                fields[i].key);
        if (!present && fields[i].needs & OF(query->operation))
            return sl_yaml_fail(r, node->start_mark, "the operation %s needs the key \"%s\"", name,
                                fields[i].key);
    }
    return true;
}

static bool read_operation(sl_yaml *r, const yaml_node_t *node, void *field) {
    size_t index;
    bool ok = sl_yaml_choice(r, node, operation_names, SL_OPERATIONS,
                             "aggregate, find, findOne, count, distinct, mapReduce, update or "
                             "insert",
                             &index);
    ((sl_query *)field)->operation = (sl_operation)index;
    return ok;
}

/* The functions put_* append a value to `into` under `key`. */

static bool put_document(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    bson_t *document = NULL;
    bool ok = sl_suite_json(r, node, key, false, &document) &&
              sl_suite_append(r, BSON_APPEND_DOCUMENT(into, key, document));
    bson_destroy(document);
    return ok;
}

static bool put_integer(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key,
                        int64_t minimum, int64_t maximum) {
    int64_t number;
    return sl_suite_number(r, node, minimum, maximum, &number) &&
           sl_suite_append(r, BSON_APPEND_INT64(into, key, number));
}

/* An integer, or {"$parameter": name} as text. */
static bool put_number(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    if (node->type == YAML_SCALAR_NODE && node->data.scalar.value[0] == '{')
        return put_document(r, node, into, key);
    return put_integer(r, node, into, key, 0, INT64_MAX);
}

static bool put_positive(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    return put_integer(r, node, into, key, 1, INT32_MAX);
}

/* A string as `read` accepts it, stored as JavaScript if `is_code`. */
static bool put_string(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key,
                       bool (*read)(sl_yaml *, const yaml_node_t *, void *), bool is_code) {
    char *text = NULL;
    bool ok =
        read(r, node, &text) && sl_suite_append(r, is_code ? BSON_APPEND_CODE(into, key, text)
                                                           : BSON_APPEND_UTF8(into, key, text));
    free(text);
    return ok;
}

static bool put_code(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    return put_string(r, node, into, key, sl_suite_text, true);
}

static bool put_text(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    return put_string(r, node, into, key, sl_suite_text, false);
}

static bool put_name(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    return put_string(r, node, into, key, sl_suite_name, false);
}

static bool put_flag(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    bool flag;
    return sl_suite_flag(r, node, &flag) && sl_suite_append(r, BSON_APPEND_BOOL(into, key, flag));
}

/* The name of an index, or its key pattern in JSON. */
static bool put_hint(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    bool pattern = node->type == YAML_SCALAR_NODE && node->data.scalar.value[0] == '{';
    return (pattern ? put_document : put_name)(r, node, into, key);
}

/* Defines the reader of a key whose value goes into the query's body or options under the same
 * name. */
#define READER(part, key, put)                                                                     \
    static bool read_##key(sl_yaml *r, const yaml_node_t *node, void *field) {                     \
        return put(r, node, ((sl_query *)field)->part, #key);                                      \
    }
READER(body, filter, put_document)
READER(body, projection, put_document)
READER(body, sort, put_document)
READER(body, scope, put_document)
READER(body, document, put_document)
READER(body, skip, put_number)
READER(body, limit, put_number)
READER(body, key, put_name)
READER(body, map, put_code)
READER(body, reduce, put_code)
READER(body, finalize, put_code)
READER(body, jsMode, put_flag)
READER(body, upsert, put_flag)
READER(body, multi, put_flag)
READER(options, allowDiskUse, put_flag)
READER(options, batchSize, put_positive)
READER(options, comment, put_text)
READER(options, hint, put_hint)
READER(options, maxTimeMS, put_positive)

/* The value is a document of operators ({"$set": ...}) or an array of stages. */
static bool read_update(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_query *query = field;
    bson_t *stages = NULL;
    bool pipeline = node->type == YAML_SCALAR_NODE && node->data.scalar.value[0] == '[';
    if (!pipeline)
        return put_document(r, node, query->body, "update");
    bool ok = sl_suite_documents(r, node, "update", &stages) &&
              sl_suite_append(r, BSON_APPEND_ARRAY(query->body, "update", stages));
    bson_destroy(stages);
    return ok;
}

static bool read_pipeline(sl_yaml *r, const yaml_node_t *node, void *field) {
    bson_t **pipeline = field;
    if (!sl_suite_documents(r, node, "pipeline", pipeline))
        return false;
    bson_iter_t stage;
    bson_iter_init(&stage, *pipeline);
    for (unsigned i = 1; bson_iter_next(&stage); i++) {
        bson_iter_t name;
        if (!bson_iter_recurse(&stage, &name) || !bson_iter_next(&name) ||
            bson_iter_key(&name)[0] != '$')
            return sl_yaml_fail(r, node->start_mark, "stage %u: expected {\"$stage\": ...}", i);
        if (strcmp(bson_iter_key(&name), "$out") == 0 ||
            strcmp(bson_iter_key(&name), "$merge") == 0)
            return sl_yaml_fail(r, node->start_mark, "stage %u: %s writes; a query only reads", i,
                                bson_iter_key(&name));
        if (bson_iter_next(&name))
            return sl_yaml_fail(r, node->start_mark, "stage %u has a second key, \"%s\"", i,
                                bson_iter_key(&name));
    }
    return true;
}

static bool read_expected(sl_yaml *r, const yaml_node_t *node, void *field) {
    return sl_suite_documents(r, node, "expect", field);
}

/* ---- statistics that the client computes ---- */

static bool read_by(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const char *const words[] = {"accumulate", "list"};
    size_t index;
    bool ok = sl_yaml_choice(r, node, words, 2, "accumulate or list", &index);
    ((sl_query *)field)->statistic = index == 0 ? SL_STATISTIC_ACCUMULATE : SL_STATISTIC_LIST;
    return ok;
}

static bool read_threads(sl_yaml *r, const yaml_node_t *node, void *field) {
    int64_t number;
    if (!sl_suite_number(r, node, 1, SL_STATISTIC_THREADS_MAX, &number))
        return false;
    ((sl_query *)field)->threads = (unsigned)number;
    return true;
}

static bool read_statistic(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"field", sl_suite_name, offsetof(sl_query, statistic_field), true},
        {"by", read_by, 0, false},
        {"threads", read_threads, 0, false},
        {0},
    };
    ((sl_query *)field)->statistic = SL_STATISTIC_ACCUMULATE;
    return sl_yaml_mapping(r, node, keys, field);
}

/* ---- options of a query ---- */

static bool read_read_concern(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const char *const levels[] = {"local", "available", "majority", "linearizable",
                                         "snapshot"};
    size_t index;
    char *level = NULL;
    bson_t concern;
    bool ok =
        sl_yaml_choice(r, node, levels, sizeof levels / sizeof levels[0],
                       "local, available, majority, linearizable or snapshot", &index) &&
        sl_suite_text(r, node, &level) &&
        sl_suite_append(
            r, BSON_APPEND_DOCUMENT_BEGIN(((sl_query *)field)->options, "readConcern", &concern) &&
                   BSON_APPEND_UTF8(&concern, "level", level) &&
                   bson_append_document_end(((sl_query *)field)->options, &concern));
    free(level);
    return ok;
}

static bool read_read_preference(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const char *const modes[] = {"primary", "primaryPreferred", "secondary",
                                        "secondaryPreferred", "nearest"};
    size_t index;
    return sl_yaml_choice(r, node, modes, sizeof modes / sizeof modes[0],
                          "primary, primaryPreferred, secondary, secondaryPreferred or nearest",
                          &index) &&
           sl_suite_text(r, node, &((sl_query *)field)->read_preference);
}

static bool read_options(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"allowDiskUse", read_allowDiskUse, 0, false},
        {"batchSize", read_batchSize, 0, false},
        {"comment", read_comment, 0, false},
        {"hint", read_hint, 0, false},
        {"maxTimeMS", read_maxTimeMS, 0, false},
        {"readConcern", read_read_concern, 0, false},
        {"readPreference", read_read_preference, 0, false},
        {0},
    };
    return sl_yaml_mapping(r, node, keys, field);
}

static bool read_parameters(sl_yaml *r, const yaml_node_t *node, void *field) {
    return sl_suite_parameters(r, node, field);
}

/* ---- the query ---- */

/* Checks that each {"$parameter": name} names a declared parameter, or `limit`. */
static bool check_uses(sl_yaml *r, const yaml_node_t *node, const sl_query *query,
                       bson_iter_t *iter) {
    while (bson_iter_next(iter)) {
        bson_iter_t child;
        if (!BSON_ITER_HOLDS_DOCUMENT(iter) && !BSON_ITER_HOLDS_ARRAY(iter))
            continue;
        const char *name = sl_parameter_name(iter);
        bool known = !name || strcmp(name, SL_LIMIT_PARAMETER) == 0;
        for (size_t i = 0; name && i < query->parameter_count; i++)
            known = known || strcmp(query->parameters[i].name, name) == 0;
        if (!known)
            return sl_yaml_fail(
                r, node->start_mark,
                "the parameter \"%s\" is used, but not declared under \"parameters\"", name);
        if (!name && bson_iter_recurse(iter, &child) && !check_uses(r, node, query, &child))
            return false;
    }
    return true;
}

static bool check_parameters(sl_yaml *r, const yaml_node_t *node, const sl_query *query) {
    const bson_t *const parts[] = {query->pipeline, query->body, query->options};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bson_iter_t iter;
        if (parts[i] && bson_iter_init(&iter, parts[i]) && !check_uses(r, node, query, &iter))
            return false;
    }
    return true;
}

bool sl_suite_query(sl_yaml *r, const yaml_node_t *node, sl_query *query) {
    static const sl_yaml_key keys[] = {
        {"name", sl_suite_name, offsetof(sl_query, name), true},
        {"description", sl_suite_text, offsetof(sl_query, description), false},
        {"operation", read_operation, 0, false},
        {"pipeline", read_pipeline, offsetof(sl_query, pipeline), false},
        {"filter", read_filter, 0, false},
        {"projection", read_projection, 0, false},
        {"sort", read_sort, 0, false},
        {"skip", read_skip, 0, false},
        {"limit", read_limit, 0, false},
        {"key", read_key, 0, false},
        {"map", read_map, 0, false},
        {"reduce", read_reduce, 0, false},
        {"finalize", read_finalize, 0, false},
        {"scope", read_scope, 0, false},
        {"jsMode", read_jsMode, 0, false},
        {"update", read_update, 0, false},
        {"upsert", read_upsert, 0, false},
        {"multi", read_multi, 0, false},
        {"document", read_document, 0, false},
        {"statistic", read_statistic, 0, false},
        {"parameters", read_parameters, 0, false},
        {"options", read_options, 0, false},
        {"expect", read_expected, offsetof(sl_query, expected), false},
        {"expect-hash", sl_suite_name, offsetof(sl_query, expected_hash), false},
        {0},
    };
    query->options = bson_new();
    query->body = bson_new();
    query->threads = 1;
    return sl_yaml_mapping(r, node, keys, query) && check_keys(r, node, query) &&
           check_parameters(r, node, query);
}

void sl_query_clear(sl_query *query) {
    free(query->name);
    free(query->description);
    free(query->read_preference);
    free(query->expected_hash);
    free(query->statistic_field);
    bson_destroy(query->pipeline);
    bson_destroy(query->body);
    bson_destroy(query->options);
    bson_destroy(query->expected);
    for (size_t i = 0; i < query->parameter_count; i++)
        sl_parameter_clear(&query->parameters[i]);
    free(query->parameters);
}
