/* SPDX-License-Identifier: Apache-2.0 */
/* Duplicates among documents with their own _ids, which have no order: they are read back by lists
 * of _ids, and found among the documents of the batch by a hash table of the bytes of _ids.
 *
 * A server also treats some _ids with different bytes as equal: 5 and 5.0, or, in a collection with
 * a collation, "a" and "A". Therefore a document that was refused, and whose _id is not found by
 * its bytes, is looked up individually.
 *
 * Of several documents of a batch with equal bytes at most one was inserted, now or by an earlier
 * attempt: the others are repetitions in the sources. */
#include "duplicates.h"

#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "util/hash.h"

#include "compare.h"

#define IDS_MOST 1000u                  /* looked up by one find */
#define ID_BYTES_MOST ((size_t)1 << 20) /* maximum of these ids, unless there is only one */
#define NONE UINT32_MAX
#define ATTEMPTS 4u /* to find a document that has been refused as a duplicate */

typedef struct id_text {
    const uint8_t *bytes; /* the type and the value */
    size_t length;
} id_text;

/* The documents of the batch by the bytes of their _ids. */
typedef struct id_table {
    sl_duplicates *duplicates;
    uint32_t *slots; /* the last document of each chain; a power of two */
    uint32_t mask;
    uint32_t *previous; /* per document: the one before it with the same slot, or NONE */
    bool *equal;        /* per document: it is stored */
} id_table;

/* The _id of a document: as the server stores it, its first element. */
static bool id_of(const bson_t *document, id_text *id) {
    bson_iter_t iter;
    if (!bson_iter_init(&iter, document) || !bson_iter_next(&iter) ||
        strcmp(bson_iter_key(&iter), "_id") != 0)
        return false;
    uint32_t from = bson_iter_offset(&iter);
    uint32_t end = bson_iter_next(&iter) ? bson_iter_offset(&iter) : document->len - 1;
    *id = (id_text){bson_get_data(document) + from, end - from};
    return true;
}

static bool same_id(const bson_t *a, const bson_t *b) {
    id_text x, y;
    return id_of(a, &x) && id_of(b, &y) && x.length == y.length &&
           memcmp(x.bytes, y.bytes, x.length) == 0;
}

static bool same_bytes(const bson_t *a, const bson_t *b) {
    return a->len == b->len && memcmp(bson_get_data(a), bson_get_data(b), a->len) == 0;
}

static void table_clear(id_table *table) {
    free(table->slots);
    free(table->previous);
    free(table->equal);
}

static bool table_create(id_table *table, sl_duplicates *duplicates) {
    uint32_t room = 16;
    while (room < 2 * duplicates->count)
        room *= 2;
    *table = (id_table){.duplicates = duplicates, .mask = room - 1};
    table->slots = malloc(room * sizeof *table->slots);
    table->previous = malloc(duplicates->count * sizeof *table->previous);
    table->equal = calloc(duplicates->count, sizeof *table->equal);
    if (!table->slots || !table->previous || !table->equal)
        return false;
    memset(table->slots, 0xFF, room * sizeof *table->slots);
    for (uint32_t i = 0; i < duplicates->count; i++) {
        id_text id;
        if (!id_of(duplicates->documents[i], &id))
            return false;
        uint32_t *slot = &table->slots[sl_hash(id.bytes, id.length) & table->mask];
        table->previous[i] = *slot;
        *slot = i;
    }
    return true;
}

static void keep_difference(sl_duplicates *duplicates, uint32_t index, const bson_t *found) {
    char text[SL_DIFFERENCE_ROOM];
    if (!duplicates->difference[index])
        duplicates->difference[index] = bson_strdup(
            sl_difference(bson_get_data(duplicates->documents[index]), found, text, sizeof text));
}

/* Compares a stored document with all marked documents of its _id. */
static void on_found(void *context, const bson_t *found) {
    id_table *table = context;
    sl_duplicates *duplicates = table->duplicates;
    id_text id;
    if (!id_of(found, &id))
        return;
    uint32_t i = table->slots[sl_hash(id.bytes, id.length) & table->mask];
    for (; i != NONE; i = table->previous[i]) {
        if (!duplicates->marked[i] || !same_id(duplicates->documents[i], found))
            continue;
        if (same_bytes(duplicates->documents[i], found))
            table->equal[i] = true;
        else
            keep_difference(duplicates, i, found);
    }
}

/* Can a server store a document with this _id? An _id that the server refuses need not be searched
 * for, and some of these must not be used as a value in a filter: {$a: 1} and undefined make the
 * filter fail, and a regular expression would match strings. The only embedded document that may
 * begin with $ is {$ref: ..., $id: ...}. */
static bool is_storable(const bson_iter_t *id) {
    bson_iter_t field;
    switch (bson_iter_type(id)) {
    case BSON_TYPE_ARRAY:
    case BSON_TYPE_REGEX:
    case BSON_TYPE_UNDEFINED:
        return false;
    case BSON_TYPE_DOCUMENT:
        if (!bson_iter_recurse(id, &field) || !bson_iter_next(&field) ||
            bson_iter_key(&field)[0] != '$')
            return true;
        return strcmp(bson_iter_key(&field), "$ref") == 0 && bson_iter_next(&field) &&
               strcmp(bson_iter_key(&field), "$id") == 0;
    default:
        return true;
    }
}

/* Adds the document's _id to the array, which has *count elements, if it can be stored. */
static void append_id(bson_t *array, uint32_t *count, const bson_t *document) {
    char room[SL_ARRAY_KEY_ROOM];
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, "_id") || !is_storable(&iter))
        return;
    bson_append_iter(array, sl_array_key((*count)++, room), -1, &iter);
}

sl_scan_result sl_duplicates_scan(const sl_duplicates *duplicates, const uint32_t *list,
                                  uint32_t count, bool ids_only, mongoc_client_t *client,
                                  const sl_target *target,
                                  void (*each)(void *context, const bson_t *document),
                                  void *context, sl_error *error) {
    bson_t filter = BSON_INITIALIZER, id, in;
    uint32_t ids = 0;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &id);
    BSON_APPEND_ARRAY_BEGIN(&id, "$in", &in);
    for (uint32_t i = 0; i < count; i++)
        append_id(&in, &ids, duplicates->documents[list[i]]);
    bson_append_array_end(&id, &in);
    bson_append_document_end(&filter, &id);
    sl_scan_result result = sl_scan(client, target, &filter, ids_only, each, context, error);
    bson_destroy(&filter);
    return result;
}

/* Looks up all marked documents. */
static sl_scan_result look_up(id_table *table, mongoc_client_t *client, const sl_target *target,
                              sl_error *error) {
    const sl_duplicates *duplicates = table->duplicates;
    uint32_t list[IDS_MOST], count = 0;
    size_t bytes = 0;
    for (uint32_t i = 0; i <= duplicates->count; i++) {
        id_text id = {NULL, 0};
        bool marked =
            i < duplicates->count && duplicates->marked[i] && id_of(duplicates->documents[i], &id);
        bool full = count == IDS_MOST || bytes + id.length > ID_BYTES_MOST;
        if (count > 0 && (full || i == duplicates->count)) {
            sl_scan_result result = sl_duplicates_scan(duplicates, list, count, false, client,
                                                       target, on_found, table, error);
            if (result != SL_SCAN_DONE)
                return result;
            count = 0;
            bytes = 0;
        }
        if (marked) {
            list[count++] = i;
            bytes += id.length;
        }
    }
    return SL_SCAN_DONE;
}

/* ---- documents that were not found under the bytes of their _id ---- */

typedef struct one_search {
    sl_duplicates *duplicates;
    uint32_t index;
} one_search;

static void on_one(void *context, const bson_t *found) {
    const one_search *search = context;
    keep_difference(search->duplicates, search->index, found);
}

static bool is_lost(const id_table *table, uint32_t index) {
    const sl_duplicates *duplicates = table->duplicates;
    return duplicates->marked[index] && !table->equal[index] && !duplicates->difference[index];
}

/* Looks up one refused document. */
static sl_scan_result find_lost(const id_table *table, uint32_t index, mongoc_client_t *client,
                                const sl_target *target, sl_error *error) {
    sl_duplicates *duplicates = table->duplicates;
    one_search search = {duplicates, index};
    sl_scan_result result =
        sl_duplicates_scan(duplicates, &index, 1, false, client, target, on_one, &search, error);
    if (result != SL_SCAN_DONE || duplicates->difference[index])
        return result;
    bson_t id = BSON_INITIALIZER;
    uint32_t ids = 0;
    append_id(&id, &ids, duplicates->documents[index]);
    char *json = bson_as_relaxed_extended_json(&id, NULL);
    sl_error_set(error, SL_EXIT_CLUSTER,
                 "the server reports the _id %.200s as a duplicate, but no document is found under "
                 "it: that document has no majority yet, or was removed",
                 json ? json : "?");
    bson_free(json);
    bson_destroy(&id);
    return SL_SCAN_AGAIN;
}

/* ---- judging ---- */

/* Does another document of the batch, with equal bytes, count as the stored one? That is a document
 * that is not marked, since it has been inserted; otherwise the first of the marked documents. */
static bool is_repeated(const id_table *table, uint32_t index) {
    const sl_duplicates *duplicates = table->duplicates;
    id_text id;
    if (!id_of(duplicates->documents[index], &id))
        return false;
    uint32_t i = table->slots[sl_hash(id.bytes, id.length) & table->mask];
    for (; i != NONE; i = table->previous[i]) {
        if (i != index && (i < index || !duplicates->marked[i]) &&
            same_bytes(duplicates->documents[i], duplicates->documents[index]))
            return true;
    }
    return false;
}

static void judge(const id_table *table) {
    sl_duplicates *duplicates = table->duplicates;
    for (uint32_t i = 0; i < duplicates->count; i++) {
        if (!duplicates->marked[i])
            continue;
        if (table->equal[i]) { /* even if the cluster also holds a different document of this _id */
            bson_free(duplicates->difference[i]);
            duplicates->difference[i] = NULL;
            duplicates->repeated[i] = is_repeated(table, i);
        } else if (!duplicates->difference[i] && duplicates->missing) {
            duplicates->missing[i] = true;
        }
    }
}

sl_scan_result sl_duplicates_compare_by_id(sl_duplicates *duplicates, mongoc_client_t *client,
                                           const sl_target *target, sl_error *error) {
    id_table table;
    sl_scan_result result = SL_SCAN_FAILED;
    if (!table_create(&table, duplicates)) {
        table_clear(&table);
        sl_error_memory(error, "comparing duplicates");
        return SL_SCAN_FAILED;
    }
    /* A document that another thread has inserted may not be replicated to a majority yet, so the
     * search is repeated. If the documents were sent again instead, an earlier attempt would seem
     * to have stored them. */
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        result = look_up(&table, client, target, error);
        for (uint32_t i = 0;
             result == SL_SCAN_DONE && !duplicates->missing && i < duplicates->count; i++) {
            if (is_lost(&table, i))
                result = find_lost(&table, i, client, target, error);
        }
        if (result != SL_SCAN_AGAIN || !sl_backoff(attempt, NULL, NULL))
            break;
    }
    if (result == SL_SCAN_DONE)
        judge(&table);
    table_clear(&table);
    return result;
}
