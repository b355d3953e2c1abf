/* SPDX-License-Identifier: Apache-2.0 */
/* Builds commands from queries, and reads documents from replies.
 *
 * The driver selects the server (by read preference) before the command is sent, because the
 * getMore commands of a cursor must go to the same server in the same session. The first command
 * after each selection goes through the driver; when it succeeds, reads go to that server by
 * sl_exchange_run until the next selection. A read that fails because of a lost connection or an
 * election is sent again by the driver, once; other failed operations are not repeated. */
#include "operation.h"

#include <string.h>

#include "bson/bson_lookup.h"
#include "util/clock.h"

/* A server is selected again after this time. */
#define SELECTION_NS 100000000
#define CODE_MAX_TIME_EXPIRED 50

/* ---- the command ---- */

static bool append_body(bson_t *command, const sl_query *query) {
    bson_iter_t iter;
    const bool filters_by_query = query->operation == SL_COUNT || query->operation == SL_DISTINCT ||
                                  query->operation == SL_MAP_REDUCE;
    bool ok = bson_iter_init(&iter, query->body);
    while (ok && bson_iter_next(&iter)) {
        const bool renamed = filters_by_query && BSON_ITER_IS_KEY(&iter, "filter");
        ok = bson_append_iter(command, renamed ? "query" : bson_iter_key(&iter), -1, &iter);
    }
    return ok;
}

/* Appends updates: [{q: filter, u: update, upsert, multi}]. */
static bool append_update(bson_t *command, const sl_query *query) {
    static const char *const names[][2] = {
        {"filter", "q"}, {"update", "u"}, {"upsert", "upsert"}, {"multi", "multi"}};
    bson_t list, update, empty = BSON_INITIALIZER;
    bool ok = BSON_APPEND_ARRAY_BEGIN(command, "updates", &list) &&
              BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &update);
    for (size_t i = 0; ok && i < sizeof names / sizeof names[0]; i++) {
        bson_iter_t iter;
        if (bson_iter_init_find(&iter, query->body, names[i][0]))
            ok = bson_append_iter(&update, names[i][1], -1, &iter);
        else if (i == 0)
            ok = BSON_APPEND_DOCUMENT(&update, "q", &empty);
    }
    bson_destroy(&empty);
    return ok && bson_append_document_end(&list, &update) && bson_append_array_end(command, &list);
}

static bool append_insert(bson_t *command, const sl_query *query) {
    bson_t list;
    bson_iter_t iter;
    return BSON_APPEND_ARRAY_BEGIN(command, "documents", &list) &&
           bson_iter_init_find(&iter, query->body, "document") &&
           bson_append_iter(&list, "0", -1, &iter) && bson_append_array_end(command, &list);
}

/* Appends the options as fields of the command; the batchSize of an aggregate goes under "cursor".
 * The read concern is left out: the driver appends it, from the query or from the URI. */
static bool append_options(bson_t *command, const sl_query *query) {
    bool cursor = query->operation == SL_AGGREGATE;
    bson_iter_t iter;
    bson_t inside;
    bool ok = !cursor || BSON_APPEND_DOCUMENT_BEGIN(command, "cursor", &inside);
    if (ok && cursor && bson_iter_init_find(&iter, query->options, "batchSize"))
        ok = bson_append_iter(&inside, "batchSize", -1, &iter);
    ok = ok && (!cursor || bson_append_document_end(command, &inside)) &&
         bson_iter_init(&iter, query->options);
    while (ok && bson_iter_next(&iter)) {
        const char *key = bson_iter_key(&iter);
        if (strcmp(key, "readConcern") != 0 && (!cursor || strcmp(key, "batchSize") != 0))
            ok = bson_append_iter(command, key, -1, &iter);
    }
    return ok;
}

static bson_t *command_of(const sl_query *query, const char *collection) {
    bool one = query->operation == SL_FIND_ONE;
    bson_t *command = bson_new();
    bool ok = BSON_APPEND_UTF8(command, sl_operation_command(query->operation), collection);
    bson_t out;
    switch (query->operation) {
    case SL_AGGREGATE:
        ok = ok && BSON_APPEND_ARRAY(command, "pipeline", query->pipeline);
        break;
    case SL_UPDATE:
        ok = ok && append_update(command, query);
        break;
    case SL_INSERT:
        ok = ok && append_insert(command, query);
        break;
    default:
        ok = ok && append_body(command, query);
    }
    if (one)
        ok = ok && BSON_APPEND_INT64(command, "limit", 1) &&
             BSON_APPEND_BOOL(command, "singleBatch", true);
    if (query->operation == SL_MAP_REDUCE)
        ok = ok && BSON_APPEND_DOCUMENT_BEGIN(command, "out", &out) &&
             BSON_APPEND_INT32(&out, "inline", 1) && bson_append_document_end(command, &out);
    if (ok && append_options(command, query))
        return command;
    bson_destroy(command);
    return NULL;
}

/* ---- runners ---- */

/* The driver's read preference of that mode; destroy it. NULL for NULL. */
static mongoc_read_prefs_t *read_preference_of(const char *name) {
    for (int mode = MONGOC_READ_PRIMARY; name && mode <= MONGOC_READ_NEAREST; mode++) {
        if (strcmp(name, sl_read_mode_name((mongoc_read_mode_t)mode)) == 0)
            return mongoc_read_prefs_new((mongoc_read_mode_t)mode);
    }
    return NULL;
}

/* Without causal consistency, with which a read from a secondary waits until the secondary has
 * reached the operation time of the previous operation. */
static mongoc_client_session_t *start_session(mongoc_client_t *client) {
    bson_error_t ignored;
    mongoc_session_opt_t *options = mongoc_session_opts_new();
    mongoc_session_opts_set_causal_consistency(options, false);
    mongoc_client_session_t *session = mongoc_client_start_session(client, options, &ignored);
    mongoc_session_opts_destroy(options);
    return session;
}

/* The parameter that has no values to draw from; NULL: each has some. */
static const sl_parameter *without_values(const sl_query *query) {
    for (size_t i = 0; i < query->parameter_count; i++) {
        const sl_parameter *one = &query->parameters[i];
        if ((one->draw == SL_DRAW_LIST || one->draw == SL_DRAW_SAMPLE) &&
            (!one->values || bson_count_keys(one->values) == 0))
            return one;
    }
    return NULL;
}

bool sl_query_uses_limit(const sl_query *query) {
    return sl_has_parameter(query->body, SL_LIMIT_PARAMETER) ||
           (query->pipeline && sl_has_parameter(query->pipeline, SL_LIMIT_PARAMETER));
}

bool sl_runner_init(sl_runner *runner, sl_connection *connection, mongoc_client_t *client,
                    const sl_query *query, const sl_query_target *target, uint64_t number,
                    uint64_t clients, sl_error *error) {
    *runner = (sl_runner){.query = query, .target = target, .client = client};
    bson_init(&runner->values);
    bson_init(&runner->filled);
    bson_init(&runner->options);
    if (!sl_value_generator_init(&runner->generator, query, target->seed, number, clients,
                                 target->limit)) {
        const sl_parameter *empty = without_values(query);
        return empty ? sl_error_set(error, SL_EXIT_CLUSTER,
                                    "%s: the parameter %s has no values to draw from: give it "
                                    "values, or sample a field that the documents have",
                                    query->name, empty->name)
                     : sl_error_memory(error, "preparing a query");
    }
    if (!sl_operation_writes(query->operation)) /* the server refuses it with writes */
        runner->preference = read_preference_of(target->read_preference ? target->read_preference
                                                                        : query->read_preference);
    runner->session = start_session(client);
    runner->exchange = sl_exchange_create(connection, client);
    runner->command = command_of(query, target->collection);
    runner->has_parameters = runner->command && sl_has_parameter(runner->command, NULL);
    if (target->limit == 0 && runner->command &&
        sl_has_parameter(runner->command, SL_LIMIT_PARAMETER))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "%s: give --limit: the query uses the parameter "
                            "\"limit\", and its suite sets no default",
                            query->name);
    return runner->command || sl_error_memory(error, "preparing a query");
}

void sl_runner_clear(sl_runner *runner) {
    sl_value_generator_clear(&runner->generator);
    sl_exchange_destroy(runner->exchange);
    if (runner->session)
        mongoc_client_session_destroy(runner->session);
    mongoc_read_prefs_destroy(runner->preference);
    bson_destroy(runner->command);
    bson_destroy(&runner->values);
    bson_destroy(&runner->filled);
    bson_destroy(&runner->options);
}

bool sl_runner_prepare(sl_runner *runner) {
    if (!runner->has_parameters)
        return true;
    bson_reinit(&runner->values);
    bson_reinit(&runner->filled);
    return sl_value_generator_next(&runner->generator, &runner->values) &&
           sl_parameters_fill(runner->command, &runner->values, &runner->filled);
}

const bson_t *sl_runner_command(const sl_runner *runner) {
    return runner->has_parameters ? &runner->filled : runner->command;
}

/* ---- the answer ---- */

typedef struct answer_reader {
    sl_found_document *each;
    void *context;
    sl_result *result;
} answer_reader;

/* False: no more documents are wanted. */
static bool read_document(const answer_reader *reader, const bson_t *document) {
    reader->result->documents++;
    reader->result->bytes += document->len;
    return !reader->each || reader->each(reader->context, document);
}

/* Reads the elements of the array at `path` of a reply. An element that is not a document becomes
 * {value: element}. False: there is no array. */
static bool read_array(const answer_reader *reader, const bson_t *reply, const char *path) {
    bson_iter_t array, item;
    if (!sl_look_find(reply, path, &array) || !BSON_ITER_HOLDS_ARRAY(&array) ||
        !bson_iter_recurse(&array, &item))
        return false;
    for (bool more = true; more && bson_iter_next(&item);) {
        bson_t document;
        if (sl_document_at(&item, &document)) {
            more = read_document(reader, &document);
        } else {
            bson_init(&document);
            bson_append_iter(&document, "value", -1, &item);
            more = read_document(reader, &document);
            bson_destroy(&document);
        }
    }
    return true;
}

/* The answer of a count or a write is {n: number}. False: there is no such number, or another one
 * than that of the only document that an insert has. */
static bool read_number(const answer_reader *reader, const bson_t *reply, bool insert) {
    const double n = sl_look_amount(reply, "n", -1);
    const int64_t number = n >= 0 && n < 0x1p63 ? (int64_t)n : -1;
    bson_t document = BSON_INITIALIZER;
    if (number < 0 || n > (double)number || (insert && number != 1))
        return false;
    BSON_APPEND_INT64(&document, "n", number);
    read_document(reader, &document);
    reader->result->documents = (uint64_t)number;
    bson_destroy(&document);
    return true;
}

/* Sets the error and the result for an operation that failed in the driver. The next operation
 * selects a server again, since this one may have failed. Returns false. */
static bool driver_failed(sl_runner *runner, const bson_error_t *wrong, sl_result *result,
                          sl_error *error) {
    runner->selected_at = 0;
    runner->direct = false;
    result->code = wrong->code ? (int32_t)wrong->code : -1;
    return sl_error_from_driver(error, runner->query->name, wrong);
}

/* Reads a cursor that has more than its first batch. Takes ownership of the reply. */
static bool read_cursor(sl_runner *runner, const answer_reader *reader, bson_t *reply,
                        sl_error *error) {
    bson_error_t wrong;
    const bson_t *document;
    mongoc_cursor_t *cursor =
        mongoc_cursor_new_from_command_reply_with_opts(runner->client, reply, &runner->options);
    sl_cursor_reading reading = {.cursor = cursor};
    while (sl_cursor_next(&reading, &document) && read_document(reader, document))
        continue;
    bool ok =
        !sl_cursor_failed(&reading, &wrong) || driver_failed(runner, &wrong, reader->result, error);
    mongoc_cursor_destroy(cursor);
    return ok;
}

/* Does the reply, whose `ok` is 1, contain a write error? Sets result->code and `error`. */
static bool write_failed(const sl_runner *runner, const bson_t *reply, sl_result *result,
                         sl_error *error) {
    const char *reason;
    int32_t code = sl_hidden_failure(reply, &reason);
    if (code < 0)
        return false;
    result->code = code ? code : -1;
    sl_error_set(error, SL_EXIT_CLUSTER, "%s: %s", runner->query->name, reason);
    return true;
}

/* Takes ownership of the reply. */
static bool read_reply(sl_runner *runner, const answer_reader *reader, bson_t *reply,
                       sl_error *error) {
    bool read = true, failed = false;
    switch (runner->query->operation) {
    case SL_AGGREGATE:
    case SL_FIND:
    case SL_FIND_ONE:
        if (sl_look_int64(reply, "cursor.id", 0) != 0) {
            bson_t own;
            bson_copy_to(reply, &own); /* the reply may be a view */
            bson_destroy(reply);
            return read_cursor(runner, reader, &own, error);
        }
        read = read_array(reader, reply, "cursor.firstBatch");
        break;
    case SL_COUNT:
        read = read_number(reader, reply, false);
        break;
    case SL_DISTINCT:
        read = read_array(reader, reply, "values");
        break;
    case SL_MAP_REDUCE:
        read_array(reader, reply, "results");
        break;
    default:
        failed = write_failed(runner, reply, reader->result, error);
        read = failed || read_number(reader, reply, runner->query->operation == SL_INSERT);
    }
    bson_destroy(reply);
    if (!read) {
        reader->result->code = -1;
        sl_error_set(error, SL_EXIT_CLUSTER, "%s: the server's reply contains no answer",
                     runner->query->name);
    }
    return read && !failed;
}

/* Selects a server by the read preference, unless the selection is recent. */
static bool select_server(sl_runner *runner, bool writes, bson_error_t *wrong) {
    int64_t now = sl_clock_ns();
    if (runner->selected_at && now - runner->selected_at < SELECTION_NS)
        return true;
    mongoc_server_description_t *server =
        mongoc_client_select_server(runner->client, writes, runner->preference, wrong);
    if (!server)
        return false;
    bson_t concern;
    bool has_concern = sl_look_inside(runner->query->options, "readConcern", &concern);
    bson_reinit(&runner->options);
    BSON_APPEND_INT32(&runner->options, "serverId", (int32_t)mongoc_server_description_id(server));
    if (has_concern)
        BSON_APPEND_DOCUMENT(&runner->options, "readConcern", &concern);
    if (runner->exchange && !writes) {
        const sl_exchange_target target = {.server = server,
                                           .database = runner->target->database,
                                           .preference = runner->preference,
                                           .session = runner->session,
                                           .read_concern = has_concern ? &concern : NULL};
        sl_exchange_select(runner->exchange, &target, runner->client);
    }
    mongoc_server_description_destroy(server);
    runner->selected_at = now;
    runner->direct = false;
    return !runner->session ||
           mongoc_client_session_append(runner->session, &runner->options, wrong);
}

/* Sends a read without the driver. `*ok`: the operation succeeded, otherwise `wrong` is set. False
 * when the driver has to send the read. */
static bool run_directly(sl_runner *runner, const bson_t *command, bson_t *reply, bool *ok,
                         bson_error_t *wrong) {
    if (!runner->direct)
        return false;
    runner->direct = sl_exchange_run(runner->exchange, command, reply);
    if (!runner->direct)
        return false;
    *ok = sl_look_flag(reply, "ok");
    if (*ok)
        return true;
    int32_t code = (int32_t)sl_look_int64(reply, "code", 0);
    const char *message = sl_look_text(reply, "errmsg");
    bson_set_error(wrong, MONGOC_ERROR_SERVER, (uint32_t)code, "%s",
                   message ? message : "the command failed");
    return !sl_code_is_transient(code) || code == CODE_MAX_TIME_EXPIRED;
}

/* Sends the command through the driver. `reply` is always initialised. */
static bool run_by_driver(sl_runner *runner, const bson_t *command, bool writes, bson_t *reply,
                          bson_error_t *wrong) {
    if (writes)
        return mongoc_client_write_command_with_opts(runner->client, runner->target->database,
                                                     command, &runner->options, reply, wrong);
    bool ok =
        mongoc_client_read_command_with_opts(runner->client, runner->target->database, command,
                                             runner->preference, &runner->options, reply, wrong);
    runner->direct = ok && runner->exchange;
    return ok;
}

bool sl_runner_run(sl_runner *runner, sl_found_document *each, void *context, sl_result *result,
                   sl_error *error) {
    *result = (sl_result){0};
    bool ok, writes = sl_operation_writes(runner->query->operation);
    bson_error_t wrong = {0};
    bson_t reply;
    if (!select_server(runner, writes, &wrong))
        return driver_failed(runner, &wrong, result, error);
    const bson_t *command = sl_runner_command(runner);
    if (!run_directly(runner, command, &reply, &ok, &wrong))
        ok = run_by_driver(runner, command, writes, &reply, &wrong);
    const answer_reader reader = {each, context, result};
    if (ok)
        return read_reply(runner, &reader, &reply, error);
    driver_failed(runner, &wrong, result, error);
    bson_destroy(&reply);
    return false;
}

/* ---- sampled parameters ---- */

typedef struct sampled {
    bson_t *values;
    uint32_t count;
    uint64_t asked; /* documents that may follow */
    bool too_large;
} sampled;

/* A server may send more than it was asked for. */
static bool add_sampled(void *context, const bson_t *document) {
    sampled *so_far = context;
    bson_iter_t iter;
    char room[SL_ARRAY_KEY_ROOM];
    if (bson_iter_init_find(&iter, document, "v"))
        so_far->too_large =
            (uint64_t)so_far->values->len + document->len > SL_RESULT_BYTES_MAX ||
            !bson_append_iter(so_far->values, sl_array_key(so_far->count++, room), -1, &iter);
    return !so_far->too_large && --so_far->asked > 0;
}

static bool sample_one(sl_parameter *parameter, sl_connection *connection, mongoc_client_t *client,
                       const sl_query_target *target, sl_error *error) {
    char *path = bson_strdup_printf("$%s", parameter->field);
    sl_query query = {.name = parameter->field,
                      .operation = SL_AGGREGATE,
                      .body = bson_new(),
                      .options = bson_new()};
    query.pipeline =
        BCON_NEW("0", "{", "$sample", "{", "size", BCON_INT64((int64_t)parameter->count), "}", "}",
                 "1", "{", "$project", "{", "_id", BCON_INT32(0), "v", BCON_UTF8(path), "}", "}",
                 "2", "{", "$match", "{", "v", "{", "$exists", BCON_BOOL(true), "}", "}", "}");
    sl_runner runner;
    sl_result result;
    bson_destroy(parameter->values);
    parameter->values = bson_new();
    sampled sample = {.values = parameter->values, .asked = parameter->count};
    bool ok = sl_runner_init(&runner, connection, client, &query, target, 0, 1, error) &&
              sl_runner_run(&runner, add_sampled, &sample, &result, error);
    sl_runner_clear(&runner);
    bson_destroy(query.pipeline);
    bson_destroy(query.body);
    bson_destroy(query.options);
    bson_free(path);
    if (ok && sample.too_large)
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "the values of the field %s of %s.%s that a parameter samples are more "
                            "than 64 MiB: give the sample a smaller `count`",
                            parameter->field, target->database, target->collection);
    return ok && (!bson_empty(parameter->values) ||
                  sl_error_set(error, SL_EXIT_CLUSTER,
                               "no document of %s.%s has the field %s, "
                               "whose values a parameter samples",
                               target->database, target->collection, parameter->field));
}

bool sl_query_sample(sl_connection *connection, sl_query *query, const sl_query_target *target,
                     sl_error *error) {
    mongoc_client_t *client = sl_connection_borrow(connection);
    bool ok = true;
    for (size_t i = 0; ok && i < query->parameter_count; i++) {
        if (query->parameters[i].draw == SL_DRAW_SAMPLE)
            ok = sample_one(&query->parameters[i], connection, client, target, error);
    }
    sl_connection_return(connection, client);
    return ok;
}
