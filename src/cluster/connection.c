/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the server: pools of clients, commands, and the server's properties. */
#include "connection.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/text.h"

#include "internal.h"
#include "member.h"
#include "tls.h"
#include "uri.h"

#define RETRY_MS 30000

struct sl_connection {
    mongoc_uri_t *uri;
    sl_pool *pool;      /* for short commands: with a socket timeout */
    sl_pool *patient;   /* for long commands: they wait while the server is alive */
    sl_pool *writers;   /* with a separate timeout; NULL until opened */
    int64_t timeout_ms; /* how long the server may be silent */
    char *display_uri;
    sl_server server;
    bool (*keep_on)(void *context); /* may be NULL */
    void *keep_on_context;
};

void sl_connection_set_retry_check(sl_connection *connection, bool (*keep_on)(void *context),
                                   void *context) {
    connection->keep_on = keep_on;
    connection->keep_on_context = context;
}

bool sl_connection_backoff(sl_connection *connection, unsigned attempt, sl_error *error) {
    if (sl_backoff(attempt, connection->keep_on, connection->keep_on_context))
        return true;
    if (error && connection->keep_on && !connection->keep_on(connection->keep_on_context))
        error->code = SL_EXIT_INTERRUPTED;
    return false;
}

const char *sl_deployment_name(sl_deployment deployment) {
    static const char *const names[] = {"standalone", "replica set", "sharded cluster"};
    return names[deployment];
}

void sl_connection_record(const sl_connection *connection, bson_t *record) {
    const sl_server *server = &connection->server;
    BCON_APPEND(record, "server", "{", "version", BCON_UTF8(server->version), "deployment",
                BCON_UTF8(sl_deployment_name(server->deployment)), "maxWriteBatchSize",
                BCON_INT32(server->max_batch_documents), "maxMessageSizeBytes",
                BCON_INT32(server->max_message_bytes), "maxBsonObjectSize",
                BCON_INT32(server->max_document_bytes), "}");
}

/* Initialises the driver once per process. It is never cleaned up, because it cannot be initialised
 * again after that. */
static pthread_once_t driver_started = PTHREAD_ONCE_INIT;

static void start_driver(void) {
    mongoc_init();
    mongoc_log_set_handler(NULL, NULL);
}

void sl_driver_start(void) {
    pthread_once(&driver_started, start_driver);
}

/* Commands without a time limit. */
static bool is_long(const bson_t *command) {
    static const char *const names[] = {"aggregate", "balancerStop",   "createIndexes",
                                        "drop",      "dropDatabase",   "fsync",
                                        "moveChunk", "shardCollection"};
    bson_iter_t iter;
    if (!bson_iter_init(&iter, command) || !bson_iter_next(&iter))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(bson_iter_key(&iter), names[i]) == 0)
            return true;
    }
    return false;
}

int64_t sl_connection_retry_until(const sl_connection *connection) {
    return sl_clock_ns() + (connection->timeout_ms + RETRY_MS) * 1000000;
}

/* Appends to the error that the server did not answer within the timeout, if that is the cause. */
static void append_timeout(const sl_connection *connection, int64_t start,
                           const bson_error_t *driver_error, sl_error *error) {
    double limit = (double)connection->timeout_ms / 1000;
    if (!error || driver_error->domain != MONGOC_ERROR_STREAM ||
        sl_seconds_since(start) < 0.9 * limit)
        return;
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof error->message - used,
             "; %s has not answered for %.0f s (--timeout)", connection->display_uri, limit);
}

/* `doing` names the action in the error message. */
static bool run_command(sl_connection *connection, const char *doing, const char *database,
                        const bson_t *command, bson_t *reply, int32_t *server_code,
                        sl_error *error) {
    bson_error_t driver_error = {0};
    bson_t own_reply;
    if (!reply)
        reply = &own_reply;
    int64_t start = sl_clock_ns();
    sl_pool *pool = is_long(command) ? connection->patient : connection->pool;
    mongoc_client_t *client = sl_pool_borrow(pool);
    bool ok = mongoc_client_command_simple(client, database, command, NULL, reply, &driver_error);
    sl_pool_return(pool, client);
    if (server_code)
        *server_code = ok                                           ? 0
                       : sl_is_refused_user(&driver_error)          ? SL_CODE_AUTHENTICATION_FAILED
                       : driver_error.domain == MONGOC_ERROR_SERVER ? (int32_t)driver_error.code
                                                                    : 0;
    if (!ok) {
        sl_error_from_driver(error, doing, &driver_error);
        append_timeout(connection, start, &driver_error, error);
    }
    if (reply == &own_reply)
        bson_destroy(&own_reply);
    return ok;
}

bool sl_connection_command(sl_connection *connection, const char *database, const bson_t *command,
                           bson_t *reply, int32_t *server_code, sl_error *error) {
    bson_iter_t iter;
    char doing[300];
    bool named = bson_iter_init(&iter, command) && bson_iter_next(&iter);
    snprintf(doing, sizeof doing, "%s on database %s", named ? bson_iter_key(&iter) : "command",
             database);
    return run_command(connection, doing, database, command, reply, server_code, error);
}

bool sl_cursor_next(sl_cursor_reading *reading, const bson_t **document) {
    bson_error_t why;
    for (reading->empty = 0; reading->empty <= SL_CURSOR_EMPTY_MAX; reading->empty++) {
        if (mongoc_cursor_next(reading->cursor, document)) {
            reading->documents++;
            reading->bytes += (*document)->len;
            return !reading->limit || reading->bytes <= reading->limit;
        }
        if (mongoc_cursor_error(reading->cursor, &why) || !mongoc_cursor_more(reading->cursor))
            return false;
    }
    return false;
}

bool sl_cursor_failed(const sl_cursor_reading *reading, bson_error_t *why) {
    mongoc_host_list_t host = {0};
    if (mongoc_cursor_error(reading->cursor, why))
        return true;
    bool endless = reading->empty > SL_CURSOR_EMPTY_MAX;
    if (!endless && (!reading->limit || reading->bytes <= reading->limit))
        return false;
    mongoc_cursor_get_host(reading->cursor, &host);
    why->domain = MONGOC_ERROR_CURSOR;
    why->code = MONGOC_ERROR_CURSOR_INVALID_CURSOR;
    if (endless)
        snprintf(why->message, sizeof why->message,
                 "%s sent %u successive batches without a document", host.host_and_port,
                 reading->empty);
    else
        snprintf(why->message, sizeof why->message,
                 "%s sent more than %llu MiB (%llu documents so far), the most that this program "
                 "keeps of a result",
                 host.host_and_port, (unsigned long long)(reading->limit >> 20),
                 (unsigned long long)reading->documents);
    return true;
}

bool sl_connection_find(sl_connection *connection, const char *database, const char *collection,
                        const bson_t *filter, const bson_t *options, bson_t *documents,
                        sl_error *error) {
    bson_init(documents);
    int64_t start = sl_clock_ns();
    mongoc_client_t *client = sl_pool_borrow(connection->pool);
    mongoc_collection_t *handle = mongoc_client_get_collection(client, database, collection);
    mongoc_read_prefs_t *primary = mongoc_read_prefs_new(MONGOC_READ_PRIMARY);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(handle, filter, options, primary);
    const bson_t *document;
    uint32_t index = 0;
    sl_cursor_reading reading = {.cursor = cursor, .limit = SL_CURSOR_KEPT_MAX};
    while (sl_cursor_next(&reading, &document)) {
        char room[SL_ARRAY_KEY_ROOM];
        bson_append_document(documents, sl_array_key(index++, room), -1, document);
    }
    bson_error_t driver_error;
    bool ok = !sl_cursor_failed(&reading, &driver_error);
    mongoc_cursor_destroy(cursor);
    mongoc_read_prefs_destroy(primary);
    mongoc_collection_destroy(handle);
    sl_pool_return(connection->pool, client);
    if (!ok) {
        char doing[300];
        snprintf(doing, sizeof doing, "find in %s.%s", database, collection);
        sl_error_from_driver(error, doing, &driver_error);
        append_timeout(connection, start, &driver_error, error);
    }
    return ok;
}

static bool by_certificate(const mongoc_uri_t *uri) {
    const char *mechanism = mongoc_uri_get_auth_mechanism(uri);
    return mechanism && strcasecmp(mechanism, "MONGODB-X509") == 0;
}

/* The driver (1.23) aborts the program for MONGODB-X509 without TLS. */
static bool check_mechanism(const mongoc_uri_t *uri, sl_error *error) {
    return !by_certificate(uri) ||
           (mongoc_uri_get_tls(uri) &&
            mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE, NULL)) ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "MONGODB-X509 needs a client certificate over TLS; name it with "
                        "--tlsCertificateKeyFile");
}

/* The driver ignores compressors that it was built without, and compresses nothing if it has none
 * of the named ones. */
static bool check_compression(const char *text, const mongoc_uri_t *uri, sl_error *error) {
    const char *named = sl_uri_named_compressors(text);
    int length = named ? (int)strcspn(named, "&") : 0;
    return length == 0 || (length == 4 && strncasecmp(named, "none", 4) == 0) ||
           bson_count_keys(mongoc_uri_get_compressors(uri)) > 0 ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "the driver of this build cannot compress a connection with %.*s (from "
                        "--wire-compression or compressors= in --uri); choose another one of "
                        "snappy, zlib and zstd, or leave it out",
                        length, named);
}

/* Sets the error for a connection whose user was refused: names the user and the mechanism. */
static void name_refused_user(const sl_connection *connection, sl_error *error) {
    const mongoc_uri_t *uri = connection->uri;
    const char *mechanism = mongoc_uri_get_auth_mechanism(uri);
    const char *user = mongoc_uri_get_username(uri);
    char subject[300];
    if (by_certificate(uri)) {
        sl_tls_subject(uri, subject, sizeof subject);
        sl_error_set(error, SL_EXIT_CLUSTER,
                     "the server has no user for this client certificate: create user \"%s\" in "
                     "database $external",
                     user ? user : subject);
    } else {
        const char *source = mongoc_uri_get_auth_source(uri);
        sl_error_set(error, SL_EXIT_CLUSTER,
                     "the server refuses user \"%s\" of database %s%s%s: wrong password, or no "
                     "such user there (--authenticationDatabase)",
                     user ? user : "", source ? source : "admin", mechanism ? " with " : "",
                     mechanism ? mechanism : "");
    }
}

static bool say_hello(sl_connection *connection, const char *name, bson_t *reply, int32_t *code,
                      sl_error *error) {
    bson_t *command = BCON_NEW(name, BCON_INT32(1));
    connection->server.hello = name;
    bool ok = run_command(connection, "connecting", "admin", command, reply, code, error);
    bson_destroy(command);
    return ok;
}

/* The cluster that a mongod belongs to. The command shardingState shows it, and otherwise the
 * document from which the server itself knows it. A config server, and a shard of version 4.4, show
 * it to everyone. */
static void read_membership(sl_connection *connection, const bson_t *hello) {
    sl_server *server = &connection->server;
    bson_t state, identity;
    bool found = false;
    int32_t code = 0;
    if (bson_has_field(hello, "configsvr")) {
        server->membership = SL_MEMBER_OF_CLUSTER;
        snprintf(server->member_of, sizeof server->member_of,
                 "is a config server of a sharded cluster");
        return;
    }
    bson_t *command = BCON_NEW("shardingState", BCON_INT32(1));
    bool ok = run_command(connection, "reading the cluster", "admin", command, &state, &code, NULL);
    bson_destroy(command);
    bool readable = sl_find_by_id(connection, "admin", "system.version", "shardIdentity", &identity,
                                  &found, NULL);
    const bool shard = (ok && sl_look_flag(&state, "enabled")) || found ||
                       bson_has_field(hello, "$configServerState");
    server->membership = shard            ? SL_MEMBER_OF_CLUSTER
                         : ok || readable ? SL_MEMBER_OF_NONE
                                          : SL_MEMBERSHIP_UNKNOWN;
    const char *name = sl_look_string(ok ? &state : &identity, "shardName");
    const char *config =
        sl_look_string(ok ? &state : &identity, ok ? "configServer" : "configsvrConnectionString");
    sl_print_text(server->member_of, sizeof server->member_of, "is %s%.100s of %s%.250s",
                  name[0] ? "shard " : "a shard", name,
                  config[0] ? "the cluster with the config servers " : "a sharded cluster", config);
    bson_destroy(&state);
    bson_destroy(&identity);
}

static bool read_properties(sl_connection *connection, int32_t *code, sl_error *error) {
    sl_server *server = &connection->server;
    bson_t reply;
    bool ok = say_hello(connection, "hello", &reply, code, error);
    if (*code == SL_CODE_COMMAND_NOT_FOUND) {
        bson_destroy(&reply);
        ok = say_hello(connection, "isMaster", &reply, code, error);
    }
    if (*code == SL_CODE_AUTHENTICATION_FAILED)
        name_refused_user(connection, error);
    if (ok) {
        bool router = strcmp(sl_look_string(&reply, "msg"), "isdbgrid") == 0;
        snprintf(server->set_name, sizeof server->set_name, "%s",
                 sl_look_string(&reply, "setName"));
        server->deployment = router                ? SL_SHARDED
                             : server->set_name[0] ? SL_REPLICA_SET
                                                   : SL_STANDALONE;
        server->max_batch_documents = (int32_t)sl_look_int64(&reply, "maxWriteBatchSize", 1000);
        server->max_message_bytes = (int32_t)sl_look_int64(&reply, "maxMessageSizeBytes", 48000000);
        server->max_document_bytes = (int32_t)sl_look_int64(&reply, "maxBsonObjectSize", 16777216);
        server->membership = SL_MEMBER_OF_NONE;
        if (!router)
            read_membership(connection, &reply);
    }
    bson_destroy(&reply);
    if (!ok)
        return false;

    bson_t *build_info = BCON_NEW("buildInfo", BCON_INT32(1));
    ok = run_command(connection, "reading the version", "admin", build_info, &reply, code, error);
    bson_destroy(build_info);
    if (ok)
        snprintf(server->version, sizeof server->version, "%s", sl_look_string(&reply, "version"));
    bson_destroy(&reply);

    server->routers = 0;
    for (const mongoc_host_list_t *host = mongoc_uri_get_hosts(connection->uri); host;
         host = host->next)
        server->routers++;
    return ok;
}

/* Opens the pool, unless it is open. */
static bool open_pool(const mongoc_uri_t *uri, const char *application, int64_t patience_ms,
                      sl_pool **pool, sl_error *error) {
    bson_error_t driver_error;
    if (!*pool)
        *pool = sl_pool_create(uri, application, patience_ms, &driver_error);
    return *pool || sl_error_from_pool(error, uri, &driver_error);
}

/* Opens the pools for short and for long commands. A timeout in the URI applies to both. */
static bool open_pools(sl_connection *connection, const sl_connection_options *options,
                       sl_error *error) {
    bool own = mongoc_uri_has_option(connection->uri, MONGOC_URI_SOCKETTIMEOUTMS);
    int64_t milliseconds = (int64_t)options->timeout_seconds * 1000;
    mongoc_uri_t *uri = mongoc_uri_copy(connection->uri);
    if (!own)
        mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, (int32_t)milliseconds);
    bool ok = open_pool(uri, options->application, 0, &connection->pool, error);
    if (!own)
        mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, INT32_MAX);
    ok = ok && open_pool(uri, options->application, milliseconds, &connection->patient, error);
    mongoc_uri_destroy(uri);
    connection->timeout_ms = milliseconds;
    return ok;
}

typedef struct opening {
    sl_connection *connection;
    const sl_connection_options *options;
} opening;

static void ask(void *connecting, const char *host) {
    sl_connecting_to(connecting, "asking %s", host);
}

/* Sets the error that no host answers; returns false. */
static bool none_answers(const sl_reach *reach, unsigned wait_seconds, sl_error *error) {
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "no server answers: %s. Check --uri and that the server runs%s", reach->why,
                        wait_seconds > 0 ? "" : ", or wait for it with --wait 60s");
}

/* One attempt to connect: by preflight, then by the driver. */
static bool try_to_open(void *context, sl_connecting *connecting, bool *again, bool *soon,
                        sl_error *error) {
    const opening *o = context;
    sl_connection *connection = o->connection;
    const char *domain = mongoc_uri_get_srv_hostname(connection->uri);
    sl_reach reach;
    if (!sl_preflight(connection->uri, ask, connecting, &reach, error))
        return false;
    *again = !reach.answers;
    *soon = reach.silent;
    if (!reach.answers)
        return none_answers(&reach, o->options->wait_seconds, error);
    if (domain)
        sl_connecting_to(connecting, "asking DNS for the servers of %s", domain);
    if (!open_pools(connection, o->options, error)) {
        *again = error->code == SL_EXIT_CLUSTER; /* DNS */
        return false;
    }
    sl_connecting_to(connecting, "looking for a server that accepts writes");
    int32_t code;
    if (read_properties(connection, &code, error))
        return true;
    *again = sl_code_is_transient(code);
    return false;
}

/* Does a host contain an "@"? That is the end of a password whose "@" is not percent-encoded: the
 * driver divides the text at the first one. It must neither be shown nor sent to DNS. */
static bool has_password_in_host(const mongoc_uri_t *uri) {
    const char *domain = mongoc_uri_get_srv_hostname(uri);
    bool found = domain && strchr(domain, '@');
    for (const mongoc_host_list_t *host = mongoc_uri_get_hosts(uri); host; host = host->next)
        found = found || strchr(host->host, '@');
    return found;
}

static bool set_uri(sl_connection *connection, const sl_connection_options *options,
                    sl_error *error) {
    bson_error_t driver_error;
    connection->display_uri = sl_redact_uri(options->uri);
    if (!connection->display_uri)
        return sl_error_memory(error, "connecting");
    connection->uri = mongoc_uri_new_with_error(options->uri, &driver_error);
    if (connection->uri && has_password_in_host(connection->uri)) {
        mongoc_uri_destroy(connection->uri);
        connection->uri = NULL;
    }
    /* The driver's message may contain parts of the URI, such as a password: not quoted. */
    if (!connection->uri && strncasecmp(options->uri, "mongodb+srv:", 12) == 0)
        return sl_error_set(
            error, SL_EXIT_USAGE,
            "--uri %s is not a connection string; expected "
            "mongodb+srv://DOMAIN/[database][?options], with one domain of at least "
            "three parts (cluster0.example.net) and no port, for which DNS lists "
            "the servers; before it, if there is a user, user:password@ with "
            "reserved characters percent-encoded",
            connection->display_uri);
    if (!connection->uri)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "--uri %s is not a connection string; expected "
                            "mongodb://host:port[,host:port...]/[database][?options]; before the "
                            "hosts, if there is a user, user:password@ with reserved characters "
                            "percent-encoded",
                            connection->display_uri);
    if (!mongoc_uri_has_option(connection->uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS))
        mongoc_uri_set_option_as_int32(connection->uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, 10000);
    if (!mongoc_uri_has_option(connection->uri, MONGOC_URI_CONNECTTIMEOUTMS))
        mongoc_uri_set_option_as_int32(connection->uri, MONGOC_URI_CONNECTTIMEOUTMS, 5000);
    mongoc_uri_set_option_as_int32(connection->uri, MONGOC_URI_MAXPOOLSIZE,
                                   (int32_t)options->pool_size);
    return true;
}

static bool check_membership(const sl_connection *connection, sl_error *error) {
    const sl_server *server = &connection->server;
    return server->membership != SL_MEMBER_OF_CLUSTER ||
           sl_error_set(error, SL_EXIT_USAGE,
                        "this server %s. Documents that are written to it directly are not where "
                        "the routers look for them: name the routers (mongos) of the cluster in "
                        "--uri. To send batches directly to the shards, name the routers and add "
                        "--route direct",
                        server->member_of);
}

bool sl_connection_open(const sl_connection_options *options, sl_connection **connection,
                        sl_error *error) {
    *connection = NULL;
    sl_driver_start();
    sl_connection *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "connecting");
    opening context = {made, options};
    bool ok = set_uri(made, options, error);
    if (ok &&
        (!check_mechanism(made->uri, error) || !check_compression(options->uri, made->uri, error) ||
         !sl_connect(try_to_open, &context, options->wait_seconds, error) ||
         !sl_check_hosts(made, error) || (options->writes && !check_membership(made, error))))
        ok = sl_error_prefix(error, "cannot use %s", made->display_uri);
    if (ok)
        *connection = made;
    else
        sl_connection_close(made);
    return ok;
}

void sl_connection_close(sl_connection *connection) {
    if (!connection)
        return;
    sl_pool_destroy(connection->pool); /* NULL is fine */
    sl_pool_destroy(connection->writers);
    sl_pool_destroy(connection->patient);
    mongoc_uri_destroy(connection->uri);
    free(connection->display_uri);
    free(connection);
}

sl_pool *sl_connection_writer_pool(mongoc_uri_t *uri, unsigned pool_size, unsigned timeout_seconds,
                                   sl_error *error) {
    mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS,
                                   (int32_t)timeout_seconds * 1000);
    mongoc_uri_set_option_as_int32(uri, MONGOC_URI_MAXPOOLSIZE, (int32_t)pool_size);
    /* The writer repeats batches itself and recognises documents that are already stored. With
     * retryable writes the server would write a record of every statement. */
    mongoc_uri_set_option_as_bool(uri, MONGOC_URI_RETRYWRITES, false);
    sl_pool *pool = NULL;
    if (open_pool(uri, "shardload", 0, &pool, error))
        return pool;
    error->code = SL_EXIT_CLUSTER; /* the URI was good for the first pool */
    return NULL;
}

bool sl_connection_open_writers(sl_connection *connection, unsigned pool_size,
                                unsigned timeout_seconds, sl_error *error) {
    if (connection->writers) {
        sl_pool_enlarge(connection->writers, pool_size);
        return true;
    }
    mongoc_uri_t *uri = mongoc_uri_copy(connection->uri);
    connection->writers = sl_connection_writer_pool(uri, pool_size, timeout_seconds, error);
    mongoc_uri_destroy(uri);
    return connection->writers != NULL;
}

const mongoc_uri_t *sl_connection_uri(const sl_connection *connection) {
    return connection->uri;
}

mongoc_client_t *sl_connection_borrow_writer(sl_connection *connection) {
    return sl_pool_borrow(connection->writers);
}

void sl_connection_return_writer(sl_connection *connection, mongoc_client_t *client) {
    sl_pool_return(connection->writers, client);
}

const sl_server *sl_connection_server(const sl_connection *connection) {
    return &connection->server;
}

const char *sl_connection_display_uri(const sl_connection *connection) {
    return connection->display_uri;
}

mongoc_client_t *sl_connection_borrow(sl_connection *connection) {
    return sl_pool_borrow(connection->patient);
}

sl_streams *sl_connection_streams(sl_connection *connection, mongoc_client_t *client) {
    return sl_pool_streams(connection->patient, client);
}

void sl_connection_return(sl_connection *connection, mongoc_client_t *client) {
    sl_pool_return(connection->patient, client);
}
