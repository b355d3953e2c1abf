/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the cluster floor share among themselves and with their tests: commands that
 * outlive an election, small reads and updates, and the inside of a chunk map. */
#ifndef SHARDLOAD_CLUSTER_INTERNAL_H
#define SHARDLOAD_CLUSTER_INTERNAL_H

#include <shardload/cluster.h>

/* ---- preflight.c ---- */

/* Says a hello to the servers of the URI, in plain text or through TLS as it asks for. False with
 * the error set when the client's own certificates cannot be used, or when none of the servers is
 * fine and at least one of them has something against the connection that time will not heal. */
bool sl_preflight(const mongoc_uri_t *uri, sl_error *error);

/* Does the server answer a greeting on a connection of its own, within 3 s? Also true where it ends
 * that connection, and of a socket file, which is not asked. */
bool sl_server_answers(const mongoc_uri_t *uri, const mongoc_host_list_t *host);

/* ---- patience.c ---- */

/* How long a server may be silent before a stream to it is given up. Must outlive the clients. */
typedef struct sl_patience {
    const mongoc_uri_t *uri;
    int64_t milliseconds; /* at most INT32_MAX */
} sl_patience;

/* From now on, connections of the client wait for an answer as long as the server is alive. Before
 * its first command. */
void sl_patience_attach(const sl_patience *patience, mongoc_client_t *client);

/* ---- connection.c ---- */

/* Until when a command that failed for a passing reason is tried again (sl_clock_ns): half a minute,
 * and long enough for a second attempt where the first one waited in vain for its answer. */
int64_t sl_connection_retry_until(const sl_connection *connection);

/* The URI as the driver has it, credentials and all; lives as long as the connection. */
const mongoc_uri_t *sl_connection_uri(const sl_connection *connection);

/* A pool for threads that write, see sl_connection_open_writers. `uri` is changed. */
mongoc_client_pool_t *sl_connection_writer_pool(mongoc_uri_t *uri, unsigned pool_size,
                                                unsigned timeout_seconds, sl_error *error);

/* ---- balancer.c ---- */

/* "full" or "off": how the balancer is now. */
bool sl_balancer_read_mode(sl_connection *connection, char mode[8], sl_error *error);

/* ---- shard_uri.c ---- */

/* The URI of a shard, whose host in config.shards is like "s0/host:port,host:port", for the user,
 * the encryption, the compressors and the timeouts of another URI. NULL when the host is not
 * understood. Destroy it. */
mongoc_uri_t *sl_shard_uri(const sl_shard *shard, const mongoc_uri_t *like);

/* ---- identity.c ---- */

/* The digits of a UUID; "" when the field holds none. */
void sl_uuid_of(const bson_iter_t *field, char uuid[SL_UUID_ROOM]);

/* ---- privileges.c ---- */

/* Puts a server's message of error 13, Unauthorized, into words: which privilege is missing on what,
 * and what for. False when the message is of another form. */
bool sl_privilege_in_words(const char *message, char *out, size_t room);

/* ---- command.c ---- */

/* A namespace has at most 255 bytes; ours may be longer and is then refused by the server. */
#define SL_NAMESPACE_ROOM 512

/* Server error codes that are an answer rather than a failure. */
enum {
    SL_CODE_UNAUTHORIZED = 13,
    SL_CODE_AUTHENTICATION_FAILED = 18,
    SL_CODE_ALREADY_INITIALIZED = 23,
    SL_CODE_NAMESPACE_NOT_FOUND = 26,
    SL_CODE_NAMESPACE_EXISTS = 48,
    SL_CODE_INDEX_OPTIONS_CONFLICT = 85,
    SL_CODE_DUPLICATE_KEY = 11000,
};

/* "<database>.<collection>" into `out`; returns out. */
char *sl_target_namespace(const sl_target *target, char out[SL_NAMESPACE_ROOM]);
/* "<collection>.sources", where the registry and the balancer's state live. */
char *sl_target_registry(const sl_target *target, char out[SL_NAMESPACE_ROOM]);

/* sl_backoff, which ends early as sl_connection_ask_before_retries says; the error (may be NULL), which
 * is that of the last attempt, then becomes one of class SL_EXIT_INTERRUPTED. */
bool sl_connection_backoff(sl_connection *connection, unsigned attempt, sl_error *error);

/* sl_connection_command, again and again while the failure is transient, for up to about 30 s of
 * waiting: the command must be one that may be repeated. A write error or write concern error
 * inside a reply counts as failure, too. `reply` (may be NULL) is initialised always. */
bool sl_cluster_command(sl_connection *connection, const char *database, const bson_t *command,
                        bson_t *reply, int32_t *code, sl_error *error);

/* Appends writeConcern {w: "majority", wtimeout: 30000}. */
void sl_append_majority(bson_t *command);

/* Reads the document with this _id. `*document` is initialised always; empty when not found. */
bool sl_find_by_id(sl_connection *connection, const char *database, const char *collection,
                   const char *id, bson_t *document, bool *found, sl_error *error);

/* findAndModify with write concern majority, returning the document as it is after the update; a
 * NULL `update` removes the document and returns it. `*found` (may be NULL) tells whether there is
 * one; `*document` (may be NULL) is initialised always, and empty when there is none. */
bool sl_find_and_modify(sl_connection *connection, const char *database, const char *collection,
                        const bson_t *query, const bson_t *update, bool upsert, bson_t *document,
                        bool *found, sl_error *error);

/* ---- key_value.c: values of shard keys ---- */

/* Are order and hash of such a value computed here? */
bool sl_value_is_known(const bson_value_t *value);

/* Below 0, 0, above 0 as the server orders two known values, strings by their bytes. Numbers are
 * compared by value whatever their type, exactly. */
int sl_value_compare(const bson_value_t *a, const bson_value_t *b);

/* The hash of a known value, as a hashed index has it. A string must have its NUL behind it, as it
 * does in a document. */
int64_t sl_value_hash(const bson_value_t *value, sl_owner_cache *cache);

/* ---- key_path.c ---- */

/* The value at a dotted path of a document, null where there is none. Strings and binary stay
 * where they are. False when the value is not known in the sense above, or there is an array on the
 * way. */
bool sl_key_value_at(const uint8_t *document, const char *path, bson_value_t *value);

/* ---- shard_key.c: owners by shard key ---- */

typedef struct sl_key_map sl_key_map;

/* Makes the map of chunk documents {min: {...}, max: {...}, shard}, given in order as an array, for
 * the shard key pattern `key`. `*map` becomes NULL, which is
 * no error, when the key or a bound is of a kind that is not known here. False when the chunks
 * leave a hole or overlap. */
bool sl_key_map_create(const bson_t *key, const bson_t *chunks, const sl_topology *topology,
                       sl_key_map **map, sl_error *error);
void sl_key_map_destroy(sl_key_map *map); /* NULL is fine */
bool sl_key_map_owner(const sl_key_map *map, const uint8_t *document, sl_owner_cache *cache,
                      uint32_t *shard);

/* ---- topology.c ---- */

/* Appends the shards of an array of documents of config.shards. */
bool sl_topology_add_shards(sl_topology *topology, const bson_t *documents, sl_error *error);

/* ---- statistics.c ---- */

/* Appends a row for each document of a $collStats reply, and sorts them by shard. A document
 * without a shard's name gets the name `lone`. On failure `*rows` keeps what was appended. */
bool sl_statistics_of(const bson_t *reply, const char *lone, sl_shard_statistics **rows,
                      size_t *count, sl_error *error);
/* The facts of a serverStatus reply; what is not there is left as it was. */
void sl_storage_engine_of(const bson_t *status, sl_storage_engine *engine);

/* ---- shard_map.c ---- */

typedef struct sl_chunk {
    bson_value_t minimum; /* of _id, as the cluster has them: commands must name them exactly */
    bson_value_t maximum;
    int64_t first;  /* the smallest 64-bit id in the chunk */
    uint32_t shard; /* index into the topology */
} sl_chunk;

struct sl_shard_map {
    bool by_id;
    size_t count; /* 0 unless by_id */
    /* In order, covering every 64-bit id: chunk i ends where chunk i + 1 begins. Chunks that cannot
     * hold a 64-bit id (of strings, say) are left out. */
    sl_chunk *chunks;
    sl_key_map *keys; /* NULL unless by key */
};

/* The shard of a chunk document that `chunk` stands at. */
bool sl_chunk_shard(const bson_iter_t *chunk, const sl_topology *topology, uint32_t *shard,
                    sl_error *error);

/* How a collection is sharded, from config.collections. */
typedef struct sl_sharding {
    bool sharded;
    bool chunks_by_uuid; /* config.chunks is keyed by the collection's uuid, not by its name */
    bson_t document;     /* initialised always */
    bson_t key;          /* the shard key, inside document */
} sl_sharding;

bool sl_sharding_read(sl_connection *connection, const sl_target *target, sl_sharding *sharding,
                      sl_error *error);
/* Fills the other fields from `document`, an entry of config.collections. */
void sl_sharding_judge(sl_sharding *sharding);
void sl_sharding_clear(sl_sharding *sharding);

/* Makes the map of chunk documents {min: {_id}, max: {_id}, shard}, given in order as an array.
 * False when they leave a hole or overlap, or name a shard that is not in the topology. */
bool sl_shard_map_from_chunks(const bson_t *chunks, const sl_topology *topology, sl_shard_map **map,
                              sl_error *error);
/* The same by any other shard key; the route is SL_ROUTE_NONE where that is not known here. */
bool sl_shard_map_from_keys(const bson_t *key, const bson_t *chunks, const sl_topology *topology,
                            sl_shard_map **map, sl_error *error);

/* Whichever of both fits the shard key of a sharded collection. */
bool sl_shard_map_of(const sl_sharding *sharding, const bson_t *chunks,
                     const sl_topology *topology, sl_shard_map **map, sl_error *error);

/* Index of the chunk that owns `id`, in a map by _id. */
size_t sl_shard_map_find(const sl_shard_map *map, int64_t id);

/* ---- ranges.c ---- */

/* A split at `minimum`, or the move of the chunk [minimum, maximum) to a shard. The values are
 * borrowed from the map that the plan was made of. */
typedef struct sl_step {
    bool move;
    bson_value_t minimum;
    bson_value_t maximum; /* of a move */
    uint32_t shard;       /* where to */
} sl_step;

/* A list of steps that grows; begins as all zero, and its items are freed by the owner. */
typedef struct sl_steps {
    sl_step *items;
    size_t count;
    size_t room;
    bool any_split;
    int64_t last_split;
} sl_steps;

/* Appends the fewest steps that bring the range to its shard. Ranges are given in order. */
bool sl_plan_range(const sl_shard_map *map, const sl_range *range, sl_steps *steps,
                   sl_error *error);

#endif
