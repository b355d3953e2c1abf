/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of clients whose streams wait for slow replies (patience.c). With version 2 of the driver,
 * a program can replace the streams of a client only if the client is not from one of the driver's
 * pools. So with that version this file keeps the clients. Each of them looks for the servers
 * itself when a command needs one; the threads of a driver's pool would do that in the background.
 */
#include <stdlib.h>

#include "internal.h"

#if MONGOC_CHECK_VERSION(2, 0, 0)

struct sl_patient_pool {
    mongoc_uri_t *uri;
    const char *application;
    pthread_mutex_t lock;
    pthread_cond_t returned;
    mongoc_client_t **idle; /* under the lock: `idle_count` clients that are not borrowed, */
    size_t idle_count;
    size_t count; /* ... and how many clients there are, borrowed or not; at most `most` */
    size_t most;
};

static mongoc_client_t *new_client(const sl_patient_pool *pool, bson_error_t *error) {
    mongoc_client_t *client = mongoc_client_new_from_uri_with_error(pool->uri, error);
    if (client) {
        mongoc_client_set_error_api(client, MONGOC_ERROR_API_VERSION_2);
        mongoc_client_set_appname(client, pool->application);
    }
    return client;
}

sl_patient_pool *sl_patient_pool_create(const mongoc_uri_t *uri, const char *application,
                                        bson_error_t *error) {
    sl_patient_pool *made = bson_malloc0(sizeof *made);
    made->uri = mongoc_uri_copy(uri);
    mongoc_uri_set_option_as_bool(made->uri, MONGOC_URI_SERVERSELECTIONTRYONCE, false);
    made->application = application;
    made->most = (size_t)mongoc_uri_get_option_as_int32(uri, MONGOC_URI_MAXPOOLSIZE, 100);
    made->idle = bson_malloc0(made->most * sizeof(mongoc_client_t *));
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->returned, NULL);
    made->idle[0] = new_client(made, error); /* may find that a URI or its domain is invalid */
    made->count = made->idle_count = made->idle[0] != NULL;
    if (made->count > 0)
        return made;
    sl_patient_pool_destroy(made);
    return NULL;
}

void sl_patient_pool_destroy(sl_patient_pool *pool) {
    if (!pool)
        return;
    for (size_t i = 0; i < pool->idle_count; i++)
        mongoc_client_destroy(pool->idle[i]);
    pthread_cond_destroy(&pool->returned);
    pthread_mutex_destroy(&pool->lock);
    bson_free(pool->idle);
    mongoc_uri_destroy(pool->uri);
    bson_free(pool);
}

mongoc_client_t *sl_patient_pool_borrow(sl_patient_pool *pool) {
    mongoc_client_t *client = NULL;
    bson_error_t error;
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

void sl_patient_pool_return(sl_patient_pool *pool, mongoc_client_t *client) {
    pthread_mutex_lock(&pool->lock);
    pool->idle[pool->idle_count++] = client;
    pthread_cond_signal(&pool->returned);
    pthread_mutex_unlock(&pool->lock);
}

#else

struct sl_patient_pool {
    mongoc_client_pool_t *pool;
};

sl_patient_pool *sl_patient_pool_create(const mongoc_uri_t *uri, const char *application,
                                        bson_error_t *error) {
    mongoc_client_pool_t *pool = mongoc_client_pool_new_with_error(uri, error);
    if (!pool)
        return NULL;
    mongoc_client_pool_set_error_api(pool, MONGOC_ERROR_API_VERSION_2);
    mongoc_client_pool_set_appname(pool, application);
    sl_patient_pool *made = bson_malloc0(sizeof *made);
    made->pool = pool;
    return made;
}

void sl_patient_pool_destroy(sl_patient_pool *pool) {
    if (!pool)
        return;
    mongoc_client_pool_destroy(pool->pool);
    bson_free(pool);
}

mongoc_client_t *sl_patient_pool_borrow(sl_patient_pool *pool) {
    return mongoc_client_pool_pop(pool->pool);
}

void sl_patient_pool_return(sl_patient_pool *pool, mongoc_client_t *client) {
    mongoc_client_pool_push(pool->pool, client);
}

#endif
