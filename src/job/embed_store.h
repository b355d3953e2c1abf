/* SPDX-License-Identifier: Apache-2.0 */
/* The records of --embed by their join key: the key as bytes, the records on disk divided by its
 * hash, and the store that they become.
 *
 * The key by which --embed joins two sources is made of bytes that are equal for equal values.
 *
 * Numbers are equal if their values are, whatever their types (bson_number.h). All other values are
 * equal only if their types and bytes are equal. For each value the key contains a letter for the
 * type, and then:
 *
 *   i  integer: 8 bytes        d  other double: 8      s  text: length in 4 bytes, bytes
 *   t  date: 8                 b  bool: 1              x  binary: length, subtype, bytes
 *   o  ObjectId: 12            n  other decimal128: 16 p  timestamp: 8
 *
 * If this layout changes, SL_STORE_FORMAT must change. */
#ifndef SHARDLOAD_EMBED_STORE_H
#define SHARDLOAD_EMBED_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "util/error.h"

#define SL_JOIN_FIELDS_MAX 8
#define SL_JOIN_KEY_ROOM ((size_t)4096) /* the longest key, in bytes */

/* Writes the key made of the fields `names` of a document into `key` (SL_JOIN_KEY_ROOM bytes), and
 * returns its length. A name with dots is a path into embedded documents. Returns 0 when the
 * document has no key: a field is absent, null, an array, a document, NaN or of a type not listed
 * above, or the key is too long. */
size_t sl_join_key_of(const bson_t *document, const char *const *names, size_t count, uint8_t *key);

/* Appends the values of a key to a document, under these names. An integer is appended as int32 if
 * it fits, else as int64; another number as double, or as decimal128 if it is not a double. */
void sl_join_key_append(const uint8_t *key, size_t length, const char *const *names, size_t count,
                        bson_t *to);

/* Are its values complete? */
bool sl_join_key_is_sound(const uint8_t *key, size_t length);

/* The letters of a key's values, such as "is", into `out` (SL_JOIN_FIELDS_MAX + 1 bytes). Returns
 * out. */
const char *sl_join_key_letters(const uint8_t *key, size_t length, char *out);

/* Can two values be equal, if their types have these letters? */
bool sl_join_may_equal(char one, char other);

/* The name of a letter's type, such as "an integer". */
const char *sl_join_letter_name(char letter);

/* ---- partitions: the records to embed, on disk, divided by the hash of their join key ----
 *
 * A folder has SL_PARTITIONS files "000", "001", ..., each with the records whose hash has these
 * highest bits. The file "apart" has the records that cannot be embedded, because they have no key
 * or their key has too many records. A record in a file, integers in the byte order of this
 * machine:
 *
 *   uint32 length of all of it    uint32 key length    uint64 hash    uint64 position
 *   key    BSON document */

#define SL_PARTITION_BITS 7
#define SL_PARTITIONS (1u << SL_PARTITION_BITS)

typedef struct sl_partition_head {
    uint32_t length; /* of head, key and document */
    uint32_t key_length;
    uint64_t hash;
    uint64_t
        position; /* of the record in its source, and the source's number: sl_record_position */
} sl_partition_head;

/* Ascends in the order of the sources, and within a source in the order of the text. */
static inline uint64_t sl_record_position(uint32_t source, uint64_t offset) {
    return (uint64_t)source << 40 | offset;
}

/* The partition of a hash, after `level` divisions. */
static inline unsigned sl_partition_of(uint64_t hash, unsigned level) {
    return (unsigned)(hash << SL_PARTITION_BITS * level >> (64 - SL_PARTITION_BITS));
}

/* Files that several threads write to; each thread has a writer. */
typedef struct sl_partitions sl_partitions;
typedef struct sl_partition_writer sl_partition_writer;

/* Creates the folder and its files; removes files of those names that exist. `level`: the number of
 * divisions before this one. */
bool sl_partitions_create(const char *folder, unsigned level, sl_partitions **partitions,
                          sl_error *error);
/* Closes the files; false when one could not be written completely. NULL is fine. */
bool sl_partitions_close(sl_partitions *partitions, sl_error *error);

/* A writer buffers SL_PARTITION_BUFFER bytes for each file. NULL without memory. */
#define SL_PARTITION_BUFFER ((size_t)16 << 10)
sl_partition_writer *sl_partition_writer_create(sl_partitions *partitions);
void sl_partition_writer_destroy(sl_partition_writer *writer); /* does not flush; NULL is fine */
/* Adds a record; without key (key_length 0) to the file "apart". */
bool sl_partition_write(sl_partition_writer *writer, const uint8_t *key, size_t key_length,
                        uint64_t hash, uint64_t position, const uint8_t *document, size_t length,
                        sl_error *error);
bool sl_partition_flush(sl_partition_writer *writer, sl_error *error);

/* Writes the path of a file into `path` (SL_PARTITION_PATH bytes); SL_PARTITIONS is "apart". */
#define SL_PARTITION_PATH 640
const char *sl_partition_path(const char *folder, unsigned index, char path[SL_PARTITION_PATH]);

/* Removes the files and the folder. Missing files are not an error. */
void sl_partitions_remove(const char *folder);

/* ---- the store: for each join key, its records as one BSON array ----
 *
 * A store is three files in a folder. "groups" has the keys in the order of their hashes, each as
 * sl_group, key and array, padded to 8 bytes. "index" has, for each value of a hash's highest bits,
 * the offset of the first such group in "groups"; its last entry is the length of "groups". "used"
 * has one bit per key, which is set when a document of the load has that key. Integers are in the
 * byte order of this machine. "complete" (JSON) is written last; a folder without it has no store.
 *
 * Groups are found by one read of "index" and one of "groups", which are mapped into memory: the
 * operating system keeps in memory what fits. */

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
#define SL_STORE_FORMAT 6
typedef struct sl_store_facts {
    uint64_t format;      /* with another one than SL_STORE_FORMAT, the other facts are not known */
    char identity[160];   /* of the options that the store was made with */
    uint64_t records;     /* of the sources, without rejects */
    uint64_t rejects;     /* of the sources */
    uint64_t not_loaded;  /* files and archive entries of the sources, skipped by --skip-other */
    uint64_t left_out;    /* values of the records (invalid: missing) */
    uint64_t without_key; /* of the records */
    uint64_t too_many;    /* of the records: with a key that has too many for one document */
    uint64_t keys;
    uint64_t seed; /* of the hashes of keys */
    uint64_t bits; /* of a hash, by which "index" is ordered */
    uint64_t group_bytes;
    uint64_t groups_check, index_check; /* CRC-32 of the files */
} sl_store_facts;

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
/* Reads a store that an earlier run has made, and compares its checksums: the other functions trust
 * the positions and lengths in it. */
bool sl_store_check(const sl_store *store, const char *folder, sl_error *error);

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
