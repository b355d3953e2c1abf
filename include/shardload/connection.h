/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the server: a driver pool, what the server says of itself, and commands whose
 * errors are put into words without driver internals or credentials. */
#ifndef SHARDLOAD_CONNECTION_H
#define SHARDLOAD_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mongoc/mongoc.h>

#include <shardload/error.h>

typedef enum sl_deployment {
    SL_STANDALONE,  /* a lone mongod */
    SL_REPLICA_SET, /* a replica set without sharding */
    SL_SHARDED,     /* routers in front of shards */
} sl_deployment;

typedef struct sl_server {
    sl_deployment deployment;
    char version[32]; /* "6.0.5" */
    char set_name[64];
    int32_t max_batch_documents;  /* in one insert command */
    int32_t max_message_bytes;    /* of one wire message */
    int32_t max_document_bytes;
    unsigned routers;             /* hosts named in the URI, when sharded */
} sl_server;

typedef struct sl_connection sl_connection;

/* Opens a pool of up to `pool_size` connections and asks the server what it is. `application` is
 * the name that the server's log shows. Waits at most 10 s for a server unless the URI says
 * otherwise. A server may be silent for `timeout_seconds` (1 to 86400): a command that is answered
 * at once fails when its answer takes longer, unless the URI has socketTimeoutMS; commands that may
 * take long (index builds, moves of chunks, aggregations), and what borrowed clients do, fail when
 * the server does not answer a greeting on another connection for so long. On false `error` is set: SL_EXIT_USAGE for a URI that cannot be read, SL_EXIT_CLUSTER
 * when no server answers or it refuses. */
bool sl_connection_open(const char *uri, const char *application, unsigned pool_size,
                        unsigned timeout_seconds, sl_connection **connection, sl_error *error);
void sl_connection_close(sl_connection *connection); /* NULL is fine */

const sl_server *sl_connection_server(const sl_connection *connection);

/* The URI without credentials; lives as long as the connection. */
const char *sl_connection_display_uri(const sl_connection *connection);

/* Appends what the server is to a record, as "server". */
void sl_connection_record(const sl_connection *connection, bson_t *record);

/* "standalone", "replica set", "sharded cluster". */
const char *sl_deployment_name(sl_deployment deployment);

/* A client of one's own, for one thread at a time; waits when all are out. Give it back. It waits for
 * an answer as long as the server is alive. */
mongoc_client_t *sl_connection_borrow(sl_connection *connection);
void sl_connection_return(sl_connection *connection, mongoc_client_t *client);

/* A second pool, for threads that write: they wait `timeout_seconds` for an answer, after which the
 * connection is given up (other commands may take as long as they take), and without the driver's
 * retryable writes. Once, and before the first writer is borrowed. */
bool sl_connection_open_writers(sl_connection *connection, unsigned pool_size,
                                unsigned timeout_seconds, sl_error *error);
mongoc_client_t *sl_connection_borrow_writer(sl_connection *connection);
void sl_connection_return_writer(sl_connection *connection, mongoc_client_t *client);

/* Runs a command on `database` with a client of the pool, on the primary. `reply` (may be NULL) is
 * always initialised: destroy it. A command of the write kind carries writeConcern in its own body.
 * On false the error says which command failed on which host, and the server's reason. The
 * server's error code, or 0, goes to `*server_code` (may be NULL). */
bool sl_connection_command(sl_connection *connection, const char *database, const bson_t *command,
                           bson_t *reply, int32_t *server_code, sl_error *error);

/* Between two attempts of a command that fails for a passing reason, `keep_on` is asked whether there
 * is still any use in it, by any thread that runs commands. It may be asked at any later time. */
void sl_connection_ask_before_retries(sl_connection *connection, bool (*keep_on)(void *context),
                                      void *context);

/* Will the same command perhaps succeed in a moment? (A broken connection, an election, a lock that
 * somebody else has.) `code` is what sl_connection_command gave. */
bool sl_code_is_transient(int32_t code);

/* Puts a driver error into words: drops file names, "calling hello on", topology dumps. */
bool sl_error_from_driver(sl_error *error, const char *doing, const bson_error_t *driver_error);

/* All documents of a find, as an array document {"0": {...}, ...}; `*documents` is initialised
 * always. `filter` and `options` (find options; may be NULL) are borrowed. For small results. */
bool sl_connection_find(sl_connection *connection, const char *database, const char *collection,
                        const bson_t *filter, const bson_t *options, bson_t *documents,
                        sl_error *error);

#endif
