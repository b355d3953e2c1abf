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
    char what[SL_YAML_FOUND_ROOM];
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0 ||
        memchr(node->data.scalar.value, 0, node->data.scalar.length))
        return sl_yaml_fail(r, node->start_mark, "expected text, found %s",
                            sl_yaml_found(node, what));
    char **text = field;
    *text = strndup((const char *)node->data.scalar.value, node->data.scalar.length);
    return *text || sl_error_memory(r->error, "reading a query suite");
}

bool sl_suite_name(sl_yaml *r, const yaml_node_t *node, void *field) {
    if (node->type == YAML_SCALAR_NODE) {
        sl_text text = sl_yaml_text(node);
        for (size_t i = 0; i < text.length; i++) {
            if ((unsigned char)text.bytes[i] < 0x20)
                return sl_yaml_fail(r, node->start_mark, "expected a name of one line");
        }
    }
    return sl_suite_text(r, node, field);
}

/* Copies a scalar of 1 to 63 bytes, NUL-terminated. False for other nodes, and for a scalar that
 * contains a NUL byte or begins with a blank. */
static bool short_scalar(const yaml_node_t *node, char out[64]) {
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0 ||
        node->data.scalar.length >= 64 ||
        memchr(node->data.scalar.value, 0, node->data.scalar.length))
        return false;
    memcpy(out, node->data.scalar.value, node->data.scalar.length);
    out[node->data.scalar.length] = '\0';
    return strchr(" \t\r\n", out[0]) == NULL;
}

bool sl_suite_number(sl_yaml *r, const yaml_node_t *node, int64_t minimum, int64_t maximum,
                     int64_t *number) {
    char what[SL_YAML_FOUND_ROOM], text[64], *end = text;
    long long value = short_scalar(node, text) ? strtoll(text, &end, 10) : 0;
    if (end == text || *end || value < minimum || value > maximum)
        return sl_yaml_fail(r, node->start_mark,
                            "expected a whole number from %" PRId64 " to %" PRId64 ", found %s",
                            minimum, maximum, sl_yaml_found(node, what));
    *number = value;
    return true;
}

bool sl_suite_double(sl_yaml *r, const yaml_node_t *node, double *number) {
    char what[SL_YAML_FOUND_ROOM], text[64], *end = text;
    double value = short_scalar(node, text) ? strtod(text, &end) : 0;
    if (end == text || *end || !isfinite(value))
        return sl_yaml_fail(r, node->start_mark, "expected a number, found %s",
                            sl_yaml_found(node, what));
    *number = value;
    return true;
}

bool sl_suite_repeat(sl_yaml *r, const yaml_node_t *node, void *field) {
    int64_t number = 0;
    bool ok = sl_suite_number(r, node, 1, SL_REPEAT_MAX, &number);
    if (ok)
        *(unsigned *)field = (unsigned)number;
    return ok;
}

bool sl_suite_warm_up(sl_yaml *r, const yaml_node_t *node, void *field) {
    int64_t number = 0;
    bool ok = sl_suite_number(r, node, 0, SL_REPEAT_MAX, &number);
    if (ok)
        *(unsigned *)field = (unsigned)number;
    return ok;
}

bool sl_suite_flag(sl_yaml *r, const yaml_node_t *node, bool *flag) {
    char what[SL_YAML_FOUND_ROOM];
    bool scalar = node->type == YAML_SCALAR_NODE;
    *flag = scalar && sl_text_equal(sl_yaml_text(node), sl_text_of("true"));
    return *flag || (scalar && sl_text_equal(sl_yaml_text(node), sl_text_of("false"))) ||
           sl_yaml_fail(r, node->start_mark, "expected true or false, found %s",
                        sl_yaml_found(node, what));
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
