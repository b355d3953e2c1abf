/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring under load: clients at the same time, in closed or open loop, before, during and after a
 * command (--during). */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shardload/clock.h>
#include <shardload/grow.h>
#include <shardload/print.h>
#include <shardload/query_load.h>
#include <shardload/text.h>

#include "query_session.h"

#define RATE_CLIENTS 64 /* of an open loop, where --clients does not say */

/* One measurement, kept until the table is printed. */
typedef struct step {
    sl_load_plan plan;
    sl_load_outcome outcome;
    sl_monitor_figures monitor;
    const char *phase;
    char name[240];
} step;

typedef struct measuring {
    sl_query_session *session;
    const sl_suite *suite;
    uint64_t documents;
    sl_share alone; /* of the query at hand, without a mix */
    step *steps;
    size_t count, room;
    bool progress;
} measuring;

static void show_progress(void *context, double elapsed, uint64_t succeeded, uint64_t failed) {
    const step *one = context;
    char number[SL_HUMAN_ROOM];
    double left = one->plan.seconds > elapsed ? one->plan.seconds - elapsed : 0;
    sl_print_to(stderr, "\r%s%s%s, %u clients: ", one->phase ? one->phase : "", one->phase ? ", " : "",
            one->name, one->plan.clients);
    if (elapsed < 0)
        sl_print_to(stderr, "warming up, %.0f s left\033[K", -elapsed);
    else if (one->plan.seconds > 0)
        sl_print_to(stderr, "%s operations, %llu failed, %.0f s left\033[K",
                sl_human_count(succeeded, number), (unsigned long long)failed, left);
    else
        sl_print_to(stderr, "%s operations of %llu, %llu failed\033[K",
                sl_human_count(succeeded, number), (unsigned long long)one->plan.operations,
                (unsigned long long)failed);
}

static step *next_step(measuring *m, sl_error *error) {
    step *steps = sl_grow(m->steps, m->count, &m->room, sizeof *steps);
    if (!steps) {
        sl_error_memory(error, "measuring under load");
        return NULL;
    }
    m->steps = steps;
    step *one = &steps[m->count];
    memset(one, 0, sizeof *one);
    return one;
}

static bool run_step(measuring *m, const sl_load_plan *plan, const char *name, const char *phase,
                     sl_error *error) {
    step *one = next_step(m, error);
    if (!one)
        return false;
    const char *preference = plan->place.read_preference;
    char limit[40] = "";
    if (plan->place.limit > 0)
        snprintf(limit, sizeof limit, ", limit %" PRId64, plan->place.limit);
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
        fputs("\r\033[K", stderr);
    m->count++;
    if (!ok)
        return false;
    const sl_load_figures *all = &one->outcome.figures[one->outcome.count];
    m->session->failed = m->session->failed || (all->failed > 0 && all->succeeded == 0);
    const sl_load_step record = {.suite = m->suite, .plan = &one->plan, .outcome = &one->outcome,
                                 .monitor = &one->monitor, .phase = phase, .name = name,
                                 .documents = m->documents};
    return (sl_load_report_append(m->session->queries, &record) ||
            sl_error_memory(error, "keeping the report")) &&
           sl_query_write_report(m->session, false, error);
}

/* ---- what is measured: limits, numbers of clients, queries or the mix, read preferences ---- */

static bool each_preference(measuring *m, sl_load_plan *plan, const char *name, const char *phase,
                            sl_error *error) {
    const sl_options *options = m->session->options;
    size_t count = sl_option_list_count(options, "read-preference");
    bool ok = true;
    for (size_t i = 0; ok && i < (count ? count : 1) && !atomic_load(&sl_query_stop); i++) {
        plan->place.read_preference =
            count ? sl_option_list_item(options, "read-preference", i) : NULL;
        ok = run_step(m, plan, name, phase, error);
    }
    return ok;
}

/* The suite's mix, or each query that was selected alone. */
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
        .place = {.database = sl_query_database(m->session, m->suite),
                  .collection = sl_query_collection(m->session, m->suite),
                  .seed = sl_option_number(options, "seed")},
        .seconds = sl_option_number(options, "operations") ? 0
                                                           : sl_option_seconds(options, "duration"),
        .operations = sl_option_number(options, "operations"),
        .warm_up = sl_option_seconds(options, "warm-up-time"),
        .rate = (double)sl_option_number(options, "rate"),
        .lag_most = sl_option_seconds(options, "max-lag"),
        .stop = &sl_query_stop,
    };
    bool ok = true;
    for (size_t k = 0; ok && k < (limited ? limited : 1); k++) {
        plan.place.limit = limited ? (int64_t)limits[k] : m->suite->limit;
        for (size_t i = 0; ok && i < (steps ? steps : 1) && !atomic_load(&sl_query_stop); i++) {
            plan.clients = (unsigned)clients[i];
            ok = each_query(m, &plan, phase, error);
        }
    }
    return ok;
}

/* ---- a command meanwhile ---- */

/* Starts the command of --during in a process group of its own, its output to standard error. */
static pid_t start_command(const char *command) {
    pid_t child = fork();
    if (child != 0)
        return child;
    setpgid(0, 0);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* Waits for the command; a stop ends it. False when it failed. */
static bool await_command(pid_t child, sl_error *error) {
    int status;
    bool told = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (!told && atomic_load(&sl_query_stop)) {
            kill(-child, SIGINT);
            told = true;
        }
        usleep(50000);
    }
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == SL_EXIT_REJECTS))
        return true;
    return told || sl_error_set(error, SL_EXIT_USAGE, "--during: the command ended with %s %d",
                                WIFEXITED(status) ? "exit status" : "signal",
                                WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

static bool ended(pid_t child) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* What is measured during the command is valid only as long as it runs. */
static bool measure_around(measuring *m, const char *command, sl_error *error) {
    if (!each_number(m, "before", error))
        return false;
    if (atomic_load(&sl_query_stop))
        return true;
    pid_t child = start_command(command);
    if (child < 0)
        return sl_error_set(error, SL_EXIT_USAGE, "--during: no process can be started");
    setpgid(child, child);
    size_t first = m->count;
    int64_t start = sl_clock_ns();
    bool ok = each_number(m, "during", error);
    if (ok && ended(child))
        sl_print_to(stderr, "shardquery: the command of --during ended before the measurements during it "
                "(number: %zu, time: %.0f s): let it do more, or shorten --duration\n",
                m->count - first, sl_seconds_since(start));
    if (!await_command(child, ok ? error : &(sl_error){0}) && ok)
        return false;
    return ok && (atomic_load(&sl_query_stop) || each_number(m, "after", error));
}

/* ---- a suite ---- */

static bool show(const measuring *m, sl_error *error) {
    sl_load_step *steps = calloc(m->count + 1, sizeof *steps);
    if (!steps)
        return sl_error_memory(error, "printing figures");
    for (size_t i = 0; i < m->count; i++)
        steps[i] = (sl_load_step){.suite = m->suite, .plan = &m->steps[i].plan,
                                  .outcome = &m->steps[i].outcome, .monitor = &m->steps[i].monitor,
                                  .phase = m->steps[i].phase, .name = m->steps[i].name,
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
    const sl_options *options = m->session->options;
    const sl_server *server = sl_connection_server(m->session->connection);
    char count[SL_HUMAN_ROOM];
    sl_print("%s on %s.%s, %s documents, %s %s, ", m->suite->name,
           sl_query_database(m->session, m->suite), sl_query_collection(m->session, m->suite),
           m->documents ? sl_human_count(m->documents, count) : "?",
           sl_deployment_name(server->deployment), server->version);
    if (sl_option_number(options, "rate"))
        sl_print("open loop, %llu operations a second\n\n",
               (unsigned long long)sl_option_number(options, "rate"));
    else
        sl_print("closed loop\n\n");
}

bool sl_query_load_suite(sl_query_session *s, sl_suite *suite, sl_error *error) {
    measuring m = {.session = s, .suite = suite,
                   .progress = !sl_option_flag(s->options, "quiet") && isatty(STDERR_FILENO)};
    const char *command = sl_option_string(s->options, "during");
    const sl_place place = {.database = sl_query_database(s, suite),
                            .collection = sl_query_collection(s, suite)};
    bool ok = sl_query_count(s, suite, &m.documents, error);
    for (size_t i = 0; ok && i < suite->count; i++) {
        if (sl_query_selected(s->options, &suite->queries[i]))
            ok = sl_query_sample(s->connection, &suite->queries[i], &place, error);
    }
    if (ok)
        print_heading(&m);
    ok = ok && (command ? measure_around(&m, command, error) : each_number(&m, NULL, error));
    sl_error printing = {0};
    if (m.count > 0 && (m.steps[m.count - 1].outcome.figures || --m.count > 0) &&
        !show(&m, &printing) && ok) {
        *error = printing;
        ok = false;
    }
    for (size_t i = 0; i < m.count; i++)
        sl_load_outcome_clear(&m.steps[i].outcome);
    free(m.steps);
    return ok;
}
