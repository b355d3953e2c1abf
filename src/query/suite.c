/* SPDX-License-Identifier: Apache-2.0 */
/* Query suites: YAML files of named queries. Their keys are listed in tables, here and in
 * suite_query.c. */
#include "suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/embedded.h"
#include "util/yaml_limits.h"

#define FILE_BYTES_MAX ((off_t)16 << 20)
#define REPEAT_DEFAULT 5
#define WARM_UP_DEFAULT 1

static bool read_queries(sl_yaml *r, const yaml_node_t *node, void *field) {
    sl_suite *suite = field;
    size_t items;
    if (!sl_yaml_count(r, node, YAML_SEQUENCE_NODE, "a list of queries", &items))
        return false;
    suite->queries = calloc(items, sizeof *suite->queries);
    if (!suite->queries)
        return sl_error_memory(r->error, "reading a query suite");
    for (size_t i = 0; i < items; i++) {
        const yaml_node_t *item =
            yaml_document_get_node(&r->document, node->data.sequence.items.start[i]);
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

static bool read_agree(sl_yaml *r, const yaml_node_t *node, void *field) {
    return sl_suite_flag(r, node, field);
}

static bool read_defaults(sl_yaml *r, const yaml_node_t *node, void *field) {
    static const sl_yaml_key keys[] = {
        {"repeat", sl_suite_repeat, offsetof(sl_suite, repeat), false},
        {"warm-up", sl_suite_warm_up, offsetof(sl_suite, warm_up), false},
        {"database", sl_suite_name, offsetof(sl_suite, database), false},
        {"collection", sl_suite_name, offsetof(sl_suite, collection), false},
        {"limit", read_limit, offsetof(sl_suite, limit), false},
        {"agree", read_agree, offsetof(sl_suite, agree), false},
        {0},
    };
    return sl_yaml_mapping(r, node, keys, field);
}

/* Reads the mapping of queries to weights, which may be in the file before the queries. */
static bool read_mix(sl_yaml *r, const yaml_node_t *node, sl_suite *suite) {
    char what[SL_YAML_FOUND_ROOM];
    size_t pairs;
    if (!sl_yaml_count(r, node, YAML_MAPPING_NODE,
                       "a mapping of queries to weights, such as {read: 95, update: 5}", &pairs))
        return false;
    suite->mix = calloc(pairs, sizeof *suite->mix);
    if (!suite->mix)
        return sl_error_memory(r->error, "reading a query suite");
    for (size_t i = 0; i < pairs; i++) {
        const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
        const yaml_node_t *name = yaml_document_get_node(&r->document, pair->key);
        const yaml_node_t *weight = yaml_document_get_node(&r->document, pair->value);
        sl_share *share = &suite->mix[suite->mix_count++];
        size_t index = 0;
        while (index < suite->count &&
               (name->type != YAML_SCALAR_NODE ||
                !sl_text_equal(sl_yaml_text(name), sl_text_of(suite->queries[index].name))))
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
            return sl_yaml_fail(r, weight->start_mark,
                                "expected a weight above 0 and up to 1e9, found %s",
                                sl_yaml_found(weight, what));
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
                  : sl_error_set(error, SL_EXIT_SOURCE, "%s: the file contains no suite", file);
    }
    yaml_document_delete(&r.document);
    if (ok && (ok = sl_yaml_load(&r, &parser))) {
        const yaml_node_t *second = yaml_document_get_root_node(&r.document);
        if (second)
            ok =
                sl_yaml_fail(&r, second->start_mark, "expected one suite, found a second document");
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
            error, sl_exit_of_errno(errno, SL_EXIT_SOURCE),
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
