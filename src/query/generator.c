/* SPDX-License-Identifier: Apache-2.0 */
/* Clients under load, in closed and open loop; generator.h defines the figures. */
#include "generator.h"

#include <inttypes.h>
#include <mongoc/mongoc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "bson/bson_lookup.h"
#include "cluster/cluster.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/grow.h"
#include "util/print.h"
#include "util/text_table.h"

#include "operation.h"

/* ---- clients ---- */

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

typedef struct load_client {
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
} load_client;

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

static sl_slot *slot_at(const load_client *c, int64_t when) {
    int64_t since = when - c->run->measure_start;
    size_t index = since < 0 ? 0 : (size_t)(since / c->run->slot_ns);
    return &c->slots[index < c->run->slot_count ? index : c->run->slot_count - 1];
}

static void count_success(load_client *c, sl_load_figures *figures, const sl_result *result,
                          int64_t due, int64_t sent, int64_t done) {
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

static size_t choose_row(load_client *c) {
    size_t row = 0, rows = c->run->plan->mix_count;
    double at = rows > 1 ? sl_random_unit(&c->choice) : 0;
    while (row + 1 < rows && at >= c->run->bounds[row])
        row++;
    return row;
}

/* Runs an operation. Latency is measured from `due`, or from sending when it is 0. `counts`: false
 * during the warm-up. */
static void run_operation(load_client *c, sl_load_figures *figures, sl_runner *runner, int64_t due,
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
static void closed_loop(load_client *c) {
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
static void open_loop(load_client *c) {
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

static bool connect_client(load_client *c, mongoc_client_t *driver) {
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
    load_client *c = context;
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

static void merge_client(sl_load_outcome *outcome, const load_client *c) {
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

static bool make_clients(run_state *run, load_client *clients, sl_error *error) {
    const sl_load_plan *plan = run->plan;
    for (unsigned i = 0; i < plan->clients; i++) {
        clients[i].run = run;
        clients[i].number = i;
        clients[i].runners = sl_zeroed(plan->mix_count, sizeof *clients[i].runners);
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
static void join_clients(const run_state *run, load_client *clients, unsigned started) {
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

static bool run_clients(run_state *run, load_client *clients, sl_load_outcome *outcome,
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
    load_client *clients = sl_zeroed(plan->clients, sizeof *clients);
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

/* ---- the monitor thread ----
 *
 * It sends replSetGetStatus once a second, and serverStatus when it starts and when
 * it ends. */

struct sl_monitor {
    sl_connection *connection;
    sl_monitor_figures figures;
    _Atomic bool end;
    pthread_t thread;
    bool started;
};

static bool run_command(mongoc_client_t *client, const char *command, bson_t *reply) {
    bson_error_t ignored;
    bson_t *document = BCON_NEW(command, BCON_INT32(1));
    bool ok = mongoc_client_command_simple(client, "admin", document, NULL, reply, &ignored);
    bson_destroy(document);
    return ok;
}

static int64_t number_at(const bson_t *reply, const char *path, bool *known) {
    bson_iter_t found;
    if (sl_look_find(reply, path, &found) && BSON_ITER_HOLDS_NUMBER(&found))
        return bson_iter_as_int64(&found);
    *known = false;
    return 0;
}

static sl_server_latencies read_latencies(mongoc_client_t *client) {
    sl_server_latencies read = {.known = true};
    bson_t reply;
    if (run_command(client, "serverStatus", &reply)) {
        read.reads = number_at(&reply, "opLatencies.reads.ops", &read.known);
        read.read_microseconds = number_at(&reply, "opLatencies.reads.latency", &read.known);
        read.writes = number_at(&reply, "opLatencies.writes.ops", &read.known);
        read.write_microseconds = number_at(&reply, "opLatencies.writes.latency", &read.known);
    } else {
        read.known = false;
    }
    bson_destroy(&reply);
    return read;
}

static void note_lag(void *context, const char *name, double seconds) {
    sl_monitor_figures *figures = context;
    size_t i = 0;
    while (i < figures->member_count &&
           strncmp(figures->members[i].name, name, sizeof figures->members[i].name - 1) != 0)
        i++;
    if (i == SL_MEMBERS_MAX)
        return;
    sl_member_lag *lag = &figures->members[i];
    if (i == figures->member_count) {
        figures->member_count++;
        snprintf(lag->name, sizeof lag->name, "%s", name);
    }
    lag->count++;
    lag->sum += seconds;
    lag->max = seconds > lag->max ? seconds : lag->max;
}

static void *run_monitor(void *context) {
    sl_monitor *monitor = context;
    bool replicated = sl_connection_server(monitor->connection)->deployment == SL_REPLICA_SET;
    mongoc_client_t *client = sl_connection_borrow(monitor->connection);
    sl_server_latencies begin = read_latencies(client);
    for (unsigned tick = 0; !atomic_load(&monitor->end); tick++) {
        if (replicated && tick % 10 == 0) {
            bson_t reply;
            if (run_command(client, "replSetGetStatus", &reply))
                sl_replication_lag(&reply, note_lag, &monitor->figures);
            bson_destroy(&reply);
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    sl_server_latencies now = read_latencies(client);
    monitor->figures.server = (sl_server_latencies){
        .known = now.known && begin.known,
        .reads = now.reads - begin.reads,
        .read_microseconds = now.read_microseconds - begin.read_microseconds,
        .writes = now.writes - begin.writes,
        .write_microseconds = now.write_microseconds - begin.write_microseconds,
    };
    sl_connection_return(monitor->connection, client);
    return NULL;
}

sl_monitor *sl_monitor_start(sl_connection *connection) {
    sl_monitor *monitor = calloc(1, sizeof *monitor);
    if (!monitor)
        return NULL;
    monitor->connection = connection;
    monitor->started = sl_thread_start(&monitor->thread, run_monitor, monitor) == 0;
    return monitor;
}

void sl_monitor_end(sl_monitor *monitor, sl_monitor_figures *figures) {
    *figures = (sl_monitor_figures){0};
    if (!monitor)
        return;
    atomic_store(&monitor->end, true);
    if (monitor->started)
        pthread_join(monitor->thread, NULL);
    *figures = monitor->figures;
    free(monitor);
}

/* ---- entries of a report, table and notes ---- */

static const struct {
    const char *key, *title;
    double quantile;
} percentiles[] = {{"p50", "p50 ms", 0.5},
                   {"p90", "p90 ms", 0.9},
                   {"p95", "p95 ms", 0.95},
                   {"p99", "p99 ms", 0.99},
                   {"p99_9", "p99.9 ms", 0.999}};
#define PERCENTILES (sizeof percentiles / sizeof percentiles[0])
#define LABEL_ROOM 280
#define CURVE_POINTS 17 /* quantiles 1 - 2^-1 ... 1 - 2^-17 */

static double milliseconds(uint64_t nanoseconds) {
    return (double)nanoseconds / 1e6;
}

bool sl_load_adds_up(const sl_load_outcome *outcome) {
    const sl_load_figures *all = &outcome->figures[outcome->count];
    return all->attempted == all->succeeded + all->failed + all->skipped &&
           all->latency.count == all->succeeded;
}

/* ---- the report ---- */

static bool append_histogram(bson_t *document, const char *name, const sl_histogram *histogram) {
    bson_t part;
    if (histogram->count == 0)
        return true;
    bool ok = BSON_APPEND_DOCUMENT_BEGIN(document, name, &part) &&
              BSON_APPEND_INT64(&part, "count", (int64_t)histogram->count) &&
              BSON_APPEND_DOUBLE(&part, "mean", sl_histogram_mean(histogram) / 1e6) &&
              BSON_APPEND_DOUBLE(&part, "min", milliseconds(histogram->minimum));
    for (size_t i = 0; ok && i < PERCENTILES; i++) {
        if (sl_histogram_supports(histogram, percentiles[i].quantile))
            ok = BSON_APPEND_DOUBLE(
                &part, percentiles[i].key,
                milliseconds(sl_histogram_quantile(histogram, percentiles[i].quantile)));
    }
    return ok && BSON_APPEND_DOUBLE(&part, "max", milliseconds(histogram->maximum)) &&
           bson_append_document_end(document, &part);
}

/* Appends "latencyCurve": [[quantile, milliseconds], ...] for the quantiles 0.5, 0.75, 0.875 ...
 * that the histogram supports. */
static bool append_curve(bson_t *document, const sl_histogram *histogram) {
    bson_t list, point;
    double above = 1;
    bool ok = BSON_APPEND_ARRAY_BEGIN(document, "latencyCurve", &list);
    for (uint32_t i = 0; ok && i < CURVE_POINTS; i++) {
        char room[SL_ARRAY_KEY_ROOM];
        above /= 2;
        if (!sl_histogram_supports(histogram, 1 - above))
            break;
        ok = bson_append_array_begin(&list, sl_array_key(i, room), -1, &point) &&
             BSON_APPEND_DOUBLE(&point, "0", 1 - above) &&
             BSON_APPEND_DOUBLE(&point, "1",
                                milliseconds(sl_histogram_quantile(histogram, 1 - above))) &&
             bson_append_array_end(&list, &point);
    }
    return ok && bson_append_array_end(document, &list);
}

static bool append_figures(bson_t *entry, const sl_load_figures *figures, double seconds) {
    return BSON_APPEND_INT64(entry, "attempted", (int64_t)figures->attempted) &&
           BSON_APPEND_INT64(entry, "succeeded", (int64_t)figures->succeeded) &&
           BSON_APPEND_INT64(entry, "failed", (int64_t)figures->failed) &&
           BSON_APPEND_INT64(entry, "skipped", (int64_t)figures->skipped) &&
           (!(seconds > 0) || BSON_APPEND_DOUBLE(entry, "operationsPerSecond",
                                                 (double)figures->succeeded / seconds)) &&
           BSON_APPEND_INT64(entry, "documentsReturned", (int64_t)figures->documents) &&
           BSON_APPEND_INT64(entry, "bytes", (int64_t)figures->bytes) &&
           append_histogram(entry, "latencyMs", &figures->latency) &&
           append_histogram(entry, "serviceMs", &figures->service) &&
           append_histogram(entry, "lagMs", &figures->lag);
}

/* Appends "overTime": for each figure an array with one value per slot. */
static bool append_slots(bson_t *entry, const sl_load_outcome *outcome) {
    static const char *const names[] = {"succeeded", "failed", "skipped", "meanMs", "maxMs"};
    bson_t part, list;
    bool ok = BSON_APPEND_DOCUMENT_BEGIN(entry, "overTime", &part) &&
              BSON_APPEND_DOUBLE(&part, "slotSeconds", outcome->slot_seconds);
    for (size_t column = 0; ok && column < sizeof names / sizeof names[0]; column++) {
        ok = BSON_APPEND_ARRAY_BEGIN(&part, names[column], &list);
        for (size_t i = 0; ok && i < outcome->slot_count; i++) {
            const sl_slot *slot = &outcome->slots[i];
            double mean = slot->succeeded ? (double)slot->latency_sum / (double)slot->succeeded : 0;
            const uint64_t counts[] = {slot->succeeded, slot->failed, slot->skipped};
            char room[SL_ARRAY_KEY_ROOM];
            const char *key = sl_array_key(i, room);
            ok = column < 3
                     ? BSON_APPEND_INT64(&list, key, (int64_t)counts[column])
                     : BSON_APPEND_DOUBLE(
                           &list, key, column == 3 ? mean / 1e6 : milliseconds(slot->latency_max));
        }
        ok = ok && bson_append_array_end(&part, &list);
    }
    return ok && bson_append_document_end(entry, &part);
}

static bool append_rows(bson_t *entry, const sl_load_step *step) {
    const sl_load_plan *plan = step->plan;
    bson_t list, item;
    bool ok = BSON_APPEND_ARRAY_BEGIN(entry, "operations", &list);
    for (uint32_t i = 0; ok && i < plan->mix_count; i++) {
        const sl_query *query = &plan->queries[plan->mix[i].query];
        ok = sl_record_begin_item(&list, i, &item) &&
             BSON_APPEND_UTF8(&item, "name", query->name) &&
             BSON_APPEND_UTF8(&item, "operation", sl_operation_name(query->operation)) &&
             BSON_APPEND_DOUBLE(&item, "weight", plan->mix[i].weight) &&
             (!query->pipeline || BSON_APPEND_ARRAY(&item, "pipeline", query->pipeline)) &&
             BSON_APPEND_DOCUMENT(&item, "body", query->body) &&
             append_figures(&item, &step->outcome->figures[i], step->outcome->seconds) &&
             bson_append_document_end(&list, &item);
    }
    return ok && bson_append_array_end(entry, &list);
}

static bool append_failures(bson_t *entry, const sl_load_outcome *outcome) {
    bson_t list, item;
    bool ok = BSON_APPEND_ARRAY_BEGIN(entry, "failures", &list);
    for (uint32_t i = 0; ok && i < outcome->failure_count; i++) {
        ok = sl_record_begin_item(&list, i, &item) &&
             BSON_APPEND_INT32(&item, "code", outcome->failures[i].code) &&
             BSON_APPEND_INT64(&item, "count", (int64_t)outcome->failures[i].count) &&
             BSON_APPEND_UTF8(&item, "message", outcome->failures[i].message) &&
             bson_append_document_end(&list, &item);
    }
    return ok && bson_append_array_end(entry, &list);
}

static bool append_monitor(bson_t *entry, const sl_monitor_figures *figures) {
    const sl_server_latencies *server = &figures->server;
    bson_t part, item;
    bool ok = true;
    if (server->known && server->reads + server->writes > 0) {
        ok = BSON_APPEND_DOCUMENT_BEGIN(entry, "server", &part) &&
             BSON_APPEND_INT64(&part, "reads", server->reads) &&
             BSON_APPEND_INT64(&part, "writes", server->writes) &&
             (server->reads == 0 || BSON_APPEND_DOUBLE(&part, "readMs",
                                                       (double)server->read_microseconds / 1e3 /
                                                           (double)server->reads)) &&
             (server->writes == 0 || BSON_APPEND_DOUBLE(&part, "writeMs",
                                                        (double)server->write_microseconds / 1e3 /
                                                            (double)server->writes)) &&
             bson_append_document_end(entry, &part);
    }
    ok = ok && BSON_APPEND_ARRAY_BEGIN(entry, "replicationLag", &part);
    for (uint32_t i = 0; ok && i < figures->member_count; i++) {
        const sl_member_lag *lag = &figures->members[i];
        ok = sl_record_begin_item(&part, i, &item) &&
             BSON_APPEND_UTF8(&item, "member", lag->name) &&
             BSON_APPEND_DOUBLE(&item, "meanSeconds", lag->sum / (double)lag->count) &&
             BSON_APPEND_DOUBLE(&item, "maxSeconds", lag->max) &&
             bson_append_document_end(&part, &item);
    }
    return ok && bson_append_array_end(entry, &part);
}

static bool fill(bson_t *entry, const sl_load_step *step) {
    const sl_load_plan *plan = step->plan;
    const sl_load_outcome *outcome = step->outcome;
    bson_t client;
    return BSON_APPEND_UTF8(entry, "suite", step->suite->name) &&
           BSON_APPEND_UTF8(entry, "name", step->name) &&
           BSON_APPEND_UTF8(entry, "database", plan->target.database) &&
           BSON_APPEND_UTF8(entry, "collection", plan->target.collection) &&
           (step->documents == 0 ||
            BSON_APPEND_INT64(entry, "documents", (int64_t)step->documents)) &&
           BSON_APPEND_UTF8(entry, "mode", plan->rate > 0 ? "open loop" : "closed loop") &&
           (!step->phase || BSON_APPEND_UTF8(entry, "phase", step->phase)) &&
           (plan->target.limit == 0 || BSON_APPEND_INT64(entry, "limit", plan->target.limit)) &&
           (!plan->target.read_preference ||
            BSON_APPEND_UTF8(entry, "readPreference", plan->target.read_preference)) &&
           BSON_APPEND_INT64(entry, "clients", plan->clients) &&
           (!(plan->rate > 0) || BSON_APPEND_DOUBLE(entry, "rate", plan->rate)) &&
           BSON_APPEND_DOUBLE(entry, "warmUpSeconds", plan->warm_up) &&
           BSON_APPEND_DOUBLE(entry, "seconds", outcome->seconds) &&
           append_figures(entry, &outcome->figures[outcome->count], outcome->seconds) &&
           append_curve(entry, &outcome->figures[outcome->count].latency) &&
           BSON_APPEND_DOUBLE(entry, "precision", SL_HISTOGRAM_PRECISION) &&
           append_rows(entry, step) && append_slots(entry, outcome) &&
           append_failures(entry, outcome) &&
           BSON_APPEND_DOCUMENT_BEGIN(entry, "client", &client) &&
           BSON_APPEND_DOUBLE(&client, "processorSeconds", outcome->client_cpu) &&
           append_histogram(&client, "stallMs", &outcome->stall) &&
           bson_append_document_end(entry, &client) && append_monitor(entry, step->monitor);
}

bool sl_load_report_append(bson_t *queries, const sl_load_step *step) {
    bson_t *entry = bson_new();
    return sl_report_add(queries, entry, fill(entry, step));
}

/* ---- the table ---- */

static void add_row(sl_text_table *table, const sl_load_step *step, const char *name,
                    const sl_load_figures *figures) {
    double seconds = step->outcome->seconds;
    if (step->phase)
        sl_text_table_cell(table, "%s", step->phase);
    sl_text_table_cell(table, "%s", name);
    sl_text_table_cell(table, "%u", step->plan->clients);
    double rate = seconds > 0 ? (double)figures->succeeded / seconds : 0;
    sl_text_table_figure(table, seconds > 0, rate, rate < 100 ? 1 : 0);
    for (size_t i = 0; i < PERCENTILES; i++) {
        double quantile = percentiles[i].quantile;
        sl_text_table_figure(table, sl_histogram_supports(&figures->latency, quantile),
                             milliseconds(sl_histogram_quantile(&figures->latency, quantile)), 2);
    }
    sl_text_table_figure(table, figures->succeeded > 0, milliseconds(figures->latency.maximum), 2);
    const uint64_t counts[] = {figures->attempted, figures->succeeded, figures->failed,
                               figures->skipped};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        sl_text_table_number(table, (double)counts[i]);
}

void sl_load_show(const sl_load_step *steps, size_t count) {
    static const sl_text_column when = {"when", .left = true};
    static const sl_text_column first[] = {
        {"query", .left = true}, {.title = "clients"}, {.title = "operations/s"}, {0}};
    static const sl_text_column last[] = {{.title = "max ms"},    {.title = "attempted"},
                                          {.title = "succeeded"}, {.title = "failed"},
                                          {.title = "skipped"},   {0}};
    sl_text_table *table = sl_text_table_create(NULL);
    if (count > 0 && steps[0].phase)
        sl_text_table_column(table, &when);
    sl_text_table_columns(table, first);
    for (size_t i = 0; i < PERCENTILES; i++)
        sl_text_table_column(table, &(sl_text_column){.title = percentiles[i].title});
    sl_text_table_columns(table, last);
    for (size_t i = 0; i < count; i++) {
        const sl_load_step *step = &steps[i];
        add_row(table, step, step->name, &step->outcome->figures[step->outcome->count]);
        for (size_t k = 0; step->outcome->count > 1 && k < step->outcome->count; k++) {
            char name[200];
            snprintf(name, sizeof name, "  %s", step->plan->queries[step->plan->mix[k].query].name);
            add_row(table, step, name, &step->outcome->figures[k]);
        }
    }
    sl_text_table_print(table, sl_output(), 0);
}

static void show_step_notes(const sl_load_step *step) {
    const sl_load_outcome *outcome = step->outcome;
    const sl_load_figures *all = &outcome->figures[outcome->count];
    char label[LABEL_ROOM]; /* "during, point-read, 8 clients" */
    snprintf(label, sizeof label, "%s%s%s, %s", step->phase ? step->phase : "",
             step->phase ? ", " : "", step->name, sl_plural(step->plan->clients, "client"));
    for (size_t k = 0; k < outcome->failure_count; k++)
        sl_print("%s: %" PRIu64 " operations failed: %s (code %d)\n", label,
                 outcome->failures[k].count, outcome->failures[k].message,
                 outcome->failures[k].code);
    for (size_t k = 0; k < step->monitor->member_count; k++) {
        const sl_member_lag *lag = &step->monitor->members[k];
        sl_print("%s: %s was %.1f s behind the primary on average, %.1f s at most\n", label,
                 lag->name, lag->sum / (double)lag->count, lag->max);
    }
    uint64_t stall = sl_histogram_quantile(&outcome->stall, 0.99);
    uint64_t median = sl_histogram_quantile(&all->latency, 0.5);
    if (all->succeeded > 0 && stall > 100000 && stall > median / 4)
        sl_print("%s: 1 in 100 times this machine woke a thread %.2f ms late or later (%.2f ms at "
                 "most), and the latencies contain such delays; use more processors or fewer "
                 "clients\n",
                 label, milliseconds(stall), milliseconds(outcome->stall.maximum));
    if (!sl_load_adds_up(outcome))
        sl_print("%s: INTERNAL ERROR: attempted is not succeeded + failed + skipped\n", label);
}

void sl_load_show_notes(const sl_load_step *steps, size_t count) {
    if (count > 0)
        sl_print("\nLatency is " SL_LINES
                 ".\nPercentiles are at most %.1f %% above the exact ones; \"-\": fewer "
                 "than 10 operations lie above.\n",
                 steps[0].plan->rate > 0
                     ? "from the time that an operation was due to its last document"
                     : "from sending to the last document. While a server stalls, few operations "
                       "are sent,\nand the percentiles hardly show it: use --rate to measure what "
                       "users would see",
                 100 * SL_HISTOGRAM_PRECISION);
    for (size_t i = 0; i < count; i++)
        show_step_notes(&steps[i]);
}
