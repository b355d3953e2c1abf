/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of values in query suites: text, numbers, Extended JSON. */
#include "suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"

bool sl_suite_append(sl_yaml *r, bool appended) {
    return appended || sl_error_memory(r->error, "reading a query suite");
}

bool sl_suite_text(sl_yaml *r, const yaml_node_t *node, void *field) {
    const char *word = sl_yaml_word(node);
    char **text = field;
    if (!word)
        return sl_yaml_expected(r, node, "text");
    *text = strdup(word);
    return *text || sl_error_memory(r->error, "reading a query suite");
}

bool sl_suite_name(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_text text = sl_yaml_text(node);
    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)text.bytes[i] < 0x20)
            return sl_yaml_fail(r, node->start_mark, "expected a name of one line");
    }
    return sl_suite_text(r, node, field);
}

/* A scalar that is not empty, contains no NUL and does not begin with a blank; "" for others. */
static const char *solid(const yaml_node_t *node) {
    const char *word = sl_yaml_word(node);
    return word && !strchr(" \t\r\n", word[0]) ? word : "";
}

bool sl_suite_number(sl_yaml *r, const yaml_node_t *node, int64_t minimum, int64_t maximum,
                     int64_t *number) {
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

bool sl_suite_double(sl_yaml *r, const yaml_node_t *node, double *number) {
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
    bool ok = sl_suite_number(r, node, minimum, SL_REPEAT_MAX, &number);
    if (ok)
        *times = (unsigned)number;
    return ok;
}

bool sl_suite_repeat(sl_yaml *r, const yaml_node_t *node, void *field) {
    return read_times(r, node, 1, field);
}

bool sl_suite_warm_up(sl_yaml *r, const yaml_node_t *node, void *field) {
    return read_times(r, node, 0, field);
}

bool sl_suite_flag(sl_yaml *r, const yaml_node_t *node, void *field) {
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

bool sl_suite_json(sl_yaml *r, const yaml_node_t *node, const char *key, bool array,
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

bool sl_suite_documents(sl_yaml *r, const yaml_node_t *node, const char *key, bson_t **array) {
    if (!sl_suite_json(r, node, key, true, array))
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
