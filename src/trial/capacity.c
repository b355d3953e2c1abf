/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the capacity model. Its assumptions:
 *
 * - A document leaves a loader once, passes a router once (unless the route is direct), and is
 *   written by every member of its shard. It uses each direction of a router's network once.
 * - `shard-rate` and `shard-byte-rate` are the limits of one mongod, whatever its machine. The
 *   busiest shard, with `imbalance` times the average load, determines the time.
 * - `host-rate` is the limit of all cores of a host: it bounds many shards on one host. The work of
 *   a secondary for a document is `replica-cost` times the primary's.
 * - Members of shards are distributed evenly over the hosts. A host without a member is idle, so at
 *   most shards x replicas hosts work.
 * - A disk writes the documents as stored, their indexes and, through `write-factor`, the journal
 *   and data that is written repeatedly. */
#include "capacity.h"

#include <math.h>
#include <string.h>

#define HUGE_COUNT 1e15
#define SECONDS_PER_HOUR 3600.0

const char *const sl_capacity_origin_names[SL_ORIGINS] = {
    "default", "published", "measured", "fitted", "assumed", "given", "computed"};

const char *const sl_capacity_resource_names[SL_CAPACITY_RESOURCES] = {
    "loaders, processors", "loaders, network",  "routers, processors",
    "routers, network",    "shards, documents", "shards, bytes",
    "hosts, processors",   "hosts, network",    "hosts, disks"};

#define RATE 1e-3, 1e18
const sl_capacity_input_row sl_capacity_inputs[SL_CAPACITY_INPUTS] = {
    {"documents", "documents", NAN, 1, 1e18, SL_EFFECT_SLOWER, "number of documents"},
    {"document-bytes", "bytes", NAN, 5, 16777216, SL_EFFECT_SLOWER, "BSON of one document"},
    {"index-bytes", "bytes", 0, 0, 1e6, SL_EFFECT_SLOWER,
     "stored index bytes per document, in all indexes"},
    {"stored-share", "", 1, 0.001, 10, SL_EFFECT_SLOWER, "bytes stored for each byte of BSON"},
    {"write-factor", "", 2, 1, 100, SL_EFFECT_SLOWER,
     "bytes written for each byte stored: journal, checkpoints"},
    {"replicas", "members", 1, 1, 50, SL_EFFECT_SLOWER, "members of each shard"},
    {"replica-cost", "", 1, 0, 10, SL_EFFECT_SLOWER,
     "work of a secondary per document, relative to the primary's"},
    {"imbalance", "", 1, 1, 1000, SL_EFFECT_SLOWER, "load of the busiest shard over the average"},
    {"loaders", "machines", 1, 1, HUGE_COUNT, SL_EFFECT_FASTER, "machines that run a loader"},
    {"loader-rate", "documents/s", NAN, RATE, SL_EFFECT_FASTER, "parsed and sent by one loader"},
    {"loader-network", "bytes/s", NAN, RATE, SL_EFFECT_FASTER, "of one loader"},
    {"routed", "", 1, 0, 1, SL_EFFECT_SLOWER,
     "share of the documents that go through routers; 0: directly to the shards"},
    {"routers", "routers", 1, 1, HUGE_COUNT, SL_EFFECT_FASTER, "machines that run a router"},
    {"router-rate", "documents/s", NAN, RATE, SL_EFFECT_FASTER, "passed on by one router"},
    {"router-network", "bytes/s", NAN, RATE, SL_EFFECT_FASTER, "of one router, in each direction"},
    {"shards", "shards", 1, 1, HUGE_COUNT, SL_EFFECT_FASTER, "number of shards"},
    {"shard-rate", "documents/s", NAN, RATE, SL_EFFECT_FASTER,
     "inserted by one mongod, whatever its host"},
    {"shard-byte-rate", "bytes/s", NAN, RATE, SL_EFFECT_FASTER,
     "BSON inserted by one mongod, whatever its host"},
    {"hosts", "machines", 1, 1, HUGE_COUNT, SL_EFFECT_FASTER,
     "machines that run the members of shards"},
    {"shards-per-host", "members", NAN, 1, 1e6, SL_EFFECT_SLOWER,
     "members of shards on one machine; determines hosts"},
    {"host-rate", "documents/s", NAN, RATE, SL_EFFECT_FASTER, "inserted by all shards of one host"},
    {"host-network", "bytes/s", NAN, RATE, SL_EFFECT_FASTER, "into one host"},
    {"host-disk", "bytes/s", NAN, RATE, SL_EFFECT_FASTER, "written by one host"},
    {"host-storage", "bytes", NAN, 1, 1e18, SL_EFFECT_NONE, "disk space of one host"},
    {"indexes", "indexes", 0, 0, 64, SL_EFFECT_SLOWER, "built after the load"},
    {"index-rate", "documents/s", NAN, RATE, SL_EFFECT_FASTER,
     "added to one index by one host while the index is built"},
    {"host-price", "per hour", NAN, 0, 1e9, SL_EFFECT_NONE, "of one host"},
    {"router-price", "per hour", 0, 0, 1e9, SL_EFFECT_NONE, "of one router"},
    {"loader-price", "per hour", 0, 0, 1e9, SL_EFFECT_NONE, "of one loader"},
};

void sl_capacity_init(sl_capacity_model *model) {
    *model =
        (sl_capacity_model){.published_hours = NAN, .published_low = NAN, .published_high = NAN};
    for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++) {
        double value = sl_capacity_inputs[i].fallback;
        model->values[i] = (sl_capacity_value){.value = value, .low = value, .high = value};
    }
}

/* ---- resources: demand of a load, and capacity per second ---- */

#define OF(input) v[SL_CAPACITY_##input]

static double documents(const double *v) {
    return OF(DOCUMENTS);
}

static double bson(const double *v) {
    return OF(DOCUMENTS) * OF(DOCUMENT_BYTES);
}

static double routed_documents(const double *v) {
    return OF(DOCUMENTS) * OF(ROUTED);
}

static double routed_bson(const double *v) {
    return bson(v) * OF(ROUTED);
}

static double shard_documents(const double *v) {
    return OF(DOCUMENTS) * OF(IMBALANCE);
}

static double shard_bson(const double *v) {
    return bson(v) * OF(IMBALANCE);
}

/* The work of all members of a shard for a document, relative to the primary's. */
static double members_work(const double *v) {
    return 1 + (OF(REPLICAS) - 1) * OF(REPLICA_COST);
}

static double host_documents(const double *v) {
    return OF(DOCUMENTS) * members_work(v);
}

static double host_bson(const double *v) {
    return bson(v) * OF(REPLICAS);
}

static double stored_bytes(const double *v) {
    return OF(DOCUMENTS) * (OF(DOCUMENT_BYTES) * OF(STORED_SHARE) + OF(INDEX_BYTES)) * OF(REPLICAS);
}

static double written_bytes(const double *v) {
    return stored_bytes(v) * OF(WRITE_FACTOR);
}

static double loaders(const double *v) {
    return OF(LOADERS);
}

static double routers(const double *v) {
    return OF(ROUTERS);
}

static double shards(const double *v) {
    return OF(SHARDS);
}

/* Hosts with a member of a shard. */
static double busy_hosts(const double *v) {
    return fmin(OF(HOSTS), OF(SHARDS) * OF(REPLICAS));
}

/* Hosts whose processors are busy. If each member has its own host, the hosts of primaries
 * determine the time; the host of a secondary counts as the fraction of its time that it works
 * (replica-cost). So more replicas never make a load faster. */
static double working_hosts(const double *v) {
    return fmin(OF(HOSTS), OF(SHARDS) * fmin(OF(REPLICAS), members_work(v)));
}

static const struct {
    bool bytes;
    double (*demand)(const double *v);
    double (*machines)(const double *v);
    sl_capacity_input each;
} resources[SL_CAPACITY_RESOURCES] = {
    {false, documents, loaders, SL_CAPACITY_LOADER_RATE},
    {true, bson, loaders, SL_CAPACITY_LOADER_NETWORK},
    {false, routed_documents, routers, SL_CAPACITY_ROUTER_RATE},
    {true, routed_bson, routers, SL_CAPACITY_ROUTER_NETWORK},
    {false, shard_documents, shards, SL_CAPACITY_SHARD_RATE},
    {true, shard_bson, shards, SL_CAPACITY_SHARD_BYTE_RATE},
    {false, host_documents, working_hosts, SL_CAPACITY_HOST_RATE},
    {true, host_bson, busy_hosts, SL_CAPACITY_HOST_NETWORK},
    {true, written_bytes, busy_hosts, SL_CAPACITY_HOST_DISK},
};

/* Per second, of all machines. */
static double capacity_of(size_t resource, const double *v) {
    return resources[resource].machines(v) * v[resources[resource].each];
}

static double hours_of(size_t resource, const double *v) {
    return resources[resource].demand(v) / capacity_of(resource, v) / SECONDS_PER_HOUR;
}

/* The hours of all index builds; all members of a shard build at the same time. */
static double index_hours_of(const double *v) {
    if (OF(INDEXES) <= 0)
        return 0;
    return OF(DOCUMENTS) * OF(INDEXES) * OF(REPLICAS) / (busy_hosts(v) * OF(INDEX_RATE)) /
           SECONDS_PER_HOUR;
}

/* ---- number of hosts ---- */

static bool given(const sl_capacity_value *value) {
    return value->origin != SL_ORIGIN_DEFAULT;
}

static double hosts_for(double shard_count, double replicas, double per_host) {
    return ceil(shard_count * replicas / per_host);
}

/* The number of hosts as given, or computed from shards-per-host. */
static bool find_hosts(const sl_capacity_model *model, sl_capacity_value *hosts, sl_error *error) {
    const sl_capacity_value *each = &model->values[SL_CAPACITY_SHARDS_PER_HOST];
    const sl_capacity_value *shard = &model->values[SL_CAPACITY_SHARDS];
    const sl_capacity_value *replica = &model->values[SL_CAPACITY_REPLICAS];
    *hosts = model->values[SL_CAPACITY_HOSTS];
    if (!given(each))
        return true;
    if (given(hosts))
        return sl_error_set(error, SL_EXIT_USAGE,
                            "\"hosts\" (%g) and \"shards-per-host\" (%g) are both given, and each "
                            "determines the number of machines: give one of them",
                            hosts->value, each->value);
    *hosts = (sl_capacity_value){.value = hosts_for(shard->value, replica->value, each->value),
                                 .low = hosts_for(shard->low, replica->low, each->high),
                                 .high = hosts_for(shard->high, replica->high, each->low),
                                 .origin = SL_ORIGIN_COMPUTED,
                                 .note = "shards x replicas / shards-per-host"};
    return true;
}

/* ---- the three points: as given, everything favourable, everything unfavourable ---- */

typedef enum point { GIVEN, FAVOURABLE, UNFAVOURABLE, POINTS } point;

static double at_point(const sl_capacity_value *value, sl_capacity_effect effect, point where) {
    if (where == GIVEN || effect == SL_EFFECT_NONE)
        return value->value;
    bool high = (effect == SL_EFFECT_FASTER) == (where == FAVOURABLE);
    return high ? value->high : value->low;
}

/* Rounding may make a favourable figure larger than the given one in its last digit: the range
 * always contains the value. */
static sl_estimate range_of(const double at[POINTS]) {
    return (sl_estimate){at[GIVEN], fmin(at[GIVEN], at[FAVOURABLE]),
                         fmax(at[GIVEN], at[UNFAVOURABLE])};
}

static void compute_rows(sl_capacity_result *result, double v[POINTS][SL_CAPACITY_INPUTS],
                         double longest[POINTS]) {
    for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++) {
        sl_capacity_row *row = &result->rows[i];
        double hours[POINTS];
        double demand = resources[i].demand(v[GIVEN]);
        if (isnan(v[GIVEN][resources[i].each]) || resources[i].demand(v[UNFAVOURABLE]) <= 0)
            continue; /* no capacity is given, or the load never uses this resource */
        for (point k = GIVEN; k < POINTS; k++) {
            hours[k] = hours_of(i, v[k]);
            longest[k] = fmax(longest[k], hours[k]);
        }
        *row = (sl_capacity_row){.known = true,
                                 .bytes = resources[i].bytes,
                                 .demand = demand,
                                 .capacity = capacity_of(i, v[GIVEN]),
                                 .hours = range_of(hours)};
        if (hours[GIVEN] > 0 && hours[GIVEN] >= longest[GIVEN])
            result->bottleneck = (sl_capacity_resource)i;
    }
}

/* Multiplies the ranges of machines, prices and hours: the range of the cost is never too
 * narrow. */
static void compute_cost(const sl_capacity_model *model, sl_capacity_result *result) {
    static const sl_capacity_input kinds[][2] = {{SL_CAPACITY_HOSTS, SL_CAPACITY_HOST_PRICE},
                                                 {SL_CAPACITY_ROUTERS, SL_CAPACITY_ROUTER_PRICE},
                                                 {SL_CAPACITY_LOADERS, SL_CAPACITY_LOADER_PRICE}};
    sl_estimate hourly = {0, 0, 0};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const sl_capacity_value *machines =
            kinds[i][0] == SL_CAPACITY_HOSTS ? &result->hosts : &model->values[kinds[i][0]];
        const sl_capacity_value *price = &model->values[kinds[i][1]];
        const sl_capacity_value *routed = &model->values[SL_CAPACITY_ROUTED];
        bool always = kinds[i][0] != SL_CAPACITY_ROUTERS; /* routers cost only if they are used */
        if (always || routed->value > 0)
            hourly.value += machines->value * price->value;
        if (always || routed->low > 0)
            hourly.low += machines->low * price->low;
        if (always || routed->high > 0)
            hourly.high += machines->high * price->high;
    }
    result->cost_per_hour = hourly.value;
    result->cost = (sl_estimate){hourly.value * result->hours.value, hourly.low * result->hours.low,
                                 hourly.high * result->hours.high};
}

bool sl_capacity_compute(const sl_capacity_model *model, sl_capacity_result *result,
                         sl_error *error) {
    double v[POINTS][SL_CAPACITY_INPUTS], longest[POINTS] = {0}, indexes[POINTS], all[POINTS];
    *result = (sl_capacity_result){.bottleneck = SL_RESOURCE_LOADER};
    if (!find_hosts(model, &result->hosts, error))
        return false;
    for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++) {
        const sl_capacity_value *value =
            i == SL_CAPACITY_HOSTS ? &result->hosts : &model->values[i];
        for (point k = GIVEN; k < POINTS; k++)
            v[k][i] = at_point(value, sl_capacity_inputs[i].effect, k);
    }
    static const sl_capacity_input needed[] = {SL_CAPACITY_DOCUMENTS, SL_CAPACITY_DOCUMENT_BYTES};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (isnan(v[GIVEN][needed[i]]))
            return sl_error_set(error, SL_EXIT_USAGE,
                                "the model has no value for \"%s\" (%s): set it with --set %s=...",
                                sl_capacity_inputs[needed[i]].name,
                                sl_capacity_inputs[needed[i]].help,
                                sl_capacity_inputs[needed[i]].name);
    }
    compute_rows(result, v, longest);
    if (longest[GIVEN] <= 0)
        return sl_error_set(error, SL_EXIT_USAGE,
                            "the model has no capacity of any machine: set at least one of "
                            "shard-rate, host-rate, host-disk, router-rate, loader-rate");
    for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++)
        result->rows[i].utilisation = result->rows[i].hours.value / longest[GIVEN];
    for (point k = GIVEN; k < POINTS; k++) {
        indexes[k] = index_hours_of(v[k]);
        all[k] = longest[k] + (isnan(indexes[k]) ? 0 : indexes[k]);
    }
    result->load_hours = range_of(longest);
    result->index_hours = range_of(indexes);
    result->hours = range_of(all);
    result->rate = v[GIVEN][SL_CAPACITY_DOCUMENTS] / longest[GIVEN] / SECONDS_PER_HOUR;
    result->stored_bytes = stored_bytes(v[GIVEN]);
    result->busy_hosts = busy_hosts(v[GIVEN]);
    result->host_share =
        result->stored_bytes / result->busy_hosts / v[GIVEN][SL_CAPACITY_HOST_STORAGE];
    compute_cost(model, result);
    return true;
}

bool sl_capacity_compute_sweep(const sl_capacity_model *model, const sl_capacity_sweep *sweep,
                               sl_error *error) {
    for (size_t i = 0; i < sweep->count; i++) {
        sl_capacity_model one = *model;
        double value = sweep->values[i];
        sl_capacity_give(&one, sweep->input,
                         &(sl_capacity_value){.value = value, .low = value, .high = value});
        if (!sl_capacity_compute(&one, &sweep->results[i], error))
            return false;
    }
    return true;
}

/* ---- bottleneck and missing inputs ---- */

const char *sl_capacity_bottleneck_name(const sl_capacity_result *result) {
    return result->index_hours.value > result->load_hours.value
               ? "indexes"
               : sl_capacity_resource_names[result->bottleneck];
}

size_t sl_capacity_missing(const sl_capacity_model *model, const sl_capacity_result *result,
                           const char *names[SL_CAPACITY_MISSING_MAX]) {
    static const sl_capacity_input prices[] = {SL_CAPACITY_HOST_PRICE, SL_CAPACITY_ROUTER_PRICE,
                                               SL_CAPACITY_LOADER_PRICE};
    size_t count = 0;
    bool direct = model->values[SL_CAPACITY_ROUTED].high <= 0;
    for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++) {
        bool router = i == SL_RESOURCE_ROUTER || i == SL_RESOURCE_ROUTER_NETWORK;
        if (!result->rows[i].known && !(router && direct))
            names[count++] = sl_capacity_resource_names[i];
    }
    if (isnan(result->index_hours.value))
        names[count++] = "indexes";
    for (size_t i = 0; i < sizeof prices / sizeof prices[0]; i++) {
        if (!given(&model->values[prices[i]]) && !(prices[i] == SL_CAPACITY_ROUTER_PRICE && direct))
            names[count++] = sl_capacity_inputs[prices[i]].name;
    }
    return count;
}
