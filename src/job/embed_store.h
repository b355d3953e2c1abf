/* SPDX-License-Identifier: Apache-2.0 */
/* The store of the records to embed: for each join key, its records as one BSON array.
 *
 * A store is three files in a folder. "groups" has the keys in the order of their hashes, each as
 * sl_group, key and array, padded to 8 bytes. "index" has, for each value of a hash's highest bits,
 * the offset of the first such group in "groups"; its last entry is the length of "groups". "used"
 * has one bit per key, which is set when a document of the load has that key. Integers are in the
 * byte order of this machine. "complete" (JSON) is written last; a folder without it has no store.
 *
 * Groups are found by one read of "index" and one of "groups", which are mapped into memory: the
 * operating system keeps in memory what fits. */
#ifndef SHARDLOAD_EMBED_STORE_H
#define SHARDLOAD_EMBED_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "join_key.h"
#include "util/error.h"

typedef struct sl_group {
    uint64_t hash;
    uint64_t ordinal; /* 0, 1, 2, ... in the order of the file */
    uint32_t key_length;
    uint32_t array_length; /* of the BSON array; 0: a document cannot hold so many records */
    uint64_t records;
} sl_group; /* then key and array */

static inline const uint8_t *sl_group_key(const sl_group *group) {
    return (const uint8_t *)(group + 1);
}

static inline const uint8_t *sl_group_array(const sl_group *group) {
    return sl_group_key(group) + group->key_length;
}

/* The content of "complete". */
#define SL_STORE_FORMAT 3
typedef struct sl_store_facts {
    uint64_t format;      /* with another one than SL_STORE_FORMAT, the other facts are not known */
    char identity[160];   /* of the options that the store was made with */
    char letters[16];     /* sl_join_key_letters of one of the keys; "": no key. The size leaves no
                             padding: two of these are compared as bytes */
    uint64_t records;     /* of the sources, without rejects */
    uint64_t rejects;     /* of the sources */
    uint64_t not_loaded;  /* files and archive entries of the sources, skipped by --skip-other */
    uint64_t left_out;    /* values of the records (invalid: missing) */
    uint64_t without_key; /* of the records */
    uint64_t too_many;    /* of the records: with a key that has too many for one document */
    uint64_t keys;
    uint64_t bits; /* of a hash, by which "index" is ordered */
    uint64_t group_bytes;
} sl_store_facts;
_Static_assert(SL_JOIN_FIELDS_MAX < 16, "sl_store_facts.letters has room for all keys");

/* Makes the store in `folder` from the partitions in `folder`/records, and removes the partitions
 * except "apart". The caller sets identity, records and rejects of the facts; the function sets the
 * other facts. Memory: 24 bytes for each of `sorted_at_once` records (SL_SORTED_AT_ONCE, except in
 * tests), and one array. If one key has more records than that, they cannot be embedded. May be
 * interrupted (SL_EXIT_INTERRUPTED). */
#define SL_SORTED_AT_ONCE ((size_t)2 << 20)
bool sl_store_build(const char *folder, size_t sorted_at_once, sl_store_facts *facts,
                    sl_error *error);

/* Reads "complete". `*there`: the folder contains a store, perhaps of another format. */
bool sl_store_read_facts(const char *folder, bool *there, sl_store_facts *facts, sl_error *error);

typedef struct sl_store sl_store;

/* What is known about the keys that documents have. */
typedef enum sl_store_keys {
    SL_STORE_UNUSED,    /* no document is stored: no key is used yet */
    SL_STORE_CONTINUED, /* an earlier run has marked keys as used */
    SL_STORE_READ_ONLY, /* not needed, and not changed */
} sl_store_keys;

/* Opens a store. */
bool sl_store_open(const char *folder, const sl_store_facts *facts, sl_store_keys keys,
                   sl_store **store, sl_error *error);
void sl_store_close(sl_store *store); /* NULL is fine */

/* The group of a key, or NULL. Any thread. */
const sl_group *sl_store_find(const sl_store *store, const uint8_t *key, size_t length);
/* Marks the group's key as used by a document. Any thread. */
void sl_store_use(sl_store *store, const sl_group *group);
/* Syncs the marks of used keys to the disk, so that they survive a power failure. */
bool sl_store_sync(sl_store *store, sl_error *error);

/* The first group, and the one after `group`; NULL: there are no more. */
const sl_group *sl_store_next(const sl_store *store, const sl_group *group);
bool sl_store_is_used(const sl_store *store, const sl_group *group);

#endif
