/* SPDX-License-Identifier: Apache-2.0 */
/* Name maps: rename the keys of ISD documents, by YAML. */
#include "isd_plan.h"

#include "util/yaml_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

typedef struct renaming {
    const char *path;
    const char *name;
    size_t line, column; /* of the name, from 1 */
} renaming;

struct sl_isd_names {
    char *source;
    yaml_document_t document; /* owns the strings */
    renaming *renamings;
    size_t count;
    char **paths; /* passed to sl_isd_name so far, without duplicates; owned */
    size_t path_count;
    bool out_of_memory;
};

static const char *scalar(const yaml_node_t *node) {
    if (!node || node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0 ||
        strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
        return NULL;
    return (const char *)node->data.scalar.value;
}

static bool report(const sl_isd_names *names, size_t line, size_t column, sl_error *error,
                   const char *expected) {
    return sl_error_set(error, SL_EXIT_USAGE, "%s:%zu:%zu: expected %s", names->source, line,
                        column, expected);
}

static bool report_node(const sl_isd_names *names, const yaml_node_t *node, sl_error *error,
                        const char *expected) {
    return report(names, node->start_mark.line + 1, node->start_mark.column + 1, error, expected);
}

static bool read_pairs(sl_isd_names *names, const yaml_node_t *node, sl_error *error) {
    if (node->type != YAML_MAPPING_NODE)
        return report_node(names, node, error, "a mapping of key paths to new names");
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    const yaml_node_pair_t *top = node->data.mapping.pairs.top;
    names->renamings = calloc((size_t)(top - pair) + 1, sizeof *names->renamings);
    if (!names->renamings)
        return sl_error_memory(error, "reading a name map");
    for (; pair < top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&names->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(&names->document, pair->value);
        renaming *new = &names->renamings[names->count++];
        *new = (renaming){scalar(key), scalar(value), value->start_mark.line + 1,
                          value->start_mark.column + 1};
        if (!new->path)
            return report_node(names, key, error, "the path of a key");
        if (!new->name || strlen(new->name) > SL_ISD_NAME_BYTES_MAX || strpbrk(new->name, ".$") ||
            !sl_utf8_valid(new->name, strlen(new->name), NULL))
            return report_node(names, value, error,
                               "a name of at most 46 bytes without dots and dollar signs");
        for (size_t i = 0; i + 1 < names->count; i++) {
            if (strcmp(names->renamings[i].path, new->path) == 0)
                return report_node(names, key, error, "each path once");
        }
    }
    return true;
}

bool sl_isd_names_read(sl_text yaml, const char *source, sl_isd_names **out, sl_error *error) {
    *out = NULL;
    sl_isd_names *names = calloc(1, sizeof *names);
    if (names)
        names->source = strdup(source);
    if (!names || !names->source) {
        free(names);
        return sl_error_memory(error, "reading a name map");
    }
    bool ok = sl_yaml_read_document(yaml, source, &names->document, error);
    const yaml_node_t *root = ok ? yaml_document_get_root_node(&names->document) : NULL;
    const yaml_node_t *map = NULL, *unknown = NULL;
    if (root && root->type == YAML_MAPPING_NODE) {
        for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
             pair < root->data.mapping.pairs.top; pair++) {
            const yaml_node_t *key = yaml_document_get_node(&names->document, pair->key);
            const char *word = scalar(key);
            if (word && strcmp(word, "names") == 0)
                map = yaml_document_get_node(&names->document, pair->value);
            else if (!word || strcmp(word, "name") != 0)
                unknown = key;
        }
    }
    if (map)
        ok = unknown ? report_node(names, unknown, error, "one of the keys name, names")
                     : read_pairs(names, map, error);
    if (ok && map)
        *out = names;
    else
        sl_isd_names_destroy(names);
    return ok;
}

void sl_isd_names_destroy(sl_isd_names *names) {
    if (!names)
        return;
    for (size_t i = 0; i < names->path_count; i++)
        free(names->paths[i]);
    free(names->paths);
    free(names->renamings);
    yaml_document_delete(&names->document);
    free(names->source);
    free(names);
}

/* The length of the path without its last key and the dot before it. */
static size_t parent_length(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? (size_t)(dot - path) : 0;
}

static const char *last_key(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static const char *name_of(const sl_isd_names *names, const char *path) {
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->renamings[i].path, path) == 0)
            return names->renamings[i].name;
    }
    return last_key(path);
}

const char *sl_isd_name(sl_isd_names *names, const char *path) {
    if (!names)
        return last_key(path);
    for (size_t i = 0; i < names->path_count; i++) {
        if (strcmp(names->paths[i], path) == 0)
            return name_of(names, path);
    }
    char **paths = realloc(names->paths, (names->path_count + 1) * sizeof *paths);
    if (paths)
        names->paths = paths;
    if (paths && (paths[names->path_count] = strdup(path)))
        names->path_count++;
    else
        names->out_of_memory = true;
    return name_of(names, path);
}

bool sl_isd_names_check(const sl_isd_names *names, sl_error *error) {
    if (!names)
        return true;
    if (names->out_of_memory)
        return sl_error_memory(error, "reading a name map");
    for (size_t i = 0; i < names->count; i++) {
        const renaming *new = &names->renamings[i];
        size_t parent = parent_length(new->path);
        bool known = false, taken = parent == 0 && strcmp(new->name, "_id") == 0;
        for (size_t k = 0; k < names->path_count; k++) {
            const char *path = names->paths[k];
            if (strcmp(path, new->path) == 0)
                known = true;
            else if (parent_length(path) == parent && strncmp(path, new->path, parent) == 0)
                taken |= strcmp(name_of(names, path), new->name) == 0;
        }
        char shown[80], expected[200];
        sl_text_printable(sl_text_of(known ? new->name : new->path), shown, sizeof shown);
        if (!known) {
            snprintf(expected, sizeof expected, "the path of a key of ISD documents, found \"%s\"",
                     shown);
            return report(names, new->line, new->column, error, expected);
        }
        if (taken) {
            snprintf(expected, sizeof expected,
                     "a name that no other key of the document has; \"%s\" is in use", shown);
            return report(names, new->line, new->column, error, expected);
        }
    }
    return true;
}
