/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the progress line, for a terminal of any width and for a log file. */
#ifndef SHARDLOAD_PROGRESS_LINE_H
#define SHARDLOAD_PROGRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the line shows. */
typedef struct sl_progress_facts {
    double share;              /* 0 to 1; below 0: not known */
    double left;               /* seconds; below 0: not known */
    uint64_t documents;        /* stored so far */
    double rate_now, rate_all; /* documents per second */
    double bytes_now;          /* per second */
    bool bson;                 /* bytes of BSON; otherwise of text */
    uint64_t rejects;
    uint64_t rate_limit;       /* 0: none */
    unsigned threads;          /* 0: constant, not shown */
    const char *waits[2];      /* what the workers wait for most, and second most; or NULL */
    double waits_share[2];     /* of their time */
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
