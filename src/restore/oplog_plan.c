/* SPDX-License-Identifier: Apache-2.0 */
/* What an oplog changes in collections, options and indexes, computed before anything is restored.
 *
 * Collections are created, dropped and renamed during the replay. Their indexes are built, and the
 * options that follow the load are set, after the replay, in the state that `after` has: so no
 * unique index, TTL index or validator refuses or removes a document that an operation needs. */
#include "oplog.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "util/log.h"
#include "util/text.h"

#define REASONS_MAX 8
#define FIELDS_MAX 1000u /* of the options that commands change */

typedef struct planning {
    sl_restore *restore;
    sl_dump *dump;
    struct {
        const char *why; /* a string constant */
        uint64_t operations;
    } skipped[REASONS_MAX];
} planning;

/* ---- namespaces ---- */

sl_namespace *sl_oplog_namespace(const sl_dump *dump, const char *database,
                                 const char *collection) {
    const char *name = sl_without_buckets(collection);
    if (name != collection) {
        sl_namespace *series = sl_dump_find(dump, database, name);
        if (series && series->kind == SL_NAMESPACE_TIME_SERIES)
            return series;
    }
    return sl_dump_find(dump, database, collection);
}

static sl_namespace *find(const planning *p, const char *database, const char *collection) {
    return sl_oplog_namespace(p->dump, database, collection);
}

/* The namespace of this name, which is added if the dump does not have it. An operation on another
 * namespace may name one that is never restored. */
static sl_namespace *get(planning *p, const char *database, const char *collection,
                         sl_error *error) {
    sl_namespace *item = find(p, database, collection);
    if (item)
        return item;
    const char *why = sl_dump_not_restored(&p->restore->config->names, database, collection);
    if (why) {
        sl_error_set(error, SL_EXIT_SOURCE, "an operation that would change %.300s.%.300s: %s",
                     database, collection, why);
        return NULL;
    }
    item = sl_dump_get(p->dump, database, collection, error);
    if (!item)
        return NULL;
    item->oplog_only = true;
    const size_t index = (size_t)(item - p->dump->items);
    return sl_names_apply_to(&p->restore->config->names, p->dump, index, error) ? item : NULL;
}

/* Is the collection never restored? Counts the operation then. */
static bool skip(planning *p, const char *database, const char *collection) {
    const char *why = sl_dump_not_restored(&p->restore->config->names, database, collection);
    for (size_t i = 0; why && i < REASONS_MAX; i++) {
        if (p->skipped[i].why && strcmp(p->skipped[i].why, why) != 0)
            continue;
        p->skipped[i].why = why;
        p->skipped[i].operations++;
        break;
    }
    return why != NULL;
}

/* The state of the namespace after the oplog, which begins as that of the dump. */
static sl_namespace *after(planning *p, sl_namespace *item, sl_error *error) {
    if (item->after)
        return item->after;
    if (!sl_dump_keep_metadata(p->dump, item, error))
        return NULL;
    sl_namespace *made = calloc(1, sizeof *made);
    if (!made) {
        sl_error_memory(error, "reading the oplog");
        return NULL;
    }
    *made = (sl_namespace){.kind = item->kind,
                           .options = bson_new(),
                           .later = bson_copy(item->later),
                           .indexes = bson_copy(item->indexes),
                           .index_count = item->index_count,
                           .capped = item->capped,
                           .collated = item->collated,
                           .gone = item->oplog_only};
    return item->after = made;
}

/* ---- indexes ---- */

/* Do the words of a command mean this index: its name, its key, *, or one of several? */
static bool means(const bson_iter_t *words, const bson_t *index) {
    bson_t key, its_key;
    bson_iter_t one;
    if (BSON_ITER_HOLDS_UTF8(words))
        return strcmp(bson_iter_utf8(words, NULL), "*") == 0 ||
               strcmp(bson_iter_utf8(words, NULL), sl_look_string(index, "name")) == 0;
    if (BSON_ITER_HOLDS_DOCUMENT(words))
        return sl_document_at(words, &key) && sl_look_inside(index, "key", &its_key) &&
               bson_equal(&key, &its_key);
    bool found = false;
    for (bool more = BSON_ITER_HOLDS_ARRAY(words) && bson_iter_recurse(words, &one);
         !found && more && bson_iter_next(&one);)
        found = !BSON_ITER_HOLDS_ARRAY(&one) && means(&one, index);
    return found;
}

/* The index with the fields that a collMod changes. */
static void change_index(const bson_t *index, const bson_t *changes, bson_t *to) {
    bson_iter_t at, other;
    for (bool more = bson_iter_init(&at, index); more && bson_iter_next(&at);) {
        if (strcmp(bson_iter_key(&at), "name") == 0 ||
            !bson_iter_init_find(&other, changes, bson_iter_key(&at)))
            bson_append_iter(to, bson_iter_key(&at), -1, &at);
    }
    for (bool more = bson_iter_init(&at, changes); more && bson_iter_next(&at);) {
        const char *key = bson_iter_key(&at);
        bool off = BSON_ITER_HOLDS_BOOL(&at) && !bson_iter_bool(&at);
        if (strcmp(key, "name") != 0 && strcmp(key, "keyPattern") != 0 && !off)
            bson_append_iter(to, key, -1, &at);
    }
}

#define COPIED_PER_KEPT 16 /* bytes of indexes that are copied count as one that is kept */

/* Removes the indexes that `words` mean, or changes them if `changes` is not NULL. */
static bool edit_indexes(planning *p, sl_namespace *state, const bson_iter_t *words,
                         const bson_t *changes, sl_error *error) {
    if (!sl_dump_keep(p->dump, state->indexes->len / COPIED_PER_KEPT, error))
        return false;
    bson_t *kept = bson_new();
    uint32_t count = 0;
    for (sl_walk walk = sl_walk_of(state->indexes); sl_walk_next(&walk);) {
        char room[SL_ARRAY_KEY_ROOM];
        bool meant = means(words, &walk.item);
        bson_t one = BSON_INITIALIZER;
        if (meant && !changes)
            continue;
        if (meant)
            change_index(&walk.item, changes, &one);
        else
            bson_concat(&one, &walk.item);
        bson_append_document(kept, sl_array_key(count++, room), -1, &one);
        bson_destroy(&one);
    }
    bson_destroy(state->indexes);
    state->indexes = kept;
    state->index_count = state->listed = count;
    return kept || sl_error_memory(error, "reading the oplog");
}

/* Adds an index, in place of one of the same name. */
static bool add_index(planning *p, sl_namespace *state, const bson_t *index, sl_error *error) {
    bson_iter_t name;
    bson_t key;
    if (!bson_iter_init_find(&name, index, "name") || !BSON_ITER_HOLDS_UTF8(&name) ||
        !sl_look_inside(index, "key", &key))
        return sl_error_set(error, SL_EXIT_SOURCE, "an index without a key or a name");
    state->gone = false;
    return edit_indexes(p, state, &name, NULL, error) &&
           (sl_index_is_of_id(index) || sl_namespace_add_index(state, index, error));
}

/* ---- commands ---- */

/* An operation whose effect on the restored collections is not certain. */
static bool refuse(const sl_oplog_operation *o, const char *what, sl_error *error) {
    const unsigned long long seconds = o->timestamp >> 32, ordinal = o->timestamp & UINT32_MAX;
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "at timestamp %llu:%llu, the oplog " SL_LINES
                        "replay the entries before that time (--oplog-limit %llu:%llu), or leave "
                        "what it names out (--ns-exclude)",
                        seconds, ordinal, what, seconds, ordinal);
}

/* The replay writes to a namespace as to what it is in the dump, or, if the dump does not have it,
 * as to what it was first. */
static bool keep_kind(sl_namespace *item, bool first, sl_namespace_kind kind,
                      const sl_oplog_operation *o, sl_error *error) {
    sl_error what;
    if (first)
        item->kind = kind;
    if (item->kind == kind || item->left_out)
        return true;
    sl_error_set(&what, SL_EXIT_CLUSTER,
                 "creates %s.%s as a %s, but it was a %s before, which is not replayed: ",
                 item->database, item->collection, sl_kinds[kind].name, sl_kinds[item->kind].name);
    return refuse(o, what.message, error);
}

/* The fields of a command, without its name and those of the server. */
static void copy_fields(const bson_t *command, const char *except, bson_t *to) {
    bson_iter_t at;
    bool first = true;
    for (bool more = bson_iter_init(&at, command); more && bson_iter_next(&at); first = false) {
        const char *key = bson_iter_key(&at);
        if (!first && !sl_list_has(except, '|', sl_text_of(key)))
            bson_append_iter(to, key, -1, &at);
    }
}

bool sl_oplog_create_options(const sl_name_options *names, const sl_oplog_operation *operation,
                             sl_namespace *made, sl_error *error) {
    bson_t options = BSON_INITIALIZER;
    copy_fields(&operation->object,
                bson_has_field(&operation->object, "timeseries")
                    ? "idIndex|writeConcern|recordIdsReplicated|clusteredIndex|validator"
                    : "idIndex|writeConcern|recordIdsReplicated",
                &options);
    bool ok = sl_namespace_take_options(made, &options, error) &&
              sl_namespace_leave_out(names, made, error);
    bson_destroy(&options);
    return ok;
}

static bool plan_create(planning *p, const sl_oplog_operation *o, const char *database,
                        const char *collection, sl_error *error) {
    bool series = bson_has_field(&o->object, "timeseries");
    if (series)
        collection = sl_without_buckets(collection);
    sl_namespace *item = get(p, database, collection, error);
    const bool first = item && item->oplog_only && !item->after;
    sl_namespace *state = item ? after(p, item, error) : NULL;
    if (!state || !state->gone)
        return state != NULL;
    item->made = true;
    bson_reinit(state->options);
    bson_reinit(state->later);
    bson_reinit(state->indexes);
    state->index_count = 0;
    state->gone = state->collated = state->capped = false;
    state->known = true;
    state->kind = SL_NAMESPACE_COLLECTION;
    return sl_oplog_create_options(&p->restore->config->names, o, state, error) &&
           keep_kind(item, first, state->kind, o, error) &&
           (!item->oplog_only || !bson_empty(item->options) ||
            /* for --dry-run and the server's version */
            bson_concat(item->options, state->options) ||
            sl_error_memory(error, "reading the oplog"));
}

static bool mark_gone(planning *p, sl_namespace *item, sl_error *error) {
    sl_namespace *state = item ? after(p, item, error) : NULL;
    if (state) {
        bson_reinit(state->later);
        bson_reinit(state->indexes);
        state->index_count = 0;
        state->gone = state->known = item->replaced = true;
    }
    return state || !item;
}

static bool plan_drop(planning *p, const sl_oplog_operation *o, const char *database,
                      const char *collection, sl_error *error) {
    (void)o;
    return mark_gone(p, find(p, database, collection), error);
}

static bool plan_drop_database(planning *p, const sl_oplog_operation *o, const char *database,
                               const char *collection, sl_error *error) {
    (void)o, (void)collection;
    bool ok = true;
    for (size_t i = 0; ok && i < p->dump->count; i++) {
        const sl_namespace *state = p->dump->items[i].after;
        if (!(state && state->gone) && strcmp(p->dump->items[i].database, database) == 0)
            ok = mark_gone(p, &p->dump->items[i], error);
    }
    return ok;
}

/* Operations on documents change users and roles. Servers also create their collections and
 * indexes, which has no effect here, and do not drop these collections. */
static bool is_of_users(const char *database, const char *collection) {
    return sl_kinds[sl_dump_kind(database, collection)].merged_by != NULL;
}

typedef enum uuid_match { UUID_UNKNOWN, UUID_SAME, UUID_OTHER } uuid_match;

/* Is the collection of the operation the dumped one? */
static uuid_match match_uuid(const sl_namespace *item, const sl_oplog_operation *o) {
    bson_iter_t at;
    const uint8_t *bytes;
    uint32_t length;
    if (!item->uuid[0] || !bson_iter_init_find(&at, o->entry, "ui") || !BSON_ITER_HOLDS_BINARY(&at))
        return UUID_UNKNOWN;
    bson_iter_binary(&at, NULL, &length, &bytes);
    for (uint32_t i = 0; i < length && i < 16; i++) {
        if (sl_hex_digit(item->uuid[2 * i]) * 16 + sl_hex_digit(item->uuid[2 * i + 1]) != bytes[i])
            return UUID_OTHER;
    }
    return UUID_SAME;
}

/* Why the collection that this operation renames, or that it replaces, may be another one than that
 * of the restore; NULL: it is the same. An oplog that begins before the dump renames collections
 * that have other names in the dump. */
static const char *why_unknown(const sl_namespace *from, const sl_namespace *to,
                               const sl_oplog_operation *o) {
    bson_iter_t at;
    const sl_namespace *was = from ? from->after : NULL, *other = to ? to->after : NULL;
    const bool known = was && was->known;
    if (!from || (was && was->gone) || (from->oplog_only && !known))
        return "the dump does not have the renamed collection, and the oplog does not create it";
    const uuid_match match = match_uuid(from, o);
    if (!known && match == UUID_UNKNOWN)
        return "the renamed collection has no UUID in the dump or in the oplog";
    if (!known && match == UUID_OTHER)
        return "the renamed collection has another UUID in the dump";
    const bool drops = bson_iter_init_find(&at, &o->object, "dropTarget") &&
                       !(BSON_ITER_HOLDS_BOOL(&at) && !bson_iter_bool(&at));
    return !to || drops || (other ? other->gone || other->known : to->oplog_only)
               ? NULL
               : "the dump has both, although only the renamed one existed then";
}

static bool refuse_rename(const sl_oplog_operation *o, const char *from, const char *to,
                          const char *why, sl_error *error) {
    sl_error what;
    sl_error_set(&what, SL_EXIT_CLUSTER,
                 "renames %s to %s, which may be other collections than those of the restore: %s. "
                 "Use an oplog that begins when the dump began, or ",
                 from, to, why);
    return refuse(o, what.message, error);
}

static bool plan_rename(planning *p, const sl_oplog_operation *o, const char *database,
                        const char *collection, sl_error *error) {
    (void)database;
    const char *from = sl_look_string(&o->object, "renameCollection"),
               *to = sl_look_string(&o->object, "to"), *source;
    char to_database[SL_NAME_ROOM], from_database[SL_NAME_ROOM];
    if (!sl_oplog_split(from, from_database, &source) ||
        !sl_oplog_split(to, to_database, &collection))
        return sl_error_set(error, SL_EXIT_SOURCE, "renameCollection without two namespaces");
    if (is_of_users(from_database, source) || is_of_users(to_database, collection))
        return sl_error_set(error, SL_EXIT_SOURCE, "renameCollection of users is not replayed");
    sl_namespace *item = find(p, from_database, source), *other = find(p, to_database, collection);
    if (!item && (!other || other->left_out))
        return true;
    const char *why = why_unknown(item, other, o);
    if (!item)
        return refuse_rename(o, from, to, why, error);
    bool left_out = item->left_out;
    if (!get(p, to_database, collection, error))
        return false;
    item = find(p, from_database, source); /* may have moved */
    other = find(p, to_database, collection);
    if (item == other) /* no server does: the state after it would be copied onto itself */
        return sl_error_set(error, SL_EXIT_SOURCE, "renameCollection of %s to itself", from);
    sl_namespace *was = after(p, item, error), *state = was ? after(p, other, error) : NULL;
    if (!state)
        return false;
    if (left_out != other->left_out)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "the oplog renames %s to %s, but only one of them is selected: select "
                            "both or none with --ns-include and --ns-exclude",
                            from, to);
    if (why && !left_out)
        return refuse_rename(o, from, to, why, error);
    if (!sl_dump_keep_metadata(p->dump, was, error))
        return false;
    bson_destroy(state->later);
    bson_destroy(state->indexes);
    state->later = bson_copy(was->later);
    state->indexes = bson_copy(was->indexes);
    state->index_count = was->index_count;
    state->collated = was->collated;
    state->gone = false;
    state->known = other->replaced = other->made = true;
    return mark_gone(p, item, error);
}

static bool plan_create_index(planning *p, const sl_oplog_operation *o, const char *database,
                              const char *collection, sl_error *error) {
    sl_namespace *item = get(p, database, collection, error);
    sl_namespace *state = item ? after(p, item, error) : NULL;
    if (!state)
        return false;
    if (state->kind == SL_NAMESPACE_TIME_SERIES) /* the key is one of the buckets */
        return true;
    bson_t index = BSON_INITIALIZER;
    copy_fields(&o->object, "", &index);
    bool ok = add_index(p, state, &index, error);
    bson_destroy(&index);
    return ok;
}

static bool plan_commit_indexes(planning *p, const sl_oplog_operation *o, const char *database,
                                const char *collection, sl_error *error) {
    sl_namespace *item = get(p, database, collection, error);
    sl_namespace *state = item ? after(p, item, error) : NULL;
    bool ok = state != NULL;
    for (sl_walk walk = sl_walk_start(&o->object, "indexes"); ok && sl_walk_next(&walk);)
        ok = state->kind == SL_NAMESPACE_TIME_SERIES || add_index(p, state, &walk.item, error);
    return ok;
}

static bool plan_drop_indexes(planning *p, const sl_oplog_operation *o, const char *database,
                              const char *collection, sl_error *error) {
    sl_namespace *item = find(p, database, collection);
    sl_namespace *state = item ? after(p, item, error) : NULL;
    bson_iter_t words;
    return !item || (state && (!bson_iter_init_find(&words, &o->object, "index") ||
                               edit_indexes(p, state, &words, NULL, error)));
}

/* Sets a field of the options that are set after the replay. */
static bool set_later(sl_namespace *state, const bson_iter_t *field) {
    bson_t *made = bson_new();
    const char *key = bson_iter_key(field);
    bool off = strcmp(key, "expireAfterSeconds") == 0 && BSON_ITER_HOLDS_UTF8(field);
    bson_copy_to_excluding_noinit(state->later, made, key, NULL);
    bool ok = off || bson_append_iter(made, key, -1, field);
    bson_destroy(state->later);
    state->later = made;
    return ok;
}

/* Each field is compared with those of an earlier command. */
static bool few_fields(const bson_t *options, sl_error *error) {
    return bson_count_keys(options) <= FIELDS_MAX ||
           sl_error_set(error, SL_EXIT_SOURCE, "collMod with more than %u options", FIELDS_MAX);
}

static bool plan_modify(planning *p, const sl_oplog_operation *o, const char *database,
                        const char *collection, sl_error *error) {
    sl_namespace *item = find(p, database, collection);
    sl_namespace *state = item ? after(p, item, error) : NULL;
    bson_t fields = BSON_INITIALIZER, index;
    bson_iter_t at, words;
    bool ok = state || !item;
    copy_fields(&o->object, "noPadding|usePowerOf2Sizes|writeConcern", &fields);
    for (bool more = state && bson_iter_init(&at, &fields); ok && more && bson_iter_next(&at);) {
        if (strcmp(bson_iter_key(&at), "index") != 0)
            ok = few_fields(state->later, error) &&
                 (set_later(state, &at) || sl_error_memory(error, "reading the oplog"));
        else if (sl_document_at(&at, &index) && (bson_iter_init_find(&words, &index, "name") ||
                                                 bson_iter_init_find(&words, &index, "keyPattern")))
            ok = few_fields(&index, error) && edit_indexes(p, state, &words, &index, error) &&
                 sl_dump_keep_metadata(p->dump, state, error);
    }
    bson_destroy(&fields);
    return ok;
}

typedef struct command_row {
    const char *name;
    bool (*plan)(planning *p, const sl_oplog_operation *operation, const char *database,
                 const char *collection, sl_error *error); /* NULL: nothing is to be done */
    const char *refused;                                   /* the reason; NULL: replayed */
} command_row;

static const command_row commands[] = {
    {"create", plan_create, NULL},
    {"drop", plan_drop, NULL},
    {"dropDatabase", plan_drop_database, NULL},
    {"renameCollection", plan_rename, NULL},
    {"createIndexes", plan_create_index, NULL},
    {"commitIndexBuild", plan_commit_indexes, NULL},
    {"startIndexBuild", NULL, NULL}, /* commitIndexBuild has the indexes */
    {"abortIndexBuild", NULL, NULL},
    {"dropIndexes", plan_drop_indexes, NULL},
    {"deleteIndexes", plan_drop_indexes, NULL},
    {"dropIndex", plan_drop_indexes, NULL},
    {"deleteIndex", plan_drop_indexes, NULL},
    {"collMod", plan_modify, NULL},
    {"dbCheck", NULL, NULL}, /* compares members of a replica set */
    {"setMultikeyMetadata", NULL, NULL},
    {"convertToCapped", NULL,
     "which documents it keeps depends on their order on the disk of the dumped server"},
    {"emptycapped", NULL, "it is a command for tests of the server"},
};

static bool plan_command(planning *p, const sl_oplog_operation *o, const char *database,
                         sl_error *error) {
    const command_row *row = NULL;
    for (size_t i = 0; !row && i < sizeof commands / sizeof commands[0]; i++)
        row = strcmp(commands[i].name, o->command) == 0 ? &commands[i] : NULL;
    if (!row || row->refused)
        return sl_error_set(error, SL_EXIT_SOURCE, "the command %.80s is not replayed%s%s",
                            o->command, row ? ": " : "", row ? row->refused : "");
    const char *collection = sl_look_string(&o->object, o->command);
    if ((row->plan == plan_drop && is_of_users(database, collection)) ||
        (row->plan == plan_drop_database && strcmp(database, "admin") == 0))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "the command %s of the users in %s is not replayed", o->command,
                            o->name);
    if (!row->plan || skip(p, database, collection) || strcmp(collection, "system.views") == 0 ||
        is_of_users(database, collection))
        return true;
    if ((!collection[0] && row->plan != plan_drop_database) || strlen(collection) >= SL_NAME_ROOM)
        return sl_error_set(error, SL_EXIT_SOURCE, "the command %s names no collection",
                            o->command);
    return row->plan(p, o, database, collection, error);
}

/* ---- documents ---- */

/* Views are documents of system.views. That of a time-series collection follows its buckets. */
static bool plan_view(planning *p, const sl_oplog_operation *o, sl_error *error) {
    char database[SL_NAME_ROOM];
    const char *view;
    const bson_t *of = o->kind == 'u' ? &o->target : &o->object;
    if (!sl_oplog_split(sl_look_string(of, "_id"), database, &view))
        return sl_error_set(error, SL_EXIT_SOURCE, "a view without a name");
    if (strncmp(sl_look_string(&o->object, "viewOn"), SL_BUCKETS, strlen(SL_BUCKETS)) == 0)
        return true;
    sl_namespace *item = o->kind == 'i' ? get(p, database, view, error) : find(p, database, view);
    if (!item || item->kind == SL_NAMESPACE_TIME_SERIES)
        return item || o->kind != 'i';
    if (o->kind == 'd')
        return mark_gone(p, item, error);
    const bool first = item->oplog_only && !item->after;
    item->made = item->made || o->kind == 'i';
    sl_namespace *state = after(p, item, error);
    if (!state || (state->gone && !keep_kind(item, first, SL_NAMESPACE_VIEW, o, error)))
        return false;
    state->gone = false;
    return true;
}

/* The index of a server before 4.2: a document of system.indexes. */
static bool plan_index(planning *p, const sl_oplog_operation *o, sl_error *error) {
    char database[SL_NAME_ROOM];
    const char *collection;
    if (o->kind != 'i' || !sl_oplog_split(sl_look_string(&o->object, "ns"), database, &collection))
        return sl_error_set(error, SL_EXIT_SOURCE, "a change of system.indexes is not replayed");
    sl_namespace *item = get(p, database, collection, error);
    sl_namespace *state = item ? after(p, item, error) : NULL;
    return state && add_index(p, state, &o->object, error);
}

static bool plan_document(planning *p, const sl_oplog_operation *o, const char *database,
                          const char *collection, sl_error *error) {
    bson_iter_t id;
    sl_error why;
    if (!bson_iter_init_find(&id, o->kind == 'u' ? &o->target : &o->object, "_id"))
        return sl_error_set(error, SL_EXIT_SOURCE, "an operation %c without _id in %s", o->kind,
                            o->name);
    if (o->kind == 'u' && !sl_oplog_update_check(&o->object, &why))
        return sl_error_set(error, SL_EXIT_SOURCE, "an update in %s is not replayed: " SL_LINES,
                            o->name, why.message);
    sl_namespace *dumped = find(p, database, collection);
    if (dumped && !dumped->other && match_uuid(dumped, o) == UUID_OTHER)
        dumped->other = o->timestamp;
    if (o->kind == 'd' || (o->kind == 'u' && sl_oplog_update_form(&o->object) != SL_OPLOG_DOCUMENT))
        return true;
    sl_namespace *item = get(p, database, collection, error);
    if (item && item->oplog_only && !after(p, item, error))
        return false;
    if (item && item->after)
        item->after->gone = false;
    return item != NULL;
}

bool sl_oplog_split(const char *name, char database[SL_NAME_ROOM], const char **collection) {
    const char *dot = strchr(name, '.');
    *collection = dot ? dot + 1 : "";
    if (!dot || dot == name || !dot[1] || strlen(name) >= SL_NAME_ROOM)
        return false;
    memcpy(database, name, (size_t)(dot - name));
    database[dot - name] = '\0';
    return true;
}

static bool plan_operation(void *context, const sl_oplog_operation *o, sl_error *error) {
    planning *p = context;
    char database[SL_NAME_ROOM];
    const char *collection;
    if (!sl_oplog_split(o->name, database, &collection))
        return sl_error_set(error, SL_EXIT_SOURCE, "the namespace \"%.300s\"", o->name);
    const bool kept =
        o->kind == 'c' || sl_list_has("system.views|system.indexes", '|', sl_text_of(collection));
    if (kept && !sl_dump_keep(p->dump, o->object.len, error))
        return false;
    if (o->kind == 'c')
        return plan_command(p, o, database, error);
    if (skip(p, database, collection))
        return true;
    if (strcmp(collection, "system.views") == 0)
        return plan_view(p, o, error);
    if (strcmp(collection, "system.indexes") == 0)
        return plan_index(p, o, error);
    return plan_document(p, o, database, collection, error);
}

/* A collection that was dropped and created again has had two UUIDs in the oplog. */
static bool check_uuids(const sl_dump *dump, sl_error *error) {
    for (size_t i = 0; i < dump->count; i++) {
        const sl_namespace *item = &dump->items[i];
        sl_error what;
        if (!item->other || item->left_out || item->kind != SL_NAMESPACE_COLLECTION ||
            (item->after && item->after->known))
            continue;
        sl_error_set(&what, SL_EXIT_CLUSTER,
                     "changes a collection %s.%s with another UUID than that of the dump: it is "
                     "the oplog of another deployment, or of another time. Use another one, or ",
                     item->database, item->collection);
        return refuse(&(sl_oplog_operation){.timestamp = item->other}, what.message, error);
    }
    return true;
}

/* Marks the namespaces of databases of which the dump restores nothing: an oplog of all databases
 * may be replayed beside a dump of one. */
static void mark_apart(sl_dump *dump) {
    const sl_namespace *last = NULL; /* the items are sorted by their names */
    for (size_t i = 0; i < dump->count; i++) {
        sl_namespace *item = &dump->items[i];
        if (!item->oplog_only)
            continue;
        const bool same = last && strcmp(last->database, item->database) == 0;
        item->apart = same ? last->apart : true;
        for (size_t k = 0; !same && item->apart && k < dump->count; k++) {
            const sl_namespace *other = &dump->items[k];
            item->apart = other->oplog_only || other->left_out ||
                          strcmp(other->database, item->database) != 0;
        }
        last = item;
    }
}

bool sl_oplog_plan(sl_restore *restore, sl_error *error) {
    planning p = {.restore = restore, .dump = &restore->dump};
    const sl_restore_config *config = restore->config;
    if (config->oplog_file && restore->dump.oplog)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "the dump has an oplog, and --oplog-file names another one: remove %s, "
                            "or leave --oplog-file out",
                            restore->dump.oplog->data ? restore->dump.oplog->data : config->dump);
    restore->oplog = config->oplog_file    ? config->oplog_file
                     : restore->dump.oplog ? restore->dump.oplog->data
                                           : NULL;
    if (config->dry_run && restore->dump.oplog && !restore->oplog) {
        sl_log_info("oplog: it is replayed; a dry run does not read the oplog of an archive");
        return true;
    }
    if (!restore->oplog)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "--oplog-replay: the dump has no oplog; only mongodump --oplog writes "
                            "one, and --oplog-file names another file");
    restore->oplog_identity = sl_source_identity_at(restore->oplog);
    if (!restore->oplog_identity.inode &&
        (strcmp(restore->oplog, "-") == 0 || access(restore->oplog, F_OK) == 0))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s is not a regular file, and an oplog is read twice: save it to a "
                            "file first, and name that file with --oplog-file",
                            restore->oplog);
    if (!sl_oplog_each(restore->oplog, config->oplog_limit, plan_operation, &p,
                       &restore->oplog_totals, error))
        return false;
    if (restore->oplog_totals.bytes == 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "%s has no entries, but mongodump --oplog writes at least one: it may "
                            "be truncated%s",
                            restore->oplog,
                            config->oplog_file
                                ? ". If nothing was written in its time, it is not needed"
                                : ". Dump again, or restore the collections without it: without "
                                  "--oplog-replay, and with --skip-other");
    for (size_t i = 0; i < REASONS_MAX && p.skipped[i].why; i++)
        sl_log_info("oplog: %s not replayed: %s",
                    sl_plural(p.skipped[i].operations, "operation[s] [is|are]"), p.skipped[i].why);
    if (restore->oplog_totals.open > 0)
        sl_log_info("oplog: %s not replayed",
                    sl_plural(restore->oplog_totals.open,
                              "transaction[s] that [does|do] not end in the oplog [is|are]"));
    for (size_t i = 0; i < restore->dump.count; i++) {
        sl_namespace *state = restore->dump.items[i].after;
        if (state && !sl_namespace_leave_out(&config->names, state, error))
            return false;
    }
    sl_dump_sort(&restore->dump);
    mark_apart(&restore->dump);
    return check_uuids(&restore->dump, error);
}
