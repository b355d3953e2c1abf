/* SPDX-License-Identifier: Apache-2.0 */
/* The options of shardquery. */
#include <stdio.h>

#include "util/text.h"

#include "connection_string.h"
#include "query_session.h"

#define PAIRS "Measuring in pairs (--ab)"

static bool check_preference(const char *text, char *problem, size_t room) {
    static const char modes[] = "primary|primaryPreferred|secondary|secondaryPreferred|nearest";
    if (sl_list_has(modes, '|', sl_text_of(text)))
        return true;
    snprintf(problem, room,
             "expected primary, primaryPreferred, secondary, secondaryPreferred or nearest");
    return false;
}

/* clang-format off */
const sl_option_row sl_query_rows[] = {
    {.name = "uri", SL_ROW_TEXT("URI"), .fallback = "mongodb://127.0.0.1:27017",
     SL_ROW_OF(SL_QUERY_RUN, "Collection", NONE), .secret = SL_CREDENTIALS,
     .help = "Connection string of the server or the routers."},
    {.name = "db", .letter = 'd', SL_ROW_TEXT("NAME"), SL_ROW_OF(SL_QUERY_RUN, "Collection", NONE),
     .help = "Database; overrides that of the suite."},
    {.name = "collection", .letter = 'c', SL_ROW_TEXT("NAME"), SL_ROW_OF(SL_QUERY_RUN, "Collection", NONE),
     .help = "Collection; overrides that of the suite."},
    {.name = "read-preference", SL_ROW_LIST("MODE"), SL_ROW_OF(SL_QUERY_RUN, "Collection", NONE),
     .help = "Which members to read from: primary, primaryPreferred, secondary, "
             "secondaryPreferred or nearest. Overrides that of the query and of --uri. If the "
             "option is given several times, each value is measured.",
     .check = check_preference},
    {.name = "timeout", SL_ROW_COUNT("SECONDS", 1, 86400), .fallback = "120",
     SL_ROW_OF(SL_QUERY_RUN, "Collection", NONE),
     .help = "Fail a query if the server does not reply on any connection for this time. A query "
             "may take longer, as long as the server replies on another connection."},
    SL_CONNECTION_ROWS(SL_QUERY_RUN),

    {.name = "query", SL_ROW_LIST("NAME"), SL_ROW_OF(SL_QUERY_RUN, "Queries", NONE),
     .help = "Run only this query; may be given several times."},
    {.name = "pipeline", SL_ROW_TEXT("JSON"), SL_ROW_OF(SL_QUERY_RUN, "Queries", NONE),
     .help = "Run this aggregation, instead of suites or in addition to them."},
    {.name = "limit", SL_ROW_TEXT("N,N,..."), SL_ROW_OF(SL_QUERY_RUN, "Queries", NONE),
     .help = "Value of the parameter `limit` of the queries. Each of several values is measured.",
     .check = sl_query_check_numbers},
    {.name = "seed", SL_ROW_COUNT("N", 0, 0), .fallback = "1", SL_ROW_OF(SL_QUERY_RUN | SL_QUERY_COMPARE, "Queries", NONE),
     .help = "Seed of random values, and of the random permutations of `compare`."},
    {.name = "answers", SL_ROW_FILE("FILE", READ), SL_ROW_OF(SL_QUERY_RUN, "Queries", NONE),
     .help = "JSON file whose object \"answers\" has the expected documents of each query by "
             "name; overrides the expected answers of the suite."},

    {.name = "repeat", SL_ROW_COUNT("N", 1, SL_REPEAT_MAX), SL_ROW_OF(SL_QUERY_RUN, "Repeated runs", NONE),
     .help = "How often each query is timed. Without this option, the number in the suite, or 5."},
    {.name = "warm-up", SL_ROW_COUNT("N", 0, SL_REPEAT_MAX), SL_ROW_OF(SL_QUERY_RUN, "Repeated runs", NONE),
     .help = "How often each query runs before the timed runs. Without this option, the number in "
             "the suite, or 1."},
    {.name = "cold", SL_ROW_TEXT("COMMAND"), SL_ROW_OF(SL_QUERY_RUN, "Repeated runs", NONE),
     .secret = SL_COMMAND_LINE,
     .help = "Run this shell command before each run, for example to empty caches. Its time is not "
             "counted."},
    {.name = "explain", SL_ROW_FLAG, SL_ROW_OF(SL_QUERY_RUN, "Repeated runs", NONE),
     .help = "Show the plan: the access path of each shard, the number of documents that it "
             "examines, and whether the pipeline is split over the shards."},

    {.name = "clients", .letter = 'j', SL_ROW_TEXT("N,N,..."), SL_ROW_OF(SL_QUERY_RUN, "Under load", NONE),
     .help = "Number of clients that work at the same time, each with its own connection. Each of "
             "several numbers is measured. With --rate: the largest number of operations in "
             "progress at a time (64 without this option).",
     .check = sl_query_check_numbers},
    {.name = "rate", SL_ROW_COUNT("N", 0, 10000000), .fallback = "0", SL_ROW_OF(SL_QUERY_RUN, "Under load", NONE),
     .help = "Operations that are due per second, over all clients, even if the server does not "
             "reply fast enough."},
    {.name = "duration", SL_ROW_TIME, .fallback = "10s", SL_ROW_OF(SL_QUERY_RUN, "Under load", NONE),
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

    {.name = "rows", SL_ROW_COUNT("N", 0, 1000000), .fallback = "20", SL_ROW_OF(SL_QUERY_RUN, "Output", NONE),
     .help = "Show at most this number of documents of each answer; 0 shows none."},
    {.name = "report", SL_ROW_FILE("FILE.json", WRITTEN), SL_ROW_OF(SL_QUERY_RUN | SL_QUERY_COMPARE, "Output", NONE),
     .help = "Write all results as JSON. `run` updates the file after each query."},
    {.name = "html", SL_ROW_FILE("FILE.html", WRITTEN), SL_ROW_OF(SL_QUERY_RUN, "Output", NONE),
     .help = "Write a page with charts."},
    {.name = "csv", SL_ROW_FILE("FILE.csv", WRITTEN), SL_ROW_OF(SL_QUERY_RUN, "Output", NONE),
     .help = "Write the figures, one line for each query and measurement."},
    {.name = "quiet", SL_ROW_FLAG, SL_ROW_OF(SL_QUERY_RUN, "Output", NONE),
     .help = "Print only the table of figures: no documents, no progress."},

    {.name = "ab", SL_ROW_FLAG, SL_ROW_OF(SL_QUERY_COMPARE, PAIRS, NONE),
     .help = "Run the suites with two sets of options, A (old) and B (new), in pairs of runs."},
    {.name = "a", SL_ROW_FILE("OPTIONS", READ_WORDS), SL_ROW_OF(SL_QUERY_COMPARE, PAIRS, NONE),
     .secret = SL_COMMAND_LINE,
     .help = "Options of `run` for A, quoted as in a shell: '--uri mongodb://old -d t -c c'."},
    {.name = "b", SL_ROW_FILE("OPTIONS", READ_WORDS), SL_ROW_OF(SL_QUERY_COMPARE, PAIRS, NONE),
     .secret = SL_COMMAND_LINE,
     .help = "Options of `run` for B."},
    {.name = "runs", SL_ROW_COUNT("N", 1, 1000), .fallback = "10", SL_ROW_OF(SL_QUERY_COMPARE, PAIRS, NONE),
     .help = "Pairs of runs. A verdict needs at least 6, and more in a table of several rows."},
    {.name = "threshold", SL_ROW_COUNT("P%", 0, 0), .choices = "P%", .fallback = "0%",
     SL_ROW_OF(SL_QUERY_COMPARE, "Verdict", NONE),
     .help = "Exit with 1 only if B (or NEW) is slower by more than this percentage."},
    {0},
};
/* clang-format on */
