/* SPDX-License-Identifier: Apache-2.0 */
/* The replay of an oplog, by ordinary commands, so that it also works through a router.
 *
 * Documents. Operations are applied to documents in memory, which are read from the server when an
 * update needs them. Up to SLOTS_MAX changed documents are written together: each once, as a
 * complete document or a removal, in a state that it had in the dumped server. A document is
 * written with the aggregation {$replaceWith: {$literal: document}}, because the server would
 * change or refuse some documents in other commands: those with Timestamp(0, 0), or with names that
 * begin with $. In a collection with a unique index, the order of all writes matters, and in a
 * capped collection that of insertions: there each operation is written alone.
 *
 * Position. The work directory's file `oplog-position` has the number of operations that are
 * completely executed. It is written, and synced, after each write of documents, and before and
 * after each command. So a resumed replay repeats operations on documents between two commands, all
 * in their order, or one command: both end with the same content.
 *
 * Sharded collections. A document is read before it is written, because its shard key on the server
 * must be in the filter. If an operation changes the key, the document is removed and inserted. The
 * position file has it meanwhile, so that it is not lost if the program is killed in between. */
#include "oplog.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bson/bson_check.h"
#include "bson/bson_lookup.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/private_file.h"
#include "util/text.h"

#define SLOTS_MAX 1000u
#define TABLE 4096u /* places of the hash table, a power of 2 */
#define WAITING_BYTES_MAX ((size_t)16 << 20)
/* The waiting documents, one operation's, and names. */
#define POSITION_BYTES_MAX ((size_t)64 << 20)
#define COMMAND_BYTES_MAX ((size_t)8 << 20) /* unless one document is larger */
#define LOG_SECONDS 10.0

/* What is known of the collection of a namespace. */
typedef struct place {
    bool known;
    bool strict; /* each operation is written alone */
    bool capped;
    bson_t key;                  /* the shard key; empty: not sharded */
    char merged[SL_MERGED_ROOM]; /* of users and roles: the collection that is merged after the
                                    replay; "" until it is known */
} place;

/* A document while operations are applied to it. */
typedef struct slot {
    size_t item; /* index of its namespace in the dump */
    bson_t *id;  /* {_id} */
    bson_t *now; /* NULL: it does not exist */
    bson_t *was; /* of a sharded collection: on the server; NULL: it does not exist */
    bool changed;
} slot;

typedef struct replay {
    sl_restore *restore;
    sl_connection *connection;
    const sl_dump *dump;
    place *places; /* one per namespace of the dump */
    slot slots[SLOTS_MAX];
    size_t count, bytes;
    uint16_t table[TABLE]; /* number of a slot plus 1; 0: none */
    uint64_t next;         /* operations that are applied, perhaps in memory only */
    uint64_t written;      /* ... according to the position file */
    int64_t logged;
} replay;

/* ---- the position ---- */

bool sl_oplog_is_begun(const sl_restore *restore) {
    char path[600];
    return access(sl_restore_file(restore->directory, SL_WORK_OPLOG_POSITION, path), F_OK) == 0;
}

bool sl_oplog_is_same(const sl_restore *restore, const bson_t *was, sl_error *error) {
    const int64_t hash = (int64_t)restore->oplog_totals.hash;
    return sl_look_int64(was, "hash", hash) == hash ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "--resume: %s is not the oplog with which this restore began: give it the "
                        "same oplog again, or begin a new restore with another --work-dir and "
                        "--drop",
                        restore->oplog);
}

/* Appends the fields of the shard key `pattern`, except _id, with their values in the document. */
static void append_key_values(const bson_t *pattern, const bson_t *document, bson_t *key) {
    bson_iter_t field, value;
    for (bool more = bson_iter_init(&field, pattern); more && bson_iter_next(&field);) {
        const char *name = bson_iter_key(&field);
        if (strcmp(name, "_id") == 0)
            continue;
        if (sl_look_find(document, name, &value))
            bson_append_iter(key, name, -1, &value);
        else
            bson_append_null(key, name, -1);
    }
}

/* Does an operation change the shard key of the document? */
static bool is_moved(const replay *r, const slot *s) {
    const bson_t *pattern = &r->places[s->item].key;
    bson_t before = BSON_INITIALIZER, after = BSON_INITIALIZER;
    bool moved = s->was && s->now && !bson_empty(pattern);
    if (moved) {
        append_key_values(pattern, s->was, &before);
        append_key_values(pattern, s->now, &after);
        moved = !bson_equal(&before, &after);
    }
    bson_destroy(&before);
    bson_destroy(&after);
    return moved;
}

static void append_binary(bson_t *to, const char *name, const bson_t *document) {
    BSON_APPEND_BINARY(to, name, BSON_SUBTYPE_BINARY, bson_get_data(document), document->len);
}

/* The document that append_binary has appended; NULL: none, or no memory. */
static bson_t *copy_binary(const bson_t *from, const char *name) {
    bson_iter_t at;
    const uint8_t *bytes = NULL;
    uint32_t length = 0;
    if (bson_iter_init_find(&at, from, name))
        bson_iter_binary(&at, NULL, &length, &bytes);
    return bytes ? bson_new_from_data(bytes, length) : NULL;
}

/* `moved`: with the documents whose shard key changes. */
static bool write_position(replay *r, uint64_t done, bool moved, sl_error *error) {
    char path[600];
    bson_t position = BSON_INITIALIZER, array, one;
    BSON_APPEND_INT64(&position, "hash", (int64_t)r->restore->oplog_totals.hash);
    BSON_APPEND_INT64(&position, "done", (int64_t)done);
    BSON_APPEND_ARRAY_BEGIN(&position, "moved", &array);
    for (size_t i = 0, n = 0; moved && i < r->count; i++) {
        const slot *s = &r->slots[i];
        if (!is_moved(r, s))
            continue;
        sl_record_begin_item(&array, n++, &one);
        BSON_APPEND_UTF8(&one, "db", r->dump->items[s->item].database);
        BSON_APPEND_UTF8(&one, "collection", r->dump->items[s->item].collection);
        append_binary(&one, "was", s->was);
        append_binary(&one, "now", s->now);
        bson_append_document_end(&array, &one);
    }
    bool ok =
        bson_append_array_end(&position, &array) || sl_error_memory(error, "replaying the oplog");
    ok = ok && sl_private_file_replace(
                   sl_restore_file(r->restore->directory, SL_WORK_OPLOG_POSITION, path),
                   (const char *)bson_get_data(&position), position.len, error);
    bson_destroy(&position);
    r->written = done;
    return ok;
}

/* ---- documents in memory ---- */

static sl_target target_of(const replay *r, size_t item, char name[SL_NAME_ROOM + 16]) {
    const sl_namespace *of = &r->dump->items[item];
    if (sl_kinds[of->kind].merged_by)
        return (sl_target){.database = "admin", .collection = r->places[item].merged};
    snprintf(name, SL_NAME_ROOM + 16, "%s%s", sl_kinds[of->kind].stored, of->to_collection);
    return (sl_target){.database = of->to_database, .collection = name};
}

static void clear_slots(replay *r) {
    for (size_t i = 0; i < r->count; i++) {
        bson_destroy(r->slots[i].id);
        bson_destroy(r->slots[i].now);
        bson_destroy(r->slots[i].was);
    }
    memset(r->table, 0, sizeof r->table);
    r->count = r->bytes = 0;
}

/* The place of a document in the hash table; its value is 0 if the document has no slot. */
static uint16_t *find_place(replay *r, size_t item, const bson_t *id) {
    uint64_t hash = sl_hash_mix(sl_seeded_hash(bson_get_data(id), id->len, sl_process_seed()),
                                item ^ SL_HASH_A);
    for (size_t at = hash % TABLE;; at = (at + 1) % TABLE) {
        const slot *s = r->table[at] ? &r->slots[r->table[at] - 1] : NULL;
        if (!s || (s->item == item && bson_equal(s->id, id)))
            return &r->table[at];
    }
}

static void change_slot(replay *r, slot *s, bson_t *document) {
    r->bytes += document ? document->len : 0;
    r->bytes -= s->now ? s->now->len : 0;
    bson_destroy(s->now);
    s->now = document;
    s->changed = true;
}

/* ---- writing documents ---- */

/* The filter of the document on the server: its _id, and the shard key that `document` has. */
static void append_filter(const bson_t *key, const bson_t *of, const bson_t *document, bson_t *to) {
    bson_t filter, equal;
    bson_iter_t id;
    BSON_APPEND_DOCUMENT_BEGIN(to, "q", &filter);
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &equal);
    if (bson_iter_init_find(&id, of, "_id"))
        bson_append_iter(&equal, "$eq", 3, &id);
    bson_append_document_end(&filter, &equal);
    if (document)
        append_key_values(key, document, &filter);
    bson_append_document_end(to, &filter);
}

void sl_append_update(const bson_t *key, const bson_t *id, const bson_t *document,
                      bson_t *statement) {
    bson_t stages, stage, replace;
    append_filter(key, id, document, statement);
    BSON_APPEND_ARRAY_BEGIN(statement, "u", &stages);
    BSON_APPEND_DOCUMENT_BEGIN(&stages, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$replaceWith", &replace);
    BSON_APPEND_DOCUMENT(&replace, "$literal", document);
    bson_append_document_end(&stage, &replace);
    bson_append_document_end(&stages, &stage);
    bson_append_array_end(statement, &stages);
    BSON_APPEND_BOOL(statement, "upsert", true);
}

static bool send_statements(replay *r, size_t item, bool updates, bson_t *statements,
                            sl_error *error) {
    char name[SL_NAME_ROOM + 16];
    const sl_target target = target_of(r, item, name);
    bool ok = bson_empty(statements) ||
              sl_documents_write(r->connection, &target, updates ? "update" : "delete", statements,
                                 r->restore->config->load->write_concern, error);
    bson_reinit(statements);
    return ok;
}

/* Is the document to be removed (`updates` false), or written? */
static bool is_due(const replay *r, const slot *s, bool updates) {
    if (!s->changed || updates)
        return s->changed && s->now;
    return s->now ? is_moved(r, s) : bson_empty(&r->places[s->item].key) || s->was;
}

/* Sends the removals, or the updates, of one collection. */
static bool write_collection(replay *r, size_t first, bool updates, sl_error *error) {
    bson_t statements = BSON_INITIALIZER, one;
    size_t item = r->slots[first].item, count = 0;
    bool ok = true;
    for (size_t i = first; ok && i < r->count; i++) {
        const slot *s = &r->slots[i];
        if (s->item != item || !is_due(r, s, updates))
            continue;
        if (count > 0 && statements.len + (s->now ? s->now->len : 0) > COMMAND_BYTES_MAX) {
            ok = send_statements(r, item, updates, &statements, error);
            count = 0;
        }
        sl_record_begin_item(&statements, count++, &one);
        if (updates) {
            sl_append_update(&r->places[item].key, s->id, s->now, &one);
        } else {
            append_filter(&r->places[item].key, s->id, s->was, &one);
            BSON_APPEND_INT32(&one, "limit", 1);
        }
        bson_append_document_end(&statements, &one);
    }
    ok = ok && send_statements(r, item, updates, &statements, error);
    bson_destroy(&statements);
    return ok;
}

/* Writes all changed documents, and then the position. */
static bool flush(replay *r, sl_error *error) {
    bool ok = true, moved = false;
    for (size_t i = 0; i < r->count; i++)
        moved = moved || is_moved(r, &r->slots[i]);
    sl_interrupt_begin_change();
    sl_context_changes();
    ok = !moved || write_position(r, r->written, true, error);
    for (size_t i = 0; ok && i < r->count; i++) {
        bool first = true;
        for (size_t k = 0; first && k < i; k++)
            first = r->slots[k].item != r->slots[i].item;
        ok =
            !first || (write_collection(r, i, false, error) && write_collection(r, i, true, error));
    }
    ok = ok && (r->next == r->written || write_position(r, r->next, false, error));
    sl_interrupt_end_change();
    clear_slots(r);
    return ok;
}

/* ---- operations on documents ---- */

/* Reads what the replay must know of a collection. */
static bool know(replay *r, size_t item, sl_error *error) {
    place *p = &r->places[item];
    char name[SL_NAME_ROOM + 16];
    sl_collection_facts facts;
    bson_t indexes;
    if (p->known)
        return true;
    if (sl_kinds[r->dump->items[item].kind].merged_by &&
        !sl_restore_merged_collection(r->restore, item, p->merged, error))
        return false;
    const sl_target target = target_of(r, item, name);
    bool ok = sl_collection_read(r->connection, &target, &facts, error);
    bool exists = ok && facts.exists;
    p->known = ok;
    p->strict = p->capped = exists && sl_look_flag(&facts.options, "capped");
    sl_collection_facts_clear(&facts);
    bson_destroy(&p->key);
    ok = sl_collection_shard_key(r->connection, &target, &p->key, NULL, error) && ok;
    if (!exists || !ok)
        return ok;
    ok = sl_collection_indexes(r->connection, &target, &indexes, error);
    for (sl_walk walk = sl_walk_of(&indexes); sl_walk_next(&walk);)
        p->strict = p->strict ||
                    (sl_look_flag(&walk.item, "unique") && !sl_look_flag(&walk.item, "clustered"));
    bson_destroy(&indexes);
    return ok;
}

/* Reads the document from the server. */
static bool read_slot(replay *r, slot *s, sl_error *error) {
    char name[SL_NAME_ROOM + 16];
    const sl_target target = target_of(r, s->item, name);
    bson_t wrapped = BSON_INITIALIZER, filter;
    append_filter(&r->places[s->item].key, s->id, NULL, &wrapped);
    sl_look_inside(&wrapped, "q", &filter);
    bool ok = sl_document_find(r->connection, &target, &filter, &s->now, error);
    bson_destroy(&wrapped);
    if (ok && s->now && !bson_empty(&r->places[s->item].key)) {
        s->was = bson_copy(s->now);
        ok = s->was || sl_error_memory(error, "replaying the oplog");
    }
    r->bytes += (s->now ? s->now->len : 0) + (s->was ? s->was->len : 0);
    return ok;
}

/* The slot of the operation's document. `read`: its content is needed. NULL with error. */
static slot *slot_of(replay *r, size_t item, const bson_t *of, bool read, sl_error *error) {
    bson_iter_t value;
    bson_t *id = bson_new();
    if (id && bson_iter_init_find(&value, of, "_id"))
        bson_append_iter(id, "_id", 3, &value);
    uint16_t *at = id ? find_place(r, item, id) : NULL;
    if (at && *at) {
        bson_destroy(id);
        return &r->slots[*at - 1];
    }
    if (!at || (r->count == SLOTS_MAX && !flush(r, error))) {
        bson_destroy(id);
        if (!at)
            sl_error_memory(error, "replaying the oplog");
        return NULL;
    }
    at = find_place(r, item, id);
    slot *s = &r->slots[r->count++];
    *s = (slot){.item = item, .id = id};
    *at = (uint16_t)r->count;
    return !read || read_slot(r, s, error) ? s : NULL;
}

/* The new document of an update; without _id, it gets that of the slot. NULL with error. */
static bson_t *updated(const slot *s, const sl_oplog_operation *o, sl_error *error) {
    if (sl_oplog_update_form(&o->object) != SL_OPLOG_DOCUMENT || bson_has_field(&o->object, "_id"))
        return sl_oplog_update(s->now, &o->object, error);
    bson_t *made = bson_new();
    if (made && bson_concat(made, s->id) && bson_concat(made, &o->object))
        return made;
    bson_destroy(made);
    sl_error_memory(error, "replaying the oplog");
    return NULL;
}

static bool apply(replay *r, size_t item, const sl_oplog_operation *o, sl_error *error) {
    const place *p = &r->places[item];
    if (!know(r, item, error))
        return false;
    if (o->kind == 'd' && p->capped) /* the server removes the oldest documents itself */
        return true;
    bool partial = o->kind == 'u' && sl_oplog_update_form(&o->object) != SL_OPLOG_DOCUMENT;
    const bson_t *of = o->kind == 'u' ? &o->target : &o->object;
    slot *s = slot_of(r, item, of, partial || !bson_empty(&p->key), error);
    if (!s)
        return false;
    if (partial && !s->now) { /* removed by a later operation, before its collection was dumped */
        r->restore->oplog_missed++;
        return true;
    }
    sl_bson_facts facts = {0};
    if (partial &&
        sl_bson_check_alone(bson_get_data(s->now), s->now->len, &facts) == SL_BSON_INVALID &&
        !facts.why)
        return sl_error_memory(error, "replaying the oplog");
    if (facts.old_binary)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "%s: a document cannot be updated, because it has binary data of subtype "
            "2 with a wrong inner length",
            o->name);
    bson_t *document = o->kind == 'd'   ? NULL
                       : o->kind == 'i' ? bson_copy(&o->object)
                                        : updated(s, o, error);
    if (!document && o->kind != 'd')
        return o->kind == 'i' ? sl_error_memory(error, "replaying the oplog") : false;
    change_slot(r, s, document);
    if (!p->strict && r->bytes <= WAITING_BYTES_MAX)
        return true;
    r->next = o->number + 1;
    return flush(r, error);
}

/* ---- commands ---- */

static sl_target collection_of(const sl_namespace *item) {
    return (sl_target){.database = item->to_database, .collection = item->to_collection};
}

static bool drop(replay *r, const sl_namespace *item, const sl_oplog_operation *o,
                 sl_error *error) {
    (void)o;
    return sl_collection_drop(r->connection, item->to_database, item->to_collection, error);
}

static bool create_collection(replay *r, const sl_namespace *item, const sl_oplog_operation *o,
                              sl_error *error) {
    sl_namespace made = {.options = bson_new(), .later = bson_new(), .indexes = bson_new()};
    const sl_target target = collection_of(item);
    bool ok = (made.options && made.later) || sl_error_memory(error, "replaying the oplog");
    ok = ok && sl_oplog_create_options(&r->restore->config->names, o, &made, error) &&
         sl_collection_create(r->connection, &target, made.options, error);
    free(made.conversions);
    bson_destroy(made.options);
    bson_destroy(made.later);
    bson_destroy(made.indexes);
    return ok;
}

static bool rename_collection(replay *r, const sl_namespace *item, const sl_oplog_operation *o,
                              sl_error *error) {
    char database[SL_NAME_ROOM];
    const char *collection;
    if (!sl_oplog_split(sl_look_string(&o->object, "to"), database, &collection))
        return true;
    const sl_namespace *other = sl_oplog_namespace(r->dump, database, collection);
    if (!other || other->left_out)
        return true;
    const sl_target from = collection_of(item), to = collection_of(other);
    return sl_collection_rename(r->connection, &from, &to, error);
}

/* Builds an index of buckets; the other indexes are built after the replay. */
static bool build_index(replay *r, size_t index, const bson_t *specification, sl_error *error) {
    static const char *const hidden[] = {"createIndexes", "originalSpec", "ns"};
    char name[SL_NAME_ROOM + 16];
    const sl_target target = target_of(r, index, name);
    bson_t array = BSON_INITIALIZER, one = BSON_INITIALIZER;
    bson_copy_to_excluding_noinit(specification, &one, hidden[0], hidden[1], hidden[2], NULL);
    BSON_APPEND_DOCUMENT(&array, "0", &one);
    bool ok = sl_collection_create_indexes(r->connection, &target, &array, error);
    bson_destroy(&array);
    bson_destroy(&one);
    return ok;
}

static bool create_indexes(replay *r, const sl_namespace *item, const sl_oplog_operation *o,
                           sl_error *error) {
    size_t index = (size_t)(item - r->dump->items);
    bool ok = true;
    if (item->kind != SL_NAMESPACE_TIME_SERIES)
        return true;
    if (strcmp(o->command, "createIndexes") == 0)
        return build_index(r, index, &o->object, error);
    for (sl_walk walk = sl_walk_start(&o->object, "indexes"); ok && sl_walk_next(&walk);)
        ok = build_index(r, index, &walk.item, error);
    return ok;
}

static bool drop_index(replay *r, const sl_namespace *item, const sl_oplog_operation *o,
                       sl_error *error) {
    char name[SL_NAME_ROOM + 16];
    const sl_target target = target_of(r, (size_t)(item - r->dump->items), name);
    const char *index = sl_look_text(&o->object, "index");
    return item->kind != SL_NAMESPACE_TIME_SERIES || !index ||
           sl_collection_drop_index(r->connection, &target, index, error);
}

static const struct {
    const char *name;
    bool (*run)(replay *r, const sl_namespace *item, const sl_oplog_operation *o, sl_error *error);
} commands[] = {
    {"create", create_collection},           {"drop", drop},
    {"renameCollection", rename_collection}, {"createIndexes", create_indexes},
    {"commitIndexBuild", create_indexes},    {"dropIndexes", drop_index},
};

/* Drops the collections of the database that the restore has. Other ones belong to someone else. */
static bool drop_database(replay *r, const char *database, const sl_oplog_operation *o,
                          sl_error *error) {
    bool ok = true;
    for (size_t i = 0; ok && i < r->dump->count; i++) {
        const sl_namespace *item = &r->dump->items[i];
        if (!item->left_out && strcmp(item->database, database) == 0)
            ok = drop(r, item, o, error);
    }
    return ok;
}

static bool run_command(replay *r, const sl_oplog_operation *o, sl_error *error) {
    char database[SL_NAME_ROOM], own[SL_NAME_ROOM];
    const char *collection, *name = sl_look_string(&o->object, o->command);
    sl_oplog_split(o->name, database, &collection);
    if (strcmp(o->command, "dropDatabase") == 0)
        return drop_database(r, database, o, error);
    if (strcmp(o->command, "renameCollection") == 0 && sl_oplog_split(name, own, &collection))
        memcpy(database, own, sizeof own);
    else
        collection = name;
    const sl_namespace *item = sl_oplog_namespace(r->dump, database, collection);
    bool chosen = item && !item->left_out && !sl_kinds[item->kind].merged_by;
    for (size_t i = 0; chosen && i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, o->command) == 0)
            return commands[i].run(r, item, o, error);
    }
    return true;
}

/* ---- views ---- */

static bool modify_view(replay *r, const sl_namespace *item, const sl_oplog_operation *o,
                        const sl_collection_facts *facts, sl_error *error) {
    const sl_target target = collection_of(item);
    bson_t fields = BSON_INITIALIZER;
    bson_t *made = sl_oplog_update(&facts->options, &o->object, error);
    bson_iter_t at;
    bool ok = made != NULL;
    for (bool more = ok && bson_iter_init(&at, made); more && bson_iter_next(&at);) {
        if (sl_list_has("viewOn|pipeline", '|', sl_text_of(bson_iter_key(&at))))
            bson_append_iter(&fields, bson_iter_key(&at), -1, &at);
    }
    ok = ok && sl_collection_modify(r->connection, &target, &fields, error);
    bson_destroy(&fields);
    bson_destroy(made);
    return ok;
}

static bool create_view(replay *r, const sl_namespace *item, const sl_oplog_operation *o,
                        sl_error *error) {
    const sl_target target = collection_of(item);
    bson_t options = BSON_INITIALIZER;
    bson_copy_to_excluding_noinit(&o->object, &options, "_id", NULL);
    bool ok =
        drop(r, item, o, error) && sl_collection_create(r->connection, &target, &options, error);
    bson_destroy(&options);
    return ok;
}

/* An operation on system.views. */
static bool change_view(replay *r, const sl_oplog_operation *o, sl_error *error) {
    char database[SL_NAME_ROOM];
    const char *view;
    const bson_t *of = o->kind == 'u' ? &o->target : &o->object;
    sl_oplog_split(sl_look_string(of, "_id"), database, &view);
    const sl_namespace *item = sl_oplog_namespace(r->dump, database, view);
    if (!item || item->left_out || item->kind == SL_NAMESPACE_TIME_SERIES)
        return true;
    const sl_target target = collection_of(item);
    sl_collection_facts facts;
    bool ok = sl_collection_read(r->connection, &target, &facts, error);
    bool exists = ok && facts.exists && strcmp(facts.type, "view") == 0;
    if (ok && o->kind == 'd' && exists)
        ok = drop(r, item, o, error);
    else if (ok && o->kind == 'u' && exists)
        ok = modify_view(r, item, o, &facts, error);
    else if (ok && o->kind == 'i' && (exists || !facts.exists))
        ok = create_view(r, item, o, error);
    sl_collection_facts_clear(&facts);
    return ok;
}

/* ---- the replay ---- */

/* Executes a command, or a change of a view, after the documents before it are written. */
static bool change_alone(replay *r, const sl_oplog_operation *o, sl_error *error) {
    r->next = o->number;
    if (!flush(r, error))
        return false;
    sl_interrupt_begin_change();
    bool ok = (o->kind == 'c' ? run_command : change_view)(r, o, error);
    r->next = o->number + 1;
    ok = ok && write_position(r, r->next, false, error);
    sl_interrupt_end_change();
    for (size_t i = 0; i < r->dump->count; i++)
        r->places[i].known = false;
    return ok;
}

/* The index of a collection in the dump; SIZE_MAX: none. */
static size_t search(const replay *r, const char *database, const char *collection) {
    const sl_namespace *found = sl_oplog_namespace(r->dump, database, collection);
    return found && !sl_kinds[found->kind].no_documents ? (size_t)(found - r->dump->items)
                                                        : SIZE_MAX;
}

static void log_progress(replay *r) {
    char done[SL_HUMAN_ROOM], all[SL_HUMAN_ROOM];
    if (sl_seconds_since(r->logged) < LOG_SECONDS)
        return;
    r->logged = sl_clock_ns();
    sl_log_info("oplog: %s of %s operations", sl_human_count(r->next, done),
                sl_human_count(r->restore->oplog_totals.operations, all));
}

static bool replay_operation(void *context, const sl_oplog_operation *o, sl_error *error) {
    replay *r = context;
    const char *dot = strchr(o->name, '.');
    if (o->number < r->next)
        return true;
    if (sl_interrupt_requested())
        return flush(r, error) &&
               sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted while the oplog was replayed");
    bool ok = true;
    if (o->kind == 'c' || strcmp(dot, ".system.views") == 0) {
        ok = change_alone(r, o, error);
    } else if (strcmp(dot, ".system.indexes") != 0) {
        char database[SL_NAME_ROOM];
        const char *collection;
        sl_oplog_split(o->name, database, &collection);
        size_t item = search(r, database, collection);
        if (item != SIZE_MAX && !r->dump->items[item].left_out)
            ok = apply(r, item, o, error);
    }
    r->next = ok ? o->number + 1 : r->next;
    log_progress(r);
    return ok;
}

/* Puts a document back whose shard key was being changed when the earlier run ended. */
static bool restore_moved(replay *r, const bson_t *one, sl_error *error) {
    size_t item = search(r, sl_look_string(one, "db"), sl_look_string(one, "collection"));
    if (item == SIZE_MAX)
        return true;
    bson_t *before = copy_binary(one, "was"), *after = copy_binary(one, "now");
    slot *s =
        before && after && know(r, item, error) ? slot_of(r, item, after, false, error) : NULL;
    if (!s) {
        bson_destroy(before);
        bson_destroy(after);
        return sl_error_missing(error, "replaying the oplog");
    }
    s->was = before;
    r->bytes += before->len;
    change_slot(r, s, after);
    return true;
}

/* Continues at the position of an earlier run. */
static bool resume(replay *r, sl_error *error) {
    char path[600];
    sl_text text;
    bson_t position;
    if (!sl_oplog_is_begun(r->restore))
        return write_position(r, 0, false, error);
    if (!sl_private_file_read(sl_restore_file(r->restore->directory, SL_WORK_OPLOG_POSITION, path),
                              POSITION_BYTES_MAX, SL_EXIT_SOURCE, &text, error))
        return false;
    bool ok = bson_init_static(&position, (const uint8_t *)text.bytes, text.length) &&
              sl_document_is_sound(&position);
    if (!ok)
        sl_error_set(error, SL_EXIT_SOURCE, "%s is damaged: start again with another --work-dir",
                     path);
    ok = ok && sl_oplog_is_same(r->restore, &position, error);
    if (ok)
        r->next = r->written = (uint64_t)sl_look_int64(&position, "done", 0);
    if (ok && r->written > r->restore->oplog_totals.operations)
        ok = sl_error_set(error, SL_EXIT_SOURCE,
                          "%s names more operations than the oplog has: start again with another "
                          "--work-dir",
                          path);
    for (sl_walk walk = sl_walk_start(&position, "moved"); ok && sl_walk_next(&walk);)
        ok = restore_moved(r, &walk.item, error);
    ok = ok && flush(r, error);
    free((char *)text.bytes);
    return ok;
}

static void log_end(const replay *r) {
    const sl_restore *restore = r->restore;
    sl_log_info("oplog: %s replayed, up to timestamp %llu:%llu",
                sl_plural(restore->oplog_done, "operation[s] [is|are]"),
                (unsigned long long)(restore->oplog_totals.last >> 32),
                (unsigned long long)(restore->oplog_totals.last & UINT32_MAX));
    if (restore->oplog_missed > 0)
        sl_log_info("oplog: %s of documents that did not exist at that time had no effect",
                    sl_plural(restore->oplog_missed, "update"));
}

bool sl_oplog_replay(sl_restore *restore, sl_error *error) {
    replay *r = calloc(1, sizeof *r);
    sl_oplog_totals totals;
    char bytes[SL_HUMAN_ROOM];
    if (r)
        r->places = calloc(restore->dump.count + 1, sizeof *r->places);
    bool ok = (r && r->places) || sl_error_memory(error, "replaying the oplog");
    if (ok) {
        r->restore = restore;
        r->connection = restore->connection;
        r->dump = &restore->dump;
        r->logged = sl_clock_ns();
        for (size_t i = 0; i < restore->dump.count; i++)
            bson_init(&r->places[i].key);
        sl_log_info("oplog: %s, %s", sl_plural(restore->oplog_totals.operations, "operation"),
                    sl_human_bytes((double)restore->oplog_totals.bytes, bytes));
        ok = sl_restore_same_file(restore->oplog, &restore->oplog_identity, error) &&
             resume(r, error) &&
             sl_oplog_each(restore->oplog, restore->config->oplog_limit, replay_operation, r,
                           &totals, error) &&
             flush(r, error) &&
             (totals.hash == restore->oplog_totals.hash ||
              sl_error_set(error, SL_EXIT_SOURCE,
                           "%s: has other entries than when the restore began, so some are not "
                           "replayed: begin a new restore with another --work-dir and --drop",
                           restore->oplog));
        restore->oplog_done = r->written;
        clear_slots(r);
    }
    if (ok)
        log_end(r);
    for (size_t i = 0; r && r->places && i < restore->dump.count; i++)
        bson_destroy(&r->places[i].key);
    free(r ? r->places : NULL);
    free(r);
    return ok;
}
