/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the answer to an insert: is the outcome of each document known, and if not, may the
 * documents be sent again?
 *
 * An answer is complete only if it adds up: documents inserted and documents refused are exactly
 * the documents that were sent, each refused document is named once, none is refused because of the
 * state of the server, and the write concern was satisfied. With any other answer the outcome is
 * unknown, and the writer searches for the documents before it sends them again.
 *
 * A table in reply.c lists the codes that are about a document, those about the state of the
 * server, and those of permanent errors. tests/cluster/test_refused.py provokes each code of the
 * first kind on a real server. A refusal with any other code is doubtful: the writer sends that
 * document again, alone, and the server's second answer decides. */
#ifndef SHARDLOAD_REPLY_H
#define SHARDLOAD_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include <bson/bson.h>

#include "format/format.h"
#include "util/error.h"

/* Codes of the server. */
#define SL_DUPLICATE_KEY 11000
#define SL_DOCUMENT_VALIDATION_FAILURE 121

/* Ascending: an answer with several errors has the highest of their verdicts. */
typedef enum sl_verdict {
    SL_REPLY_COMPLETE,  /* every document was inserted, or refused for a reason in the document
                           itself */
    SL_REPLY_NONE,      /* no answer arrived; the documents may have been inserted */
    SL_REPLY_TOO_LARGE, /* the server could not build its answer: send fewer documents */
    SL_REPLY_UNKNOWN,   /* search for the documents and send them again, until the retry limit */
    SL_REPLY_FINAL,     /* sending them again cannot help */
} sl_verdict;

/* The driver's result of one insert. All pointers are borrowed. */
typedef struct sl_reply {
    bool ok;                        /* the driver reported no error */
    const bson_t *body;             /* insertedCount, writeErrors, writeConcernErrors */
    const bson_error_t *why;        /* with `ok` false */
    const bson_t *const *documents; /* that were sent; NULL: messages are shorter */
    uint32_t count;                 /* of the documents sent */
    bool own_ids;                   /* an _id may be of any type, and is not a position */
    sl_mode mode;                   /* of sl_reply_judge_modify: one that matches documents */
} sl_reply;

/* Judges an answer. `*inserted` is set to the number of documents that were inserted when the
 * answer is complete. `error` is set (SL_EXIT_CLUSTER) for any other verdict, and quotes the
 * server. */
sl_verdict sl_reply_judge(const sl_reply *reply, uint32_t *inserted, sl_error *error);

/* The numbers of a complete answer to an update or delete command. Of the documents that were not
 * refused, `upserted` were inserted, `matched` matched a stored document, and the others matched
 * none. */
typedef struct sl_modified {
    uint32_t matched;
    uint32_t modified; /* those of `matched` whose stored document was changed; for delete, all
                          deleted documents */
    uint32_t upserted;
    uint32_t refused;
} sl_modified;

/* Judges the server's own answer to such a command: n, nModified, upserted, writeErrors,
 * writeConcernError. It is complete only if these add up: with upsert and merge, each document was
 * matched, inserted or refused; with the other modes, their sum is at most the number of documents
 * sent. */
sl_verdict sl_reply_judge_modify(const sl_reply *reply, sl_modified *found, sl_error *error);

/* Did the server refuse the command, without naming a document, with a code that is not about its
 * own state? Then one of the documents may be the reason. */
bool sl_reply_refuses_command(const sl_reply *reply);

/* Is the code always about a document, also as the error of a command with one document? A
 * duplicate key is not: another loader may just store the document. */
bool sl_reply_is_of_document(int32_t code);

/* Was the collection dropped, or replaced by another one? Then no document can be sent any more. */
bool sl_reply_is_replaced(const bson_error_t *why, const bson_t *body);

/* Sets `upserted` before the first document that was inserted by an upsert. False if none was
 * inserted. */
bool sl_reply_upserted(const bson_t *body, bson_iter_t *upserted);

/* Reads the index of the next inserted document, -1 if the answer gives none. False after the last
 * one. */
bool sl_reply_next_upserted(bson_iter_t *upserted, int64_t *index);

/* One document that the server refused. */
typedef struct sl_write_error {
    int64_t index;       /* of the document among those sent; in a complete answer 0 to count - 1 */
    int32_t code;        /* the server's; 0 when it gave none */
    const char *message; /* the server's; lives as long as the reply */
    const uint8_t *rule; /* the rules of a validator that refused it, a BSON document; NULL: none,
                            or a server before 5.0 */
    bool duplicate_id;   /* the index _id_ refused it, not another unique index */
    bool unexplained;    /* a duplicate key, without the name of the index: routers leave out the
                            messages after the first 1 MiB of a reply */
    bool doubtful;       /* the code is about the document only if it is repeated for it alone */
} sl_write_error;

/* Sets `errors` before the first write error. False when the answer has no write error. */
bool sl_reply_errors(const bson_t *body, bson_iter_t *errors);

/* Reads the next write error. False after the last write error. */
bool sl_reply_next_error(bson_iter_t *errors, sl_write_error *found);

/* The message, with the rules of the validator that the document breaks; if the server does not
 * name them, with `validator`, that of the collection. Returns `out`. */
#define SL_WRITE_ERROR_ROOM 540
const char *sl_write_error_text(const sl_write_error *one, const char *validator,
                                char out[SL_WRITE_ERROR_ROOM]);

#endif
