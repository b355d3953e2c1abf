/* SPDX-License-Identifier: Apache-2.0 */
/* shardquery: times aggregations against a collection and checks their answers.
 *
 *   run      src/query/suite.c reads the suites, run.c runs the queries, show.c prints what came
 *            out; this file chooses which, and keeps the report
 *   compare  src/query/report.c
 *   list     the suites that are built in */
#include <shardload/log.h>
#include <shardload/options.h>
#include <shardload/query.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shardload/clock.h>
#include <shardload/embedded.h>
#include <shardload/json.h>
#include <shardload/print.h>
#include <shardload/text.h>

#include "connection_string.h"
#include "secrets.h"

enum { RUN = 1, COMPARE = 2, LIST = 4 };

/* A run of suites. */
typedef struct session {
    const sl_options *options;
    sl_suite **suites;
    size_t suite_count;
    bson_t *answers_file; /* NULL without --answers */
    sl_connection *connection;
    bson_t *queries; /* of the report */
    bool wrong;      /* an answer was */
    bool failed;     /* a query did */
} session;

static int fail(sl_error *error) {
    sl_print_to(stderr, "shardquery: " SL_LINES "\n", error->message);
    return (int)error->code;
}

/* ---- before anything is run ---- */

static bool selected(const sl_options *options, const sl_query *query) {
    size_t count = sl_option_list_count(options, "query");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sl_option_list_item(options, "query", i), query->name) == 0)
            return true;
    }
    return count == 0;
}

static bool open_suites(session *s, sl_error *error) {
    size_t count = sl_options_argument_count(s->options);
    if (count == 0)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "name a suite: a YAML file, or one that `shardquery list` shows");
    s->suites = calloc(count, sizeof *s->suites);
    if (!s->suites)
        return sl_error_memory(error, "reading query suites");
    for (; s->suite_count < count; s->suite_count++) {
        const char *name = sl_options_argument(s->options, s->suite_count);
        if (!sl_suite_open(name, &s->suites[s->suite_count], error))
            return false;
    }
    return true;
}

/* Every --query must be in a suite. */
static bool check_selection(const session *s, sl_error *error) {
    for (size_t i = 0; i < sl_option_list_count(s->options, "query"); i++) {
        const char *wanted = sl_option_list_item(s->options, "query", i);
        char known[600] = "";
        size_t used = 0;
        bool found = false;
        for (size_t k = 0; k < s->suite_count; k++) {
            for (size_t q = 0; q < s->suites[k]->count; q++) {
                const char *name = s->suites[k]->queries[q].name;
                found = found || strcmp(name, wanted) == 0;
                if (used < sizeof known)
                    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                             used ? ", " : "", name);
            }
        }
        if (!found)
            return sl_error_set(error, SL_EXIT_USAGE, "--query %s: no such query; there are %s",
                                wanted, known);
    }
    return true;
}

static const char *namespace_part(const session *s, const char *option, const char *from_suite) {
    const char *given = sl_option_string(s->options, option);
    return given ? given : from_suite;
}

static bool check_namespaces(const session *s, sl_error *error) {
    for (size_t i = 0; i < s->suite_count; i++) {
        const sl_suite *suite = s->suites[i];
        if (!namespace_part(s, "db", suite->database) ||
            !namespace_part(s, "collection", suite->collection))
            return sl_error_set(error, SL_EXIT_USAGE,
                                "give --db and --collection: the suite %s does not name them",
                                suite->name);
    }
    return true;
}

/* The answer that a query must give, from the file first, then from the suite. The array lives as
 * long as they do. */
static bool expected_answer(const session *s, const sl_query *query, bson_t *array) {
    bson_iter_t answers;
    bson_iter_t one;
    if (s->answers_file && bson_iter_init_find(&answers, s->answers_file, "answers") &&
        bson_iter_recurse(&answers, &one) && bson_iter_find(&one, query->name) &&
        BSON_ITER_HOLDS_ARRAY(&one)) {
        uint32_t length;
        const uint8_t *bytes;
        bson_iter_array(&one, &length, &bytes);
        return bson_init_static(array, bytes, length);
    }
    return query->expected &&
           bson_init_static(array, bson_get_data(query->expected), query->expected->len);
}

static bool open_answers(session *s, sl_error *error) {
    const char *path = sl_option_string(s->options, "answers");
    if (!path)
        return true;
    if (!sl_json_read_file(path, &s->answers_file, error))
        return false;
    bson_iter_t answers;
    if (!bson_iter_init_find(&answers, s->answers_file, "answers") ||
        !BSON_ITER_HOLDS_DOCUMENT(&answers))
        return sl_error_set(error, SL_EXIT_SOURCE, "%s: there is no object \"answers\" in it",
                            path);
    for (size_t i = 0; i < s->suite_count; i++) {
        for (size_t q = 0; q < s->suites[i]->count; q++) {
            const sl_query *query = &s->suites[i]->queries[q];
            bson_t expected;
            if (selected(s->options, query) && !expected_answer(s, query, &expected))
                sl_print_to(stderr, "shardquery: %s has no answer for %s; it will not be checked\n",
                            path, query->name);
        }
    }
    return true;
}

/* ---- the report ---- */

static void append_option(void *context, const char *name, const char *value, const char *origin) {
    bson_t *options = context;
    (void)origin;
    if (value)
        bson_append_utf8(options, name, -1, value, -1);
}

/* Written before the first query and after each, so that nothing measured is lost whatever happens,
 * and a name that cannot be written is known before hours have gone by. */
static bool write_report(const session *s, bool complete, sl_error *error) {
    const char *path = sl_option_string(s->options, "report");
    if (!path)
        return true;
    const sl_server *server = sl_connection_server(s->connection);
    bson_t report = BSON_INITIALIZER;
    bson_t part;
    bool ok = BSON_APPEND_UTF8(&report, "program", "shardquery") &&
              BSON_APPEND_UTF8(&report, "version", SHARDLOAD_VERSION) &&
              BSON_APPEND_DATE_TIME(&report, "date", sl_wall_clock_ms()) &&
              BSON_APPEND_BOOL(&report, "complete", complete) &&
              BSON_APPEND_DOCUMENT_BEGIN(&report, "server", &part) &&
              BSON_APPEND_UTF8(&part, "uri", sl_connection_display_uri(s->connection)) &&
              BSON_APPEND_UTF8(&part, "deployment", sl_deployment_name(server->deployment)) &&
              BSON_APPEND_UTF8(&part, "version", server->version) &&
              bson_append_document_end(&report, &part) &&
              BSON_APPEND_DOCUMENT_BEGIN(&report, "options", &part);
    if (ok)
        sl_options_each(s->options, append_option, &part);
    ok = ok && bson_append_document_end(&report, &part) &&
         BSON_APPEND_ARRAY(&report, "queries", s->queries);
    ok = ok ? sl_json_write_file(path, &report, error)
            : sl_error_set(error, SL_EXIT_USAGE, "%s: the report does not fit into 2 GiB", path);
    bson_destroy(&report);
    return ok;
}

/* ---- running ---- */

static void show_progress(void *context, unsigned run, unsigned runs) {
    sl_print_to(stderr, "\r%s: run %u of %u\033[K", (const char *)context, run, runs);
}

static void run_query(session *s, const sl_query_outcome *outcome, sl_query_options *options,
                      sl_query_run *run) {
    bool quiet = sl_option_flag(s->options, "quiet");
    bool progress = !quiet && isatty(STDERR_FILENO);
    bson_t expected;
    options->expected = expected_answer(s, outcome->query, &expected) ? &expected : NULL;
    options->progress = progress ? show_progress : NULL;
    options->context = outcome->query->name;
    bool ok = sl_query_execute(s->connection, outcome->query, options, run);
    if (progress)
        fputs("\r\033[K", stderr);
    if (!ok)
        fail(&run->error);
    s->failed = s->failed || !ok;
    s->wrong = s->wrong || run->answer == SL_ANSWER_WRONG;
    if (!quiet)
        sl_show_run(outcome->query, run, (size_t)sl_option_number(s->options, "rows"));
    fflush(stdout);
}

static void print_heading(const session *s, const sl_suite *suite, const sl_query_options *options,
                          const sl_query_outcome *outcome) {
    const sl_server *server = sl_connection_server(s->connection);
    char count[SL_HUMAN_ROOM];
    sl_print("%s on %s.%s, %s documents, %s %s, %u run%s after %u to warm up\n\n", suite->name,
             options->database, options->collection,
             outcome->documents_known ? sl_human_count(outcome->documents, count) : "?",
             sl_deployment_name(server->deployment), server->version, options->repeat,
             options->repeat == 1 ? "" : "s", options->warm_up);
}

static bool count_documents(session *s, const sl_query_options *options, sl_query_outcome *outcome,
                            sl_error *error) {
    bool exists;
    outcome->documents_known = sl_query_count_documents(
        s->connection, options->database, options->collection, &outcome->documents, &exists, error);
    if (!outcome->documents_known)
        fail(error); /* a view has no count; its queries run all the same */
    else if (!exists)
        return sl_error_set(error, SL_EXIT_CLUSTER, "there is no collection %s.%s",
                            options->database, options->collection);
    return true;
}

static bool run_suite(session *s, const sl_suite *suite, sl_error *error) {
    sl_query_options options = {
        .database = namespace_part(s, "db", suite->database),
        .collection = namespace_part(s, "collection", suite->collection),
        .read_preference = sl_option_string(s->options, "read-preference"),
        .repeat = sl_option_given(s->options, "repeat")
                      ? (unsigned)sl_option_number(s->options, "repeat")
                      : suite->repeat,
        .warm_up = sl_option_given(s->options, "warm-up")
                       ? (unsigned)sl_option_number(s->options, "warm-up")
                       : suite->warm_up,
        .explain = sl_option_flag(s->options, "explain"),
    };
    sl_query_outcome common = {.suite = suite, .options = &options};
    if (!count_documents(s, &options, &common, error))
        return false;
    print_heading(s, suite, &options, &common);

    size_t count = 0;
    bool ok = true;
    sl_query_outcome *outcomes = calloc(suite->count, sizeof *outcomes);
    sl_query_run *runs = calloc(suite->count, sizeof *runs);
    if (!outcomes || !runs) {
        ok = sl_error_memory(error, "running a query suite");
        goto done;
    }
    for (size_t i = 0; ok && i < suite->count; i++) {
        if (!selected(s->options, &suite->queries[i]))
            continue;
        outcomes[count] = common;
        outcomes[count].query = &suite->queries[i];
        outcomes[count].run = &runs[count];
        run_query(s, &outcomes[count], &options, &runs[count]);
        ok = (sl_report_append(s->queries, &outcomes[count]) ||
              sl_error_memory(error, "keeping the report")) &&
             write_report(s, false, error);
        count++;
    }
    if (count > 0 && !sl_show_timings(outcomes, count))
        ok = sl_error_memory(error, "printing timings");
    for (size_t i = 0; i < count; i++)
        sl_show_differences(&outcomes[i]);
done:
    for (size_t i = 0; i < count; i++)
        sl_query_run_clear(&runs[i]);
    free(runs);
    free(outcomes);
    return ok;
}

static int run(const sl_options *options) {
    sl_error error = {0};
    session s = {.options = options, .queries = bson_new()};
    char *uri = NULL;
    bool ok = open_suites(&s, &error) && check_selection(&s, &error) &&
              check_namespaces(&s, &error) && open_answers(&s, &error) &&
              sl_connection_string(options, &uri, &error) &&
              sl_connection_open(uri, "shardquery", 1, (unsigned)sl_option_number(options, "timeout"), &s.connection, &error) &&
              write_report(&s, false, &error);
    for (size_t i = 0; ok && i < s.suite_count; i++) {
        if (i > 0)
            sl_print("\n");
        ok = run_suite(&s, s.suites[i], &error);
    }
    ok = ok && write_report(&s, true, &error);
    int code = !ok        ? fail(&error)
               : s.failed ? SL_EXIT_CLUSTER
               : s.wrong  ? SL_EXIT_VERIFICATION
                          : SL_EXIT_OK;
    sl_connection_close(s.connection);
    sl_secret_free(uri);
    bson_destroy(s.answers_file);
    bson_destroy(s.queries);
    for (size_t i = 0; i < s.suite_count; i++)
        sl_suite_destroy(s.suites[i]);
    free(s.suites);
    return code;
}

/* ---- the other commands ---- */

static int compare(const sl_options *options) {
    sl_error error = {0};
    bson_t *old_report = NULL;
    bson_t *new_report = NULL;
    if (sl_options_argument_count(options) != 2)
        sl_error_set(&error, SL_EXIT_USAGE, "compare needs two reports: the old and the new one");
    else if (sl_json_read_file(sl_options_argument(options, 0), &old_report, &error) &&
             sl_json_read_file(sl_options_argument(options, 1), &new_report, &error))
        sl_report_compare(old_report, new_report, stdout, &error);
    bson_destroy(old_report);
    bson_destroy(new_report);
    return error.code == SL_EXIT_OK ? SL_EXIT_OK : fail(&error);
}

static int list(const sl_options *options) {
    (void)options;
    for (const sl_embedded *file = sl_embedded_queries; file->name; file++) {
        sl_error error = {0};
        sl_suite *suite;
        if (!sl_suite_parse(file->text, file->length, file->name, &suite, &error))
            return fail(&error);
        sl_print(SL_LINES "%s\n    %s\n\n", file == sl_embedded_queries ? "" : "\n", suite->name,
                 suite->description ? suite->description : "");
        for (size_t i = 0; i < suite->count; i++)
            sl_print("  %s\n    %s\n", suite->queries[i].name,
                     suite->queries[i].description ? suite->queries[i].description : "");
        sl_suite_destroy(suite);
    }
    return SL_EXIT_OK;
}

static const sl_command commands[] = {
    {"run", RUN, "[options] SUITE...", "Runs the queries of suites and times them.",
     "A SUITE is a YAML file, or the name of one that is built in (see `shardquery list`).\n"
     "Each query runs a few times to warm up and then a few times that count, each timed from\n"
     "sending the command to having read the last document. The documents it gives are shown, and\n"
     "compared with the answer that is expected, if there is one.\n\n"
     "Examples:\n"
     "  shardquery run -d test -c mot mot\n"
     "      the built-in suite `mot` on a server of this machine\n"
     "  shardquery run --uri mongodb://router1,router2 -d test -c mot --answers answers.json mot\n"
     "      checks each answer against those that the data generator computed\n"
     "  shardquery run -d test -c mot --query makes --repeat 20 --report new.json mot\n"
     "      one query, twenty times; `shardquery compare old.json new.json` tells the difference\n"
     "  shardquery run my-suite.yaml\n"
     "      database and collection can also stand in the suite\n\n"
     "A suite looks like this:\n"
     "  name: mine\n"
     "  defaults: {repeat: 5, warm-up: 1, database: test, collection: mot}\n"
     "  queries:\n"
     "    - name: tests-by-year\n"
     "      description: How many tests were there in each year?\n"
     "      options: {allowDiskUse: true, maxTimeMS: 60000}   # also hint, readPreference\n"
     "      pipeline: |\n"
     "        [{\"$group\": {\"_id\": {\"$year\": \"$d\"}, \"tests\": {\"$sum\": 1}}},\n"
     "         {\"$sort\": {\"_id\": 1}}]\n"
     "      expect: |\n"
     "        [{\"_id\": 2005, \"tests\": 7499745}]",
     true, run},
    {"compare", COMPARE, "OLD.json NEW.json", "Tells two reports of `run` apart.",
     "For each query: the ratio of the new timings to the old ones, the interval in which it lies\n"
     "with at least 95 % confidence, and a verdict. Timings are compared by rank, so outliers do\n"
     "not matter; at least four on each side are needed. What the figures cannot know is whether\n"
     "the machine was doing something else during one of the runs: alternate old and new.\n\n"
     "Example:\n"
     "  shardquery compare before.json after.json",
     true, compare},
    {"list", LIST, "", "Shows the suites that are built in.",
     "Their names can be given to `shardquery run`.", false, list},
    {0},
};

static const sl_option_row rows[] = {
    {"uri", 0, SL_OPTION_STRING, "URI", "mongodb://127.0.0.1:27017", NULL, 0, 0, RUN, "Collection",
     "Connection string of the server or the routers.", SL_CREDENTIALS, NULL},
    {"db", 'd', SL_OPTION_STRING, "NAME", NULL, NULL, 0, 0, RUN, "Collection",
     "Database; wins over the suite's.", false, NULL},
    {"collection", 'c', SL_OPTION_STRING, "NAME", NULL, NULL, 0, 0, RUN, "Collection",
     "Collection; wins over the suite's.", false, NULL},
    {"read-preference", 0, SL_OPTION_CHOICE, "MODE", NULL,
     "primary|primaryPreferred|secondary|secondaryPreferred|nearest", 0, 0, RUN, "Collection",
     "Which members to read from: primary, primaryPreferred, secondary, secondaryPreferred or "
     "nearest. Wins over the query's and the URI's.",
     false, NULL},
    {"timeout", 0, SL_OPTION_COUNT, "SECONDS", "120", NULL, 1, 86400, RUN, "Collection",
     "How long the server may be silent before a query is given up. A query may take longer, as long "
     "as the server answers on other connections.", false, NULL},
    SL_CONNECTION_ROWS(RUN),

    {"query", 0, SL_OPTION_LIST, "NAME", NULL, NULL, 0, 0, RUN, "Measuring",
     "Run only this query; may be given several times.", false, NULL},
    {"repeat", 0, SL_OPTION_COUNT, "N", NULL, NULL, 1, SL_REPEAT_MAX, RUN, "Measuring",
     "How often each query is timed. Without it the suite says, and otherwise 5.", false, NULL},
    {"warm-up", 0, SL_OPTION_COUNT, "N", NULL, NULL, 0, SL_REPEAT_MAX, RUN, "Measuring",
     "How often each query runs before that, not timed. Without it the suite says, and otherwise "
     "1.",
     false, NULL},
    {"explain", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, RUN, "Measuring",
     "Also ask for the plan: which access path each shard takes, and whether the pipeline is "
     "split over the shards.",
     false, NULL},
    {"answers", 0, SL_OPTION_STRING, "FILE", NULL, NULL, 0, 0, RUN, "Answers",
     "JSON file whose object \"answers\" has the expected documents of each query by name; wins "
     "over what the suite expects.",
     false, NULL},
    {"rows", 0, SL_OPTION_COUNT, "N", "20", NULL, 0, 1000000, RUN, "Output",
     "Show at most so many documents of each answer; 0 shows none.", false, NULL},
    {"report", 0, SL_OPTION_STRING, "FILE.json", NULL, NULL, 0, 0, RUN, "Output",
     "Write everything that was measured, with all timings and answers. Kept up to date after "
     "each query.",
     false, NULL},
    {"quiet", 0, SL_OPTION_FLAG, NULL, NULL, NULL, 0, 0, RUN, "Output",
     "Only the table of timings: no documents, no progress.", false, NULL},
    {0},
};

int main(int count, char **words) {
    static const sl_program program = {
        .name = "shardquery",
        .version = SHARDLOAD_VERSION,
        .summary = "times aggregations against a collection and checks their answers",
        .environment_prefix = "SHARDLOAD",
        .commands = commands,
        .rows = rows,
        .epilogue = "Exit codes: 0 all is well; 2 wrong options; 3 a suite, answers file or report "
                    "that cannot be\nread; 4 the server cannot be reached or refuses; 5 an answer "
                    "is wrong.",
    };
    return sl_options_main(&program, count, words);
}
