/* SPDX-License-Identifier: Apache-2.0 */
/* The capacity model: predicts the time of a load on given machines, and its bottleneck. Arithmetic
 * only: it measures nothing and connects to nothing.
 *
 * Every resource of a load (processors and network of loaders and routers; the shards; processors,
 * network and disks of their hosts) has a demand, from the data, and a capacity, from the machines.
 * All resources work at the same time, so the slowest one determines the time of the load. Indexes
 * are built afterwards, and their time is added.
 *
 * Each input is a value with a range. The effect of each input on the time is monotonic, so the
 * range of the time follows from setting all inputs to their favourable ends, then all to their
 * unfavourable ends. (If `shards-per-host` determines the number of hosts, that number and its
 * range are used like an input.) */
#ifndef SHARDLOAD_CAPACITY_H
#define SHARDLOAD_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <bson/bson.h>

#include "util/error.h"
#include "util/estimate.h"

/* The inputs; capacity.c has a row for each with its name, unit and meaning. */
typedef enum sl_capacity_input {
    SL_CAPACITY_DOCUMENTS,
    SL_CAPACITY_DOCUMENT_BYTES,
    SL_CAPACITY_INDEX_BYTES,
    SL_CAPACITY_STORED_SHARE,
    SL_CAPACITY_WRITE_FACTOR,
    SL_CAPACITY_REPLICAS,
    SL_CAPACITY_REPLICA_COST,
    SL_CAPACITY_IMBALANCE,
    SL_CAPACITY_LOADERS,
    SL_CAPACITY_LOADER_RATE,
    SL_CAPACITY_LOADER_NETWORK,
    SL_CAPACITY_ROUTED,
    SL_CAPACITY_ROUTERS,
    SL_CAPACITY_ROUTER_RATE,
    SL_CAPACITY_ROUTER_NETWORK,
    SL_CAPACITY_SHARDS,
    SL_CAPACITY_SHARD_RATE,
    SL_CAPACITY_SHARD_BYTE_RATE,
    SL_CAPACITY_HOSTS,
    SL_CAPACITY_SHARDS_PER_HOST,
    SL_CAPACITY_HOST_RATE,
    SL_CAPACITY_HOST_NETWORK,
    SL_CAPACITY_HOST_DISK,
    SL_CAPACITY_HOST_STORAGE,
    SL_CAPACITY_INDEXES,
    SL_CAPACITY_INDEX_RATE,
    SL_CAPACITY_HOST_PRICE,
    SL_CAPACITY_ROUTER_PRICE,
    SL_CAPACITY_LOADER_PRICE,
    SL_CAPACITY_INPUTS,
} sl_capacity_input;

typedef enum sl_capacity_effect {
    SL_EFFECT_NONE,
    SL_EFFECT_SLOWER, /* a larger value never makes a load faster */
    SL_EFFECT_FASTER, /* a larger value never makes a load slower */
} sl_capacity_effect;

typedef struct sl_capacity_input_row {
    const char *name; /* in model files and --set: "shard-rate" */
    const char *unit; /* "documents/s" */
    double fallback;  /* default; NAN: none, so resources that need the input are left out */
    double minimum, maximum;
    sl_capacity_effect effect;
    const char *help;
} sl_capacity_input_row;

extern const sl_capacity_input_row sl_capacity_inputs[SL_CAPACITY_INPUTS];

/* The origin of a value. */
typedef enum sl_capacity_origin {
    SL_ORIGIN_DEFAULT,
    SL_ORIGIN_PUBLISHED, /* stated in the publication that the model describes */
    SL_ORIGIN_MEASURED,  /* in docs/performance.md, or measured on the sources */
    SL_ORIGIN_FITTED,    /* chosen to reproduce the published time, which is then no prediction */
    SL_ORIGIN_ASSUMED,
    SL_ORIGIN_GIVEN,    /* on the command line */
    SL_ORIGIN_COMPUTED, /* from other inputs (hosts from shards-per-host) */
    SL_ORIGINS,
} sl_capacity_origin;

extern const char *const sl_capacity_origin_names[SL_ORIGINS];

typedef struct sl_capacity_value {
    double value; /* NAN: not known */
    double low, high;
    sl_capacity_origin origin;
    char note[240]; /* reason for the value, or "" */
} sl_capacity_value;

typedef struct sl_capacity_model {
    char name[64];
    char title[120];
    char about[1200];
    /* The published total time in hours, with its range; NAN when none was published. */
    double published_hours, published_low, published_high;
    char published_note[400];
    bool other_data; /* the user replaced the documents: the published time does not apply */
    sl_capacity_value values[SL_CAPACITY_INPUTS];
} sl_capacity_model;

typedef enum sl_capacity_resource {
    SL_RESOURCE_LOADER,
    SL_RESOURCE_LOADER_NETWORK,
    SL_RESOURCE_ROUTER,
    SL_RESOURCE_ROUTER_NETWORK,
    SL_RESOURCE_SHARD,
    SL_RESOURCE_SHARD_BYTES,
    SL_RESOURCE_HOST,
    SL_RESOURCE_HOST_NETWORK,
    SL_RESOURCE_HOST_DISK,
    SL_CAPACITY_RESOURCES,
} sl_capacity_resource;

extern const char *const sl_capacity_resource_names[SL_CAPACITY_RESOURCES];

typedef struct sl_capacity_row {
    bool known;      /* false: no capacity is given, and the fields below are not set */
    bool bytes;      /* demand and capacity are in bytes, else in documents */
    double demand;   /* of the entire load */
    double capacity; /* per second, of all machines that have work */
    sl_estimate hours;
    double utilisation; /* used share of `capacity` at the bottleneck's speed, 0..1 */
} sl_capacity_row;

typedef struct sl_capacity_result {
    sl_capacity_row rows[SL_CAPACITY_RESOURCES];
    sl_capacity_resource bottleneck; /* of the load; see sl_capacity_bottleneck_name */
    sl_capacity_value hosts;         /* as given, or computed from shards-per-host */
    double busy_hosts;               /* hosts that run at least one replica of a shard */
    sl_estimate load_hours;
    sl_estimate index_hours; /* 0 without indexes; NAN when their rate is not given */
    sl_estimate hours;       /* load_hours, plus index_hours if known */
    double rate;             /* documents/s while loading */
    double stored_bytes;     /* on all hosts: documents and indexes, all copies */
    double host_share;       /* used share of a busy host's storage; NAN without its size */
    sl_estimate cost;        /* of `hours`; NAN when no price is given */
    double cost_per_hour;
} sl_capacity_result;

/* Sets all inputs to their defaults, and an empty name. */
void sl_capacity_init(sl_capacity_model *model);

/* Reads a model from YAML. Inputs that it does not name have their defaults. `name` is the file
 * name in messages: "isd.yaml:12:5: expected ...". Errors are of class SL_EXIT_USAGE. */
bool sl_capacity_parse(const char *text, size_t length, const char *name, sl_capacity_model *model,
                       sl_error *error);

/* Reads the built-in model `name` (from models/, like "isd-one-server"), or the file of that
 * name. */
bool sl_capacity_open(const char *name, sl_capacity_model *model, sl_error *error);

/* Sets an input from "NAME=VALUE" or "NAME=LOW..VALUE..HIGH"; numbers may end in k, M, G, T or P.
 * Error messages do not contain the name of the option (--set). */
bool sl_capacity_set(sl_capacity_model *model, const char *assignment, sl_error *error);

/* Sets an input from the command line. `hosts` and `shards-per-host` both determine the number of
 * machines: setting one of them resets the other, unless the other one was given on the command
 * line too. */
void sl_capacity_give(sl_capacity_model *model, sl_capacity_input input,
                      const sl_capacity_value *value);

/* Parses a number of --set: "85k". */
bool sl_capacity_number(const char *text, size_t length, double *number);

/* The input named `name`, or SL_CAPACITY_INPUTS if there is none. */
sl_capacity_input sl_capacity_find(const char *name, size_t length);

/* Computes the result. False with SL_EXIT_USAGE when a required input (documents, document-bytes)
 * is missing, no resource has a capacity, or both hosts and shards-per-host are given. */
bool sl_capacity_compute(const sl_capacity_model *model, sl_capacity_result *result,
                         sl_error *error);

/* The bottleneck of load and index builds: the name of a resource, or "indexes". */
const char *sl_capacity_bottleneck_name(const sl_capacity_result *result);

/* Lists the resources that the load uses but the model does not cover: resources without a
 * capacity, indexes without a rate, machines without a price. Returns the number of `names`. */
#define SL_CAPACITY_MISSING_MAX (SL_CAPACITY_RESOURCES + 4)
size_t sl_capacity_missing(const sl_capacity_model *model, const sl_capacity_result *result,
                           const char *names[SL_CAPACITY_MISSING_MAX]);

/* A sweep: the model is computed once for each value of one input. The other inputs keep the
 * model's values. */
typedef struct sl_capacity_sweep {
    sl_capacity_input input;
    const double *values;
    size_t count;
    sl_capacity_result *results; /* `count` elements, allocated by the caller */
} sl_capacity_sweep;

/* Computes `sweep->results`; errors as in sl_capacity_compute. */
bool sl_capacity_compute_sweep(const sl_capacity_model *model, const sl_capacity_sweep *sweep,
                               sl_error *error);

/* ---- capacity_report.c ---- */

/* Prints the inputs, the resources and the result; false without memory. */
bool sl_capacity_print(const sl_capacity_model *model, const sl_capacity_result *result, FILE *out);

/* Prints a table with one row per value; false without memory. */
bool sl_capacity_print_sweep(const sl_capacity_sweep *sweep, FILE *out);

/* ---- capacity_record.c ---- */

/* Appends {model, inputs, resources, bottleneck, hours, ...} and, unless it is NULL, {sweep}. */
void sl_capacity_append(bson_t *document, const sl_capacity_model *model,
                        const sl_capacity_result *result, const sl_capacity_sweep *sweep);

#endif
