/* SPDX-License-Identifier: Apache-2.0 */
/* The capacity model: how long a load takes on machines that are not here, and what stops it from
 * being faster. Pure arithmetic; nothing is measured and nothing is connected to.
 *
 * Every resource that a load uses (the loaders' processors and network, the routers', the shards,
 * their hosts' processors, network and disks) has a demand, which comes from the data, and a
 * capacity, which comes from the machines. The load takes as long as the resource that takes
 * longest: they all work at the same time. Indexes are built afterwards, and their time is added.
 *
 * Each input is a value with a range. More of an input makes a load slower, or faster, or neither,
 * but never one here and the other there, so the range of the time is found by putting all inputs
 * to their favourable ends and then all to the other ones. (Where `shards-per-host` makes the
 * number of machines, that number with its range is an input like the others.) */
#ifndef SHARDLOAD_CAPACITY_H
#define SHARDLOAD_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <bson/bson.h>

#include <shardload/error.h>
#include <shardload/estimate.h>

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
    SL_EFFECT_SLOWER, /* more of it never makes a load faster */
    SL_EFFECT_FASTER, /* more of it never makes a load slower */
} sl_capacity_effect;

typedef struct sl_capacity_input_row {
    const char *name; /* in model files and --set: "shard-rate" */
    const char *unit; /* "documents/s" */
    double fallback;  /* NAN: none; the resources that need it are then left out */
    double minimum, maximum;
    sl_capacity_effect effect;
    const char *help;
} sl_capacity_input_row;

extern const sl_capacity_input_row sl_capacity_inputs[SL_CAPACITY_INPUTS];

/* Where a value comes from. */
typedef enum sl_capacity_origin {
    SL_ORIGIN_DEFAULT,
    SL_ORIGIN_PUBLISHED, /* the publication that the model follows says it */
    SL_ORIGIN_MEASURED,  /* docs/performance.md says it */
    SL_ORIGIN_FITTED,    /* chosen with the published time in view: what follows is no prediction */
    SL_ORIGIN_ASSUMED,
    SL_ORIGIN_GIVEN,    /* on the command line */
    SL_ORIGIN_COMPUTED, /* from other inputs: hosts from shards-per-host */
    SL_ORIGINS,
} sl_capacity_origin;

extern const char *const sl_capacity_origin_names[SL_ORIGINS];

typedef struct sl_capacity_value {
    double value; /* NAN: not known */
    double low, high;
    sl_capacity_origin origin;
    char note[240]; /* why, in a few words; "" */
} sl_capacity_value;

typedef struct sl_capacity_model {
    char name[64];
    char title[120];
    char about[1200];
    /* What a publication says that it took, in hours, all of it; NAN when nobody says. */
    double published_hours, published_low, published_high;
    char published_note[400];
    bool other_data; /* than what was published: documents are the user's, so nothing is compared */
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
    bool known;      /* else its capacity is not given, and nothing below is set */
    bool bytes;      /* demand and capacity are in bytes, else in documents */
    double demand;   /* of the whole load */
    double capacity; /* per second, all machines together that have any work */
    sl_estimate hours;
    double utilisation; /* at the speed of the bottleneck, 0..1 */
} sl_capacity_row;

typedef struct sl_capacity_result {
    sl_capacity_row rows[SL_CAPACITY_RESOURCES];
    sl_capacity_resource bottleneck; /* of the load; see sl_capacity_waits_for */
    sl_capacity_value hosts;         /* as given, or as shards-per-host makes them */
    double busy_hosts;               /* those of them that carry a member of a shard */
    sl_estimate load_hours;
    sl_estimate index_hours; /* 0 without indexes; NAN when their rate is not given */
    sl_estimate hours;       /* both */
    double rate;             /* documents/s while loading */
    double stored_bytes;     /* on all hosts: documents and indexes, all copies */
    double host_share;       /* of a busy host's storage that is used; NAN when not given */
    sl_estimate cost;        /* of `hours`; NAN when no price is given */
    double cost_per_hour;
} sl_capacity_result;

/* All inputs at their defaults, no name. */
void sl_capacity_init(sl_capacity_model *model);

/* Reads a model from YAML. Inputs that it does not name have their defaults. `name` is what messages
 * call it: "isd.yaml:12:5: expected ...". Errors are of class SL_EXIT_USAGE. */
bool sl_capacity_parse(const char *text, size_t length, const char *name, sl_capacity_model *model,
                       sl_error *error);

/* Reads the built-in model (of models/) called `name` ("isd-one-server"), or else the file of that name. */
bool sl_capacity_open(const char *name, sl_capacity_model *model, sl_error *error);

/* Takes "NAME=VALUE" or "NAME=LOW..VALUE..HIGH"; numbers may end in k, M, G, T or P. The message of
 * an error does not name the option that it came by. */
bool sl_capacity_set(sl_capacity_model *model, const char *assignment, sl_error *error);

/* Gives an input another value, from the command line. Of `hosts` and `shards-per-host`, which both
 * say how many machines there are, it takes the place of the one that the model's file gives. */
void sl_capacity_give(sl_capacity_model *model, sl_capacity_input input,
                      const sl_capacity_value *value);

/* A number as --set takes it: "85k". */
bool sl_capacity_number(const char *text, size_t length, double *number);

/* The input called `name`, or SL_CAPACITY_INPUTS. */
sl_capacity_input sl_capacity_find(const char *name, size_t length);

/* False, with SL_EXIT_USAGE, when an input that nothing works without (documents, document-bytes)
 * is missing, not a single resource has a capacity, or both hosts and shards-per-host are given. */
bool sl_capacity_compute(const sl_capacity_model *model, sl_capacity_result *result,
                         sl_error *error);

/* What takes longest: the name of a resource, or "indexes". */
const char *sl_capacity_waits_for(const sl_capacity_result *result);

/* What a model says nothing of, although its load uses it: resources without a capacity, which can
 * therefore not be the bottleneck, indexes without a rate, machines without a price. Returns how
 * many names it has put into `names`. */
#define SL_CAPACITY_MISSING_MAX (SL_CAPACITY_RESOURCES + 4)
size_t sl_capacity_missing(const sl_capacity_model *model, const sl_capacity_result *result,
                           const char *names[SL_CAPACITY_MISSING_MAX]);

/* One input with several values, all else as in the model. */
typedef struct sl_capacity_sweep {
    sl_capacity_input input;
    const double *values;
    size_t count;
    sl_capacity_result *results; /* the caller's room for `count` of them */
} sl_capacity_sweep;

/* Computes `sweep->results`; false as above. */
bool sl_capacity_compute_sweep(const sl_capacity_model *model, const sl_capacity_sweep *sweep,
                               sl_error *error);

/* ---- capacity_report.c ---- */

/* Prints what is assumed, the table of resources and the result. */
bool sl_capacity_print(const sl_capacity_model *model, const sl_capacity_result *result, FILE *out);

/* Prints a table with one row for each value; false without memory. */
bool sl_capacity_print_sweep(const sl_capacity_sweep *sweep, FILE *out);

/* ---- capacity_record.c ---- */

/* Appends {model, inputs, resources, bottleneck, hours, ...}, and {sweep}, which may be NULL. */
void sl_capacity_append(bson_t *document, const sl_capacity_model *model,
                        const sl_capacity_result *result, const sl_capacity_sweep *sweep);

#endif
