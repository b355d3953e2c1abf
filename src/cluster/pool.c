/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of clients, all of whose streams are those of stream.c.
 *
 * A program can replace every stream of a client, including those that look for the servers, only
 * if the client is not from one of the driver's pools: their threads open streams of their own. So
 * this file keeps the clients. Each of them looks for the servers itself when a command needs
 * one. */
#include <stdlib.h>

#include "internal.h"

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

void sl_pool_enlarge(sl_pool *pool, size_t most) {
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

sl_streams *sl_pool_streams(sl_pool *pool, const mongoc_client_t *client) {
    return sl_patience_find(&pool->patience, client);
}
