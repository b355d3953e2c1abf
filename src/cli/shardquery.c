/* SPDX-License-Identifier: Apache-2.0 */
/* shardquery: times queries against a collection and checks their answers.
 *
 *   run      query_session.c reads suites and keeps the report; query_repeat.c runs one query after the
 *            other, query_load.c many clients at the same time
 *   compare  query_compare.c
 *   list     the suites that are built in
 *
 * src/query/ does the measuring. */
#include <shardload/log.h>

#include <stdlib.h>
#include <string.h>

#include <shardload/embedded.h>
#include <shardload/print.h>

#include "connection_string.h"
#include "query_session.h"

enum { RUN = 1, COMPARE = 2, LIST = 4 };

/* The number of clients that are connected at the same time at most. */
static unsigned clients_needed(const sl_query_session *s) {
    uint64_t clients[SL_STEPS_MAX], most = 64; /* of an open loop, and of a statistic by threads */
    size_t count = sl_query_numbers(s->options, "clients", clients);
    for (size_t i = 0; i < count; i++)
        most = clients[i] > most ? clients[i] : most;
    return (unsigned)most;
}

static bool check_options(const sl_query_session *s, sl_error *error) {
    static const char *const of_load[] = {"during", "operations", "duration", "warm-up-time",
                                          "max-lag"};
    static const char *const of_repeat[] = {"repeat", "warm-up", "cold", "explain"};
    bool load = sl_query_is_load(s->options);
    const char *const *wrong = load ? of_repeat : of_load;
    size_t count = load ? sizeof of_repeat / sizeof of_repeat[0] : sizeof of_load / sizeof of_load[0];
    for (size_t i = 0; i < count; i++) {
        if (sl_option_given(s->options, wrong[i]))
            return sl_error_set(error, SL_EXIT_USAGE,
                                load ? "--%s belongs to repeated runs; leave it out with --clients "
                                       "or --rate"
                                     : "--%s belongs to measuring under load; add --clients or --rate",
                                wrong[i]);
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
        sl_print_to(stderr, "shardquery: interrupted: only what was measured so far is shown\n");
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
     "A SUITE is a YAML file, the name of one that is built in (see `shardquery list`), or - for\n"
     "standard input. There are three ways of measuring:\n\n"
     "  repeated (default)   each query alone, a few times to warm up and then --repeat times\n"
     "  closed loop          --clients 8,16,32: clients at the same time, each sending its next\n"
     "                       operation when the last one has been answered\n"
     "  open loop            --rate 800: operations are due at fixed times, and latency counts from\n"
     "                       then, so that a server that stalls shows\n\n"
     "Examples:\n"
     "  shardquery run -d test -c mot mot\n"
     "      the built-in suite `mot` on a server of this machine\n"
     "  shardquery run --uri mongodb://router1,router2 -d test -c mot --answers answers.json mot\n"
     "      checks each answer against the answers that the data generator computed\n"
     "  shardquery run -d test -c t --pipeline '[{\"$count\": \"n\"}]'\n"
     "      one aggregation, without a file\n"
     "  shardquery run -d kv -c records --clients 8,16,32,64 --duration 30s ycsb\n"
     "      throughput and latency of each query at each number of clients\n"
     "  shardquery run -d kv -c records --rate 800 --query point-read --html reads.html ycsb\n"
     "      800 operations a second, and a page with pictures\n"
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
     "The unit is one run of the program, because the repeats within a run are not independent. OLD\n"
     "and NEW are each a report of `run`, several reports with commas between them, or a folder of\n"
     "reports. A verdict needs at least 4 runs on each side.\n\n"
     "With --ab the program measures both sides itself, in pairs: each run is a process of its own,\n"
     "and the order within each pair is random, so that whatever else the machine does affects both\n"
     "sides equally. Use it to compare two servers, two options or two data models. A verdict needs\n"
     "at least 6 pairs.\n\n"
     "The table shows the geometric mean of each side, their ratio, its 95 % interval (permutation\n"
     "test), and a verdict. The level of 5 % holds for all rows together: if there is no difference,\n"
     "at most 5 % of tables report one.\n\n"
     "Examples:\n"
     "  shardquery compare before.json after.json\n"
     "  shardquery compare before/ after/\n"
     "  shardquery compare --ab --a '--uri mongodb://old -d t -c c' --b '--uri mongodb://new -d t "
     "-c c' mot\n"
     "  shardquery compare --ab --runs 20 --a '-d t -c snappy' --b '-d t -c zstd' --threshold 5% mot\n"
     "      exit status 1 when the second one is slower by more than 5 %",
     true, sl_query_compare},
    {"list", LIST, "", "Shows the suites that are built in.",
     "Their names can be given to `shardquery run`.", false, list},
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

static const sl_option_row rows[] = {
    {.name = "uri", .kind = SL_OPTION_STRING, .argument = "URI",
     .fallback = "mongodb://127.0.0.1:27017", .commands = RUN, .group = "Collection",
     .help = "Connection string of the server or the routers.", .secret = SL_CREDENTIALS},
    {.name = "db", .letter = 'd', .kind = SL_OPTION_STRING, .argument = "NAME", .commands = RUN,
     .group = "Collection", .help = "Database; overrides the suite's."},
    {.name = "collection", .letter = 'c', .kind = SL_OPTION_STRING, .argument = "NAME",
     .commands = RUN, .group = "Collection", .help = "Collection; overrides the suite's."},
    {.name = "read-preference", .kind = SL_OPTION_LIST, .argument = "MODE", .commands = RUN,
     .group = "Collection", .check = check_preference,
     .help = "Which members to read from: primary, primaryPreferred, secondary, secondaryPreferred "
             "or nearest. Overrides the query's and the URI's. Given several times, each is "
             "measured."},
    {.name = "timeout", .kind = SL_OPTION_COUNT, .argument = "SECONDS", .fallback = "120",
     .minimum = 1, .maximum = 86400, .commands = RUN, .group = "Collection",
     .help = "How long the server may be silent before a query is given up. A query may take longer, "
             "as long as the server answers on other connections."},
    SL_CONNECTION_ROWS(RUN),

    {.name = "query", .kind = SL_OPTION_LIST, .argument = "NAME", .commands = RUN,
     .group = "Queries", .help = "Run only this query; may be given several times."},
    {.name = "pipeline", .kind = SL_OPTION_STRING, .argument = "JSON", .commands = RUN,
     .group = "Queries", .help = "Run this aggregation, instead of or besides suites."},
    {.name = "limit", .kind = SL_OPTION_STRING, .argument = "N,N,...", .commands = RUN,
     .group = "Queries", .check = sl_query_check_numbers,
     .help = "Value of the parameter `limit` of the queries; with several values, each is "
             "measured."},
    {.name = "seed", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "1",
     .commands = RUN | COMPARE, .group = "Queries",
     .help = "Seed of random values, and of the random permutations of `compare`."},
    {.name = "answers", .kind = SL_OPTION_STRING, .argument = "FILE", .commands = RUN,
     .group = "Queries",
     .help = "JSON file whose object \"answers\" has the expected documents of each query by name; "
             "overrides what the suite expects."},

    {.name = "repeat", .kind = SL_OPTION_COUNT, .argument = "N", .minimum = 1,
     .maximum = SL_REPEAT_MAX, .commands = RUN, .group = "Repeated runs",
     .help = "How often each query is timed. Without it the suite's number, or else 5."},
    {.name = "warm-up", .kind = SL_OPTION_COUNT, .argument = "N", .maximum = SL_REPEAT_MAX,
     .commands = RUN, .group = "Repeated runs",
     .help = "How often each query runs before the timed runs. Without it the suite's number, or "
             "else 1."},
    {.name = "cold", .kind = SL_OPTION_STRING, .argument = "COMMAND", .commands = RUN,
     .group = "Repeated runs",
     .help = "Run this shell command before each run, for example one that empties caches. Its time "
             "is not counted."},
    {.name = "explain", .kind = SL_OPTION_FLAG, .commands = RUN, .group = "Repeated runs",
     .help = "Show the plan: which access path each shard takes, how many documents it examines, "
             "and whether the pipeline is split over the shards."},

    {.name = "clients", .letter = 'j', .kind = SL_OPTION_STRING, .argument = "N,N,...",
     .commands = RUN, .group = "Under load", .check = sl_query_check_numbers,
     .help = "Number of clients that work at the same time, each with its own connection; with "
             "several numbers, each is measured. With --rate: the largest number of operations in "
             "progress at a time (64 without it)."},
    {.name = "rate", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "0",
     .maximum = 10000000, .commands = RUN, .group = "Under load",
     .help = "Operations per second that become due, over all clients, whether or not the server "
             "keeps up."},
    {.name = "duration", .kind = SL_OPTION_SECONDS, .argument = "TIME", .fallback = "10s",
     .commands = RUN, .group = "Under load", .help = "How long each measurement takes."},
    {.name = "operations", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "0",
     .commands = RUN, .group = "Under load",
     .help = "Measure this number of operations, over all clients, instead of a duration."},
    {.name = "warm-up-time", .kind = SL_OPTION_SECONDS, .argument = "TIME", .fallback = "1s",
     .commands = RUN, .group = "Under load",
     .help = "How long the clients run before each measurement; not counted."},
    {.name = "max-lag", .kind = SL_OPTION_SECONDS, .argument = "TIME", .fallback = "10s",
     .commands = RUN, .group = "Under load",
     .help = "With --rate: an operation that could not be sent this long after it was due is "
             "skipped, and counted as such."},
    {.name = "during", .kind = SL_OPTION_STRING, .argument = "COMMAND", .commands = RUN,
     .group = "Under load",
     .help = "Measure before, during and after this shell command."},

    {.name = "rows", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "20",
     .maximum = 1000000, .commands = RUN, .group = "Output",
     .help = "Show at most this number of documents of each answer; 0 shows none."},
    {.name = "report", .kind = SL_OPTION_STRING, .argument = "FILE.json",
     .commands = RUN | COMPARE, .group = "Output",
     .help = "Write everything that was measured. `run` keeps it up to date after each query."},
    {.name = "html", .kind = SL_OPTION_STRING, .argument = "FILE.html", .commands = RUN,
     .group = "Output", .help = "Write a page with pictures."},
    {.name = "csv", .kind = SL_OPTION_STRING, .argument = "FILE.csv", .commands = RUN,
     .group = "Output",
     .help = "Write the figures, one line for each query and measurement."},
    {.name = "quiet", .kind = SL_OPTION_FLAG, .commands = RUN, .group = "Output",
     .help = "Only the table of figures: no documents, no progress."},

    {.name = "ab", .kind = SL_OPTION_FLAG, .commands = COMPARE, .group = "Measuring in turn",
     .help = "Measure two ways of running the suites, A (old) and B (new), in pairs."},
    {.name = "a", .kind = SL_OPTION_STRING, .argument = "OPTIONS", .commands = COMPARE,
     .group = "Measuring in turn",
     .help = "Options of `run` for A, quoted as in a shell: '--uri mongodb://old -d t -c c'."},
    {.name = "b", .kind = SL_OPTION_STRING, .argument = "OPTIONS", .commands = COMPARE,
     .group = "Measuring in turn", .help = "Options of `run` for B."},
    {.name = "runs", .kind = SL_OPTION_COUNT, .argument = "N", .fallback = "10", .minimum = 1,
     .maximum = 1000, .commands = COMPARE, .group = "Measuring in turn",
     .help = "Pairs of runs. A verdict needs at least 6, and more in a table of several rows."},
    {.name = "threshold", .kind = SL_OPTION_COUNT, .argument = "P%", .fallback = "0%",
     .choices = "P%", .commands = COMPARE, .group = "Verdict",
     .help = "Exit with 1 only where B (or NEW) is slower by more than this."},
    {0},
};

int main(int count, char **words) {
    static const sl_program program = {
        .name = "shardquery",
        .version = SHARDLOAD_VERSION,
        .summary = "times queries against a collection and checks their answers",
        .environment_prefix = "SHARDLOAD",
        .commands = commands,
        .rows = rows,
        .epilogue = "Exit codes: 0 success; 1 compare: the new side is slower; 2 wrong options, or the "
                    "command of\n--during failed; 3 a suite, an answers file or a report cannot be read; "
                    "4 the server cannot be\nreached, or a query failed; 5 an answer is wrong; 130 "
                    "interrupted.",
    };
    return sl_options_main(&program, count, words);
}
