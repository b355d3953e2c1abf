/* SPDX-License-Identifier: Apache-2.0 */
/* Running a query: the same aggregation over and over on one connection, each run timed from the
 * sending of the command to the last document of the last batch. */
#include <shardload/query.h>

#include <stdlib.h>
#include <string.h>

#include <shardload/clock.h>

#define CODE_NAMESPACE_NOT_FOUND 26

const char *sl_answer_text(sl_answer answer) {
    static const char *const texts[] = {"not checked", "ok", "WRONG", "FAILED"};
    return texts[answer];
}

/* What stays the same for all runs of a query. */
typedef struct target {
    mongoc_client_t *client;
    mongoc_collection_t *collection;
    mongoc_read_prefs_t *preference; /* NULL for what the URI says */
    const sl_query *query;
} target;

static mongoc_read_prefs_t *preference_named(const char *name) {
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

/* Reads all documents of a cursor into the array `documents`, as far as they fit. */
static void drain(mongoc_cursor_t *cursor, bson_t *documents, uint64_t *count, bool *truncated) {
    const bson_t *document;
    *count = 0;
    *truncated = false;
    while (mongoc_cursor_next(cursor, &document)) {
        char room[16];
        const char *key;
        bson_uint32_to_string((uint32_t)*count, &key, room, sizeof room);
        *truncated = *truncated || (uint64_t)documents->len + document->len > SL_RESULT_BYTES_MAX ||
                     !BSON_APPEND_DOCUMENT(documents, key, document);
        ++*count;
    }
}

static bool run_once(const target *t, bson_t *documents, uint64_t *count, bool *truncated,
                     double *milliseconds, sl_error *error) {
    int64_t start = sl_clock_ns();
    mongoc_cursor_t *cursor = mongoc_collection_aggregate(
        t->collection, MONGOC_QUERY_NONE, t->query->pipeline, t->query->options, t->preference);
    drain(cursor, documents, count, truncated);
    *milliseconds = (double)(sl_clock_ns() - start) / 1e6;
    bson_error_t wrong;
    bool ok = !mongoc_cursor_error(cursor, &wrong);
    if (!ok)
        sl_error_from_driver(error, t->query->name, &wrong);
    mongoc_cursor_destroy(cursor);
    return ok;
}

static void check(sl_query_run *run, const bson_t *expected) {
    if (!expected)
        return;
    run->answer = SL_ANSWER_OK;
    if (run->truncated) {
        run->answer = SL_ANSWER_WRONG;
        run->differences.count = 1;
        snprintf(run->differences.text[0], sizeof run->differences.text[0],
                 "the answer is larger than 64 MiB, and no expected answer is");
    } else if (!sl_answer_compare(expected, run->documents, &run->differences)) {
        run->answer = SL_ANSWER_WRONG;
    }
}

/* The runs, warm-up first. A wrong answer stays the one that is kept and shown. */
static bool repeat(const target *t, const sl_query_options *options, sl_query_run *run) {
    unsigned runs = options->warm_up + options->repeat;
    for (unsigned i = 0; i < runs; i++) {
        if (options->progress)
            options->progress(options->context, i + 1, runs);
        bson_t *documents = bson_new();
        uint64_t count;
        bool truncated;
        double milliseconds;
        if (!run_once(t, documents, &count, &truncated, &milliseconds, &run->error)) {
            bson_destroy(documents);
            return false;
        }
        if (i < options->warm_up || run->answer == SL_ANSWER_WRONG) {
            bson_destroy(documents);
        } else {
            bson_destroy(run->documents);
            run->documents = documents;
            run->document_count = count;
            run->truncated = truncated;
            check(run, options->expected);
        }
        if (i >= options->warm_up)
            run->timings[run->count++] = milliseconds;
    }
    return true;
}

static bool explain(const target *t, const char *database, const char *collection,
                    sl_query_run *run) {
    bson_t command = BSON_INITIALIZER;
    bson_t cursor = BSON_INITIALIZER;
    bson_t reply;
    bson_error_t wrong;
    BSON_APPEND_UTF8(&command, "aggregate", collection);
    BSON_APPEND_ARRAY(&command, "pipeline", t->query->pipeline);
    BSON_APPEND_BOOL(&command, "explain", true);
    BSON_APPEND_DOCUMENT(&command, "cursor", &cursor);
    bson_concat(&command, t->query->options);
    bool ok = mongoc_client_read_command_with_opts(t->client, database, &command, t->preference,
                                                   NULL, &reply, &wrong);
    if (!ok)
        sl_error_from_driver(&run->error, t->query->name, &wrong);
    else if (!(run->explained = sl_explain_summary(&reply)))
        ok = sl_error_memory(&run->error, "explaining a query");
    bson_destroy(&reply);
    bson_destroy(&cursor);
    bson_destroy(&command);
    return ok;
}

bool sl_query_execute(sl_connection *connection, const sl_query *query,
                      const sl_query_options *options, sl_query_run *run) {
    *run = (sl_query_run){.answer = SL_ANSWER_NOT_CHECKED};
    run->timings = malloc((size_t)2 * options->repeat * sizeof *run->timings);
    run->documents = bson_new();
    if (!run->timings)
        return sl_error_memory(&run->error, "timing a query");
    target t = {
        .client = sl_connection_borrow(connection),
        .preference = preference_named(options->read_preference ? options->read_preference
                                                                : query->read_preference),
        .query = query,
    };
    t.collection = mongoc_client_get_collection(t.client, options->database, options->collection);
    bool ok = (!options->explain || explain(&t, options->database, options->collection, run)) &&
              repeat(&t, options, run);
    if (!ok)
        run->answer = SL_ANSWER_NONE;
    if (run->count > 0) {
        double *sorted = run->timings + options->repeat; /* the measured order is kept */
        memcpy(sorted, run->timings, run->count * sizeof *sorted);
        run->sample = sl_sample_of(sorted, run->count);
    }
    mongoc_collection_destroy(t.collection);
    mongoc_read_prefs_destroy(t.preference);
    sl_connection_return(connection, t.client);
    return ok;
}

void sl_query_run_clear(sl_query_run *run) {
    free(run->timings);
    bson_destroy(run->documents);
    bson_destroy(run->explained);
    *run = (sl_query_run){.answer = SL_ANSWER_NOT_CHECKED};
}

bool sl_query_count_documents(sl_connection *connection, const char *database,
                              const char *collection, uint64_t *count, bool *exists,
                              sl_error *error) {
    *count = 0;
    *exists = false;
    bson_t *pipeline =
        BCON_NEW("0", "{", "$collStats", "{", "count", "{", "}", "}", "}", "1", "{", "$group", "{",
                 "_id", BCON_NULL, "n", "{", "$sum", "$count", "}", "}", "}");
    mongoc_client_t *client = sl_connection_borrow(connection);
    mongoc_collection_t *handle = mongoc_client_get_collection(client, database, collection);
    mongoc_cursor_t *cursor =
        mongoc_collection_aggregate(handle, MONGOC_QUERY_NONE, pipeline, NULL, NULL);
    const bson_t *document;
    bson_iter_t found;
    if (mongoc_cursor_next(cursor, &document) && bson_iter_init_find(&found, document, "n")) {
        *exists = true;
        *count = (uint64_t)bson_iter_as_int64(&found);
    }
    bson_error_t wrong;
    bool ok = true;
    if (mongoc_cursor_error(cursor, &wrong) && wrong.code != CODE_NAMESPACE_NOT_FOUND)
        ok = sl_error_from_driver(error, "counting documents", &wrong);
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(handle);
    sl_connection_return(connection, client);
    bson_destroy(pipeline);
    return ok;
}
