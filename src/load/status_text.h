/* SPDX-License-Identifier: Apache-2.0 */
/* What a status contains, and its texts: status.json and the metrics. For status.c only. */
#ifndef SHARDLOAD_STATUS_TEXT_H
#define SHARDLOAD_STATUS_TEXT_H

#include <limits.h>
#include <pthread.h>

#include "progress_figures.h"
#include "status.h"
#include "util/process.h"

/* A load that runs: the command's own, or that of one of a restore's namespaces. */
typedef struct sl_status_part {
    bool taken;
    size_t item;
    char name[300], folder[PATH_MAX]; /* of a namespace */
    uint64_t bytes;
    const sl_run *run; /* NULL: none runs */
    const sl_destination *destination;
    sl_viewer viewer;
    sl_view view; /* the last one */
    bool viewed;
} sl_status_part;

struct sl_status {
    /* Constant once the thread runs. */
    sl_status_setup setup;
    char command[16], target[300], directory[PATH_MAX], metrics[PATH_MAX];
    char resume_command[200], resume_directory[PATH_MAX];
    char host[SL_HOST_ROOM], host_name[256];
    int64_t started_ms, started_ns;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    bool over, urgent; /* urgent: write the files at once */
    bool stopped;      /* the thread has ended */
    char phase[32];
    int64_t phase_since;
    size_t namespaces;    /* of a restore */
    uint64_t bytes;       /* of all of them */
    sl_view ended_view;   /* sum of the namespaces that have ended */
    size_t ended_count;   /* of namespaces that have been completed */
    double ended_bytes;   /* completed ones of the namespaces that have ended */
    double earlier_bytes; /* completed ones of earlier runs */
    char request[40];     /* the last one that was carried out */
    bool ended;
    sl_exit code;
    char message[600];

    bool failed; /* the thread's: a warning was logged */

    size_t part_count;
    sl_status_part parts[]; /* of a load: one */
};

bool sl_status_is_restore(const sl_status *status);

/* The completed bytes of a namespace, earlier runs included; and the bytes that earlier runs
 * completed. */
double sl_status_done(const sl_status_part *p);
double sl_status_earlier(const sl_status_part *p);

/* status.json. Under the lock. Free it; NULL without memory. */
char *sl_status_text(const sl_status *status);

/* As sl_status_text: the metrics in the text format of Prometheus. */
char *sl_status_metrics(const sl_status *status, size_t *length);

#endif
