/* SPDX-License-Identifier: Apache-2.0 */
/* Duplicates are read back and compared.
 *
 * Within a block ids ascend, and all stored documents between two of its ids belong to that block.
 * So one find per block, from its first duplicate to its last, is enough, and returns few other
 * documents. The ids of two blocks in one batch may lie far apart. */
#include "duplicates.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bson/bson_lookup.h"
#include "bson/bson_number.h"
#include "bson/bson_writer.h"
#include "report/json.h"
#include "util/document_id.h"
#include "util/hash.h"
#include "util/text.h"

#define DIFFERENCE_ROOM 400
#define SAMPLE 16u /* documents that are searched for first */

bool sl_duplicates_init(sl_duplicates *duplicates, const bson_t *const *documents, uint32_t count,
                        bool own_ids) {
    *duplicates = (sl_duplicates){.documents = documents, .count = count, .own_ids = own_ids};
    duplicates->marked = calloc(count, sizeof *duplicates->marked);
    duplicates->repeated = calloc(count, sizeof *duplicates->repeated);
    duplicates->difference = calloc(count, sizeof *duplicates->difference);
    return duplicates->marked && duplicates->repeated && duplicates->difference;
}

void sl_duplicates_clear(sl_duplicates *duplicates) {
    for (uint32_t i = 0; duplicates->difference && i < duplicates->count; i++)
        bson_free(duplicates->difference[i]);
    free(duplicates->difference);
    free(duplicates->missing);
    free(duplicates->repeated);
    free(duplicates->marked);
}

void sl_duplicates_mark(sl_duplicates *duplicates, uint32_t index) {
    duplicates->marked[index] = true;
}

/* ---- documents compared with stored ones ---- */

/* The merge of expected and found documents, both ascending by _id.
 *
 * An _id is unique on each shard only. Where the shard key is another field, the cluster can hold
 * several documents of one _id. So the documents found under an expected _id are classified when
 * the next _id arrives: if one of them equals the expected document, the others are extra;
 * otherwise the first one counts as the expected document with different content. */

int64_t sl_expected_id(const uint8_t *document) {
    uint64_t id;
    memcpy(&id, document + 9, sizeof id); /* after length, type and "_id" */
    return (int64_t)BSON_UINT64_FROM_LE(id);
}

/* The _id as a whole number, of any numeric type. False for an _id that no document of a load can
 * have: of another type, or not a whole number. */
static bool number_of_id(const bson_t *document, int64_t *id) {
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, "_id"))
        return false;
    sl_number number = sl_number_of(&iter);
    *id = number.value.integer;
    return number.kind == SL_NUMBER_INTEGER;
}

/* Classifies the next expected document, after all documents under its _id have been found. */
static void judge_next(sl_comparison *comparison) {
    const uint8_t *expected = comparison->expected;
    if (comparison->held)
        comparison->report(comparison->context, comparison->matched ? SL_EXTRA : SL_DIFFERENT,
                           comparison->matched ? NULL : expected, comparison->held);
    else if (!comparison->matched)
        comparison->report(comparison->context, SL_MISSING, expected, NULL);
    sl_compare_clear(comparison);
    comparison->expected += sl_bson_length(expected);
}

void sl_compare_found(sl_comparison *comparison, const bson_t *found) {
    int64_t id;
    bool is_number = number_of_id(found, &id);
    while (is_number && comparison->expected < comparison->end &&
           sl_expected_id(comparison->expected) < id)
        judge_next(comparison);
    is_number = is_number && comparison->expected < comparison->end &&
                sl_expected_id(comparison->expected) == id;
    if (is_number && !comparison->matched && found->len == sl_bson_length(comparison->expected) &&
        memcmp(bson_get_data(found), comparison->expected, found->len) == 0)
        comparison->matched = true;
    else if (is_number && !comparison->matched && !comparison->held)
        comparison->held = bson_copy(found);
    else
        comparison->report(comparison->context, SL_EXTRA, NULL, found);
}

void sl_compare_end(sl_comparison *comparison) {
    while (comparison->expected < comparison->end)
        judge_next(comparison);
}

void sl_compare_clear(sl_comparison *comparison) {
    bson_destroy(comparison->held);
    comparison->held = NULL;
    comparison->matched = false;
}

/* ---- differences in words ---- */

#define DEPTH_MAX 8 /* levels of nesting; deeper documents are compared as one value */
#define PATH_ROOM 300
#define VALUE_ROOM 80

typedef struct word_list {
    char *out;
    size_t room;
    size_t used;
} word_list;

static void append(word_list *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a difference, after a semicolon. `used` may exceed `room`: the text is truncated then. */
static void append(word_list *words, const char *format, ...) {
    va_list arguments;
    if (words->used >= words->room)
        return;
    if (words->used > 0)
        words->used += (size_t)snprintf(words->out + words->used, words->room - words->used, "; ");
    if (words->used >= words->room)
        return;
    va_start(arguments, format);
    words->used +=
        (size_t)vsnprintf(words->out + words->used, words->room - words->used, format, arguments);
    va_end(arguments);
}

static char *value_text(const bson_iter_t *value, char out[VALUE_ROOM]) {
    char *json = sl_json_value(value);
    sl_text_printable(sl_text_of(json ? json : "(not shown)"), out, VALUE_ROOM);
    free(json);
    return out;
}

static const char *type_name(const bson_iter_t *value) {
    switch (bson_iter_type(value)) {
    case BSON_TYPE_INT32:
        return "int32";
    case BSON_TYPE_INT64:
        return "int64";
    case BSON_TYPE_DOUBLE:
        return "double";
    case BSON_TYPE_DECIMAL128:
        return "decimal128";
    default:
        return "another type";
    }
}

static void compare_documents(word_list *words, const char *prefix, bson_iter_t expected,
                              bson_iter_t found, unsigned depth);

static void compare_values(word_list *words, const char *path, const bson_iter_t *expected,
                           const bson_iter_t *found, unsigned depth) {
    bson_iter_t inner_expected, inner_found;
    char is[VALUE_ROOM], should[VALUE_ROOM];
    if (sl_values_equal(expected, found))
        return;
    bool nested = bson_iter_type(expected) == bson_iter_type(found) &&
                  (BSON_ITER_HOLDS_DOCUMENT(expected) || BSON_ITER_HOLDS_ARRAY(expected));
    if (nested && depth < DEPTH_MAX && bson_iter_recurse(expected, &inner_expected) &&
        bson_iter_recurse(found, &inner_found)) {
        compare_documents(words, path, inner_expected, inner_found, depth + 1);
        return;
    }
    value_text(found, is);
    value_text(expected, should);
    if (strcmp(is, should) != 0)
        append(words, "%s is %s, not %s", path, is, should);
    else
        append(words, "%s is %s as %s, not as %s", path, is, type_name(found), type_name(expected));
}

/* Both iterators are before the first field of their documents. */
static void compare_documents(word_list *words, const char *prefix, bson_iter_t expected,
                              bson_iter_t found, unsigned depth) {
    char path[PATH_ROOM], key[PATH_ROOM];
    size_t before = words->used;
    for (bson_iter_t one = expected; bson_iter_next(&one);) {
        bson_iter_t other = found;
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", bson_iter_key(&one));
        if (bson_iter_find(&other, bson_iter_key(&one)))
            compare_values(words, path, &one, &other, depth);
        else
            append(words, "%s is missing", path);
    }
    for (bson_iter_t one = found; bson_iter_next(&one);) {
        bson_iter_t other = expected;
        if (bson_iter_find(&other, bson_iter_key(&one)))
            continue;
        sl_text_printable(sl_text_of(bson_iter_key(&one)), key, sizeof key);
        append(words, "%s%s%s is not expected", prefix, *prefix ? "." : "", key);
    }
    if (words->used == before)
        append(words, "%s%sthe fields are in another order", prefix, *prefix ? ": " : "");
}

char *sl_difference(const uint8_t *expected, const bson_t *found, char *out, size_t room) {
    word_list words = {.out = out, .room = room};
    bson_iter_t one, other;
    out[0] = '\0';
    if (bson_iter_init_from_data(&one, expected, sl_bson_length(expected)) &&
        bson_iter_init(&other, found))
        compare_documents(&words, "", one, other, 0);
    if (words.used >= room && room > 4)
        memcpy(out + room - 4, "...", 4);
    return out;
}

/* ---- documents with their own _ids ---- */

/* Duplicates among documents with their own _ids, which have no order: they are read back by lists
 * of _ids, and found among the documents of the batch by a hash table of the bytes of _ids.
 *
 * A server also treats some _ids with different bytes as equal: 5 and 5.0, or, in a collection with
 * a collation, "a" and "A". Therefore a document that was refused, and whose _id is not found by
 * its bytes, is looked up individually.
 *
 * Of several documents of a batch with equal bytes at most one was inserted, now or by an earlier
 * attempt: the others are repetitions in the sources. */

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
        uint32_t *slot =
            &table->slots[sl_seeded_hash(id.bytes, id.length, sl_process_seed()) & table->mask];
        table->previous[i] = *slot;
        *slot = i;
    }
    return true;
}

static void keep_difference(sl_duplicates *duplicates, uint32_t index, const bson_t *found) {
    char text[DIFFERENCE_ROOM];
    if (!duplicates->difference[index])
        duplicates->difference[index] = bson_strdup(
            sl_difference(bson_get_data(duplicates->documents[index]), found, text, sizeof text));
}

/* Compares a stored document with all marked documents of its _id. */
static void on_stored(void *context, const bson_t *found) {
    id_table *table = context;
    sl_duplicates *duplicates = table->duplicates;
    id_text id;
    if (!id_of(found, &id))
        return;
    uint32_t i = table->slots[sl_seeded_hash(id.bytes, id.length, sl_process_seed()) & table->mask];
    for (; i != NONE; i = table->previous[i]) {
        if (!duplicates->marked[i] || !same_id(duplicates->documents[i], found))
            continue;
        if (bson_equal(duplicates->documents[i], found))
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

/* Calls `each` for the stored documents that have the _ids of the `count` documents in `list`. */
static sl_scan_result scan_ids(const sl_duplicates *duplicates, const uint32_t *list,
                               uint32_t count, bool ids_only, mongoc_client_t *client,
                               const sl_target *target,
                               void (*each)(void *context, const bson_t *document), void *context,
                               sl_error *error) {
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
            sl_scan_result result =
                scan_ids(duplicates, list, count, false, client, target, on_stored, table, error);
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
        scan_ids(duplicates, &index, 1, false, client, target, on_one, &search, error);
    if (result != SL_SCAN_DONE || duplicates->difference[index])
        return result;
    bson_t id = BSON_INITIALIZER;
    uint32_t ids = 0;
    append_id(&id, &ids, duplicates->documents[index]);
    char *json = sl_document_json(&id);
    sl_error_set(error, SL_EXIT_CLUSTER,
                 "the server reports the _id %.200s as a duplicate, but no document is found under "
                 "it: that document has no majority yet, or was removed",
                 json ? json : "?");
    bson_free(json);
    bson_destroy(&id);
    return SL_SCAN_AGAIN;
}

/* Does another document of the batch, with equal bytes, count as the stored one? That is a document
 * that is not marked, since it has been inserted; otherwise the first of the marked documents. */
static bool is_repeated(const id_table *table, uint32_t index) {
    const sl_duplicates *duplicates = table->duplicates;
    id_text id;
    if (!id_of(duplicates->documents[index], &id))
        return false;
    uint32_t i = table->slots[sl_seeded_hash(id.bytes, id.length, sl_process_seed()) & table->mask];
    for (; i != NONE; i = table->previous[i]) {
        if (i != index && (i < index || !duplicates->marked[i]) &&
            bson_equal(duplicates->documents[i], duplicates->documents[index]))
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

/* As sl_duplicates_compare, for documents that have their own _id. */
static sl_scan_result compare_by_id(sl_duplicates *duplicates, mongoc_client_t *client,
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

/* ---- the documents of a batch ---- */

static const uint8_t *bytes_of(const sl_duplicates *duplicates, uint32_t index) {
    return bson_get_data(duplicates->documents[index]);
}

static void on_found(void *context, const bson_t *found) {
    sl_compare_found(context, found);
}

static void on_finding(void *context, sl_finding finding, const uint8_t *expected,
                       const bson_t *found) {
    sl_duplicates *duplicates = context;
    if (!expected)
        return; /* a document of another batch, or on another shard */
    while (bytes_of(duplicates, duplicates->at) != expected)
        duplicates->at++;
    if (!duplicates->marked[duplicates->at])
        return; /* refused for another reason */
    if (finding == SL_MISSING && duplicates->missing) {
        duplicates->missing[duplicates->at] = true;
        return;
    }
    if (finding == SL_MISSING) {
        duplicates->is_lost = true;
        duplicates->lost = sl_expected_id(expected);
        return;
    }
    char text[DIFFERENCE_ROOM];
    duplicates->difference[duplicates->at] =
        bson_strdup(sl_difference(expected, found, text, sizeof text));
}

/* Compares the documents `first` to `last` of the batch, which belong to one block. */
static sl_scan_result judge_run(sl_duplicates *duplicates, uint32_t first, uint32_t last,
                                mongoc_client_t *client, const sl_target *target, sl_error *error) {
    const uint8_t *from = bytes_of(duplicates, first), *to = bytes_of(duplicates, last);
    sl_comparison comparison = {.expected = from,
                                .end = to + sl_bson_length(to),
                                .report = on_finding,
                                .context = duplicates};
    duplicates->at = first;
    sl_scan_result result = sl_scan_range(client, target, sl_expected_id(from),
                                          sl_expected_id(to) + 1, on_found, &comparison, error);
    if (result == SL_SCAN_DONE)
        sl_compare_end(&comparison);
    else
        sl_compare_clear(&comparison);
    if (result == SL_SCAN_DONE && duplicates->is_lost) {
        sl_error_set(
            error, SL_EXIT_CLUSTER,
            "the server reports the _id %lld as a duplicate, but no document is found under "
            "it: that document is not replicated to a majority yet, or was removed",
            (long long)duplicates->lost);
        result = SL_SCAN_AGAIN;
    }
    return result;
}

sl_scan_result sl_duplicates_compare(sl_duplicates *duplicates, mongoc_client_t *client,
                                     const sl_target *target, sl_error *error) {
    sl_scan_result result = SL_SCAN_DONE;
    if (duplicates->own_ids)
        return compare_by_id(duplicates, client, target, error);
    for (uint32_t i = 0; result == SL_SCAN_DONE && i < duplicates->count; i++) {
        if (!duplicates->marked[i])
            continue;
        uint32_t first = i, last = i;
        int64_t id = sl_expected_id(bytes_of(duplicates, i));
        const int64_t block = id >> SL_BLOCK_BITS;
        for (uint32_t k = i + 1; k < duplicates->count; k++) {
            int64_t next = sl_expected_id(bytes_of(duplicates, k));
            if (next <= id || next >> SL_BLOCK_BITS != block)
                break;
            id = next;
            if (duplicates->marked[k])
                last = k;
        }
        result = judge_run(duplicates, first, last, client, target, error);
        i = last;
    }
    return result;
}

static void on_sample(void *context, const bson_t *found) {
    (void)found;
    *(bool *)context = true;
}

/* Is any document of a sample stored? The sample is spread evenly over the batch. */
static sl_scan_result find_sample(const sl_duplicates *duplicates, mongoc_client_t *client,
                                  const sl_target *target, bool *any, sl_error *error) {
    uint32_t list[SAMPLE];
    uint32_t sample = duplicates->count < SAMPLE ? duplicates->count : SAMPLE;
    for (uint32_t i = 0; i < sample; i++)
        list[i] = sample > 1 ? (uint32_t)((uint64_t)i * (duplicates->count - 1) / (sample - 1)) : 0;
    *any = false;
    return scan_ids(duplicates, list, sample, true, client, target, on_sample, any, error);
}

sl_scan_result sl_duplicates_find(sl_duplicates *duplicates, mongoc_client_t *client,
                                  const sl_target *target, bool *any, sl_error *error) {
    sl_scan_result result = SL_SCAN_DONE;
    *any = target->capped; /* none may be inserted again */
    if (!*any)
        result = find_sample(duplicates, client, target, any, error);
    if (result != SL_SCAN_DONE || !*any)
        return result;
    return sl_duplicates_find_all(duplicates, client, target, error);
}

sl_scan_result sl_duplicates_find_all(sl_duplicates *duplicates, mongoc_client_t *client,
                                      const sl_target *target, sl_error *error) {
    duplicates->missing = calloc(duplicates->count, sizeof *duplicates->missing);
    if (!duplicates->missing) {
        sl_error_memory(error, "looking for documents");
        return SL_SCAN_FAILED;
    }
    for (uint32_t i = 0; i < duplicates->count; i++)
        sl_duplicates_mark(duplicates, i);
    return sl_duplicates_compare(duplicates, client, target, error);
}

uint64_t sl_id_sum(const bson_t *document) {
    bson_t only = BSON_INITIALIZER;
    bson_iter_t id;
    if (bson_iter_init_find(&id, document, "_id"))
        bson_append_iter(&only, "_id", 3, &id);
    const uint64_t sum = sl_hash(bson_get_data(&only), only.len) << 32 | 1;
    bson_destroy(&only);
    return sum;
}
