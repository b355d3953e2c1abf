/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the two writers: writer.c, which inserts, and modify.c, which updates and deletes. */
#ifndef SHARDLOAD_WRITER_INTERNAL_H
#define SHARDLOAD_WRITER_INTERNAL_H

#include <mongoc/mongoc.h>

#include "reply.h"
#include "sink.h"

bool sl_writer_open(const sl_sending *sending, void **shared, sl_error *error);

/* The outcome of an attempt to send documents. */
typedef enum sl_outcome {
    DELIVERED,
    SEND_AGAIN,
    SEND_LESS,  /* send the documents again in smaller pieces */
    SEND_APART, /* the same: one of them may be the reason why the server refused the command */
    SEND_APART_OR_END, /* the same, and if none of them is the reason, the load ends */
    UNDELIVERABLE,
} sl_outcome;

/* Documents of a batch that are sent again, each alone, after the others. */
typedef struct sl_aside {
    uint32_t *indexes;
    uint32_t count;
} sl_aside;

/* The receiver of the outcome of documents. */
typedef struct sl_listener {
    sl_batch_result *result;
    refusal_handler refused;
    void *context;
    bool last_chance; /* of modify.c: duplicates are rejects */
    bool alone;       /* one document is sent, which was refused before: what the server reports
                         now is about this document */
    bool accepted;    /* with `alone`: the server has executed another command of the batch */
    sl_aside *aside;
} sl_listener;

/* The write concern of the load, for the caller to destroy. */
mongoc_write_concern_t *sl_writer_concern(const sl_sending *sending);

/* How documents are sent in pieces. The caller sends those from `first` on, at most `most`, until
 * `first` is `end`. */
typedef struct sl_course {
    const sl_sending *sending;
    sl_batch_result *result;
    unsigned *seed;          /* for the jitter */
    const uint32_t *indexes; /* in the batch, of the documents; NULL: 0, 1, ... */
    sl_aside *aside;         /* NULL: no document is set aside */
    uint32_t first, end, most;
    bool accepted;    /* the server has executed a command of this batch */
    bool apart;       /* private, as all that follow: the pieces are small because of SEND_APART */
    unsigned refused; /* documents set aside before a command was executed */
    unsigned attempt;
    int64_t since; /* of the first failure */
} sl_course;

/* Decides how to go on after an attempt to send the `count` documents from `first` on, and waits if
 * necessary. False when the batch cannot be delivered. */
bool sl_course_go_on(sl_course *course, sl_outcome outcome, uint32_t count, sl_error *error);

/* Before the documents set aside are sent: waits a moment, since the server may have been in a
 * temporary state. */
bool sl_course_before_alone(sl_course *course, sl_error *error);

/* The course of one document that was set aside. */
sl_course sl_course_alone(const sl_course *course, uint32_t first);

/* The outcome of an incomplete reply. `again`: the documents were sent before. */
sl_outcome sl_outcome_of_reply(const sl_reply *reply, sl_verdict verdict, bool again);

/* Reports a document whose command was refused: `outcome` is SEND_APART or SEND_APART_OR_END, `why`
 * the server's error, and `count` the number of documents of the command. False, and nothing is
 * reported, if the document need not be the reason. */
bool sl_report_alone(const sl_listener *listener, sl_outcome outcome, const bson_error_t *why,
                     uint32_t index, uint32_t count);

#endif
