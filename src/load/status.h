/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a running command: a file in its work directory that other programs read, a file of
 * metrics, and requests to change the rate limit. docs/status.md describes the files.
 *
 * A separate thread writes the files about once a second, also while the main thread waits for a
 * server, so an old file means that the process has ended or is stopped, or that its disk hangs.
 * The thread only reads the run's counters, and a failure to write never ends a load. */
#ifndef SHARDLOAD_STATUS_H
#define SHARDLOAD_STATUS_H

#include "job/job.h"
#include "job/load_config.h"
#include "run.h"

#define SL_STATUS_VERSION 1

typedef struct sl_status sl_status;

/* Texts are copied; the rate limit, `config` and `above` are borrowed. */
typedef struct sl_status_setup {
    const char *command; /* "load", "restore" */
    const sl_load_config *config;
    const char *directory; /* the work directory; "" for none: only metrics are written */
    const char *target;    /* "db.collection"; "" for none */
    const char *metrics;   /* path of the file of metrics; NULL for none */
    const char
        *resume_command; /* how to complete it: "the same command"; NULL: it cannot be resumed */
    const char *resume_directory;
    sl_rate_limit *limit;
    size_t at_once;   /* a restore: how many namespaces at a time; 0: a load */
    sl_status *above; /* of the restore that runs this load; or NULL */
    size_t item;      /* with `above`: see sl_status_namespace */
} sl_status_setup;

/* Begins to write the files, in a thread. Call it when no other process can use the work directory.
 * NULL, after a warning, without memory or threads: the command runs without a status. All
 * functions accept NULL. */
sl_status *sl_status_start(const sl_status_setup *setup);

/* The main thread begins a phase of the command. */
void sl_status_phase(sl_status *status, const char *phase);

/* A run begins, or ends (NULL); also for the status above. `run` and `destination` must live until
 * the next call. The figures of a run that has ended stay. Any thread. */
void sl_status_run(sl_status *status, const sl_run *run, const sl_destination *destination);

/* A restore has this number of namespaces, with so many bytes. */
void sl_status_restore(sl_status *status, size_t namespaces, uint64_t bytes);

/* A restore begins the namespace `item` (any unique number), which it loads with `folder` in the
 * work directory as its own work directory. Any thread; at most `at_once` at a time. */
void sl_status_namespace(sl_status *status, size_t item, const char *name, const char *folder,
                         uint64_t bytes);

/* The outcome of a namespace. */
typedef struct sl_status_outcome {
    uint64_t records, documents, rejects; /* in earlier runs too */
    bool completed;                       /* it did not fail, and was not interrupted */
} sl_status_outcome;

/* The namespace has ended. */
void sl_status_namespace_end(sl_status *status, size_t item, const sl_status_outcome *outcome);

/* Writes the files for the last time, and ends the thread. `message`: why the load failed.
 * `resumable`: it can be completed, unless it has succeeded. Any thread, for handlers of interrupts
 * too; after the first call, others wait until it has written. */
void sl_status_stop(sl_status *status, sl_exit code, const char *message, bool resumable);
/* Stops the status, if that has not been done, and frees it. No other thread may use it any
 * more. */
void sl_status_end(sl_status *status, sl_exit code, const char *message, bool resumable);

/* ---- requests by `shardload status` ---- */

/* A request to change the rate limit. `id` identifies it. */
typedef struct sl_control_request {
    char id[40];
    uint64_t rate_limit; /* 0: none */
} sl_control_request;

/* Writes a request into a work directory; the process that runs there finds it within a second. */
bool sl_control_write(const char *directory, const sl_control_request *request, sl_error *error);
/* Reads and removes the request in the work directory. False when there is none; a file that is not
 * a request is removed, with a warning. */
bool sl_control_take(const char *directory, sl_control_request *request);

#endif
