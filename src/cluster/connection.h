/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the server: pools of clients, the server's properties, and commands whose error
 * messages contain no driver internals and no credentials. */
#ifndef SHARDLOAD_CONNECTION_H
#define SHARDLOAD_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <mongoc/mongoc.h>

#include "util/error.h"

typedef enum sl_deployment {
    SL_STANDALONE,  /* one mongod without a replica set */
    SL_REPLICA_SET, /* a replica set without sharding */
    SL_SHARDED,     /* a sharded cluster, through its routers */
    SL_HIDDEN,      /* a sharded cluster whose shards the user may not read: used as one server */
} sl_deployment;

/* Does a mongod belong to a sharded cluster? Readers do not find documents
 * that are written to it without the routers, unless it owns them by chance. */
typedef enum sl_membership {
    SL_MEMBER_OF_NONE, /* also a router, and a server for a cluster that it has not joined */
    SL_MEMBER_OF_CLUSTER,
    SL_MEMBERSHIP_UNKNOWN, /* the user may not read it */
} sl_membership;

/* The driver prints none of its messages from then on. */
void sl_driver_silence(void);

typedef struct sl_server {
    sl_deployment deployment;
    sl_membership membership;
    char member_of[400]; /* "is shard s0 of the cluster with the config servers cfg/h1:27019" */
    char version[32];    /* "6.0.5" */
    const char *hello;   /* the command "hello", or "isMaster" of servers that are older than it */
    char set_name[128];
    int32_t max_batch_documents; /* in one insert command */
    int32_t max_message_bytes;   /* of one wire message */
    int32_t max_document_bytes;
    unsigned routers; /* hosts in the URI; 0 unless sharded */
} sl_server;

typedef struct sl_connection sl_connection;

/* The results of a cursor, read within limits: a hostile server could send batches for ever. */
#define SL_CURSOR_KEPT_MAX ((uint64_t)256 << 20) /* bytes of the results, if they are kept */
#define SL_CURSOR_EMPTY_MAX 1000                 /* successive batches without a document */
typedef struct sl_cursor_reading {
    mongoc_cursor_t *cursor;
    uint64_t limit; /* bytes; 0: the results are not kept, so their size is not limited */
    uint64_t bytes, documents; /* so far */
    unsigned empty;            /* successive batches without a document */
} sl_cursor_reading;

/* Is there another document? It is valid until the next call. */
bool sl_cursor_next(sl_cursor_reading *reading, const bson_t **document);

/* After the last document: has the reading failed? Then `why` is set. */
bool sl_cursor_failed(const sl_cursor_reading *reading, bson_error_t *why);

typedef struct sl_connection_options {
    const char *uri;
    const char *application; /* its name in the server's log */
    unsigned pool_size;      /* largest number of connections */
    /* How long a server may be silent (1 to 86400): a short command fails when its reply takes
     * longer (or longer than socketTimeoutMS of the URI). A long command (index build, chunk move,
     * aggregation) and a command of a borrowed client fail when the server has not answered a hello
     * on another connection for that time. */
    unsigned timeout_seconds;
    unsigned wait_seconds; /* how long to try again when no server can be reached */
    bool writes;           /* the command writes: a mongod of a sharded cluster is refused */
} sl_connection_options;

/* Opens a pool of connections and reads the server's properties. Hosts that do not exist or do not
 * listen are an error at once, unless `wait_seconds` is set; servers that do not answer are an
 * error after some seconds. An attempt that takes longer than two seconds is logged. Errors:
 * SL_EXIT_USAGE for an invalid URI, for one whose hosts are not of one deployment, and for a server
 * that is refused because of `writes`; SL_EXIT_CLUSTER when no server answers or the server refuses
 * the connection, SL_EXIT_INTERRUPTED. */
bool sl_connection_open(const sl_connection_options *options, sl_connection **connection,
                        sl_error *error);
void sl_connection_close(sl_connection *connection); /* NULL is fine */

const sl_server *sl_connection_server(const sl_connection *connection);

/* Makes a deployment SL_SHARDED an SL_HIDDEN one. */
void sl_connection_hide_shards(sl_connection *connection);

/* The URI without credentials; lives as long as the connection. */
const char *sl_connection_display_uri(const sl_connection *connection);

/* Appends the server's version, deployment and limits to a record, as "server". */
void sl_connection_record(const sl_connection *connection, bson_t *record);

/* Is the server of this version or a later one? Also true if its version is unknown. */
bool sl_server_at_least(const sl_server *server, unsigned major, unsigned minor);

/* "standalone", "replica set", "sharded cluster". */
const char *sl_deployment_name(sl_deployment deployment);

/* A client for one thread at a time; return it after use. Waits while all are borrowed. Its
 * commands wait for their reply as long as the server is alive. */
mongoc_client_t *sl_connection_borrow(sl_connection *connection);
void sl_connection_return(sl_connection *connection, mongoc_client_t *client);

/* ---- streams.c: short reads on a borrowed client's connection, without the driver ---- */

/* "primaryPreferred" ... */
const char *sl_read_mode_name(mongoc_read_mode_t mode);

typedef struct sl_exchange sl_exchange;

/* For the thread that has borrowed the client; destroy it before the client is returned. NULL when
 * the URI names compressors: then reads go through the driver, which compresses. */
sl_exchange *sl_exchange_create(sl_connection *connection, mongoc_client_t *client);
void sl_exchange_destroy(sl_exchange *exchange); /* NULL is fine */

/* The server that receives the following commands, and the fields that are added to them. */
typedef struct sl_exchange_target {
    const mongoc_server_description_t *server;
    const char *database;
    const mongoc_read_prefs_t *preference;  /* NULL: that of the URI */
    const mongoc_client_session_t *session; /* NULL: none */
    const bson_t *read_concern;             /* NULL: that of the URI */
} sl_exchange_target;

void sl_exchange_select(sl_exchange *exchange, const sl_exchange_target *target,
                        const mongoc_client_t *client);

/* Sends a read to the selected server and receives the reply, whose `ok` may be 0; `reply` is a
 * view that the next call replaces. The driver must have run a command on that server. False when
 * no reply was received: the read may be sent again through the driver, which opens a new
 * connection. */
bool sl_exchange_run(sl_exchange *exchange, const bson_t *command, bson_t *reply);

/* Opens a second pool, for writers: their commands wait `timeout_seconds` for a reply, after which
 * the connection is closed; the driver's retryable writes are off. Call it before the first writer
 * is borrowed. Another call, by the next load of this connection, keeps the pool and its
 * connections, and enlarges it if `pool_size` is larger. */
bool sl_connection_open_writers(sl_connection *connection, unsigned pool_size,
                                unsigned timeout_seconds, sl_error *error);
mongoc_client_t *sl_connection_borrow_writer(sl_connection *connection);
void sl_connection_return_writer(sl_connection *connection, mongoc_client_t *client);

/* Runs a command on `database` on the primary. `reply` (may be NULL) is always initialised: destroy
 * it. The caller adds a writeConcern to a write command. On failure the error names the command,
 * the host and the server's reason. `*server_code` (may be NULL) is the server's error code, or
 * 0. */
bool sl_connection_command(sl_connection *connection, const char *database, const bson_t *command,
                           bson_t *reply, int32_t *server_code, sl_error *error);

/* Sets a function that is called before a command is repeated after a transient failure: false
 * stops the repetition. Any thread that runs commands may call it, until the connection is
 * closed. */
void sl_connection_set_retry_check(sl_connection *connection, bool (*keep_on)(void *context),
                                   void *context);

/* May the same command succeed when it is repeated? (A broken connection, an election, a lock of
 * another client.) `code` is the `server_code` of sl_connection_command. */
bool sl_code_is_transient(int32_t code);

/* Does a server with this code refuse a command that the user or the deployment does not permit? */
bool sl_code_is_refusal(int32_t code);

/* A reply with {ok: 1} may contain a write error or a write concern error. Returns its code, and
 * sets `*reason` to its message, borrowed; -1 if there is none. */
int32_t sl_hidden_failure(const bson_t *reply, const char **reason);

/* Sets `error` to "<doing>: <message>", with driver internals removed from the driver's message.
 * Always returns false. */
bool sl_error_from_driver(sl_error *error, const char *doing, const bson_error_t *driver_error);

/* Calls `each` for every document of a find, which may be too many to keep, until it returns false.
 * The document is valid during the call. `filter` and `options` (find options; may be NULL) are
 * borrowed. More than `limit` bytes of documents are an error. After a transient failure the find
 * is repeated, but not once `each` has been called. */
typedef bool sl_found_document(void *context, const bson_t *document);
bool sl_connection_find_each(sl_connection *connection, const char *database,
                             const char *collection, const bson_t *filter, const bson_t *options,
                             uint64_t limit, sl_found_document *each, void *context,
                             sl_error *error);

/* Reads all documents of a find into an array document {"0": {...}, ...}, which is always
 * initialised. `filter` and `options` (find options; may be NULL) are borrowed. For small results.
 * Repeated after transient failures. */
bool sl_connection_find(sl_connection *connection, const char *database, const char *collection,
                        const bson_t *filter, const bson_t *options, bson_t *documents,
                        sl_error *error);

#endif
