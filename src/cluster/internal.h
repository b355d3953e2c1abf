/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of src/cluster, for its files and their tests: commands that are repeated after
 * transient failures, small reads and updates, and the fields of a chunk map. */
#ifndef SHARDLOAD_CLUSTER_INTERNAL_H
#define SHARDLOAD_CLUSTER_INTERNAL_H

#include <pthread.h>

#include "bson/bson_lookup.h"

#include "cluster.h"

/* ---- preflight.c: sockets ---- */

typedef struct sl_socket_failure {
    bool in_time; /* the reason was known before the timeout: a longer timeout does not help */
    char why[128];
} sl_socket_failure;

/* Resolves the name of the host, in the time that the system's resolver takes, and connects to one
 * of its addresses within `milliseconds`. Returns a blocking socket that the caller closes, or -1
 * with `failure` (may be NULL) set. */
int sl_socket_connect(const mongoc_host_list_t *host, int milliseconds, sl_socket_failure *failure);

/* `option`: SO_RCVTIMEO or SO_SNDTIMEO. `milliseconds`: more than 0. */
bool sl_socket_set_timeout(int file, int option, int64_t milliseconds);

/* Sends small messages at once, and detects a lost connection (three and a half minutes after the
 * last byte), as the driver does on its sockets. */
void sl_socket_keep_alive(int file);

/* ---- preflight.c ---- */

/* The reactions of hosts. */
typedef struct sl_reach {
    bool answers;  /* one of them replied to the hello, or there are none */
    bool silent;   /* none replied, and at least one was only too slow */
    char why[600]; /* "h1:27017: no server listens there ...; h2:27017: ..." */
} sl_reach;

/* Sends a hello to the hosts, those of the URI or others, until one answers, with TLS if the URI
 * sets it. `reach` receives the outcome; `asking` (may be NULL) is called with the name of each
 * host beforehand. False with the error set when the client's certificate cannot be used, or when
 * no server answers as expected and at least one refuses the connection for a permanent reason. */
bool sl_preflight(const mongoc_uri_t *uri, const mongoc_host_list_t *host,
                  void (*asking)(void *context, const char *host), void *context, sl_reach *reach,
                  sl_error *error);

/* Does the server to which the socket is connected react to a hello on a new connection within 3 s?
 * Also true if it closes that connection, and for a Unix socket, which is not tested. */
bool sl_server_answers(const mongoc_uri_t *uri, const mongoc_host_list_t *host, int connected);

/* Writes the subject of the client certificate that the URI names, in the form of the server's user
 * names ("CN=loader,O=clients"); "" when there is none. */
void sl_tls_subject(const mongoc_uri_t *uri, char *out, size_t room);

/* ---- command.c: errors of the driver in words ---- */

/* Did authentication fail? */
bool sl_is_refused_user(const bson_error_t *driver_error);
/* The server's code; 0: there is none. */
int32_t sl_code_from_driver(const bson_error_t *driver_error);

/* Sets the error for a pool that cannot be created; returns false. */
bool sl_error_from_pool(sl_error *error, const mongoc_uri_t *uri, const bson_error_t *driver_error);

/* Turns the server's message for error 13, Unauthorized, into one that names the missing privilege,
 * its resource and its purpose. False when the message has another form. */
bool sl_privilege_in_words(const char *message, char *out, size_t room);

/* ---- streams.c: patience ---- */

/* The open streams of one client. */
typedef struct sl_streams sl_streams;

/* How long a server may be silent before a stream to it fails. Must outlive the clients. */
typedef struct sl_patience {
    const mongoc_uri_t *uri; /* borrowed */
    int64_t milliseconds;    /* at most INT32_MAX; 0: as long as the driver's timeouts allow */
    bool ending;             /* the clients are being destroyed: no reply is awaited */
    pthread_mutex_t lock;    /* guards the list of clients */
    sl_streams *clients;
} sl_patience;

void sl_patience_init(sl_patience *patience, const mongoc_uri_t *uri, int64_t milliseconds);
/* Call it after the clients have been destroyed. */
void sl_patience_clear(sl_patience *patience);

/* Replaces all streams of a new client: they check each message of the server before the driver
 * reads it, and with a patience they wait for a reply as long as the server is alive. Any
 * thread. */
void sl_patience_attach(sl_patience *patience, mongoc_client_t *client);

/* The streams of an attached client, which live as long as the patience. */
sl_streams *sl_patience_find(sl_patience *patience, const mongoc_client_t *client);

/* Shuts the connection to this host down: the driver's next command on it fails, and the driver
 * opens another one. */
void sl_streams_shut_down(const sl_streams *streams, const char *host_and_port);

/* ---- connection.c: hosts that are silent ---- */

/* A host ("host:port") has not answered a request in time, or has answered. Any thread. */
void sl_silent_host_add(const char *host_and_port);
void sl_silent_host_remove(const char *host_and_port);

/* Must this client not ask the host, because it was silent a moment ago, or because another client
 * tries it, and the URI has other hosts? Otherwise the client may ask it for `trial_ms`. */
bool sl_silent_host_is_passed_over(const mongoc_uri_t *uri, const char *host_and_port,
                                   int32_t trial_ms);

/* ---- connection.c: pools of clients ---- */

/* Clients for one thread at a time. */
typedef struct sl_pool sl_pool;

/* At most maxPoolSize of the URI clients. `patience_ms`: how long a server may be silent while a
 * command runs; 0: as long as socketTimeoutMS of the URI. NULL with the error set. */
sl_pool *sl_pool_create(const mongoc_uri_t *uri, const char *application, int64_t patience_ms,
                        bson_error_t *error);
/* All clients must have been returned. NULL is fine. */
void sl_pool_destroy(sl_pool *pool);

/* Waits while all clients are borrowed. Any thread. */
mongoc_client_t *sl_pool_borrow(sl_pool *pool);
void sl_pool_return(sl_pool *pool, mongoc_client_t *client);

/* ---- streams.c: messages ---- */

#define SL_MESSAGE_HEADER 16
#define SL_MESSAGE_MAX 48000000 /* bytes of a message, also of a decompressed one */
#define SL_MESSAGE_WHY 300

/* The length that a message declares in its header. False with `why` when no message has it. */
bool sl_message_length(const uint8_t header[SL_MESSAGE_HEADER], size_t *length,
                       char why[SL_MESSAGE_WHY]);

/* Decompresses a message with its header into `*plain`, which the caller frees; NULL when the
 * message is not compressed. False with `why` when it cannot be decompressed. */
bool sl_message_expand(const uint8_t *message, size_t length, uint8_t **plain, size_t *plain_length,
                       char why[SL_MESSAGE_WHY]);

/* Checks a plain message with its header. False with `why` when the driver must not read it. From
 * this level on, where replies have stored documents (cursor.firstBatch.0), a document may have old
 * binary data (bson_check.h), at which libbson ends the reading of that document. */
#define SL_STORED_LEVEL 3u
bool sl_message_check(const uint8_t *message, size_t length, char why[SL_MESSAGE_WHY]);

/* Is the plain message the reply to the request with this number, of the expected kind (OP_MSG)? */
bool sl_message_answers(const uint8_t *message, uint32_t request, uint32_t expected,
                        char why[SL_MESSAGE_WHY]);

/* ---- streams.c: refused messages and certificates ---- */

/* Why this thread refused a message or a certificate, for the error of the command; "" if it
 * refused none. */
const char *sl_message_refusal(void);
void sl_message_forget_refusal(void);

/* ---- uri.c ---- */

/* Can a replica set have this name? */
#define SL_SET_NAME_MAX 127 /* bytes */
bool sl_set_name_is_valid(const char *name, size_t length);

/* Is the text HOST[:PORT], or `several` of them with commas between them, with a DNS name, an IPv4
 * address or an IPv6 address in brackets as HOST, and nothing else? For hosts that a server names.
 */
bool sl_hosts_are_valid(const char *hosts, bool several);

/* The URI of another server of the deployment. `host` is text from a server and has the form
 * "s0/host:port,host:port" or "host:port". All options, the user and the TLS options are those of
 * `like`, which is checked. NULL with the error set when the host has another form. Destroy it. */
mongoc_uri_t *sl_uri_of_server(const char *host, const mongoc_uri_t *like, sl_error *error);

/* ---- connection.c ---- */

/* Initialises the driver, once per process. */
void sl_driver_start(void);

/* The time (sl_clock_ns) after which a command is not repeated any more: half a minute plus the
 * timeout from now, so that a command whose first attempt timed out is repeated at least once. */
int64_t sl_connection_retry_until(const sl_connection *connection);

/* The open streams of a borrowed client. */
sl_streams *sl_connection_streams(sl_connection *connection, mongoc_client_t *client);

/* The driver's URI, including credentials; lives as long as the connection. */
const mongoc_uri_t *sl_connection_uri(const sl_connection *connection);

/* A pool for writers, see sl_connection_open_writers. Changes `uri`. */
sl_pool *sl_connection_writer_pool(mongoc_uri_t *uri, unsigned pool_size, unsigned timeout_seconds,
                                   sl_error *error);

/* ---- command.c ---- */

/* Writes the digits of a UUID field; "" when the field holds no UUID. */
void sl_uuid_of(const bson_iter_t *field, char uuid[SL_UUID_ROOM]);
/* May a read that failed for this reason succeed when it is repeated? */
bool sl_is_transient(const bson_error_t *why);

/* A namespace has at most 255 bytes; the server refuses longer ones. */
#define SL_NAMESPACE_ROOM 512

/* Server error codes that the loader handles. */
enum {
    SL_CODE_UNAUTHORIZED = 13,
    SL_CODE_AUTHENTICATION_FAILED = 18,
    SL_CODE_ALREADY_INITIALIZED = 23,
    SL_CODE_NAMESPACE_NOT_FOUND = 26,
    SL_CODE_ILLEGAL_OPERATION = 20, /* of moveChunk: to a shard outside of the chunk's zone */
    SL_CODE_COMMAND_NOT_FOUND = 59,
    SL_CODE_NAMESPACE_EXISTS = 48,
    SL_CODE_TOOK_TOO_LONG = 50, /* MaxTimeMSExpired */
    SL_CODE_INDEX_OPTIONS_CONFLICT = 85,
    SL_CODE_DUPLICATE_KEY = 11000,
};

/* "<database>.<collection>" into `out`; returns out. */
char *sl_target_namespace(const sl_target *target, char out[SL_NAMESPACE_ROOM]);
/* The collection of the registry, into `out`; returns out. */
char *sl_target_registry(const sl_target *target, char out[SL_NAMESPACE_ROOM]);

/* sl_backoff with the check of sl_connection_set_retry_check. If that check ends the waiting,
 * `error` (the error of the last attempt; may be NULL) becomes one of class SL_EXIT_INTERRUPTED. */
bool sl_connection_backoff(sl_connection *connection, unsigned attempt, sl_error *error);

/* sl_connection_command, repeated while the failure is transient, with up to about 30 s of waiting.
 * Executing the command twice must be harmless. A write error or write concern error in a reply
 * also counts as failure. `reply` (may be NULL) is always initialised. */
bool sl_cluster_command(sl_connection *connection, const char *database, const bson_t *command,
                        bson_t *reply, int32_t *code, sl_error *error);

/* As sl_cluster_command, and destroys the command. */
bool sl_cluster_run(sl_connection *connection, const char *database, bson_t *command, bson_t *reply,
                    int32_t *code, sl_error *error);

/* As sl_cluster_run without a reply. A failure with the code `harmless` (0: none) is a success. */
bool sl_cluster_change(sl_connection *connection, const char *database, bson_t *command,
                       int32_t harmless, sl_error *error);

/* Appends writeConcern {w: "majority", wtimeout: 30000}. */
void sl_append_majority(bson_t *command);

/* Reads the document with this _id. `*document` is always initialised; empty when not found. */
bool sl_find_by_id(sl_connection *connection, const char *database, const char *collection,
                   const char *id, bson_t *document, bool *found, sl_error *error);

/* {_id: {$gte: minimum, $lt: maximum}}; destroy it. */
bson_t *sl_range_filter(int64_t minimum, int64_t maximum);

/* Is there no document in the target that matches the filter? Reads at most one. */
bool sl_is_empty(sl_connection *connection, const sl_target *target, const bson_t *filter,
                 bool *empty, sl_error *error);

/* findAndModify with write concern majority. `*document` (may be NULL) is the document after the
 * update; it is always initialised, and empty if no document matches. A NULL `update` removes the
 * document and returns it. `*found` (may be NULL): a document was returned. */
bool sl_find_and_modify(sl_connection *connection, const char *database, const char *collection,
                        const bson_t *query, const bson_t *update, bool upsert, bson_t *document,
                        bool *found, sl_error *error);

/* ---- shard_map.c: values of shard keys ---- */

/* Are the order and the hash of a value of this type implemented here? */
bool sl_value_is_known(const bson_value_t *value);

/* Negative, 0 or positive, as the server orders two known values, strings by their bytes. Numbers
 * of different types are compared exactly. */
int sl_value_compare(const bson_value_t *a, const bson_value_t *b);

/* The hash of a known value in a hashed index. A string must be followed by its NUL, as in a
 * document. */
int64_t sl_value_hash(const bson_value_t *value, sl_owner_cache *cache);

/* The value at a dotted path of a document; null if there is none. Strings and binary data point
 * into the document. False when the type is not known (sl_value_is_known), or the path leads
 * through an array. `set`: the path may also be the name of a field, as in {$set: {"a.b": 1}}. */
bool sl_key_value_at(const uint8_t *document, const char *path, bool set, bson_value_t *value);

/* ---- topology.c ---- */

/* Appends the shards of an array of documents of config.shards. */
bool sl_topology_add_shards(sl_topology *topology, const bson_t *documents, sl_error *error);

/* Finds the index of a shard by its name. */
bool sl_topology_find(const sl_topology *topology, const char *name, uint32_t *shard);

/* ---- topology.c: stored sizes ---- */

/* Appends a row for each document of a $collStats reply, and sorts the rows by shard. A document
 * without a shard gets the shard name `lone`. On failure `*rows` keeps the rows appended so far. */
bool sl_statistics_of(const bson_t *reply, const char *lone, sl_shard_statistics **rows,
                      size_t *count, sl_error *error);
/* Fills `engine` from a serverStatus reply; fields that the reply lacks stay unchanged. */
void sl_storage_engine_of(const bson_t *status, sl_storage_engine *engine);

/* ---- shard_map.c ---- */

typedef struct sl_key_map sl_key_map; /* owners by shard key */

typedef struct sl_chunk {
    bson_value_t minimum; /* of _id, exactly as in the cluster: commands must repeat them */
    bson_value_t maximum;
    int64_t first;  /* the smallest 64-bit id in the chunk */
    uint32_t shard; /* index into the topology */
} sl_chunk;

struct sl_shard_map {
    bool by_id;
    size_t count; /* 0 unless by_id */
    /* Ordered, covering every 64-bit id: chunk i ends where chunk i + 1 begins. Chunks that cannot
     * contain a 64-bit id (only strings, say) are left out. */
    sl_chunk *chunks;
    sl_key_map *keys; /* NULL unless by key */
    bson_t *key;      /* the shard key; NULL: not sharded, or not read from a cluster */
};

/* The shard of the first chunk; 0 if it is not known. */
uint32_t sl_shard_map_first(const sl_shard_map *map);

/* How a collection is sharded, from config.collections. */
typedef struct sl_sharding {
    bool sharded;
    bool chunks_by_uuid; /* config.chunks refers to the collection by UUID, not by namespace */
    bson_t document;     /* its entry in config.collections; always initialised */
    bson_t key;          /* the shard key, inside `document` */
} sl_sharding;

bool sl_sharding_read(sl_connection *connection, const sl_target *target, sl_sharding *sharding,
                      sl_error *error);
/* Fills the other fields from `document`. */
void sl_sharding_parse(sl_sharding *sharding);
void sl_sharding_clear(sl_sharding *sharding);

/* Makes the map from chunk documents {min: {_id}, max: {_id}, shard}, an ordered array. False when
 * they leave a gap or overlap, or name a shard that is not in the topology. The route is
 * SL_ROUTE_NONE when a bound is a decimal. */
bool sl_shard_map_from_chunks(const bson_t *chunks, const sl_topology *topology, sl_shard_map **map,
                              sl_error *error);
/* The same for any other shard key; the route is SL_ROUTE_NONE for types that are not known. */
bool sl_shard_map_from_keys(const bson_t *key, const bson_t *chunks, const sl_topology *topology,
                            sl_shard_map **map, sl_error *error);

/* Calls sl_shard_map_from_chunks or sl_shard_map_from_keys, depending on the shard key. */
bool sl_shard_map_of(const sl_sharding *sharding, const bson_t *chunks, const sl_topology *topology,
                     sl_shard_map **map, sl_error *error);

/* Index of the chunk that owns `id`, in a map by _id. */
size_t sl_shard_map_find(const sl_shard_map *map, int64_t id);

/* ---- ranges.c ---- */

/* A split at `minimum`, or the move of the chunk [minimum, maximum) to a shard. The values are
 * borrowed from the chunk map. */
typedef struct sl_chunk_step {
    bool move;
    bson_value_t minimum;
    bson_value_t maximum; /* of a move */
    uint32_t shard;       /* destination */
} sl_chunk_step;

/* A growing list of steps. Initialise with zeros; free `items`. */
typedef struct sl_chunk_steps {
    sl_chunk_step *items;
    size_t count;
    size_t room;
    bool any_split;
    int64_t last_split;
} sl_chunk_steps;

/* Appends the fewest steps that move the range to its shard. Call it for the ranges in order. */
bool sl_plan_range(const sl_shard_map *map, const sl_range *range, sl_chunk_steps *steps,
                   sl_error *error);

#endif
