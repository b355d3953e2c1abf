/* SPDX-License-Identifier: Apache-2.0 */
/* shardquery: times queries against a collection and checks their answers.
 *
 *   run      query_session.c opens suites and writes the report; query_commands.c runs queries
 *            one after the other, or many clients at the same time
 *   compare  query_compare.c compares reports
 *   list     lists the built-in suites
 *
 * The measurements are in src/query/. */

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "util/embedded.h"
#include "util/print.h"

#include "program.h"
#include "query_session.h"

/* ---- signals ---- */

static _Atomic bool *stop_flag; /* of the run or the comparison that listens */

static void on_signal(int number) {
    if (atomic_exchange(stop_flag, true)) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

void sl_query_listen(_Atomic bool *stop) {
    struct sigaction action = {.sa_handler = on_signal};
    stop_flag = stop;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- commands ---- */

static int run(const sl_options *options) {
    return sl_query_command(options, sl_query_listen, NULL);
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
    {"run", SL_QUERY_RUN, "[options] SUITE...",
     "Run the queries of suites and measure their times.",
     "A SUITE is a YAML file, the name of a built-in suite (see `shardquery list`), or - for\n"
     "standard input. Queries are measured in one of three modes:\n\n"
     "  repeated (default)   each query alone, a few times to warm up and then --repeat times\n"
     "  closed loop          --clients 8,16,32: clients at the same time, each sending its next\n"
     "                       operation when the previous one has been answered\n"
     "  open loop            --rate 800: operations are due at fixed times; latency is measured\n"
     "                       from these times, so that it includes the stalls of a server\n\n"
     "Examples:\n"
     "  shardquery run -d test -c mot mot\n"
     "      the built-in suite `mot` on a server of this machine\n"
     "  shardquery run --uri mongodb://router1,router2 -d test -c mot --answers answers.json mot\n"
     "      checks each answer against the expected answers in a file\n"
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
     "      the same queries with different numbers of documents\n\n"
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
    {"compare", SL_QUERY_COMPARE, "OLD NEW | --ab [--a OPTIONS] [--b OPTIONS] SUITE...",
     "Compare runs of queries, and decide whether they differ significantly.",
     "OLD and NEW are each a report of `run`, several reports separated by commas, or a folder\n"
     "of reports. A verdict needs at least 4 runs of the program on each side: repeats within a\n"
     "run do not count as runs, because they are not independent.\n\n"
     "With --ab the program measures both sides itself, in pairs: each run is a process of its\n"
     "own, and the order within each pair is random, so that other load on the machine affects\n"
     "both sides equally. Use it to compare two servers, two options or two data models. A\n"
     "verdict needs at least 6 pairs.\n\n"
     "The table shows the geometric mean of each side, their ratio, its 95 % interval\n"
     "(permutation test), and a verdict. The level of 5 % applies to all rows together: if\n"
     "nothing differs, at most 5 % of tables report a difference. A query with a wrong answer, or\n"
     "with more than 0.1 % of failed or skipped operations, is not compared.\n\n"
     "Examples:\n"
     "  shardquery compare before.json after.json\n"
     "  shardquery compare before/ after/\n"
     "  shardquery compare --ab --a '--uri mongodb://old -d t -c c' --b '--uri mongodb://new -d t "
     "-c c' mot\n"
     "  shardquery compare --ab --a '-d t -c snappy' --b '-d t -c zstd' --threshold 5% mot\n"
     "      exit status 1 if B is slower by more than 5 %",
     true, sl_query_compare},
    {"list", SL_QUERY_LIST, "", "List the built-in suites and their queries.",
     "Give the name of a suite to `shardquery run`.", false, list},
    {0},
};

#define EXIT_TEXT(name, code, shardload, shardquery, tone, words) " " #code " " shardquery ";"

int main(int count, char **words) {
    static const sl_program program = {
        .name = "shardquery",
        .version = SHARDLOAD_VERSION,
        .summary = "times queries against a collection and checks their answers",
        .environment_prefix = "SHARDLOAD",
        .commands = commands,
        .rows = sl_query_rows,
        .epilogue = "Exit codes:" SL_EXITS(EXIT_TEXT) " docs/exit-codes.md: what to do",
    };
    return sl_program_main(&program, false, count, words);
}
