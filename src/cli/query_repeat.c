/* SPDX-License-Identifier: Apache-2.0 */
/* `shardquery run` without clients: each query runs alone, several times; with --limit for each of
 * its values. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/context.h"
#include "util/print.h"

#include "query_session.h"

static void show_progress(void *context, unsigned run, unsigned runs) {
    sl_print_to(sl_screen_stream(), "\r%s: run %u of %u\033[K", (const char *)context, run, runs);
}

static void run_query(sl_query_session *s, sl_query *query, sl_query_options *options,
                      sl_query_run *run) {
    bool quiet = sl_option_flag(s->options, "quiet");
    bool progress = !quiet && sl_screen_is_terminal(), plan = sl_option_flag(s->options, "explain");
    bson_t expected;
    uint64_t ignored;
    options->expected = sl_query_expected(s, query, &expected) ? &expected : NULL;
    options->progress = progress ? show_progress : NULL;
    options->context = query->name;
    /* The number of documents examined is read from the plan, at the cost of one more run, which
     * also warms up caches. Some queries examine a number that is known without the plan. */
    options->explain = plan || options->warm_up > 0;
    if (!plan && sl_examined_by_definition(query, options->limit, options->documents, &ignored))
        options->explain = false;
    bool ok = sl_query_execute(s->connection, query, options, run);
    if (!options->explain)
        run->examined_known =
            sl_examined_by_definition(query, options->limit, options->documents, &run->examined);
    if (progress)
        fputs("\r\033[K", sl_screen_stream());
    if (!ok && run->error.code != SL_EXIT_INTERRUPTED)
        sl_query_fail(&run->error);
    s->failed = s->failed || (!ok && run->answer != SL_ANSWER_UNSUPPORTED);
    s->wrong = s->wrong || run->answer == SL_ANSWER_WRONG;
    if (!quiet && options->limit == 0)
        sl_show_run(query, run, (size_t)sl_option_number(s->options, "rows"), plan);
    fflush(sl_output());
}

static void print_heading(const sl_query_session *s, const sl_suite *suite,
                          const sl_query_options *options) {
    sl_query_print_heading(s, suite, options->documents);
    sl_print("%u run%s after %u to warm up\n\n", options->repeat, options->repeat == 1 ? "" : "s",
             options->warm_up);
}

/* All runs of a suite; the elements at one index belong together. */
typedef struct list {
    sl_query_outcome *outcomes;
    sl_query_run *runs;
    sl_query_options *options;
    size_t count;
} list;

/* In a suite whose queries must agree, compares run `at` with the first run from `first` that
 * returned documents. */
static void compare_answers(sl_query_session *s, const list *all, size_t first, size_t at) {
    sl_query_run *run = &all->runs[at];
    if (run->answer != SL_ANSWER_NOT_CHECKED || run->count == 0)
        return;
    while (first < at && all->runs[first].count == 0)
        first++;
    if (first == at)
        return;
    bool same = sl_answers_agree(all->runs[first].documents, run->documents, &run->differences);
    run->answer = same ? SL_ANSWER_OK : SL_ANSWER_WRONG;
    all->runs[first].answer = SL_ANSWER_OK;
    s->wrong = s->wrong || !same;
}

/* Adds the outcome to the report and writes the report. */
static bool keep(const sl_query_session *s, const sl_query_outcome *outcome, sl_error *error) {
    return (sl_report_append(s->queries, outcome) ||
            sl_error_memory(error, "keeping the report")) &&
           sl_query_write_report(s, false, error);
}

static bool run_queries(sl_query_session *s, const sl_suite *suite, const sl_query_options *options,
                        list *all, sl_error *error) {
    bool ok = true;
    size_t first = all->count;
    for (size_t i = 0; ok && i < suite->count && !atomic_load(&s->stop); i++) {
        sl_query *query = &suite->queries[i];
        if (!sl_query_selected(s->options, query))
            continue;
        size_t at = all->count++;
        all->options[at] = *options;
        all->outcomes[at] = (sl_query_outcome){.suite = suite,
                                               .query = query,
                                               .options = &all->options[at],
                                               .run = &all->runs[at],
                                               .documents = options->documents,
                                               .documents_known = options->documents > 0};
        run_query(s, query, &all->options[at], &all->runs[at]);
        if (suite->agree) /* a later run may change the outcome of the first: kept below */
            compare_answers(s, all, first, at);
        else
            ok = keep(s, &all->outcomes[at], error);
    }
    for (size_t i = first; ok && suite->agree && i < all->count; i++)
        ok = keep(s, &all->outcomes[i], error);
    return ok;
}

/* The option, or else the suite's number. */
static unsigned count_option(const sl_query_session *s, const char *name, unsigned of_suite) {
    return sl_option_given(s->options, name) ? (unsigned)sl_option_number(s->options, name)
                                             : of_suite;
}

/* Measures with each --read-preference; without one, with the query's own. */
static bool run_preferences(sl_query_session *s, const sl_suite *suite, sl_query_options *options,
                            list *all, sl_error *error) {
    size_t count = sl_option_list_count(s->options, "read-preference");
    bool ok = true;
    for (size_t i = 0; ok && i < (count ? count : 1); i++) {
        options->read_preference =
            count ? sl_option_list_item(s->options, "read-preference", i) : NULL;
        ok = run_queries(s, suite, options, all, error);
    }
    return ok;
}

bool sl_query_repeat_suite(sl_query_session *s, const sl_suite *suite, sl_error *error) {
    uint64_t limits[SL_STEPS_MAX];
    size_t steps = sl_query_numbers(s->options, "limit", limits);
    size_t preferences = sl_option_list_count(s->options, "read-preference");
    sl_query_options options = {
        .database = sl_query_database(s, suite),
        .collection = sl_query_collection(s, suite),
        .repeat = count_option(s, "repeat", suite->repeat),
        .warm_up = count_option(s, "warm-up", suite->warm_up),
        .seed = sl_option_number(s->options, "seed"),
        .cold = sl_option_string(s->options, "cold"),
        .stop = &s->stop,
        .limit = suite->limit,
    };
    if (!sl_query_count(s, suite, &options.documents, error))
        return false;
    print_heading(s, suite, &options);

    size_t most = suite->count * (steps ? steps : 1) * (preferences ? preferences : 1);
    list all = {.outcomes = calloc(most, sizeof *all.outcomes),
                .runs = calloc(most, sizeof *all.runs),
                .options = calloc(most, sizeof *all.options)};
    bool ok = (all.outcomes && all.runs && all.options) ||
              sl_error_memory(error, "running a query suite");
    for (size_t i = 0; ok && i < (steps ? steps : 1); i++) {
        options.limit = steps ? (int64_t)limits[i] : suite->limit;
        ok = run_preferences(s, suite, &options, &all, error);
    }
    if (ok && all.count > 0 && !sl_show_timings(all.outcomes, all.count))
        ok = sl_error_memory(error, "printing timings");
    for (size_t i = 0; i < all.count; i++) {
        sl_show_differences(&all.outcomes[i]);
        sl_query_run_clear(&all.runs[i]);
    }
    free(all.options);
    free(all.runs);
    free(all.outcomes);
    return ok;
}
