/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the balancer's state: the document in the cluster and its lock. balancer.c says what
 * they are for. */
#ifndef SHARDLOAD_BALANCER_H
#define SHARDLOAD_BALANCER_H

#include <pthread.h>

#include "internal.h"

#include <shardload/process.h>

struct sl_balancer {
    sl_connection *connection;
    char before[8];          /* "full", "off" */
    char name[256];          /* this host's, for people */
    char host[SL_HOST_ROOM]; /* its identity */
    bson_oid_t id;           /* of this load as a holder, the same in all its runs */
    /* The heartbeat, see balancer.c. */
    pthread_t thread;
    bool beating;         /* the thread runs */
    pthread_mutex_t lock; /* guards `leaving`; held while this loader joins again */
    pthread_cond_t woken; /* by the monotonic clock */
    bool leaving;
};

/* What is known of a holder. */
typedef enum sl_holder_state {
    SL_HOLDER_ALIVE,  /* its process runs on this host, or another loader's word must do */
    SL_HOLDER_UNSURE, /* another host: alive if its next sign of life comes */
    SL_HOLDER_DEAD,
} sl_holder_state;

typedef struct sl_balancer_document {
    bool there;
    char before[8];
    uint32_t others; /* holders but this loader that are not dead */
    uint32_t unsure; /* of those */
    bson_t holders;  /* they, as an array; initialised always */
    char first[300]; /* one of them, for messages */
} sl_balancer_document;

/* Takes the lock, and reads the server's clock (milliseconds): all times of the document are by the
 * same server's. */
bool sl_balancer_lock(const sl_balancer *balancer, int64_t *now, sl_error *error);
bool sl_balancer_unlock(const sl_balancer *balancer, sl_error *error);

/* The functions below are for who has the lock. */

/* Reads the document without this loader and without dead holders. */
bool sl_balancer_document_read(const sl_balancer *balancer, int64_t now,
                               sl_balancer_document *document, sl_error *error);
bool sl_balancer_document_write(const sl_balancer *balancer, const sl_balancer_document *document,
                                sl_error *error);
bool sl_balancer_document_remove(const sl_balancer *balancer, sl_error *error);
/* Appends this loader to an array of holders. */
void sl_balancer_append_self(const sl_balancer *balancer, int64_t now, bson_t *holders,
                             const char *key);
/* Has one of the holders that were unsure in `before` shown a sign of life since, or come anew? */
bool sl_balancer_moved_on(const sl_balancer_document *before, const sl_balancer_document *after);

/* Needs no lock: this loader's sign of life. `*known` false: it is no holder any more. */
bool sl_balancer_beat(const sl_balancer *balancer, bool *known, sl_error *error);

#endif
