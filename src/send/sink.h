/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks for full batches: a cluster, a BSON file, or none (the documents are discarded). A sink is
 * shared by the workers; each worker has its own outlet. */
#ifndef SHARDLOAD_SINK_H
#define SHARDLOAD_SINK_H

#include <stdatomic.h>

#include "batch.h"
#include "job/job.h"
#include "job/load_config.h"

/* The outcome of a batch: documents = inserted + already_stored + changed + rejected. */
typedef struct sl_batch_result {
    uint32_t inserted;
    uint32_t already_stored; /* or, with another mode than insert, the stored document needed no
                                change or was not found */
    uint32_t changed;        /* the stored document was modified or deleted */
    uint32_t rejected;
    uint32_t retries;
} sl_batch_result;

/* Why the server did not insert a document. */
typedef enum sl_fate {
    FATE_ALREADY_STORED, /* the same document is stored, byte by byte; or there was nothing to
                            change */
    FATE_CHANGED,        /* a stored document was modified or deleted */
    FATE_ID_TAKEN,       /* another document has its _id */
    FATE_REPEATED,       /* the same document is stored, but not by an earlier attempt */
    FATE_NOT_FOUND,      /* no stored document could be replaced; the message is the reason */
    FATE_REFUSED,
} sl_fate;

/* Called for a document that was not inserted, with the server's code and message. */
typedef void (*refusal_handler)(void *context, uint32_t index, sl_fate fate, int32_t code,
                                const char *message);

/* The parameters of a load's sinks. Constant while workers run, except `stop`. */
typedef struct sl_sending {
    const sl_load_config *config;
    sl_destination *destination;
    uint32_t shards;                  /* of the job */
    unsigned threads;                 /* outlets, at most */
    bool own_ids;                     /* documents may have their own _id */
    const struct sl_key_fields *keys; /* of the job */
    bool sent_before;                 /* an earlier run or load may have sent the documents */
    const _Atomic bool *stop;         /* true: another thread has stopped the load */
} sl_sending;

typedef struct sl_outlet sl_outlet;

/* The functions of a sink. */
typedef struct sl_sink_type {
    const char *name;
    /* Sets `*shared`, which is NULL before. The function may be NULL: there is nothing to open. */
    bool (*open)(const sl_sending *sending, void **shared, sl_error *error);
    /* The function may be NULL: there is nothing to close. So may `shared`. */
    bool (*close)(void *shared, sl_error *error);
    /* Both functions may be NULL: all workers use `shared` as their outlet. */
    bool (*outlet_create)(const sl_sending *sending, void *shared, sl_outlet **outlet,
                          sl_error *error);
    void (*outlet_destroy)(sl_outlet *outlet); /* NULL is fine */
    /* Sends a batch and waits until it has been acknowledged. For each document that is not counted
     * in `inserted`, `refused` is called with its index in the batch. False when
     * the batch cannot be delivered: the load ends. */
    bool (*send)(sl_outlet *outlet, const sl_batch *batch, sl_batch_result *result,
                 refusal_handler refused, void *context, sl_error *error);
} sl_sink_type;

extern const sl_sink_type sl_sink_cluster; /* writer.c */
extern const sl_sink_type sl_sink_modify;  /* writer.c: the cluster, with another mode */
extern const sl_sink_type sl_sink_null;    /* sink.c */
extern const sl_sink_type sl_sink_bson;    /* sink.c */

#endif
