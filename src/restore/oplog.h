/* SPDX-License-Identifier: Apache-2.0 */
/* The oplog of a dump (mongodump --oplog): the writes while the dump was made, and how they are
 * replayed after the documents of all collections are loaded. One thread.
 *
 *   oplog.c         entries and transactions, in the order in which they take effect
 *   oplog_plan.c    what the oplog changes in collections, options and indexes
 *   oplog_replay.c  the replay
 *   oplog_update.c  updates applied to a document */
#ifndef SHARDLOAD_RESTORE_OPLOG_H
#define SHARDLOAD_RESTORE_OPLOG_H

#include <stdbool.h>
#include <stdint.h>

#include <bson/bson.h>

#include "util/error.h"

#include "restoring.h"

/* ---- oplog.c ---- */

/* An operation. The operations of applyOps and of a transaction are passed one by one, when they
 * take effect. Borrowed. */
typedef struct sl_oplog_operation {
    char kind;           /* i, u, d, c */
    const char *name;    /* "database.collection"; of a command "database.$cmd" */
    bson_t object;       /* document, update, or command */
    bson_t target;       /* of an update: {_id}; otherwise empty */
    const bson_t *entry; /* with all its fields */
    uint64_t number;     /* from 0 */
    uint64_t at;         /* offset of its entry in the oplog */
    uint64_t timestamp;  /* of its entry: seconds << 32 | ordinal */
    const char *command; /* the name of the command; "" */
} sl_oplog_operation;

/* Reads an oplog and passes each operation to `visit`, except no-ops, up to the first entry at or
 * after the timestamp `limit` (0: none). Stops with the error of `visit`, which is given the
 * position of the entry. SL_EXIT_SOURCE, with the position, for damage and for entries that are not
 * understood. Needs memory for the largest entry, and for the transactions that are open at the
 * same time. */
bool sl_oplog_each(const char *path, uint64_t limit,
                   bool (*visit)(void *context, const sl_oplog_operation *operation,
                                 sl_error *error),
                   void *context, sl_oplog_totals *totals, sl_error *error);

/* ---- oplog_update.c ---- */

typedef enum sl_oplog_form {
    SL_OPLOG_DOCUMENT,  /* the new document */
    SL_OPLOG_MODIFIERS, /* $set and $unset */
    SL_OPLOG_DIFF,      /* $v: 2 */
} sl_oplog_form;

sl_oplog_form sl_oplog_update_form(const bson_t *update);

/* Can the update be applied? Otherwise the error names the part of it that is not known. */
bool sl_oplog_update_check(const bson_t *update, sl_error *error);

/* The document after an update that has been checked; NULL with error: it is too large. */
bson_t *sl_oplog_update(const bson_t *document, const bson_t *update, sl_error *error);

/* ---- oplog_plan.c ---- */

/* Reads the oplog before anything is changed, and refuses what cannot be replayed. Adds the
 * namespaces that it creates to the dump, and sets `after` of those that it changes. */
bool sl_oplog_plan(sl_restore *restore, sl_error *error);

/* The namespace of this name, also of the buckets of a time-series collection; NULL: none. */
sl_namespace *sl_oplog_namespace(const sl_dump *dump, const char *database, const char *collection);

/* Splits "database.collection"; `collection` points into the name. False: it is no namespace. */
bool sl_oplog_split(const char *name, char database[SL_NAME_ROOM], const char **collection);

/* Options of a command `create` of the oplog: sets options and later of `made`. */
bool sl_oplog_create_options(const sl_name_options *names, const sl_oplog_operation *operation,
                             sl_namespace *made, sl_error *error);

/* ---- oplog_replay.c ---- */

/* Replays the oplog, from the position that an earlier run has reached. Logs its progress. */
bool sl_oplog_replay(sl_restore *restore, sl_error *error);

#endif
