/* SPDX-License-Identifier: Apache-2.0 */
/* The load generator: clients that run the operations of a mix at the same time, for a while.
 *
 * Closed loop: each client sends its next operation when the last one has been answered; latency is
 * from sending to the last document. Open loop: operations are due at fixed times, `rate` a second
 * over all clients, whether the server keeps up or not; latency is from the time an operation was
 * due. So a server that stalls for two seconds shows in the latencies of all operations that were
 * due meanwhile. An operation that could not be sent within `lag_most` seconds is skipped.
 *
 *   attempted = succeeded + failed + skipped
 *
 * Threads: one per client, with a driver client, a session and figures of its own. Clients share one
 * atomic counter (the next due operation) and the stop flag, and no lock. Figures are put together
 * after all of them have ended. */
#ifndef SHARDLOAD_QUERY_LOAD_H
#define SHARDLOAD_QUERY_LOAD_H

#include <shardload/histogram.h>
#include <shardload/query.h>

/* ---- generator.c ---- */

#define SL_SLOTS_MAX 3600 /* of time; a longer run has wider ones */
#define SL_FAILURE_KINDS 8

typedef struct sl_load_plan {
    const sl_query *queries; /* of the suite */
    const sl_share *mix;     /* which of them, and how often relative to each other */
    size_t mix_count;
    sl_place place;
    unsigned clients;     /* 1..SL_CLIENTS_MAX */
    double seconds;       /* that count; 0: until `operations` */
    uint64_t operations;  /* that count, over all clients; 0: until `seconds` */
    double warm_up;       /* seconds before that */
    double rate;          /* operations a second, open loop; 0: closed loop */
    double lag_most;      /* seconds; open loop */
    const _Atomic bool *stop; /* may be NULL */
    /* About once a second, by the thread that called. May be NULL. */
    void (*progress)(void *context, double elapsed, uint64_t succeeded, uint64_t failed);
    void *context;
} sl_load_plan;

/* One stretch of time, from all clients. */
typedef struct sl_slot {
    uint64_t succeeded, failed, skipped;
    uint64_t latency_sum, latency_max; /* nanoseconds, of those that ended in it and succeeded */
} sl_slot;

/* The figures of one query of the mix, or of all. Latencies in nanoseconds. */
typedef struct sl_load_figures {
    uint64_t attempted, succeeded, failed, skipped;
    uint64_t documents, bytes;
    sl_histogram latency; /* of those that succeeded */
    sl_histogram service; /* open loop: from sending; closed loop: the same as latency */
    sl_histogram lag;     /* open loop: from due to sent, of all that were sent */
} sl_load_figures;

typedef struct sl_failure {
    int32_t code;
    uint64_t count;
    char message[200]; /* of the first */
} sl_failure;

typedef struct sl_load_outcome {
    sl_load_figures *figures; /* one per row of the mix, and then one for all */
    size_t count;             /* rows of the mix */
    double seconds;           /* that were measured */
    double slot_seconds;
    sl_slot *slots;
    size_t slot_count;
    sl_failure failures[SL_FAILURE_KINDS];
    size_t failure_count;
    sl_histogram stall;      /* how late this machine woke a thread that slept a millisecond */
    double client_cpu;       /* seconds of processor time that this process used meanwhile */
} sl_load_outcome;

/* Runs the plan. The pool of the connection must hold `clients` clients. On false `error` is set (an
 * operation that fails is no error here, but a figure). Clear `outcome` in any case. */
bool sl_generate(sl_connection *connection, const sl_load_plan *plan, sl_load_outcome *outcome,
                 sl_error *error);
void sl_load_outcome_clear(sl_load_outcome *outcome);

/* ---- monitor.c ---- */

/* What the servers report of themselves while a load runs: replication lag of each secondary, and
 * the latencies that a server measured itself. One thread of its own, with a client of its own. */
#define SL_MEMBERS_MAX 50
#define SL_LAGS_MAX 3600

typedef struct sl_member_lag {
    char name[128];  /* host:port */
    size_t count;    /* how often it was looked at */
    double sum, most; /* seconds behind the primary */
} sl_member_lag;

/* What serverStatus counts up: operations and microseconds that the server spent on them. */
typedef struct sl_server_latencies {
    bool known;
    int64_t reads, read_microseconds, writes, write_microseconds;
} sl_server_latencies;

typedef struct sl_monitor sl_monitor;

/* Begins to look, about once a second. Never fails: what a server does not report stays unknown. */
sl_monitor *sl_monitor_start(sl_connection *connection);

typedef struct sl_monitor_figures {
    sl_member_lag members[SL_MEMBERS_MAX];
    size_t member_count;
    sl_server_latencies server; /* what was added since the start */
} sl_monitor_figures;

/* Ends it and gives what it saw. NULL is fine. */
void sl_monitor_end(sl_monitor *monitor, sl_monitor_figures *figures);

/* ---- load_report.c: what a load leaves in the report, and on standard output ---- */

/* One step of a measurement under load: a number of clients, before, during or after a command. */
typedef struct sl_load_step {
    const sl_suite *suite;
    const sl_load_plan *plan;
    const sl_load_outcome *outcome;
    const sl_monitor_figures *monitor;
    const char *phase;     /* "before", "during", "after"; or NULL */
    const char *name;      /* of the query, or "mix" */
    uint64_t documents;    /* in the collection; 0: not known */
} sl_load_step;

/* Appends the step to `queries`, the array of a report. False without memory. */
bool sl_load_report_append(bson_t *queries, const sl_load_step *step);

/* A table of steps: throughput, percentiles, failed and skipped operations. False without memory. */
bool sl_load_show(const sl_load_step *steps, size_t count);
/* What a reader has to know besides: failures, the client's own delays, replication lag. */
void sl_load_show_notes(const sl_load_step *steps, size_t count);

/* The identity that every step must satisfy. */
bool sl_load_adds_up(const sl_load_outcome *outcome);

#endif
