/* SPDX-License-Identifier: Apache-2.0 */
/* From a query to a command, and from a reply to documents.
 *
 * The driver picks the server (by read preference) before the command is sent, because the rest of a
 * cursor has to come from the same one, under the same session. Nothing is retried: an operation that
 * failed is counted as failed. */
#include "operation.h"

#include <string.h>

/* ---- the command ---- */

/* How the fields of a query's body are called in the command, where that is not their own name. */
static const char *field_name(sl_operation operation, const char *key) {
    bool filters_by_query =
        operation == SL_COUNT || operation == SL_DISTINCT || operation == SL_MAP_REDUCE;
    return filters_by_query && strcmp(key, "filter") == 0 ? "query" : key;
}

static bool append_body(bson_t *command, const sl_query *query) {
    bson_iter_t iter;
    bool ok = bson_iter_init(&iter, query->body);
    while (ok && bson_iter_next(&iter))
        ok = bson_append_iter(command, field_name(query->operation, bson_iter_key(&iter)), -1,
                              &iter);
    return ok;
}

/* {updates: [{q: filter, u: update, upsert, multi}]} */
static bool append_update(bson_t *command, const sl_query *query) {
    static const char *const names[][2] = {
        {"filter", "q"}, {"update", "u"}, {"upsert", "upsert"}, {"multi", "multi"}};
    bson_t list, one, all = BSON_INITIALIZER;
    bool ok = BSON_APPEND_ARRAY_BEGIN(command, "updates", &list) &&
              BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &one);
    for (size_t i = 0; ok && i < sizeof names / sizeof names[0]; i++) {
        bson_iter_t iter;
        if (bson_iter_init_find(&iter, query->body, names[i][0]))
            ok = bson_append_iter(&one, names[i][1], -1, &iter);
        else if (i == 0)
            ok = BSON_APPEND_DOCUMENT(&one, "q", &all);
    }
    bson_destroy(&all);
    return ok && bson_append_document_end(&list, &one) && bson_append_array_end(command, &list);
}

static bool append_insert(bson_t *command, const sl_query *query) {
    bson_t list;
    bson_iter_t iter;
    return BSON_APPEND_ARRAY_BEGIN(command, "documents", &list) &&
           bson_iter_init_find(&iter, query->body, "document") &&
           bson_append_iter(&list, "0", -1, &iter) && bson_append_array_end(command, &list);
}

/* Options go into the command; an aggregate has its batch size under "cursor". */
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
        if (!cursor || strcmp(bson_iter_key(&iter), "batchSize") != 0)
            ok = bson_append_iter(command, bson_iter_key(&iter), -1, &iter);
    }
    return ok;
}

static bson_t *command_of(const sl_query *query, const char *collection) {
    static const char *const names[SL_OPERATIONS] = {
        "aggregate", "find", "find", "count", "distinct", "mapReduce", "update", "insert"};
    bson_t *command = bson_new();
    bool ok = BSON_APPEND_UTF8(command, names[query->operation], collection);
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
    if (query->operation == SL_FIND_ONE)
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

mongoc_read_prefs_t *sl_read_preference(const char *name) {
    static const struct {
        const char *name;
        mongoc_read_mode_t mode;
    } modes[] = {
        {"primary", MONGOC_READ_PRIMARY},
        {"primaryPreferred", MONGOC_READ_PRIMARY_PREFERRED},
        {"secondary", MONGOC_READ_SECONDARY},
        {"secondaryPreferred", MONGOC_READ_SECONDARY_PREFERRED},
        {"nearest", MONGOC_READ_NEAREST},
    };
    for (size_t i = 0; name && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(name, modes[i].name) == 0)
            return mongoc_read_prefs_new(modes[i].mode);
    }
    return NULL;
}

/* Without causal consistency, which would make each read wait for the one before. */
static mongoc_client_session_t *start_session(mongoc_client_t *client) {
    bson_error_t ignored;
    mongoc_session_opt_t *options = mongoc_session_opts_new();
    mongoc_session_opts_set_causal_consistency(options, false);
    mongoc_client_session_t *session = mongoc_client_start_session(client, options, &ignored);
    mongoc_session_opts_destroy(options);
    return session;
}

bool sl_runner_init(sl_runner *runner, mongoc_client_t *client, const sl_query *query,
                    const sl_place *place, uint64_t number, uint64_t clients, sl_error *error) {
    *runner = (sl_runner){.query = query, .place = place, .client = client};
    bson_init(&runner->values);
    bson_init(&runner->filled);
    if (!sl_drawer_init(&runner->drawer, query, place->seed, number, clients, place->limit))
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "%s: a parameter has no values to draw from, or memory ran out",
                            query->name);
    runner->preference =
        sl_read_preference(place->read_preference ? place->read_preference : query->read_preference);
    runner->session = start_session(client);
    runner->command = command_of(query, place->collection);
    runner->has_parameters = runner->command && sl_parameters_in(runner->command, NULL);
    if (place->limit == 0 && runner->command &&
        sl_parameters_in(runner->command, SL_LIMIT_PARAMETER))
        return sl_error_set(error, SL_EXIT_USAGE, "%s: give --limit: the query uses the parameter "
                            "\"limit\", and its suite sets no default", query->name);
    return runner->command || sl_error_memory(error, "preparing a query");
}

void sl_runner_clear(sl_runner *runner) {
    sl_drawer_clear(&runner->drawer);
    if (runner->session)
        mongoc_client_session_destroy(runner->session);
    mongoc_read_prefs_destroy(runner->preference);
    bson_destroy(runner->command);
    bson_destroy(&runner->values);
    bson_destroy(&runner->filled);
}

bool sl_runner_prepare(sl_runner *runner) {
    if (!runner->has_parameters)
        return true;
    bson_reinit(&runner->values);
    bson_reinit(&runner->filled);
    return sl_drawer_draw(&runner->drawer, &runner->values) &&
           sl_parameters_fill(runner->command, &runner->values, &runner->filled);
}

const bson_t *sl_runner_command(const sl_runner *runner) {
    return runner->has_parameters ? &runner->filled : runner->command;
}

/* ---- the answer ---- */

typedef struct answer_reader {
    sl_document_function *each;
    void *context;
    sl_result *result;
} answer_reader;

static void take_document(const answer_reader *reader, const bson_t *document) {
    reader->result->documents++;
    reader->result->bytes += document->len;
    if (reader->each)
        reader->each(reader->context, document);
}

/* The documents of the array at `path` of a reply; values that are none become {value: ...}. */
static void take_array(const answer_reader *reader, const bson_t *reply, const char *path) {
    bson_iter_t iter, array, item;
    if (!bson_iter_init(&iter, reply) || !bson_iter_find_descendant(&iter, path, &array) ||
        !BSON_ITER_HOLDS_ARRAY(&array) || !bson_iter_recurse(&array, &item))
        return;
    while (bson_iter_next(&item)) {
        bson_t document;
        if (BSON_ITER_HOLDS_DOCUMENT(&item)) {
            uint32_t length;
            const uint8_t *bytes;
            bson_iter_document(&item, &length, &bytes);
            if (bson_init_static(&document, bytes, length))
                take_document(reader, &document);
        } else {
            bson_init(&document);
            bson_append_iter(&document, "value", -1, &item);
            take_document(reader, &document);
            bson_destroy(&document);
        }
    }
}

static int64_t number_in(const bson_t *reply, const char *key) {
    bson_iter_t iter;
    return bson_iter_init_find(&iter, reply, key) ? bson_iter_as_int64(&iter) : 0;
}

/* {n: count} as the answer of a count or a write. */
static void take_number(const answer_reader *reader, int64_t number) {
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_INT64(&document, "n", number);
    take_document(reader, &document);
    reader->result->documents = number > 0 ? (uint64_t)number : 0;
    bson_destroy(&document);
}

static bool fail(const sl_runner *runner, const bson_error_t *wrong, sl_result *result,
                 sl_error *error) {
    result->code = wrong->code ? (int32_t)wrong->code : -1;
    return sl_error_from_driver(error, runner->query->name, wrong);
}

/* Reads a cursor that has more than its first batch. Takes over the reply. */
static bool take_cursor(const sl_runner *runner, const answer_reader *reader, bson_t *reply,
                        const bson_t *options, sl_error *error) {
    bson_error_t wrong;
    const bson_t *document;
    mongoc_cursor_t *cursor =
        mongoc_cursor_new_from_command_reply_with_opts(runner->client, reply, options);
    while (mongoc_cursor_next(cursor, &document))
        take_document(reader, document);
    bool ok = !mongoc_cursor_error(cursor, &wrong) ||
              fail(runner, &wrong, reader->result, error);
    mongoc_cursor_destroy(cursor);
    return ok;
}

/* A write may be acknowledged and still have failed. */
static bool write_failed(const sl_runner *runner, const bson_t *reply, sl_result *result,
                         sl_error *error) {
    static const char *const places[][2] = {
        {"writeErrors.0.code", "writeErrors.0.errmsg"},
        {"writeConcernError.code", "writeConcernError.errmsg"}};
    for (size_t i = 0; i < 2; i++) {
        bson_iter_t iter, code, message;
        if (!bson_iter_init(&iter, reply) || !bson_iter_find_descendant(&iter, places[i][0], &code))
            continue;
        bool worded = bson_iter_init(&iter, reply) &&
                      bson_iter_find_descendant(&iter, places[i][1], &message) &&
                      BSON_ITER_HOLDS_UTF8(&message);
        result->code = (int32_t)bson_iter_as_int64(&code);
        sl_error_set(error, SL_EXIT_CLUSTER, "%s: %s", runner->query->name,
                     worded ? bson_iter_utf8(&message, NULL) : "a write failed");
        return true;
    }
    return false;
}

static bool take_reply(const sl_runner *runner, const answer_reader *reader, bson_t *reply,
                       const bson_t *options, sl_error *error) {
    bson_iter_t iter, id;
    switch (runner->query->operation) {
    case SL_AGGREGATE:
    case SL_FIND:
    case SL_FIND_ONE:
        if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "cursor.id", &id) &&
            bson_iter_as_int64(&id) != 0)
            return take_cursor(runner, reader, reply, options, error);
        take_array(reader, reply, "cursor.firstBatch");
        break;
    case SL_COUNT:
        take_number(reader, number_in(reply, "n"));
        break;
    case SL_DISTINCT:
        take_array(reader, reply, "values");
        break;
    case SL_MAP_REDUCE:
        take_array(reader, reply, "results");
        break;
    default:
        if (write_failed(runner, reply, reader->result, error)) {
            bson_destroy(reply);
            return false;
        }
        take_number(reader, number_in(reply, "n"));
    }
    bson_destroy(reply);
    return true;
}

bool sl_runner_run(sl_runner *runner, sl_document_function *each, void *context, sl_result *result,
                   sl_error *error) {
    *result = (sl_result){0};
    bool writes = sl_operation_writes(runner->query->operation);
    bson_error_t wrong = {0};
    bson_t reply, options = BSON_INITIALIZER;
    mongoc_server_description_t *server =
        mongoc_client_select_server(runner->client, writes, runner->preference, &wrong);
    if (!server)
        return fail(runner, &wrong, result, error);
    BSON_APPEND_INT32(&options, "serverId", (int32_t)mongoc_server_description_id(server));
    mongoc_server_description_destroy(server);
    if (runner->session)
        mongoc_client_session_append(runner->session, &options, &wrong);
    const bson_t *command = sl_runner_command(runner);
    bool ok = writes ? mongoc_client_write_command_with_opts(runner->client, runner->place->database,
                                                             command, &options, &reply, &wrong)
                     : mongoc_client_read_command_with_opts(runner->client, runner->place->database,
                                                            command, runner->preference, &options,
                                                            &reply, &wrong);
    const answer_reader reader = {each, context, result};
    if (ok) {
        ok = take_reply(runner, &reader, &reply, &options, error);
    } else {
        fail(runner, &wrong, result, error);
        bson_destroy(&reply);
    }
    bson_destroy(&options);
    return ok;
}

/* ---- sampled parameters ---- */

typedef struct sampled {
    bson_t *values;
    uint32_t count;
} sampled;

static void keep_value(void *context, const bson_t *document) {
    sampled *so_far = context;
    bson_iter_t iter;
    char room[16];
    const char *key;
    if (!bson_iter_init_find(&iter, document, "v"))
        return;
    bson_uint32_to_string(so_far->count++, &key, room, sizeof room);
    bson_append_iter(so_far->values, key, -1, &iter);
}

static bool sample_one(sl_parameter *parameter, mongoc_client_t *client, const sl_place *place,
                       sl_error *error) {
    char *path = bson_strdup_printf("$%s", parameter->field);
    sl_query query = {.name = parameter->field, .operation = SL_AGGREGATE, .body = bson_new(),
                      .options = bson_new()};
    query.pipeline = BCON_NEW("0", "{", "$sample", "{", "size",
                              BCON_INT64((int64_t)parameter->count), "}", "}", "1", "{", "$project",
                              "{", "_id", BCON_INT32(0), "v", BCON_UTF8(path), "}", "}", "2", "{",
                              "$match", "{", "v", "{", "$exists", BCON_BOOL(true), "}", "}", "}");
    sl_runner runner;
    sl_result result;
    bson_destroy(parameter->values);
    parameter->values = bson_new();
    sampled sample = {parameter->values, 0};
    bool ok = sl_runner_init(&runner, client, &query, place, 0, 1, error) &&
              sl_runner_run(&runner, keep_value, &sample, &result, error);
    sl_runner_clear(&runner);
    bson_destroy(query.pipeline);
    bson_destroy(query.body);
    bson_destroy(query.options);
    bson_free(path);
    return ok && (!bson_empty(parameter->values) ||
                  sl_error_set(error, SL_EXIT_CLUSTER, "no document of %s.%s has a field %s, of "
                               "which values were to be sampled", place->database,
                               place->collection, parameter->field));
}

bool sl_query_sample(sl_connection *connection, sl_query *query, const sl_place *place,
                     sl_error *error) {
    mongoc_client_t *client = sl_connection_borrow(connection);
    bool ok = true;
    for (size_t i = 0; ok && i < query->parameter_count; i++) {
        if (query->parameters[i].draw == SL_DRAW_SAMPLE)
            ok = sample_one(&query->parameters[i], client, place, error);
    }
    sl_connection_return(connection, client);
    return ok;
}
