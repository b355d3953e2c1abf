/* SPDX-License-Identifier: Apache-2.0 */
/* Query suites: YAML files of named queries. Their keys are listed in tables, here and in
 * suite_query.c. */
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#include "util/embedded.h"
#include "util/read_file.h"

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
        if (!sl_suite_query(r, item, query))
            return false;
        for (size_t k = 0; k < i; k++) {
            if (strcmp(suite->queries[k].name, query->name) == 0)
                return sl_yaml_fail(r, item->start_mark, "the query name \"%s\" is used twice",
                                    query->name);
        }
    }
    return true;
}

static bool read_limit(sl_yaml *r, const yaml_node_t *node, void *field) {
    return sl_suite_number(r, node, 1, INT64_MAX, field);
}

static bool read_defaults(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"repeat", sl_suite_repeat, offsetof(sl_suite, repeat), false},
        {"warm-up", sl_suite_warm_up, offsetof(sl_suite, warm_up), false},
        {"database", sl_suite_name, offsetof(sl_suite, database), false},
        {"collection", sl_suite_name, offsetof(sl_suite, collection), false},
        {"limit", read_limit, offsetof(sl_suite, limit), false},
        {"agree", sl_suite_flag, offsetof(sl_suite, agree), false},
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
        if (!sl_suite_double(r, weight, &share->weight))
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

static bool read_suite(sl_yaml *r, const yaml_node_t *node, sl_suite *suite) {
    static const sl_yaml_key keys[] = {
        {"name", sl_suite_name, offsetof(suite_file, suite.name), true},
        {"description", sl_suite_text, offsetof(suite_file, suite.description), false},
        {"defaults", read_defaults, offsetof(suite_file, suite), false},
        {"queries", read_queries, offsetof(suite_file, suite), true},
        {"mix", remember_node, offsetof(suite_file, mix), false},
        {0},
    };
    suite_file file = {.suite = *suite};
    bool ok =
        sl_yaml_mapping(r, node, keys, &file) && (!file.mix || read_mix(r, file.mix, &file.suite));
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
            sl_query_clear(&suite->queries[i]);
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
        sl_query_clear(&suite->queries[i]);
    free(suite->mix);
    free(suite->queries);
    free(suite->name);
    free(suite->description);
    free(suite->database);
    free(suite->collection);
    free(suite);
}
