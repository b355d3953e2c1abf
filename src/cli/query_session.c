/* SPDX-License-Identifier: Apache-2.0 */
/* `shardquery run`: suites and answers are opened, and the report is written; the table of the
 * options of shardquery. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "report/report.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/memory_stream.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/read_file.h"
#include "util/text.h"

#include "connection_string.h"
#include "query_session.h"

#define SUITE_BYTES_MAX ((size_t)16 << 20) /* of a suite that is read from standard input */

int sl_query_fail(sl_error *error) {
    sl_log_error(SL_LINES, error->message);
    return (int)error->code;
}

/* ---- suites ---- */

bool sl_query_selected(const sl_options *options, const sl_query *query) {
    size_t count = sl_option_list_count(options, "query");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sl_option_list_item(options, "query", i), query->name) == 0)
            return true;
    }
    return count == 0;
}

/* Reads the suite on standard input. */
static bool read_input(sl_suite **suite, sl_error *error) {
    sl_text text;
    if (!sl_read_stream(stdin, SUITE_BYTES_MAX, SL_EXIT_SOURCE, &text, error))
        return sl_error_prefix(error, "standard input");
    bool ok = sl_suite_parse(text.bytes, text.length, "standard input", suite, error);
    free((char *)text.bytes);
    return ok;
}

/* Makes a suite of the aggregation of --pipeline, which becomes a quoted scalar in YAML. */
static bool make_suite(const char *pipeline, sl_suite **suite, sl_error *error) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = sl_memory_stream(&text, &length);
    if (!out)
        return sl_error_memory(error, "reading --pipeline");
    fputs("name: command line\nqueries:\n  - name: pipeline\n    pipeline: '", out);
    for (const char *at = pipeline; *at; at++) {
        fputc(*at == '\n' ? ' ' : *at, out);
        if (*at == '\'') /* a quote within quotes is doubled */
            fputc('\'', out);
    }
    fputs("'\n", out);
    bool ok = fclose(out) == 0 ? sl_suite_parse(text, length, "--pipeline", suite, error)
                               : sl_error_memory(error, "reading --pipeline");
    free(text);
    return ok;
}

static bool open_suites(sl_query_session *s, sl_error *error) {
    size_t count = sl_options_argument_count(s->options);
    const char *pipeline = sl_option_string(s->options, "pipeline");
    if (count == 0 && !pipeline)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "name a suite: a YAML file, a built-in suite (`shardquery list`), or - "
                            "for standard input; or give --pipeline JSON");
    s->suites = calloc(count + 1, sizeof *s->suites);
    if (!s->suites)
        return sl_error_memory(error, "reading query suites");
    if (pipeline) {
        if (!make_suite(pipeline, &s->suites[0], error))
            return false;
        s->suite_count = 1;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = sl_options_argument(s->options, i);
        sl_suite **suite = &s->suites[s->suite_count];
        if (strcmp(name, "-") == 0 ? !read_input(suite, error) : !sl_suite_open(name, suite, error))
            return false;
        s->suite_count++;
    }
    return true;
}

/* Queries that change documents run only when --query or the mix of a load names them. */
static bool leave_out_writes(sl_query_session *s, sl_error *error) {
    if (sl_option_list_count(s->options, "query") > 0)
        return true;
    for (size_t i = 0; i < s->suite_count; i++) {
        sl_suite *suite = s->suites[i];
        if (suite->mix && sl_query_is_load(s->options))
            continue;
        size_t removed = sl_suite_remove_writes(suite);
        if (suite->count == 0)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "all queries of the suite %s change documents; name those to run "
                                "with --query",
                                suite->name);
        if (removed > 0)
            sl_log_warning("suite %s: queries that change documents are left out (%zu); "
                           "--query NAME runs them",
                           suite->name, removed);
    }
    return true;
}

/* Every --query must be in a suite. */
static bool check_selection(const sl_query_session *s, sl_error *error) {
    for (size_t i = 0; i < sl_option_list_count(s->options, "query"); i++) {
        const char *selected = sl_option_list_item(s->options, "query", i);
        char known[600] = "";
        size_t used = 0;
        bool found = false;
        for (size_t k = 0; k < s->suite_count; k++) {
            for (size_t q = 0; q < s->suites[k]->count; q++) {
                const char *name = s->suites[k]->queries[q].name;
                found = found || strcmp(name, selected) == 0;
                if (used < sizeof known)
                    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                             used ? ", " : "", name);
            }
        }
        if (!found)
            return sl_error_set(error, SL_EXIT_USAGE,
                                "--query %s: no such query; the suites contain %s", selected,
                                known);
    }
    return true;
}

/* A query must use the values of --limit. */
static bool check_limit(const sl_query_session *s, sl_error *error) {
    bool used = sl_option_origin_of(s->options, "limit") != SL_FROM_COMMAND_LINE;
    for (size_t k = 0; k < s->suite_count; k++) {
        for (size_t q = 0; q < s->suites[k]->count; q++)
            used |= sl_query_selected(s->options, &s->suites[k]->queries[q]) &&
                    sl_query_uses_limit(&s->suites[k]->queries[q]);
    }
    return used || sl_error_set(error, SL_EXIT_USAGE,
                                "--limit: no query uses the parameter \"limit\": leave the option "
                                "out");
}

static const char *either(const sl_query_session *s, const char *option, const char *from_suite) {
    const char *given = sl_option_string(s->options, option);
    return given ? given : from_suite;
}

const char *sl_query_database(const sl_query_session *s, const sl_suite *suite) {
    return either(s, "db", suite->database);
}

const char *sl_query_collection(const sl_query_session *s, const sl_suite *suite) {
    return either(s, "collection", suite->collection);
}

static bool check_namespaces(const sl_query_session *s, sl_error *error) {
    for (size_t i = 0; i < s->suite_count; i++) {
        if (!sl_query_database(s, s->suites[i]) || !sl_query_collection(s, s->suites[i]))
            return sl_error_set(error, SL_EXIT_USAGE,
                                "give --db and --collection: the suite %s does not name them",
                                s->suites[i]->name);
    }
    return true;
}

/* ---- answers ---- */

bool sl_query_expected(const sl_query_session *s, const sl_query *query, bson_t *array) {
    return sl_answer_expected(s->answers_file, query, array);
}

static bool open_answers(sl_query_session *s, sl_error *error) {
    const char *path = sl_option_string(s->options, "answers");
    sl_error why = {0};
    if (!path)
        return true;
    if (!sl_json_read_file(path, &s->answers_file, error))
        return false;
    return sl_answers_check(s->answers_file, s->suites, s->suite_count, &why) ||
           sl_error_set(error, why.code, "%s: " SL_LINES, path, why.message);
}

/* Warns of queries that will run without an answer in the file. */
static void warn_of_missing_answers(const sl_query_session *s) {
    for (size_t i = 0; s->answers_file && i < s->suite_count; i++) {
        for (size_t q = 0; q < s->suites[i]->count; q++) {
            const sl_query *query = &s->suites[i]->queries[q];
            bson_t expected;
            if (sl_query_selected(s->options, query) && !sl_query_expected(s, query, &expected))
                sl_log_warning("%s has no answer for the query %s, whose answer will not be "
                               "checked",
                               sl_option_string(s->options, "answers"), query->name);
        }
    }
}

/* ---- numbers ---- */

/* Parses "8,16,32". Returns how many numbers there are; 0 for other text. */
static size_t parse_numbers(const char *text, uint64_t numbers[SL_STEPS_MAX]) {
    for (size_t count = 0; count < SL_STEPS_MAX; text++) {
        size_t length = strcspn(text, ",");
        if (!sl_text_to_u64((sl_text){text, length}, &numbers[count]) || numbers[count++] == 0)
            return 0;
        text += length;
        if (!*text)
            return count;
    }
    return 0;
}

static bool check_numbers(const char *text, char *problem, size_t room) {
    uint64_t numbers[SL_STEPS_MAX];
    if (parse_numbers(text, numbers) > 0)
        return true;
    snprintf(problem, room,
             "expected up to %d whole numbers above 0 with commas between them, such as 8,16,32",
             SL_STEPS_MAX);
    return false;
}

size_t sl_query_numbers(const sl_options *options, const char *option,
                        uint64_t numbers[SL_STEPS_MAX]) {
    const char *text = sl_option_string(options, option);
    return text ? parse_numbers(text, numbers) : 0;
}

bool sl_query_is_load(const sl_options *options) {
    return sl_option_string(options, "clients") || sl_option_given(options, "rate");
}

/* ---- opening and closing ---- */

bool sl_query_session_open(sl_query_session *s, sl_error *error) {
    s->queries = bson_new();
    s->started = sl_wall_clock_ms();
    bool ok = open_suites(s, error) && check_selection(s, error) && check_limit(s, error) &&
              check_namespaces(s, error) && open_answers(s, error) && leave_out_writes(s, error) &&
              sl_connection_string(s->options, &s->uri, error);
    if (ok)
        warn_of_missing_answers(s);
    return ok;
}

/* Does any query that runs change documents? */
static bool changes_documents(const sl_query_session *s) {
    for (size_t i = 0; i < s->suite_count; i++) {
        for (size_t k = 0; k < s->suites[i]->count; k++) {
            if (sl_operation_writes(s->suites[i]->queries[k].operation))
                return true;
        }
    }
    return false;
}

bool sl_query_session_connect(sl_query_session *s, unsigned clients, sl_error *error) {
    /* Two more connections: for commands outside the measurement, and for the monitor. */
    return sl_connection_open(
        &(sl_connection_options){.uri = s->uri,
                                 .application = "shardquery",
                                 .pool_size = clients + 2,
                                 .timeout_seconds =
                                     (unsigned)sl_option_number(s->options, "timeout"),
                                 .writes = changes_documents(s),
                                 .wait_seconds = (unsigned)sl_option_seconds(s->options, "wait")},
        &s->connection, error);
}

void sl_query_session_close(sl_query_session *s) {
    sl_connection_close(s->connection);
    sl_secret_free(s->uri);
    bson_destroy(s->answers_file);
    bson_destroy(s->queries);
    for (size_t i = 0; i < s->suite_count; i++)
        sl_suite_destroy(s->suites[i]);
    free(s->suites);
}

bool sl_query_count(const sl_query_session *s, const sl_suite *suite, uint64_t *documents,
                    sl_error *error) {
    const char *database = sl_query_database(s, suite), *collection = sl_query_collection(s, suite);
    bool exists;
    *documents = 0;
    if (!sl_query_count_documents(s->connection, database, collection, documents, &exists, error)) {
        sl_query_fail(error); /* not fatal: a view has no count, but can be queried */
        *error = (sl_error){0};
        return true;
    }
    return exists || sl_error_set(error, SL_EXIT_CLUSTER, "there is no collection %s.%s", database,
                                  collection);
}

void sl_query_print_heading(const sl_query_session *s, const sl_suite *suite, uint64_t documents) {
    const sl_server *server = sl_connection_server(s->connection);
    sl_print("%s on %s.%s, %s, %s %s, ", suite->name, sl_query_database(s, suite),
             sl_query_collection(s, suite),
             documents ? sl_plural(documents, "document") : "? documents",
             sl_deployment_name(server->deployment), server->version);
}

/* ---- the report ---- */

bool sl_query_make_report(const sl_query_session *s, bool complete, bson_t *report) {
    const sl_server *server = sl_connection_server(s->connection);
    bson_t part;
    bool ok = BSON_APPEND_UTF8(report, "program", "shardquery") &&
              BSON_APPEND_UTF8(report, "command", "run") &&
              BSON_APPEND_INT32(report, "schema", 2) &&
              BSON_APPEND_UTF8(report, "version", SHARDLOAD_VERSION) &&
              BSON_APPEND_DATE_TIME(report, "date", sl_wall_clock_ms()) &&
              BSON_APPEND_DATE_TIME(report, "startedAt", s->started) &&
              BSON_APPEND_BOOL(report, "complete", complete) &&
              BSON_APPEND_DOCUMENT_BEGIN(report, "server", &part) &&
              BSON_APPEND_UTF8(&part, "uri", sl_connection_display_uri(s->connection)) &&
              BSON_APPEND_UTF8(&part, "deployment", sl_deployment_name(server->deployment)) &&
              BSON_APPEND_UTF8(&part, "version", server->version) &&
              bson_append_document_end(report, &part);
    if (ok)
        sl_options_append(s->options, report);
    return ok && BSON_APPEND_ARRAY(report, "queries", s->queries);
}

/* Called before the first query, so that a file that cannot be written is reported early, and after
 * each query, so that no result is lost when the program ends. */
bool sl_query_write_report(const sl_query_session *s, bool complete, sl_error *error) {
    const char *path = sl_option_string(s->options, "report");
    const char *html = sl_option_string(s->options, "html");
    const char *csv = sl_option_string(s->options, "csv");
    if (!path && !html && !csv)
        return true;
    bson_t report = BSON_INITIALIZER;
    const bson_t *records[] = {&report};
    bool ok = sl_query_make_report(s, complete, &report) ||
              sl_error_set(error, SL_EXIT_USAGE, "the report does not fit into 2 GiB");
    ok = ok && (!path || sl_json_write_file(path, &report, error));
    if (!complete) {
        ok = ok && (!html || sl_private_file_may_replace(html, error)) &&
             (!csv || sl_private_file_may_replace(csv, error));
    } else {
        ok = ok && (!html || sl_report_html_write(records, 1, NULL, html, error)) &&
             (!csv || sl_query_csv_write(s->queries, csv, error));
    }
    bson_destroy(&report);
    return ok;
}

/* ---- the options of shardquery ---- */

#define PAIRS "Measuring in pairs (--ab)"

/* clang-format off */
const sl_option_row sl_query_rows[] = {
    {.name = "uri", SL_ROW_COMMON, SL_ROW_TEXT("URI"), .fallback = "mongodb://127.0.0.1:27017",
     SL_ROW_OF(SL_QUERY_RUN, "Collection", NONE), .secret = SL_CREDENTIALS,
     .help = "Connection string of the server or the routers."},
    {.name = "db", SL_ROW_COMMON, .letter = 'd', SL_ROW_TEXT("NAME"), SL_ROW_OF(SL_QUERY_RUN, "Collection", NONE),
     .help = "Database; overrides that of the suite."},
    {.name = "collection", SL_ROW_COMMON, .letter = 'c', SL_ROW_TEXT("NAME"), SL_ROW_OF(SL_QUERY_RUN, "Collection", NONE),
     .help = "Collection; overrides that of the suite."},
    {.name = "read-preference", SL_ROW_LIST("MODE"), SL_ROW_OF(SL_QUERY_RUN, "Collection", NONE),
     .help = "Which members to read from: primary, primaryPreferred, secondary, "
             "secondaryPreferred or nearest. Overrides that of the query and of --uri. If the "
             "option is given several times, each value is measured.",
     .choices = "primary|primaryPreferred|secondary|secondaryPreferred|nearest"},
    {.name = "timeout", SL_ROW_COUNT("SECONDS", 1, 86400), .fallback = "120",
     SL_ROW_OF(SL_QUERY_RUN, "Collection", NONE),
     .help = "Fail a query if the server does not reply on any connection for this time. A query "
             "may take longer, as long as the server replies on another connection."},
    SL_CONNECTION_ROWS(SL_QUERY_RUN),

    {.name = "query", SL_ROW_COMMON, SL_ROW_LIST("NAME"), SL_ROW_OF(SL_QUERY_RUN, "Queries", NONE),
     .help = "Run only this query; may be given several times."},
    {.name = "pipeline", SL_ROW_TEXT("JSON"), SL_ROW_OF(SL_QUERY_RUN, "Queries", NONE),
     .help = "Run this aggregation, instead of suites or in addition to them."},
    {.name = "limit", SL_ROW_TEXT("N,N,..."), SL_ROW_OF(SL_QUERY_RUN, "Queries", NONE),
     .help = "Value of the parameter `limit` of the queries. Each of several values is measured.",
     .check = check_numbers},
    {.name = "seed", SL_ROW_COUNT("N", 0, 0), .fallback = "1", SL_ROW_OF(SL_QUERY_RUN | SL_QUERY_COMPARE, "Queries", NONE),
     .help = "Seed of random values, and of the random permutations of `compare`."},
    {.name = "answers", SL_ROW_COMMON, SL_ROW_FILE("FILE", READ), SL_ROW_OF(SL_QUERY_RUN, "Queries", NONE),
     .help = "JSON file whose object \"answers\" has the expected documents of each query by "
             "name; overrides the expected answers of the suite."},

    {.name = "repeat", SL_ROW_COMMON, SL_ROW_COUNT("N", 1, SL_REPEAT_MAX), SL_ROW_OF(SL_QUERY_RUN, "Repeated runs", NONE),
     .help = "How often each query is timed. Without this option, the number in the suite, or 5."},
    {.name = "warm-up", SL_ROW_COUNT("N", 0, SL_REPEAT_MAX), SL_ROW_OF(SL_QUERY_RUN, "Repeated runs", NONE),
     .help = "How often each query runs before the timed runs. Without this option, the number in "
             "the suite, or 1."},
    {.name = "cold", SL_ROW_COMMON, SL_ROW_TEXT("COMMAND"), SL_ROW_OF(SL_QUERY_RUN, "Repeated runs", NONE),
     .secret = SL_COMMAND_LINE,
     .help = "Run this shell command before each run, for example to empty caches. Its time is not "
             "counted."},
    {.name = "explain", SL_ROW_COMMON, SL_ROW_FLAG, SL_ROW_OF(SL_QUERY_RUN, "Repeated runs", NONE),
     .help = "Show the plan: the access path of each shard, the number of documents that it "
             "examines, and whether the pipeline is split over the shards."},

    {.name = "clients", SL_ROW_COMMON, .letter = 'j', SL_ROW_TEXT("N,N,..."), SL_ROW_OF(SL_QUERY_RUN, "Under load", NONE),
     .help = "Number of clients that work at the same time, each with its own connection. Each of "
             "several numbers is measured. With --rate: the largest number of operations in "
             "progress at a time (64 without this option).",
     .check = check_numbers},
    {.name = "rate", SL_ROW_COMMON, SL_ROW_COUNT("N", 0, 10000000), .fallback = "0", SL_ROW_OF(SL_QUERY_RUN, "Under load", NONE),
     .help = "Operations that are due per second, over all clients, even if the server does not "
             "reply fast enough."},
    {.name = "duration", SL_ROW_COMMON, SL_ROW_TIME, .fallback = "10s", SL_ROW_OF(SL_QUERY_RUN, "Under load", NONE),
     .help = "How long each measurement takes."},
    {.name = "operations", SL_ROW_COUNT("N", 0, 0), .fallback = "0", SL_ROW_OF(SL_QUERY_RUN, "Under load", NONE),
     .help = "Measure this number of operations, over all clients, instead of a duration."},
    {.name = "warm-up-time", SL_ROW_TIME, .fallback = "1s", SL_ROW_OF(SL_QUERY_RUN, "Under load", NONE),
     .help = "How long the clients run before each measurement; not counted."},
    {.name = "max-lag", SL_ROW_TIME, .fallback = "10s", SL_ROW_OF(SL_QUERY_RUN, "Under load", NONE),
     .help = "With --rate: skip an operation that could not be sent within this time after it was "
             "due, and count it as skipped."},
    {.name = "during", SL_ROW_TEXT("COMMAND"), SL_ROW_OF(SL_QUERY_RUN, "Under load", NONE),
     .secret = SL_COMMAND_LINE,
     .help = "Measure before, during and after this shell command."},

    {.name = "rows", SL_ROW_COMMON, SL_ROW_COUNT("N", 0, 1000000), .fallback = "20", SL_ROW_OF(SL_QUERY_RUN, "Output", NONE),
     .help = "Show at most this number of documents of each answer; 0 shows none."},
    {.name = "report", SL_ROW_COMMON, SL_ROW_FILE("FILE.json", WRITTEN), SL_ROW_OF(SL_QUERY_RUN | SL_QUERY_COMPARE, "Output", NONE),
     .help = "Write all results as JSON. `run` updates the file after each query."},
    {.name = "html", SL_ROW_COMMON, SL_ROW_FILE("FILE.html", WRITTEN), SL_ROW_OF(SL_QUERY_RUN, "Output", NONE),
     .help = "Write a page with charts."},
    {.name = "csv", SL_ROW_FILE("FILE.csv", WRITTEN), SL_ROW_OF(SL_QUERY_RUN, "Output", NONE),
     .help = "Write the figures, one line for each query and measurement."},
    {.name = "quiet", SL_ROW_FLAG, SL_ROW_OF(~0u, "Output", NONE),
     .help = "Print errors only: no answers, tables or progress."},

    {.name = "ab", SL_ROW_COMMON, SL_ROW_FLAG, SL_ROW_OF(SL_QUERY_COMPARE, PAIRS, NONE),
     .help = "Run the suites with two sets of options, A (old) and B (new), in pairs of runs."},
    {.name = "a", SL_ROW_COMMON, SL_ROW_FILE("OPTIONS", READ_WORDS), SL_ROW_OF(SL_QUERY_COMPARE, PAIRS, NONE),
     .secret = SL_COMMAND_LINE,
     .help = "Options of `run` for A, quoted as in a shell: '--uri mongodb://old -d t -c c'."},
    {.name = "b", SL_ROW_COMMON, SL_ROW_FILE("OPTIONS", READ_WORDS), SL_ROW_OF(SL_QUERY_COMPARE, PAIRS, NONE),
     .secret = SL_COMMAND_LINE,
     .help = "Options of `run` for B."},
    {.name = "runs", SL_ROW_COMMON, SL_ROW_COUNT("N", 1, 1000), .fallback = "10", SL_ROW_OF(SL_QUERY_COMPARE, PAIRS, NONE),
     .help = "Pairs of runs. A verdict needs at least 6, and more in a table of several rows."},
    {.name = "threshold", SL_ROW_COMMON, SL_ROW_COUNT("P%", 0, 0), .choices = "P%", .fallback = "0%",
     SL_ROW_OF(SL_QUERY_COMPARE, "Verdict", NONE),
     .help = "Exit with 1 only if B (or NEW) is slower by more than this percentage."},
    {0},
};
/* clang-format on */
