/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of documents, and the sinks that take them. */
#ifndef SHARDLOAD_SINK_H
#define SHARDLOAD_SINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "job/job.h"
#include "job/load_config.h"
#include "util/error.h"

/* ---- batches ---- */

/* Batches: documents to be sent to one shard, and the blocks they came from. A batch belongs to one
 * thread. */

struct sl_open_block; /* a block whose documents have not all been acknowledged; see worker.h */

/* Consecutive documents of a batch that came from one block. */
typedef struct sl_batch_segment {
    struct sl_open_block *open_block;
    uint32_t documents;
} sl_batch_segment;

typedef struct sl_batch {
    uint32_t
        shard; /* index of the shard; or the job's number of shards if only the router can find the
                  owners */
    uint32_t documents;
    uint8_t *bytes; /* `used` bytes of `room`, then SL_SLACK more */
    size_t used;
    size_t room;
    uint64_t *offsets; /* per document: offset of its record; NULL unless they are kept */
    size_t offsets_room;
    int64_t since; /* when its first document was added, by sl_clock_ns */
    sl_batch_segment *segments;
    size_t segment_count;
    size_t segment_room;
} sl_batch;

bool sl_batch_init(sl_batch *batch, uint32_t shard, size_t room);
void sl_batch_clear(sl_batch *batch);
void sl_batch_empty(sl_batch *batch);
/* Documents added from now on come from this block. False without memory. */
bool sl_batch_begin_segment(sl_batch *batch, struct sl_open_block *open_block);
/* Grows the batch to at least `need` bytes in total. False without memory. */
bool sl_batch_make_room(sl_batch *batch, size_t need);
/* Makes room for the offsets of the records of at least `count` documents. False without memory. */
bool sl_batch_keep_offsets(sl_batch *batch, size_t count);
/* Sets `views` (uninitialised, one per document) to the documents of the batch. False with error if
 * one is not BSON, which is a defect of this program. */
bool sl_batch_view(const sl_batch *batch, bson_t *views, sl_error *error);
/* Appends a copy of a document of the block. Grows the batch if the document does not fit: the
 * caller sends a full batch first. `offset` (may be NULL): the offset of its record, which is
 * stored with it. False without memory. */
bool sl_batch_add(sl_batch *batch, struct sl_open_block *open_block, const uint8_t *document,
                  size_t length, const uint64_t *offset);

/* ---- sinks ---- */

/* Sinks for full batches: a cluster, a BSON file, or none (the documents are discarded). A sink is
 * shared by the workers; each worker has its own outlet. */

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
    bool within_load; /* what it stores only the load itself reads: the command changes nothing */
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
