/* SPDX-License-Identifier: Apache-2.0 */
/* Reads --shard-keys. */
#include "shard_keys.h"

#include "cluster/presplit.h"

#include <stdlib.h>
#include <string.h>

#include "util/grow.h"
#include "util/read_file.h"
#include "util/yaml_reader.h"

static bool fail(sl_yaml *r, const yaml_node_t *node, const char *what) {
    return sl_yaml_fail(r, node->start_mark, "%s", what);
}

static bool read_field(sl_yaml *r, const yaml_node_t *field, const yaml_node_t *value,
                       void *into /* bson_t * */) {
    bson_t *key = into;
    sl_text name = sl_yaml_text(field);
    bool hashed = sl_yaml_is(value, "hashed");
    if (!sl_yaml_word(field) || name.length > 1000)
        return fail(r, field, "a field of a key has no name");
    if (hashed && !sl_shard_key_is_hashed(key))
        bson_append_utf8(key, name.bytes, (int)name.length, "hashed", -1);
    else if (sl_yaml_is(value, "1"))
        bson_append_int32(key, name.bytes, (int)name.length, 1);
    else
        return fail(r, field, "a field of a key must be 1 or hashed, and only one may be hashed");
    return true;
}

static bool read_part(sl_yaml *r, const yaml_node_t *word, const yaml_node_t *value,
                      void *into /* sl_shard_entry * */) {
    sl_shard_entry *entry = into;
    size_t fields;
    if (sl_yaml_is(word, "key"))
        return sl_yaml_count(r, value, YAML_MAPPING_NODE,
                             "a mapping as the key, such as {customer: 1} or {_id: hashed}",
                             &fields) &&
               sl_yaml_each(r, value, "", read_field, entry->key);
    entry->unique = sl_yaml_is(value, "true");
    return (sl_yaml_is(word, "unique") && (entry->unique || sl_yaml_is(value, "false"))) ||
           fail(r, word, "expected one key, and unique: true or false");
}

static bool read_entry(sl_yaml *r, const yaml_node_t *name, const yaml_node_t *node,
                       void *into /* sl_shard_keys * */) {
    sl_shard_keys *keys = into;
    sl_text text = sl_yaml_text(name);
    const char *dot = memchr(text.bytes, '.', text.length);
    sl_shard_entry *items = sl_grow(keys->items, keys->count, &keys->room, sizeof *items);
    if (!items)
        return sl_error_memory(r->error, "reading --shard-keys");
    keys->items = items;
    sl_shard_entry *entry = &items[keys->count++];
    *entry = (sl_shard_entry){.name = strndup(text.bytes, text.length), .key = bson_new()};
    if (!entry->name || !entry->key)
        return sl_error_memory(r->error, "reading --shard-keys");
    if (!dot || dot == text.bytes || dot == text.bytes + text.length - 1)
        return fail(r, name, "expected DATABASE.COLLECTION");
    if (!sl_yaml_each(r, node, "{key: {...}}", read_part, entry))
        return false;
    if (bson_empty(entry->key))
        return fail(r, name, "the key is missing");
    return !entry->unique || !sl_shard_key_is_hashed(entry->key) ||
           fail(r, name, "a hashed key cannot be unique");
}

bool sl_shard_keys_parse(sl_shard_keys *keys, const char *path, sl_text text, sl_error *error) {
    static const char expected[] = "a mapping: DATABASE.COLLECTION: {key: {...}}";
    sl_yaml r = {.text = text, .file = path, .code = SL_EXIT_USAGE, .error = error};
    const yaml_node_t *root;
    if (!sl_yaml_read(&r, &root))
        return false;
    bool ok = root ? sl_yaml_each(&r, root, expected, read_entry, keys)
                   : sl_error_set(error, SL_EXIT_USAGE, "%s: expected %s", path, expected);
    yaml_document_delete(&r.document);
    return ok;
}

bool sl_shard_keys_read(sl_shard_keys *keys, const char *path, sl_error *error) {
    sl_text text;
    if (!sl_read_file(path, SL_YAML_BYTES_MAX, SL_EXIT_USAGE, &text, error))
        return sl_error_prefix(error, "--shard-keys %s", path);
    bool ok = sl_shard_keys_parse(keys, path, text, error);
    free((char *)text.bytes);
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
