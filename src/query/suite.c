/* SPDX-License-Identifier: Apache-2.0 */
/* Query suites: YAML files of named queries. Tables list the keys of a suite, of a query of each
 * operation, and of its parameters; their functions read the values, and on false `r->error` is
 * set. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "query.h"
#include "report/json.h"
#include "util/embedded.h"
#include "util/read_file.h"
#include "util/yaml_reader.h"

#include "parameters.h"

/* ---- values: text, numbers, Extended JSON ---- */

/* Returns `appended`. False means that appending to a BSON document ran out of memory. */
static bool suite_append(sl_yaml *r, bool appended) {
    return appended || sl_error_memory(r->error, "reading a query suite");
}

static bool suite_text(sl_yaml *r, const yaml_node_t *node, void *field) {
    const char *word = sl_yaml_word(node);
    char **text = field;
    if (!word)
        return sl_yaml_expected(r, node, "text");
    *text = strdup(word);
    return *text || sl_error_memory(r->error, "reading a query suite");
}

static bool suite_name(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_text text = sl_yaml_text(node);
    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)text.bytes[i] < 0x20)
            return sl_yaml_fail(r, node->start_mark, "expected a name of one line");
    }
    return suite_text(r, node, field);
}

/* A scalar that is not empty, contains no NUL and does not begin with a blank; "" for others. */
static const char *solid(const yaml_node_t *node) {
    const char *word = sl_yaml_word(node);
    return word && !strchr(" \t\r\n", word[0]) ? word : "";
}

/* Reads an integer from `minimum` to `maximum`. */
static bool suite_number(sl_yaml *r, const yaml_node_t *node, int64_t minimum, int64_t maximum,
                         int64_t *number) {
    *number = minimum;
    const char *text = solid(node);
    char expected[100], *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || value < minimum || value > maximum) {
        snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, minimum,
                 maximum);
        return sl_yaml_expected(r, node, expected);
    }
    *number = value;
    return true;
}

/* Reads a finite number. */
static bool suite_double(sl_yaml *r, const yaml_node_t *node, double *number) {
    const char *text = solid(node);
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value))
        return sl_yaml_expected(r, node, "a number");
    *number = value;
    return true;
}

/* Reads a number of repetitions. */
static bool read_times(sl_yaml *r, const yaml_node_t *node, int64_t minimum, unsigned *times) {
    int64_t number = 0;
    bool ok = suite_number(r, node, minimum, SL_REPEAT_MAX, &number);
    if (ok)
        *times = (unsigned)number;
    return ok;
}

static bool suite_repeat(sl_yaml *r, const yaml_node_t *node, void *field) {
    return read_times(r, node, 1, field);
}

static bool suite_warm_up(sl_yaml *r, const yaml_node_t *node, void *field) {
    return read_times(r, node, 0, field);
}

static bool suite_flag(sl_yaml *r, const yaml_node_t *node, void *field) {
    bool *flag = field;
    *flag = sl_yaml_is(node, "true");
    return *flag || sl_yaml_is(node, "false") || sl_yaml_expected(r, node, "true or false");
}

/* ---- Extended JSON in scalars ---- */

/* Meanings of the JSON parser's errors. `code` is a part of its message; the last row fits all. */
static const struct {
    const char *code;
    const char *meaning;
} json_errors[] = {
    {"TRAILING_COMMA", "a comma before a closing bracket"},
    {"CANT_INSERT", "a comma or a colon is missing"},
    {"SPECIAL_EXPECTED", "expected a value; names and text need double quotes"},
    {"SPECIAL_INCOMPLETE", "expected true, false, null or a number"},
    {"BRACKET_MISMATCH", "this closing bracket does not match the opening bracket"},
    {"TRAILING_TEXT", "text after the end"},
    {"STRING_OUTSIDE_CONTAINER", "expected [ or {"},
    {"Incomplete JSON", "a closing bracket or quote is missing"},
    {"", "not Extended JSON"},
};

static bool fail_json(sl_yaml *r, const yaml_node_t *node, const char *message) {
    sl_text value = sl_yaml_text(node);
    size_t at = 0;
    const char *position = strstr(message, "\", position ");
    if (position) {
        at = strtoul(position + strlen("\", position "), NULL, 10);
    } else if (strcmp(message, "Incomplete JSON") == 0) {
        at = value.length;
        while (at > 0 && strchr(" \t\r\n", value.bytes[at - 1]))
            at--;
    }
    size_t i = 0;
    while (!strstr(message, json_errors[i].code))
        i++;
    return sl_yaml_fail(r, sl_yaml_locate(r, node, at <= value.length ? at : value.length),
                        "%s (%s)", json_errors[i].meaning, message);
}

/* Parses the text of a scalar as Extended JSON: an array, or a document. `key` is the name of the
 * key in messages. Destroy `*document`. */
static bool suite_json(sl_yaml *r, const yaml_node_t *node, const char *key, bool array,
                       bson_t **document) {
    char what[SL_YAML_FOUND_ROOM];
    const char *kind = array ? "an array" : "a document";
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0)
        return sl_yaml_fail(r, node->start_mark,
                            "expected %s in Extended JSON as text, found %s; write \"%s: |\" "
                            "and put it on the next lines, indented",
                            kind, sl_yaml_found(node, what), key);
    sl_text value = sl_yaml_text(node);
    size_t first = 0;
    while (first < value.length && strchr(" \t\r\n", value.bytes[first]))
        first++;
    char bracket = array ? '[' : '{';
    if (first == value.length || value.bytes[first] != bracket)
        return sl_yaml_fail(r, sl_yaml_locate(r, node, first),
                            "expected %c, the beginning of a JSON %s", bracket,
                            array ? "array" : "document");
    bson_error_t wrong = {0};
    *document = sl_json_parse(value.bytes, value.length, &wrong);
    return *document || fail_json(r, node, wrong.message);
}

/* The same; each element of the array must be a document. */
static bool suite_documents(sl_yaml *r, const yaml_node_t *node, const char *key, bson_t **array) {
    if (!suite_json(r, node, key, true, array))
        return false;
    bson_iter_t element;
    bson_iter_init(&element, *array);
    for (unsigned i = 1; bson_iter_next(&element); i++) {
        if (!BSON_ITER_HOLDS_DOCUMENT(&element)) {
            sl_text value = sl_yaml_text(node);
            size_t first = 0;
            while (strchr(" \t\r\n", value.bytes[first]))
                first++;
            return sl_yaml_fail(r, sl_yaml_locate(r, node, first),
                                "element %u of the array is not a document", i);
        }
    }
    return true;
}

/* ---- parameters ----
 *
 *   parameters:
 *     a: {range: [1, 1000]}
 *     b: {list: '["GB", "FR"]'}
 *     c: {zipf: {from: 1, count: 100000, skew: 0.99}}
 *     d: {sequence: {from: 0, step: 1}}
 *     e: {sample: {field: position.lat, count: 1000}} */

#define SKEW_DEFAULT 0.99
#define SAMPLE_DEFAULT 1000
#define SAMPLE_MAX 100000
#define COUNT_MAX (INT64_C(1) << 52) /* doubles represent every integer up to here */

static bool read_first(sl_yaml *r, const yaml_node_t *node, void *field) {
    return suite_number(r, node, INT64_MIN, INT64_MAX, &((sl_parameter *)field)->first);
}

static bool read_step(sl_yaml *r, const yaml_node_t *node, void *field) {
    return suite_number(r, node, INT64_MIN, INT64_MAX, &((sl_parameter *)field)->step);
}

static bool read_count_up_to(sl_yaml *r, const yaml_node_t *node, sl_parameter *parameter,
                             int64_t maximum) {
    int64_t count;
    if (!suite_number(r, node, 1, maximum, &count))
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
    return suite_double(r, node, &parameter->skew) &&
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
    if (!suite_double(r, low, &p->low) || !suite_double(r, high, &p->high))
        return false;
    sl_error ignored = {0}, *error = r->error;
    r->error = &ignored; /* a bound with a fraction is not an error: the range is of doubles */
    p->integers = suite_number(r, low, INT64_MIN, INT64_MAX, &p->first) &&
                  suite_number(r, high, INT64_MIN, INT64_MAX, &p->last);
    r->error = error;
    p->count = 1;
    return (p->integers ? p->first <= p->last : p->low <= p->high) ||
           sl_yaml_fail(r, node->start_mark, "the lowest number is above the highest");
}

static bool read_list(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_parameter *p = field;
    if (!set_draw(r, node, p, SL_DRAW_LIST) || !suite_json(r, node, "list", true, &p->values))
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
        {"field", suite_name, offsetof(sl_parameter, field), true},
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
    if (!suite_name(r, name, &parameter->name))
        return false;
    if (strcmp(parameter->name, SL_LIMIT_PARAMETER) == 0)
        return sl_yaml_fail(r, name->start_mark,
                            "the parameter \"%s\" is set by --limit and cannot be declared",
                            parameter->name);
    return read_parameter(r, value, parameter);
}

static bool read_parameters(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_query *query = field;
    size_t pairs = sl_yaml_length(node);
    if (node->type == YAML_MAPPING_NODE && pairs > SL_PARAMETERS_MAX)
        return sl_yaml_fail(r, node->start_mark, "a query has at most %d parameters",
                            SL_PARAMETERS_MAX);
    query->parameters = calloc(pairs + 1, sizeof *query->parameters);
    if (!query->parameters)
        return sl_error_memory(r->error, "reading a query suite");
    return sl_yaml_each(r, node, "a mapping of names", take_parameter, query);
}

/* ---- queries ---- */

#define NAME(id, name, command, writes) name,
#define COMMAND(id, name, command, writes) command,
#define WRITES(id, name, command, writes) writes,
#define LISTED(id, name, command, writes) " or " name
static const char *const operation_names[] = {SL_QUERY_OPERATIONS(NAME)};

const char *sl_operation_name(sl_operation operation) {
    return operation_names[operation];
}

const char *sl_operation_command(sl_operation operation) {
    static const char *const commands[] = {SL_QUERY_OPERATIONS(COMMAND)};
    return commands[operation];
}

bool sl_operation_writes(sl_operation operation) {
    static const bool writes[] = {SL_QUERY_OPERATIONS(WRITES)};
    return writes[operation];
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
    if (query->threads > 1 && (!has_key(query, "sort") || has_key(query, "skip")))
        return sl_yaml_fail(r, node->start_mark,
                            "a statistic in several threads needs the key \"sort\", and takes no "
                            "key \"skip\": without an order, the threads would read some documents "
                            "twice, and others not at all");
    return true;
}

static bool read_operation(sl_yaml *r, const yaml_node_t *node, void *field) {
    size_t index;
    bool ok = sl_yaml_choice(r, node, operation_names, SL_OPERATIONS,
                             &(SL_QUERY_OPERATIONS(LISTED))[4], &index);
    ((sl_query *)field)->operation = (sl_operation)index;
    return ok;
}

/* The functions put_* append a value to `into` under `key`. */

static bool put_document(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    bson_t *document = NULL;
    bool ok = suite_json(r, node, key, false, &document) &&
              suite_append(r, BSON_APPEND_DOCUMENT(into, key, document));
    bson_destroy(document);
    return ok;
}

static bool put_integer(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key,
                        int64_t minimum, int64_t maximum) {
    int64_t number;
    return suite_number(r, node, minimum, maximum, &number) &&
           suite_append(r, BSON_APPEND_INT64(into, key, number));
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
    bool ok = read(r, node, &text) && suite_append(r, is_code ? BSON_APPEND_CODE(into, key, text)
                                                              : BSON_APPEND_UTF8(into, key, text));
    free(text);
    return ok;
}

static bool put_code(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    return put_string(r, node, into, key, suite_text, true);
}

static bool put_text(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    return put_string(r, node, into, key, suite_text, false);
}

static bool put_name(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    return put_string(r, node, into, key, suite_name, false);
}

static bool put_flag(sl_yaml *r, const yaml_node_t *node, bson_t *into, const char *key) {
    bool flag;
    return suite_flag(r, node, &flag) && suite_append(r, BSON_APPEND_BOOL(into, key, flag));
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
    bool ok = suite_documents(r, node, "update", &stages) &&
              suite_append(r, BSON_APPEND_ARRAY(query->body, "update", stages));
    bson_destroy(stages);
    return ok;
}

static bool read_pipeline(sl_yaml *r, const yaml_node_t *node, void *field) {
    bson_t **pipeline = field;
    if (!suite_documents(r, node, "pipeline", pipeline))
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
    return suite_documents(r, node, "expect", field);
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
    if (!suite_number(r, node, 1, SL_STATISTIC_THREADS_MAX, &number))
        return false;
    ((sl_query *)field)->threads = (unsigned)number;
    return true;
}

static bool read_statistic(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"field", suite_name, offsetof(sl_query, statistic_field), true},
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
    bool ok = sl_yaml_choice(r, node, levels, sizeof levels / sizeof levels[0],
                             "local, available, majority, linearizable or snapshot", &index) &&
              suite_text(r, node, &level) &&
              suite_append(r, BSON_APPEND_DOCUMENT_BEGIN(((sl_query *)field)->options,
                                                         "readConcern", &concern) &&
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
           suite_text(r, node, &((sl_query *)field)->read_preference);
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

static bool suite_query(sl_yaml *r, const yaml_node_t *node, sl_query *query) {
    static const sl_yaml_key keys[] = {
        {"name", suite_name, offsetof(sl_query, name), true},
        {"description", suite_text, offsetof(sl_query, description), false},
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
        {"expect-hash", suite_name, offsetof(sl_query, expected_hash), false},
        {0},
    };
    query->options = bson_new();
    query->body = bson_new();
    query->threads = 1;
    return sl_yaml_mapping(r, node, keys, query) && check_keys(r, node, query) &&
           check_parameters(r, node, query);
}

static void query_clear(sl_query *query) {
    free(query->name);
    free(query->description);
    free(query->read_preference);
    free(query->expected_hash);
    free(query->statistic_field);
    bson_destroy(query->pipeline);
    bson_destroy(query->body);
    bson_destroy(query->options);
    bson_destroy(query->expected);
    for (size_t i = 0; i < query->parameter_count; i++) {
        free(query->parameters[i].name);
        free(query->parameters[i].field);
        bson_destroy(query->parameters[i].values);
    }
    free(query->parameters);
}

/* ---- suites ---- */

#define REPEAT_DEFAULT 5
#define WARM_UP_DEFAULT 1

static bool read_queries(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_suite *suite = field;
    const yaml_node_t *item;
    size_t items;
    if (!sl_yaml_count(r, node, YAML_SEQUENCE_NODE, "a list of queries", &items))
        return false;
    suite->queries = calloc(items, sizeof *suite->queries);
    if (!suite->queries)
        return sl_error_memory(r->error, "reading a query suite");
    for (size_t i = 0; (item = sl_yaml_item(r, node, i)); i++) {
        sl_query *query = &suite->queries[suite->count++];
        if (!suite_query(r, item, query))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(suite->queries[k].name, query->name) == 0)
                return sl_yaml_fail(r, item->start_mark, "the query name \"%s\" is used twice",
                                    query->name);
        }
    }
    return true;
}

static bool read_suite_limit(sl_yaml *r, const yaml_node_t *node, void *field) {
    return suite_number(r, node, 1, INT64_MAX, field);
}

static bool read_defaults(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"repeat", suite_repeat, offsetof(sl_suite, repeat), false},
        {"warm-up", suite_warm_up, offsetof(sl_suite, warm_up), false},
        {"database", suite_name, offsetof(sl_suite, database), false},
        {"collection", suite_name, offsetof(sl_suite, collection), false},
        {"limit", read_suite_limit, offsetof(sl_suite, limit), false},
        {"agree", suite_flag, offsetof(sl_suite, agree), false},
        {0},
    };
    return sl_yaml_mapping(r, node, keys, field);
}

/* Reads the mapping of queries to weights, which may be in the file before the queries. */
static bool read_mix(sl_yaml *r, const yaml_node_t *node, sl_suite *suite) {
    char what[SL_YAML_FOUND_ROOM];
    const yaml_node_t *name, *weight;
    size_t pairs;
    if (!sl_yaml_count(r, node, YAML_MAPPING_NODE,
                       "a mapping of queries to weights, such as {read: 95, update: 5}", &pairs))
        return false;
    suite->mix = calloc(pairs, sizeof *suite->mix);
    if (!suite->mix)
        return sl_error_memory(r->error, "reading a query suite");
    for (size_t i = 0; sl_yaml_pair(r, node, i, &name, &weight); i++) {
        sl_share *share = &suite->mix[suite->mix_count++];
        size_t index = 0;
        while (index < suite->count && !sl_yaml_is(name, suite->queries[index].name))
            index++;
        if (index == suite->count)
            return sl_yaml_fail(r, name->start_mark, "no query of this suite is called %s",
                                sl_yaml_found(name, what));
        for (size_t k = 0; k < i; k++) {
            if (suite->mix[k].query == index)
                return sl_yaml_fail(r, name->start_mark, "the mix contains the query twice");
        }
        share->query = index;
        if (!suite_double(r, weight, &share->weight))
            return false;
        if (!(share->weight > 0) || share->weight > 1e9)
            return sl_yaml_expected(r, weight, "a weight above 0 and up to 1e9");
    }
    return true;
}

typedef struct suite_file {
    sl_suite suite;
    const yaml_node_t *mix; /* read after the queries; NULL: none */
} suite_file;

static bool remember_node(sl_yaml *r, const yaml_node_t *node, void *field) {
    (void)r;
    *(const yaml_node_t **)field = node;
    return true;
}

/* Queries that must agree may not differ in the values that they draw. */
static bool check_agree(sl_yaml *r, const yaml_node_t *node, const sl_suite *suite) {
    for (size_t i = 0; suite->agree && i < suite->count; i++) {
        const sl_query *query = &suite->queries[i];
        for (size_t k = 0; k < query->parameter_count; k++) {
            if (query->parameters[k].draw != SL_DRAW_SEQUENCE)
                return sl_yaml_fail(
                    r, node->start_mark,
                    "each query draws its own values, so answers cannot agree: write "
                    "a value instead of the parameter \"%s\" of %s, use a "
                    "sequence, or remove `agree`",
                    query->parameters[k].name, query->name);
        }
    }
    return true;
}

static bool read_suite(sl_yaml *r, const yaml_node_t *node, sl_suite *suite) {
    static const sl_yaml_key keys[] = {
        {"name", suite_name, offsetof(suite_file, suite.name), true},
        {"description", suite_text, offsetof(suite_file, suite.description), false},
        {"defaults", read_defaults, offsetof(suite_file, suite), false},
        {"queries", read_queries, offsetof(suite_file, suite), true},
        {"mix", remember_node, offsetof(suite_file, mix), false},
        {0},
    };
    suite_file file = {.suite = *suite};
    bool ok = sl_yaml_mapping(r, node, keys, &file) && check_agree(r, node, &file.suite) &&
              (!file.mix || read_mix(r, file.mix, &file.suite));
    *suite = file.suite;
    return ok;
}

/* ---- the file ---- */

bool sl_suite_parse(const char *text, size_t length, const char *file, sl_suite **suite,
                    sl_error *error) {
    sl_yaml r = {.text = {text, length},
                 .file = file,
                 .code = SL_EXIT_SOURCE,
                 .error = error,
                 .single = "suite"};
    const yaml_node_t *root;
    *suite = NULL;
    if (!sl_yaml_read(&r, &root))
        return false;
    bool ok = false;
    sl_suite *new_suite = calloc(1, sizeof *new_suite);
    if (!new_suite) {
        sl_error_memory(error, "reading a query suite");
    } else {
        new_suite->repeat = REPEAT_DEFAULT;
        new_suite->warm_up = WARM_UP_DEFAULT;
        ok = root ? read_suite(&r, root, new_suite)
                  : sl_error_set(error, SL_EXIT_SOURCE, "%s: the file contains no suite", file);
    }
    yaml_document_delete(&r.document);
    if (ok)
        *suite = new_suite;
    else
        sl_suite_destroy(new_suite);
    return ok;
}

static bool open_file(const char *path, sl_suite **suite, sl_error *error) {
    sl_text text;
    sl_error why;
    if (!sl_read_file(path, SL_YAML_BYTES_MAX, SL_EXIT_SOURCE, &text, &why))
        return sl_error_set(
            error, why.code,
            "%s: %s; give a YAML file, or the name of a suite that `shardquery list` shows", path,
            why.message);
    bool ok = sl_suite_parse(text.bytes, text.length, path, suite, error);
    free((char *)text.bytes);
    return ok;
}

bool sl_suite_open(const char *name, sl_suite **suite, sl_error *error) {
    *suite = NULL;
    for (const sl_embedded *file = sl_embedded_queries; file->name; file++) {
        const char *dot = strrchr(file->name, '.');
        size_t stem = dot ? (size_t)(dot - file->name) : strlen(file->name);
        if (sl_text_equal(sl_text_of(name), (sl_text){file->name, stem}))
            return sl_suite_parse(file->text, file->length, file->name, suite, error);
    }
    return open_file(name, suite, error);
}

size_t sl_suite_remove_writes(sl_suite *suite) {
    size_t kept = 0, count = suite->count;
    for (size_t i = 0; i < count; i++) {
        if (sl_operation_writes(suite->queries[i].operation))
            query_clear(&suite->queries[i]);
        else
            suite->queries[kept++] = suite->queries[i];
    }
    suite->count = kept;
    free(suite->mix); /* its rows are indexes into the queries */
    suite->mix = NULL;
    suite->mix_count = 0;
    return count - kept;
}

void sl_suite_destroy(sl_suite *suite) {
    if (!suite)
        return;
    for (size_t i = 0; i < suite->count; i++)
        query_clear(&suite->queries[i]);
    free(suite->mix);
    free(suite->queries);
    free(suite->name);
    free(suite->description);
    free(suite->database);
    free(suite->collection);
    free(suite);
}
