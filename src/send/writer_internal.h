/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the two writers: writer.c, which inserts, and modify.c, which updates and deletes. */
#ifndef SHARDLOAD_WRITER_INTERNAL_H
#define SHARDLOAD_WRITER_INTERNAL_H

#include <mongoc/mongoc.h>

#include "sink.h"

bool sl_writer_open(const sl_sending *sending, void **shared, sl_error *error);

/* The outcome of an attempt to send documents. */
typedef enum sl_outcome {
    DELIVERED,
    SEND_AGAIN,
    SEND_LESS, /* send the documents again in smaller pieces */
    UNDELIVERABLE,
} sl_outcome;

/* The receiver of the outcome of documents. */
typedef struct sl_listener {
    sl_batch_result *result;
    refusal_handler refused;
    void *context;
    bool last_chance; /* of modify.c: duplicates are rejects */
} sl_listener;

/* The write concern of the load, for the caller to destroy. */
mongoc_write_concern_t *sl_writer_concern(const sl_sending *sending);

/* Waits before attempt `attempt` + 1, longer with each attempt. `seed`: for the jitter. */
void sl_writer_wait(unsigned *seed, unsigned attempt);

/* May documents be sent again? `since`: when their first attempt failed, by sl_clock_ns. */
bool sl_writer_may_try_again(const sl_sending *sending, int64_t since, sl_error *error);

#endif
