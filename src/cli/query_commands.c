/* SPDX-License-Identifier: Apache-2.0 */
/* `shardquery run`: queries one after the other, or clients under load; its figures as CSV. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "query/generator.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/memory_stream.h"
#include "util/print.h"
#include "util/private_file.h"
#include "util/process.h"
#include "util/text.h"

#include "query_session.h"

/* ---- figures as CSV ---- */

/* The columns: dotted paths in an entry of the report. */
/* clang-format off */
static const char *const columns[] = {
    "suite", "name", "mode", "phase", "readPreference", "limit", "clients", "rate", "documents",
    "examined", "seconds", "attempted", "succeeded", "failed", "skipped", "operationsPerSecond",
    "minMs", "medianMs", "meanMs", "deviationMs", "maxMs", "documentsPerMsMean",
    "documentsPerMsDeviation", "latencyMs.mean", "latencyMs.p50", "latencyMs.p90", "latencyMs.p95",
    "latencyMs.p99", "latencyMs.p99_9", "latencyMs.max", "resultCount", "resultBytes", "answer",
};
/* clang-format on */
#define COLUMNS (sizeof columns / sizeof columns[0])

/* Quotes text that contains a delimiter, a quote or a line end. Text that a spreadsheet would
 * compute as a formula gets an apostrophe before it; numbers are not text. */
static void put_text(FILE *out, const char *text) {
    const char *formula = *text && strchr("=+-@\t\r", *text) ? "'" : "";
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(formula, out);
        fputs(text, out);
        return;
    }
    fprintf(out, "\"%s", formula);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_value(FILE *out, const bson_iter_t *value) {
    if (BSON_ITER_HOLDS_UTF8(value))
        put_text(out, bson_iter_utf8(value, NULL));
    else if (BSON_ITER_HOLDS_DOUBLE(value))
        sl_print_to(out, "%.9g", bson_iter_double(value));
    else
        sl_print_to(out, "%" PRId64, bson_iter_as_int64(value));
}

bool sl_query_csv_write(const bson_t *queries, const char *path, sl_error *error) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = sl_memory_stream(&text, &length);
    bson_iter_t entry, inside, value;
    if (!out || !bson_iter_init(&entry, queries))
        return sl_error_memory(error, "writing figures");
    for (size_t i = 0; i < COLUMNS; i++)
        sl_print_to(out, "%s%s", i ? "," : "", columns[i]);
    fputs("\r\n", out);
    while (bson_iter_next(&entry)) {
        for (size_t i = 0; i < COLUMNS; i++) {
            fputs(i ? "," : "", out);
            if (bson_iter_recurse(&entry, &inside) &&
                bson_iter_find_descendant(&inside, columns[i], &value))
                put_value(out, &value);
        }
        fputs("\r\n", out);
    }
    bool ok = fclose(out) == 0 ? sl_private_file_replace(path, text, length, error)
                               : sl_error_memory(error, "writing figures");
    free(text);
    return ok;
}

/* ---- queries one after the other ----
 *
 * Without clients: each query runs alone, several times; with --limit for each of
 * its values. */

static void show_progress(void *context, unsigned run, unsigned runs) {
    sl_print_to(sl_screen_stream(), "\r%s: run %u of %u\033[K", (const char *)context, run, runs);
}

static void run_query(sl_query_session *s, sl_query *query, sl_query_options *options,
                      sl_query_run *run) {
    bool progress = sl_screen_is_terminal(), plan = sl_option_flag(s->options, "explain");
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
    if (options->limit == 0)
        sl_show_run(query, run, (size_t)sl_option_number(s->options, "rows"), plan);
    fflush(sl_output());
}

/* All runs of a suite; the elements at one index belong together. */
typedef struct list {
    sl_query_outcome *outcomes;
    sl_query_run *runs;
    sl_query_options *options;
    size_t count;
} list;

/* In a suite whose queries must agree, compares run `at` with the first run from `first` that
 * returned documents, and not wrong ones. */
static void compare_answers(sl_query_session *s, const list *all, size_t first, size_t at) {
    sl_query_run *run = &all->runs[at];
    if (run->answer != SL_ANSWER_NOT_CHECKED || run->count == 0)
        return;
    while (first < at &&
           (all->runs[first].count == 0 || all->runs[first].answer == SL_ANSWER_WRONG))
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

/* Warns if most answers are empty, as those of a suite on documents with other fields. */
static void warn_of_empty_answers(const sl_suite *suite, const sl_query_options *options,
                                  const list *all) {
    size_t empty = 0;
    for (size_t i = 0; i < all->count; i++)
        empty += all->runs[i].answer == SL_ANSWER_NOT_CHECKED && all->runs[i].document_count == 0;
    if (empty > 0 && 2 * empty >= all->count && options->documents > 0)
        sl_log_warning("%zu of %zu queries returned no document: %s.%s may not hold documents of "
                       "the suite %s, or has them under other field names",
                       empty, all->count, options->database, options->collection, suite->name);
}

/* Measures one suite by repeated runs. False with an error that ends the program. */
static bool query_repeat_suite(sl_query_session *s, const sl_suite *suite, sl_error *error) {
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
    sl_query_print_heading(s, suite, options.documents);
    sl_print("%s after %u to warm up\n\n", sl_plural(options.repeat, "run"), options.warm_up);

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
    if (ok && all.count > 0)
        sl_show_timings(all.outcomes, all.count);
    warn_of_empty_answers(suite, &options, &all);
    for (size_t i = 0; i < all.count; i++) {
        sl_show_differences(&all.outcomes[i]);
        sl_query_run_clear(&all.runs[i]);
    }
    free(all.options);
    free(all.runs);
    free(all.outcomes);
    return ok;
}

/* ---- clients under load ----
 *
 * Many clients at the same time, in closed or open loop; with --during
 * before, during and after a command. */

#define RATE_CLIENTS 64 /* of an open loop without --clients */

/* One measurement, kept until the table is printed. */
typedef struct step {
    sl_load_plan plan;
    sl_load_outcome outcome;
    sl_monitor_figures monitor;
    const char *phase; /* "before", "during" or "after" the command; NULL without --during */
    char name[240];
} step;

typedef struct measuring {
    sl_query_session *session;
    const sl_suite *suite;
    uint64_t documents;
    sl_share alone; /* the only query of the current step, without a mix */
    step *steps;    /* has room for all steps of the suite */
    size_t count;
    bool progress;
} measuring;

static void show_step_progress(void *context, double elapsed, uint64_t succeeded, uint64_t failed) {
    const step *one = context;
    char number[SL_HUMAN_ROOM];
    double left = one->plan.seconds > elapsed ? one->plan.seconds - elapsed : 0;
    sl_print_to(sl_screen_stream(), "\r%s%s%s, %u clients: ", one->phase ? one->phase : "",
                one->phase ? ", " : "", one->name, one->plan.clients);
    if (elapsed < 0)
        sl_print_to(sl_screen_stream(), "warming up, %.0f s left\033[K", -elapsed);
    else if (one->plan.seconds > 0)
        sl_print_to(sl_screen_stream(), "%s operations, %llu failed, %.0f s left\033[K",
                    sl_human_count(succeeded, number), (unsigned long long)failed, left);
    else
        sl_print_to(sl_screen_stream(), "%s operations of %llu, %llu failed\033[K",
                    sl_human_count(succeeded, number), (unsigned long long)one->plan.operations,
                    (unsigned long long)failed);
}

static bool run_step(measuring *m, const sl_load_plan *plan, const char *name, const char *phase,
                     sl_error *error) {
    step *one = &m->steps[m->count++];
    const char *preference = plan->target.read_preference;
    char limit[40] = "";
    if (plan->target.limit > 0)
        snprintf(limit, sizeof limit, ", limit %" PRId64, plan->target.limit);
    one->plan = *plan;
    one->phase = phase;
    snprintf(one->name, sizeof one->name, "%.150s%s%s%.40s", name, limit, preference ? ", " : "",
             preference ? preference : "");
    one->plan.progress = m->progress ? show_step_progress : NULL;
    one->plan.context = one;
    sl_monitor *monitor = sl_monitor_start(m->session->connection);
    bool ok = sl_generate(m->session->connection, &one->plan, &one->outcome, error);
    sl_monitor_end(monitor, &one->monitor);
    if (m->progress)
        fputs("\r\033[K", sl_screen_stream());
    if (!ok)
        return false;
    const sl_load_figures *all = &one->outcome.figures[one->outcome.count];
    for (const sl_load_figures *of = one->outcome.figures; of <= all; of++) /* each query; all */
        m->session->failed |= of->succeeded == 0 && (of == all ? of->attempted : of->failed) > 0;
    if (all->attempted == 0 && !atomic_load(&m->session->stop))
        sl_log_warning("%s: no operation was measured: each began before the measurement and ended "
                       "after it; give a longer --duration",
                       one->name);
    const sl_load_step record = {.suite = m->suite,
                                 .plan = &one->plan,
                                 .outcome = &one->outcome,
                                 .monitor = &one->monitor,
                                 .phase = phase,
                                 .name = name,
                                 .documents = m->documents};
    return (sl_load_report_append(m->session->queries, &record) ||
            sl_error_memory(error, "keeping the report")) &&
           sl_query_write_report(m->session, false, error);
}

/* ---- the steps of a suite: limits, clients, queries or the mix, read preferences ---- */

static bool each_preference(measuring *m, sl_load_plan *plan, const char *name, const char *phase,
                            sl_error *error) {
    const sl_options *options = m->session->options;
    size_t count = sl_option_list_count(options, "read-preference");
    bool ok = true;
    for (size_t i = 0; ok && i < (count ? count : 1) && !atomic_load(&m->session->stop); i++) {
        plan->target.read_preference =
            count ? sl_option_list_item(options, "read-preference", i) : NULL;
        ok = run_step(m, plan, name, phase, error);
    }
    return ok;
}

/* Measures the suite's mix; without a mix, or with --query, each selected query alone. */
static bool each_query(measuring *m, sl_load_plan *plan, const char *phase, sl_error *error) {
    const sl_suite *suite = m->suite;
    bool selected = sl_option_list_count(m->session->options, "query") > 0, ok = true;
    plan->queries = suite->queries;
    if (suite->mix && !selected) {
        plan->mix = suite->mix;
        plan->mix_count = suite->mix_count;
        return each_preference(m, plan, "mix", phase, error);
    }
    for (size_t i = 0; ok && i < suite->count; i++) {
        if (!sl_query_selected(m->session->options, &suite->queries[i]))
            continue;
        m->alone = (sl_share){.query = i, .weight = 1};
        plan->mix = &m->alone;
        plan->mix_count = 1;
        ok = each_preference(m, plan, suite->queries[i].name, phase, error);
    }
    return ok;
}

static bool each_number(measuring *m, const char *phase, sl_error *error) {
    const sl_options *options = m->session->options;
    uint64_t clients[SL_STEPS_MAX] = {RATE_CLIENTS}, limits[SL_STEPS_MAX];
    size_t steps = sl_query_numbers(options, "clients", clients);
    size_t limited = sl_query_numbers(options, "limit", limits);
    sl_load_plan plan = {
        .target = {.database = sl_query_database(m->session, m->suite),
                   .collection = sl_query_collection(m->session, m->suite),
                   .seed = sl_option_number(options, "seed")},
        .seconds =
            sl_option_number(options, "operations") ? 0 : sl_option_seconds(options, "duration"),
        .operations = sl_option_number(options, "operations"),
        .warm_up = sl_option_seconds(options, "warm-up-time"),
        .rate = (double)sl_option_number(options, "rate"),
        .lag_max = sl_option_seconds(options, "max-lag"),
        .stop = &m->session->stop,
    };
    bool ok = true;
    for (size_t k = 0; ok && k < (limited ? limited : 1); k++) {
        plan.target.limit = limited ? (int64_t)limits[k] : m->suite->limit;
        for (size_t i = 0; ok && i < (steps ? steps : 1) && !atomic_load(&m->session->stop); i++) {
            plan.clients = (unsigned)clients[i];
            ok = each_query(m, &plan, phase, error);
        }
    }
    return ok;
}

/* ---- --during ---- */

/* Waits for the command, and interrupts it when the run is interrupted. False when it failed. */
static bool await_command(const measuring *m, pid_t child, sl_error *error) {
    int status;
    bool interrupted = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (!interrupted && atomic_load(&m->session->stop)) {
            kill(-child, SIGINT);
            interrupted = true;
        }
        usleep(50000);
    }
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == SL_EXIT_REJECTS))
        return true;
    return interrupted ||
           sl_error_set(error, SL_EXIT_USAGE, "--during: the command ended with %s %d",
                        WIFEXITED(status) ? "exit status" : "signal",
                        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* Warns when the command ended before the measurements that belong to it. */
static bool measure_around(measuring *m, const char *command, sl_error *error) {
    if (!each_number(m, "before", error))
        return false;
    if (atomic_load(&m->session->stop))
        return true;
    pid_t child = sl_process_start_shell(command, true);
    if (child < 0)
        return sl_error_set(error, SL_EXIT_USAGE, "--during: no process can be started");
    size_t first = m->count;
    int64_t start = sl_clock_ns();
    bool ok = each_number(m, "during", error);
    siginfo_t ended = {0};
    if (ok && waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid != 0)
        sl_log_warning("the command of --during ended before the measurements during it (number: "
                       "%zu, time: %.0f s): use a longer command or a shorter --duration",
                       m->count - first, sl_seconds_since(start));
    if (!await_command(m, child, ok ? error : &(sl_error){0}) && ok)
        return false;
    return ok && (atomic_load(&m->session->stop) || each_number(m, "after", error));
}

/* ---- a suite ---- */

static bool show(const measuring *m, sl_error *error) {
    sl_load_step *steps = calloc(m->count + 1, sizeof *steps);
    if (!steps)
        return sl_error_memory(error, "printing figures");
    for (size_t i = 0; i < m->count; i++)
        steps[i] = (sl_load_step){.suite = m->suite,
                                  .plan = &m->steps[i].plan,
                                  .outcome = &m->steps[i].outcome,
                                  .monitor = &m->steps[i].monitor,
                                  .phase = m->steps[i].phase,
                                  .name = m->steps[i].name,
                                  .documents = m->documents};
    bool ok = true;
    sl_load_show(steps, m->count);
    sl_load_show_notes(steps, m->count);
    for (size_t i = 0; ok && i < m->count; i++)
        ok = sl_load_adds_up(&m->steps[i].outcome) ||
             sl_error_set(error, SL_EXIT_VERIFICATION,
                          "internal error: operations attempted are not succeeded + failed + "
                          "skipped");
    free(steps);
    return ok;
}

/* The number of steps at most: each phase measures all combinations. */
static size_t steps_at_most(const measuring *m, size_t phases) {
    const sl_options *options = m->session->options;
    uint64_t numbers[SL_STEPS_MAX];
    size_t clients = sl_query_numbers(options, "clients", numbers);
    size_t limits = sl_query_numbers(options, "limit", numbers);
    size_t preferences = sl_option_list_count(options, "read-preference");
    return phases * m->suite->count * (clients ? clients : 1) * (limits ? limits : 1) *
           (preferences ? preferences : 1);
}

static bool query_load_suite(sl_query_session *s, sl_suite *suite, sl_error *error) {
    measuring m = {.session = s, .suite = suite, .progress = sl_screen_is_terminal()};
    const char *command = sl_option_string(s->options, "during");
    const sl_query_target target = {.database = sl_query_database(s, suite),
                                    .collection = sl_query_collection(s, suite)};
    m.steps = calloc(steps_at_most(&m, command ? 3 : 1), sizeof *m.steps);
    if (!m.steps)
        return sl_error_memory(error, "measuring under load");
    bool ok = sl_query_count(s, suite, &m.documents, error);
    for (size_t i = 0; ok && i < suite->count; i++) {
        if (sl_query_selected(s->options, &suite->queries[i]))
            ok = sl_query_sample(s->connection, &suite->queries[i], &target, error);
    }
    if (ok) {
        uint64_t rate = sl_option_number(s->options, "rate");
        sl_query_print_heading(s, suite, m.documents);
        if (rate)
            sl_print("open loop, %" PRIu64 " operations a second\n\n", rate);
        else
            sl_print("closed loop\n\n");
    }
    ok = ok && (command ? measure_around(&m, command, error) : each_number(&m, NULL, error));
    if (m.count > 0 && !m.steps[m.count - 1].outcome.figures)
        m.count--; /* the last step failed */
    sl_error printing = {0};
    if (m.count > 0 && !show(&m, &printing) && ok) {
        *error = printing;
        ok = false;
    }
    for (size_t i = 0; i < m.count; i++)
        sl_load_outcome_clear(&m.steps[i].outcome);
    free(m.steps);
    return ok;
}

/* ---- the command, from start to end ---- */

/* The largest number of clients that are connected at the same time. */
static uint64_t clients_needed(const sl_query_session *s) {
    uint64_t clients[SL_STEPS_MAX], most = 64; /* for an open loop, and for statistics in threads */
    size_t count = sl_query_numbers(s->options, "clients", clients);
    for (size_t i = 0; i < count; i++)
        most = clients[i] > most ? clients[i] : most;
    return most;
}

static bool check_options(const sl_query_session *s, sl_error *error) {
    if (sl_query_is_load(s->options))
        sl_options_refuse(s->options, SL_FROM_COMMAND_LINE, "Repeated runs",
                          "is for repeated runs: leave out this option, or --clients and --rate",
                          error);
    else
        sl_options_refuse(s->options, SL_FROM_COMMAND_LINE,
                          "during|operations|duration|warm-up-time|max-lag",
                          "is for measuring under load: add --clients or --rate", error);
    if (clients_needed(s) > SL_CLIENTS_MAX)
        sl_option_problem(error, "--clients: at most %d", SL_CLIENTS_MAX);
    return !error->code;
}

static bool on_request(void *session) {
    atomic_store(&((sl_query_session *)session)->stop, true);
    return false;
}

static void on_second_request(void *session) {
    (void)session;
}

int sl_query_command(const sl_options *options, void (*listen)(_Atomic bool *stop),
                     bson_t *report) {
    sl_error error = {0};
    sl_query_session s = {.options = options};
    bool load = sl_query_is_load(options);
    bool ok = check_options(&s, &error) && sl_query_session_open(&s, &error) &&
              sl_query_session_connect(&s, (unsigned)clients_needed(&s), &error) &&
              sl_query_write_report(&s, false, &error);
    if (ok && listen)
        listen(&s.stop);
    bool listening = ok && sl_interrupt_listen(on_request, on_second_request, &s, &error);
    ok = listening;
    for (size_t i = 0; ok && i < s.suite_count && !atomic_load(&s.stop); i++) {
        if (i > 0)
            sl_print("\n");
        ok = load ? query_load_suite(&s, s.suites[i], &error)
                  : query_repeat_suite(&s, s.suites[i], &error);
    }
    bool stopped = atomic_load(&s.stop);
    ok = ok && sl_query_write_report(&s, !stopped, &error);
    if (ok && stopped)
        sl_log_warning("interrupted: only the results so far are shown");
    if (ok && report && !sl_query_make_report(&s, !stopped, report))
        ok = sl_error_memory(&error, "making the report");
    int code = !ok        ? sl_query_fail(&error)
               : stopped  ? SL_EXIT_INTERRUPTED
               : s.failed ? SL_EXIT_CLUSTER
               : s.wrong  ? SL_EXIT_VERIFICATION
                          : SL_EXIT_OK;
    if (listening)
        sl_interrupt_stop_listening();
    sl_query_session_close(&s);
    return code;
}
