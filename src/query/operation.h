/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: the command of a query, filled with the next values, sent, and its answer read to the
 * last document.
 *
 * A runner belongs to one thread: it has a client, a session and a command of its own. */
#ifndef QUERY_OPERATION_H
#define QUERY_OPERATION_H

#include <mongoc/mongoc.h>

#include "parameters.h"

/* What an operation gave. */
typedef struct sl_result {
    uint64_t documents; /* returned; of a count, the count; of a write, documents changed */
    uint64_t bytes;     /* of the documents, as BSON */
    int32_t code;       /* why it failed: the server's error code, or the driver's; else 0 */
} sl_result;

/* Sees each document of an answer; `document` is valid during the call. */
typedef void sl_document_function(void *context, const bson_t *document);

typedef struct sl_runner {
    const sl_query *query;
    const sl_place *place;
    mongoc_client_t *client;
    mongoc_client_session_t *session; /* NULL where the server has none */
    mongoc_read_prefs_t *preference;  /* NULL for what the URI says */
    bson_t *command;                  /* with parameters still in it, if there are any */
    bool has_parameters;
    sl_drawer drawer;
    bson_t values, filled; /* of the next operation */
} sl_runner;

/* `number` of `clients` runners of the same query, which share out its sequences. The client is
 * borrowed. On false `error` is set; clear the runner in any case. */
bool sl_runner_init(sl_runner *runner, mongoc_client_t *client, const sl_query *query,
                    const sl_place *place, uint64_t number, uint64_t clients, sl_error *error);
void sl_runner_clear(sl_runner *runner);

/* Draws the values of the next operation and fills them in. */
bool sl_runner_prepare(sl_runner *runner);
/* Sends the prepared command, and reads its answer to the end. `each` may be NULL. On false
 * `result->code` and `error` say why. */
bool sl_runner_run(sl_runner *runner, sl_document_function *each, void *context, sl_result *result,
                   sl_error *error);
/* The prepared command, for explain. */
const bson_t *sl_runner_command(const sl_runner *runner);

mongoc_read_prefs_t *sl_read_preference(const char *name); /* NULL for NULL */

#endif
