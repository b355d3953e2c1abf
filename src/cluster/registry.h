/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the registry, for registry.c and its tests. */
#ifndef SHARDLOAD_REGISTRY_H
#define SHARDLOAD_REGISTRY_H

#include "internal.h"

/* Entries per command. With names of NAME_ROOM bytes a command stays below 16 MiB. */
#define BATCH ((size_t)1000)
#define NAME_ROOM 4096

/* The field of `options` with sl_registry_entry.types. */
#define SL_REGISTRY_TYPES "inferredTypes"

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

#endif
