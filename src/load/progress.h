/* SPDX-License-Identifier: Apache-2.0 */
/* Progress: rates and totals of a running load, as a line on the terminal, as log lines or as JSON;
 * and the time series of the run record. Used by the main thread only, while the workers run. */
#ifndef SHARDLOAD_PROGRESS_H
#define SHARDLOAD_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "job/job.h"
#include "report/run_record.h"

#include "run.h"

typedef struct sl_progress sl_progress;

/* NULL without memory: then there is no progress line. */
sl_progress *sl_progress_start(const sl_run *run, const sl_destination *destination,
                               sl_run_record *record);
void sl_progress_tick(sl_progress *progress);
/* Takes the last point of the series and clears the line. NULL is fine. */
void sl_progress_end(sl_progress *progress);

/* ---- figures ---- */

/* The figures of the progress line: rates, the completed share, the time left. */

#define SL_WINDOW 64 /* samples kept, half a second apart: the last half minute */

/* Counters since the load began. */
typedef struct sl_progress_sample {
    double seconds;
    uint64_t documents, bytes, stored_bytes; /* `bytes` of text; of BSON for generated records */
    double stage_seconds[STAGES];
} sl_progress_sample;

typedef struct sl_window {
    sl_progress_sample samples[SL_WINDOW];
    unsigned count; /* of all samples added; the last SL_WINDOW are kept */
} sl_window;        /* all zero is an empty window */

void sl_window_keep(sl_window *window, const sl_progress_sample *sample);

typedef struct sl_figures {
    double rate_now, bytes_now; /* per second, over the last two seconds */
    double rate_all;            /* documents per second since the load began */
    double share;               /* of the stored bytes, 0..1; 0 without a total */
    double left; /* seconds left, by the rate of the last half minute; -1: not known */
    double stage_share[STAGES]; /* of the workers' time in the last two seconds */
} sl_figures;

/* `stored_total`: stored bytes of all sources; 0 if not known. */
sl_figures sl_figures_of(const sl_window *window, const sl_progress_sample *now,
                         uint64_t stored_total);

/* ---- a running load ---- */

/* Takes views of a run. One thread; a run may have several viewers. */
typedef struct sl_viewer {
    const sl_run *run;
    int64_t start; /* of the run, by sl_clock_ns */
    double next_moment;
    sl_window window;
} sl_viewer;

/* Call it when the workers start. Bytes that earlier runs have read count for the share, not for
 * rates. */
void sl_viewer_init(sl_viewer *viewer, const sl_run *run, int64_t start);

typedef struct sl_view {
    double seconds;    /* since the start */
    sl_run_totals sum; /* of this run */
    /* Of all runs of the load, earlier ones included. */
    uint64_t records, documents, rejects, text_bytes;
    uint64_t stored_bytes; /* of the blocks whose records are all accounted for */
    uint64_t stored_total; /* of all sources; 0: not known, for a pipe */
    bool generated;        /* records without text */
    unsigned threads;      /* active */
    unsigned threads_most;
    uint32_t batch_documents;
    uint64_t rate_limit; /* 0: none */
    double silent;       /* seconds since the oldest batch without an answer was sent; 0: less than
                            SL_SILENT_SECONDS */
    uint32_t silent_shard; /* of that batch; job->shards: not known */
    sl_figures figures;
} sl_view;

/* A shard that has not answered a batch for so long is named. */
#define SL_SILENT_SECONDS 5

/* Call it at least twice a second. */
sl_view sl_view_take(sl_viewer *viewer);

/* Adds the counts and rates of a view to a sum over several loads. stage_share becomes the sum over
 * the running loads; share, left and stored_total are not changed. */
void sl_view_add(sl_view *sum, const sl_view *view, bool runs);

/* Appends the figures of a view as JSON. `run` NULL: it has ended, and the shards are left out. The
 * keys contain no blanks, except names of shards. */
void sl_view_append(const sl_view *view, const sl_run *run, const sl_destination *destination,
                    bson_t *json);

/* ---- the line ---- */

/* The text of the progress line, for a terminal of any width and for a log file. */

/* What the line shows. */
typedef struct sl_progress_facts {
    double share;              /* 0 to 1; below 0: not known */
    double left;               /* seconds; below 0: not known */
    uint64_t documents;        /* stored so far */
    double rate_now, rate_all; /* documents per second */
    double bytes_now;          /* per second */
    bool bson;                 /* bytes of BSON; otherwise of text */
    uint64_t rejects;
    uint64_t rate_limit;   /* 0: none */
    unsigned threads;      /* 0: constant, not shown */
    const char *waits[2];  /* what the workers wait for most, and second most; or NULL */
    double waits_share[2]; /* of their time */
    double silent;         /* seconds without an answer to a batch; 0: none is named */
    const char *silent_shard;
    const char *const *shards; /* names; may be NULL */
    const double *shard_rates; /* documents per second */
    size_t shard_count;
} sl_progress_facts;

#define SL_PROGRESS_LINE_ROOM 1024

/* Writes the line for a terminal of `columns` columns (at least 40): it has at most columns - 1
 * characters, and always share (without a total: documents), rate, time left and what is waited
 * for. Other figures are added as far as they fit, and a bar of at least ten columns. `columns` 0:
 * a line of a log, with all figures in words and no bar. Returns `out`. */
char *sl_progress_line(const sl_progress_facts *facts, unsigned columns,
                       char out[SL_PROGRESS_LINE_ROOM]);

#endif
