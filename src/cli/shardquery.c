/* SPDX-License-Identifier: Apache-2.0 */
/* shardquery: times queries against a collection and checks their answers.
 *
 *   run      query_session.c opens suites and writes the report; query_repeat.c runs queries one
 *            after the other, query_load.c runs many clients at the same time
 *   compare  query_compare.c compares reports
 *   list     lists the built-in suites
 *
 * The measurements are in src/query/. */
#include "util/log.h"

#include <stdlib.h>
#include <string.h>

#include "util/embedded.h"
#include "util/print.h"

#include "connection_string.h"
#include "memory.h"
#include "option_rows.h"
#include "query_session.h"

enum { RUN = 1, COMPARE = 2, LIST = 4 };

#define PAIRS "Measuring in pairs (--ab)"

/* The largest number of clients that are connected at the same time. */
static unsigned clients_needed(const sl_query_session *s) {
    uint64_t clients[SL_STEPS_MAX], most = 64; /* for an open loop, and for statistics in threads */
    size_t count = sl_query_numbers(s->options, "clients", clients);
    for (size_t i = 0; i < count; i++)
        most = clients[i] > most ? clients[i] : most;
    return (unsigned)most;
}

static bool check_options(const sl_query_session *s, sl_error *error) {
    static const char *const of_load[] = {"during",       "operations", "duration",
                                          "warm-up-time", "max-lag",    NULL};
    static const char *const of_repeat[] = {"repeat", "warm-up", "cold", "explain", NULL};
    bool load = sl_query_is_load(s->options);
    const char *const *wrong = load ? of_repeat : of_load;
    for (; *wrong; wrong++) {
        if (sl_option_given(s->options, *wrong))
            return sl_error_set(error, SL_EXIT_USAGE,
                                load ? "--%s is for repeated runs: leave out this option, or "
                                       "--clients and --rate"
                                     : "--%s is for measuring under load: add --clients or --rate",
                                *wrong);
    }
    uint64_t clients[SL_STEPS_MAX];
    size_t steps = sl_query_numbers(s->options, "clients", clients);
    for (size_t i = 0; i < steps; i++) {
        if (clients[i] > SL_CLIENTS_MAX)
            return sl_error_set(error, SL_EXIT_USAGE, "--clients: at most %d", SL_CLIENTS_MAX);
    }
    return true;
}

static int run(const sl_options *options) {
    sl_error error = {0};
    sl_query_session s = {.options = options};
    bool load = sl_query_is_load(options);
    bool ok = check_options(&s, &error) && sl_query_session_open(&s, &error) &&
              sl_query_session_connect(&s, clients_needed(&s), &error) &&
              sl_query_write_report(&s, false, &error);
    if (ok)
        sl_query_listen();
    for (size_t i = 0; ok && i < s.suite_count && !atomic_load(&sl_query_stop); i++) {
        if (i > 0)
            sl_print("\n");
        ok = load ? sl_query_load_suite(&s, s.suites[i], &error)
                  : sl_query_repeat_suite(&s, s.suites[i], &error);
    }
    bool stopped = atomic_load(&sl_query_stop);
    ok = ok && sl_query_write_report(&s, !stopped, &error);
    if (ok && stopped)
        sl_print_to(stderr, "shardquery: interrupted: only the results so far are shown\n");
    int code = !ok        ? sl_query_fail(&error)
               : stopped  ? SL_EXIT_INTERRUPTED
               : s.failed ? SL_EXIT_CLUSTER
               : s.wrong  ? SL_EXIT_VERIFICATION
                          : SL_EXIT_OK;
    sl_query_session_close(&s);
    return code;
}

static int list(const sl_options *options) {
    (void)options;
    for (const sl_embedded *file = sl_embedded_queries; file->name; file++) {
        sl_error error = {0};
        sl_suite *suite;
        if (!sl_suite_parse(file->text, file->length, file->name, &suite, &error))
            return sl_query_fail(&error);
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
     "A SUITE is a YAML file, the name of a built-in suite (see `shardquery list`), or - for\n"
     "standard input. Queries are measured in one of three modes:\n\n"
     "  repeated (default)   each query alone, a few times to warm up and then --repeat times\n"
     "  closed loop          --clients 8,16,32: clients at the same time, each sending its next\n"
     "                       operation when the last one has been answered\n"
     "  open loop            --rate 800: operations are due at fixed times, and latency counts\n"
     "                       from then, so that it includes the time of a stalled server\n\n"
     "Examples:\n"
     "  shardquery run -d test -c mot mot\n"
     "      the built-in suite `mot` on a server of this machine\n"
     "  shardquery run --uri mongodb://router1,router2 -d test -c mot --answers answers.json mot\n"
     "      checks each answer against the answers that the data generator computed\n"
     "  shardquery run -d test -c t --pipeline '[{\"$count\": \"n\"}]'\n"
     "      one aggregation, without a suite\n"
     "  shardquery run -d kv -c records --clients 8,16,32,64 --duration 30s ycsb\n"
     "      throughput and latency of each query at each number of clients\n"
     "  shardquery run -d kv -c records --rate 800 --query point-read --html reads.html ycsb\n"
     "      800 operations a second, and a page with charts\n"
     "  shardquery run --read-preference secondary --clients 8,16,32,64 \\\n"
     "      --during 'shardload load ... year.txt' -d mot -c tests point-reads.yaml\n"
     "      before, during and after a load, with the replication lag\n"
     "  shardquery run --limit 1,10,100,1000 -d test -c obd statistics\n"
     "      the same queries over more and more documents\n\n"
     "A suite looks like this (docs/suites.md describes every key):\n"
     "  name: mine\n"
     "  defaults: {repeat: 5, warm-up: 1, database: test, collection: mot}\n"
     "  queries:\n"
     "    - name: tests-by-year\n"
     "      description: How many tests were there in each year?\n"
     "      options: {allowDiskUse: true, maxTimeMS: 60000}\n"
     "      pipeline: |\n"
     "        [{\"$group\": {\"_id\": {\"$year\": \"$d\"}, \"tests\": {\"$sum\": 1}}},\n"
     "         {\"$sort\": {\"_id\": 1}}]\n"
     "      expect: |\n"
     "        [{\"_id\": 2005, \"tests\": 7499745}]\n"
     "    - name: one-vehicle\n"
     "      operation: findOne        # also find, count, distinct, mapReduce, update, insert\n"
     "      filter: '{\"v\": {\"$parameter\": \"vehicle\"}}'\n"
     "      parameters: {vehicle: {sample: {field: v}}}\n"
     "  mix: {one-vehicle: 95, tests-by-year: 5}",
     true, run},
    {"compare", COMPARE, "OLD NEW | --ab [--a OPTIONS] [--b OPTIONS] SUITE...",
     "Compares runs of queries, and decides whether a difference is more than noise.",
     "Runs of the program are compared, because the repeats within a run are not independent.\n"
     "OLD and NEW are each a report of `run`, several reports with commas between them, or a\n"
     "folder of reports. A verdict needs at least 4 runs on each side.\n\n"
     "With --ab the program measures both sides itself, in pairs: each run is a process of its\n"
     "own, and the order within each pair is random, so that other load on the machine affects\n"
     "both sides equally. Use it to compare two servers, two options or two data models. A\n"
     "verdict needs at least 6 pairs.\n\n"
     "The table shows the geometric mean of each side, their ratio, its 95 % interval\n"
     "(permutation test), and a verdict. The level of 5 % holds for all rows together: without\n"
     "a difference, at most 5 % of tables report one.\n\n"
     "Examples:\n"
     "  shardquery compare before.json after.json\n"
     "  shardquery compare before/ after/\n"
     "  shardquery compare --ab --a '--uri mongodb://old -d t -c c' --b '--uri mongodb://new -d t "
     "-c c' mot\n"
     "  shardquery compare --ab --a '-d t -c snappy' --b '-d t -c zstd' --threshold 5% mot\n"
     "      exit status 1 when B is slower by more than 5 %",
     true, sl_query_compare},
    {"list", LIST, "", "Lists the built-in suites and their queries.",
     "Give the name of a suite to `shardquery run`.", false, list},
    {0},
};

static bool check_preference(const char *text, char *problem, size_t room) {
    static const char *const modes[] = {"primary", "primaryPreferred", "secondary",
                                        "secondaryPreferred", "nearest"};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(text, modes[i]) == 0)
            return true;
    }
    snprintf(problem, room,
             "expected primary, primaryPreferred, secondary, secondaryPreferred or nearest");
    return false;
}

/* clang-format off */
static const sl_option_row rows[] = {
    {.name = "uri", SL_ROW_TEXT("URI"), .fallback = "mongodb://127.0.0.1:27017",
     SL_ROW_OF(RUN, "Collection"), .secret = SL_CREDENTIALS,
     .help = "Connection string of the server or the routers."},
    {.name = "db", .letter = 'd', SL_ROW_TEXT("NAME"), SL_ROW_OF(RUN, "Collection"),
     .help = "Database; overrides the suite's."},
    {.name = "collection", .letter = 'c', SL_ROW_TEXT("NAME"), SL_ROW_OF(RUN, "Collection"),
     .help = "Collection; overrides the suite's."},
    {.name = "read-preference", SL_ROW_LIST("MODE"), SL_ROW_OF(RUN, "Collection"),
     .help = "Which members to read from: primary, primaryPreferred, secondary, secondaryPreferred "
             "or nearest. Overrides the query's and the URI's. Given several times, each is "
             "measured.",
     .check = check_preference},
    {.name = "timeout", SL_ROW_COUNT("SECONDS", 1, 86400), .fallback = "120",
     SL_ROW_OF(RUN, "Collection"),
     .help = "Give up a query when the server is silent for this time on all connections. A query "
             "may take longer, as long as the server answers on another connection."},
    SL_CONNECTION_ROWS(RUN),

    {.name = "query", SL_ROW_LIST("NAME"), SL_ROW_OF(RUN, "Queries"),
     .help = "Run only this query; may be given several times."},
    {.name = "pipeline", SL_ROW_TEXT("JSON"), SL_ROW_OF(RUN, "Queries"),
     .help = "Run this aggregation, instead of suites or in addition to them."},
    {.name = "limit", SL_ROW_TEXT("N,N,..."), SL_ROW_OF(RUN, "Queries"),
     .help = "Value of the parameter `limit` of the queries; with several values, each is "
             "measured.",
     .check = sl_query_check_numbers},
    {.name = "seed", SL_ROW_COUNT("N", 0, 0), .fallback = "1", SL_ROW_OF(RUN | COMPARE, "Queries"),
     .help = "Seed of random values, and of the random permutations of `compare`."},
    {.name = "answers", .kind = SL_OPTION_STRING, .argument = "FILE", .commands = RUN,
     .group = "Queries",
     .help = "JSON file whose object \"answers\" has the expected documents of each query by name; "
             "overrides what the suite expects."},

    {.name = "repeat", SL_ROW_COUNT("N", 1, SL_REPEAT_MAX), SL_ROW_OF(RUN, "Repeated runs"),
     .help = "How often each query is timed. Without it the suite's number, or else 5."},
    {.name = "warm-up", SL_ROW_COUNT("N", 0, SL_REPEAT_MAX), SL_ROW_OF(RUN, "Repeated runs"),
     .help = "How often each query runs before the timed runs. Without it the suite's number, or "
             "else 1."},
    {.name = "cold", SL_ROW_TEXT("COMMAND"), SL_ROW_OF(RUN, "Repeated runs"),
     .help = "Run this shell command before each run, for example to empty caches. Its time is not "
             "counted."},
    {.name = "explain", SL_ROW_FLAG, SL_ROW_OF(RUN, "Repeated runs"),
     .help = "Show the plan: which access path each shard takes, how many documents it examines, "
             "and whether the pipeline is split over the shards."},

    {.name = "clients", .letter = 'j', SL_ROW_TEXT("N,N,..."), SL_ROW_OF(RUN, "Under load"),
     .help = "Number of clients that work at the same time, each with its own connection; with "
             "several numbers, each is measured. With --rate: the largest number of operations in "
             "progress at a time (64 without this option).",
     .check = sl_query_check_numbers},
    {.name = "rate", SL_ROW_COUNT("N", 0, 10000000), .fallback = "0", SL_ROW_OF(RUN, "Under load"),
     .help = "Operations per second that become due, over all clients, whether or not the server "
             "keeps up."},
    {.name = "duration", SL_ROW_TIME, .fallback = "10s", SL_ROW_OF(RUN, "Under load"),
     .help = "How long each measurement takes."},
    {.name = "operations", SL_ROW_COUNT("N", 0, 0), .fallback = "0", SL_ROW_OF(RUN, "Under load"),
     .help = "Measure this number of operations, over all clients, instead of a duration."},
    {.name = "warm-up-time", SL_ROW_TIME, .fallback = "1s", SL_ROW_OF(RUN, "Under load"),
     .help = "How long the clients run before each measurement; not counted."},
    {.name = "max-lag", SL_ROW_TIME, .fallback = "10s", SL_ROW_OF(RUN, "Under load"),
     .help = "With --rate: an operation that could not be sent this long after it was due is "
             "skipped, and counted as skipped."},
    {.name = "during", SL_ROW_TEXT("COMMAND"), SL_ROW_OF(RUN, "Under load"),
     .help = "Measure before, during and after this shell command."},

    {.name = "rows", SL_ROW_COUNT("N", 0, 1000000), .fallback = "20", SL_ROW_OF(RUN, "Output"),
     .help = "Show at most this number of documents of each answer; 0 shows none."},
    {.name = "report", SL_ROW_TEXT("FILE.json"), SL_ROW_OF(RUN | COMPARE, "Output"),
     .help = "Write all results as JSON. `run` updates the file after each query."},
    {.name = "html", SL_ROW_TEXT("FILE.html"), SL_ROW_OF(RUN, "Output"),
     .help = "Write a page with charts."},
    {.name = "csv", SL_ROW_TEXT("FILE.csv"), SL_ROW_OF(RUN, "Output"),
     .help = "Write the figures, one line for each query and measurement."},
    {.name = "quiet", SL_ROW_FLAG, SL_ROW_OF(RUN, "Output"),
     .help = "Print only the table of figures: no documents, no progress."},

    {.name = "ab", SL_ROW_FLAG, SL_ROW_OF(COMPARE, PAIRS),
     .help = "Run the suites with two sets of options, A (old) and B (new), in pairs of runs."},
    {.name = "a", SL_ROW_TEXT("OPTIONS"), SL_ROW_OF(COMPARE, PAIRS),
     .help = "Options of `run` for A, quoted as in a shell: '--uri mongodb://old -d t -c c'."},
    {.name = "b", SL_ROW_TEXT("OPTIONS"), SL_ROW_OF(COMPARE, PAIRS),
     .help = "Options of `run` for B."},
    {.name = "runs", SL_ROW_COUNT("N", 1, 1000), .fallback = "10", SL_ROW_OF(COMPARE, PAIRS),
     .help = "Pairs of runs. A verdict needs at least 6, and more in a table of several rows."},
    {.name = "threshold", SL_ROW_COUNT("P%", 0, 0), .choices = "P%", .fallback = "0%",
     SL_ROW_OF(COMPARE, "Verdict"),
     .help = "Exit with 1 only if B (or NEW) is slower by more than this percentage."},
    {0},
};
/* clang-format on */

int main(int count, char **words) {
    static const sl_program program = {
        .name = "shardquery",
        .version = SHARDLOAD_VERSION,
        .summary = "times queries against a collection and checks their answers",
        .environment_prefix = "SHARDLOAD",
        .commands = commands,
        .rows = rows,
        .epilogue =
            "Exit codes: 0 success; 1 compare: the new side is slower; 2 wrong options, or the\n"
            "command of --during failed; 3 a suite, an answers file or a report cannot be read;\n"
            "4 the server cannot be reached, or a query failed; 5 an answer is wrong;\n"
            "6 no memory, disk space, threads or open files left; 130 interrupted.",
    };
    sl_memory_begin();
    return sl_memory_end(sl_options_main(&program, count, words));
}
