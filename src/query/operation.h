/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: builds the command of a query, fills in drawn values, sends it and reads the complete
 * answer.
 *
 * A runner is used by one thread. It has its own client, session and command. */
#ifndef QUERY_OPERATION_H
#define QUERY_OPERATION_H

#include <mongoc/mongoc.h>

#include "parameters.h"

typedef struct sl_result {
    uint64_t documents; /* returned; count: the number counted; update, insert: the reply's `n` */
    uint64_t bytes;     /* of the documents returned, as BSON */
    int32_t code;       /* error code of the server or the driver; 0: success */
} sl_result;

typedef struct sl_runner {
    const sl_query *query;
    const sl_query_target *target;
    mongoc_client_t *client;
    mongoc_client_session_t *session; /* NULL when the server supports none */
    mongoc_read_prefs_t *preference;  /* NULL: that of the URI */
    bson_t *command;                  /* with {"$parameter": name} not replaced */
    bool has_parameters;
    sl_value_generator generator;
    bson_t values, filled; /* of the next operation: the drawn values, the command with them */
    bson_t options;        /* names the selected server and the session */
    int64_t selected_at;   /* when that server was selected (sl_clock_ns); 0: none is selected */
    sl_exchange *exchange; /* NULL: all commands go through the driver */
    bool direct;           /* the driver has read from the selected server: the exchange can */
} sl_runner;

/* Initialises runner `number` (from 0) of `clients` runners of the same query; the sequences of
 * different runners have different numbers. `client` is borrowed from the connection, by this
 * thread, until the runner is cleared. On false `error` is set; clear the runner in any case. */
bool sl_runner_init(sl_runner *runner, sl_connection *connection, mongoc_client_t *client,
                    const sl_query *query, const sl_query_target *target, uint64_t number,
                    uint64_t clients, sl_error *error);
void sl_runner_clear(sl_runner *runner);

/* Draws the values of the next operation and builds its command. False without memory, or when a
 * parameter has no value. */
bool sl_runner_prepare(sl_runner *runner);
/* Sends the prepared command and reads the answer, completely or until `each`, which may be NULL,
 * returns false. On false `result->code` and `error` are set. */
bool sl_runner_run(sl_runner *runner, sl_found_document *each, void *context, sl_result *result,
                   sl_error *error);
/* The prepared command, for explain. */
const bson_t *sl_runner_command(const sl_runner *runner);

/* ---- explain.c: plans, and the number of documents that the servers examine ---- */

/* Sets run->examined, and run->explained if the server explains the operation. Prepares the runner.
 * `documents`: in the collection, 0: unknown. False, with run->error set, only without memory; a
 * server that does not explain the query is not an error. */
bool sl_explain_query(sl_runner *runner, uint64_t documents, sl_query_run *run);

/* ---- explain.c: minimum, maximum, sum and count of a field, computed by the client ---- */

/* Runs the query in query->threads threads, each over a part of the documents, and appends {min,
 * max, sum, count} to `answer`; nothing when the field holds no number in any document.
 * `documents`: in the collection, used when the query has no limit. The clients are borrowed from
 * the connection's pool. */
bool sl_statistic_run(sl_connection *connection, const sl_query *query,
                      const sl_query_target *target, uint64_t documents, bson_t *answer,
                      sl_result *result, sl_error *error);

#endif
