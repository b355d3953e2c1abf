/* SPDX-License-Identifier: Apache-2.0 */
/* The load generator: concurrent clients that run the operations of a mix.
 *
 * Closed loop: each client sends an operation when its previous one has been answered. Latency is
 * measured from sending to the last document. Open loop: operations are due at fixed times, `rate`
 * a second over all clients, independently of the server. Latency is measured from the due time, so
 * a stall of two seconds raises the latencies of all operations that were due during it. An
 * operation that is not sent within `lag_max` seconds of its due time is skipped.
 *
 *   attempted = succeeded + failed + skipped
 *
 * Threads: one per client, with its own driver client, session and figures. The client threads
 * share an atomic counter (the next operation) and atomic flags, but no lock. Their figures are
 * merged after all of them have ended. */
#ifndef SHARDLOAD_QUERY_LOAD_H
#define SHARDLOAD_QUERY_LOAD_H

#include "query.h"
#include "util/histogram.h"

/* ---- generator.c ---- */

#define SL_SLOTS_MAX 3600  /* a run of more seconds has slots longer than a second */
#define SL_FAILURE_KINDS 8 /* error codes that are counted separately */

typedef struct sl_load_plan {
    const sl_query *queries; /* of the suite */
    const sl_share *mix;     /* the queries to run, with weights */
    size_t mix_count;
    sl_query_target target;
    unsigned clients;         /* 1..SL_CLIENTS_MAX */
    double seconds;           /* measured, after the warm-up; 0: end after `operations` */
    uint64_t operations;      /* measured, over all clients; 0: end after `seconds` */
    double warm_up;           /* seconds before the measurement */
    double rate;              /* operations a second, open loop; 0: closed loop */
    double lag_max;           /* open loop: seconds after which a due operation is skipped */
    const _Atomic bool *stop; /* set by the caller to end the run; may be NULL */
    /* Called about once a second in the thread of sl_generate. `elapsed` is in seconds, negative
     * during the warm-up. May be NULL. */
    void (*progress)(void *context, double elapsed, uint64_t succeeded, uint64_t failed);
    void *context;
} sl_load_plan;

/* Operations that ended in one interval of the measured time. */
typedef struct sl_slot {
    uint64_t succeeded, failed, skipped;
    uint64_t latency_sum, latency_max; /* nanoseconds, of successful operations */
} sl_slot;

/* Figures of one row of the mix, or of all rows. Times are in nanoseconds. */
typedef struct sl_load_figures {
    uint64_t attempted, succeeded, failed, skipped;
    uint64_t documents, bytes;
    sl_histogram latency; /* of successful operations */
    sl_histogram service; /* open loop: from sending to the last document; closed loop: empty */
    sl_histogram lag;     /* open loop: from due time to sending; closed loop: empty */
} sl_load_figures;

typedef struct sl_failure {
    int32_t code; /* of the server, or of the driver */
    uint64_t count;
    char message[200]; /* of the first failure with this code; safe to print */
} sl_failure;

typedef struct sl_load_outcome {
    sl_load_figures *figures; /* one per row of the mix, then one for all rows */
    size_t count;             /* rows of the mix */
    double seconds;           /* measured */
    double slot_seconds;
    sl_slot *slots;
    size_t slot_count;
    sl_failure failures[SL_FAILURE_KINDS];
    size_t failure_count;
    sl_histogram stall; /* nanoseconds by which threads that slept 1 ms were woken late */
    double client_cpu;  /* processor seconds that this process used during the run */
} sl_load_outcome;

/* Runs the plan. The connection's pool must have room for `clients` clients. Failed operations are
 * counted in the outcome; on false, for other failures, `error` is set. Clear `outcome` in any
 * case. */
bool sl_generate(sl_connection *connection, const sl_load_plan *plan, sl_load_outcome *outcome,
                 sl_error *error);
void sl_load_outcome_clear(sl_load_outcome *outcome);

/* ---- the servers' own figures ---- */

/* The monitor reads server figures while a load runs: the replication lag of each secondary, and
 * the latencies that the server measured. It runs in its own thread with its own client. */
#define SL_MEMBERS_MAX 50 /* of a replica set */

typedef struct sl_member_lag {
    char name[128];  /* host:port */
    size_t count;    /* of readings */
    double sum, max; /* seconds behind the primary */
} sl_member_lag;

/* Operations, and the microseconds that the server spent on them (serverStatus: opLatencies). */
typedef struct sl_server_latencies {
    bool known; /* false when the server does not report them */
    int64_t reads, read_microseconds, writes, write_microseconds;
} sl_server_latencies;

typedef struct sl_monitor sl_monitor;

/* Starts the monitor, which reads replication lag once a second. A figure that cannot be read is
 * left out. NULL without memory. */
sl_monitor *sl_monitor_start(sl_connection *connection);

typedef struct sl_monitor_figures {
    sl_member_lag members[SL_MEMBERS_MAX];
    size_t member_count;
    sl_server_latencies server; /* from start to end of the monitor */
} sl_monitor_figures;

/* Ends and frees the monitor, and fills `figures`. A NULL monitor gives no figures. */
void sl_monitor_end(sl_monitor *monitor, sl_monitor_figures *figures);

/* ---- loads in the report and on standard output ---- */

/* One load of a session, with its result. Pointers are borrowed. */
typedef struct sl_load_step {
    const sl_suite *suite;
    const sl_load_plan *plan;
    const sl_load_outcome *outcome;
    const sl_monitor_figures *monitor;
    const char *phase;  /* with --during: "before", "during" or "after"; otherwise NULL */
    const char *name;   /* of the query, or "mix" */
    uint64_t documents; /* in the collection; 0: unknown */
} sl_load_step;

/* Appends the step to `queries`, the array of a report. False without memory. */
bool sl_load_report_append(bson_t *queries, const sl_load_step *step);

/* Prints the table of steps: throughput, percentiles, numbers of operations. */
void sl_load_show(const sl_load_step *steps, size_t count);
/* Prints the notes under the table: definitions, failures, delays of the client, replication
 * lag. */
void sl_load_show_notes(const sl_load_step *steps, size_t count);

/* Checks that attempted = succeeded + failed + skipped. */
bool sl_load_adds_up(const sl_load_outcome *outcome);

#endif
