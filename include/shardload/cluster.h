/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster: its shards, a collection's ranges on them, making and placing those before a load,
 * the balancer, the registry of sources, and figures about what is stored.
 *
 * Errors are of class SL_EXIT_CLUSTER unless said otherwise. Elections, broken connections and other
 * people's locks are waited out for about half a minute. Everything here happens a few times per
 * load, never per batch; the functions may be called from several threads, on objects of their own.
 * Targets, names and keys are borrowed for the call only; the connection must outlive the objects. */
#ifndef SHARDLOAD_CLUSTER_H
#define SHARDLOAD_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include <shardload/connection.h>
#include <shardload/error.h>

/* Waits after failed attempt 0, 1, 2, ...: a quarter of a second, doubling up to four seconds.
 * False, without waiting, after attempt 10, about 28 s of waiting in all: time to give up. Also
 * false when `keep_on` (may be NULL), asked before every quarter of a second, says stop. */
bool sl_backoff(unsigned attempt, bool (*keep_on)(void *context), void *context);

/* ---- topology.c: the shards ---- */

typedef struct sl_shard {
    char *name; /* "s0" */
    char *host; /* "s0/127.0.0.1:27018" */
} sl_shard;

typedef struct sl_topology {
    size_t count; /* 1 where there is no sharding, called after the replica set or "standalone" */
    sl_shard *shards; /* sorted by name */
} sl_topology;

bool sl_topology_read(sl_connection *connection, sl_topology **topology, sl_error *error);
void sl_topology_destroy(sl_topology *topology);

/* ---- prepare.c: the target collection ---- */

/* A collection's UUID as 32 hexadecimal digits. */
#define SL_UUID_ROOM 33

typedef struct sl_target {
    const char *database;
    const char *collection;
    bool drop;              /* drop the collection and its registry first */
    const char *compressor; /* none, snappy, zlib, zstd; NULL for the server's default */
    bool clustered;         /* clustered index on _id (5.3 and later) */
    const bson_t *shard_key; /* on a sharded cluster; NULL leaves it unsharded */
    /* Set by identity.c for a load; commands then reach this collection and no other of its name.
     */
    char uuid[SL_UUID_ROOM]; /* "" until it has been read */
    bool by_uuid;            /* the server takes it in commands */
    bool shard_key_given;    /* by the user: an existing collection must have it, or is refused */
    bool shard_existing;     /* shard it also where it exists and is not sharded */
} sl_target;

/* What preparing a target means for its sharding. */
typedef enum sl_sharding_change {
    SL_SHARDING_NONE,     /* nothing: it is sharded by the key already, or there is no key */
    SL_SHARDING_NEW,      /* it is created, and sharded by the key */
    SL_SHARDING_EXISTING, /* it exists unsharded, and is sharded (shard_existing) */
    SL_SHARDING_LEFT,     /* it exists unsharded, and stays so: the key was not given */
} sl_sharding_change;

/* Decides what happens to the target's sharding, reading only. SL_EXIT_USAGE where it exists
 * unsharded and a key was given without shard_existing. A collection that another loader has
 * created and not sharded yet counts as new. */
bool sl_decide_sharding(sl_connection *connection, const sl_target *target,
                        sl_sharding_change *change, sl_error *error);

/* Is the key {_id: 1}? */
bool sl_key_is_id(const bson_t *key);

/* Makes the target ready: drops if asked, creates if it is not there, shards as sl_decide_sharding
 * decides. A collection that exists with another shard key or compressor than asked for, or is not
 * clustered when that was asked for, is an error that says both; what was not asked for (no shard
 * key, no compressor, not clustered) is left as it is. Compressors are compared with what the files
 * on each shard really are. `*created` tells whether it is new.
 *
 * Before anything is dropped, the database is made ready to be sharded, which takes the same
 * privilege as sharding the collection. Dropping empties the registry as well, but for the
 * balancer's state: so the balancer may be paused before. It should be, since a running balancer
 * may move empty chunks back. */
bool sl_prepare_target(sl_connection *connection, const sl_target *target, bool *created,
                       sl_error *error);

/* Drops the collection and its registry, which takes what is known of its sources with it. "Not
 * there" is fine. */
bool sl_drop_target(sl_connection *connection, const sl_target *target, sl_error *error);

/* A range of _id (minimum <= id < maximum) that should live on one shard. */
typedef struct sl_range {
    int64_t minimum;
    int64_t maximum;
    uint32_t shard; /* index into the topology */
} sl_range;

/* Splits and moves so that each range (sorted, not overlapping) is on its shard, for a collection
 * sharded by {_id: 1}; does nothing for any other. A range that holds documents stays where it is,
 * and one that is in place costs no command, whatever chunks it shares. Calls `progress` (may be
 * NULL) before and after each step; `all` may grow when somebody else changes chunks at the same
 * time. When it returns false the work stops with SL_EXIT_INTERRUPTED, and can be taken up again. */
bool sl_prepare_ranges(sl_connection *connection, const sl_target *target,
                       const sl_topology *topology, const sl_range *ranges, size_t count,
                       bool (*progress)(void *context, size_t done, size_t all), void *context,
                       sl_error *error);

/* Would sl_prepare_target succeed, as far as can be told without changing anything? `*exists`: the
 * collection is there, and stays. `*change`: as sl_decide_sharding; set when there is no error. */
bool sl_check_target(sl_connection *connection, const sl_target *target, bool *exists,
                     sl_sharding_change *change, sl_error *error);

/* The shard that a new collection begins on: its database's primary. `*known` is false, and the
 * shard the first one, where there is no such database yet. */
bool sl_database_home(sl_connection *connection, const sl_target *target,
                      const sl_topology *topology, uint32_t *shard, bool *known, sl_error *error);

/* Builds an index ({ts: 1, st: 1}) on the whole collection; "there already" is fine. */
bool sl_create_index(sl_connection *connection, const sl_target *target, const bson_t *keys,
                     sl_error *error);

/* The UUID of the collection: another one when it has been dropped and made anew. "" when there is
 * no such collection. */
bool sl_target_uuid(sl_connection *connection, const sl_target *target, char uuid[SL_UUID_ROOM],
                    sl_error *error);

/* Is there a collection (or a view) of this name? */
bool sl_target_exists(sl_connection *connection, const sl_target *target, bool *exists,
                      sl_error *error);

/* ---- identity.c: the collection by its UUID ---- */

/* The server's code for a command whose `collectionUUID` is not that of the collection's name. */
#define SL_CODE_COLLECTION_UUID_MISMATCH 361

/* Finds out whether the server takes `collectionUUID` in commands, and sets `by_uuid`. The
 * collection need not exist. */
bool sl_target_find_support(sl_connection *connection, sl_target *target, sl_error *error);
/* Reads `uuid`. The collection must exist. */
bool sl_target_identify(sl_connection *connection, sl_target *target, sl_error *error);
/* Appends `collectionUUID` to a command, or to the options of an insert or a find, where the server
 * takes it and the UUID is known; else nothing. */
void sl_target_append_uuid(const sl_target *target, bson_t *command);
/* Sets the error for a command that was refused with that code: the collection was dropped,
 * replaced or renamed since `uuid` was read, or a shard has another one of its name. Asks through
 * `client` what has its name and its UUID now. Returns false. */
bool sl_target_replaced(mongoc_client_t *client, const sl_target *target, sl_error *error);
/* The same through a client of the connection. */
bool sl_target_mismatch(sl_connection *connection, const sl_target *target, sl_error *error);
/* Is the collection of that name still the one with `uuid`? Else sl_target_replaced's error. */
bool sl_target_check(sl_connection *connection, const sl_target *target, sl_error *error);

/* ---- inserts.c ---- */

/* Waits for up to about half a minute until no server runs an insert into the target. False with an
 * error that names one of the inserts when the time is over. A user who may not see them gets a
 * warning instead. */
bool sl_wait_for_inserts(sl_connection *connection, const sl_target *target, sl_error *error);

/* Documents that match a filter of _id, without orphans. */
bool sl_count_matching(sl_connection *connection, const sl_target *target, const bson_t *filter,
                       uint64_t *count, sl_error *error);

/* Documents with minimum <= _id < maximum, without orphans. */
bool sl_count_range(sl_connection *connection, const sl_target *target, int64_t minimum,
                    int64_t maximum, uint64_t *count, sl_error *error);

/* ---- scan.c: documents as they are stored ---- */

typedef enum sl_scan_result {
    SL_SCAN_DONE,
    SL_SCAN_AGAIN, /* it failed for a reason that passes; part of it may have been handed over */
    SL_SCAN_FAILED,
} sl_scan_result;

/* Hands each document that `filter` lets through to `each`, by ascending _id, from the primaries;
 * with `ids_only` nothing of it but its _id. Reads through `client`, which is the caller's for that
 * time, in replies of at most 16 MiB. Unless all are done, `error` is set. Orphans of a move are no
 * documents; two that have the same _id on two shards are two. */
sl_scan_result sl_scan(mongoc_client_t *client, const sl_target *target, const bson_t *filter,
                       bool ids_only, void (*each)(void *context, const bson_t *document),
                       void *context, sl_error *error);

/* The same for minimum <= _id < maximum, whole documents. */
sl_scan_result sl_scan_range(mongoc_client_t *client, const sl_target *target, int64_t minimum,
                             int64_t maximum, void (*each)(void *context, const bson_t *document),
                             void *context, sl_error *error);

/* ---- shard_map.c: who owns which range now ---- */

typedef struct sl_shard_map sl_shard_map;

/* How the owner of a document can be known before it is sent. */
typedef enum sl_route {
    SL_ROUTE_NONE,   /* not at all, or there is nothing to choose: not sharded */
    SL_ROUTE_BY_ID,  /* sharded by {_id: 1}: by its 64-bit _id */
    SL_ROUTE_BY_KEY, /* by the values of its shard key, in order or hashed */
} sl_route;

/* The chunk map of a collection as it is now. The owners that it tells are right until chunks are
 * split or moved; where it is wrong the router still puts documents where they belong. */
bool sl_shard_map_read(sl_connection *connection, const sl_target *target,
                       const sl_topology *topology, sl_shard_map **map, sl_error *error);
/* The map of a collection that is not sharded yet, once it is by {_id: 1}: one chunk, on `home`. */
bool sl_shard_map_of_new(uint32_t home, sl_shard_map **map, sl_error *error);
void sl_shard_map_destroy(sl_shard_map *map);
sl_route sl_shard_map_route(const sl_shard_map *map);
/* Is the route SL_ROUTE_BY_ID? */
bool sl_shard_map_by_id(const sl_shard_map *map);
/* The index (into the topology) of the shard that owns `id`; 0 unless the map is by id. Any thread;
 * nothing is locked. */
uint32_t sl_shard_map_owner(const sl_shard_map *map, int64_t id);

/* Is every id of the range on its shard? For a map by id. */
bool sl_range_is_placed(const sl_shard_map *map, const sl_range *range);

typedef struct sl_step_counts {
    size_t splits, moves;
    size_t occupied; /* ranges that stay on a wrong shard because they hold documents */
} sl_step_counts;

/* Counts what sl_prepare_ranges would do where `map` is the chunk map, and does nothing. Without a
 * connection (NULL) all ranges count as empty. `stays` has `count` entries, which are set for those
 * that are occupied. */
bool sl_count_steps(sl_connection *connection, const sl_target *target,
                    const sl_shard_map *map, const sl_range *ranges, size_t count,
                    bool *stays, sl_step_counts *counts, sl_error *error);

/* What a thread remembers of the last document it asked about, so that a run of documents with the
 * same key, or with keys of the same range, costs no hash and no search. Begins as all zero; one
 * for each thread and map. */
typedef struct sl_owner_cache {
    size_t range;        /* where the last key was found */
    uint32_t length;     /* of the bytes that were hashed last; 0 for none */
    uint8_t hashed[100]; /* longer ones are not remembered */
    int64_t hash;
} sl_owner_cache;

/* Finds the shard (index into the topology) that owns a finished BSON document. False when it
 * cannot be told: the map has no route, or the key of this document holds something whose order or
 * hash is not computed here (an object, an array, a decimal, a regular expression, code, binary of
 * the old subtype 2, deprecated types); or is no 64-bit _id, in a map by id. Then only the router
 * knows. Any thread; nothing is locked. */
bool sl_shard_map_owner_of(const sl_shard_map *map, const uint8_t *document, sl_owner_cache *cache,
                           uint32_t *shard);

/* ---- direct.c: straight to the shards, past the routers ---- */

/* Connections to the primary of each shard, as the user of the connection, with its TLS and its
 * compressors. */
typedef struct sl_direct sl_direct;

/* Connects to every shard of the topology, which must outlive it, and tries whether `target` may be
 * used there: up to `pool_size` connections each, with the patience of writers
 * (sl_connection_open_writers). SL_EXIT_USAGE where there is no sharded cluster; the error names the
 * shard that cannot be reached, or does not let the user in. Nothing is written. */
bool sl_direct_open(sl_connection *connection, const sl_topology *topology, const sl_target *target,
                    unsigned pool_size, unsigned timeout_seconds, sl_direct **direct,
                    sl_error *error);
void sl_direct_close(sl_direct *direct); /* NULL is fine */

/* A client of a shard (index into the topology), for one thread at a time; waits when all are out.
 * Any thread. */
mongoc_client_t *sl_direct_borrow(sl_direct *direct, uint32_t shard);
void sl_direct_return(sl_direct *direct, uint32_t shard, mongoc_client_t *client);

/* Has the shard, called `name`, no other collection of the target's name than the one with its
 * `uuid`? With `wanted` it must have that one; else nothing is asked where the server takes the UUID
 * in commands, and so refuses inserts into another one. (identity.c) */
bool sl_target_check_shard(sl_direct *direct, uint32_t shard, const char *name,
                           const sl_target *target, bool wanted, sl_error *error);

/* The chunk map, read while nothing moves; what sl_direct_check compares with. */
bool sl_direct_read_map(sl_direct *direct, const sl_target *target, sl_shard_map **map,
                        sl_error *error);

typedef enum sl_ownership_state {
    SL_OWNERS_SAME,    /* everything acknowledged before the call is where the map says, for good */
    SL_OWNERS_UNKNOWN, /* something is being moved, or a server does not answer: ask again */
    SL_OWNERS_CHANGED, /* the map is not true any more: what was written meanwhile may be lost */
} sl_ownership_state;

/* Have all chunks stayed with their shards since sl_direct_read_map? A read of each shard and two of
 * the config servers. `error` is set unless it is SL_OWNERS_SAME. One thread at a time, with a client
 * of each shard left to borrow. */
sl_ownership_state sl_direct_check(sl_direct *direct, const sl_target *target, sl_error *error);

/* ---- balancer.c, balancer_state.c ---- */

typedef struct sl_balancer sl_balancer;

/* Stops the balancer and remembers, also in the cluster (the collection "balancer" of the database
 * "shardload"), how it was, so that a later run can put it back when this one is killed outright.
 * When several loaders share the cluster the last one puts it back. `holder`: 24 hexadecimal digits
 * that name the load, the same for each of its runs, so that a run that resumes it takes the place of
 * one that was killed; NULL for a new one. A thread shows every few seconds that this loader is
 * alive, with a client of the connection. Does nothing on a deployment without shards: *balancer is
 * then NULL. */
bool sl_balancer_pause(sl_connection *connection, const char *holder, sl_balancer **balancer,
                       sl_error *error);
/* Puts the balancer back as it was and frees, also when it fails. NULL is fine. Where only other
 * hosts' loads hold it, waits for a sign of life of one of them, up to two minutes. */
bool sl_balancer_restore(sl_balancer *balancer, sl_error *error);

typedef struct sl_balancer_view {
    char mode[8];     /* how it is now: "full" or "off"; "" on a deployment without shards */
    char before[8];   /* how it was before loads stopped it; "" when none has */
    uint32_t holders; /* loads that hold it stopped */
    uint32_t dead;    /* of those, whose loaders have ended: the next load puts it back */
    char names[1000]; /* who they are */
} sl_balancer_view;

/* Looks, and changes nothing. */
bool sl_balancer_look(sl_connection *connection, sl_balancer_view *view, sl_error *error);
/* "full" or "off": how it was before; for the report. "" for NULL. */
const char *sl_balancer_before(const sl_balancer *balancer);

/* ---- registry.c: the numbers of sources ---- */

typedef enum sl_source_state {
    SL_SOURCE_NEW,     /* never seen in this collection */
    SL_SOURCE_STARTED, /* a load of it began and did not finish */
    SL_SOURCE_LOADED,  /* completely loaded before */
} sl_source_state;

/* How a source is shared out over shards: its ids are cut into `pieces` pieces, equal but for a
 * stripe, of which number i goes to shard (leading + i) % shards. */
typedef struct sl_layout {
    uint32_t shards;      /* 0: none is known */
    uint32_t pieces;
    uint32_t leading;
    uint64_t shard_names; /* a hash of them, in order */
} sl_layout;

/* A source, as the registry knows it. Strings are borrowed. */
typedef struct sl_registry_entry {
    const char *fingerprint;
    const char *name;      /* any bytes; for people who read the registry */
    uint64_t size;         /* in bytes, for the same people */
    uint64_t documents;    /* that a finished load of it gave */
    uint32_t number;       /* 0: none yet */
    sl_source_state state;
    char when[32];         /* ISO date of the last finished load, or "" */
    /* Of a source that several loaders share, see sl_registry_set_part: */
    bool part_loaded;      /* this loader's part of it has been loaded */
    uint32_t parts_loaded; /* how many have */
    sl_layout layout;      /* the one that all its loaders keep to, see sl_registry_agree */
    /* Of a pipe, where its load can be completed; NULL otherwise: */
    const char *host;
    const char *work_directory; /* absolute */
} sl_registry_entry;

typedef struct sl_registry sl_registry;

/* The registry of a target is the collection "<collection>.sources" beside it, unsharded. */
bool sl_registry_open(sl_connection *connection, const sl_target *target, sl_registry **registry,
                      sl_error *error);
void sl_registry_close(sl_registry *registry);

/* From now on this is about part `part` (from 1) of each source in a `division` of it, like "4" for
 * four parts: what is started and finished is that part, and `documents` of a finished entry is
 * what the parts that are finished gave together. Parts of another division are others. `afresh`:
 * where a source that is loaded is started again, none of its parts counts any more. */
#define SL_DIVISION_ROOM 16
void sl_registry_set_part(sl_registry *registry, const char *division, uint32_t part, bool afresh);

/* From now on sources are started with these options ({<name>: <text>}, copied), which documents
 * depend on. A source that another loader has begun with others is refused (SL_EXIT_USAGE), with the
 * option and both values in the error. For loads that are shared: of any other load, documents that
 * differ meet each other under their _id. */
void sl_registry_set_options(sl_registry *registry, const bson_t *options);

/* The functions below take any number of entries, whose fingerprints differ, and send them in
 * batches: hundreds of thousands cost seconds. Where one fails, part of the entries may have been
 * done; doing all of them again is fine. */

/* Fills `number`, `state`, `when`, parts and `layout` without changing anything in the registry. */
bool sl_registry_look_up(sl_registry *registry, sl_registry_entry *entries, size_t count,
                         sl_error *error);

/* Calls `found` for each entry that is new, while the registry knows another source of the same
 * name, which had `size` bytes: the same data, perhaps, fetched again or grown since. */
bool sl_registry_namesakes(sl_registry *registry, const sl_registry_entry *entries, size_t count,
                           void (*found)(const sl_registry_entry *entry, uint64_t size),
                           sl_error *error);

/* The loads that began and have not finished, of sources whose fingerprint begins with `prefix` and
 * is none of the entries'. `first` is the one that began first; "" where the registry does not
 * know. */
typedef struct sl_registry_unfinished {
    size_t count;
    char when[32]; /* ISO date of its beginning */
    char host[256];
    char work_directory[1024];
} sl_registry_unfinished;
bool sl_registry_find_unfinished(sl_registry *registry, const char *prefix,
                                 const sl_registry_entry *entries, size_t count,
                                 sl_registry_unfinished *first, sl_error *error);

/* The last number that was given, 0 for none: those that are new get the ones behind it, in order. */
bool sl_registry_last(sl_registry *registry, uint32_t *last, sl_error *error);

/* Gives each source its `number` (the one it has, or a free one, atomically among all loaders), and
 * marks it as started, with `name`, `size`, `host` and `work_directory`. `state` and `when` are
 * filled as well. */
bool sl_registry_start(sl_registry *registry, sl_registry_entry *entries, size_t count,
                       sl_error *error);

/* Proposes the `layout` of each entry, which must be in the registry, and fills in the one that
 * holds: what was proposed first, by whichever loader. It never changes from then on. */
bool sl_registry_agree(sl_registry *registry, sl_registry_entry *entries, size_t count,
                       sl_error *error);

/* Marks sources that were started as loaded, with the number of `documents` they gave. */
bool sl_registry_finish(sl_registry *registry, sl_registry_entry *entries, size_t count,
                        sl_error *error);

/* Marks sources as loaded of which all parts are; a second time is fine. */
bool sl_registry_finish_whole(sl_registry *registry, sl_registry_entry *entries, size_t count,
                              sl_error *error);

/* How many documents the finished loads of all sources gave; `*complete`: there is a source, and each
 * is loaded. */
bool sl_registry_total(sl_registry *registry, uint64_t *documents, bool *complete,
                       sl_error *error);

/* The numbers of all sources in the registry, in no order; `*numbers` is malloc'd. */
bool sl_registry_numbers(sl_registry *registry, uint32_t **numbers, size_t *count, sl_error *error);

/* How many sources the registry of a target knows whose collection is gone (somebody has dropped
 * it, or a drop was cut short); 0 while the collection is there. */
bool sl_registry_left_behind(sl_connection *connection, const sl_target *target, size_t *sources,
                             sl_error *error);

/* ---- statistics.c: what is stored where ---- */

typedef struct sl_shard_statistics {
    char shard[64];
    uint64_t documents;
    uint64_t data_bytes;    /* uncompressed BSON */
    uint64_t storage_bytes; /* on disk, without indexes */
    uint64_t index_bytes;
} sl_shard_statistics;

/* One row per shard that holds part of the collection (one row in all without sharding, none when
 * there is no such collection); `*rows` is malloc'd, sorted by shard name. Documents include
 * orphans that a chunk's move left behind until they are cleaned up. */
bool sl_statistics_read(sl_connection *connection, const sl_target *target,
                        sl_shard_statistics **rows, size_t *count, sl_error *error);

/* Counts the documents of each row, instead of believing the servers' figures, which are wrong after a
 * crash. `*counted` false: that takes a collection on one shard, or sharded by {_id: 1}, and nothing is
 * changed. Of the latter only documents with a 64-bit _id are counted. `map` is that of now. */
bool sl_statistics_count(sl_connection *connection, const sl_target *target,
                         const sl_topology *topology, const sl_shard_map *map,
                         sl_shard_statistics *rows, size_t count, bool *counted, sl_error *error);

typedef struct sl_storage_engine {
    char name[32];        /* "wiredTiger"; "" when the server does not tell */
    uint64_t cache_bytes; /* 0 when the server does not tell */
} sl_storage_engine;

/* What the server that answers stores with. A router, or a user without the privilege for
 * serverStatus, leaves both unknown. Never fails: it is for the record. */
void sl_storage_engine_read(sl_connection *connection, sl_storage_engine *engine);

#endif
