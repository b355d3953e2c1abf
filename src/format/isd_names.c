/* SPDX-License-Identifier: Apache-2.0 */
/* Name maps: rename the keys of ISD documents, by YAML. */
#include "isd_plan.h"

#include "util/yaml_reader.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct renaming {
    const char *path;
    const char *name;
    yaml_mark_t mark; /* of the name */
} renaming;

struct sl_isd_names {
    char *file;
    yaml_document_t document; /* owns the strings */
    renaming *renamings;
    size_t count;
    char **paths; /* passed to sl_isd_name so far, without duplicates; owned */
    size_t path_count;
    bool out_of_memory;
};

static bool take_pair(sl_yaml *r, const yaml_node_t *key, const yaml_node_t *value, void *into) {
    sl_isd_names *names = into;
    renaming new = {sl_yaml_word(key), sl_yaml_word(value), value->start_mark};
    if (!new.path)
        return sl_yaml_expected(r, key, "the path of a key");
    if (!new.name || strlen(new.name) > SL_ISD_NAME_BYTES_MAX || strpbrk(new.name, ".$") ||
        !sl_utf8_valid(new.name, strlen(new.name), NULL))
        return sl_yaml_expected(r, value,
                                "a name of at most 46 bytes without dots and dollar signs");
    names->renamings[names->count++] = new;
    return true;
}

static bool read_pairs(sl_isd_names *names, sl_yaml *r, const yaml_node_t *node) {
    names->renamings = calloc(sl_yaml_length(node) + 1, sizeof *names->renamings);
    if (!names->renamings)
        return sl_error_memory(r->error, "reading a name map");
    return sl_yaml_each(r, node, "a mapping of key paths to new names", take_pair, names);
}

bool sl_isd_names_read(sl_text yaml, const char *source, sl_isd_names **out, sl_error *error) {
    sl_yaml r = {.text = yaml, .file = source, .code = SL_EXIT_USAGE, .error = error};
    const yaml_node_t *root = NULL, *map = NULL, *unknown = NULL, *key, *value;
    *out = NULL;
    sl_isd_names *names = calloc(1, sizeof *names);
    if (names)
        names->file = strdup(source);
    if (!names || !names->file) {
        free(names);
        return sl_error_memory(error, "reading a name map");
    }
    bool ok = sl_yaml_read(&r, &root);
    names->document = r.document;
    for (size_t i = 0; root && sl_yaml_pair(&r, root, i, &key, &value); i++) {
        if (sl_yaml_is(key, "names"))
            map = value;
        else if (!sl_yaml_is(key, "name"))
            unknown = key;
    }
    if (map)
        ok = unknown ? sl_yaml_expected(&r, unknown, "one of the keys name, names")
                     : read_pairs(names, &r, map);
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
    free(names->file);
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
    sl_yaml r = {.file = names->file, .code = SL_EXIT_USAGE, .error = error};
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
        char shown[80];
        sl_text_printable(sl_text_of(known ? new->name : new->path), shown, sizeof shown);
        if (!known)
            return sl_yaml_fail(&r, new->mark,
                                "expected the path of a key of ISD documents, found \"%s\"", shown);
        if (taken)
            return sl_yaml_fail(&r, new->mark,
                                "expected a name that no other key of the document has; \"%s\" is "
                                "in use",
                                shown);
    }
    return true;
}
