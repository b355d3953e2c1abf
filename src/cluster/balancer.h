/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of balancer.c and balancer_state.c: the state document in the cluster and its lock.
 * balancer.c explains the protocol. */
#ifndef SHARDLOAD_BALANCER_H
#define SHARDLOAD_BALANCER_H

#include <pthread.h>

#include "internal.h"

#include "util/process.h"

struct sl_balancer {
    sl_connection *connection;
    char before[8];          /* "full", "off" */
    char name[256];          /* host name, for messages */
    char host[SL_HOST_ROOM]; /* sl_host_identity of this host */
    bson_oid_t id;           /* of this load as a holder, the same in all its runs */
    pthread_t thread;        /* sends the heartbeats */
    bool thread_runs;
    pthread_mutex_t lock; /* guards `leaving`; held while this loader rejoins the holders */
    pthread_cond_t woken; /* by the monotonic clock */
    bool leaving;
};

typedef enum sl_holder_state {
    SL_HOLDER_ALIVE,  /* its process runs on this host; or its version sends no heartbeats */
    SL_HOLDER_UNSURE, /* on another host: alive if it sends another heartbeat */
    SL_HOLDER_DEAD,
} sl_holder_state;

typedef struct sl_balancer_document {
    bool exists;
    char before[8];
    uint32_t others; /* number of other holders that are not dead */
    uint32_t unsure; /* number of other holders that are SL_HOLDER_UNSURE */
    bson_t holders;  /* the other holders that are not dead, as an array; always initialised */
    char first[300]; /* the first of `holders`, for messages */
} sl_balancer_document;

/* Takes the lock. `*now` is the server's clock in milliseconds; all times in the document are the
 * server's. */
bool sl_balancer_lock(const sl_balancer *balancer, int64_t *now, sl_error *error);
bool sl_balancer_unlock(const sl_balancer *balancer, sl_error *error);

/* The functions from here to sl_balancer_any_refreshed need the lock. */

/* Reads the document, leaving out this loader and dead holders. */
bool sl_balancer_document_read(const sl_balancer *balancer, int64_t now,
                               sl_balancer_document *document, sl_error *error);
bool sl_balancer_document_write(const sl_balancer *balancer, const sl_balancer_document *document,
                                sl_error *error);
bool sl_balancer_document_remove(const sl_balancer *balancer, sl_error *error);
/* Appends this loader to an array of holders. */
void sl_balancer_append_self(const sl_balancer *balancer, int64_t now, bson_t *holders,
                             const char *key);
/* Has a holder in `after` sent a heartbeat since `before`, or joined since then? */
bool sl_balancer_any_refreshed(const sl_balancer_document *before,
                               const sl_balancer_document *after);

/* Sends this loader's heartbeat. Needs no lock. `*is_holder` false: another loader has removed this
 * one from the holders. */
bool sl_balancer_refresh(const sl_balancer *balancer, bool *is_holder, sl_error *error);

#endif
