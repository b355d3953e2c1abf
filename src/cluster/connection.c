/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of clients, the connection and its server, and hosts that hang. */
#include "connection.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/context.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/text.h"

#include "internal.h"
#include "member.h"
#include "uri.h"

/* ---- silent hosts ---- */

/* Hosts that accept connections and do not answer.
 *
 * Each client looks for the servers itself, and waits connectTimeoutMS for a host that hangs. So
 * that not every client waits for the same host, it is remembered here for the whole process. For
 * some seconds no client asks it while the URI has another host; then one client tries it again,
 * and the others still pass it over. */

#define REMEMBERED_MS 10000
#define HOSTS_MAX 32 /* more are not remembered */

static struct {
    pthread_mutex_t lock;
    struct {
        char name[BSON_HOST_NAME_MAX + 8]; /* "": a free entry */
        int64_t until;                     /* by the driver's clock; afterwards it may be tried */
    } hosts[HOSTS_MAX];
} silent = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns the entry of this name, or -1. Under the lock. */
static int entry_of(const char *name) {
    for (int i = 0; i < HOSTS_MAX; i++) {
        if (strcmp(silent.hosts[i].name, name) == 0)
            return i;
    }
    return -1;
}

void sl_silent_host_add(const char *host_and_port) {
    pthread_mutex_lock(&silent.lock);
    int at = entry_of(host_and_port);
    at = at < 0 ? entry_of("") : at;
    if (at >= 0) {
        snprintf(silent.hosts[at].name, sizeof silent.hosts[at].name, "%s", host_and_port);
        silent.hosts[at].until = bson_get_monotonic_time() + (int64_t)REMEMBERED_MS * 1000;
    }
    pthread_mutex_unlock(&silent.lock);
}

void sl_silent_host_remove(const char *host_and_port) {
    pthread_mutex_lock(&silent.lock);
    int at = entry_of(host_and_port);
    if (at >= 0)
        silent.hosts[at].name[0] = '\0';
    pthread_mutex_unlock(&silent.lock);
}

bool sl_silent_host_is_passed_over(const mongoc_uri_t *uri, const char *host_and_port,
                                   int32_t trial_ms) {
    const int64_t now = bson_get_monotonic_time();
    bool other = false, passed_over = false;
    pthread_mutex_lock(&silent.lock);
    int at = entry_of(host_and_port);
    for (const mongoc_host_list_t *host = mongoc_uri_get_hosts(uri); host && at >= 0;
         host = host->next)
        other = other || entry_of(host->host_and_port) < 0;
    if (at >= 0)
        passed_over = other && silent.hosts[at].until > now;
    if (at >= 0 && !passed_over) /* this client tries it */
        silent.hosts[at].until = now + (int64_t)trial_ms * 1000;
    pthread_mutex_unlock(&silent.lock);
    return passed_over;
}

/* ---- clients ---- */

/* A pool of clients, all of whose streams are those of stream.c.
 *
 * A program can replace every stream of a client, including those that look for the servers, only
 * if the client is not from one of the driver's pools: their threads open streams of their own. So
 * this file keeps the clients. Each of them looks for the servers itself when a command needs
 * one. */

#define HEARTBEAT_MS 300000

struct sl_pool {
    mongoc_uri_t *uri;
    char *application;
    sl_patience patience;
    pthread_mutex_t lock;
    pthread_cond_t returned;
    mongoc_client_t **idle; /* under the lock: `idle_count` clients that are not borrowed, */
    size_t idle_count;
    size_t count; /* ... and how many clients there are, borrowed or not; at most `most` */
    size_t most;
};

static mongoc_client_t *new_client(sl_pool *pool, bson_error_t *error) {
    mongoc_client_t *client = mongoc_client_new_from_uri_with_error(pool->uri, error);
    if (client) {
        mongoc_client_set_error_api(client, MONGOC_ERROR_API_VERSION_2);
        mongoc_client_set_appname(client, pool->application);
        sl_patience_attach(&pool->patience, client);
    }
    return client;
}

sl_pool *sl_pool_create(const mongoc_uri_t *uri, const char *application, int64_t patience_ms,
                        bson_error_t *error) {
    sl_pool *made = bson_malloc0(sizeof *made);
    made->uri = mongoc_uri_copy(uri);
    /* Look for a server as long as serverSelectionTimeoutMS allows, as the driver's pools do. */
    mongoc_uri_set_option_as_bool(made->uri, MONGOC_URI_SERVERSELECTIONTRYONCE, false);
    /* A client looks for all servers again after an error; otherwise rarely, because meanwhile it
     * does nothing else, and waits connectTimeoutMS for a host that hangs. */
    if (!mongoc_uri_has_option(uri, MONGOC_URI_HEARTBEATFREQUENCYMS))
        mongoc_uri_set_option_as_int32(made->uri, MONGOC_URI_HEARTBEATFREQUENCYMS, HEARTBEAT_MS);
    made->application = bson_strdup(application);
    sl_patience_init(&made->patience, made->uri, patience_ms);
    made->most = (size_t)mongoc_uri_get_option_as_int32(uri, MONGOC_URI_MAXPOOLSIZE, 100);
    made->idle = bson_malloc0(made->most * sizeof(mongoc_client_t *));
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->returned, NULL);
    made->idle[0] = new_client(made, error); /* may find that a URI or its domain is invalid */
    made->count = made->idle_count = made->idle[0] != NULL;
    if (made->count > 0)
        return made;
    sl_pool_destroy(made);
    return NULL;
}

void sl_pool_destroy(sl_pool *pool) {
    if (!pool)
        return;
    pool->patience.ending = true; /* the driver sends endSessions, and would wait for each reply */
    for (size_t i = 0; i < pool->idle_count; i++)
        mongoc_client_destroy(pool->idle[i]);
    sl_patience_clear(&pool->patience);
    pthread_cond_destroy(&pool->returned);
    pthread_mutex_destroy(&pool->lock);
    bson_free(pool->idle);
    bson_free(pool->application);
    mongoc_uri_destroy(pool->uri);
    bson_free(pool);
}

/* Raises the number of clients to at most `most`. */
static void pool_enlarge(sl_pool *pool, size_t most) {
    pthread_mutex_lock(&pool->lock);
    if (most > pool->most) {
        pool->idle = bson_realloc(pool->idle, most * sizeof(mongoc_client_t *));
        pool->most = most;
        pthread_cond_broadcast(&pool->returned);
    }
    pthread_mutex_unlock(&pool->lock);
}

mongoc_client_t *sl_pool_borrow(sl_pool *pool) {
    mongoc_client_t *client = NULL;
    bson_error_t error;
    sl_message_forget_refusal();
    pthread_mutex_lock(&pool->lock);
    while (!client) {
        if (pool->idle_count > 0)
            client = pool->idle[--pool->idle_count];
        else if (pool->count < pool->most && (client = new_client(pool, &error)) != NULL)
            pool->count++;
        else
            pthread_cond_wait(&pool->returned, &pool->lock); /* there is at least one client */
    }
    pthread_mutex_unlock(&pool->lock);
    return client;
}

void sl_pool_return(sl_pool *pool, mongoc_client_t *client) {
    pthread_mutex_lock(&pool->lock);
    pool->idle[pool->idle_count++] = client;
    pthread_cond_signal(&pool->returned);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- the first connection ---- */

/* The first connection: how often it is tried, and what is reported meanwhile.
 *
 * A wrong host or port is detected at once and is an error at once. A server that does not answer
 * in time is tried for some seconds. With --wait all failures are tried again until that time is
 * over. An attempt may be blocked for seconds (in DNS, in a handshake), so a separate thread logs
 * what is tried. */

#define SLOW_SECONDS 6 /* for a server that does not answer in time */
#define FIRST_REPORT_SECONDS 2
#define REPORT_SECONDS 10
#define PAUSE_MS 500 /* between two attempts */

typedef struct sl_connecting {
    int64_t start;
    unsigned wait_seconds;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    /* Guarded by `lock`: */
    bool over;
    char doing[200];
    char failure[600]; /* of the last attempt */
} sl_connecting;

/* Calls `attempt` until it succeeds or its failure is final, as sl_connection_options describes;
 * reports what is tried while it takes longer than two seconds. An attempt calls connecting_to
 * with a description of its next step ("asking h1:27017"). It sets `*again` when the next attempt
 * may succeed, and `*soon` when the server was only too slow: then the attempt is repeated for some
 * seconds even without --wait. */
typedef bool sl_connect_attempt(void *context, sl_connecting *connecting, bool *again, bool *soon,
                                sl_error *error);

__attribute__((format(printf, 2, 3))) static void connecting_to(void *connecting,
                                                                const char *format, ...) {
    sl_connecting *c = connecting;
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&c->lock);
    sl_print_text_v(c->doing, sizeof c->doing, format, arguments);
    pthread_mutex_unlock(&c->lock);
    va_end(arguments);
}

/* Call it under the lock. */
static void report(const sl_connecting *c) {
    char so_far[SL_HUMAN_ROOM], most[SL_HUMAN_ROOM], limit[80] = "";
    if (c->wait_seconds > 0)
        snprintf(limit, sizeof limit, " of at most %s (--wait)",
                 sl_human_seconds(c->wait_seconds, most));
    sl_log_info("connecting: %s, %s so far%s%s%s", c->doing,
                sl_human_seconds(sl_seconds_since(c->start), so_far), limit,
                c->failure[0] ? "; the last attempt: " : "", c->failure);
}

static void *report_slow(void *context) {
    sl_connecting *c = context;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_sec += FIRST_REPORT_SECONDS;
    pthread_mutex_lock(&c->lock);
    while (!c->over) {
        if (pthread_cond_timedwait(&c->ended, &c->lock, &next) == 0 || c->over)
            continue;
        report(c);
        next.tv_sec += REPORT_SECONDS;
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static bool run_attempts(sl_connect_attempt *attempt, void *context, sl_connecting *c,
                         sl_error *error) {
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    for (;;) {
        bool again = false, soon = false;
        *error = (sl_error){0};
        if (attempt(context, c, &again, &soon, error))
            return true;
        double limit = c->wait_seconds;
        if (soon && limit < SLOW_SECONDS)
            limit = SLOW_SECONDS;
        if (sl_interrupt_requested())
            return sl_error_set(error, SL_EXIT_INTERRUPTED, "interrupted while connecting");
        if (!again)
            return false;
        if (sl_seconds_since(c->start) + PAUSE_MS / 1000.0 >= limit) {
            size_t used = strlen(error->message);
            if (c->wait_seconds > 0)
                snprintf(error->message + used, sizeof error->message - used,
                         " (tried for %u s, --wait)", c->wait_seconds);
            return false;
        }
        pthread_mutex_lock(&c->lock);
        sl_print_text(c->failure, sizeof c->failure, SL_LINES, error->message);
        pthread_mutex_unlock(&c->lock);
        nanosleep(&pause, NULL);
    }
}

static bool keep_connecting(sl_connect_attempt *attempt, void *context, unsigned wait_seconds,
                            sl_error *error) {
    sl_connecting c = {.start = sl_clock_ns(), .wait_seconds = wait_seconds, .doing = "starting"};
    sl_error own;
    pthread_t thread;
    if (!error)
        error = &own;
    pthread_mutex_init(&c.lock, NULL);
    sl_clock_init_condition(&c.ended);
    bool reporting = sl_thread_start(&thread, report_slow, &c) == 0; /* without a thread nothing is
                                                                        logged */
    bool ok = run_attempts(attempt, context, &c, error);
    pthread_mutex_lock(&c.lock);
    c.over = true;
    pthread_cond_signal(&c.ended);
    pthread_mutex_unlock(&c.lock);
    if (reporting)
        pthread_join(thread, NULL);
    pthread_cond_destroy(&c.ended);
    pthread_mutex_destroy(&c.lock);
    return ok;
}

/* ---- the connection ---- */

/* The connection to the server: pools of clients, commands, and the server's properties. */

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

void sl_connection_hide_shards(sl_connection *connection) {
    connection->server.deployment = SL_HIDDEN;
}

const char *sl_deployment_name(sl_deployment deployment) {
    static const char *const names[] = {"standalone", "replica set", "sharded cluster",
                                        "cluster with hidden shards"};
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

void sl_driver_silence(void) {
    mongoc_log_set_handler(NULL, NULL);
}

static void start_driver(void) {
    sl_driver_silence();
    mongoc_init();
}

void sl_driver_start(void) {
    pthread_once(&driver_started, start_driver);
}

/* Commands without a time limit. */
static bool is_long(const bson_t *command) {
    static const char names[] = "aggregate|balancerStop|createIndexes|drop|dropDatabase|fsync|"
                                "moveChunk|renameCollection|shardCollection";
    bson_iter_t iter;
    return bson_iter_init(&iter, command) && bson_iter_next(&iter) &&
           sl_list_has(names, '|', sl_text_of(bson_iter_key(&iter)));
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
        *server_code = ok ? 0 : sl_code_from_driver(&driver_error);
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
            reading->bytes += (*document)->len + SL_ARRAY_KEY_ROOM; /* as an element of an array */
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

typedef struct kept_documents {
    bson_t *all;
    uint32_t count;
} kept_documents;

static bool keep_document(void *context, const bson_t *document) {
    kept_documents *kept = context;
    char room[SL_ARRAY_KEY_ROOM];
    return bson_append_document(kept->all, sl_array_key(kept->count++, room), -1, document);
}

/* `*again`: it failed, and may succeed when it is repeated. */
static bool find_once(sl_connection *connection, const char *const place[2], const bson_t *filter,
                      const bson_t *options, uint64_t limit, sl_found_document *each, void *context,
                      bool *again, sl_error *error) {
    int64_t start = sl_clock_ns();
    mongoc_client_t *client = sl_pool_borrow(connection->pool);
    mongoc_collection_t *handle = mongoc_client_get_collection(client, place[0], place[1]);
    mongoc_read_prefs_t *primary = mongoc_read_prefs_new(MONGOC_READ_PRIMARY);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(handle, filter, options, primary);
    const bson_t *document;
    sl_cursor_reading reading = {.cursor = cursor, .limit = limit};
    kept_documents *kept = each == keep_document ? context : NULL;
    if (kept) { /* those of a find that failed are read again */
        kept->count = 0;
        bson_reinit(kept->all);
    }
    while (sl_cursor_next(&reading, &document) && each(context, document))
        ;
    bson_error_t driver_error;
    bool ok = !sl_cursor_failed(&reading, &driver_error);
    mongoc_cursor_destroy(cursor);
    mongoc_read_prefs_destroy(primary);
    mongoc_collection_destroy(handle);
    sl_pool_return(connection->pool, client);
    *again = !ok && (kept || reading.documents == 0) && sl_is_transient(&driver_error);
    if (!ok) {
        char doing[300];
        snprintf(doing, sizeof doing, "find in %s.%s", place[0], place[1]);
        sl_error_from_driver(error, doing, &driver_error);
        append_timeout(connection, start, &driver_error, error);
    }
    return ok;
}

bool sl_connection_find_each(sl_connection *connection, const char *database,
                             const char *collection, const bson_t *filter, const bson_t *options,
                             uint64_t limit, sl_found_document *each, void *context,
                             sl_error *error) {
    const char *const place[2] = {database, collection};
    /* A find is repeated for RETRY_MS, without --timeout: not if it takes 40 s to fail, as without
     * config servers, and not while connecting. */
    const bool connected = connection->server.version[0];
    const int64_t until = sl_clock_ns() + (connected ? (int64_t)RETRY_MS * 1000000 : 0);
    bool ok, again;
    for (unsigned attempt = 0;; attempt++) {
        ok = find_once(connection, place, filter, options, limit, each, context, &again, error);
        if (!again || sl_clock_ns() > until || !sl_connection_backoff(connection, attempt, error))
            return ok;
    }
}

bool sl_connection_find(sl_connection *connection, const char *database, const char *collection,
                        const bson_t *filter, const bson_t *options, bson_t *documents,
                        sl_error *error) {
    bson_init(documents);
    return sl_connection_find_each(connection, database, collection, filter, options,
                                   SL_CURSOR_KEPT_MAX, keep_document,
                                   &(kept_documents){.all = documents}, error);
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

/* Refuses a server that is too old; logs when it is newer than those of the tests. */
static bool check_version(const sl_server *server, sl_error *error) {
    static const unsigned oldest[] = {4, 4}, newest[] = {6, 0};
    if (!sl_server_at_least(server, oldest[0], oldest[1]))
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "this is server %s, and shardload needs %u.%u or later, whose shards "
                            "record the migrations of chunks",
                            server->version, oldest[0], oldest[1]);
    if (isdigit((unsigned char)server->version[0]) &&
        sl_server_at_least(server, newest[0], newest[1] + 1))
        sl_log_info("server %s is newer than %u.%u, the newest with which shardload was tested",
                    server->version, newest[0], newest[1]);
    return true;
}

static bool read_properties(sl_connection *connection, int32_t *code, sl_error *error) {
    sl_server *server = &connection->server;
    bson_t reply;
    bool ok = say_hello(connection, "hello", &reply, code, error);
    if (*code == SL_CODE_COMMAND_NOT_FOUND) {
        bson_destroy(&reply);
        *error = (sl_error){.code = SL_EXIT_OK};
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
    if (!ok && sl_code_is_refusal(*code)) {
        sl_log_warning("the version of the server is not known: " SL_LINES, error->message);
        *error = (sl_error){.code = SL_EXIT_OK};
        snprintf(server->version, sizeof server->version, "unknown");
        ok = true;
    }

    server->routers = 0;
    for (const mongoc_host_list_t *host = mongoc_uri_get_hosts(connection->uri); host;
         host = host->next)
        server->routers++;
    return ok && check_version(server, error);
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
    connecting_to(connecting, "asking %s", host);
}

#define HOSTS_MOST 1000u /* as of a hello; the driver's time grows with their cube */

/* Checks the hosts that DNS names for mongodb+srv, as those of a URI. */
static bool preflight_of_domain(const mongoc_uri_t *uri, sl_connecting *connecting, sl_reach *reach,
                                bool *again, sl_error *error) {
    bson_error_t driver_error;
    size_t count = 0;
    bool ok = true;
    connecting_to(connecting, "asking DNS for the servers of %s", mongoc_uri_get_srv_hostname(uri));
    mongoc_client_t *client = mongoc_client_new_from_uri_with_error(uri, &driver_error);
    if (!client) {
        sl_error_from_pool(error, uri, &driver_error);
        *again = error->code == SL_EXIT_CLUSTER; /* DNS may answer later */
        return false;
    }
    const mongoc_host_list_t *hosts = mongoc_uri_get_hosts(mongoc_client_get_uri(client));
    for (const mongoc_host_list_t *host = hosts; ok && host; host = host->next)
        ok = (++count <= HOSTS_MOST && sl_hosts_are_valid(host->host_and_port, false)) ||
             sl_error_set(error, SL_EXIT_CLUSTER,
                          "DNS lists more than %u servers for %s, or one that is not HOST:PORT, %s",
                          HOSTS_MOST, mongoc_uri_get_srv_hostname(uri), host->host_and_port);
    ok = ok && sl_preflight(uri, hosts, ask, connecting, reach, error);
    mongoc_client_destroy(client);
    return ok;
}

/* One attempt to connect: by preflight, then by the driver. */
static bool try_to_open(void *context, sl_connecting *connecting, bool *again, bool *soon,
                        sl_error *error) {
    const opening *o = context;
    sl_connection *connection = o->connection;
    const char *domain = mongoc_uri_get_srv_hostname(connection->uri);
    sl_reach reach;
    if (domain ? !preflight_of_domain(connection->uri, connecting, &reach, again, error)
               : !sl_preflight(connection->uri, mongoc_uri_get_hosts(connection->uri), ask,
                               connecting, &reach, error))
        return false;
    *again = !reach.answers;
    *soon = reach.silent;
    if (!reach.answers)
        return sl_error_set(
            error, SL_EXIT_CLUSTER, "no server answers: %s. Check --uri and that the server runs%s",
            reach.why, o->options->wait_seconds > 0 ? "" : ", or wait for it with --wait 60s");
    if (!open_pools(connection, o->options, error)) {
        *again = error->code == SL_EXIT_CLUSTER; /* DNS */
        return false;
    }
    connecting_to(connecting, "looking for a server that accepts writes");
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
         !keep_connecting(try_to_open, &context, options->wait_seconds, error) ||
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
        pool_enlarge(connection->writers, pool_size);
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
    return sl_patience_find(&connection->patient->patience, client);
}

void sl_connection_return(sl_connection *connection, mongoc_client_t *client) {
    sl_pool_return(connection->patient, client);
}
