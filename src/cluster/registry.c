/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of sources: a collection beside the target, with one small document per
 * source.
 *
 *   {_id: <fingerprint>, number, collection, name, size, content, beginning, records,
 *    include (of an archive; "": all of it),
 *    state: "started" | "loaded", textBytes (not of parts), documents, matched, inRange (or null),
 *    foreign, rejected, rejectedIn, refusedIds, startedAt, loadedAt, host,
 *    workDirectory (of a pipe),
 *    parts: {<number of parts, or "shards">: {<part>: <documents, or null until it is finished>}},
 *    borders: {<the same>: {<part>: <of its blocks>}},
 *    layout: {shards, shardNames, pieces, leading}, options: {<name>: <text>}}
 *   {_id: "counter", last: <the last number assigned>, collection: <the UUID of the collection that
 *    the registry belongs to>, types: [{column, type}, ...],
 *    existed: <was the collection there before its first load?>,
 *    ids: [{from}, ...], begun: {types, ids: <a token of the last load that has confirmed it>}}
 *
 * A source's number is part of the ids of its documents, so two sources must never have the same
 * number, and a source must never have two.
 *
 * No number is assigned twice: a loader raises the counter by as many numbers as it needs, in one
 * atomic update, and only this loader uses them. No source has two numbers: its number is written
 * once, by the insert of its document, and _id is unique. Of two loaders that register a source at
 * the same time, the second gets a duplicate key error and reads the number that the first one
 * wrote. The number drawn by the second loader stays unused, which is harmless.
 *
 * No source has two layouts: a layout is written only if the document has none, in one atomic
 * update, and then read back. It is never removed or replaced. Loaders that share a source agree in
 * the same manner on the options that documents depend on; a load that starts all parts afresh
 * replaces them.
 *
 * A command may be executed twice, if the reply to the first one was lost. Then the counter skips
 * numbers; an insert gets duplicate key errors as if another loader had inserted the documents; an
 * update sets the same values again. A number that is read back cannot be rolled back: before that,
 * a majority of the replica set has acknowledged a write to its document. */
#include "registry.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/document_id.h"
#include "util/grow.h"
#include "util/interrupt.h"
#include "util/private_file.h"
#include "util/text.h"

bool sl_registry_open(sl_connection *connection, const sl_target *target, sl_registry **registry,
                      sl_error *error) {
    char name[SL_NAMESPACE_ROOM];
    *registry = calloc(1, sizeof **registry);
    if (*registry) {
        (*registry)->connection = connection;
        (*registry)->database = strdup(sl_registry_database(target->database));
        (*registry)->collection = strdup(sl_target_registry(target, name));
        (*registry)->none = target->registry && !target->registry[0];
        (*registry)->target = strdup(target->collection);
        if ((*registry)->database && (*registry)->collection && (*registry)->target)
            return true;
    }
    sl_registry_close(*registry);
    *registry = NULL;
    return sl_error_memory(error, "opening the registry");
}

void sl_registry_close(sl_registry *registry) {
    if (!registry)
        return;
    bson_destroy(registry->options);
    free(registry->database);
    free(registry->collection);
    free(registry->target);
    for (size_t i = 0; i < LISTS; i++)
        bson_destroy(registry->lists[i].was);
    free(registry);
}

void sl_registry_set_part(sl_registry *registry, const char *division, uint32_t part, bool afresh) {
    snprintf(registry->division, sizeof registry->division, "%s", division);
    registry->part = part;
    registry->afresh = afresh;
}

void sl_registry_ask_positions(sl_registry *registry, bool (*positions)(void *context),
                               void *context) {
    registry->positions = positions;
    registry->context = context;
}

void sl_registry_set_foreign(sl_registry *registry, uint64_t documents) {
    registry->foreign = documents;
}

void sl_registry_set_options(sl_registry *registry, const bson_t *options) {
    bson_destroy(registry->options);
    registry->options = bson_copy(options);
}

/* Runs a command on the registry's database; its errors name the registry. */
static bool registry_run(sl_registry *registry, const bson_t *command, bson_t *reply, int32_t *code,
                         sl_error *error) {
    return sl_cluster_command(registry->connection, registry->database, command, reply, code,
                              error) ||
           sl_error_prefix(error, "registry %s.%s", registry->database, registry->collection);
}

bool sl_registry_find(const sl_registry *registry, const bson_t *filter, bson_t *options,
                      bson_t *documents, sl_error *error) {
    bool ok = true;
    if (registry->none || registry->gone)
        bson_init(documents);
    else
        ok = sl_connection_find(registry->connection, registry->database, registry->collection,
                                filter, options, documents, error);
    bson_destroy(options);
    return ok;
}

/* Sets the error that a source is missing in the registry. Returns false. */
static bool registry_lost(const sl_registry *registry, sl_error *error) {
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "a source is no longer in the registry %s.%s, although its load has not "
                        "ended; did another program drop the collection?",
                        registry->database, registry->collection);
}

/* Calls the function for BATCH entries at a time, until it fails. Without registry, not at all. */
static bool registry_in_batches(sl_registry *registry, sl_registry_entry *entries, size_t count,
                                sl_batch_function *function, sl_error *error) {
    const bool empty = registry->none || registry->gone;
    for (size_t done = 0; !empty && done < count; done += BATCH) {
        size_t left = count - done;
        if (!function(registry, entries + done, left < BATCH ? left : BATCH, error))
            return false;
    }
    return true;
}

/* ---- reading ---- */

#define PARTS_MOST 10000u     /* more than --part accepts, or than clusters have shards */
#define CHECKED_NUMBERS 1024u /* an interrupt is looked for after so many */
#define LIST_MOST 10000u      /* entries of a list in the counter */
#define ATTEMPTS_MOST 50u     /* to change one, while other loads change it */

/* Sets the error that a field has a value that no load writes. Returns false. */
static bool refuse_field(const sl_registry *registry, const char *id, const char *field,
                         sl_error *error) {
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "registry %s.%s: the field %s of the document \"%.200s\" has a value that no "
        "load writes: did a user or another program change it? Restore it, or load "
        "all sources again with --drop",
        registry->database, registry->collection, field, id);
}

/* Reads a number up to `most`; 0 if the field is missing or null. */
static bool read_count(const sl_registry *registry, const bson_t *document, const char *field,
                       uint64_t most, uint64_t *count, sl_error *error) {
    bson_iter_t at;
    const bool any = sl_look_find(document, field, &at) && !BSON_ITER_HOLDS_NULL(&at);
    const int64_t value = any ? sl_look_int64(document, field, -1) : 0;
    *count = (uint64_t)value;
    return (value >= 0 && *count <= most) ||
           refuse_field(registry, sl_look_string(document, "_id"), field, error);
}

/* Counts the finished parts of a source and their documents. A source that is loaded but has no
 * parts of this division was loaded without parts: its total counts. */
static bool fill_parts(const sl_registry *registry, const bson_t *document,
                       sl_registry_entry *entry, sl_error *error) {
    char path[40];
    bson_iter_t found, part, border;
    bson_t borders;
    uint64_t documents = 0;
    bool compared; /* earlier versions stored no borders */
    entry->parts_loaded = 0;
    entry->borders = 0;
    entry->part_loaded = false;
    snprintf(path, sizeof path, "parts.%s", registry->division);
    bool any = registry->part > 0 && sl_look_find(document, path, &found) &&
               bson_iter_recurse(&found, &part);
    snprintf(path, sizeof path, "borders.%s", registry->division);
    compared = any && sl_look_inside(document, path, &borders);
    for (unsigned i = 0; any && i < PARTS_MOST && bson_iter_next(&part); i++) {
        if (BSON_ITER_HOLDS_NULL(&part))
            continue;
        const int64_t finished = sl_value_int64(&part, -1);
        if (finished < 0)
            return refuse_field(registry, entry->fingerprint, "parts", error);
        entry->parts_loaded++;
        documents += (uint64_t)finished;
        compared = compared && bson_iter_init_find(&border, &borders, bson_iter_key(&part));
        entry->borders += compared ? (uint64_t)sl_value_int64(&border, 0) : 0;
        if (strtoul(bson_iter_key(&part), NULL, 10) == registry->part)
            entry->part_loaded = true;
    }
    entry->borders = compared ? entry->borders : 0;
    if (any)
        entry->documents = documents;
    else if (registry->part > 0 && entry->state == SL_SOURCE_LOADED)
        entry->documents = entry->stored;
    return true;
}

static bool fill_layout(const sl_registry *registry, const bson_t *document, sl_layout *layout,
                        sl_error *error) {
    uint64_t shards, pieces, leading;
    bson_iter_t at;
    if (!sl_look_find(document, "layout", &at))
        return true;
    if (!read_count(registry, document, "layout.shards", UINT32_MAX, &shards, error) ||
        !read_count(registry, document, "layout.pieces", UINT32_MAX, &pieces, error) ||
        !read_count(registry, document, "layout.leading", UINT32_MAX, &leading, error))
        return false;
    *layout = (sl_layout){.shards = (uint32_t)shards,
                          .shard_names = (uint64_t)sl_look_int64(document, "layout.shardNames", 0),
                          .pieces = (uint32_t)pieces,
                          .leading = (uint32_t)leading};
    return shards > 0 || refuse_field(registry, sl_look_string(document, "_id"), "layout", error);
}

typedef struct difference {
    const sl_registry_entry *entry;
    sl_error *error;
} difference;

static void on_difference(void *context, const char *name, const char *before, const char *now) {
    const difference *d = context;
    char shown[400], shown_before[200];
    bool version = strcmp(name, "version") == 0;
    if (d->error->code)
        return; /* the first difference is reported */
    sl_text_printable(sl_text_of(d->entry->name), shown, sizeof shown);
    sl_text_printable(sl_text_of(before ? before : "(not given)"), shown_before,
                      sizeof shown_before);
    sl_error_set(
        d->error, SL_EXIT_USAGE,
        "%s: another loader has started its part with %s%s \"%s\", and this loader has "
        "\"%s\": all parts of a load need the same options. To use other options, drop the "
        "collection and start again",
        shown, version ? "program " : "--", name, shown_before, now ? now : "(not given)");
}

/* Does the source get no other parts when it is started? */
static bool is_afresh(const sl_registry *registry, const sl_registry_entry *entry) {
    return registry->afresh && entry->state == SL_SOURCE_LOADED;
}

/* Were the other parts of the source started with the options of this load? A source that is
 * started afresh has no other parts. */
static bool same_options(const sl_registry *registry, const bson_t *document,
                         const sl_registry_entry *entry, sl_error *error) {
    bson_t options;
    bson_iter_t at;
    if (!registry->options || is_afresh(registry, entry) || !sl_look_find(document, "options", &at))
        return true;
    if (!sl_document_at(&at, &options))
        return refuse_field(registry, entry->fingerprint, "options", error);
    sl_error found = {0};
    sl_look_differences(&options, registry->options, on_difference, &(difference){entry, &found});
    if (found.code) {
        *error = found;
        return false;
    }
    int64_t types = (int64_t)entry->types;
    if (sl_look_int64(&options, SL_REGISTRY_TYPES, types) == types)
        return true;
    char shown[400];
    sl_text_printable(sl_text_of(entry->name), shown, sizeof shown);
    return sl_error_set(error, SL_EXIT_USAGE,
                        "%s: another loader has started its part with other types of its columns, "
                        "which were inferred from other sources: give all loaders the same "
                        "sources, or the types with --schema",
                        shown);
}

static bool fill(const sl_registry *registry, const bson_t *document, sl_registry_entry *entry,
                 sl_error *error) {
    uint64_t number;
    bson_iter_t range;
    if (!read_count(registry, document, "number", SL_SOURCE_NUMBER_MAX, &number, error) ||
        !read_count(registry, document, "documents", INT64_MAX, &entry->stored, error) ||
        !read_count(registry, document, "matched", INT64_MAX, &entry->matched, error) ||
        !read_count(registry, document, "foreign", INT64_MAX, &entry->foreign, error) ||
        !read_count(registry, document, "rejected", INT64_MAX, &entry->rejected, error))
        return false;
    if (number == 0)
        return refuse_field(registry, entry->fingerprint, "number", error);
    entry->number = (uint32_t)number;
    bool loaded = strcmp(sl_look_string(document, "state"), "loaded") == 0;
    entry->state = loaded ? SL_SOURCE_LOADED : SL_SOURCE_STARTED;
    if (!fill_parts(registry, document, entry, error) ||
        !fill_layout(registry, document, &entry->layout, error))
        return false;
    sl_look_date(document, "loadedAt", entry->when);
    bson_t parts;
    entry->in_parts = sl_look_inside(document, "parts", &parts) && !bson_empty(&parts);
    entry->no_range =
        bson_iter_init_find(&range, document, "inRange") && BSON_ITER_HOLDS_NULL(&range);
    entry->in_range = (uint64_t)sl_look_int64(document, "inRange", 0);
    entry->refused_known = bson_has_field(document, "refusedIds");
    entry->refused_ids = (uint64_t)sl_look_int64(document, "refusedIds", 0);
    snprintf(entry->rejected_in, sizeof entry->rejected_in, "%s",
             sl_look_string(document, "rejectedIn"));
    return same_options(registry, document, entry, error);
}

static int by_fingerprint(const void *a, const void *b) {
    const sl_registry_entry *x = *(sl_registry_entry *const *)a;
    const sl_registry_entry *y = *(sl_registry_entry *const *)b;
    return strcmp(x->fingerprint, y->fingerprint);
}

bool sl_registry_fill(const sl_registry *registry, const bson_t *reply, sl_registry_entry *entries,
                      size_t count, sl_error *error) {
    sl_registry_entry *sorted[BATCH] = {NULL};
    bool ok = true;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &entries[i];
    qsort(sorted, count, sizeof sorted[0], by_fingerprint);
    for (sl_walk walk = sl_walk_start(reply, "cursor.firstBatch"); ok && sl_walk_next(&walk);) {
        const char *id = sl_look_text(&walk.item, "_id");
        const sl_registry_entry *key = &(sl_registry_entry){.fingerprint = id};
        sl_registry_entry **entry =
            id ? bsearch(&key, sorted, count, sizeof sorted[0], by_fingerprint) : NULL;
        ok = !entry || fill(registry, &walk.item, *entry, error);
    }
    return ok;
}

/* Fills the entries that are in the registry; other entries stay unchanged. */
static bool registry_read_batch(sl_registry *registry, sl_registry_entry *entries, size_t count,
                                sl_error *error) {
    bson_t command = BSON_INITIALIZER, filter, id, in, reply;
    BSON_APPEND_UTF8(&command, "find", registry->collection);
    BSON_APPEND_DOCUMENT_BEGIN(&command, "filter", &filter);
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &id);
    BSON_APPEND_ARRAY_BEGIN(&id, "$in", &in);
    for (size_t i = 0; i < count; i++) {
        char room[SL_ARRAY_KEY_ROOM];
        BSON_APPEND_UTF8(&in, sl_array_key(i, room), entries[i].fingerprint);
    }
    bson_append_array_end(&id, &in);
    bson_append_document_end(&filter, &id);
    bson_append_document_end(&command, &filter);
    BCON_APPEND(&command, "projection", "{", "number", BCON_INT32(1), "state", BCON_INT32(1),
                "loadedAt", BCON_INT32(1), "documents", BCON_INT32(1), "parts", BCON_INT32(1),
                "borders", BCON_INT32(1), "layout", BCON_INT32(1), "options", BCON_INT32(1),
                "rejected", BCON_INT32(1), "rejectedIn", BCON_INT32(1), "foreign", BCON_INT32(1),
                "inRange", BCON_INT32(1), "matched", BCON_INT32(1), "refusedIds", BCON_INT32(1),
                "}", "batchSize", BCON_INT32((int32_t)count), "singleBatch", BCON_BOOL(true));
    bool ok = registry_run(registry, &command, &reply, NULL, error) &&
              sl_registry_fill(registry, &reply, entries, count, error);
    bson_destroy(&reply);
    bson_destroy(&command);
    return ok;
}

bool sl_registry_look_up(sl_registry *registry, sl_registry_entry *entries, size_t count,
                         sl_error *error) {
    for (size_t i = 0; i < count; i++) {
        entries[i].state = SL_SOURCE_NEW;
        entries[i].number = 0;
        entries[i].when[0] = '\0';
        entries[i].layout = (sl_layout){0};
    }
    return registry_in_batches(registry, entries, count, registry_read_batch, error);
}

bool sl_registry_add_number(void *context, const bson_t *document) {
    sl_number_list *list = context;
    const int64_t value = sl_look_int64(document, "number", 0);
    if (value < 1 || value > SL_SOURCE_NUMBER_MAX)
        return true;
    uint32_t *items = sl_grow(list->items, list->count, &list->room, sizeof *items);
    if (!items)
        return sl_error_memory(&list->error, "reading the registry");
    list->items = items;
    items[list->count++] = (uint32_t)value;
    return (list->count <= SL_SOURCE_NUMBER_MAX ||
            sl_error_set(&list->error, SL_EXIT_CLUSTER,
                         "the registry has more sources than there are numbers: did a user or "
                         "another program change it?")) &&
           (list->count % CHECKED_NUMBERS > 0 || !sl_interrupt_requested() ||
            sl_error_set(&list->error, SL_EXIT_INTERRUPTED,
                         "interrupted while the registry was read"));
}

bool sl_registry_numbers(sl_registry *registry, uint32_t **numbers, size_t *count,
                         sl_error *error) {
    sl_number_list list = {.items = malloc(sizeof *list.items), .room = 1};
    bson_t *filter = BCON_NEW("number", "{", "$exists", BCON_BOOL(true), "}");
    bson_t *options =
        BCON_NEW("projection", "{", "_id", BCON_INT32(0), "number", BCON_INT32(1), "}");
    bool ok = registry->none || registry->gone ||
              sl_connection_find_each(registry->connection, registry->database,
                                      registry->collection, filter, options, SL_CURSOR_KEPT_MAX,
                                      sl_registry_add_number, &list, error);
    bson_destroy(options);
    bson_destroy(filter);
    if (ok && list.error.code) {
        *error = list.error;
        ok = false;
    }
    *numbers = list.items;
    *count = list.count;
    return ok && (list.items || sl_error_memory(error, "reading the registry"));
}

bool sl_registry_each_loaded(sl_registry *registry,
                             bool (*visit)(void *context, const sl_registry_entry *entry,
                                           sl_error *error),
                             void *context, sl_error *error) {
    bson_t documents;
    bson_t *filter = BCON_NEW("state", "loaded", "inRange", "{", "$type", "long", "}");
    bson_t *options = BCON_NEW("projection", "{", "number", BCON_INT32(1), "name", BCON_INT32(1),
                               "inRange", BCON_INT32(1), "}");
    bool ok = sl_registry_find(registry, filter, options, &documents, error);
    for (sl_walk walk = sl_walk_of(&documents); ok && sl_walk_next(&walk);) {
        int64_t number = sl_look_int64(&walk.item, "number", 0);
        int64_t in_range = sl_look_int64(&walk.item, "inRange", -1);
        const sl_registry_entry entry = {.name = sl_look_string(&walk.item, "name"),
                                         .number = (uint32_t)number,
                                         .in_range = (uint64_t)in_range};
        if (number >= 1 && number <= SL_SOURCE_NUMBER_MAX && in_range >= 0)
            ok = visit(context, &entry, error);
    }
    bson_destroy(&documents);
    bson_destroy(filter);
    return ok;
}

/* Has the load of a source ended without a stored document? After a load with another --mode, it is
 * not known how many documents earlier loads have stored. */
static bool is_empty(const bson_t *document) {
    return strcmp(sl_look_string(document, "state"), "loaded") == 0 &&
           sl_look_int64(document, "inRange", -1) == 0;
}

static int by_name(const void *a, const void *b) {
    const sl_registry_entry *x = *(const sl_registry_entry *const *)a;
    const sl_registry_entry *y = *(const sl_registry_entry *const *)b;
    return strcmp(sl_base_name(x->name), sl_base_name(y->name));
}

typedef struct namesakes {
    const sl_registry_entry **sorted; /* new entries, by name */
    size_t count;
    sl_registry_found *found;
    void *context;
} namesakes;

static bool look_for_namesake(void *context, const bson_t *document) {
    const namesakes *all = context;
    const uint64_t content = (uint64_t)sl_look_int64(document, "content", 0);
    const sl_registry_entry *key = &(sl_registry_entry){.name = sl_look_string(document, "name")};
    const sl_registry_entry **entry =
        bsearch(&key, all->sorted, all->count, sizeof(sl_registry_entry *), by_name);
    while (entry && entry > all->sorted && by_name(&key, entry - 1) == 0)
        entry--;
    for (; entry && entry < all->sorted + all->count && by_name(&key, entry) == 0; entry++) {
        if (!is_empty(document) && (content == 0 || content != (*entry)->content))
            all->found(all->context, *entry, document); /* it is no copy */
    }
    return true;
}

#define NAMESAKES_BYTES_MAX ((uint64_t)8 << 30) /* of 8 million sources, 1,000 bytes each */

bool sl_registry_namesakes(sl_registry *registry, const sl_registry_entry *entries, size_t count,
                           sl_registry_found *found, void *context, sl_error *error) {
    const bson_t everything = BSON_INITIALIZER;
    namesakes all = {
        .sorted = malloc((count + 1) * sizeof *all.sorted), .found = found, .context = context};
    if (!all.sorted)
        return sl_error_memory(error, "comparing the sources with the registry");
    for (size_t i = 0; i < count; i++) {
        if (entries[i].state == SL_SOURCE_NEW)
            all.sorted[all.count++] = &entries[i];
    }
    qsort(all.sorted, all.count, sizeof(sl_registry_entry *), by_name);
    bson_t *options =
        BCON_NEW("projection", "{", "name", BCON_INT32(1), "size", BCON_INT32(1), "content",
                 BCON_INT32(1), "beginning", BCON_INT32(1), "state", BCON_INT32(1), "inRange",
                 BCON_INT32(1), "loadedAt", BCON_INT32(1), "documents", BCON_INT32(1), "number",
                 BCON_INT32(1), "records", BCON_INT32(1), "}");
    /* A registry may have millions of sources, which are not kept. */
    bool ok = all.count == 0 || registry->none || registry->gone ||
              sl_connection_find_each(registry->connection, registry->database,
                                      registry->collection, &everything, options,
                                      NAMESAKES_BYTES_MAX, look_for_namesake, &all, error);
    bson_destroy(options);
    free(all.sorted);
    return ok;
}

bool sl_registry_is_rejects(const char *path) {
    const char *file = sl_base_name(path), *folder = file - (file > path);
    if (fnmatch("[0-9][0-9][0-9][0-9][0-9][0-9]-*", file, 0) != 0)
        return false;
    while (folder > path && folder[-1] != '/')
        folder--;
    if (strncmp(folder, SL_WORK_REJECTED, strlen(SL_WORK_REJECTED)) != 0)
        return false;
    folder += strlen(SL_WORK_REJECTED); /* rejected/, or rejected-1/ */
    return folder[*folder == '-' ? 1 + strspn(folder + 1, "0123456789") : 0] == '/';
}

/* Has a load of this file of rejects corrected records of the entry? The path, which may be
 * relative, must end in the work directory of the entry's load, and the file must have the entry's
 * name. */
static bool corrects(const char *path, const sl_registry_entry *entry) {
    const char *file = sl_base_name(path), *own = sl_base_name(entry->name), *folder = file - 1;
    const size_t length = strnlen(own, SL_REJECTED_NAME_MAX), in = strlen(entry->rejected_in);
    while (folder > path && folder[-1] != '/')
        folder--;
    while (strncmp(path, "./", 2) == 0 || strncmp(path, "../", 3) == 0)
        path = strchr(path, '/') + 1;
    const size_t end =
        folder > path ? (size_t)(folder - path) - 1 : 0; /* length of the directory */
    const char *tail = entry->rejected_in + in - (in > end ? end : in);
    if (end == 0 || in <= end || strncmp(tail, path, end) != 0 ||
        (path[0] != '/' && tail[-1] != '/'))
        return false;
    file += SL_REJECTED_NUMBER_BYTES;
    if (strncmp(file, own, length) != 0)
        return false;
    file += length;
    const bool of_entry = file[0] == '-' && strchr(own, '.'); /* names of archives have an ending */
    return !file[0] || (of_entry && !file[1 + strspn(file + 1, "0123456789")]);
}

bool sl_registry_find_corrected(sl_registry *registry, sl_registry_entry *entries, size_t count,
                                sl_error *error) {
    bson_t documents;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any = any || entries[i].rejected > 0;
    if (!any)
        return true;
    bson_t *filter = BCON_NEW("state", "loaded", "name", "{", "$regex", SL_WORK_REJECTED, "}");
    bool ok = sl_registry_find(registry, filter, NULL, &documents, error);
    for (sl_walk walk = sl_walk_of(&documents); ok && sl_walk_next(&walk);) {
        const char *name = sl_look_string(&walk.item, "name");
        for (size_t i = 0; sl_registry_is_rejects(name) && i < count; i++) {
            if (entries[i].rejected == 0 || !corrects(name, &entries[i]))
                continue;
            entries[i].corrected += (uint64_t)sl_look_int64(&walk.item, "documents", 0) +
                                    (uint64_t)sl_look_int64(&walk.item, "matched", 0);
            sl_look_date(&walk.item, "loadedAt", entries[i].corrected_when);
        }
    }
    bson_destroy(&documents);
    bson_destroy(filter);
    return ok;
}

static int by_content(const void *a, const void *b) {
    const sl_registry_entry *x = *(const sl_registry_entry *const *)a;
    const sl_registry_entry *y = *(const sl_registry_entry *const *)b;
    return (x->content > y->content) - (x->content < y->content);
}

/* The entries of one call, sorted: those that are not loaded and have a content by that, and all by
 * fingerprint. */
typedef struct contents {
    const sl_registry_entry **open, **all;
    size_t open_count, count;
} contents;

static bool sort_contents(const sl_registry_entry *entries, size_t count, contents *sorted,
                          sl_error *error) {
    *sorted = (contents){.count = count};
    sorted->open = malloc((count + 1) * sizeof *sorted->open);
    sorted->all = malloc((count + 1) * sizeof *sorted->all);
    if (!sorted->open || !sorted->all)
        return sl_error_memory(error, "comparing the sources with the registry");
    for (size_t i = 0; i < count; i++) {
        sorted->all[i] = &entries[i];
        if (entries[i].state != SL_SOURCE_LOADED && entries[i].content != 0)
            sorted->open[sorted->open_count++] = &entries[i];
    }
    qsort(sorted->open, sorted->open_count, sizeof(sl_registry_entry *), by_content);
    qsort(sorted->all, count, sizeof(sl_registry_entry *), by_fingerprint);
    return true;
}

/* The entry not loaded that has the content of this document of the registry; NULL if there is
 * none, if the document is that of an entry, or if its load has ended and stored no document. */
static const sl_registry_entry *entry_like(const contents *sorted, const char *field,
                                           const bson_t *document) {
    const char *id = sl_look_text(document, "_id");
    const sl_registry_entry *key = &(sl_registry_entry){
        .fingerprint = id ? id : "", .content = (uint64_t)sl_look_int64(document, field, 0)};
    const sl_registry_entry **entry =
        bsearch(&key, sorted->open, sorted->open_count, sizeof(sl_registry_entry *), by_content);
    if (!entry || is_empty(document) ||
        bsearch(&key, sorted->all, sorted->count, sizeof(sl_registry_entry *), by_fingerprint))
        return NULL;
    return *entry;
}

bool sl_registry_same_content(sl_registry *registry, const char *field,
                              const sl_registry_entry *entries, size_t count,
                              sl_registry_found *found, void *context, sl_error *error) {
    contents sorted;
    bool ok = sort_contents(entries, count, &sorted, error);
    for (size_t next = 0; ok && next < sorted.open_count;) {
        bson_t filter = BSON_INITIALIZER, content, in, documents;
        BSON_APPEND_DOCUMENT_BEGIN(&filter, field, &content);
        BSON_APPEND_ARRAY_BEGIN(&content, "$in", &in);
        for (size_t used = 0; next < sorted.open_count && used < BATCH; used++, next++) {
            char room[SL_ARRAY_KEY_ROOM];
            BSON_APPEND_INT64(&in, sl_array_key(used, room), (int64_t)sorted.open[next]->content);
        }
        bson_append_array_end(&content, &in);
        bson_append_document_end(&filter, &content);
        ok = sl_registry_find(registry, &filter, NULL, &documents, error);
        for (sl_walk walk = sl_walk_of(&documents); ok && sl_walk_next(&walk);) {
            const sl_registry_entry *entry = entry_like(&sorted, field, &walk.item);
            if (entry)
                found(context, entry, &walk.item);
        }
        bson_destroy(&documents);
        bson_destroy(&filter);
    }
    free(sorted.open);
    free(sorted.all);
    return ok;
}

bool sl_registry_find_unfinished(sl_registry *registry, const char *prefix,
                                 const sl_registry_entry *entries, size_t count,
                                 sl_registry_unfinished *first, sl_error *error) {
    char pattern[64];
    bson_t filter = BSON_INITIALIZER, id, others, documents, document;
    *first = (sl_registry_unfinished){0};
    snprintf(pattern, sizeof pattern, "^%s", prefix);
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &id);
    BSON_APPEND_REGEX(&id, "$regex", pattern, "");
    BSON_APPEND_ARRAY_BEGIN(&id, "$nin", &others);
    for (size_t i = 0, used = 0; i < count; i++) {
        char room[SL_ARRAY_KEY_ROOM];
        if (strncmp(entries[i].fingerprint, prefix, strlen(prefix)) != 0)
            continue;
        bson_append_utf8(&others, sl_array_key(used++, room), -1, entries[i].fingerprint, -1);
    }
    bson_append_array_end(&id, &others);
    bson_append_document_end(&filter, &id);
    BSON_APPEND_UTF8(&filter, "state", "started");
    bson_t *options = BCON_NEW("sort", "{", "startedAt", BCON_INT32(1), "}");
    bool ok = sl_registry_find(registry, &filter, options, &documents, error);
    if (ok)
        first->count = bson_count_keys(&documents);
    if (first->count > 0 && sl_look_inside(&documents, "0", &document)) {
        sl_look_date(&document, "startedAt", first->when);
        snprintf(first->host, sizeof first->host, "%s", sl_look_string(&document, "host"));
        snprintf(first->work_directory, sizeof first->work_directory, "%s",
                 sl_look_string(&document, "workDirectory"));
    }
    bson_destroy(&documents);
    bson_destroy(&filter);
    return ok;
}

static bool find_counter(const sl_registry *registry, bson_t *counter, sl_error *error) {
    bool found;
    bson_init(counter);
    return registry->none || sl_find_by_id(registry->connection, registry->database,
                                           registry->collection, "counter", counter, &found, error);
}

bool sl_registry_last(sl_registry *registry, uint32_t *last, sl_error *error) {
    bson_t counter;
    uint64_t value = 0;
    bool ok = find_counter(registry, &counter, error) &&
              read_count(registry, &counter, "last", INT64_MAX, &value, error);
    value = registry->gone ? 0 : value;
    *last = value <= SL_SOURCE_NUMBER_MAX ? (uint32_t)value : SL_SOURCE_NUMBER_MAX;
    bson_destroy(&counter);
    return ok;
}

bool sl_registry_of_loads(sl_registry *registry, bool *loads, sl_error *error) {
    bson_t counter;
    bool ok = find_counter(registry, &counter, error);
    *loads = !registry->gone && sl_look_int64(&counter, "last", 0) > 0 &&
             !sl_look_flag(&counter, SL_REGISTRY_EXISTED);
    bson_destroy(&counter);
    return ok;
}

/* Are these the entries of a list as a load writes it? */
static bool is_list(const char *name, const bson_t *items) {
    const bool columns = strcmp(name, SL_REGISTRY_COLUMNS) == 0;
    uint32_t count = 0;
    for (sl_walk walk = sl_walk_of(items); sl_walk_next(&walk); count++) {
        if (columns ? !sl_look_string(&walk.item, "column")[0] || !sl_look_text(&walk.item, "type")
                    : !sl_look_text(&walk.item, "from"))
            return false;
    }
    return count == bson_count_keys(items) && count <= LIST_MOST;
}

bool sl_registry_lists(const bson_t *columns, const char *column) {
    for (sl_walk walk = sl_walk_of(columns); sl_walk_next(&walk);) {
        if (strcmp(sl_look_string(&walk.item, "column"), column) == 0)
            return true;
    }
    return false;
}

bool sl_registry_list(sl_registry *registry, const char *name, bson_t *items, bool *older,
                      sl_error *error) {
    bson_t counter, array;
    bson_iter_t at;
    bool ok = find_counter(registry, &counter, error);
    const bool listed = ok && !registry->gone && sl_look_find(&counter, name, &at);
    bson_init(items);
    if (older)
        *older = !listed && !registry->gone && sl_look_int64(&counter, "last", 0) > 0;
    if (listed) {
        if (!BSON_ITER_HOLDS_ARRAY(&at) || !sl_container_at(&at, &array) || !is_list(name, &array))
            ok = sl_error_set(error, SL_EXIT_CLUSTER,
                              "registry %s.%s: the field %s of the document \"counter\" is not a "
                              "list of at most %u entries that a load has written: did a user or "
                              "another program change it? Remove the field",
                              registry->database, registry->collection, name, LIST_MOST);
        else
            ok = bson_concat(items, &array) || sl_error_memory(error, "reading the registry");
    }
    bson_destroy(&counter);
    return ok;
}

bool sl_registry_change_counter(sl_registry *registry, bson_t *query, bson_t *update, bool upsert,
                                bool *found, sl_error *error) {
    bool ok = sl_find_and_modify(registry->connection, registry->database, registry->collection,
                                 query, update, upsert, NULL, found, error) ||
              sl_error_prefix(error, "registry %s.%s", registry->database, registry->collection);
    bson_destroy(query);
    bson_destroy(update);
    return ok;
}

bool sl_registry_make_counter(sl_registry *registry, sl_error *error) {
    return sl_registry_change_counter(registry, BCON_NEW("_id", "counter"),
                                      BCON_NEW("$inc", "{", "last", BCON_INT64(0), "}"), true, NULL,
                                      error);
}

bool sl_registry_set_list(sl_registry *registry, const char *name, const bson_t *was,
                          const bson_t *now, unsigned attempt, bool *done, sl_error *error) {
    *done = true;
    if (registry->none)
        return true;
    if (bson_count_keys(now) > LIST_MOST)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "registry %s.%s: its list %s would have more than %u entries: load fewer "
            "different columns into the collection",
            registry->database, registry->collection, name, LIST_MOST);
    if (attempt == ATTEMPTS_MOST)
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "registry %s.%s: the list %s of the document \"counter\" cannot be "
                            "changed: other loads change it again and again",
                            registry->database, registry->collection, name);
    if (!sl_registry_make_counter(registry, error))
        return false;
    registry_list *list = &registry->lists[strcmp(name, SL_REGISTRY_COLUMNS) != 0];
    snprintf(list->begun, sizeof list->begun, "begun.%s", name);
    bson_oid_init(&list->token, NULL);
    bson_t *query = BCON_NEW("_id", "counter");
    if (bson_empty(was)) /* without a list, or with an empty one */
        BCON_APPEND(query, name, "{", "$in", "[", BCON_NULL, "[", "]", "]", "}");
    else
        BSON_APPEND_ARRAY(query, name, was);
    bson_t *update =
        BCON_NEW("$set", "{", name, BCON_ARRAY(now), list->begun, BCON_OID(&list->token), "}");
    bool ok = sl_registry_change_counter(registry, query, update, false, done, error);
    if (ok && *done) {
        bson_destroy(list->was);
        list->was = bson_copy(was);
    }
    return ok;
}

bool sl_registry_withdraw_lists(sl_registry *registry, sl_error *error) {
    bool ok = true;
    for (size_t i = 0; ok && i < LISTS; i++) {
        const registry_list *list = &registry->lists[i];
        if (list->was)
            ok = sl_registry_change_counter(
                registry, BCON_NEW("_id", "counter", list->begun, BCON_OID(&list->token)),
                BCON_NEW("$set", "{", list->begun + strlen("begun."), BCON_ARRAY(list->was), "}"),
                false, NULL, error);
    }
    return ok;
}

/* In a comparison, a missing or null `inRange` is less than or equal to null, a number greater. */
bool sl_registry_total(sl_registry *registry, const bson_t *except, bool own_ids,
                       uint64_t *documents, bool *complete, sl_error *error) {
    bson_t reply;
    const bson_t none = BSON_INITIALIZER;
    if (registry->none) {
        *complete = true;
        *documents = (uint64_t)registry->loaded;
        return true;
    }
    bson_t *command = BCON_NEW(
        "aggregate", BCON_UTF8(registry->collection), "pipeline", "[", "{", "$match", "{", "number",
        "{", "$exists", BCON_BOOL(true), "$nin", BCON_ARRAY(except ? except : &none), "}", "}", "}",
        "{", "$group", "{", "_id", BCON_NULL, "documents", "{", "$sum", "{", "$cond", "[", "{",
        "$and", "[", BCON_BOOL(own_ids), "{", "$gt", "[", "$inRange", BCON_NULL, "]", "}", "]", "}",
        BCON_INT32(0), "$documents", "]", "}", "}", "started", "{", "$sum", "{", "$cond", "[", "{",
        "$eq", "[", "$state", "loaded", "]", "}", BCON_INT32(0), BCON_INT32(1), "]", "}", "}", "}",
        "}", "]", "cursor", "{", "}");
    bool ok = registry_run(registry, command, &reply, NULL, error);
    const int64_t sum = ok ? sl_look_int64(&reply, "cursor.firstBatch.0.documents", 0) : 0;
    *complete = ok && sl_look_int64(&reply, "cursor.firstBatch.0.started", 0) == 0;
    *documents = sum > 0 ? (uint64_t)sum : 0;
    if (sum < 0)
        ok = refuse_field(registry, "(of a source)", "documents", error);
    bson_destroy(&reply);
    bson_destroy(command);
    return ok;
}

/* ---- writing ---- */

/* Writes the registry of sources: assigns numbers, starts and finishes sources and their parts.
 * registry.c explains why several loaders may do this at once, and why commands may be repeated. */

/* Sets the error that there are no numbers left for `count` more sources. Returns false. */
static bool registry_none_left(const sl_registry *registry, size_t count, sl_error *error) {
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "the registry %s.%s has no %s left of its %" PRIu32
                        "; load into another collection",
                        registry->database, registry->collection, sl_plural(count, "source number"),
                        SL_SOURCE_NUMBER_MAX);
}

bool sl_registry_uses_numbers(const sl_registry *registry, size_t count, uint32_t last, bool *used,
                              sl_error *error) {
    bson_t documents;
    bson_t *filter =
        BCON_NEW("_id", "{", "$gte", BCON_INT64(sl_stripe_first_id(last - (uint32_t)count + 1, 0)),
                 "$lt", BCON_INT64(sl_stripe_first_id(last + 1, 0)), "}");
    bson_t *options =
        BCON_NEW("limit", BCON_INT64(1), "projection", "{", "_id", BCON_INT32(1), "}");
    bool ok = sl_connection_find(registry->connection, registry->database, registry->target, filter,
                                 options, &documents, error);
    *used = ok && !bson_empty(&documents) &&
            (!registry->positions || registry->positions(registry->context));
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
    sl_error_set(
        error, SL_EXIT_CLUSTER,
        "%s.%s holds documents with the _ids of source number%s, which its registry "
        "%s.%s has not assigned: the collection was probably renamed, copied or "
        "restored without its registry, or `shardload forget` has removed the registry. Rename, "
        "copy or restore the registry too, as %s.%s, or load into another --collection, or give "
        "--drop to replace the collection",
        registry->database, target, numbers, registry->database, own, registry->database, own);
    error->no_resume = true;
    return false;
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
             registry_none_left(registry, count, error);
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
    *last = (uint32_t)count;
    if (registry->none)
        return true;
    if (!sl_registry_last(registry, &before, error))
        return false;
    if (count > SL_SOURCE_NUMBER_MAX - before)
        return registry_none_left(registry, count, error);
    *last = before + (uint32_t)count;
    if (!sl_registry_uses_numbers(registry, count, *last, &used, error) ||
        !sl_registry_last(registry, &now, error))
        return false;
    if (used && now == before)
        return refuse_used(registry, count, *last, error);
    return raise_counter(registry, count, last, error) &&
           sl_registry_uses_numbers(registry, count, *last, &used, error) &&
           (!used || refuse_used(registry, count, *last, error));
}

/* Appends the documents and borders of this loader's part if it is finished, otherwise null. */
static void append_part(const sl_registry *registry, bson_t *document,
                        const sl_registry_entry *entry, bool finished) {
    char path[60], borders[60];
    if (registry->part == 0)
        return;
    snprintf(path, sizeof path, "parts.%s.%" PRIu32, registry->division, registry->part);
    snprintf(borders, sizeof borders, "borders.%s.%" PRIu32, registry->division, registry->part);
    if (finished) {
        BSON_APPEND_INT64(document, path, (int64_t)entry->documents);
        BSON_APPEND_INT64(document, borders, (int64_t)entry->borders);
    } else {
        BSON_APPEND_NULL(document, path);
    }
}

/* Appends the fields that every start of a source sets. */
static void append_started(const sl_registry *registry, bson_t *document,
                           const sl_registry_entry *entry) {
    char name[NAME_ROOM];
    sl_text_printable(sl_text_of(entry->name), name, sizeof name);
    BSON_APPEND_UTF8(document, "name", name);
    BSON_APPEND_INT64(document, "size", (int64_t)entry->size);
    if (entry->content != 0)
        BSON_APPEND_INT64(document, "content", (int64_t)entry->content);
    if (entry->include) {
        sl_text_printable(sl_text_of(entry->include), name, sizeof name);
        BSON_APPEND_UTF8(document, "include", name);
    }
    if (entry->beginning != 0)
        BSON_APPEND_INT64(document, "beginning", (int64_t)entry->beginning);
    if (entry->records != 0)
        BSON_APPEND_INT64(document, "records", (int64_t)entry->records);
    if (registry->uuid[0])
        BSON_APPEND_UTF8(document, "collection", registry->uuid);
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
    append_started(registry, document, entry);
    if (registry->part > 0 && is_afresh(registry, entry)) {
        BCON_APPEND(document, "parts", "{", "}");
        append_own_options(registry, document, entry);
    } else {
        append_part(registry, document, entry, false);
    }
}

static void append_part_loaded(const sl_registry *registry, bson_t *document,
                               const sl_registry_entry *entry) {
    append_part(registry, document, entry, true);
}

static void append_loaded(const sl_registry *registry, bson_t *document,
                          const sl_registry_entry *entry) {
    BSON_APPEND_UTF8(document, "state", "loaded");
    if (entry->text_bytes > 0)
        BSON_APPEND_INT64(document, "textBytes", (int64_t)entry->text_bytes);
    BSON_APPEND_INT64(document, "documents", (int64_t)entry->documents);
    BSON_APPEND_INT64(document, "matched", (int64_t)entry->matched);
    if (entry->in_range_known)
        BSON_APPEND_INT64(document, "inRange", (int64_t)entry->in_range);
    else
        BSON_APPEND_NULL(document, "inRange");
    BSON_APPEND_INT64(document, "foreign", (int64_t)registry->foreign);
    BSON_APPEND_DATE_TIME(document, "loadedAt", sl_wall_clock_ms());
    BSON_APPEND_INT64(document, "rejected", (int64_t)entry->rejected);
    BSON_APPEND_INT64(document, "refusedIds", (int64_t)entry->refused_ids);
    BSON_APPEND_UTF8(document, "rejectedIn", entry->rejected_in);
    if (registry->part == 0) /* parts are kept: a loader may resume one and finish it again */
        BCON_APPEND(document, "parts", "{", "}");
}

void sl_registry_begin_write(const sl_registry *registry, const char *name, const char *key,
                             bson_t *command, bson_t *list) {
    bson_init(command);
    bson_append_utf8(command, name, -1, registry->collection, -1);
    BSON_APPEND_BOOL(command, "ordered", false);
    sl_append_majority(command);
    bson_append_array_begin(command, key, -1, list);
}

bool sl_registry_run_write(sl_registry *registry, bson_t *command, bson_t *list, size_t count,
                           int64_t *matched, int32_t *code, sl_error *error) {
    bson_t reply = BSON_INITIALIZER;
    bson_append_array_end(command, list);
    bool ok = count == 0 || registry_run(registry, command, &reply, code, error);
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
        sl_registry_begin_write(registry, "insert", "documents", &command, &documents);
        for (size_t i = 0; i < count; i++) {
            char room[SL_ARRAY_KEY_ROOM];
            if (entries[i].state != SL_SOURCE_NEW)
                continue;
            bson_append_document_begin(&documents, sl_array_key(used++, room), -1, &document);
            BSON_APPEND_UTF8(&document, "_id", entries[i].fingerprint);
            BSON_APPEND_INT32(&document, "number", (int32_t)entries[i].number);
            append_started(registry, &document, &entries[i]);
            append_own_options(registry, &document, &entries[i]);
            bson_append_document_end(&documents, &document);
        }
        int64_t matched;
        int32_t code;
        if (sl_registry_run_write(registry, &command, &documents, used, &matched, &code, error))
            return true;
        /* Only the first write error is returned: entries not in the registry are sent again. */
        if (code != SL_CODE_DUPLICATE_KEY || attempt == 5 ||
            !registry_read_batch(registry, entries, count, error))
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
    sl_registry_begin_write(registry, "update", "updates", &command, &updates);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].state != SL_SOURCE_NEW)
            append_update(registry, &updates, (uint32_t)(*known)++, &entries[i], NULL, append);
    }
    int64_t matched;
    return sl_registry_run_write(registry, &command, &updates, (size_t)*known, &matched, NULL,
                                 error) &&
           (matched == *known || registry_lost(registry, error));
}

/* Sets a field of each entry if its document does not have the field yet. The server does that
 * atomically: of several loaders, the first one's value stays. */
static bool set_where_absent(sl_registry *registry, const sl_registry_entry *entries, size_t count,
                             const char *field, appender *append, sl_error *error) {
    bson_t command, updates;
    int64_t matched;
    sl_registry_begin_write(registry, "update", "updates", &command, &updates);
    for (size_t i = 0; i < count; i++)
        append_update(registry, &updates, (uint32_t)i, &entries[i], field, append);
    return sl_registry_run_write(registry, &command, &updates, count, &matched, NULL, error);
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
    if (known > 0 && !registry_read_batch(registry, entries, count, error))
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
    return registry_in_batches(registry, entries, count, start_batch, error);
}

static void append_withdrawn(const sl_registry *registry, bson_t *document,
                             const sl_registry_entry *entry) {
    (void)registry, (void)entry;
    BSON_APPEND_INT64(document, "content", 0);
    BSON_APPEND_INT64(document, "beginning", 0);
}

static bool withdraw_batch(sl_registry *registry, sl_registry_entry *entries, size_t count,
                           sl_error *error) {
    int64_t known;
    return update_known(registry, entries, count, append_withdrawn, &known, error);
}

bool sl_registry_withdraw(sl_registry *registry, sl_registry_entry *entries, size_t count,
                          sl_error *error) {
    return registry_in_batches(registry, entries, count, withdraw_batch, error);
}

static bool agree_batch(sl_registry *registry, sl_registry_entry *entries, size_t count,
                        sl_error *error) {
    if (!set_where_absent(registry, entries, count, "layout", append_layout, error))
        return false;
    for (size_t i = 0; i < count; i++)
        entries[i].layout = (sl_layout){0};
    if (!registry_read_batch(registry, entries, count, error))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].layout.shards == 0)
            return registry_lost(registry, error);
    }
    return true;
}

bool sl_registry_agree_layout(sl_registry *registry, sl_registry_entry *entries, size_t count,
                              sl_error *error) {
    return registry_in_batches(registry, entries, count, agree_batch, error);
}

/* Marks this loader's part of each source as loaded, and reads how many parts are loaded now. */
static bool finish_parts(sl_registry *registry, sl_registry_entry *entries, size_t count,
                         sl_error *error) {
    int64_t known;
    for (size_t i = 0; i < count; i++)
        entries[i].state = SL_SOURCE_STARTED;
    return update_known(registry, entries, count, append_part_loaded, &known, error) &&
           registry_read_batch(registry, entries, count, error);
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
    return registry_in_batches(registry, entries, count, finish_sources, error);
}

bool sl_registry_finish(sl_registry *registry, sl_registry_entry *entries, size_t count,
                        sl_error *error) {
    for (size_t i = 0; i < count; i++)
        registry->loaded += entries[i].documents;
    return registry_in_batches(registry, entries, count,
                               registry->part > 0 ? finish_parts : finish_sources, error);
}
