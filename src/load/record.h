/* SPDX-License-Identifier: Apache-2.0 */
/* A load with its phases; the summary on the screen, and the run record, run.json. */
#ifndef SHARDLOAD_LOAD_RECORD_H
#define SHARDLOAD_LOAD_RECORD_H

#include "job/job.h"
#include "ledger/ledger.h"
#include "report/run_record.h"
#include "run.h"
#include "status.h"

/* A load: load.c, preparing.c and ending.c run it, and record.c reports it. No other file uses
 * it. */
typedef struct sl_load {
    sl_job job;
    sl_destination destination;
    sl_ledger ledger;
    sl_run run;

    sl_status *_Atomic status; /* NULL: none is written. Read by the thread of signals */
    sl_run_record *record;
    const char *report;       /* path from the config; NULL if it cannot be written */
    const char *html;         /* likewise */
    size_t placing_steps;     /* splits and moves */
    double placing_seconds;   /* how long the steps took */
    char balancer_before[16]; /* "full", "off", or "" when there is none */
    bool balancer_restored;   /* restored, or never stopped */

    pthread_mutex_t balancer_lock; /* guards the two fields below; ending.c */
    sl_balancer *balancer;         /* stopped; NULL once restored, or restoring it has failed */
    bool balancer_lost;            /* restoring it has failed */
    _Atomic bool putting_back;     /* commands that restore it are retried after an interrupt */
} sl_load;

/* Records the start of `command`. */
void sl_record_start(sl_run_record *record, const sl_load_config *config, const char *command);
/* Logs and records the server, once connected. */
void sl_record_server(sl_run_record *record, sl_connection *connection);

/* Checks the totals, prints the summary, and writes run.json and the reports. `code` is the exit
 * code so far; returns the final one. */
sl_exit sl_record_end(sl_load *load, sl_exit code);

/* ---- preparing.c: the phases before the first document ---- */

/* Connects to the cluster of the configuration. */
bool sl_load_connect(sl_load *load, sl_error *error);

/* Creates and shards the collection, stops the balancer, numbers the sources, and splits and places
 * the ranges. All checks that can refuse the load come first. */
bool sl_load_prepare(sl_load *load, sl_error *error);

/* Numbers the sources of a load into another sink. */
bool sl_load_prepare_offline(sl_load *load, sl_error *error);

/* ---- ending.c: interrupts, and the balancer, which is restored however the load ends ---- */

/* Stops the balancer; sl_load_restore_balancer restores it, once, whichever thread calls it. */
bool sl_load_stop_balancer(sl_load *load, sl_error *error);
bool sl_load_restore_balancer(sl_load *load, sl_error *error);

/* Has a failed load changed nothing, neither in the cluster nor in its output? Then its work
 * directory is removed. */
bool sl_load_is_unused(const sl_load *load);
/* Can --resume complete the load, which ended for the reason `why`? It can even if this run ended
 * before it began, as long as it resumed an earlier run: the journal of that run is kept. */
bool sl_load_may_be_resumed(const sl_load *load, const sl_error *why);
/* Logs the command that completes a load which ended early. */
void sl_load_log_how_to_complete(const sl_load *load, const sl_error *why);

/* For sl_interrupt_listen; `context` is the sl_load. */
bool sl_load_on_first_request(void *context);
void sl_load_on_second_request(void *context);

/* ---- registering.c ---- */

/* Registers the job's sources as loaded; of a shared load, this loader's parts of them. Then, of a
 * shared load, counts and registers the sources that are complete now, and logs which parts are
 * missing. */
bool sl_register_loaded(const sl_job *job, sl_destination *destination, const sl_ledger *ledger,
                        sl_error *error);

#endif
