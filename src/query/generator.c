/* SPDX-License-Identifier: Apache-2.0 */
/* Clients in closed and open loop; query_load.h defines the figures. */
#include "query_load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "util/clock.h"
#include "util/context.h"
#include "util/print.h"

#include "operation.h"

#define NS 1e9
#define SLOT_SECONDS_MIN 0.1
/* Slots of one second of a run that ends by a count; the last slot counts all later operations. */
#define SLOTS_BY_COUNT 600

typedef struct run_state {
    const sl_load_plan *plan;
    sl_connection *connection;
    double *bounds; /* per row of the mix: weights up to and including it, as a share of all */
    /* Times of sl_clock_ns, set before `go`. */
    int64_t warm_up_start, measure_start, end; /* end: INT64_MAX for a run that ends by a count */
    int64_t slot_ns;
    size_t slot_count;
    _Atomic uint64_t next;  /* number of the next operation; closed loop: of the measured ones */
    _Atomic bool failed;    /* a client could not be started */
    _Atomic unsigned ready; /* clients that have connected, or failed to */
    _Atomic bool go;        /* set when all clients are ready */
} run_state;

typedef struct client {
    _Alignas(64) run_state *run;
    unsigned number;
    sl_runner *runners;       /* one per row of the mix */
    sl_load_figures *figures; /* one per row of the mix */
    sl_slot *slots;
    sl_failure failures[SL_FAILURE_KINDS];
    size_t failure_count;
    sl_value_generator choice;          /* chooses rows of the mix */
    _Atomic uint64_t succeeded, failed; /* for the progress line */
    sl_error error;
    pthread_t thread;
} client;

/* ---- figures ---- */

static void note_failure(sl_failure *failures, size_t *count, int32_t code, uint64_t times,
                         const char *message) {
    size_t i = 0;
    while (i < *count && failures[i].code != code)
        i++;
    if (i == SL_FAILURE_KINDS)
        i--; /* the last row also counts the codes that have no row */
    if (i == *count) {
        failures[(*count)++].code = code;
        sl_print_text(failures[i].message, sizeof failures[i].message, "%s", message);
    }
    failures[i].count += times;
}

static sl_slot *slot_at(const client *c, int64_t when) {
    int64_t since = when - c->run->measure_start;
    size_t index = since < 0 ? 0 : (size_t)(since / c->run->slot_ns);
    return &c->slots[index < c->run->slot_count ? index : c->run->slot_count - 1];
}

static void count_success(client *c, sl_load_figures *figures, const sl_result *result, int64_t due,
                          int64_t sent, int64_t done) {
    uint64_t latency = (uint64_t)(done - due);
    sl_slot *slot = slot_at(c, done);
    figures->succeeded++;
    figures->documents += result->documents;
    figures->bytes += result->bytes;
    sl_histogram_add(&figures->latency, latency);
    if (c->run->plan->rate > 0)
        sl_histogram_add(&figures->service, (uint64_t)(done - sent));
    slot->succeeded++;
    slot->latency_sum += latency;
    slot->latency_max = latency > slot->latency_max ? latency : slot->latency_max;
    atomic_store_explicit(&c->succeeded, c->succeeded + 1, memory_order_relaxed);
}

/* ---- one operation ---- */

static size_t choose_row(client *c) {
    size_t row = 0, rows = c->run->plan->mix_count;
    double at = rows > 1 ? sl_random_unit(&c->choice) : 0;
    while (row + 1 < rows && at >= c->run->bounds[row])
        row++;
    return row;
}

/* Runs an operation. Latency is measured from `due`, or from sending when it is 0. `counts`: false
 * during the warm-up. */
static void run_operation(client *c, sl_load_figures *figures, sl_runner *runner, int64_t due,
                          bool counts) {
    sl_result result;
    sl_error error = {0};
    int64_t sent = sl_clock_ns();
    bool ok = sl_runner_run(runner, NULL, NULL, &result, &error);
    int64_t done = sl_clock_ns();
    if (!counts)
        return;
    figures->attempted++;
    if (c->run->plan->rate > 0)
        sl_histogram_add(&figures->lag, sent > due ? (uint64_t)(sent - due) : 0);
    if (ok) {
        count_success(c, figures, &result, due ? due : sent, sent, done);
        return;
    }
    figures->failed++;
    slot_at(c, done)->failed++;
    note_failure(c->failures, &c->failure_count, result.code, 1, error.message);
    atomic_store_explicit(&c->failed, c->failed + 1, memory_order_relaxed);
}

static bool stopped(const run_state *run) {
    return atomic_load_explicit(&run->failed, memory_order_relaxed) ||
           (run->plan->stop && atomic_load_explicit(run->plan->stop, memory_order_relaxed));
}

static void sleep_until(int64_t when) {
    struct timespec until = {.tv_sec = when / 1000000000, .tv_nsec = when % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Measured operations take a number each, so that plan->operations of them are run. */
static void closed_loop(client *c) {
    run_state *run = c->run;
    uint64_t max = run->plan->operations;
    while (!stopped(run)) {
        size_t row = choose_row(c);
        sl_runner *runner = &c->runners[row];
        int64_t now = sl_clock_ns();
        bool counts = now >= run->measure_start;
        if (now >= run->end || !sl_runner_prepare(runner) ||
            (counts && max && atomic_fetch_add(&run->next, 1) >= max))
            return;
        run_operation(c, &c->figures[row], runner, 0, counts);
    }
}

/* Sleeps until an operation is due, at most 100 ms at a time. False when the run was stopped. */
static bool wait_until_due(const run_state *run, int64_t due) {
    for (int64_t now = sl_clock_ns(); now < due; now = sl_clock_ns()) {
        int64_t step = now + 100000000;
        sleep_until(due < step ? due : step);
        if (stopped(run))
            return false;
    }
    return !stopped(run);
}

/* Operation i is due i / rate seconds after the start of the warm-up. */
static void open_loop(client *c) {
    run_state *run = c->run;
    const sl_load_plan *plan = run->plan;
    for (;;) {
        uint64_t index = atomic_fetch_add(&run->next, 1);
        int64_t due = run->warm_up_start + (int64_t)((double)index * NS / plan->rate);
        bool counts = due >= run->measure_start;
        uint64_t first = (uint64_t)(plan->warm_up * plan->rate); /* operations of the warm-up */
        if (due >= run->end || (plan->operations && index >= first + plan->operations))
            return;
        size_t row = choose_row(c);
        if (!sl_runner_prepare(&c->runners[row]) || !wait_until_due(run, due))
            return;
        int64_t now = sl_clock_ns();
        if ((double)(now - due) > plan->lag_max * NS) {
            if (counts) {
                c->figures[row].attempted++;
                c->figures[row].skipped++;
                slot_at(c, now)->skipped++;
            }
            continue;
        }
        run_operation(c, &c->figures[row], &c->runners[row], due, counts);
    }
}

/* ---- a client's thread ---- */

static bool connect_client(client *c, mongoc_client_t *driver) {
    const sl_load_plan *plan = c->run->plan;
    static const sl_query no_parameters = {0};
    bson_error_t wrong;
    bson_t *ping = BCON_NEW("ping", BCON_INT32(1));
    bool ok = sl_value_generator_init(&c->choice, &no_parameters, plan->target.seed + 1, c->number,
                                      plan->clients, 0);
    for (size_t i = 0; ok && i < plan->mix_count; i++)
        ok = sl_runner_init(&c->runners[i], c->run->connection, driver,
                            &plan->queries[plan->mix[i].query], &plan->target, c->number,
                            plan->clients, &c->error);
    /* Connect now: the time must not be part of the first operation. */
    if (ok && !mongoc_client_command_simple(driver, "admin", ping, c->runners[0].preference, NULL,
                                            &wrong))
        ok = sl_error_from_driver(&c->error, "connecting a client", &wrong);
    bson_destroy(ping);
    return ok;
}

static void *run_client(void *context) {
    client *c = context;
    run_state *run = c->run;
    mongoc_client_t *driver = sl_connection_borrow(run->connection);
    bool ok = connect_client(c, driver);
    prctl(PR_SET_TIMERSLACK, 1000UL); /* ns: sleeps end within 1 us */
    if (!ok)
        atomic_store(&run->failed, true);
    atomic_fetch_add(&run->ready, 1);
    while (!atomic_load(&run->go))
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    sleep_until(run->warm_up_start);
    if (ok && run->plan->rate > 0)
        open_loop(c);
    else if (ok)
        closed_loop(c);
    for (size_t i = 0; i < run->plan->mix_count; i++) {
        if (c->runners[i].query)
            sl_runner_clear(&c->runners[i]);
    }
    sl_connection_return(run->connection, driver);
    return NULL;
}

/* ---- the client's own delays ---- */

typedef struct stall_probe {
    sl_histogram *stall;
    _Atomic bool end;
} stall_probe;

/* Sleeps 1 ms at a time and records how late it was woken. Client threads are woken as late, which
 * lengthens the latencies that they measure. */
static void *measure_stalls(void *context) {
    stall_probe *probe = context;
    prctl(PR_SET_TIMERSLACK, 1000UL);
    while (!atomic_load(&probe->end)) {
        int64_t due = sl_clock_ns() + 1000000;
        sleep_until(due);
        int64_t late = sl_clock_ns() - due;
        sl_histogram_add(probe->stall, late > 0 ? (uint64_t)late : 0);
    }
    return NULL;
}

static double processor_seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* ---- a run ---- */

static void merge_figures(sl_load_figures *into, const sl_load_figures *from) {
    into->attempted += from->attempted;
    into->succeeded += from->succeeded;
    into->failed += from->failed;
    into->skipped += from->skipped;
    into->documents += from->documents;
    into->bytes += from->bytes;
    sl_histogram_merge(&into->latency, &from->latency);
    sl_histogram_merge(&into->service, &from->service);
    sl_histogram_merge(&into->lag, &from->lag);
}

static void merge_client(sl_load_outcome *outcome, const client *c) {
    for (size_t i = 0; i < outcome->count; i++) {
        merge_figures(&outcome->figures[i], &c->figures[i]);
        merge_figures(&outcome->figures[outcome->count], &c->figures[i]);
    }
    for (size_t i = 0; i < outcome->slot_count; i++) {
        outcome->slots[i].succeeded += c->slots[i].succeeded;
        outcome->slots[i].failed += c->slots[i].failed;
        outcome->slots[i].skipped += c->slots[i].skipped;
        outcome->slots[i].latency_sum += c->slots[i].latency_sum;
        if (c->slots[i].latency_max > outcome->slots[i].latency_max)
            outcome->slots[i].latency_max = c->slots[i].latency_max;
    }
    for (size_t i = 0; i < c->failure_count; i++)
        note_failure(outcome->failures, &outcome->failure_count, c->failures[i].code,
                     c->failures[i].count, c->failures[i].message);
}

static void plan_slots(run_state *run, sl_load_outcome *outcome) {
    double seconds = run->plan->seconds;
    double slot = seconds / SL_SLOTS_MAX;
    slot = seconds > 0 ? (slot < SLOT_SECONDS_MIN ? SLOT_SECONDS_MIN : slot) : 1;
    if (seconds > 60 && slot < 1)
        slot = 1;
    run->slot_ns = (int64_t)(slot * NS);
    run->slot_count = seconds > 0 ? (size_t)(seconds / slot) + 1 : SLOTS_BY_COUNT;
    outcome->slot_seconds = slot;
    outcome->slot_count = run->slot_count;
}

static bool make_clients(run_state *run, client *clients, sl_error *error) {
    const sl_load_plan *plan = run->plan;
    for (unsigned i = 0; i < plan->clients; i++) {
        clients[i].run = run;
        clients[i].number = i;
        clients[i].runners = calloc(plan->mix_count, sizeof *clients[i].runners);
        clients[i].figures = calloc(plan->mix_count, sizeof *clients[i].figures);
        clients[i].slots = calloc(run->slot_count, sizeof *clients[i].slots);
        if (!clients[i].runners || !clients[i].figures || !clients[i].slots)
            return sl_error_memory(error, "starting clients");
    }
    return true;
}

/* Waits until all clients are connected, then sets the times of the run and starts it. */
static void start_clock(run_state *run, unsigned started) {
    while (atomic_load(&run->ready) < started)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    run->warm_up_start = sl_clock_ns() + 5000000; /* by then all clients have read `go` */
    run->measure_start = run->warm_up_start + (int64_t)(run->plan->warm_up * NS);
    run->end = run->plan->seconds > 0 ? run->measure_start + (int64_t)(run->plan->seconds * NS)
                                      : INT64_MAX;
    atomic_store(&run->go, true);
}

/* Waits for the clients to end, and reports progress once a second. */
static void join_clients(const run_state *run, client *clients, unsigned started) {
    const sl_load_plan *plan = run->plan;
    for (unsigned i = 0; i < started; i++) {
        struct timespec until;
        for (;;) {
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec++;
            if (pthread_timedjoin_np(clients[i].thread, NULL, &until) == 0)
                break;
            uint64_t succeeded = 0, failed = 0;
            for (unsigned k = 0; plan->progress && k < started; k++) {
                succeeded += atomic_load_explicit(&clients[k].succeeded, memory_order_relaxed);
                failed += atomic_load_explicit(&clients[k].failed, memory_order_relaxed);
            }
            if (plan->progress)
                plan->progress(plan->context, (double)(sl_clock_ns() - run->measure_start) / NS,
                               succeeded, failed);
        }
    }
}

static bool run_clients(run_state *run, client *clients, sl_load_outcome *outcome,
                        sl_error *error) {
    const sl_load_plan *plan = run->plan;
    stall_probe probe = {.stall = &outcome->stall};
    pthread_t probing;
    unsigned started = 0;
    int code = 0;
    while (started < plan->clients && code == 0) {
        code = sl_thread_start(&clients[started].thread, run_client, &clients[started]);
        started += code == 0;
    }
    if (code != 0)
        atomic_store(&run->failed, true);
    start_clock(run, started);
    double used = processor_seconds();
    bool probed = sl_thread_start(&probing, measure_stalls, &probe) == 0;
    join_clients(run, clients, started);
    int64_t now = sl_clock_ns();
    outcome->client_cpu = processor_seconds() - used;
    /* The wait for operations that were running at the end is not part of the measured time. */
    int64_t ended = now < run->end ? now : run->end;
    outcome->seconds = ended > run->measure_start ? (double)(ended - run->measure_start) / NS : 0;
    atomic_store(&probe.end, true);
    if (probed)
        pthread_join(probing, NULL);
    if (code != 0)
        return sl_error_set(error, SL_EXIT_RESOURCES, "%u clients cannot be started: %s; use fewer",
                            plan->clients, strerror(code));
    for (unsigned i = 0; i < started; i++) {
        if (clients[i].error.code) {
            *error = clients[i].error;
            return false;
        }
    }
    return true;
}

static bool is_empty(const sl_slot *slot) {
    return slot->succeeded + slot->failed + slot->skipped == 0;
}

bool sl_generate(sl_connection *connection, const sl_load_plan *plan, sl_load_outcome *outcome,
                 sl_error *error) {
    *outcome = (sl_load_outcome){.count = plan->mix_count};
    run_state run = {.plan = plan, .connection = connection};
    plan_slots(&run, outcome);
    client *clients = aligned_alloc(_Alignof(client), plan->clients * sizeof *clients);
    if (clients)
        memset(clients, 0, plan->clients * sizeof *clients);
    outcome->figures = calloc(plan->mix_count + 1, sizeof *outcome->figures);
    outcome->slots = calloc(outcome->slot_count, sizeof *outcome->slots);
    run.bounds = calloc(plan->mix_count, sizeof *run.bounds);
    bool ok = (clients && outcome->figures && outcome->slots && run.bounds) ||
              sl_error_memory(error, "starting clients");
    double sum = 0, weights = 0;
    for (size_t i = 0; ok && i < plan->mix_count; i++)
        weights += plan->mix[i].weight;
    for (size_t i = 0; ok && i < plan->mix_count; i++)
        run.bounds[i] = (sum += plan->mix[i].weight) / weights;
    ok = ok && make_clients(&run, clients, error) && run_clients(&run, clients, outcome, error);
    for (unsigned i = 0; clients && i < plan->clients; i++) {
        if (ok)
            merge_client(outcome, &clients[i]);
        free(clients[i].runners);
        free(clients[i].figures);
        free(clients[i].slots);
    }
    while (ok && outcome->slot_count > 1 && is_empty(&outcome->slots[outcome->slot_count - 1]))
        outcome->slot_count--;
    free(clients);
    free(run.bounds);
    return ok;
}

void sl_load_outcome_clear(sl_load_outcome *outcome) {
    free(outcome->figures);
    free(outcome->slots);
    *outcome = (sl_load_outcome){0};
}
