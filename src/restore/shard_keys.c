/* SPDX-License-Identifier: Apache-2.0 */
/* Reads --shard-keys. */
#include "shard_keys.h"

#include "cluster/presplit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "util/grow.h"
#include "util/yaml_limits.h"

#define FILE_BYTES_MAX ((size_t)16 << 20)

typedef struct reader {
    yaml_document_t *document;
    const char *path;
    sl_error *error;
} reader;

static bool fail(const reader *r, const yaml_node_t *node, const char *what) {
    return sl_error_set(r->error, SL_EXIT_USAGE, "%s:%zu: %s", r->path,
                        node ? node->start_mark.line + 1 : (size_t)1, what);
}

static sl_text text_of(const yaml_node_t *node) {
    if (!node || node->type != YAML_SCALAR_NODE)
        return (sl_text){"", 0};
    return (sl_text){(const char *)node->data.scalar.value, node->data.scalar.length};
}

static bool is(sl_text text, const char *word) {
    return sl_text_equal(text, sl_text_of(word));
}

static bool read_key(const reader *r, const yaml_node_t *node, bson_t *key) {
    bool hashed = false;
    if (!node || node->type != YAML_MAPPING_NODE ||
        node->data.mapping.pairs.start == node->data.mapping.pairs.top)
        return fail(r, node, "key must be a mapping, such as {customer: 1} or {_id: hashed}");
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *field = yaml_document_get_node(r->document, pair->key);
        sl_text name = text_of(field);
        sl_text value = text_of(yaml_document_get_node(r->document, pair->value));
        if (name.length == 0 || name.length > 1000 || memchr(name.bytes, 0, name.length))
            return fail(r, field, "a field of a key has no name");
        if (bson_iter_init_find_w_len(&(bson_iter_t){0}, key, name.bytes, (int)name.length))
            return fail(r, field, "a key has the same field twice");
        if (is(value, "hashed") && !hashed)
            bson_append_utf8(key, name.bytes, (int)name.length, "hashed", -1);
        else if (is(value, "1"))
            bson_append_int32(key, name.bytes, (int)name.length, 1);
        else
            return fail(r, field,
                        "a field of a key must be 1 or hashed, and only one may be "
                        "hashed");
        hashed = hashed || is(value, "hashed");
    }
    return true;
}

static bool read_entry(const reader *r, const yaml_node_t *name, const yaml_node_t *node,
                       sl_shard_entry *entry) {
    sl_text text = text_of(name);
    const char *dot = memchr(text.bytes, '.', text.length);
    if (!dot || dot == text.bytes || dot == text.bytes + text.length - 1)
        return fail(r, name, "expected DATABASE.COLLECTION");
    if (!node || node->type != YAML_MAPPING_NODE)
        return fail(r, name, "expected {key: {...}}");
    entry->name = strndup(text.bytes, text.length);
    entry->key = bson_new();
    if (!entry->name || !entry->key)
        return sl_error_memory(r->error, "reading --shard-keys");
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *word = yaml_document_get_node(r->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(r->document, pair->value);
        if (is(text_of(word), "key") && bson_empty(entry->key)) {
            if (!read_key(r, value, entry->key))
                return false;
        } else if (is(text_of(word), "unique") &&
                   (is(text_of(value), "true") || is(text_of(value), "false"))) {
            entry->unique = is(text_of(value), "true");
        } else {
            return fail(r, word, "expected one key, and unique: true or false");
        }
    }
    if (bson_empty(entry->key))
        return fail(r, name, "the key is missing");
    return !entry->unique || !sl_shard_key_is_hashed(entry->key) ||
           fail(r, name, "a hashed key cannot be unique");
}

bool sl_shard_keys_parse(sl_shard_keys *keys, const char *path, sl_text text, sl_error *error) {
    yaml_document_t document;
    reader r = {&document, path, error};
    if (!sl_yaml_read_document(text, path, &document, error))
        return false;
    const yaml_node_t *root = yaml_document_get_root_node(&document);
    bool ok = (root && root->type == YAML_MAPPING_NODE) ||
              fail(&r, root, "expected a mapping: DATABASE.COLLECTION: {key: {...}}");
    for (const yaml_node_pair_t *pair = ok ? root->data.mapping.pairs.start : NULL;
         ok && pair < root->data.mapping.pairs.top; pair++) {
        sl_shard_entry *items = sl_grow(keys->items, keys->count, &keys->room, sizeof *items);
        if (!items) {
            ok = sl_error_memory(error, "reading --shard-keys");
            break;
        }
        keys->items = items;
        items[keys->count] = (sl_shard_entry){0};
        keys->count++;
        const yaml_node_t *name = yaml_document_get_node(&document, pair->key);
        ok = read_entry(&r, name, yaml_document_get_node(&document, pair->value),
                        &items[keys->count - 1]);
        for (size_t i = 0; ok && i + 1 < keys->count; i++) {
            if (strcmp(items[i].name, items[keys->count - 1].name) == 0)
                ok = fail(&r, name, "the namespace occurs twice");
        }
    }
    yaml_document_delete(&document);
    return ok;
}

bool sl_shard_keys_read(sl_shard_keys *keys, const char *path, sl_error *error) {
    FILE *file = fopen(path, "rb");
    char *text = malloc(FILE_BYTES_MAX + 1);
    size_t length = file && text ? fread(text, 1, FILE_BYTES_MAX + 1, file) : 0;
    bool ok = text || sl_error_memory(error, "reading --shard-keys");
    if (ok && (!file || ferror(file) || length > FILE_BYTES_MAX))
        ok = sl_error_set(error, SL_EXIT_USAGE, "--shard-keys %s: %s", path,
                          length > FILE_BYTES_MAX ? "larger than 16 MiB" : "cannot be read");
    if (file)
        fclose(file);
    ok = ok && sl_shard_keys_parse(keys, path, (sl_text){text, length}, error);
    free(text);
    return ok;
}

void sl_shard_keys_clear(sl_shard_keys *keys) {
    for (size_t i = 0; i < keys->count; i++) {
        free(keys->items[i].name);
        bson_destroy(keys->items[i].key);
    }
    free(keys->items);
    *keys = (sl_shard_keys){0};
}

bool sl_shard_keys_apply(const sl_shard_keys *keys, sl_dump *dump, sl_error *error) {
    for (size_t k = 0; k < keys->count; k++) {
        const sl_shard_entry *entry = &keys->items[k];
        sl_namespace *found = NULL;
        for (size_t i = 0; !found && i < dump->count; i++) {
            sl_namespace *item = &dump->items[i];
            size_t length = item->left_out ? 0 : strlen(item->to_database);
            if (!item->left_out && strncmp(entry->name, item->to_database, length) == 0 &&
                entry->name[length] == '.' &&
                strcmp(entry->name + length + 1, item->to_collection) == 0)
                found = item;
        }
        if (!found)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--shard-keys: %s is not restored; give the names that the "
                                "collections have on the server",
                                entry->name);
        if (found->kind == SL_NAMESPACE_VIEW || found->capped)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--shard-keys: %s is a %s, which cannot be sharded", entry->name,
                                found->capped ? "capped collection" : "view");
        found->shard_key = entry->key;
        found->shard_unique = entry->unique;
    }
    return true;
}
