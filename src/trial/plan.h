/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload plan`: predicts the steps of a load, and its time at the rates of an earlier load. */
#ifndef SHARDLOAD_PLAN_H
#define SHARDLOAD_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "capacity.h"
#include "job/preview.h"
#include "load/load.h"
#include "util/error.h"
#include "util/estimate.h"

typedef struct sl_plan_config {
    const sl_load_config *load; /* a NULL uri: plan without a cluster */
    uint32_t shards;            /* without a cluster: number of shards to plan for, at least 1 */
    uint64_t blocks;            /* approximate number of 1 MiB blocks of the sources to read */
    const char *from;           /* path of a record to take rates from, or NULL */
    double rate;                /* documents/s, or 0 */
} sl_plan_config;

/* Makes the plan, prints it to standard output, and writes it to load->report. Returns the exit
 * code; if a load would refuse to start, the code of that refusal. */
sl_exit sl_plan_run(const sl_plan_config *config);

/* A capacity model to compute. */
typedef struct sl_model_config {
    const sl_load_config *load; /* its sources, if any, replace the number and size of documents in
                                   the model */
    const sl_capacity_model *model;
    uint64_t blocks; /* as in sl_plan_config */
    size_t sweep;    /* the input that takes each of `sweep_values` */
    const double *sweep_values;
    size_t sweep_count; /* 0: no sweep */
} sl_model_config;

/* Replaces inputs of the model by the figures of the load in the record at `path` (run.json).
 * Errors are of class SL_EXIT_USAGE. */
bool sl_model_use_record(sl_capacity_model *model, const char *path, sl_error *error);

/* Computes the model, prints it to standard output, and writes it to load->report. */
sl_exit sl_plan_run_model(const sl_model_config *config);

/* ---- rates from records of earlier runs, and predicted times ---- */

/* The rates of an earlier load. Unknown figures are NAN. */
typedef struct sl_rates {
    char from[300];         /* the source of the rates, for messages */
    char deployment[24];    /* "sharded cluster"; "" if unknown */
    char write_concern[16]; /* "majority"; "" if unknown */
    sl_estimate documents;  /* per second */
    sl_estimate bson_bytes; /* per second */
    double connect_seconds;
    double prepare_seconds;       /* without distributing ranges */
    sl_estimate step_seconds;     /* a split or move */
    sl_estimate index_documents;  /* per second, of one index */
    sl_estimate verify_documents; /* per second */
} sl_rates;

/* Reads the rates from the record of a load, a reload or a tune. Errors are of class
 * SL_EXIT_USAGE. */
bool sl_rates_from_record(const bson_t *record, const char *path, sl_rates *rates, sl_error *error);

#define SL_PREDICTED_PHASES 6

typedef struct sl_plan_times {
    struct {
        const char *name;    /* as in run.json */
        sl_estimate seconds; /* NAN: unknown, for the reason in `why` */
        const char *why;
    } phases[SL_PREDICTED_PHASES];
    size_t count;
    sl_estimate seconds; /* sum of the phases with a known time */
    bool complete;       /* the times of all phases are known */
} sl_plan_times;

/* Predicts the times of a load of the documents in `measure` at these rates. The load places ranges
 * in `steps` steps (0 without sharding), builds `indexes` indexes, and verifies if `verify`. */
void sl_predict(const sl_rates *rates, const sl_measure *measure, size_t steps, size_t indexes,
                bool verify, sl_plan_times *prediction);

#endif
