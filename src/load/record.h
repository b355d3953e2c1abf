/* SPDX-License-Identifier: Apache-2.0 */
/* A load with its phases; the summary on the screen, and the run record, run.json. */
#ifndef SHARDLOAD_LOAD_RECORD_H
#define SHARDLOAD_LOAD_RECORD_H

#include "job/job.h"
#include "ledger/ledger.h"
#include "report/run_record.h"
#include "run.h"
#include "status.h"

/* A load: load.c runs it, and record.c reports it. No other file uses it. */
typedef struct sl_load {
    sl_job job;
    sl_destination destination;
    sl_ledger ledger;
    sl_run run;

    sl_status *_Atomic status; /* NULL: none is written. Read by the thread of signals */
    sl_run_record *record;
    const char *report;          /* path from the config; NULL if it cannot be written */
    const char *html;            /* likewise */
    size_t distribution_steps;   /* splits and moves */
    double distribution_seconds; /* how long the steps took */
    uint64_t dropped;            /* documents that --drop has removed */
    char balancer_before[16];    /* "full", "off", or "" when there is none */
    bool balancer_restored;      /* restored, or never stopped */

    pthread_mutex_t balancer_lock; /* guards the two fields below */
    sl_balancer *balancer;         /* stopped; NULL once restored, or restoring it has failed */
    bool balancer_lost;            /* restoring it has failed */
    _Atomic bool putting_back;     /* commands that restore it are retried after an interrupt */
} sl_load;

/* The documents of the collection, by the servers' statistics; 0: none, or not known. */
uint64_t sl_record_stored(const sl_destination *destination);

/* Records the start of `command`. */
void sl_record_start(sl_run_record *record, const sl_load_config *config, const char *command);
/* Logs and records the server, once connected. */
void sl_record_server(sl_run_record *record, sl_connection *connection);

/* Checks the totals, prints the summary, and writes run.json and the reports. `code` is the exit
 * code so far; returns the final one. */
sl_exit sl_record_end(sl_load *load, sl_exit code);

#endif
