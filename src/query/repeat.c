/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a query repeatedly on one connection. Each run is timed from sending the command to the last
 * document of the last batch. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bson/bson_lookup.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/process.h"

#include "operation.h"

#define CODE_NAMESPACE_NOT_FOUND 26
#define CODE_COMMAND_NOT_FOUND 59
#define CODE_COMMAND_NOT_SUPPORTED 115

/* The documents of one run's answer, up to SL_RESULT_BYTES_MAX. */
typedef struct collected {
    bson_t *documents;
    uint32_t count;
    bool truncated;
} collected;

static void collect(void *context, const bson_t *document) {
    collected *so_far = context;
    char room[SL_ARRAY_KEY_ROOM];
    const char *key = sl_array_key(so_far->count++, room);
    so_far->truncated = so_far->truncated ||
                        (uint64_t)so_far->documents->len + document->len > SL_RESULT_BYTES_MAX ||
                        !BSON_APPEND_DOCUMENT(so_far->documents, key, document);
}

/* The state of all runs of a query. */
typedef struct session {
    sl_connection *connection;
    sl_runner runner;
    sl_query_target target;
    const sl_query *query;
    const sl_query_options *options;
} session;

static bool run_once(session *s, collected *answer, sl_result *result, double *milliseconds,
                     sl_error *error) {
    bson_t statistic = BSON_INITIALIZER;
    bool ok;
    int64_t start = sl_clock_ns();
    if (s->query->statistic)
        ok = sl_statistic_run(s->connection, s->query, &s->target, s->options->documents,
                              &statistic, result, error);
    else
        ok = sl_runner_run(&s->runner, collect, answer, result, error);
    *milliseconds = (double)(sl_clock_ns() - start) / 1e6;
    if (ok && s->query->statistic && !bson_empty(&statistic))
        collect(answer, &statistic);
    bson_destroy(&statistic);
    return ok;
}

static void check_answer(sl_query_run *run, const sl_query *query, const bson_t *expected) {
    char hash[SL_ANSWER_HASH_ROOM];
    if (!expected && !query->expected_hash)
        return;
    run->answer = SL_ANSWER_OK;
    if (run->truncated) {
        run->answer = SL_ANSWER_WRONG;
        run->differences.count = 1;
        snprintf(run->differences.text[0], sizeof run->differences.text[0],
                 "the answer is larger than 64 MiB and cannot be compared");
    } else if (expected) {
        if (!sl_answer_compare(expected, run->documents, &run->differences))
            run->answer = SL_ANSWER_WRONG;
    } else if (strcmp(sl_answer_hash(run->documents, hash), query->expected_hash) != 0) {
        run->answer = SL_ANSWER_WRONG;
        run->differences.count = 1;
        snprintf(run->differences.text[0], sizeof run->differences.text[0],
                 "the answer's hash is %s, expected %.40s", hash, query->expected_hash);
    }
}

static bool run_cold_command(const char *command, sl_error *error) {
    int status = 0;
    pid_t child = command ? sl_process_start_shell(command, false) : 0;
    if (child < 0)
        return sl_error_set(error, SL_EXIT_USAGE, "--cold: no process can be started");
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0 ||
           sl_error_set(error, SL_EXIT_USAGE, "--cold: the command failed (status %d)", status);
}

/* Does the warm-up runs and the timed runs. The first wrong answer is kept in `run`. */
static bool run_all(session *s, sl_query_run *run) {
    const sl_query_options *options = s->options;
    unsigned runs = options->warm_up + options->repeat;
    for (unsigned i = 0; i < runs; i++) {
        if (options->stop && atomic_load(options->stop))
            return sl_error_set(&run->error, SL_EXIT_INTERRUPTED, "interrupted");
        if (options->progress)
            options->progress(options->context, i + 1, runs);
        collected answer = {.documents = bson_new()};
        sl_result result = {0};
        double milliseconds;
        if (!run_cold_command(options->cold, &run->error) ||
            !(sl_runner_prepare(&s->runner) || sl_error_memory(&run->error, "preparing a query")) ||
            !run_once(s, &answer, &result, &milliseconds, &run->error)) {
            bool unsupported =
                result.code == CODE_COMMAND_NOT_FOUND || result.code == CODE_COMMAND_NOT_SUPPORTED;
            run->answer = unsupported ? SL_ANSWER_UNSUPPORTED : SL_ANSWER_NONE;
            bson_destroy(answer.documents);
            return false;
        }
        if (i < options->warm_up || run->answer == SL_ANSWER_WRONG) {
            bson_destroy(answer.documents);
        } else {
            bson_destroy(run->documents);
            run->documents = answer.documents;
            run->document_count = answer.count;
            run->bytes = result.bytes;
            run->truncated = answer.truncated;
            check_answer(run, s->query, options->expected);
        }
        if (i >= options->warm_up)
            run->timings[run->count++] = milliseconds;
    }
    return true;
}

bool sl_query_execute(sl_connection *connection, sl_query *query, const sl_query_options *options,
                      sl_query_run *run) {
    *run = (sl_query_run){.answer = SL_ANSWER_NOT_CHECKED};
    run->timings = malloc((size_t)2 * options->repeat * sizeof *run->timings);
    run->documents = bson_new();
    if (!run->timings)
        return sl_error_memory(&run->error, "timing a query");
    session s = {.connection = connection,
                 .query = query,
                 .options = options,
                 .target = {.database = options->database,
                            .collection = options->collection,
                            .read_preference = options->read_preference,
                            .limit = options->limit,
                            .seed = options->seed}};
    if (!sl_query_sample(connection, query, &s.target, &run->error)) {
        run->answer = SL_ANSWER_NONE;
        return false;
    }
    mongoc_client_t *client = sl_connection_borrow(connection);
    bool ok = sl_runner_init(&s.runner, connection, client, query, &s.target, 0, 1, &run->error) &&
              (!options->explain || sl_explain_query(&s.runner, options->documents, run)) &&
              run_all(&s, run);
    if (!ok && run->answer != SL_ANSWER_UNSUPPORTED)
        run->answer = SL_ANSWER_NONE;
    if (run->count > 0) {
        double *sorted = run->timings + options->repeat; /* `timings` keep their order */
        memcpy(sorted, run->timings, run->count * sizeof *sorted);
        run->sample = sl_sample_of(sorted, run->count);
    }
    sl_runner_clear(&s.runner);
    sl_connection_return(connection, client);
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
    bson_t *command =
        BCON_NEW("aggregate", BCON_UTF8(collection), "pipeline", "[", "{", "$collStats", "{",
                 "count", "{", "}", "}", "}", "{", "$group", "{", "_id", BCON_NULL, "n", "{",
                 "$sum", "$count", "}", "}", "}", "]", "cursor", "{", "}");
    bson_t reply;
    bson_iter_t found;
    int32_t code;
    sl_error failure = {0};
    bool ok = sl_connection_command(connection, database, command, &reply, &code, &failure);
    if (ok && sl_look_find(&reply, "cursor.firstBatch.0.n", &found)) {
        *exists = true;
        *count = (uint64_t)bson_iter_as_int64(&found);
    }
    bson_destroy(&reply);
    bson_destroy(command);
    if (!ok && code != CODE_NAMESPACE_NOT_FOUND)
        return sl_error_set(error, failure.code, "counting documents: " SL_LINES, failure.message);
    return true;
}
