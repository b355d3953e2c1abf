/* SPDX-License-Identifier: Apache-2.0 */
/* Restores one namespace: shards its collection by --shard-keys, loads its documents, builds its
 * indexes. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "bson/bson_writer.h"
#include "cluster/cluster.h"
#include "load/load.h"
#include "report/json.h"
#include "util/clock.h"
#include "util/grow.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"
#include "util/yaml_reader.h"

#include "restoring.h"

/* ---- shard keys ---- */

/* Reads --shard-keys, and shards a collection before its documents are loaded.
 *
 * With a ranged key, the documents are read once for a sample of the key. The collection is split
 * at quantiles of the sample, and the chunks are distributed over the shards. If one of these steps
 * fails, the load is only slower, so the failure is a warning. */

#define CHUNKS_PER_SHARD 4u /* a dump in the order of the key keeps several shards busy */

/* ---- the file ---- */

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
        if (found->oplog_only)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--shard-keys: %s is created by the oplog, which creates "
                                "unsharded collections",
                                entry->name);
        if (sl_restored_alone(found) || found->capped)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--shard-keys: %s is a %s, which cannot be sharded", entry->name,
                                found->capped ? "capped collection" : sl_kinds[found->kind].name);
        found->shard_key = entry->key;
        found->shard_unique = entry->unique;
    }
    return true;
}

/* ---- the sample ---- */

static bool offer(void *sample, const bson_t *document, const sl_bson_facts *facts,
                  sl_error *error) {
    (void)facts;
    return sl_key_sample_offer(sample, bson_get_data(document)) ||
           sl_error_memory(error, "sampling a shard key");
}

static bool presplit(sl_connection *connection, const sl_namespace *item, const sl_target *target,
                     sl_error *error) {
    sl_topology *topology = NULL;
    size_t chunks = 1;
    sl_key_sample *sample = sl_key_sample_create(item->shard_key);
    bool ok = sample || sl_error_memory(error, "sampling a shard key");
    ok = ok && sl_dump_each_sound_document(item->data, offer, sample, error) &&
         sl_topology_read(connection, &topology, error) &&
         sl_presplit(connection, target, topology, sample, CHUNKS_PER_SHARD, &chunks, error);
    if (ok)
        sl_log_detail("%s.%s: %s on %s", target->database, target->collection,
                      sl_plural(chunks, "chunk"), sl_plural(topology->count, "shard"));
    sl_topology_destroy(topology);
    sl_key_sample_destroy(sample);
    return ok;
}

/* ---- the index of the key ---- */

/* Can an index with the shard key support it? */
static bool supports(const bson_t *index) {
    const char *locale = sl_look_text(index, "collation.locale");
    return !bson_has_field(index, "partialFilterExpression") && !bson_has_field(index, "sparse") &&
           (!locale || strcmp(locale, "simple") == 0);
}

/* Builds the dump's index with the shard key, if it has one. Otherwise the server would create an
 * index with other options, and later refuse the index of the dump. If the dump's index cannot
 * support the shard key, builds another one, whose name leaves that of the dump's index free. */
static bool build_key_index(sl_connection *connection, const sl_namespace *item,
                            const sl_target *target, sl_error *error) {
    bool ok = true, built = false, other = false;
    for (sl_walk walk = sl_walk_of(item->indexes); ok && sl_walk_next(&walk);) {
        if (!sl_index_has_key(&walk.item, item->shard_key))
            continue;
        other = true;
        if (!supports(&walk.item))
            continue;
        bson_t one = BSON_INITIALIZER;
        ok = (bson_append_document(&one, "0", 1, &walk.item) ||
              sl_error_memory(error, "building an index")) &&
             sl_collection_create_indexes(connection, target, &one, error);
        bson_destroy(&one);
        built = true;
    }
    if (!ok || built || !other)
        return ok;
    bson_t *one = BCON_NEW("0", "{", "key", BCON_DOCUMENT(item->shard_key), "name",
                           BCON_UTF8("shard_key"), "unique", BCON_BOOL(item->shard_unique),
                           "collation", "{", "locale", "simple", "}", "}");
    ok = sl_collection_create_indexes(connection, target, one, error);
    bson_destroy(one);
    return ok;
}

/* Fails only if the load must not begin. */
static bool distribute(sl_restore *restore, sl_connection *connection, const sl_namespace *item,
                       const sl_target *target, sl_error *error) {
    sl_error why = {0};
    pthread_mutex_lock(&restore->sharding);
    bool ok = sl_interrupt_requested() || presplit(connection, item, target, &why);
    pthread_mutex_unlock(&restore->sharding);
    if (!ok)
        sl_log_warning("%s.%s: not all chunks could be distributed beforehand: " SL_LINES,
                       target->database, target->collection, why.message);
    return !sl_interrupt_requested() ||
           sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted before documents were loaded");
}

/* Shards a collection that has just been created, or exists, by its key of --shard-keys, if it has
 * one. `before`: its state before. */
static bool restore_shard(sl_restore *restore, sl_connection *connection, const sl_namespace *item,
                          const sl_target *target, const sl_collection_facts *before,
                          sl_error *error) {
    bool empty;
    if (!item->shard_key)
        return true;
    if (sl_connection_server(connection)->deployment != SL_SHARDED) {
        sl_log_detail("%s.%s: not a sharded cluster: the collection is not sharded",
                      target->database, target->collection);
        return true;
    }
    if (before->exists && !before->sharded && item->kind != SL_NAMESPACE_TIME_SERIES &&
        (!sl_collection_is_empty(connection, target, &empty, error) || !empty))
        return error->code == SL_EXIT_OK &&
               sl_error_set(error, SL_EXIT_CLUSTER,
                            "%s.%s exists with documents and is not sharded: --drop replaces it; "
                            "without its entry in --shard-keys the documents are added to it",
                            target->database, target->collection);
    if (!build_key_index(connection, item, target, error) ||
        !sl_collection_shard(connection, target, item->shard_key, item->shard_unique,
                             item->collated, error))
        return false;
    /* The shard key of a time-series collection is not a key of its buckets. */
    return before->sharded || !item->data || item->kind == SL_NAMESPACE_TIME_SERIES ||
           sl_shard_key_is_hashed(item->shard_key) ||
           distribute(restore, connection, item, target, error);
}

/* ---- one namespace ---- */

/* Restores one namespace: creates it with its options, loads its documents, builds its indexes,
 * sets its validator.
 *
 * Each namespace has a folder in the work directory, with
 *
 *   dropping        with --drop: type and UUID of the collection that is dropped; written before
 *   created         this restore creates the collection; written before the collection is created,
 *                   unless may_be_at_once
 *   merged          of users and roles: the name of the collection from which they are merged
 *   journal ...     the files of its load; a small collection has none (may_be_at_once)
 *   loaded.json     before an oplog is replayed: the outcome so far
 *   restored.json   the outcome; written at the end
 *
 * A resumed restore skips namespaces with restored.json. It repeats the other steps, each of which
 * does nothing if it has been done; a load continues by its journal. --drop drops a collection only
 * if there is no file `created`, so that documents of this restore are never dropped, and only the
 * collection that `dropping` names, so that those of another user are not dropped either, who has
 * created a collection after the drop. */

#define SHOWN 40 /* maximum bytes of the namespace's name in the name of its folder */

/* One namespace while it is restored. */
typedef struct step {
    sl_restore *restore;
    sl_connection *connection; /* of this thread */
    const sl_namespace *item;
    sl_restored *outcome;
    char name[2 * SL_NAME_ROOM]; /* on the server */
    char folder[SL_RESTORE_DIRECTORY_ROOM + 80];
    bool indexed;                       /* all indexes have been built with the collection */
    bool at_once;                       /* its documents need no load: see may_be_at_once */
    bool compared_by_resume;            /* it failed because of a file that --resume compares */
    char uuid[SL_UUID_ROOM];            /* with `at_once`, when they were sent; "": not yet */
    uint64_t sent;                      /* of them, those that the server has stored */
    char collection[SL_NAME_ROOM + 16]; /* into which documents are inserted */
    sl_target target;
} step;

char *sl_namespace_name(const sl_namespace *item, char out[2 * SL_NAME_ROOM]) {
    snprintf(out, 2 * SL_NAME_ROOM, "%s.%s", item->database, item->collection);
    return out;
}

char *sl_namespace_target(const sl_namespace *item, char out[2 * SL_NAME_ROOM]) {
    snprintf(out, 2 * SL_NAME_ROOM, "%s.%s", item->to_database, item->to_collection);
    return out;
}

uint64_t sl_namespace_folder(const char *directory, const sl_namespace *item, char *out,
                             size_t room) {
    char name[2 * SL_NAME_ROOM], shown[SHOWN + 1];
    size_t length = 0;
    sl_namespace_name(item, name);
    for (; name[length] && length < SHOWN; length++) {
        char c = name[length];
        shown[length] = isalnum((unsigned char)c) || strchr("._-", c) ? c : '_';
    }
    shown[length] = '\0';
    uint64_t hash = sl_hash((const uint8_t *)name, strlen(name));
    snprintf(out, room, "%s/%s-%016llx", directory, shown, (unsigned long long)hash);
    return hash;
}

static bool has_file(const step *s, const char *name) {
    char path[600];
    return access(sl_restore_file(s->folder, name, path), F_OK) == 0;
}

static void begin(step *s, sl_restore *restore, sl_connection *connection, size_t index) {
    const sl_namespace *item = &restore->dump.items[index];
    *s = (step){.restore = restore,
                .connection = connection,
                .item = item,
                .outcome = &restore->outcomes[index]};
    sl_namespace_target(item, s->name);
    sl_namespace_folder(restore->directory, item, s->folder, sizeof s->folder);
    snprintf(s->collection, sizeof s->collection, "%s%s", sl_kinds[item->kind].stored,
             item->to_collection);
    s->target = (sl_target){
        .database = item->to_database, .collection = item->to_collection, .registry = ""};
}

/* ---- users and roles ---- */

#define MERGED_PREFIX "shardload-restore-"

/* They are loaded into a collection of database admin. Then the server merges this collection into
 * those that it has: with --drop it replaces users and roles that exist, and removes those that the
 * dump does not have. The collection has a unique name, which is in the file `merged`: other
 * restores, earlier or at the same time, use other ones. */
static bool name_own(step *s, sl_error *error) {
    const size_t prefix = strlen(MERGED_PREFIX);
    char path[600];
    uint64_t number;
    if (!sl_kinds[s->item->kind].merged_by)
        return true;
    s->target.database = "admin";
    s->target.collection = s->collection;
    FILE *file =
        sl_private_file_stream(sl_restore_file(s->folder, SL_WORK_MERGED, path), O_RDONLY, NULL);
    bool read = file && fgets(s->collection, SL_MERGED_ROOM, file) && s->collection[0];
    if (file)
        fclose(file);
    if (read) /* it is dropped at the end */
        return (strncmp(s->collection, MERGED_PREFIX, prefix) == 0 &&
                strspn(s->collection + prefix, "0123456789abcdef") == 16 &&
                !s->collection[prefix + 16]) ||
               sl_error_set(error, SL_EXIT_USAGE,
                            "%s is damaged: begin a new restore with another --work-dir", path);
    if (getentropy(&number, sizeof number) != 0)
        return sl_error_set(error, SL_EXIT_RESOURCES, "no random number: %s", strerror(errno));
    snprintf(s->collection, sizeof s->collection, MERGED_PREFIX "%016llx",
             (unsigned long long)number);
    return sl_private_file_replace(path, s->collection, strlen(s->collection), error);
}

bool sl_restore_merged_collection(sl_restore *restore, size_t index, char name[SL_MERGED_ROOM],
                                  sl_error *error) {
    step s;
    begin(&s, restore, NULL, index);
    bool ok = name_own(&s, error);
    snprintf(name, SL_MERGED_ROOM, "%.*s", SL_MERGED_ROOM - 1, s.target.collection);
    return ok;
}

static bool merge(const step *s, sl_error *error) {
    const char *database = strcmp(s->item->database, "admin") == 0 ? "" : s->item->database;
    const char *what = sl_kinds[s->item->kind].name;
    char word[SL_WORD_ROOM(sizeof s->name)];
    bool none = s->outcome->records == 0;
    if (none && !sl_collection_is_empty(s->connection, &s->target, &none, error))
        return false;
    if (s->outcome->rejected > 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s: some of the %s are damaged: none is changed on the server",
                            s->name, what);
    return none || /* those on the server are kept */
           sl_merge_users(s->connection, sl_kinds[s->item->kind].merged_by, s->collection, database,
                          s->restore->config->load->drop && !s->item->oplog_only, error) ||
           sl_error_prefix(error, "%s: the %s cannot be restored (--ns-exclude %s leaves them out)",
                           s->name, what, sl_shell_word(s->name, word, sizeof word));
}

/* After it has been merged, and that is known. */
static bool drop_merged_collection(const step *s, sl_error *error) {
    return !sl_kinds[s->item->kind].merged_by ||
           sl_collection_drop(s->connection, "admin", s->collection, error);
}

/* ---- files of the namespace ---- */

/* Checks that a namespace which an earlier run has restored still exists: on the same deployment,
 * and as the same collection (UUID). The collection of users and roles exists until it has been
 * merged. */
static bool check_earlier(const step *s, const bson_t *read, bool loaded, sl_error *error) {
    sl_collection_facts facts;
    const char *uuid = sl_look_string(read, "uuid");
    bool merged = sl_kinds[s->item->kind].merged_by != NULL;
    if ((merged && (!loaded || !uuid[0])) ||
        (!merged && s->item->after &&
         sl_oplog_is_begun(s->restore))) /* the oplog may have dropped it */
        return true;
    bool ok = sl_collection_read(s->connection, &s->target, &facts, error);
    if (ok && !(s->item->oplog_only && !uuid[0]) &&
        (!facts.exists || strcmp(facts.uuid, uuid) != 0))
        ok = sl_error_set(error, SL_EXIT_CLUSTER,
                          "--resume: %s has been restored by an earlier run, but %s: start a new "
                          "restore with another --work-dir",
                          s->name,
                          facts.exists ? "this server has another collection of this name"
                                       : "this server does not have it");
    sl_collection_facts_clear(&facts);
    return ok;
}

/* `loaded`: only its documents have been loaded. */
static bool read_earlier(step *s, bool loaded, sl_error *error) {
    char path[600];
    bson_t *read = NULL;
    if (!sl_json_read_private(
            sl_restore_file(s->folder, loaded ? SL_WORK_LOADED : SL_WORK_RESTORED, path), &read,
            error))
        return false;
    if (!check_earlier(s, read, loaded, error) || (!loaded && !drop_merged_collection(s, error))) {
        bson_destroy(read);
        return false;
    }
    *s->outcome = (sl_restored){.begun = true,
                                .earlier = !loaded,
                                .loaded = loaded,
                                .code = (sl_exit)sl_look_int64(read, "exitCode", 0),
                                .existed = (uint64_t)sl_look_int64(read, "existed", 0) > 0,
                                .records = (uint64_t)sl_look_int64(read, "records", 0),
                                .inserted = (uint64_t)sl_look_int64(read, "inserted", 0),
                                .already_stored = (uint64_t)sl_look_int64(read, "alreadyStored", 0),
                                .rejected = (uint64_t)sl_look_int64(read, "rejected", 0),
                                .indexes = (uint32_t)sl_look_int64(read, "indexes", 0)};
    bson_destroy(read);
    return true;
}

static bool write_outcome(const step *s, const char *name, sl_error *error) {
    const sl_restored *o = s->outcome;
    char path[600];
    sl_collection_facts facts;
    bool known = sl_collection_read(s->connection, &s->target, &facts, error);
    bson_t *record =
        BCON_NEW("namespace", BCON_UTF8(s->name), "uuid", BCON_UTF8(facts.uuid), "exitCode",
                 BCON_INT32((int32_t)o->code), "existed", BCON_INT32(o->existed), "records",
                 BCON_INT64((int64_t)o->records), "inserted", BCON_INT64((int64_t)o->inserted),
                 "alreadyStored", BCON_INT64((int64_t)o->already_stored), "rejected",
                 BCON_INT64((int64_t)o->rejected), "indexes", BCON_INT32((int32_t)o->indexes));
    if (known && s->uuid[0] && strcmp(s->uuid, facts.uuid) != 0)
        known = sl_error_set(error, SL_EXIT_CLUSTER,
                             "%s was dropped while it was restored: give the same command with "
                             "--resume",
                             s->name);
    sl_collection_facts_clear(&facts);
    bool ok = known && sl_json_write_file(sl_restore_file(s->folder, name, path), record, error);
    if (ok && s->item->unpacked && s->item->data)
        sl_private_file_remove(s->item->data);
    bson_destroy(record);
    return ok;
}

/* ---- the collection ---- */

static void list_difference(void *context, const char *key, const char *dumped,
                            const char *stored) {
    char *list = context;
    size_t used = strlen(list);
    (void)dumped, (void)stored;
    sl_print_text(list + used, 400 - used, "%s%s", used ? ", " : "", key);
}

/* Can the stored time-series collection read the dump's buckets? They do not contain the names of
 * the time field and the meta field, so these must be equal. Queries by time miss documents in
 * buckets that are longer than the collection allows. True for collections of other kinds. */
static bool takes_buckets(const bson_t *stored, const bson_t *dumped) {
    static const char *const names[] = {"timeseries.timeField", "timeseries.metaField"};
    static const char longest[] = "timeseries.bucketMaxSpanSeconds";
    return strcmp(sl_look_string(stored, names[0]), sl_look_string(dumped, names[0])) == 0 &&
           strcmp(sl_look_string(stored, names[1]), sl_look_string(dumped, names[1])) == 0 &&
           sl_look_int64(stored, longest, INT64_MAX) >= sl_look_int64(dumped, longest, 0);
}

/* The options of an existing collection that differ from those of the dump are reported; documents
 * are nevertheless added to it, as mongorestore does. */
static bool use_existing(step *s, const sl_collection_facts *facts, sl_error *error) {
    const char *type = sl_kinds[s->item->kind].type;
    if (strcmp(facts->type, type) != 0)
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "%s exists and is a %s, but in the dump it is a %s: --drop replaces "
                            "it; --ns-from and --ns-to restore it under another name",
                            s->name, facts->type, type);
    s->outcome->existed = true;
    char differ[400] = "";
    if (!sl_compare_options(s->item, &facts->options, list_difference, differ, error))
        return false;
    if (differ[0] &&
        (s->item->kind == SL_NAMESPACE_VIEW || !takes_buckets(&facts->options, s->item->options)))
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "%s %s exists with another definition than in the dump (%s): --drop "
                            "replaces it, and `shardload verify --dump` shows the differences",
                            sl_kinds[s->item->kind].name, s->name, differ);
    if (differ[0])
        sl_log_warning("%s exists with other options than in the dump, which are not set: %s; set "
                       "them by collMod, or by --resume of an interrupted restore; `shardload "
                       "verify --dump` shows the differences",
                       s->name, differ);
    return true;
}

/* Warns of what a sharded collection loses by --drop. */
static bool warn_of_sharding(const step *s, sl_error *error) {
    bson_t key = BSON_INITIALIZER;
    sl_error ignored;
    char zone[200];
    if (sl_collection_zone(s->connection, &s->target, zone, sizeof zone, &ignored) && zone[0])
        sl_log_warning("%s: --drop removes its ranges in zones, such as %s: set them again with "
                       "updateZoneKeyRange",
                       s->name, zone);
    bool unique = false,
         ok = s->item->shard_key ||
              sl_collection_shard_key(s->connection, &s->target, &key, &unique, error);
    if (ok && !bson_empty(&key)) {
        char *json = sl_document_json(&key);
        sl_log_warning("%s is sharded, and is replaced by an unsharded collection; to shard it, "
                       "give --shard-keys a FILE with the line `%s: {key: %s%s}`",
                       s->name, s->name, json ? json : "{...}", unique ? ", unique: true" : "");
        bson_free(json);
    }
    bson_destroy(&key);
    return ok;
}

/* Drops what has the name of the namespace, unless an earlier run has dropped something else. */
static bool drop(const step *s, sl_error *error) {
    char path[600], now[SL_COLLECTION_IDENTITY_ROOM], was[SL_COLLECTION_IDENTITY_ROOM] = "";
    if (!sl_collection_identity(s->connection, &s->target, now, error))
        return false;
    FILE *file =
        sl_private_file_stream(sl_restore_file(s->folder, SL_WORK_DROPPING, path), O_RDONLY, NULL);
    if (!file && !sl_private_file_replace(path, now, strlen(now), error))
        return false;
    bool recorded = file && fgets(was, sizeof was, file);
    if (file)
        fclose(file);
    if (file && now[0] && !(recorded && strcmp(was, now) == 0)) {
        sl_log_info("%s: an earlier run of this restore has dropped the collection; the one that "
                    "exists now is not dropped",
                    s->name);
        return true;
    }
    return warn_of_sharding(s, error) &&
           sl_collection_drop(s->connection, s->target.database, s->target.collection, error);
}

/* Can documents of any kind be inserted beside this index, in any order? That of a single field,
 * without options. */
static bool is_simple(const bson_t *index) {
    bson_t key;
    bson_iter_t at;
    bool simple = sl_look_inside(index, "key", &key) && bson_count_keys(&key) == 1 &&
                  bson_iter_init(&at, &key) && bson_iter_next(&at) && BSON_ITER_HOLDS_NUMBER(&at);
    for (bool more = simple && bson_iter_init(&at, index); simple && more && bson_iter_next(&at);)
        simple = sl_list_has("v|key|name", '|', sl_text_of(bson_iter_key(&at)));
    return simple;
}

/* Can a new collection be restored by two commands, one that creates it with its indexes and one
 * that inserts its documents? It has no options, its documents are few bytes, and all its indexes
 * are simple. A server creates each file of a collection and waits for the disk, so that one
 * command for all files takes half of the time; and a load with its journal takes longer than such
 * documents. If the restore ends in between, a resumed one takes the collection for one that
 * existed, and adds the documents that it lacks. */
static bool may_be_at_once(const sl_namespace *item) {
    bool simple = item->kind == SL_NAMESPACE_COLLECTION && item->data_bytes <= SL_AT_ONCE_BYTES &&
                  !item->after && !item->shard_key && bson_empty(item->options) &&
                  bson_empty(item->later);
    for (sl_walk walk = sl_walk_of(item->indexes); simple && sl_walk_next(&walk);)
        simple = is_simple(&walk.item);
    return simple;
}

static bool create_new(step *s, sl_error *error) {
    sl_error ignored;
    char path[600];
    s->at_once = may_be_at_once(s->item);
    if (!s->at_once &&
        !sl_private_file_replace(sl_restore_file(s->folder, SL_WORK_CREATED, path), "", 0, error))
        return false;
    s->indexed =
        s->at_once && s->item->index_count > 0 &&
        sl_collection_create_indexes(s->connection, &s->target, s->item->indexes, &ignored);
    return s->indexed || sl_collection_create(s->connection, &s->target, s->item->options, error);
}

static void note_lack(void *context, const char *key, const char *dumped, const char *stored) {
    bool *lacks = context;
    *lacks = *lacks || (dumped && !stored && !strchr("0f", *dumped) &&
                        sl_list_has("capped|clusteredIndex|collation", '|', sl_text_of(key)));
}

/* Fails if another program has created the collection as another kind, or without options that
 * cannot be set later: for instance by building an index, after this restore has dropped it. */
static bool check_created(const step *s, sl_error *error) {
    sl_collection_facts facts;
    bool ok = sl_collection_read(s->connection, &s->target, &facts, error);
    bool lacks = ok && strcmp(facts.type, sl_kinds[s->item->kind].type) != 0;
    ok = ok && sl_compare_options(s->item, &facts.options, note_lack, &lacks, error);
    if (ok && lacks)
        ok = sl_error_set(error, SL_EXIT_CLUSTER,
                          "%s was created without its options, or dropped, by another program, "
                          "such as another restore, while it was restored: end that program, and "
                          "start a new restore with --drop and another --work-dir",
                          s->name);
    sl_collection_facts_clear(&facts);
    return ok;
}

/* Does the oplog change this collection, which the dump does not have? */
static bool is_foreign(const sl_namespace *item) {
    return item->oplog_only && (!item->made || item->apart);
}

static bool refuse_foreign(const sl_namespace *item, sl_error *error) {
    char name[2 * SL_NAME_ROOM], to[2 * SL_NAME_ROOM], word[SL_WORD_ROOM(sizeof name)];
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "%s exists and is not in the dump, but the oplog changes it: the oplog is "
                        "of more collections than the dump. Leave it out with --ns-exclude %s, or "
                        "select those of the dump with --ns-include, and give another --work-dir",
                        sl_namespace_target(item, to),
                        sl_shell_word(sl_namespace_name(item, name), word, sizeof word));
}

bool sl_restore_may_begin(const sl_restore *restore, sl_error *error) {
    const sl_load_config *load = restore->config->load;
    bool exists = false;
    for (size_t i = 0; load->drop && !load->resume && !exists && i < restore->dump.count; i++) {
        const sl_namespace *item = &restore->dump.items[i];
        const sl_target target = {.database = item->to_database, .collection = item->to_collection};
        if (item->left_out || item->kind != SL_NAMESPACE_COLLECTION || !is_foreign(item))
            continue;
        if (!sl_target_exists(restore->connection, &target, &exists, error) ||
            (exists && !refuse_foreign(item, error)))
            return false;
    }
    return true;
}

static bool create(step *s, bool created, sl_error *error) {
    sl_connection *connection = s->connection;
    sl_collection_facts facts;
    bool begun = has_file(s, SL_WORK_JOURNAL), empty = true;
    const bool foreign = is_foreign(s->item);
    if (!created && !begun && !foreign && s->restore->config->load->drop && !drop(s, error))
        return false;
    bool ok = sl_collection_read(connection, &s->target, &facts, error);
    if (ok && foreign && facts.exists)
        ok = refuse_foreign(s->item, error);
    else if (ok && foreign && !s->item->made)
        sl_log_warning("%s is not in the dump, and the oplog does not create it: only the "
                       "documents that the oplog inserts or replaces are restored",
                       s->name);
    /* Documents before the load began: another program has created the collection. */
    if (ok && created && !begun && facts.exists && s->item->kind != SL_NAMESPACE_VIEW)
        ok = sl_collection_is_empty(connection, &s->target, &empty, error);
    const bool own = created && empty;
    if (ok && facts.exists && (s->item->replaced || s->item->oplog_only) && !created && !begun)
        ok = sl_error_set(
            error, SL_EXIT_CLUSTER,
            "%s exists, and the oplog creates, drops or renames it, or renames another to it: "
            "its documents would be lost. Restore under another name with --ns-from and --ns-to, "
            "or, if they may be lost, give --drop and another --work-dir",
            s->name);
    if (s->item->oplog_only) {
        s->outcome->existed = ok && facts.exists;
        sl_collection_facts_clear(&facts);
        return ok;
    }
    if (ok && facts.exists && !own)
        ok = use_existing(s, &facts, error);
    else if (ok && !facts.exists && begun && s->item->data)
        ok = sl_error_set(error, SL_EXIT_CLUSTER,
                          "%s has been dropped since the restore began: start a new restore with "
                          "another --work-dir",
                          s->name);
    else if (ok && !facts.exists)
        ok = create_new(s, error);
    if (ok && !begun && (created || !facts.exists) && !bson_empty(s->item->options))
        ok = check_created(s, error);
    if (ok && !begun)
        ok = restore_shard(s->restore, connection, s->item, &s->target, &facts, error);
    sl_collection_facts_clear(&facts);
    return ok;
}

static bool prepare(step *s, sl_error *error) {
    bool created = has_file(s, SL_WORK_CREATED);
    sl_interrupt_begin_change();
    bool ok = create(s, created, error);
    sl_interrupt_end_change();
    return ok;
}

/* ---- the documents ---- */

static void take_totals(step *s, const bson_t *record) {
    s->outcome->records = (uint64_t)sl_look_int64(record, "accounting.records", 0);
    s->outcome->inserted = (uint64_t)sl_look_int64(record, "accounting.inserted", 0);
    s->outcome->already_stored = (uint64_t)sl_look_int64(record, "accounting.alreadyStored", 0);
    s->outcome->rejected = (uint64_t)sl_look_int64(record, "accounting.rejectedByParser", 0) +
                           (uint64_t)sl_look_int64(record, "accounting.rejectedByServer", 0);
    /* Some may have been sent before this load. */
    uint64_t sent = s->sent < s->outcome->already_stored ? s->sent : s->outcome->already_stored;
    s->outcome->inserted += sent;
    s->outcome->already_stored -= sent;
}

/* The number of threads with which a load begins that may change it. The collections that are
 * restored at the same time share the threads by their size: more connections than threads only
 * compete for the server's processors. */
static unsigned threads_of(const sl_restore *restore, const sl_namespace *item) {
    double threads = restore->config->load->threads;
    double share = (double)item->data_bytes / (double)restore->bytes;
    double least = 1.0 / restore->at_once;
    unsigned rounded = (unsigned)(threads * (share > least ? share : least) + 0.5);
    return rounded > 0 ? rounded : 1;
}

/* The options and indexes that the namespace has at the end. */
static const sl_namespace *at_end(const step *s) {
    return s->item->after ? s->item->after : s->item;
}

/* Loads the documents. The load logs its errors. */
static sl_exit load(step *s) {
    const char *paths[] = {s->item->data};
    char path[600];
    bson_t record = BSON_INITIALIZER;
    sl_load_config config = *s->restore->config->load;
    config.paths = paths;
    config.path_count = 1;
    config.format = "bson";
    config.database = s->target.database;
    config.collection = s->collection;
    config.registry = ""; /* no other load has its sources */
    config.drop = false;
    config.shard_key = NULL; /* it has been sharded, or stays unsharded */
    config.shard_key_given = true;
    config.later_indexes = at_end(s)->indexes;
    /* In a collection that existed, an equal document may have been stored before. */
    config.again = s->outcome->existed;
    config.work_directory = s->folder;
    config.resume = config.resume_or_begin = has_file(s, SL_WORK_JOURNAL);
    config.report = config.html = NULL;
    config.connection = s->connection;
    config.equal_is_stored = true; /* by another restore of the same dump */
    config.part_of_trial = true;
    config.metrics = NULL;
    config.shared_limit = &s->restore->limit;
    config.above = s->restore->status;
    config.above_item = (size_t)(s->item - s->restore->dump.items);
    config.run_record = &record;
    config.no_resume = &s->outcome->no_resume;
    /* The documents of a capped collection are in the order of insertion; those of a small one are
     * one block. */
    if (s->item->capped || s->item->data_bytes <= SL_AT_ONCE_BYTES) {
        config.threads = 1;
        config.threads_most = 0;
    } else if (config.threads_most > 0) {
        config.threads = threads_of(s->restore, s->item);
    }
    sl_exit code = sl_load_run(&config);
    sl_connection_set_retry_check(s->connection, sl_restore_keep_trying, s->restore);
    bson_t *earlier = NULL;
    if (!bson_empty(&record)) {
        take_totals(s, &record);
    } else if (sl_json_read_private(sl_restore_file(s->folder, SL_WORK_RECORD, path), &earlier,
                                    NULL)) {
        take_totals(s, earlier); /* the load had been completed by an earlier run */
        bson_destroy(earlier);
    }
    bson_destroy(&record);
    return code;
}

/* A server replaces Timestamp(0, 0) in a field of a document that is inserted, so the load rejects
 * such a document. An update by an aggregation stores it unchanged. A document that is stored with
 * other content stays a reject. */
static bool store_unchanged(step *s, const sl_target *target, const bson_t *key,
                            const bson_t *document, sl_error *error) {
    bson_t filter, one, statements = BSON_INITIALIZER, *stored = NULL;
    const bool known = bson_has_field(document, "_id");
    BSON_APPEND_DOCUMENT_BEGIN(&statements, "0", &one);
    sl_append_update(key, document, document, &one);
    bson_append_document_end(&statements, &one);
    sl_look_inside(&statements, "0.q", &filter);
    bool ok = !known || sl_document_find(s->connection, target, &filter, &stored, error);
    if (ok && known && !stored) {
        ok = sl_documents_write(s->connection, target, "update", &statements,
                                s->restore->config->load->write_concern, error);
        s->outcome->inserted += ok;
        s->outcome->rejected -= ok;
    } else if (stored && bson_equal(stored, document)) {
        s->outcome->already_stored++;
        s->outcome->rejected--;
    }
    bson_destroy(stored);
    bson_destroy(&statements);
    return ok;
}

typedef struct storing {
    step *step;
    const sl_target *target;
    bson_t key;
} storing;

/* Returns false without an error after the last one. */
static bool store_if_empty_timestamp(void *context, const bson_t *document,
                                     const sl_bson_facts *facts, sl_error *error) {
    const storing *s = context;
    return (facts->empty_timestamp == 0 ||
            store_unchanged(s->step, s->target, &s->key, document, error)) &&
           s->step->outcome->rejected > 0;
}

static bool is_same_file(step *s, sl_error *error) {
    const bool same = sl_restore_same_file(s->item->data, &s->item->identity, error);
    s->compared_by_resume = !same && !error->no_resume;
    return same;
}

/* After the load. */
static bool store_empty_timestamps(step *s, sl_error *error) {
    const sl_target target = {.database = s->target.database, .collection = s->collection};
    uint64_t before = s->outcome->rejected;
    storing all = {.step = s, .target = &target};
    bool ok = sl_collection_shard_key(s->connection, &target, &all.key, NULL, error);
    sl_interrupt_begin_change();
    ok = ok && (sl_dump_each_sound_document(s->item->data, store_if_empty_timestamp, &all, error) ||
                s->outcome->rejected == 0);
    sl_interrupt_end_change();
    bson_destroy(&all.key);
    if (ok && sl_interrupt_requested())
        ok = sl_error_set(error, SL_EXIT_INTERRUPTED,
                          "interrupted while documents with Timestamp(0, 0) were stored");
    ok = ok && is_same_file(s, error);
    if (ok && s->outcome->rejected < before)
        sl_log_info(
            "%s: %s stored; rejects.tsv lists them", s->name,
            sl_plural(before - s->outcome->rejected, "document[s] with Timestamp(0, 0) [is|are]"));
    return ok;
}

/* Appends the documents to an array. False if the load must examine them: damage, a document
 * without an _id, or with values that the server would replace. */
static bool append_documents(sl_text text, bson_t *documents, uint32_t *count) {
    bool good = true;
    *count = 0;
    for (size_t at = 0; good && at < text.length;) {
        const uint8_t *bytes = (const uint8_t *)text.bytes + at;
        sl_bson_facts facts = {0};
        bson_t document;
        char room[16];
        const char *key;
        size_t length = bson_uint32_to_string((*count)++, &key, room, sizeof room);
        good = sl_bson_check(bytes, text.length - at, &facts) == SL_BSON_VALID &&
               facts.id_end > 0 && !facts.id_twice && facts.empty_timestamp == 0 &&
               bson_init_static(&document, bytes, facts.length) &&
               bson_append_document(documents, key, (int)length, &document);
        at += facts.length;
    }
    return good && !sl_interrupt_requested();
}

/* Stores the documents of a small collection, which this restore has just created. False: the load
 * sends them again. It finds those that are stored, and names those that cannot be stored. */
static bool store_at_once(step *s, sl_text text) {
    const sl_load_config *config = s->restore->config->load;
    bson_t documents = BSON_INITIALIZER;
    const bson_t all = BSON_INITIALIZER;
    sl_collection_facts facts;
    sl_error ignored;
    uint32_t count;
    uint64_t found = 0;
    sl_interrupt_begin_change();
    bool good = append_documents(text, &documents, &count);
    if (good) {
        good = sl_collection_read(s->connection, &s->target, &facts, &ignored);
        snprintf(s->uuid, sizeof s->uuid, "%s", facts.uuid);
        sl_collection_facts_clear(&facts);
    }
    good = good && sl_documents_insert(s->connection, &s->target, &documents, config->write_concern,
                                       &s->sent, &ignored);
    good =
        good && s->sent == count &&
        (!config->verify ||
         (sl_count_matching(s->connection, &s->target, &all, &found, &ignored) && found == count));
    sl_interrupt_end_change();
    bson_destroy(&documents);
    if (good)
        s->outcome->records = s->outcome->inserted = count;
    return good;
}

static bool load_documents(step *s, sl_error *error) {
    size_t room = s->at_once ? SL_AT_ONCE_BYTES : 64, length = 0;
    bool whole = false;
    if (!s->item->data)
        return true;
    char *head = malloc(room + SL_BSON_SLACK);
    if (!head)
        return sl_error_memory(error, "reading a dump");
    bool ok = is_same_file(s, error) &&
              sl_dump_head(s->item->data, head, room, &length, &whole, error) &&
              is_same_file(s, error);
    memset(head + length, 0, SL_BSON_SLACK);
    bool stored =
        ok && whole &&
        (length == 0 || (s->at_once && sl_rate_limit_batch(&s->restore->limit) == UINT32_MAX &&
                         store_at_once(s, (sl_text){head, length})));
    free(head);
    if (!ok || stored)
        return ok;
    s->outcome->code = load(s);
    if (s->outcome->rejected > 0 && sl_exit_is_complete(s->outcome->code)) {
        if (!store_empty_timestamps(s, error)) {
            s->outcome->code = error->code;
            return false;
        }
        s->outcome->code = s->outcome->rejected == 0 ? SL_EXIT_OK : SL_EXIT_REJECTS;
    }
    return sl_exit_is_complete(s->outcome->code);
}

/* ---- indexes and validator ---- */

/* Builds the indexes one by one, after one command for all has failed. Builds all indexes that can
 * be built, and names the others. */
static bool build_each(step *s, sl_error *error) {
    bson_iter_t iter;
    char problems[600] = "", folder[SL_WORD_ROOM(SL_WORK_DIRECTORY_ROOM)];
    size_t used = 0;
    bool keyed = false, other = false; /* the shard key does not allow a unique index */
    for (bool more = bson_iter_init(&iter, at_end(s)->indexes); more && bson_iter_next(&iter);) {
        bson_t one = BSON_INITIALIZER;
        sl_error why = {0};
        if (bson_append_iter(&one, "0", 1, &iter) &&
            sl_collection_create_indexes(s->connection, &s->target, &one, &why)) {
            s->outcome->indexes++;
        } else {
            char *json = sl_document_json(&one);
            used += sl_print_text(problems + used, sizeof problems - used, "\n  %.300s: " SL_LINES,
                                  json ? json : "", why.message);
            bson_free(json);
            const bool by_key = strstr(why.message, "shard key pattern") != NULL;
            keyed = keyed || by_key;
            other = other || !by_key;
        }
        bson_destroy(&one);
        if (sl_interrupt_requested())
            return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted while indexes were built");
    }
    if (used == 0)
        return true;
    sl_error_set(
        error, SL_EXIT_CLUSTER,
        "%s: %u of %u indexes could not be built:" SL_LINES
        "\n%s%s%s%s--no-index-restore with another --work-dir leaves the indexes out",
        s->name, at_end(s)->index_count - s->outcome->indexes, at_end(s)->index_count, problems,
        keyed ? "A unique index must have the fields of the shard key: to have it, restore the "
                "collection with another key, by --shard-keys FILE and --drop (which removes its "
                "documents). "
              : "",
        other ? "When the documents that contradict an index are corrected, --resume --work-dir "
              : "",
        other ? sl_shell_word(s->restore->directory, folder, sizeof folder) : "",
        other ? " builds it. " : "");
    error->no_resume = true;
    return false;
}

static bool build_indexes(step *s, sl_error *error) {
    const sl_namespace *end = at_end(s);
    s->outcome->indexes = 0;
    if (end->index_count == 0)
        return true;
    if (!s->indexed && s->outcome->existed)
        sl_log_info("%s: building missing indexes, if there are any", s->name);
    else if (!s->indexed)
        sl_log_info("%s: building %s", s->name, sl_plural(end->index_count, "index[|es]"));
    sl_error all = {0};
    if (!s->indexed && !sl_collection_create_indexes(s->connection, &s->target, end->indexes, &all))
        return build_each(s, error);
    s->outcome->indexes = end->index_count;
    return true;
}

static bool finish(step *s, sl_error *error) {
    sl_connection *connection = s->connection;
    if (sl_interrupt_requested())
        return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted before indexes were built");
    sl_interrupt_begin_change();
    bool ok = sl_kinds[s->item->kind].merged_by ? merge(s, error) : build_indexes(s, error);
    if (!s->outcome->existed && !bson_empty(at_end(s)->later)) {
        sl_error why = {0};
        bool set =
            sl_collection_modify(connection, &s->target, at_end(s)->later, &why) ||
            sl_error_prefix(&why, "%s: cannot set the options that follow the load", s->name);
        if (!set && ok)
            *error = why;
        else if (!set)
            sl_log_error(SL_LINES, why.message);
        ok = ok && set;
    }
    sl_interrupt_end_change();
    return ok;
}

/* ---- the namespace ---- */

/* Does the server answer? If not, all following namespaces would fail as well. */
static bool server_answers(const step *s) {
    sl_collection_facts facts;
    sl_error error;
    bool ok = sl_collection_read(s->connection, &s->target, &facts, &error);
    sl_collection_facts_clear(&facts);
    return ok;
}

static bool end(step *s, sl_error *error) {
    return finish(s, error) && write_outcome(s, SL_WORK_RESTORED, error) &&
           drop_merged_collection(s, error);
}

static bool run(step *s, sl_error *error) {
    if (s->restore->step == SL_RESTORE_FINISH) {
        s->outcome->loaded = !name_own(s, error) || !end(s, error);
        return !s->outcome->loaded;
    }
    if (!sl_private_folder_make(s->folder, NULL, error) || !name_own(s, error) ||
        !prepare(s, error))
        return false;
    if (sl_kinds[s->item->kind].no_documents || load_documents(s, error)) {
        s->outcome->loaded = s->restore->step == SL_RESTORE_LOAD;
        return s->outcome->loaded ? write_outcome(s, SL_WORK_LOADED, error) : end(s, error);
    }
    /* The remainder of the file cannot be read: indexes are built for the documents read so far. */
    if (s->outcome->code == SL_EXIT_SOURCE && s->outcome->inserted > 0 && !build_indexes(s, error))
        sl_log_error(SL_LINES, error->message);
    *error = s->outcome->code ? (sl_error){0} : *error;
    return false;
}

bool sl_restore_namespace(sl_restore *restore, sl_connection *connection, size_t index) {
    step s;
    sl_error error = {0};
    char bytes[SL_HUMAN_ROOM];
    begin(&s, restore, connection, index);
    if (restore->step == SL_RESTORE_FINISH && s.outcome->earlier)
        return true;
    bool loaded = restore->step == SL_RESTORE_LOAD && has_file(&s, SL_WORK_LOADED);
    if ((has_file(&s, SL_WORK_RESTORED) || loaded) && restore->config->load->resume) {
        if (name_own(&s, &error) && read_earlier(&s, !has_file(&s, SL_WORK_RESTORED), &error))
            return true;
        sl_log_error(SL_LINES, error.message);
        *s.outcome = (sl_restored){.begun = true, .code = error.code};
        return error.code != SL_EXIT_CLUSTER || server_answers(&s);
    }
    int64_t start = sl_clock_ns();
    s.outcome->begun = true;
    if (restore->step == SL_RESTORE_FINISH || s.item->oplog_only)
        sl_log_debug("%s", s.name);
    else if (sl_kinds[s.item->kind].no_documents)
        sl_log_detail("%s: %s", s.name, sl_kinds[s.item->kind].name);
    else
        sl_log_detail("%s: %s", s.name, sl_human_bytes((double)s.item->data_bytes, bytes));
    if (!run(&s, &error)) {
        if (error.code) {
            sl_log_error(SL_LINES, error.message);
            s.outcome->code = error.code;
            s.outcome->no_resume = error.no_resume || error.code == SL_EXIT_USAGE ||
                                   (error.code == SL_EXIT_SOURCE && !s.compared_by_resume);
        } else { /* the load has logged its error */
            sl_log_error("%s is not restored completely", s.name);
        }
    }
    s.outcome->seconds += sl_seconds_since(start);
    return s.outcome->code != SL_EXIT_INTERRUPTED && s.outcome->code != SL_EXIT_RESOURCES &&
           !sl_interrupt_requested() && (s.outcome->code != SL_EXIT_CLUSTER || server_answers(&s));
}
