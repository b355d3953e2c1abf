/* SPDX-License-Identifier: Apache-2.0 */
/* The namespaces of an archive, and the list of its unpacked files, with which a resumed restore
 * finds them. The list is one BSON document, written when all files are complete and synced. */
#include "dump.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "report/run_record.h"
#include "util/private_file.h"
#include "util/read_file.h"
#include "util/text.h"

#include "patterns.h"

#define LIST "list.bson"

/* ---- namespaces ---- */

bool sl_dump_add_item(sl_dump *dump, const char *database, const char *collection,
                      const char *metadata, sl_error *error) {
    sl_namespace *item = sl_dump_get(dump, database, collection);
    size_t length = strlen(metadata);
    char *text = item ? calloc(1, length + SL_SLACK) : NULL, name[600];
    if (!text)
        return sl_error_memory(error, "listing the dump");
    memcpy(text, metadata, length);
    free(item->metadata);
    item->metadata = text;
    snprintf(name, sizeof name, "metadata of %s.%s", database, collection);
    if (length > 0 && !sl_metadata_parse(item, name, text, length, error))
        return false;
    size_t prefix = strlen(SL_BUCKETS);
    if (item->kind == SL_NAMESPACE_TIME_SERIES &&
        strncmp(item->collection, SL_BUCKETS, prefix) == 0)
        memmove(item->collection, item->collection + prefix, strlen(item->collection + prefix) + 1);
    return true;
}

sl_namespace *sl_dump_find_item(const sl_dump *dump, const char *database, const char *collection) {
    size_t prefix = strlen(SL_BUCKETS);
    if (strncmp(collection, SL_BUCKETS, prefix) == 0) {
        sl_namespace *item = sl_dump_find(dump, database, collection + prefix);
        if (item && item->kind == SL_NAMESPACE_TIME_SERIES)
            return item;
    }
    return sl_dump_find(dump, database, collection);
}

/* ---- the list ---- */

bool sl_dump_write_list(const sl_dump *dump, const char *folder, sl_error *error) {
    bson_t list = BSON_INITIALIZER, array, one;
    char path[600];
    BSON_APPEND_ARRAY_BEGIN(&list, "items", &array);
    for (size_t i = 0; i < dump->count; i++) {
        const sl_namespace *item = &dump->items[i];
        sl_record_begin_item(&array, i, &one);
        BSON_APPEND_UTF8(&one, "db", item->database);
        BSON_APPEND_UTF8(&one, "collection", item->collection);
        BSON_APPEND_UTF8(&one, "metadata", item->metadata ? item->metadata : "");
        if (item->data)
            BSON_APPEND_UTF8(&one, "data", item->data);
        BSON_APPEND_INT64(&one, "bytes", (int64_t)item->data_bytes);
        BSON_APPEND_BOOL(&one, "leftOut", item->left_out);
        bson_append_document_end(&array, &one);
    }
    bson_append_array_end(&list, &array);
    BSON_APPEND_ARRAY_BEGIN(&list, "notes", &array);
    for (size_t i = 0; i < dump->note_count; i++) {
        sl_record_begin_item(&array, i, &one);
        BSON_APPEND_UTF8(&one, "what", dump->notes[i].what);
        BSON_APPEND_UTF8(&one, "why", dump->notes[i].why);
        BSON_APPEND_BOOL(&one, "lost", dump->notes[i].lost);
        bson_append_document_end(&array, &one);
    }
    bool ok = bson_append_array_end(&list, &array) || sl_error_memory(error, "listing the dump");
    snprintf(path, sizeof path, "%s/" LIST, folder);
    ok = ok && sl_private_file_replace(path, (const char *)bson_get_data(&list), list.len, error);
    bson_destroy(&list);
    return ok;
}

/* Sets the item's file to that of the name of `path` in `folder`. A list that somebody changed must
 * not lead to another folder: the files are removed after use. */
static bool set_data(sl_namespace *item, const char *folder, const char *path, sl_error *error) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || strcmp(name + digits, ".bson") != 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s/" LIST " is damaged: it has the file %s; start again with another "
                            "--work-dir",
                            folder, path);
    free(item->data);
    if (asprintf(&item->data, "%s/%s", folder, name) >= 0)
        return true;
    item->data = NULL;
    return sl_error_memory(error, "reading the list");
}

static bool take_item(sl_dump *dump, const char *folder, const bson_t *one, sl_error *error) {
    const char *database = sl_look_string(one, "db"),
               *collection = sl_look_string(one, "collection");
    const char *data = sl_look_string(one, "data");
    if (!sl_dump_add_item(dump, database, collection, sl_look_string(one, "metadata"), error))
        return false;
    sl_namespace *item = sl_dump_find_item(dump, database, collection);
    if (!item)
        return sl_error_memory(error, "reading the list");
    if (data[0] && !set_data(item, folder, data, error))
        return false;
    item->data_bytes = (uint64_t)sl_look_int64(one, "bytes", (int64_t)item->data_bytes);
    item->unpacked = true;
    item->left_out = sl_look_flag(one, "leftOut");
    return true;
}

static bool take_note(sl_dump *dump, const char *folder, const bson_t *one, sl_error *error) {
    (void)folder;
    return sl_dump_note_add(dump, sl_look_string(one, "what"), sl_look_flag(one, "lost"),
                            sl_look_string(one, "why"), error);
}

static bool take_array(sl_dump *dump, const char *folder, const bson_t *list, const char *name,
                       bool (*take)(sl_dump *dump, const char *folder, const bson_t *one,
                                    sl_error *error),
                       sl_error *error) {
    bson_iter_t iter, items;
    bool ok = bson_iter_init_find(&iter, list, name) && bson_iter_recurse(&iter, &items);
    if (!ok)
        return sl_error_set(error, SL_EXIT_SOURCE, "the list of unpacked files is damaged");
    while (ok && bson_iter_next(&items)) {
        bson_t one;
        ok = sl_document_at(&items, &one) && take(dump, folder, &one, error);
    }
    return ok;
}

/* A namespace that was left out when the archive was unpacked has no file. */
static bool apply_names(sl_dump *dump, const sl_name_options *names, sl_error *error) {
    bool *left_out = calloc(dump->count + 1, sizeof *left_out);
    if (!left_out)
        return sl_error_memory(error, "listing the dump");
    for (size_t i = 0; i < dump->count; i++)
        left_out[i] = dump->items[i].left_out;
    bool ok = sl_names_apply(names, dump, error);
    for (size_t i = 0; ok && i < dump->count; i++) {
        const sl_namespace *item = &dump->items[i];
        if (left_out[i] && !item->left_out)
            ok = sl_error_set(error, SL_EXIT_USAGE,
                              "--resume: %s.%s was left out when the archive was unpacked: give "
                              "the --ns-include and --ns-exclude of the first run",
                              item->database, item->collection);
    }
    free(left_out);
    return ok;
}

bool sl_dump_read_list(sl_dump *dump, const char *folder, const sl_name_options *names, bool *found,
                       sl_error *error) {
    char path[600];
    snprintf(path, sizeof path, "%s/" LIST, folder);
    sl_text text;
    bson_t list;
    *found = access(path, F_OK) == 0;
    if (!*found)
        return errno == ENOENT || sl_error_errno(error, SL_EXIT_SOURCE, "%s", path);
    if (!sl_private_file_read(path, INT32_MAX, SL_EXIT_SOURCE, &text, error))
        return false;
    bool valid = bson_init_static(&list, (const uint8_t *)text.bytes, text.length) &&
                 sl_document_is_sound(&list);
    bool ok = valid ? take_array(dump, folder, &list, "items", take_item, error) &&
                          take_array(dump, folder, &list, "notes", take_note, error) &&
                          apply_names(dump, names, error)
                    : sl_error_set(error, SL_EXIT_SOURCE,
                                   "%s cannot be read: start again with another --work-dir", path);
    free((char *)text.bytes);
    return ok;
}
