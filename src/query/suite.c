/* SPDX-License-Identifier: Apache-2.0 */
/* Query suites: YAML files of named aggregations. What a suite may say is in the tables of keys in
 * read_options, read_query, read_defaults and read_suite. */
#include <shardload/query.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <shardload/embedded.h>
#include <shardload/json.h>
#include <shardload/text.h>
#include <shardload/yaml_limits.h>

#include "yaml_reader.h"

#define FILE_BYTES_MAX ((off_t)16 << 20)
#define REPEAT_DEFAULT 5
#define WARM_UP_DEFAULT 1

/* ---- scalars ---- */

static bool read_text(sl_yaml *r, const yaml_node_t *node, void *field) {
    char what[SL_YAML_FOUND_ROOM];
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0 ||
        memchr(node->data.scalar.value, 0, node->data.scalar.length))
        return sl_yaml_complain(r, node->start_mark, "expected text, found %s",
                                sl_yaml_found(node, what));
    char **text = field;
    *text = strndup((const char *)node->data.scalar.value, node->data.scalar.length);
    return *text || sl_error_memory(r->error, "reading a query suite");
}

/* Text of one line. */
static bool read_name(sl_yaml *r, const yaml_node_t *node, void *field) {
    if (node->type == YAML_SCALAR_NODE) {
        sl_text text = sl_yaml_text(node);
        for (size_t i = 0; i < text.length; i++) {
            if ((unsigned char)text.bytes[i] < 0x20)
                return sl_yaml_complain(r, node->start_mark, "expected a name of one line");
        }
    }
    return read_text(r, node, field);
}

static bool read_number(sl_yaml *r, const yaml_node_t *node, uint64_t minimum, uint64_t maximum,
                        uint64_t *number) {
    char what[SL_YAML_FOUND_ROOM];
    if (node->type != YAML_SCALAR_NODE || !sl_text_to_u64(sl_yaml_text(node), number) ||
        *number < minimum || *number > maximum)
        return sl_yaml_complain(r, node->start_mark,
                                "expected a whole number from %" PRIu64 " to %" PRIu64 ", found %s",
                                minimum, maximum, sl_yaml_found(node, what));
    return true;
}

static bool read_repeat(sl_yaml *r, const yaml_node_t *node, void *field) {
    uint64_t number = 0;
    if (!read_number(r, node, 1, SL_REPEAT_MAX, &number))
        return false;
    *(unsigned *)field = (unsigned)number;
    return true;
}

static bool read_warm_up(sl_yaml *r, const yaml_node_t *node, void *field) {
    uint64_t number = 0;
    if (!read_number(r, node, 0, SL_REPEAT_MAX, &number))
        return false;
    *(unsigned *)field = (unsigned)number;
    return true;
}

/* ---- Extended JSON in scalars ---- */

/* What the JSON reader's errors mean; "" fits all. */
static const struct {
    const char *code;
    const char *meaning;
} json_errors[] = {
    {"TRAILING_COMMA", "a comma before a closing bracket"},
    {"CANT_INSERT", "a comma or a colon is missing"},
    {"SPECIAL_EXPECTED", "expected a value; names and text need double quotes"},
    {"SPECIAL_INCOMPLETE", "expected true, false, null or a number"},
    {"BRACKET_MISMATCH", "this closing bracket does not fit the one that is open"},
    {"TRAILING_TEXT", "text after the end"},
    {"STRING_OUTSIDE_CONTAINER", "expected [ or {"},
    {"Incomplete JSON", "a closing bracket or quote is missing"},
    {"", "not Extended JSON"},
};

static bool complain_json(sl_yaml *r, const yaml_node_t *node, const char *message) {
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
    return sl_yaml_complain(r, sl_yaml_locate(r, node, at <= value.length ? at : value.length),
                            "%s (%s)", json_errors[i].meaning, message);
}

/* A JSON array of documents, as text. `hint` shows how it is written. */
static bool read_json_array(sl_yaml *r, const yaml_node_t *node, const char *hint, bson_t **array) {
    char what[SL_YAML_FOUND_ROOM];
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0)
        return sl_yaml_complain(
            r, node->start_mark,
            "expected an array in Extended JSON as text, found %s; write \"%s: |\" and "
            "put the array on the next lines, indented",
            sl_yaml_found(node, what), hint);
    sl_text value = sl_yaml_text(node);
    size_t first = 0;
    while (first < value.length && strchr(" \t\r\n", value.bytes[first]))
        first++;
    if (first == value.length || value.bytes[first] != '[')
        return sl_yaml_complain(r, sl_yaml_locate(r, node, first),
                                "expected [, the beginning of a JSON array");
    bson_error_t wrong = {0};
    *array = sl_json_parse(value.bytes, value.length, &wrong);
    if (!*array)
        return complain_json(r, node, wrong.message);
    bson_iter_t element;
    bson_iter_init(&element, *array);
    for (unsigned i = 1; bson_iter_next(&element); i++) {
        if (!BSON_ITER_HOLDS_DOCUMENT(&element))
            return sl_yaml_complain(r, sl_yaml_locate(r, node, first),
                                    "element %u of the array is not a document", i);
    }
    return true;
}

static bool read_expected(sl_yaml *r, const yaml_node_t *node, void *field) {
    return read_json_array(r, node, "expect", field);
}

static bool read_pipeline(sl_yaml *r, const yaml_node_t *node, void *field) {
    bson_t **pipeline = field;
    if (!read_json_array(r, node, "pipeline", pipeline))
        return false;
    bson_iter_t stage;
    bson_iter_init(&stage, *pipeline);
    for (unsigned i = 1; bson_iter_next(&stage); i++) {
        bson_iter_t name;
        if (!bson_iter_recurse(&stage, &name) || !bson_iter_next(&name) ||
            bson_iter_key(&name)[0] != '$')
            return sl_yaml_complain(r, node->start_mark, "stage %u: expected {\"$stage\": ...}", i);
        if (strcmp(bson_iter_key(&name), "$out") == 0 ||
            strcmp(bson_iter_key(&name), "$merge") == 0)
            return sl_yaml_complain(r, node->start_mark, "stage %u: %s writes; a query only reads",
                                    i, bson_iter_key(&name));
        if (bson_iter_next(&name))
            return sl_yaml_complain(r, node->start_mark, "stage %u has a second key, \"%s\"", i,
                                    bson_iter_key(&name));
    }
    return true;
}

/* ---- options of a query: `field` is the query ---- */

static bool append(sl_yaml *r, bool appended) {
    return appended || sl_error_memory(r->error, "reading a query suite");
}

static bool read_disk_use(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_query *query = field;
    char what[SL_YAML_FOUND_ROOM];
    bool yes =
        node->type == YAML_SCALAR_NODE && sl_text_equal(sl_yaml_text(node), sl_text_of("true"));
    bool no =
        node->type == YAML_SCALAR_NODE && sl_text_equal(sl_yaml_text(node), sl_text_of("false"));
    if (!yes && !no)
        return sl_yaml_complain(r, node->start_mark, "expected true or false, found %s",
                                sl_yaml_found(node, what));
    return append(r, BSON_APPEND_BOOL(query->options, "allowDiskUse", yes));
}

static bool read_time_limit(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_query *query = field;
    uint64_t number = 0;
    return read_number(r, node, 1, INT32_MAX, &number) &&
           append(r, BSON_APPEND_INT64(query->options, "maxTimeMS", (int64_t)number));
}

/* The name of an index, or its key pattern in JSON. */
static bool read_hint(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_query *query = field;
    if (node->type == YAML_SCALAR_NODE && node->data.scalar.value[0] == '{') {
        sl_text text = sl_yaml_text(node);
        bson_error_t wrong = {0};
        bson_t *keys = sl_json_parse(text.bytes, text.length, &wrong);
        bool ok = keys ? append(r, BSON_APPEND_DOCUMENT(query->options, "hint", keys))
                       : complain_json(r, node, wrong.message);
        bson_destroy(keys);
        return ok;
    }
    char *name = NULL;
    bool ok =
        read_name(r, node, &name) && append(r, BSON_APPEND_UTF8(query->options, "hint", name));
    free(name);
    return ok;
}

static bool read_read_preference(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const char *const modes[] = {"primary", "primaryPreferred", "secondary",
                                        "secondaryPreferred", "nearest"};
    sl_query *query = field;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (node->type == YAML_SCALAR_NODE &&
            sl_text_equal(sl_yaml_text(node), sl_text_of(modes[i])))
            return read_text(r, node, &query->read_preference);
    }
    char what[SL_YAML_FOUND_ROOM];
    return sl_yaml_complain(
        r, node->start_mark,
        "expected primary, primaryPreferred, secondary, secondaryPreferred or nearest, "
        "found %s",
        sl_yaml_found(node, what));
}

static bool read_options(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"allowDiskUse", read_disk_use, 0, false},
        {"hint", read_hint, 0, false},
        {"maxTimeMS", read_time_limit, 0, false},
        {"readPreference", read_read_preference, 0, false},
        {0},
    };
    return sl_yaml_mapping(r, node, keys, field);
}

static bool read_query(sl_yaml *r, const yaml_node_t *node, sl_query *query) {
    static const sl_yaml_key keys[] = {
        {"name", read_name, offsetof(sl_query, name), true},
        {"description", read_text, offsetof(sl_query, description), false},
        {"pipeline", read_pipeline, offsetof(sl_query, pipeline), true},
        {"options", read_options, 0, false},
        {"expect", read_expected, offsetof(sl_query, expected), false},
        {0},
    };
    query->options = bson_new();
    return sl_yaml_mapping(r, node, keys, query);
}

static bool read_queries(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_suite *suite = field;
    char what[SL_YAML_FOUND_ROOM];
    if (node->type != YAML_SEQUENCE_NODE ||
        node->data.sequence.items.start == node->data.sequence.items.top)
        return sl_yaml_complain(r, node->start_mark, "expected a list of queries, found %s",
                                node->type == YAML_SEQUENCE_NODE ? "an empty one"
                                                                 : sl_yaml_found(node, what));
    size_t items = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
    suite->queries = calloc(items, sizeof *suite->queries);
    if (!suite->queries)
        return sl_error_memory(r->error, "reading a query suite");
    for (size_t i = 0; i < items; i++) {
        const yaml_node_t *item =
            yaml_document_get_node(&r->document, node->data.sequence.items.start[i]);
        sl_query *query = &suite->queries[suite->count++];
        if (!read_query(r, item, query))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(suite->queries[k].name, query->name) == 0)
                return sl_yaml_complain(r, item->start_mark, "a second query is called \"%s\"",
                                        query->name);
        }
    }
    return true;
}

static bool read_defaults(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"repeat", read_repeat, offsetof(sl_suite, repeat), false},
        {"warm-up", read_warm_up, offsetof(sl_suite, warm_up), false},
        {"database", read_name, offsetof(sl_suite, database), false},
        {"collection", read_name, offsetof(sl_suite, collection), false},
        {0},
    };
    return sl_yaml_mapping(r, node, keys, field);
}

static bool read_suite(sl_yaml *r, const yaml_node_t *node, sl_suite *suite) {
    static const sl_yaml_key keys[] = {
        {"name", read_name, offsetof(sl_suite, name), true},
        {"description", read_text, offsetof(sl_suite, description), false},
        {"defaults", read_defaults, 0, false},
        {"queries", read_queries, 0, true},
        {0},
    };
    return sl_yaml_mapping(r, node, keys, suite);
}

/* ---- the file ---- */

bool sl_suite_parse(const char *text, size_t length, const char *file, sl_suite **suite,
                    sl_error *error) {
    *suite = NULL;
    sl_yaml r = {.text = {text, length}, .file = file, .error = error};
    yaml_parser_t parser;
    if (!sl_yaml_within_limits(r.text, file, SL_EXIT_SOURCE, error))
        return false;
    if (!yaml_parser_initialize(&parser))
        return sl_error_memory(error, "reading a query suite");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    bool ok = false;
    if (!sl_yaml_load(&r, &parser))
        goto done;

    sl_suite *new_suite = calloc(1, sizeof *new_suite);
    if (!new_suite) {
        sl_error_memory(error, "reading a query suite");
    } else {
        new_suite->repeat = REPEAT_DEFAULT;
        new_suite->warm_up = WARM_UP_DEFAULT;
        const yaml_node_t *root = yaml_document_get_root_node(&r.document);
        ok = root ? read_suite(&r, root, new_suite)
                  : sl_error_set(error, SL_EXIT_SOURCE, "%s: the file holds no suite", file);
    }
    yaml_document_delete(&r.document);
    if (ok && (ok = sl_yaml_load(&r, &parser))) {
        const yaml_node_t *second = yaml_document_get_root_node(&r.document);
        if (second)
            ok = sl_yaml_complain(&r, second->start_mark,
                                  "expected one suite, found a second document");
        yaml_document_delete(&r.document);
    }
    if (ok)
        *suite = new_suite;
    else
        sl_suite_destroy(new_suite);
done:
    yaml_parser_delete(&parser);
    return ok;
}

static bool open_file(const char *path, sl_suite **suite, sl_error *error) {
    bool ok = false;
    char *text = NULL;
    struct stat about;
    FILE *in = fopen(path, "rbe");
    if (!in || fstat(fileno(in), &about) != 0) {
        sl_error_set(
            error, SL_EXIT_SOURCE,
            "%s: %s; give a YAML file, or the name of a suite that `shardquery list` shows", path,
            strerror(errno));
        goto done;
    }
    if (!S_ISREG(about.st_mode) || about.st_size > FILE_BYTES_MAX) {
        sl_error_set(error, SL_EXIT_SOURCE, "%s: expected a regular file of at most 16 MiB", path);
        goto done;
    }
    text = malloc((size_t)about.st_size + 1);
    if (!text) {
        sl_error_memory(error, "reading a query suite");
        goto done;
    }
    size_t length = fread(text, 1, (size_t)about.st_size, in);
    ok = ferror(in) ? sl_error_set(error, SL_EXIT_SOURCE, "%s: cannot be read", path)
                    : sl_suite_parse(text, length, path, suite, error);
done:
    free(text);
    if (in)
        fclose(in);
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

void sl_suite_destroy(sl_suite *suite) {
    if (!suite)
        return;
    for (size_t i = 0; i < suite->count; i++) {
        sl_query *query = &suite->queries[i];
        free(query->name);
        free(query->description);
        free(query->read_preference);
        bson_destroy(query->pipeline);
        bson_destroy(query->options);
        bson_destroy(query->expected);
    }
    free(suite->queries);
    free(suite->name);
    free(suite->description);
    free(suite->database);
    free(suite->collection);
    free(suite);
}
