/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload plan`: what a load would do, and how long it would take by what an earlier one showed. */
#ifndef SHARDLOAD_PLAN_H
#define SHARDLOAD_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include <shardload/capacity.h>
#include <shardload/error.h>
#include <shardload/estimate.h>
#include <shardload/load.h>
#include <shardload/preview.h>

typedef struct sl_plan_config {
    const sl_load_config *load; /* its uri NULL: without a cluster */
    uint32_t shards;            /* without a cluster: how many to lay out for, at least 1 */
    uint64_t blocks;            /* how many MiB of the sources to look at, about */
    const char *from;           /* a record to take rates from, or NULL */
    double rate;                /* documents/s, or 0 */
} sl_plan_config;

/* Makes the plan, prints it to standard output, and writes it where the load's config wants a
 * report. The code is that of a load which would refuse at once. */
sl_exit sl_plan_run(const sl_plan_config *config);

/* A capacity model to compute. */
typedef struct sl_model_config {
    const sl_load_config *load; /* its sources, where there are any, say how many documents there are
                                   and how large they are, in place of the model */
    const sl_capacity_model *model;
    uint64_t blocks;            /* as above */
    sl_capacity_input sweep;    /* which input goes through `sweep_values` */
    const double *sweep_values;
    size_t sweep_count;         /* 0: none */
} sl_model_config;

/* Computes the model, prints it to standard output, and writes it where the load's config wants a
 * report. */
sl_exit sl_plan_run_model(const sl_model_config *config);

/* ---- rates.c: what records of earlier runs say ---- */

/* What one load showed. NAN where it does not tell. */
typedef struct sl_rates {
    char from[300];              /* in words */
    sl_estimate documents;       /* per second */
    sl_estimate bson_bytes;      /* per second */
    double connect_seconds;
    double prepare_seconds;      /* without placing ranges */
    sl_estimate step_seconds;    /* a split or move */
    sl_estimate index_documents; /* per second, of one index */
    sl_estimate verify_documents; /* per second */
} sl_rates;

/* Takes the rates from a record: a load's, or the load within a reload's, or a tune's. Errors are of
 * class SL_EXIT_USAGE. */
bool sl_rates_read(const char *path, sl_rates *rates, sl_error *error);
bool sl_rates_from_record(const bson_t *record, const char *path, sl_rates *rates, sl_error *error);
/* Nothing but documents per second, as a user gives it. */
void sl_rates_from_number(double documents_per_second, sl_rates *rates);

/* ---- predict.c: how long it takes ---- */

#define SL_PREDICTED_PHASES 6

typedef struct sl_plan_times {
    struct {
        const char *name;    /* as in run.json */
        sl_estimate seconds; /* NAN: cannot be told, and `why` says so */
        const char *why;
    } phases[SL_PREDICTED_PHASES];
    size_t count;
    sl_estimate seconds; /* of all phases that can be told */
    bool complete;       /* and there are no others */
} sl_plan_times;

/* The times of a load of `measure`, which places ranges in `steps` steps (0 without sharding), builds
 * `indexes` indexes and verifies, by these rates. */
void sl_predict(const sl_rates *rates, const sl_measure *measure, size_t steps, size_t indexes,
                bool verify, sl_plan_times *prediction);

#endif
