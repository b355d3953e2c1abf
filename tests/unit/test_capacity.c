/* SPDX-License-Identifier: Apache-2.0 */
/* The capacity model: results computed by hand, and rules that hold for any input. */
#include "capacity_computing.h"

/* 3,600,000 documents of 1,000 bytes; every input has a value, and each resource takes another
 * time. */
static sl_capacity_model full(void) {
    sl_capacity_model model;
    sl_capacity_init(&model);
    static const char *const all[] = {
        "documents=3.6M",   "document-bytes=1000", "index-bytes=100",
        "stored-share=0.5", "write-factor=3",      "replicas=3",
        "replica-cost=0.5", "imbalance=2",         "loaders=2",
        "loader-rate=1000", "loader-network=1M",   "routed=0.5",
        "routers=5",        "router-rate=200",     "router-network=100k",
        "shards=10",        "shard-rate=100",      "shard-byte-rate=50k",
        "hosts=4",          "host-rate=300",       "host-network=2M",
        "host-disk=900k",   "host-storage=2G",     "indexes=2",
        "index-rate=1000",  "host-price=2",        "router-price=1",
        "loader-price=3",
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        set(&model, all[i]);
    return model;
}

/* The same with more hosts than shard members, so that some hosts are idle. */
static sl_capacity_model spread(void) {
    sl_capacity_model model = full();
    set(&model, "hosts=100");
    return model;
}

/* The same with the number of hosts computed from shards-per-host. */
static sl_capacity_model packed(void) {
    sl_capacity_model model = full(), usual;
    sl_capacity_init(&usual);
    model.values[SL_CAPACITY_HOSTS] = usual.values[SL_CAPACITY_HOSTS];
    set(&model, "shards-per-host=4");
    return model;
}

TEST(by_hand) {
    sl_capacity_model model = full();
    sl_capacity_result result = compute(&model);
    static const double hours[SL_CAPACITY_RESOURCES] = {
        1000.0 / 2000, /* loaders: hours at 2,000 documents/s; 1,000/s takes one hour */
        1e6 / 2e6,     /* loaders' network */
        500.0 / 1000,  /* half of the documents through five routers */
        0.5e6 / 0.5e6, /* routers' network */
        2000.0 / 1000, /* the busiest shard gets twice the average */
        2e6 / 0.5e6,   /* bytes of the busiest shard */
        2000.0 / 1200, /* hosts: a primary, two secondaries at half its cost */
        3e6 / 8e6,     /* hosts' network: three copies, four hosts */
        1000 * (500 + 100) * 3 * 3 / 3.6e6, /* disks: three copies, write factor three */
    };
    for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++) {
        assert_true(result.rows[i].known);
        assert_near(result.rows[i].hours.value, hours[i]);
        assert_near(result.rows[i].utilisation, hours[i] / 4);
    }
    assert_int_equal(result.bottleneck, SL_RESOURCE_SHARD_BYTES);
    assert_near(result.load_hours.value, 4);
    assert_near(result.rate, 250);
    assert_near(result.index_hours.value, 1000.0 * 2 * 3 / 4000);
    assert_near(result.hours.value, 5.5);
    assert_near(result.stored_bytes, 3.6e6 * 600 * 3);
    assert_near(result.host_share, 3.6e6 * 600 * 3 / 8e9);
    assert_near(result.cost_per_hour, 4 * 2 + 5 + 2 * 3);
    assert_near(result.cost.value, 19 * 5.5);
}

/* Each resource in turn is made so slow that it determines the time of the load. */
TEST(each_resource_can_be_the_bottleneck) {
    static const char *const small[SL_CAPACITY_RESOURCES] = {
        "loader-rate=1",     "loader-network=1k", "router-rate=1",
        "router-network=1k", "shard-rate=1",      "shard-byte-rate=100",
        "host-rate=1",       "host-network=1k",   "host-disk=1k"};
    for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++) {
        sl_capacity_model model = full();
        set(&model, small[i]);
        sl_capacity_result result = compute(&model);
        assert_int_equal(result.bottleneck, i);
        assert_near(result.load_hours.value, result.rows[i].hours.value);
        assert_near(result.rows[i].utilisation, 1);
    }
}

/* A larger value of an input has no other effect than its row declares. Returns whether any time
 * changed. */
static bool has_effect(const sl_capacity_model *model, size_t input) {
    const sl_capacity_input_row *row = &sl_capacity_inputs[input];
    double before = NAN, time_before[SL_CAPACITY_RESOURCES + 1];
    bool changed = false;
    for (double factor = 0.5; factor < 20; factor *= 1.7) {
        sl_capacity_model one = *model;
        double value = model->values[input].value * factor;
        value = fmin(fmax(value, row->minimum), row->maximum);
        one.values[input].value = one.values[input].low = one.values[input].high = value;
        sl_capacity_result result = compute(&one);
        double times[SL_CAPACITY_RESOURCES + 1];
        for (size_t k = 0; k < SL_CAPACITY_RESOURCES; k++)
            times[k] = result.rows[k].hours.value;
        times[SL_CAPACITY_RESOURCES] = result.hours.value;
        for (size_t k = 0; k <= SL_CAPACITY_RESOURCES && !isnan(before); k++) {
            double more = times[k] - time_before[k], noise = 1e-12 * times[k];
            changed = changed || fabs(more) > noise;
            if (row->effect == SL_EFFECT_FASTER)
                assert_true(more <= noise);
            else if (row->effect == SL_EFFECT_SLOWER)
                assert_true(more >= -noise);
            else
                assert_true(fabs(more) <= noise);
        }
        memcpy(time_before, times, sizeof times);
        before = value;
    }
    return changed;
}

TEST(every_input_has_the_effect_of_its_row) {
    const sl_capacity_model models[] = {full(), spread(), packed()};
    for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++) {
        bool effect = false;
        for (size_t k = 0; k < 3; k++) {
            /* In packed() more members per shard also mean more hosts. */
            if (!isnan(models[k].values[i].value) && !(k == 2 && i == SL_CAPACITY_REPLICAS))
                effect = has_effect(&models[k], i) || effect;
        }
        if (effect != (sl_capacity_inputs[i].effect != SL_EFFECT_NONE))
            fail_msg("%s: whether it has an effect on a time differs from its row",
                     sl_capacity_inputs[i].name);
    }
}

/* With a tolerance for rounding errors. */
static void assert_within(const sl_estimate *range, double value) {
    if (!(range->low <= value * (1 + 1e-12) && value <= range->high * (1 + 1e-12)))
        fail_msg("%.17g is not within %.17g to %.17g", value, range->low, range->high);
}

/* For random inputs within their ranges, each result is within its range. */
static void check_ranges(sl_capacity_model model) {
    uint64_t seed = 88172645463325252u;
    for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++) {
        sl_capacity_value *value = &model.values[i];
        if (isnan(value->value))
            continue;
        value->low = fmax(value->value * 0.6, sl_capacity_inputs[i].minimum);
        value->high = fmin(value->value * 1.7, sl_capacity_inputs[i].maximum);
    }
    sl_capacity_result whole = compute(&model);
    assert_true(whole.hours.low < whole.hours.value && whole.hours.value < whole.hours.high);
    for (int round = 0; round < 2000; round++) {
        sl_capacity_model one = model;
        for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            const sl_capacity_value *value = &model.values[i];
            if (isnan(value->value))
                continue;
            double at = value->low + (value->high - value->low) * (double)(seed >> 11) * 0x1p-53;
            one.values[i].value = one.values[i].low = one.values[i].high = at;
        }
        sl_capacity_result result = compute(&one);
        assert_within(&whole.hours, result.hours.value);
        assert_within(&whole.cost, result.cost.value);
        for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++)
            assert_within(&whole.rows[i].hours, result.rows[i].hours.value);
    }
}

TEST(ranges_hold) {
    check_ranges(full());
    check_ranges(spread());
    check_ranges(packed());
}

static sl_capacity_model with(const char *const *assignments) {
    sl_capacity_model model;
    sl_capacity_init(&model);
    for (; *assignments; assignments++)
        set(&model, *assignments);
    return model;
}

/* Of a hundred hosts, three have a member of the only shard. */
TEST(hosts_without_a_shard_do_nothing) {
    sl_capacity_model model = with((const char *const[]){
        "documents=3.6M", "document-bytes=1000", "shards=1", "replicas=3", "replica-cost=0.5",
        "hosts=100", "host-rate=1000", "host-network=2M", "host-disk=1M", "host-storage=1.8G",
        "host-price=1", "indexes=2", "index-rate=1000", NULL});
    sl_capacity_result result = compute(&model);
    assert_near(result.rows[SL_RESOURCE_HOST].hours.value, 1); /* of the primary's host */
    assert_near(result.rows[SL_RESOURCE_HOST_NETWORK].hours.value, 0.5);
    assert_near(result.rows[SL_RESOURCE_HOST_DISK].hours.value, 2); /* default write factor: 2 */
    assert_near(result.index_hours.value, 2);
    assert_near(result.busy_hosts, 3);
    assert_near(result.host_share, 2);
    assert_near(result.cost_per_hour, 100); /* idle hosts cost as much as busy ones */
    set(&model, "hosts=2");                 /* three members on two hosts */
    result = compute(&model);
    assert_near(result.rows[SL_RESOURCE_HOST].hours.value, 1);
    assert_near(result.rows[SL_RESOURCE_HOST_NETWORK].hours.value, 0.75);
    assert_near(result.busy_hosts, 2);
}

TEST(shards_per_host_makes_the_number_of_hosts) {
    sl_capacity_model model = packed();
    sl_capacity_result result = compute(&model);
    assert_near(result.hosts.value, 8); /* thirty members, four per host */
    assert_int_equal(result.hosts.origin, SL_ORIGIN_COMPUTED);
    assert_near(result.rows[SL_RESOURCE_HOST_NETWORK].hours.value, 3e6 / 16e6);
    assert_near(result.cost_per_hour, 8 * 2 + 5 + 2 * 3);
    set(&model, "shards=8..10..12");
    set(&model, "shards-per-host=2..4..5");
    result = compute(&model);
    assert_near(result.hosts.low, 5);
    assert_near(result.hosts.high, 18);
}

TEST(indexes_can_determine_the_time) {
    sl_capacity_model model = full(); /* 4 hours, then 1.5 hours for the indexes */
    sl_capacity_result result = compute(&model);
    assert_string_equal(sl_capacity_bottleneck_name(&result), "shards, bytes");
    set(&model, "index-rate=300");
    result = compute(&model);
    assert_string_equal(sl_capacity_bottleneck_name(&result), "indexes");
    assert_int_equal(result.bottleneck, SL_RESOURCE_SHARD_BYTES);
}

static bool is_missing(const sl_capacity_model *model, const char *name) {
    const char *names[SL_CAPACITY_MISSING_MAX];
    sl_capacity_result result = compute(model);
    size_t count = sl_capacity_missing(model, &result, names);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

TEST(missing_inputs_are_named) {
    static const char *const prices[] = {"host-price", "router-price", "loader-price"};
    sl_capacity_model bare = with((const char *const[]){"documents=3.6M", "document-bytes=1000",
                                                        "shard-rate=1k", "indexes=1", NULL});
    sl_capacity_model all = full();
    for (size_t i = 0; i < 3; i++) {
        assert_true(is_missing(&bare, prices[i]));
        assert_false(is_missing(&all, prices[i]));
    }
    assert_true(is_missing(&bare, "indexes"));
    assert_false(is_missing(&all, "indexes"));
    assert_true(is_missing(&bare, "routers, network"));
    set(&bare, "routed=0");
    assert_false(is_missing(&bare, "routers, network"));
    assert_false(is_missing(&bare, "router-price"));
}

TEST(a_sweep_changes_one_input) {
    static const double values[] = {1, 10, 60};
    sl_capacity_result results[3];
    sl_error error = {0};
    sl_capacity_model model = spread();
    sl_capacity_sweep sweep = {SL_CAPACITY_SHARDS, values, 3, results};
    assert_true(sl_capacity_compute_sweep(&model, &sweep, &error));
    assert_near(results[0].busy_hosts, 3);
    assert_near(results[1].busy_hosts, 30);
    assert_near(results[2].busy_hosts, 100);
    sweep.input = SL_CAPACITY_SHARDS_PER_HOST; /* refused, because hosts has a value */
    assert_false(sl_capacity_compute_sweep(&model, &sweep, &error));
}

TEST(direct_needs_no_router) {
    sl_capacity_model model = full();
    set(&model, "routed=0");
    sl_capacity_result result = compute(&model);
    assert_false(result.rows[SL_RESOURCE_ROUTER].known);
    assert_false(result.rows[SL_RESOURCE_ROUTER_NETWORK].known);
    assert_near(result.cost_per_hour, 4 * 2 + 2 * 3);
}

/* Nothing is routed, but the upper limit is everything: only the upper time is the routers'. */
TEST(a_range_of_routed_affects_only_the_upper_time) {
    sl_capacity_model model = full();
    set(&model, "routed=0");
    sl_capacity_result straight = compute(&model);
    set(&model, "routed=0..0..1");
    set(&model, "router-rate=1");
    sl_capacity_result result = compute(&model);
    assert_true(result.rows[SL_RESOURCE_ROUTER].known);
    assert_near(result.rows[SL_RESOURCE_ROUTER].hours.value, 0);
    assert_near(result.load_hours.value, straight.load_hours.value);
    assert_int_equal(result.bottleneck, straight.bottleneck);
    assert_near(result.load_hours.high, 3.6e6 / 5 / 3600); /* five routers, one document/s each */
    /* Four hosts at 2, two loaders at 3; five routers at 1 only in the upper cost. */
    assert_near(result.cost.value, 14 * result.hours.value);
    assert_near(result.cost.high, 19 * result.hours.high);
}

TEST(results_without_inputs_are_unknown) {
    sl_capacity_model model;
    sl_capacity_result result;
    sl_error error = {0};
    sl_capacity_init(&model);
    assert_false(sl_capacity_compute(&model, &result, &error));
    assert_int_equal(error.code, SL_EXIT_USAGE);
    assert_non_null(strstr(error.message, "\"documents\""));
    set(&model, "documents=7200");
    set(&model, "document-bytes=100");
    assert_false(sl_capacity_compute(&model, &result, &error));
    assert_non_null(strstr(error.message, "shard-rate"));
    set(&model, "shard-rate=2");
    result = compute(&model);
    assert_near(result.hours.value, 1);
    for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++)
        assert_int_equal(result.rows[i].known, i == SL_RESOURCE_SHARD);
    assert_true(isnan(result.cost.value));
    assert_true(isnan(result.host_share));
    set(&model, "indexes=1"); /* without index-rate */
    result = compute(&model);
    assert_true(isnan(result.index_hours.value));
    assert_near(result.hours.value, 1);
}
