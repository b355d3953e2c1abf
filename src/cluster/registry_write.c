/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the registry of sources: assigns numbers, starts and finishes sources and their parts.
 * registry.c explains why several loaders may do this at once, and why commands may be repeated. */
#include <inttypes.h>
#include <string.h>

#include "util/clock.h"
#include "util/document_id.h"
#include "util/text.h"

#include "registry.h"

bool sl_registry_none_left(const sl_registry *registry, size_t count, sl_error *error) {
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "the registry %s.%s has no %zu source number%s left of its %" PRIu32
                        "; load into another collection",
                        registry->database, registry->collection, count, count == 1 ? "" : "s",
                        SL_SOURCE_NUMBER_MAX);
}

/* Is there a document whose _id has one of the `count` numbers up to `last`? */
static bool numbers_are_used(const sl_registry *registry, size_t count, uint32_t last, bool *used,
                             sl_error *error) {
    bson_t documents;
    bson_t *filter =
        BCON_NEW("_id", "{", "$gte", BCON_INT64(sl_stripe_first_id(last - (uint32_t)count + 1, 0)),
                 "$lt", BCON_INT64(sl_stripe_first_id(last + 1, 0)), "}");
    bson_t *options =
        BCON_NEW("limit", BCON_INT64(1), "projection", "{", "_id", BCON_INT32(1), "}");
    bool ok = sl_connection_find(registry->connection, registry->database, registry->target, filter,
                                 options, &documents, error);
    *used = ok && !bson_empty(&documents);
    bson_destroy(&documents);
    bson_destroy(options);
    bson_destroy(filter);
    return ok;
}

static bool refuse_used(const sl_registry *registry, size_t count, uint32_t last, sl_error *error) {
    const char *target = registry->target, *own = registry->collection;
    char numbers[40];
    if (count == 1)
        snprintf(numbers, sizeof numbers, " %" PRIu32, last);
    else
        snprintf(numbers, sizeof numbers, "s %" PRIu32 " to %" PRIu32, last - (uint32_t)count + 1,
                 last);
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "%s.%s holds documents with the _ids of source number%s, which its registry "
        "%s.%s has not assigned: the collection was probably renamed, copied or "
        "restored without its registry. Rename, copy or restore the registry too, "
        "as %s.%s, or load into another --collection, or give --drop to replace "
        "the collection",
        registry->database, target, numbers, registry->database, own, registry->database, own);
}

/* Draws `count` numbers, of which `*last` is the last. Checks the counter before, so that a refusal
 * uses up no numbers, and again after, since another loader may draw at the same time. */
static bool raise_counter(sl_registry *registry, size_t count, uint32_t *last, sl_error *error) {
    bson_t counter;
    bson_t *query = BCON_NEW("_id", "counter");
    bson_t *update = BCON_NEW("$inc", "{", "last", BCON_INT64((int64_t)count), "}");
    bool ok = sl_find_and_modify(registry->connection, registry->database, registry->collection,
                                 query, update, true, &counter, NULL, error) ||
              sl_error_prefix(error, "registry %s.%s", registry->database, registry->collection);
    if (ok) {
        int64_t value = sl_look_int64(&counter, "last", INT64_MAX);
        *last = (uint32_t)value;
        ok = (value >= (int64_t)count && value <= SL_SOURCE_NUMBER_MAX) ||
             sl_registry_none_left(registry, count, error);
    }
    bson_destroy(&counter);
    bson_destroy(query);
    bson_destroy(update);
    return ok;
}

/* Only this loader uses the numbers that it has drawn, so that their _ids must be unused. Before,
 * they may be those of a loader that has drawn them meanwhile: then the counter has changed. */
static bool draw_numbers(sl_registry *registry, size_t count, uint32_t *last, sl_error *error) {
    uint32_t before, now;
    bool used = false;
    if (!sl_registry_last(registry, &before, error))
        return false;
    if (count > SL_SOURCE_NUMBER_MAX - before)
        return sl_registry_none_left(registry, count, error);
    *last = before + (uint32_t)count;
    if (registry->target && (!numbers_are_used(registry, count, *last, &used, error) ||
                             !sl_registry_last(registry, &now, error)))
        return false;
    if (used && now == before)
        return refuse_used(registry, count, *last, error);
    if (!raise_counter(registry, count, last, error) ||
        (registry->target && !numbers_are_used(registry, count, *last, &used, error)))
        return false;
    return !used || !registry->target || refuse_used(registry, count, *last, error);
}

/* Appends this loader's part: finished with `documents`, or unfinished if that is NULL. */
static void append_part(const sl_registry *registry, bson_t *document, const int64_t *documents) {
    char path[60];
    if (registry->part == 0)
        return;
    snprintf(path, sizeof path, "parts.%s.%" PRIu32, registry->division, registry->part);
    if (documents)
        BSON_APPEND_INT64(document, path, *documents);
    else
        BSON_APPEND_NULL(document, path);
}

/* Appends the fields that every start of a source sets. */
static void append_started(bson_t *document, const sl_registry_entry *entry) {
    char name[NAME_ROOM];
    sl_text_printable(sl_text_of(entry->name), name, sizeof name);
    BSON_APPEND_UTF8(document, "name", name);
    BSON_APPEND_INT64(document, "size", (int64_t)entry->size);
    if (entry->content != 0)
        BSON_APPEND_INT64(document, "content", (int64_t)entry->content);
    BSON_APPEND_UTF8(document, "state", "started");
    BSON_APPEND_DATE_TIME(document, "startedAt", sl_wall_clock_ms());
    const char *const places[][2] = {{"host", entry->host},
                                     {"workDirectory", entry->work_directory}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!places[i][1])
            continue;
        sl_text_printable(sl_text_of(places[i][1]), name, sizeof name);
        bson_append_utf8(document, places[i][0], -1, name, -1);
    }
}

/* The options that documents depend on, which all parts of a source must share. */
static void append_own_options(const sl_registry *registry, bson_t *document,
                               const sl_registry_entry *entry) {
    bson_t options;
    if (!registry->options)
        return;
    BSON_APPEND_DOCUMENT_BEGIN(document, "options", &options);
    bson_concat(&options, registry->options);
    if (entry->types != 0)
        BSON_APPEND_INT64(&options, SL_REGISTRY_TYPES, (int64_t)entry->types);
    bson_append_document_end(document, &options);
}

/* The same for a source that is already in the registry, perhaps with finished parts. */
static void append_started_again(const sl_registry *registry, bson_t *document,
                                 const sl_registry_entry *entry) {
    append_started(document, entry);
    if (registry->afresh && entry->state == SL_SOURCE_LOADED) {
        BCON_APPEND(document, "parts", "{", "}");
        append_own_options(registry, document, entry);
    } else {
        append_part(registry, document, NULL);
    }
}

static void append_part_loaded(const sl_registry *registry, bson_t *document,
                               const sl_registry_entry *entry) {
    append_part(registry, document, &(int64_t){(int64_t)entry->documents});
}

static void append_loaded(const sl_registry *registry, bson_t *document,
                          const sl_registry_entry *entry) {
    BSON_APPEND_UTF8(document, "state", "loaded");
    BSON_APPEND_INT64(document, "documents", (int64_t)entry->documents);
    if (entry->in_range_known)
        BSON_APPEND_INT64(document, "inRange", (int64_t)entry->in_range);
    else
        BSON_APPEND_NULL(document, "inRange");
    BSON_APPEND_DATE_TIME(document, "loadedAt", sl_wall_clock_ms());
    if (registry->part == 0) /* parts are kept: a loader may resume one and finish it again */
        BCON_APPEND(document, "parts", "{", "}");
}

/* Begins a write command; end it with run_write. `list` becomes its array `key` of documents or
 * updates. */
static void begin_write(const sl_registry *registry, const char *name, const char *key,
                        bson_t *command, bson_t *list) {
    bson_init(command);
    bson_append_utf8(command, name, -1, registry->collection, -1);
    BSON_APPEND_BOOL(command, "ordered", false);
    sl_append_majority(command);
    bson_append_array_begin(command, key, -1, list);
}

/* Sends the write if it has `count` documents or updates, at least one. `*matched` is the number of
 * documents inserted, or matched by an update. */
static bool run_write(sl_registry *registry, bson_t *command, bson_t *list, size_t count,
                      int64_t *matched, int32_t *code, sl_error *error) {
    bson_t reply = BSON_INITIALIZER;
    bson_append_array_end(command, list);
    bool ok = count == 0 || sl_registry_run(registry, command, &reply, code, error);
    *matched = sl_look_int64(&reply, "n", 0);
    bson_destroy(&reply);
    bson_destroy(command);
    return ok;
}

/* Inserts the new entries, with the numbers drawn for them. Entries that another loader has
 * inserted meanwhile are read and are not new afterwards. */
static bool insert_new(sl_registry *registry, sl_registry_entry *entries, size_t count,
                       sl_error *error) {
    for (unsigned attempt = 0;; attempt++) {
        bson_t command, documents, document;
        uint32_t used = 0;
        begin_write(registry, "insert", "documents", &command, &documents);
        for (size_t i = 0; i < count; i++) {
            char room[SL_ARRAY_KEY_ROOM];
            if (entries[i].state != SL_SOURCE_NEW)
                continue;
            bson_append_document_begin(&documents, sl_array_key(used++, room), -1, &document);
            BSON_APPEND_UTF8(&document, "_id", entries[i].fingerprint);
            BSON_APPEND_INT32(&document, "number", (int32_t)entries[i].number);
            append_started(&document, &entries[i]);
            append_own_options(registry, &document, &entries[i]);
            bson_append_document_end(&documents, &document);
        }
        int64_t matched;
        int32_t code;
        if (run_write(registry, &command, &documents, used, &matched, &code, error))
            return true;
        /* Only the first write error is returned: entries not in the registry are sent again. */
        if (code != SL_CODE_DUPLICATE_KEY || attempt == 5 ||
            !sl_registry_read_batch(registry, entries, count, error))
            return false;
    }
}

typedef void appender(const sl_registry *registry, bson_t *document,
                      const sl_registry_entry *entry);

/* Appends update number `index` to a write command: sets the fields that `append` appends. With
 * `absent` (may be NULL) it matches only if the entry's document has no such field. */
static void append_update(const sl_registry *registry, bson_t *updates, uint32_t index,
                          const sl_registry_entry *entry, const char *absent, appender *append) {
    char room[SL_ARRAY_KEY_ROOM];
    bson_t update, query, change, set;
    BSON_APPEND_DOCUMENT_BEGIN(updates, sl_array_key(index, room), &update);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "q", &query);
    BSON_APPEND_UTF8(&query, "_id", entry->fingerprint);
    if (absent)
        BCON_APPEND(&query, absent, "{", "$exists", BCON_BOOL(false), "}");
    bson_append_document_end(&update, &query);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "u", &change);
    BSON_APPEND_DOCUMENT_BEGIN(&change, "$set", &set);
    append(registry, &set, entry);
    bson_append_document_end(&change, &set);
    bson_append_document_end(&update, &change);
    bson_append_document_end(updates, &update);
}

/* Updates the entries that are not new; each of them must be in the registry. */
static bool update_known(sl_registry *registry, const sl_registry_entry *entries, size_t count,
                         appender *append, int64_t *known, sl_error *error) {
    bson_t command, updates;
    *known = 0;
    begin_write(registry, "update", "updates", &command, &updates);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].state != SL_SOURCE_NEW)
            append_update(registry, &updates, (uint32_t)(*known)++, &entries[i], NULL, append);
    }
    int64_t matched;
    return run_write(registry, &command, &updates, (size_t)*known, &matched, NULL, error) &&
           (matched == *known || sl_registry_lost(registry, error));
}

/* Sets a field of each entry if its document does not have the field yet. The server does that
 * atomically: of several loaders, the first one's value stays. */
static bool set_where_absent(sl_registry *registry, const sl_registry_entry *entries, size_t count,
                             const char *field, appender *append, sl_error *error) {
    bson_t command, updates;
    int64_t matched;
    begin_write(registry, "update", "updates", &command, &updates);
    for (size_t i = 0; i < count; i++)
        append_update(registry, &updates, (uint32_t)i, &entries[i], field, append);
    return run_write(registry, &command, &updates, count, &matched, NULL, error);
}

static void append_layout(const sl_registry *registry, bson_t *document,
                          const sl_registry_entry *entry) {
    const sl_layout *layout = &entry->layout;
    (void)registry;
    BCON_APPEND(document, "layout", "{", "shards", BCON_INT64(layout->shards), "shardNames",
                BCON_INT64((int64_t)layout->shard_names), "pieces", BCON_INT64(layout->pieces),
                "leading", BCON_INT64(layout->leading), "}");
}

static bool start_batch(sl_registry *registry, sl_registry_entry *entries, size_t count,
                        sl_error *error) {
    int64_t known;
    if (!insert_new(registry, entries, count, error) ||
        !update_known(registry, entries, count, append_started_again, &known, error))
        return false;
    if (known > 0 && registry->options &&
        !set_where_absent(registry, entries, count, "options", append_own_options, error))
        return false;
    if (known > 0 && !sl_registry_read_batch(registry, entries, count, error))
        return false;
    for (size_t i = 0; i < count; i++)
        entries[i].state = SL_SOURCE_STARTED;
    return true;
}

bool sl_registry_start(sl_registry *registry, sl_registry_entry *entries, size_t count,
                       sl_error *error) {
    if (!sl_registry_look_up(registry, entries, count, error))
        return false;
    uint32_t last = 0;
    size_t fresh = 0;
    for (size_t i = 0; i < count; i++)
        fresh += entries[i].state == SL_SOURCE_NEW;
    if (fresh > 0 && !draw_numbers(registry, fresh, &last, error))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].state == SL_SOURCE_NEW)
            entries[i].number = last - (uint32_t)--fresh;
    }
    return sl_registry_in_batches(registry, entries, count, start_batch, error);
}

static void append_withdrawn(const sl_registry *registry, bson_t *document,
                             const sl_registry_entry *entry) {
    (void)registry, (void)entry;
    BSON_APPEND_INT64(document, "content", 0);
}

static bool withdraw_batch(sl_registry *registry, sl_registry_entry *entries, size_t count,
                           sl_error *error) {
    int64_t known;
    return update_known(registry, entries, count, append_withdrawn, &known, error);
}

bool sl_registry_withdraw(sl_registry *registry, sl_registry_entry *entries, size_t count,
                          sl_error *error) {
    return sl_registry_in_batches(registry, entries, count, withdraw_batch, error);
}

static bool agree_batch(sl_registry *registry, sl_registry_entry *entries, size_t count,
                        sl_error *error) {
    if (!set_where_absent(registry, entries, count, "layout", append_layout, error))
        return false;
    for (size_t i = 0; i < count; i++)
        entries[i].layout = (sl_layout){0};
    if (!sl_registry_read_batch(registry, entries, count, error))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].layout.shards == 0)
            return sl_registry_lost(registry, error);
    }
    return true;
}

bool sl_registry_agree_layout(sl_registry *registry, sl_registry_entry *entries, size_t count,
                              sl_error *error) {
    return sl_registry_in_batches(registry, entries, count, agree_batch, error);
}

/* Marks this loader's part of each source as loaded, and reads how many parts are loaded now. */
static bool finish_parts(sl_registry *registry, sl_registry_entry *entries, size_t count,
                         sl_error *error) {
    int64_t known;
    for (size_t i = 0; i < count; i++)
        entries[i].state = SL_SOURCE_STARTED;
    return update_known(registry, entries, count, append_part_loaded, &known, error) &&
           sl_registry_read_batch(registry, entries, count, error);
}

static bool finish_sources(sl_registry *registry, sl_registry_entry *entries, size_t count,
                           sl_error *error) {
    int64_t known;
    for (size_t i = 0; i < count; i++)
        entries[i].state = SL_SOURCE_LOADED;
    return update_known(registry, entries, count, append_loaded, &known, error);
}

bool sl_registry_finish_sources(sl_registry *registry, sl_registry_entry *entries, size_t count,
                                sl_error *error) {
    return sl_registry_in_batches(registry, entries, count, finish_sources, error);
}

bool sl_registry_finish(sl_registry *registry, sl_registry_entry *entries, size_t count,
                        sl_error *error) {
    return sl_registry_in_batches(registry, entries, count,
                                  registry->part > 0 ? finish_parts : finish_sources, error);
}
