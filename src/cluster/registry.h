/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the registry, for registry.c, registry_owner.c and their tests. */
#ifndef SHARDLOAD_REGISTRY_H
#define SHARDLOAD_REGISTRY_H

#include "internal.h"

/* Entries per command. With names of NAME_ROOM bytes a command stays below 16 MiB. */
#define BATCH ((size_t)1000)
#define NAME_ROOM 4096

/* The field of `options` with sl_registry_entry.types. */
#define SL_REGISTRY_TYPES "inferredTypes"

/* A field of the counter: the collection existed before the first load into it. */
#define SL_REGISTRY_EXISTED "existed"

/* A list that this load has confirmed: see sl_registry_set_list. */
#define LISTS 2u
typedef struct registry_list {
    bson_t *was;    /* before this load; NULL: not confirmed */
    char begun[16]; /* the field with the token of the last load that has confirmed it */
    bson_oid_t token;
} registry_list;

struct sl_registry {
    sl_connection *connection;
    char *database;
    char *collection;
    char *target;            /* the collection whose sources it lists */
    char uuid[SL_UUID_ROOM]; /* of the collection; "": none, or not read yet */
    bool gone; /* the collection that the registry belongs to is another one: it reads as empty */
    bool (*positions)(void *context); /* are its _ids positions? NULL: yes */
    void *context;
    char division[SL_DIVISION_ROOM];
    uint32_t part;   /* of the division, from 1; 0: sources are not loaded in parts */
    bool afresh;     /* see sl_registry_set_part */
    bson_t *options; /* of this load; NULL unless all parts must have the same options */
    registry_list lists[LISTS];
    bool none;        /* the sources have no registry on the server (sl_target.registry is "") */
    uint64_t loaded;  /* without one: documents of the finished sources */
    uint64_t foreign; /* sl_registry_entry.foreign of the sources that are finished */
};

typedef bool sl_batch_function(sl_registry *registry, sl_registry_entry *entries, size_t count,
                               sl_error *error);

/* Fills the entries that the reply of a find on the registry contains. False with the error set
 * when a document has no valid number. `count` is at most BATCH. */
bool sl_registry_fill(const sl_registry *registry, const bson_t *reply, sl_registry_entry *entries,
                      size_t count, sl_error *error);

/* Adds the number of a registry document to the list, if it is valid. False with `error` of the
 * list set: no memory, interrupted, or there are more than there can be. */
typedef struct sl_number_list {
    uint32_t *items;
    size_t count, room;
    sl_error error;
} sl_number_list;
bool sl_registry_add_number(void *list, const bson_t *document);

/* ---- registry.c, for registry_owner.c ---- */

/* Reads documents of the registry, and destroys the options (may be NULL). */
bool sl_registry_find(const sl_registry *registry, const bson_t *filter, bson_t *options,
                      bson_t *documents, sl_error *error);
/* Is there a document whose _id has one of the `count` numbers up to `last`, and are the _ids of
 * this load of that kind? */
bool sl_registry_uses_numbers(const sl_registry *registry, size_t count, uint32_t last, bool *used,
                              sl_error *error);
/* Begins a write command; end it with sl_registry_run_write. `list` becomes its array `key` of
 * documents or updates. */
void sl_registry_begin_write(const sl_registry *registry, const char *name, const char *key,
                             bson_t *command, bson_t *list);
/* Sends the write if it has `count` documents or updates, at least one. `*matched` is the number of
 * documents inserted, or matched by an update. */
bool sl_registry_run_write(sl_registry *registry, bson_t *command, bson_t *list, size_t count,
                           int64_t *matched, int32_t *code, sl_error *error);
/* findAndModify of the counter; destroys the query and the update. */
bool sl_registry_change_counter(sl_registry *registry, bson_t *query, bson_t *update, bool upsert,
                                bool *found, sl_error *error);
/* Inserts the counter if there is none: an upsert with a condition would insert a second one. */
bool sl_registry_make_counter(sl_registry *registry, sl_error *error);

#endif
