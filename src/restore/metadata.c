/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a namespace: Extended JSON with the options of the collection and its indexes.
 *
 * The options are those that listCollections returned. `create` accepts them unchanged, except some
 * that only old servers support. The validator is set after the load, because the dump may contain
 * documents that it would refuse: documents stored before the validator existed, or while it only
 * warned. expireAfterSeconds of clustered and time-series collections is also set after the load:
 * otherwise the server would remove documents before they have been counted. */
#include "dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "bson/extjson.h"
#include "format/format.h"
#include "format/simd.h"
#include "source/source.h"
#include "util/hash.h"

#define METADATA_BYTES_MAX ((size_t)64 << 20)

bool sl_dump_head(const char *path, char *head, size_t room, size_t *length, bool *whole,
                  sl_error *error) {
    sl_source_set *set = NULL;
    bool ok = sl_source_set_create(&path, 1, NULL, &set, error) &&
              sl_source_head(set, 0, head, room, length, whole, NULL, error);
    sl_source_set_destroy(set);
    return ok;
}

bool sl_dump_open_documents(const char *path, sl_source_set **set, sl_reader **reader,
                            sl_error *error) {
    bool lines;
    *reader = NULL;
    if (!sl_source_set_create(&path, 1, NULL, set, error))
        return false;
    sl_source_set_splitter(*set, 0, sl_format_bson.splitter(NULL, &lines), NULL, false);
    return sl_reader_create(*set, reader, error);
}

/* ---- options ---- */

static bool is_among(const char *name, const char *const *names) {
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static bool take_options(sl_namespace *item, const bson_t *options, const char *name,
                         sl_error *error) {
    /* Options of servers before 4.0, and options that the server sets itself. */
    static const char *const dropped[] = {"autoIndexId", "flags", "temp", "uuid", "create", NULL};
    static const char *const later[] = {"validator", "validationLevel", "validationAction",
                                        "expireAfterSeconds", NULL};
    bson_iter_t iter;
    for (bool ok = bson_iter_init(&iter, options); ok && bson_iter_next(&iter);) {
        const char *key = bson_iter_key(&iter);
        if (strcmp(key, "autoIndexId") == 0 && !bson_iter_as_bool(&iter))
            return sl_error_set(error, SL_EXIT_SOURCE,
                                "%s: the option autoIndexId: false, a collection without an index "
                                "of _id, is not supported by servers since 4.0; remove it from "
                                "the file to restore the collection with that index",
                                name);
        if (is_among(key, dropped))
            continue;
        bson_t *to = is_among(key, later) ? item->later : item->options;
        if (!bson_append_iter(to, key, -1, &iter))
            return sl_error_memory(error, "reading metadata");
        item->capped = item->capped || (strcmp(key, "capped") == 0 && bson_iter_as_bool(&iter));
        item->collated = item->collated || strcmp(key, "collation") == 0;
        if (strcmp(key, "viewOn") == 0)
            item->kind = SL_NAMESPACE_VIEW;
        else if (strcmp(key, "timeseries") == 0)
            item->kind = SL_NAMESPACE_TIME_SERIES;
    }
    return true;
}

/* ---- indexes ---- */

/* Is it the index of _id, or the clustered index? Both are created with the collection. */
static bool is_id_index(const bson_t *index) {
    bson_t key;
    return sl_look_flag(index, "clustered") ||
           (sl_look_inside(index, "key", &key) && bson_count_keys(&key) == 1 &&
            sl_look_int64(&key, "_id", 0) == 1);
}

static bool append_index(sl_namespace *item, const bson_t *index) {
    char number[16];
    bson_t made;
    snprintf(number, sizeof number, "%u", item->index_count);
    bool ok = BSON_APPEND_DOCUMENT_BEGIN(item->indexes, number, &made);
    bson_iter_t iter;
    for (bool more = ok && bson_iter_init(&iter, index); ok && more && bson_iter_next(&iter);) {
        if (strcmp(bson_iter_key(&iter), "ns") != 0) /* the namespace, which servers before 4.4
                                                        include */
            ok = bson_append_iter(&made, bson_iter_key(&iter), -1, &iter);
    }
    /* An index without collation in the dump has the simple collation. `createIndexes` would give
     * it the collation of the collection. */
    if (ok && item->collated && !bson_has_field(index, "collation")) {
        bson_t simple = BSON_INITIALIZER;
        ok = BSON_APPEND_UTF8(&simple, "locale", "simple") &&
             BSON_APPEND_DOCUMENT(&made, "collation", &simple);
        bson_destroy(&simple);
    }
    ok = ok && bson_append_document_end(item->indexes, &made);
    item->index_count += ok;
    return ok;
}

static bool take_indexes(sl_namespace *item, bson_iter_t *field, const char *name,
                         sl_error *error) {
    bson_iter_t iter;
    if (!BSON_ITER_HOLDS_ARRAY(field) || !bson_iter_recurse(field, &iter))
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: \"indexes\" is not an array", name);
    while (bson_iter_next(&iter)) {
        bson_t index;
        if (!sl_document_at(&iter, &index))
            return sl_error_set(error, SL_EXIT_SOURCE, "%s: index %s is not an object", name,
                                bson_iter_key(&iter));
        if (!bson_has_field(&index, "key") || !bson_has_field(&index, "name"))
            return sl_error_set(error, SL_EXIT_SOURCE, "%s: index %s has no key or no name", name,
                                bson_iter_key(&iter));
        if (!is_id_index(&index) && !append_index(item, &index))
            return sl_error_memory(error, "reading metadata");
    }
    return true;
}

/* ---- the text ---- */

static bool take_fields(sl_namespace *item, const bson_t *document, const char *name,
                        sl_error *error) {
    bson_iter_t iter;
    const char *own_name = sl_look_text(document, "collectionName");
    if (own_name) {
        char *collection = strdup(own_name);
        if (!collection)
            return sl_error_memory(error, "reading metadata");
        free(item->collection);
        item->collection = collection;
    }
    if (bson_iter_init_find(&iter, document, "options")) {
        bson_t options;
        if (!sl_document_at(&iter, &options))
            return sl_error_set(error, SL_EXIT_SOURCE, "%s: \"options\" is not an object", name);
        if (!take_options(item, &options, name, error))
            return false;
    }
    return !bson_iter_init_find(&iter, document, "indexes") ||
           take_indexes(item, &iter, name, error);
}

bool sl_metadata_parse(sl_namespace *item, const char *name, const char *text, size_t length,
                       sl_error *error) {
    const sl_simd *simd;
    sl_extjson *parser = NULL;
    const char *end = text + length, *after;
    while (end > text && strchr(" \t\r\n", end[-1]))
        end--;
    while (text < end && strchr(" \t\r\n", *text))
        text++;
    if (text == end || *text != '{' || end[-1] != '}')
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: metadata must be one JSON object", name);
    size_t room = 2 * (size_t)(end - text) + 4096 + SL_EXTJSON_MARGIN;
    uint8_t *bytes = NULL, *written;
    bool own_id;
    if (!sl_simd_choose(&simd, error) ||
        !sl_extjson_create(sl_simd_name(simd), sl_simd_utf8_valid(simd), &parser, error))
        return false;
    sl_extjson_status status = SL_EXTJSON_NO_ROOM;
    while (status == SL_EXTJSON_NO_ROOM) {
        free(bytes);
        bytes = malloc(room + SL_SLACK);
        if (!bytes)
            break;
        status = sl_extjson_document(parser, text, end, NULL, bytes, bytes + room, &after, &written,
                                     &own_id);
        room *= 2;
    }
    bson_t document;
    bool ok = bytes || sl_error_memory(error, "reading metadata");
    if (ok && status == SL_EXTJSON_INVALID) {
        const sl_extjson_fault *why = sl_extjson_why(parser);
        ok = sl_error_set(error, SL_EXIT_SOURCE, "%s, byte %zu: %s", name, (size_t)(why->at - text),
                          why->reason);
    }
    if (ok && after != end)
        ok = sl_error_set(error, SL_EXIT_SOURCE, "%s, byte %zu: text follows the object", name,
                          (size_t)(after - text));
    ok = ok && bson_init_static(&document, bytes, (size_t)(written - bytes)) &&
         take_fields(item, &document, name, error);
    free(bytes);
    sl_extjson_destroy(parser);
    return ok;
}

bool sl_metadata_read(sl_namespace *item, sl_error *error) {
    size_t room = 65536, length = 0;
    bool whole = false;
    char *text = NULL;
    if (!item->metadata)
        return true;
    for (; !whole && room <= METADATA_BYTES_MAX; room *= 8) {
        free(text);
        text = malloc(room + SL_SLACK);
        if (!text)
            return sl_error_memory(error, "reading metadata");
        if (!sl_dump_head(item->metadata, text, room, &length, &whole, error)) {
            free(text);
            return false;
        }
    }
    item->metadata_hash = sl_hash_text(text, length);
    bool ok = whole ? sl_metadata_parse(item, item->metadata, text, length, error)
                    : sl_error_set(error, SL_EXIT_SOURCE, "%s: larger than %zu MiB", item->metadata,
                                   METADATA_BYTES_MAX >> 20);
    free(text);
    return ok;
}
