/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster: its shards, the target collection and its ranges, the balancer, the registry of
 * sources, and storage statistics.
 *
 * Errors are of class SL_EXIT_CLUSTER unless stated otherwise. Commands are repeated for about half
 * a minute when they fail because of an election, a broken connection or a lock that another client
 * holds. A load calls these functions a few times, never per batch, unless stated otherwise.
 * Several threads may call them, each on its own objects. Targets, names and keys are borrowed for
 * the call only; the connection must outlive the objects. */
#ifndef SHARDLOAD_CLUSTER_H
#define SHARDLOAD_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "util/error.h"
#include "util/write_modes.h"

#include "connection.h"

/* Waits before an operation is tried again. `attempt` is the number of the attempt that failed,
 * counted from 0. The wait is 0.25 s after attempt 0 and doubles with each attempt, up to 4 s.
 * Returns false, without waiting, from attempt 10 on (28 s of waiting in total): the caller should
 * give up. `keep_on` (may be NULL) is called four times per second; when it returns false, the wait
 * ends and the result is false. */
bool sl_backoff(unsigned attempt, bool (*keep_on)(void *context), void *context);

/* ---- topology.c: the shards ---- */

typedef struct sl_shard {
    char *name;    /* "s0" */
    char *host;    /* "s0/127.0.0.1:27018" */
    bool draining; /* it is being removed from the cluster, and accepts no chunks */
} sl_shard;

typedef struct sl_topology {
    size_t count;     /* without sharding 1 shard, named after the replica set or "standalone" */
    sl_shard *shards; /* sorted by name */
} sl_topology;

bool sl_topology_read(sl_connection *connection, sl_topology **topology, sl_error *error);

/* If the user may not read the shards of the cluster, warns, and makes it one server, SL_HIDDEN. */
void sl_topology_may_be_read(sl_connection *connection);
void sl_topology_destroy(sl_topology *topology);

/* Calls `found` (may be NULL) with the name of each secondary in a reply to replSetGetStatus, and
 * how many seconds it is behind the member that has applied the newest operation. Servers note
 * whole seconds. Returns the largest lag; NAN: there are no secondaries. */
double sl_replication_lag(const bson_t *status,
                          void (*found)(void *context, const char *member, double seconds),
                          void *context);

/* The largest lag of the replica set, or of any shard, now. NAN: there are no secondaries, or it is
 * unknown, because a shard cannot be reached from here within 3 s, or the user may not ask. */
double sl_replication_lag_now(sl_connection *connection);

/* Does every shard answer? True as well if the router refuses to say. */
bool sl_shards_answer(sl_connection *connection, sl_error *error);

/* ---- prepare.c: the target collection ---- */

/* A collection's UUID as 32 hexadecimal digits. */
#define SL_UUID_ROOM 33

typedef struct sl_target {
    const char *database;
    const char *collection;
    bool drop;               /* drop the collection and its registry first */
    const char *compressor;  /* none, snappy, zlib, zstd; NULL for the server's default */
    bool clustered;          /* clustered index on _id (5.3 and later) */
    const bson_t *shard_key; /* on a sharded cluster; NULL leaves it unsharded */
    bool shard_key_unique;   /* a collection that is sharded by it has unique keys */
    /* Set by identity.c for a load. Commands with the UUID fail if the name belongs to another
     * collection. */
    char uuid[SL_UUID_ROOM]; /* "" until it has been read */
    bool by_uuid;            /* the server accepts `collectionUUID` in commands */
    bool capped;             /* it is a capped collection */
    char locale[32];         /* of the collection's collation; "" if texts are compared by bytes */
    char validator[400];     /* as JSON, perhaps its beginning; "" for none */
    bool shard_key_given;    /* by the user: an existing collection must have this key; otherwise
                                it may have any key, and `shard_key` is that of a new one */
    bool own_ids;            /* _ids may be of any type: owners are found by the shard key, also if
                                that is _id */
    const char *const *id_fields; /* that become the _id */
    size_t id_count;
    const char *registry; /* name of the registry's collection; NULL: "<collection>.sources"; "":
                                none, no other load has the sources: their numbers begin with 1 */
    bool set_paths;       /* names of documents' fields may be paths (sl_nesting_set_paths) */
    bool shard_existing;  /* shard the collection even if it already exists, unsharded */
    bool ambiguous;       /* set by sl_check_match: several documents may have the match fields of a
                             record */
} sl_target;

/* The change that sl_prepare_target makes to the sharding of the collection. */
typedef enum sl_sharding_change {
    SL_SHARDING_NONE,     /* no change: already sharded by the key, or `shard_key` is NULL */
    SL_SHARDING_NEW,      /* the collection is created, and sharded by the key */
    SL_SHARDING_EXISTING, /* an existing unsharded collection is sharded (shard_existing) */
    SL_SHARDING_LEFT,     /* an existing unsharded collection stays unsharded: no key given */
} sl_sharding_change;

/* What a load finds at its target, and what it will change there. */
typedef struct sl_target_view {
    bool exists;     /* the collection exists and is not dropped */
    bool capped;     /* the servers remove its oldest documents */
    bool silent;     /* a shard does not answer, so nothing was read */
    char locale[32]; /* as in sl_target */
    sl_sharding_change change;
} sl_target_view;

/* Determines by reads alone what sl_prepare_target will do, and whether it will fail: for lack of
 * a server version, for the type or an option of the existing collection, or because servers would
 * refuse to shard it. SL_EXIT_USAGE when the collection exists unsharded and a key was given
 * without shard_existing. A collection that another loader has created and not sharded yet counts
 * as new. `*view` is set unless it fails. */
bool sl_target_look(sl_connection *connection, const sl_target *target, sl_target_view *view,
                    sl_error *error);

/* Do both have the same fields in the same order with equal values? Numbers of different types are
 * compared by value. */
bool sl_keys_equal(const bson_t *a, const bson_t *b);
/* Has an index of listIndexes the options of a given one? Names and versions are not compared, nor
 * those parts of a collation that the given index leaves to the server. */
bool sl_index_has_options(const bson_t *found, const bson_t *given);

/* Is the key {_id: 1}? */
bool sl_key_is_id(const bson_t *key);

/* Prepares the target: drops it (if `drop`), creates it if it does not exist, and shards it as
 * sl_target_look determines. It is an error if an existing collection has another shard key or
 * compressor than requested, or is not clustered although that was requested; the message shows the
 * actual and the requested value. Properties that were not requested are not checked. The
 * compressor is read from the collection's files on each shard. `*created`: the call created the
 * collection.
 *
 * Sharding is enabled for the database before the collection is dropped. Enabling it and sharding
 * a collection need the same privilege, so for a user without that privilege the call fails before
 * any data is lost. `drop` also drops the registry, but keeps the stored state of the balancer.
 * Stop the balancer before the call: a running balancer may move empty chunks back. */
bool sl_prepare_target(sl_connection *connection, const sl_target *target, bool *created,
                       sl_error *error);

/* May the user drop a collection of this name, which does not exist? */
bool sl_may_drop(sl_connection *connection, const sl_target *target, sl_error *error);

/* Drops the collection and its registry of sources. Succeeds if they do not exist. */
bool sl_drop_target(sl_connection *connection, const sl_target *target, sl_error *error);

/* A range of _id (minimum <= id < maximum) that belongs on one shard. */
typedef struct sl_range {
    int64_t minimum;
    int64_t maximum;
    uint32_t shard; /* index into the topology */
} sl_range;

/* Splits and moves chunks so that each range is on its shard, for a collection sharded by {_id: 1};
 * does nothing for other collections. The ranges are sorted and do not overlap. A range that holds
 * documents, or has more chunks than SL_CHUNKS_MOVED_MOST, is not moved. A range that is on its
 * shard already costs no command, even if its chunk is larger than the range. Calls `progress` (may
 * be NULL) before and after each step with the numbers of completed and of all steps; `all` may
 * grow when another client changes chunks at the same time. When `progress` returns false, the work
 * stops with SL_EXIT_INTERRUPTED; a later call continues it. */
#define SL_CHUNKS_MOVED_MOST 64
bool sl_prepare_ranges(sl_connection *connection, const sl_target *target,
                       const sl_topology *topology, const sl_range *ranges, size_t count,
                       bool (*progress)(void *context, size_t done, size_t all), void *context,
                       sl_error *error);

/* The shard, or the next one if it is draining or missing in `now`, the topology at present; the
 * shard itself if all are. Indexes into `topology`. */
uint32_t sl_topology_receiver(const sl_topology *topology, const sl_topology *now, uint32_t shard);

/* The shard on which a new collection is created: the primary shard of its database. If the
 * database does not exist yet, `*known` is false and `*shard` is 0. */
bool sl_database_home(sl_connection *connection, const sl_target *target,
                      const sl_topology *topology, uint32_t *shard, bool *known, sl_error *error);

/* Builds an index: {key: {ts: 1, st: 1}, unique: true}, with the options of createIndexes; without
 * `name` it gets the conventional one. Succeeds if the index already exists, under any name. */
bool sl_create_index(sl_connection *connection, const sl_target *target, const bson_t *index,
                     sl_error *error);
/* The index as it is shown: its key, or with options all of it. Free with bson_free. */
char *sl_index_shown(const bson_t *index);
/* Will the servers build these indexes? SL_EXIT_USAGE if not: because of the shard key that the
 * collection has or gets, or of an index that it has. `exists`: the collection, and it is not
 * dropped. Only reads. */
bool sl_indexes_may_be_built(sl_connection *connection, const sl_target *target, bool exists,
                             const bson_t *const *indexes, size_t count, sl_error *error);

/* The UUID of the collection, which changes when it is dropped and created again. "" when there is
 * no such collection. */
bool sl_target_uuid(sl_connection *connection, const sl_target *target, char uuid[SL_UUID_ROOM],
                    sl_error *error);

/* Sets `uuid`, `capped`, `locale` and `validator` of the target, as the collection has them. */
bool sl_target_read(sl_connection *connection, sl_target *target, sl_error *error);

/* Is there a collection (or a view) of this name? */
bool sl_target_exists(sl_connection *connection, const sl_target *target, bool *exists,
                      sl_error *error);

/* ---- prepare.c: may a load match by these fields? ---- */

/* By what a load matches stored documents. */
typedef struct sl_matching {
    const char *const *fields;
    size_t count;
    const sl_mode_row *mode;
    const bson_t *const *indexes; /* that are built before the load, or exist by then */
    size_t index_count;
    /* For advice: do the records have this field? */
    bool (*records_have)(void *context, const char *field);
    void *context;
} sl_matching;

/* May a load match stored documents by these fields? They must contain the shard key. If the load
 * may insert, a unique index must show that they identify one document. If not: SL_EXIT_USAGE, with
 * the reason and the options to give. Sets target->ambiguous. Only reads. */
bool sl_check_match(sl_connection *connection, sl_target *target, const sl_matching *match,
                    sl_error *error);

/* Checks at the end of a load that relies on a unique index of the fields that there still is one.
 * Fails with SL_EXIT_VERIFICATION without it: two threads could then insert the same document. */
bool sl_check_match_again(sl_connection *connection, const sl_target *target,
                          const sl_matching *match, sl_error *error);

/* Checks that the documents keep the fields of their shard key: none is among those that become
 * the _id (SL_EXIT_USAGE). */
bool sl_check_ids(const bson_t *key, const char *const *ids, size_t count, sl_error *error);

/* ---- identity.c: the collection by its UUID ---- */

/* The server's error code when `collectionUUID` is not the UUID of the collection named in the
 * command. */
#define SL_CODE_COLLECTION_UUID_MISMATCH 361

/* Tests whether the server accepts `collectionUUID` in commands, and sets `by_uuid`. The collection
 * need not exist. */
bool sl_target_find_support(sl_connection *connection, sl_target *target, sl_error *error);
/* Reads `uuid`. The collection must exist. */
bool sl_target_identify(sl_connection *connection, sl_target *target, sl_error *error);
/* Appends a UUID, given as 32 hexadecimal digits. */
void sl_append_uuid(bson_t *document, const char *key, const char *uuid);
/* Appends `collectionUUID` to a command, or to the options of an insert or a find. Does nothing if
 * the server does not accept the field or the UUID has not been read. */
void sl_target_append_uuid(const sl_target *target, bson_t *command);
/* Sets the error for a command that failed with SL_CODE_COLLECTION_UUID_MISMATCH; returns false.
 * The collection was dropped, replaced or renamed after `uuid` was read, or a shard has another
 * collection of the same name: to find out which, the function lists the collections (through
 * `client`). */
bool sl_target_replaced(mongoc_client_t *client, const sl_target *target, sl_error *error);
/* sl_target_replaced with a client borrowed from the connection. */
bool sl_target_mismatch(sl_connection *connection, const sl_target *target, sl_error *error);
/* Does the collection of that name still have `uuid`? If not, sets sl_target_replaced's error. */
bool sl_target_check(sl_connection *connection, const sl_target *target, sl_error *error);

/* ---- identity.c, ranges.c ---- */

/* Waits up to about half a minute until no server runs a write into the target; `changes_only`: a
 * write other than an insert. If one is still running then, returns false with an error that
 * describes it. Without the privilege to list operations, logs a warning and returns true. */
bool sl_wait_for_writes(sl_connection *connection, const sl_target *target, bool changes_only,
                        sl_error *error);

/* Counts the documents that match a filter on _id, without orphans. */
bool sl_count_matching(sl_connection *connection, const sl_target *target, const bson_t *filter,
                       uint64_t *count, sl_error *error);

/* Counts the documents with minimum <= _id < maximum, without orphans. */
bool sl_count_range(sl_connection *connection, const sl_target *target, int64_t minimum,
                    int64_t maximum, uint64_t *count, sl_error *error);

/* Counts the documents of each range into found[i]. `shards[s]`: are the ranges of shard s counted?
 * (NULL: all are.) At most SL_RANGES_AT_ONCE ranges are counted at the same time, each on its own
 * connection of the pool. Also fails with SL_EXIT_INTERRUPTED. */
#define SL_RANGES_AT_ONCE 16u
bool sl_count_ranges(sl_connection *connection, const sl_target *target, const sl_range *ranges,
                     size_t count, const bool *shards, uint64_t *found, sl_error *error);

/* ---- reading stored documents ---- */

/* Reads one document that matches, from the primary; NULL: there is none. Destroy it. */
bool sl_document_find(sl_connection *connection, const sl_target *target, const bson_t *filter,
                      bson_t **document, sl_error *error);

#define SL_SAMPLE_DOCUMENTS 200

/* Reads a random sample of the collection: up to SL_SAMPLE_DOCUMENTS, and 16 MiB. They are the
 * array "cursor.firstBatch" of the reply, which is always initialised. */
bool sl_documents_sample(sl_connection *connection, const sl_target *target, bson_t *reply,
                         sl_error *error);

/* The same for up to 100 documents, of those that a server finds within 2 s, which have at least
 * one of the fields. `fields`: an array of {FIELD: {$exists: true}}. */
bool sl_documents_having(sl_connection *connection, const sl_target *target, const bson_t *fields,
                         bson_t *reply, sl_error *error);

/* Sends statements as one unordered command, `verb` is update or delete. Repeated after transient
 * failures, so each statement must have the same effect when it is executed again. `concern`:
 * "majority", which waits for the journal on a standalone server, or a number of members. */
bool sl_documents_write(sl_connection *connection, const sl_target *target, const char *verb,
                        const bson_t *statements, const char *concern, sl_error *error);

/* Sends documents as one unordered insert, once. `*inserted`: how many the server has stored, as
 * far as its answer says. False if it does not say that it has stored all of them. */
bool sl_documents_insert(sl_connection *connection, const sl_target *target,
                         const bson_t *documents, const char *concern, uint64_t *inserted,
                         sl_error *error);

typedef enum sl_scan_result {
    SL_SCAN_DONE,
    SL_SCAN_AGAIN, /* a transient failure; `each` may have received some of the documents */
    SL_SCAN_FAILED,
} sl_scan_result;

/* Passes each document that matches `filter` to `each`, by ascending _id; with `ids_only` only its
 * _id. Reads from the primaries through `client`, in replies of at most 16 MiB. `error` is set
 * unless the result is SL_SCAN_DONE. Orphaned documents are left out; documents with the same _id
 * on two shards are both passed. */
sl_scan_result sl_scan(mongoc_client_t *client, const sl_target *target, const bson_t *filter,
                       bool ids_only, void (*each)(void *context, const bson_t *document),
                       void *context, sl_error *error);

/* sl_scan of the complete documents with minimum <= _id < maximum. */
sl_scan_result sl_scan_range(mongoc_client_t *client, const sl_target *target, int64_t minimum,
                             int64_t maximum, void (*each)(void *context, const bson_t *document),
                             void *context, sl_error *error);

/* ---- shard_map.c: the owner of each chunk ---- */

typedef struct sl_shard_map sl_shard_map;

/* How the loader computes the owner of a document before it is sent. */
typedef enum sl_route {
    SL_ROUTE_NONE,   /* the owner cannot be computed, or the collection is not sharded */
    SL_ROUTE_BY_ID,  /* from its 64-bit _id; for collections sharded by {_id: 1} */
    SL_ROUTE_BY_KEY, /* from the values of its shard key, ranged or hashed */
} sl_route;

/* Reads the current chunk map of a collection. The map goes out of date when chunks are split or
 * moved; routers still send each document to its owner. */
bool sl_shard_map_read(sl_connection *connection, const sl_target *target,
                       const sl_topology *topology, sl_shard_map **map, sl_error *error);
/* The map that a new collection will have once it is sharded by {_id: 1}: one chunk, on `home`. */
bool sl_shard_map_of_new(uint32_t home, sl_shard_map **map, sl_error *error);
void sl_shard_map_destroy(sl_shard_map *map);
sl_route sl_shard_map_route(const sl_shard_map *map);
/* The collection's shard key, which may differ from that of the target; NULL: not sharded. */
const bson_t *sl_shard_map_key(const sl_shard_map *map);
/* Is the route SL_ROUTE_BY_ID? */
bool sl_shard_map_by_id(const sl_shard_map *map);
/* Returns the shard that owns the document with this `_id`, as an index into the topology's shards.
 * Returns 0 if the route is not SL_ROUTE_BY_ID. Several threads may call it at the same time. */
uint32_t sl_shard_map_owner(const sl_shard_map *map, int64_t id);

/* Are all ids of the range on range->shard? Only for a map by id. */
bool sl_range_is_placed(const sl_shard_map *map, const sl_range *range);

typedef struct sl_step_counts {
    size_t splits, moves;
    size_t occupied; /* ranges on a wrong shard that are not moved */
} sl_step_counts;

/* Counts the steps that sl_prepare_ranges would take with the chunk map `map`; changes nothing.
 * Without a connection (NULL) all ranges count as empty. Sets `stays[i]` if
 * sl_prepare_ranges would not move range i although it is on a wrong shard. */
bool sl_count_steps(sl_connection *connection, const sl_target *target, const sl_shard_map *map,
                    const sl_range *ranges, size_t count, bool *stays, sl_step_counts *counts,
                    sl_error *error);

/* Caches the last lookup: the next document needs no hash if it has the same key, and no search if
 * its key is in the same range. Initialise with zeros; one per thread and map. */
typedef struct sl_owner_cache {
    size_t range;        /* index of the last key's range */
    uint32_t length;     /* of `hashed`; 0: no hash is cached */
    uint8_t hashed[100]; /* input of the last hash; longer inputs are not cached */
    int64_t hash;
} sl_owner_cache;

/* Finds the shard (index into the topology) that owns a complete BSON document. Called per
 * document; any thread, without a lock. False when the owner cannot be computed and the document
 * must go through a router: the map has no route; in a map by id, the document's _id is not a
 * 64-bit integer; or the document's key contains a type that only the server compares or hashes
 * (object, array, decimal, regular expression, code, binary of the old subtype 2, deprecated
 * types). */
bool sl_shard_map_owner_of(const sl_shard_map *map, const uint8_t *document, sl_owner_cache *cache,
                           uint32_t *shard);

/* ---- direct.c: connections to the shards, bypassing the routers ---- */

/* Connections to the primary of each shard, with the user, TLS options and compressors of the
 * connection to the routers. */
typedef struct sl_direct sl_direct;

/* Opens up to `pool_size` connections to every shard of the topology, which must outlive the
 * result, with the timeout of writers (sl_connection_open_writers). Reads from `target` on each
 * shard to check the user's access; writes nothing. SL_EXIT_USAGE without a sharded cluster;
 * otherwise the error names the shard that cannot be reached or refuses the user. */
bool sl_direct_open(sl_connection *connection, const sl_topology *topology, const sl_target *target,
                    unsigned pool_size, unsigned timeout_seconds, sl_direct **direct,
                    sl_error *error);
void sl_direct_close(sl_direct *direct); /* NULL is fine */

/* A client of a shard (index into the topology), for one thread at a time; waits while all clients
 * of the shard are borrowed. Any thread. */
mongoc_client_t *sl_direct_borrow(sl_direct *direct, uint32_t shard);
void sl_direct_return(sl_direct *direct, uint32_t shard, mongoc_client_t *client);

/* Checks that a collection of the target's name on the shard (`name` in messages) has the target's
 * UUID; with `required`, also that it exists. Without `required`, nothing is read when the server
 * accepts the UUID in commands, since it then refuses inserts into another collection.
 * (identity.c) */
bool sl_target_check_shard(sl_connection *connection, sl_direct *direct, uint32_t shard,
                           const char *name, const sl_target *target, bool required,
                           sl_error *error);

/* Reads the chunk map while no chunk is being moved. sl_direct_check detects later changes of the
 * map. */
bool sl_direct_read_map(sl_direct *direct, const sl_target *target, sl_shard_map **map,
                        sl_error *error);

typedef enum sl_ownership_state {
    SL_OWNERS_SAME,    /* all documents acknowledged before the call are on their owners */
    SL_OWNERS_UNKNOWN, /* a chunk is being moved, or a server does not answer: check again */
    SL_OWNERS_CHANGED, /* the map is out of date: documents written meanwhile may be lost */
} sl_ownership_state;

/* Have all chunks stayed on their shards since sl_direct_read_map? Costs a read on each shard and
 * two on the config servers. `error` is set unless the result is SL_OWNERS_SAME. One thread at a
 * time. */
sl_ownership_state sl_direct_check(sl_direct *direct, const sl_target *target, sl_error *error);

/* ---- balancer.c ---- */

typedef struct sl_balancer sl_balancer;

/* Stops the balancer and stores its previous mode in the cluster (collection "balancer" of database
 * "shardload"), so that a later run can restore the balancer if this run is killed. When several
 * loaders share the cluster, the last one restores it. `holder`: 24 hexadecimal digits that
 * identify the load, the same for each of its runs, so that a resumed run replaces the entry of the
 * run that was killed; NULL for a new load. A thread sends a heartbeat every few seconds, with a
 * client of the connection. On a deployment without shards it does nothing and *balancer is
 * NULL. */
bool sl_balancer_pause(sl_connection *connection, const char *holder, sl_balancer **balancer,
                       sl_error *error);
/* Restores the balancer's mode and frees `balancer` (NULL is fine), also on failure. If all other
 * holders are loads on other hosts, waits up to two minutes for the heartbeat of one of them. */
bool sl_balancer_restore(sl_balancer *balancer, sl_error *error);

typedef struct sl_balancer_view {
    char mode[8];     /* current: "full" or "off"; "" on a deployment without shards */
    char before[8];   /* before loads stopped the balancer; "" when none has */
    uint32_t holders; /* loads that keep the balancer stopped */
    uint32_t dead;    /* holders whose process has ended: the next load restores the balancer */
    char names[1000]; /* of the holders, for messages */
} sl_balancer_view;

/* Reads the balancer's mode and holders; changes nothing. */
bool sl_balancer_status(sl_connection *connection, sl_balancer_view *view, sl_error *error);
/* The mode before this load, "full" or "off", for the report. "" for NULL. */
const char *sl_balancer_before(const sl_balancer *balancer);

/* ---- registry.c: the numbers of sources ---- */

typedef enum sl_source_state {
    SL_SOURCE_NEW,     /* not in the registry */
    SL_SOURCE_STARTED, /* a load of it began and did not finish */
    SL_SOURCE_LOADED,  /* completely loaded before */
} sl_source_state;

/* The distribution of a source's ids over shards: `pieces` pieces, whose sizes differ by at most
 * one stripe; piece i goes to shard (leading + i) % shards. */
typedef struct sl_layout {
    uint32_t shards; /* 0: the layout is not known */
    uint32_t pieces;
    uint32_t leading;
    uint64_t shard_names; /* a hash of the shards' names, in order */
} sl_layout;

#define SL_REGISTRY_SUFFIX ".sources" /* of the registry's name, after that of the collection */
/* Has a collection the name of a registry? A user may give such a name, too. */
bool sl_is_registry_name(const char *collection);

/* A source in the registry. Strings are borrowed. */
typedef struct sl_registry_entry {
    const char *fingerprint;
    const char *name;    /* any bytes; for users who read the registry */
    uint64_t size;       /* in bytes; for users who read the registry */
    uint64_t content;    /* a hash of its size, beginning and end, without its name; 0: not known */
    uint64_t beginning;  /* a hash of the first 64 KiB of its text; 0: not known */
    const char *include; /* of an archive or dump: its --include, "" without; NULL: of others */
    uint64_t records;    /* hashes of its first four records, each of 16 bits that are not 0 */
    uint64_t text_bytes; /* its size unpacked; 0: not known */
    uint64_t documents;  /* of a finished load: the most that its loads have stored */
    uint64_t stored;     /* the same, as the registry has them */
    uint64_t matched;    /* documents that no load has stored, and that its records match */
    uint64_t foreign;    /* documents of no load that the collection held at the end of that load */
    uint64_t rejected;   /* records of a finished load, not in parts */
    uint64_t refused_ids;    /* the sum of sl_id_sum over the records that the server rejected */
    bool refused_known;      /* read: refused_ids is stored; earlier programs did not store it */
    char rejected_in[300];   /* work directory with the rejects, "host:/path"; "": none */
    uint64_t corrected;      /* rejected records that were then loaded from files of rejected_in */
    char corrected_when[32]; /* the date of one of these loads, as `when` */
    /* The documents that a finished load has left under the source's _ids, its own and those of
     * others. Known only if the _ids come from positions, and all documents were inserted. */
    bool in_range_known;
    bool no_range; /* read: a load has stored that it is not known */
    uint64_t in_range;
    uint32_t number; /* 0: not assigned yet */
    sl_source_state state;
    char when[32]; /* ISO date of the last finished load, or "" */
    /* For a source that several loaders share, see sl_registry_set_part: */
    bool in_parts;         /* read: its last load was in parts, of any division */
    bool part_loaded;      /* this loader's part has been loaded */
    uint32_t parts_loaded; /* number of parts that have been loaded */
    uint64_t borders;      /* written: the sum of this loader's blocks; read: that of all loaded
                              parts (sl_source_block) */
    sl_layout layout;      /* common to all its loaders, see sl_registry_agree_layout */
    uint64_t types;        /* a hash of its columns' inferred types, which all its loaders must
                              share; 0: not inferred */
    /* For a pipe: the host and directory in which its load can be completed; NULL otherwise. */
    const char *host;
    const char *work_directory; /* absolute */
} sl_registry_entry;

typedef struct sl_registry sl_registry;

/* The registry of a target is the unsharded collection "<collection>.sources" in its database; that
 * of a collection in admin is in database shardload, because routers refuse findAndModify there. */
const char *sl_registry_database(const char *database);
bool sl_registry_open(sl_connection *connection, const sl_target *target, sl_registry **registry,
                      sl_error *error);
void sl_registry_close(sl_registry *registry);

/* Finds out whether the registry of this name belongs to the target, which may not exist. If not,
 * it reads as empty (registry.c), or fails if it, or the target's own, needs another name. */
typedef enum sl_settling {
    SL_SETTLE_READ,   /* reads the target's own under its other name instead */
    SL_SETTLE_LOOK,   /* changes nothing; fails if SL_SETTLE_WRITE will */
    SL_SETTLE_DROP,   /* changes nothing; the target and its registry are dropped then */
    SL_SETTLE_FORGET, /* the same of the registry; fails if it is that of a renamed collection */
    SL_SETTLE_WRITE,  /* the target exists: makes the registry its own */
    SL_SETTLE_CREATED /* ... and loads have created the target */
} sl_settling;
/* `again`: in doubt, the sources are those of the target; otherwise SL_EXIT_CLUSTER. */
bool sl_registry_settle(sl_registry *registry, const sl_target *target, sl_settling how, bool again,
                        sl_error *error);
/* Opens it if it is NULL, and settles it. */
bool sl_registry_open_settled(sl_connection *connection, const sl_target *target, sl_settling how,
                              bool again, sl_registry **registry, sl_error *error);
/* Drops the registry of a target, and nothing else. Succeeds if there is none; refuses a collection
 * of this name that is no registry. */
bool sl_registry_drop(sl_connection *connection, const sl_target *target, sl_error *error);

/* Makes the functions below start and finish part `part` (from 1) of each source, instead of the
 * entire source. `division` names the division into parts, such as "4" for four parts; parts of
 * another division are unrelated. `documents` of a finished entry is then the sum over its finished
 * parts. `afresh`: starting a loaded source removes its record of finished parts. */
#define SL_DIVISION_ROOM 16
void sl_registry_set_part(sl_registry *registry, const char *division, uint32_t part, bool afresh);

/* Numbers whose positions are _ids of stored documents are then refused only if `positions`, which
 * may read the sources, says that documents of this load get such _ids. */
void sl_registry_ask_positions(sl_registry *registry, bool (*positions)(void *context),
                               void *context);

/* Sets the options of this load that its documents depend on ({<name>: <text>}, copied). A source
 * that another loader has started with different options is then refused (SL_EXIT_USAGE); the error
 * names the option and both values. Only for loads shared by several loaders: in other loads, a
 * difference is found when documents with the same _id are compared. */
void sl_registry_set_options(sl_registry *registry, const bson_t *options);

/* The functions below take any number of entries with different fingerprints, and send them in
 * batches: hundreds of thousands take seconds. After a failure, some of the entries may have been
 * processed; repeating the call is safe. */

/* Fills `number`, `state`, `when`, parts and `layout` without changing anything in the registry. */
bool sl_registry_look_up(sl_registry *registry, sl_registry_entry *entries, size_t count,
                         sl_error *error);

typedef void sl_registry_found(void *context, const sl_registry_entry *entry,
                               const bson_t *document);

/* Calls `found` for each other source in the registry that has the name of a new entry, in any
 * folder, and other content, and may have documents. */
bool sl_registry_namesakes(sl_registry *registry, const sl_registry_entry *entries, size_t count,
                           sl_registry_found *found, void *context, sl_error *error);

/* Is it the path of a file of rejects? find_corrected sets `corrected` from loads of such files. */
bool sl_registry_is_rejects(const char *path);
bool sl_registry_find_corrected(sl_registry *registry, sl_registry_entry *entries, size_t count,
                                sl_error *error);

/* Calls `found` for each other source in the registry whose document has in `field` the content of
 * an entry that is not loaded, and that may have documents. */
bool sl_registry_same_content(sl_registry *registry, const char *field,
                              const sl_registry_entry *entries, size_t count,
                              sl_registry_found *found, void *context, sl_error *error);

/* Unfinished loads of sources whose fingerprint begins with `prefix` and is not among the entries.
 * The fields after `count` describe the load that started first; "" if not recorded. */
typedef struct sl_registry_unfinished {
    size_t count;
    char when[32]; /* ISO date of its start */
    char host[256];
    char work_directory[1024];
} sl_registry_unfinished;
bool sl_registry_find_unfinished(sl_registry *registry, const char *prefix,
                                 const sl_registry_entry *entries, size_t count,
                                 sl_registry_unfinished *first, sl_error *error);

/* The last number that was assigned, or 0. New sources get the numbers after it, in order. */
bool sl_registry_last(sl_registry *registry, uint32_t *last, sl_error *error);

/* Have loads set up the target? Not if it existed before the first of them. */
bool sl_registry_of_loads(sl_registry *registry, bool *loads, sl_error *error);

/* Assigns a `number` to each source that has none (atomically among all loaders), and marks the
 * source as started, with `name`, `size`, `host` and `work_directory`. Fills `state` and `when` as
 * well. */
bool sl_registry_start(sl_registry *registry, sl_registry_entry *entries, size_t count,
                       sl_error *error);

/* Removes content and beginning of started entries, so that sl_registry_same_content does not find
 * them: their load was refused before its first document. The next start of a source sets them
 * again. */
bool sl_registry_withdraw(sl_registry *registry, sl_registry_entry *entries, size_t count,
                          sl_error *error);

/* Sets `foreign` of the sources that this load finishes; 0: not known. */
void sl_registry_set_foreign(sl_registry *registry, uint64_t documents);

/* Stores the `layout` of each entry, which must be in the registry, unless another loader has
 * stored one already; then fills in the stored layout. A stored layout never changes. */
bool sl_registry_agree_layout(sl_registry *registry, sl_registry_entry *entries, size_t count,
                              sl_error *error);

/* Marks started sources (or this loader's part of them) as loaded, with their number of
 * `documents`. */
bool sl_registry_finish(sl_registry *registry, sl_registry_entry *entries, size_t count,
                        sl_error *error);

/* Marks as loaded the sources whose parts have all been loaded. May be repeated. */
bool sl_registry_finish_sources(sl_registry *registry, sl_registry_entry *entries, size_t count,
                                sl_error *error);

/* What loads have stored in the collection, in the order in which it was added; empty if there is
 * nothing. SL_REGISTRY_COLUMNS: the types of the columns of delimited text, {column, type}; a
 * column that was stored with several types is listed several times. SL_REGISTRY_IDS: where the
 * _ids come from, {from}; job/decision.c describes the texts. `*items` is always initialised.
 * `*older` (may be NULL): sources were registered before there were such lists. */
#define SL_REGISTRY_COLUMNS "types"
#define SL_REGISTRY_IDS "ids"
bool sl_registry_list(sl_registry *registry, const char *name, bson_t *items, bool *older,
                      sl_error *error);
/* Does the list SL_REGISTRY_COLUMNS have the column? */
bool sl_registry_lists(const bson_t *columns, const char *column);
/* Replaces the list `was` by `now`, and records that a load with the list `now` has begun, also if
 * both are equal. If another loader has changed the list meanwhile, nothing is replaced, and
 * `*done` is false: read the list, and call again with the next `attempt` (0, 1, 2 ...). An error
 * after many attempts. */
bool sl_registry_set_list(sl_registry *registry, const char *name, const bson_t *was,
                          const bson_t *now, unsigned attempt, bool *done, sl_error *error);
/* Puts back the lists as they were before this load, which has stored nothing, unless another load
 * has confirmed them since: its documents may depend on them. */
bool sl_registry_withdraw_lists(sl_registry *registry, sl_error *error);

/* The sum of `documents` over the registered sources, without those whose numbers are in the array
 * `except` (may be NULL). With `own_ids`, sources whose _ids are positions (their `in_range` is
 * known) are not added either. `*complete`: all sources that are not in `except` are loaded. */
bool sl_registry_total(sl_registry *registry, const bson_t *except, bool own_ids,
                       uint64_t *documents, bool *complete, sl_error *error);

/* Calls `visit` for each loaded source whose `in_range` is known, until it returns false. */
bool sl_registry_each_loaded(sl_registry *registry,
                             bool (*visit)(void *context, const sl_registry_entry *entry,
                                           sl_error *error),
                             void *context, sl_error *error);

/* The numbers of all sources in the registry, in no order; `*numbers` is malloc'd. */
bool sl_registry_numbers(sl_registry *registry, uint32_t **numbers, size_t *count, sl_error *error);

/* ---- topology.c: storage statistics ---- */

typedef struct sl_shard_statistics {
    char shard[64];
    uint64_t documents;
    uint64_t data_bytes;    /* uncompressed BSON */
    uint64_t storage_bytes; /* on disk, without indexes */
    uint64_t index_bytes;
} sl_shard_statistics;

/* One row per shard that holds part of the collection: a single row without sharding, none if the
 * collection does not exist. `*rows` is malloc'd and sorted by shard name. Documents include
 * orphans of moved chunks until the server deletes them. */
bool sl_statistics_read(sl_connection *connection, const sl_target *target,
                        sl_shard_statistics **rows, size_t *count, sl_error *error);

/* Replaces `documents` of each row by a count, since the servers' figures are wrong after a crash.
 * Possible for a collection on one shard, and for a collection sharded by {_id: 1}, where only
 * documents with a 64-bit _id are counted. For other collections `*counted` is false and nothing
 * changes. `map` is the current chunk map. */
bool sl_statistics_count(sl_connection *connection, const sl_target *target,
                         const sl_topology *topology, const sl_shard_map *map,
                         sl_shard_statistics *rows, size_t count, bool *counted, sl_error *error);

/* A full disk ends a server. */
#define SL_DISK_FULL 0.95 /* of the disk in use: no room for more */
#define SL_STORED_MOST                                                                             \
    1.2 /* stored bytes per byte of BSON: incompressible, with the index of _id */

/* Do the disks of all shards have room for these bytes of BSON? SL_EXIT_CLUSTER with the shard
 * whose disk has none. True if the servers do not say. */
bool sl_disks_have_room(sl_connection *connection, double bson_bytes, sl_error *error);

typedef struct sl_storage_engine {
    char name[32];        /* "wiredTiger"; "" if unknown */
    uint64_t cache_bytes; /* 0 if unknown */
} sl_storage_engine;

/* Reads which storage engine the server uses. Both fields are unknown if the server is a router, or
 * if the user may not run serverStatus. Never fails. */
void sl_storage_engine_read(sl_connection *connection, sl_storage_engine *engine);

/* ---- prepare.c: collections and views with all of their options, as a restore creates them; a
 * target is named by its database and collection ---- */

/* A time-series collection X is a view of the collection "system.buckets.X". */
#define SL_BUCKETS "system.buckets."
/* X of "system.buckets.X"; every other name itself. */
static inline const char *sl_without_buckets(const char *name) {
    const size_t prefix = strlen(SL_BUCKETS);
    return strncmp(name, SL_BUCKETS, prefix) == 0 ? name + prefix : name;
}

/* The collection or view that the server has under a name. Clear it in any case. */
typedef struct sl_collection_facts {
    bool exists;
    char type[32];  /* "collection", "view", "timeseries" */
    bson_t options; /* always initialised */
    bool sharded;
    char uuid[33]; /* hexadecimal; "": views and time-series collections have none */
} sl_collection_facts;

bool sl_collection_read(sl_connection *connection, const sl_target *target,
                        sl_collection_facts *facts, sl_error *error);
void sl_collection_facts_clear(sl_collection_facts *facts);

/* What the server has under the name: its type and UUID, of a time-series collection the UUID of
 * its buckets; "": nothing. A view has no UUID. */
#define SL_COLLECTION_IDENTITY_ROOM 72
bool sl_collection_identity(sl_connection *connection, const sl_target *target,
                            char out[SL_COLLECTION_IDENTITY_ROOM], sl_error *error);

/* Has the collection any document? */
bool sl_collection_is_empty(sl_connection *connection, const sl_target *target, bool *empty,
                            sl_error *error);

/* Can a collection have an option of this name? One that begins with $ would be a field of the
 * message: $db leads a command to another database. */
bool sl_option_name_check(const char *name, sl_error *error);

/* Creates a collection or view with these options of the command `create`. Succeeds if it exists
 * already, whatever its options are: the command may have been sent twice. */
bool sl_collection_create(sl_connection *connection, const sl_target *target, const bson_t *options,
                          sl_error *error);

/* Drops only this collection or view. Succeeds if it does not exist. */
bool sl_collection_drop(sl_connection *connection, const char *database, const char *collection,
                        sl_error *error);

/* Builds all indexes of an array of specifications with one command. */
bool sl_collection_create_indexes(sl_connection *connection, const sl_target *target,
                                  const bson_t *indexes, sl_error *error);

/* The indexes of the collection, as an array of specifications; always initialised. */
bool sl_collection_indexes(sl_connection *connection, const sl_target *target, bson_t *indexes,
                           sl_error *error);

/* Sets these fields of the collection: the command collMod. */
bool sl_collection_modify(sl_connection *connection, const sl_target *target, const bson_t *fields,
                          sl_error *error);

/* Merges users or roles into those of the server. `collection` of database admin has their
 * documents; `parameter`: that of the command _mergeAuthzCollections. `of_database`: only those of
 * this database; "": all. With `drop`, existing ones are replaced, and those that are not in the
 * collection are removed; without it, existing ones are kept. */
bool sl_merge_users(sl_connection *connection, const char *parameter, const char *collection,
                    const char *of_database, bool drop, sl_error *error);

/* Renames the collection, and drops one that has the new name. Succeeds if it does not exist. */
bool sl_collection_rename(sl_connection *connection, const sl_target *from, const sl_target *to,
                          sl_error *error);

/* Succeeds if the index does not exist. */
bool sl_collection_drop_index(sl_connection *connection, const sl_target *target, const char *index,
                              sl_error *error);

/* Writes the name of a zone that has ranges of the collection, for a message; "": there is none. */
bool sl_collection_zone(sl_connection *connection, const sl_target *target, char *name, size_t room,
                        sl_error *error);

/* Reads the shard key, empty: the collection is not sharded. `key` is initialised in any case.
 * `*unique` (may be NULL): its values are unique. */
bool sl_collection_shard_key(sl_connection *connection, const sl_target *target, bson_t *key,
                             bool *unique, sl_error *error);

/* Shards the collection, which must be empty or have an index for the key; `simple`: the collection
 * has a collation, so the shard key needs the simple collation. If it is already sharded, its key
 * must be this key. */
bool sl_collection_shard(sl_connection *connection, const sl_target *target, const bson_t *key,
                         bool unique, bool simple, sl_error *error);

/* ---- ranges.c: splits a new collection at quantiles of a sample of its shard key, and distributes
 * the chunks, so that all shards receive documents from the beginning; one thread ---- */

typedef struct sl_key_sample sl_key_sample;

/* A sample of at most some thousand values of the shard key. NULL without memory. `key` is
 * copied. */
sl_key_sample *sl_key_sample_create(const bson_t *key);
void sl_key_sample_destroy(sl_key_sample *sample); /* NULL is fine */

/* Offers a valid BSON document to the sample. All documents are equally likely to be in the sample,
 * except those whose key has a type that only the server compares (sl_shard_map_owner_of): these
 * are ignored. False without memory. */
bool sl_key_sample_offer(sl_key_sample *sample, const uint8_t *document);

/* Is the first field of the key hashed? Then the server distributes the chunks. */
bool sl_shard_key_is_hashed(const bson_t *key);

/* The number of keys in the sample. */
size_t sl_key_sample_count(const sl_key_sample *sample);

/* Splits and distributes the chunks of the collection, which is new: it is sharded by the key, and
 * has one chunk on the primary shard of its database. There are up to `per_shard` chunks for each
 * shard: fewer if the sample has few different keys. `*chunks`: their number at the end. */
bool sl_presplit(sl_connection *connection, const sl_target *target, const sl_topology *topology,
                 sl_key_sample *sample, size_t per_shard, size_t *chunks, sl_error *error);

#endif
