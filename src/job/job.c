/* SPDX-License-Identifier: Apache-2.0 */
/* What is loaded, what is not, and into which collection. */
#include "job.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/key_fields.h"
#include "report/run_record.h"
#include "util/log.h"
#include "util/text.h"

#include "embed.h"
#include "sources.h"
#include "types.h"

/* ---- what is not loaded ---- */

/* Files and archive entries that are not loaded: no format recognises them, or they hold no text,
 * or another kind of records. They are listed, and the load fails unless --skip-other is given.
 *
 * The run record lists the first KEPT_MAX of them, the log file all. */

#define KEPT_MAX 1000
#define SHOWN_MAX 20 /* on the screen */

/* Has the entry been added, when a sample of the documents was read before the load? */
static bool is_kept(const sl_not_loaded *list, size_t source, const char *entry) {
    for (size_t i = 0; entry && i < list->kept_count; i++) {
        const sl_not_loaded_item *one = &list->kept[i];
        if (one->source == source && one->entry && strcmp(one->entry, entry) == 0)
            return true;
    }
    return false;
}

/* Call it under the lock. Without memory the item is only counted. */
static void keep(sl_not_loaded *list, size_t source, const char *entry, const char *reason) {
    if (list->kept_count == KEPT_MAX)
        return;
    if (!list->kept && !(list->kept = calloc(KEPT_MAX, sizeof *list->kept)))
        return;
    sl_not_loaded_item *made = &list->kept[list->kept_count];
    *made = (sl_not_loaded_item){
        .source = source, .entry = entry ? strdup(entry) : NULL, .reason = strdup(reason)};
    list->kept_count += made->reason && (made->entry || !entry);
}

/* The first line of a reason, without the words that introduce further lines. */
static const char *in_a_line(const char *reason, char *out, size_t room) {
    size_t length = strcspn(reason, "\n");
    if (reason[length] == '\0')
        return reason;
    if (length > 0 && reason[length - 1] == ':')
        while (length > 0 && reason[length] != ';')
            length--;
    snprintf(out, room, "%.*s; `shardload inspect` explains it", (int)length, reason);
    return out;
}

void sl_not_loaded_add(sl_job *job, size_t source, const char *entry, const char *reason) {
    sl_not_loaded *list = &job->not_loaded;
    pthread_mutex_lock(&list->lock);
    const bool again = reason && is_kept(list, source, entry);
    uint64_t number = !reason ? ++list->empty : again ? list->count : ++list->count;
    if (reason && !again)
        keep(list, source, entry, reason);
    pthread_mutex_unlock(&list->lock);
    if (again)
        return;
    const char *shown = sl_source_set_at(job->set, source)->shown;
    bool on_screen = number <= SHOWN_MAX, lines = reason && strchr(reason, '\n');
    char line[500];
    if (lines || !on_screen)
        sl_log_debug("%s%s%s: %s" SL_LINES, shown, entry ? ": " : "", entry ? entry : "",
                     on_screen ? "all reasons: " : "not loaded: ", reason ? reason : "empty");
    if (on_screen)
        sl_log_warning("%s%s%s: %s" SL_LINES, shown, entry ? ": " : "", entry ? entry : "",
                       reason ? "not loaded: " : "empty; nothing to load",
                       reason ? in_a_line(reason, line, sizeof line) : "");
    if (number == SHOWN_MAX)
        sl_log_warning("only the log file lists further %s",
                       reason ? "files and entries that are not loaded"
                              : "empty files and entries");
}

bool sl_not_loaded_check(sl_job *job, sl_error *error) {
    return sl_not_loaded_allowed(job->config, job->not_loaded.count, error);
}

bool sl_not_loaded_allowed(const sl_load_config *config, uint64_t count, sl_error *error) {
    if (count == 0 || config->skip_other)
        return true;
    sl_error_set(error, SL_EXIT_SOURCE,
                 "%s not loaded, as the warnings show; --skip-other skips them; --include selects "
                 "files, or entries of the named archives, by name",
                 sl_plural(count, "file[s] or archive entr[y is|ies are]"));
    error->skippable = true;
    return false;
}

void sl_not_loaded_record(const sl_job *job, bson_t *record) {
    const sl_not_loaded *list = &job->not_loaded;
    bson_t section, array, item;
    if (list->count == 0)
        return;
    BSON_APPEND_DOCUMENT_BEGIN(record, "notLoaded", &section);
    BSON_APPEND_INT64(&section, "count", (int64_t)list->count);
    BSON_APPEND_ARRAY_BEGIN(&section, "items", &array);
    for (size_t i = 0; i < list->kept_count; i++) {
        const sl_not_loaded_item *one = &list->kept[i];
        sl_record_begin_item(&array, i, &item);
        BSON_APPEND_UTF8(&item, "path", sl_source_set_at(job->set, one->source)->shown);
        if (one->entry)
            BSON_APPEND_UTF8(&item, "entry", one->entry);
        BSON_APPEND_UTF8(&item, "reason", one->reason);
        bson_append_document_end(&array, &item);
    }
    bson_append_array_end(&section, &array);
    bson_append_document_end(record, &section);
}

/* ---- the job ---- */

void sl_job_init(sl_job *job, const sl_load_config *config) {
    *job =
        (sl_job){.config = config, .shards = 1, .hashed_id = BCON_NEW("_id", BCON_UTF8("hashed"))};
    pthread_mutex_init(&job->entries_lock, NULL);
    pthread_cond_init(&job->entries_known, NULL);
    pthread_mutex_init(&job->not_loaded.lock, NULL);
}

void sl_job_clear(sl_job *job) {
    sl_sources_close(job);
    sl_embed_destroy(job->embed);
    bson_destroy(job->hashed_id);
    free(job->own_shards);
    free(job->ranges);
    pthread_mutex_destroy(&job->entries_lock);
    pthread_cond_destroy(&job->entries_known);
    for (size_t i = 0; i < job->not_loaded.kept_count; i++) {
        free(job->not_loaded.kept[i].entry);
        free(job->not_loaded.kept[i].reason);
    }
    free(job->not_loaded.kept);
    pthread_mutex_destroy(&job->not_loaded.lock);
}

size_t sl_job_range_of(const sl_job *job, int64_t id) {
    size_t low = 0, high = job->range_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (job->ranges[middle].minimum <= id)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- the destination ---- */

/* A destination, and the identity of its collection: read before the first document is sent, and
 * checked after the last. cluster/identity.c explains why. */

void sl_target_configure(sl_destination *destination, const sl_job *job, bool resumed) {
    const sl_load_config *config = job->config;
    const sl_key_names *ids = job->keys ? &job->keys->id : NULL;
    bool sharded = sl_connection_server(destination->connection)->deployment == SL_SHARDED;
    destination->target = (sl_target){.database = config->database,
                                      .collection = config->collection,
                                      .registry = config->registry,
                                      .drop = config->drop && !resumed,
                                      .compressor = config->compressor,
                                      .clustered = config->clustered,
                                      .shard_key = sharded ? sl_job_shard_key(job) : NULL,
                                      .shard_key_unique = config->shard_key_unique,
                                      .shard_key_given = config->shard_key_given,
                                      .own_ids = job->own_ids,
                                      .id_fields = (const char *const *)(ids ? ids->names : NULL),
                                      .id_count = ids ? ids->count : 0,
                                      .set_paths = sl_load_mode(config)->sets_fields,
                                      .shard_existing = config->shard_existing};
}

/* The writes of a killed loader that must have ended before this load begins to write. */
typedef enum late_writes {
    NONE,
    CHANGES, /* updates, deletes and findAndModify */
    ALL
} late_writes;

/* Commands with the UUID of another collection are refused. So late writes matter if the server
 * does not accept the UUID, or if the load continues in the same collection:
 *
 * - In a mode other than insert, a late update or delete would overwrite or remove a document of
 *   this load, and a late insert would store a document that this load deletes.
 * - An insert into the same collection is not affected by a late insert: one of both is refused,
 *   and this load sees which. But a late upsert or delete may match a document that was just
 *   inserted, if its _id comes from the data. A restore inserts what it dumped, usually into a
 *   collection that it has created, so it does not wait a quarter of a second for each collection.
 * - The same is true for --resume. The late writes of the load's own earlier process are harmless,
 *   because a statement's result depends only on its record, and each is sent again in the same
 *   mode. But another load may have been killed in between.
 *
 * Shared loads, and loads with --allow-other-writers, run beside other writers and do not wait. */
static late_writes dangerous_writes(const sl_job *job, const sl_target *target) {
    const sl_load_config *config = job->config;
    if (sl_load_is_shared(config) || (config->allow_other_writers && !target->drop) ||
        (target->by_uuid && target->drop))
        return NONE;
    if (sl_load_mode(config)->matches || (!target->by_uuid && !job->resumed))
        return ALL;
    return job->own_ids && !config->connection ? CHANGES : NONE;
}

/* Waits until no dangerous write is running. If the collection is not dropped, the writes may come
 * from another running program: then the load continues. */
static bool wait_for_writes(const sl_job *job, const sl_destination *destination, sl_error *error) {
    const sl_target *target = &destination->target;
    const late_writes late = dangerous_writes(job, target);
    bool exists = true;
    if (late == NONE)
        return true;
    if (target->by_uuid && !sl_target_exists(destination->connection, target, &exists, error))
        return false;
    if (!exists || sl_wait_for_writes(destination->connection, target, late == CHANGES, error))
        return true;
    if (target->drop || error->code == SL_EXIT_INTERRUPTED)
        return false;
    error->code = SL_EXIT_OK; /* not a failure */
    sl_log_warning("%s.%s: another program is writing documents while this load runs",
                   target->database, target->collection);
    return true;
}

bool sl_target_begin(sl_job *job, sl_destination *destination, sl_error *error) {
    return sl_target_find_support(destination->connection, &destination->target, error) &&
           wait_for_writes(job, destination, error);
}

bool sl_target_check_shards(const sl_destination *destination, const _Atomic uint64_t *sent,
                            sl_error *error) {
    for (uint32_t i = 0; destination->direct && i < destination->topology->count; i++) {
        bool required = sent && atomic_load(&sent[i]) > 0;
        if (!sl_target_check_shard(destination->connection, destination->direct, i,
                                   destination->topology->shards[i].name, &destination->target,
                                   required, error))
            return false;
    }
    return true;
}

bool sl_target_is_ours(const sl_destination *destination, const _Atomic uint64_t *sent,
                       sl_error *error) {
    return sl_target_check(destination->connection, &destination->target, error) &&
           sl_target_check_shards(destination, sent, error);
}

void sl_destination_close(sl_destination *destination) {
    sl_shard_map_destroy(destination->map);
    sl_registry_close(destination->registry);
    sl_direct_close(destination->direct);
    sl_topology_destroy(destination->topology);
    if (destination->borrowed)
        sl_connection_set_retry_check(destination->connection, NULL, NULL);
    else
        sl_connection_close(destination->connection);
}

/* ---- the types of the columns, for the journal and in one line (types.h) ---- */

void sl_types_append(const sl_job *job, bson_t *document) {
    const sl_plan *plan = sl_types_plan(job);
    bson_t layouts, item, array;
    if (!plan)
        return;
    BSON_APPEND_ARRAY_BEGIN(document, "types", &layouts);
    for (size_t k = 0; k < sl_typing_count(plan->typing); k++) {
        const sl_typed_layout *layout = sl_typing_at(plan->typing, k);
        sl_record_begin_item(&layouts, k, &item);
        BSON_APPEND_INT64(&item, "sampled", (int64_t)layout->records);
        if (layout->delimiter)
            BSON_APPEND_BOOL(&item, "commas", layout->delimiter == ',');
        for (int types = 0; types < 2; types++) {
            BSON_APPEND_ARRAY_BEGIN(&item, types ? "types" : "columns", &array);
            for (size_t i = 0; i < layout->count; i++) {
                char room[16], type[SL_TYPE_ROOM];
                const char *key;
                bson_uint32_to_string((uint32_t)i, &key, room, sizeof room);
                BSON_APPEND_UTF8(&array, key,
                                 types ? sl_column_type_write(&layout->columns[i].schema, type)
                                       : layout->columns[i].name);
            }
            bson_append_array_end(&item, &array);
        }
        bson_append_document_end(&layouts, &item);
    }
    bson_append_array_end(document, &layouts);
}

/* The strings of an array; their number is `*count`. Returns a malloc'd array. */
static const char **strings_of(const bson_iter_t *item, const char *key, size_t *count) {
    bson_iter_t iter, inside;
    const char **strings = NULL;
    *count = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (!bson_iter_recurse(item, &iter) || !bson_iter_find(&iter, key) ||
            !bson_iter_recurse(&iter, &inside))
            break;
        for (*count = 0; bson_iter_next(&inside); ++*count) {
            if (pass == 1)
                strings[*count] =
                    BSON_ITER_HOLDS_UTF8(&inside) ? bson_iter_utf8(&inside, NULL) : "";
        }
        if (pass == 0 && !(strings = calloc(*count + 1, sizeof *strings)))
            break;
    }
    return strings;
}

bool sl_types_restore(sl_job *job, const bson_t *document, sl_error *error) {
    sl_plan *plan = sl_types_plan(job);
    bson_iter_t iter, layouts;
    sl_typing *typing;
    if (!plan)
        return true;
    if (!sl_typing_create(&typing, error))
        return false;
    bool ok = true;
    if (bson_iter_init_find(&iter, document, "types") && bson_iter_recurse(&iter, &layouts)) {
        while (ok && bson_iter_next(&layouts)) {
            size_t names, types;
            bson_iter_t inside;
            const bool known =
                bson_iter_recurse(&layouts, &inside) && bson_iter_find(&inside, "commas");
            const char delimiter = !known ? 0 : bson_iter_as_bool(&inside) ? ',' : ';';
            const char **name = strings_of(&layouts, "columns", &names);
            const char **type = strings_of(&layouts, "types", &types);
            ok = name && type && names == types
                     ? sl_typing_restore(typing, job->config->format_options.array, delimiter, name,
                                         type, names, error)
                     : sl_error_set(error, SL_EXIT_USAGE, "the journal's types cannot be read");
            free(name);
            free(type);
        }
    }
    if (!ok) {
        sl_typing_destroy(typing);
        return sl_error_prefix(error, "--resume");
    }
    sl_typing_destroy(plan->typing);
    plan->typing = typing;
    return sl_types_apply(job, error);
}

const char *sl_types_summary(const sl_job *job, char out[SL_TYPES_SUMMARY_ROOM]) {
    static const char *const names[SL_CLASSES][2] = {{"number", "numbers"},
                                                     {"date", "dates"},
                                                     {"flag", "flags"},
                                                     {"text", "texts"},
                                                     {"empty", "empty"}};
    const sl_plan *plan = sl_types_plan(job);
    size_t counts[SL_CLASSES] = {0};
    uint64_t records = 0;
    out[0] = '\0';
    if (!plan || sl_typing_count(plan->typing) == 0)
        return out;
    for (size_t k = 0; k < sl_typing_count(plan->typing); k++)
        records += sl_typing_at(plan->typing, k)->records;
    sl_typing_walk walk = sl_types_columns(job);
    for (const sl_typed_column *column; (column = sl_typing_next(&walk)) != NULL;)
        counts[sl_column_class(&column->schema)]++;
    size_t used = sl_print_text(out, SL_TYPES_SUMMARY_ROOM,
                                job->resumed ? "types as before: " : "types inferred from %s: ",
                                sl_plural(records, "sampled record"));
    const char *separator = "";
    for (size_t i = 0; i < SL_CLASSES; i++) {
        if (counts[i] == 0)
            continue;
        used += sl_print_text(out + used, SL_TYPES_SUMMARY_ROOM - used, "%s%zu %s", separator,
                              counts[i], names[i][counts[i] != 1]);
        separator = ", ";
    }
    if (sl_typing_count(plan->typing) > 1)
        sl_print_text(out + used, SL_TYPES_SUMMARY_ROOM - used,
                      " (of %zu different sets of columns)", sl_typing_count(plan->typing));
    return out;
}
