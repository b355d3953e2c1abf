/* SPDX-License-Identifier: Apache-2.0 */
/* `shardquery run` under load: many clients at the same time, in closed or open loop; with --during
 * before, during and after a command. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "query/query_load.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"
#include "util/print.h"
#include "util/process.h"
#include "util/text.h"

#include "query_session.h"

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

static void show_progress(void *context, double elapsed, uint64_t succeeded, uint64_t failed) {
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
    one->plan.progress = m->progress ? show_progress : NULL;
    one->plan.context = one;
    sl_monitor *monitor = sl_monitor_start(m->session->connection);
    bool ok = sl_generate(m->session->connection, &one->plan, &one->outcome, error);
    sl_monitor_end(monitor, &one->monitor);
    if (m->progress)
        fputs("\r\033[K", sl_screen_stream());
    if (!ok)
        return false;
    const sl_load_figures *all = &one->outcome.figures[one->outcome.count];
    m->session->failed = m->session->failed || (all->failed > 0 && all->succeeded == 0);
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

static bool has_ended(pid_t child) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
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
    if (ok && has_ended(child))
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
    bool ok = sl_load_show(steps, m->count) || sl_error_memory(error, "printing figures");
    sl_load_show_notes(steps, m->count);
    for (size_t i = 0; ok && i < m->count; i++)
        ok = sl_load_adds_up(&m->steps[i].outcome) ||
             sl_error_set(error, SL_EXIT_VERIFICATION,
                          "internal error: operations attempted are not succeeded + failed + "
                          "skipped");
    free(steps);
    return ok;
}

static void print_heading(const measuring *m) {
    uint64_t rate = sl_option_number(m->session->options, "rate");
    sl_query_print_heading(m->session, m->suite, m->documents);
    if (rate)
        sl_print("open loop, %" PRIu64 " operations a second\n\n", rate);
    else
        sl_print("closed loop\n\n");
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

bool sl_query_load_suite(sl_query_session *s, sl_suite *suite, sl_error *error) {
    measuring m = {.session = s,
                   .suite = suite,
                   .progress = !sl_option_flag(s->options, "quiet") && sl_screen_is_terminal()};
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
    if (ok)
        print_heading(&m);
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
