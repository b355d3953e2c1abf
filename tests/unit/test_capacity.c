/* SPDX-License-Identifier: Apache-2.0 */
/* The capacity model: figures that can be worked out by hand, the rules that must hold for any
 * input, and whether what is wrong in a model is told where it stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include <shardload/capacity.h>
#include <shardload/embedded.h>

static bool parse(const char *text, sl_capacity_model *model, sl_error *error) {
    return sl_capacity_parse(text, strlen(text), "m.yaml", model, error);
}

static void set(sl_capacity_model *model, const char *assignment) {
    sl_error error = {0};
    if (!sl_capacity_set(model, assignment, &error))
        fail_msg("%s", error.message);
}

static sl_capacity_result compute(const sl_capacity_model *model) {
    sl_error error = {0};
    sl_capacity_result result;
    if (!sl_capacity_compute(model, &result, &error))
        fail_msg("%s", error.message);
    return result;
}

static void assert_near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g, not %.12g", value, expected);
}

/* Every resource has a capacity, and each its own time, by hand: 3,600,000 documents of 1,000 bytes. */
static sl_capacity_model full(void) {
    sl_capacity_model model;
    sl_capacity_init(&model);
    static const char *const all[] = {
        "documents=3.6M",        "document-bytes=1000", "index-bytes=100",   "stored-share=0.5",
        "write-factor=3",        "replicas=3",          "replica-cost=0.5",  "imbalance=2",
        "loaders=2",             "loader-rate=1000",    "loader-network=1M", "routed=0.5",
        "routers=5",             "router-rate=200",     "router-network=100k", "shards=10",
        "shard-rate=100",        "shard-byte-rate=50k", "hosts=4",           "host-rate=300",
        "host-network=2M",       "host-disk=900k",      "host-storage=2G",   "indexes=2",
        "index-rate=1000",       "host-price=2",        "router-price=1",    "loader-price=3",
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        set(&model, all[i]);
    return model;
}

static void by_hand(void **state) {
    (void)state;
    sl_capacity_model model = full();
    sl_capacity_result result = compute(&model);
    static const double hours[SL_CAPACITY_RESOURCES] = {
        1000.0 / 2000,             /* loaders: 1,000 documents an hour-second, 2,000 a second */
        1e6 / 2e6,                 /* their network */
        500.0 / 1000,              /* half of all, five routers */
        0.5e6 / 0.5e6,             /* their network */
        2000.0 / 1000,             /* the busiest shard has twice the average */
        2e6 / 0.5e6,               /* and so its bytes */
        2000.0 / 1200,             /* two members that follow at half the cost */
        3e6 / 8e6,                 /* three copies into four hosts */
        1000 * (500 + 100) * 3 * 3 / 3.6e6, /* stored three times, written three times */
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

/* Each resource in turn is made so small that it alone decides. */
static void each_resource_can_be_the_bottleneck(void **state) {
    (void)state;
    static const char *const small[SL_CAPACITY_RESOURCES] = {
        "loader-rate=1", "loader-network=1k",  "router-rate=1",    "router-network=1k", "shard-rate=1",
        "shard-byte-rate=100", "host-rate=1", "host-network=1k", "host-disk=1k"};
    for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++) {
        sl_capacity_model model = full();
        set(&model, small[i]);
        sl_capacity_result result = compute(&model);
        assert_int_equal(result.bottleneck, i);
        assert_near(result.load_hours.value, result.rows[i].hours.value);
        assert_near(result.rows[i].utilisation, 1);
    }
}

/* More of an input never does the contrary of what its row says; and each one does something. */
static void every_input_has_the_effect_of_its_row(void **state) {
    (void)state;
    for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++) {
        const sl_capacity_input_row *row = &sl_capacity_inputs[i];
        sl_capacity_model model = full();
        double before = NAN, time_before[SL_CAPACITY_RESOURCES + 1];
        bool moved = false;
        for (double factor = 0.5; factor < 20; factor *= 1.7) {
            sl_capacity_model one = model;
            double value = model.values[i].value * factor;
            value = fmin(fmax(value, row->minimum), row->maximum);
            one.values[i].value = one.values[i].low = one.values[i].high = value;
            sl_capacity_result result = compute(&one);
            double times[SL_CAPACITY_RESOURCES + 1];
            for (size_t k = 0; k < SL_CAPACITY_RESOURCES; k++)
                times[k] = result.rows[k].hours.value;
            times[SL_CAPACITY_RESOURCES] = result.hours.value;
            for (size_t k = 0; k <= SL_CAPACITY_RESOURCES && !isnan(before); k++) {
                double more = times[k] - time_before[k], noise = 1e-12 * times[k];
                moved = moved || fabs(more) > noise;
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
        if (moved != (row->effect != SL_EFFECT_NONE))
            fail_msg("%s has no effect on any time, or one that its row denies", row->name);
    }
}

/* Whatever the inputs are within their ranges, the result is within its own. */
static void ranges_hold(void **state) {
    (void)state;
    sl_capacity_model model = full();
    uint64_t seed = 88172645463325252u;
    for (size_t i = 0; i < SL_CAPACITY_INPUTS; i++) {
        sl_capacity_value *value = &model.values[i];
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
            double at = value->low + (value->high - value->low) * (double)(seed >> 11) * 0x1p-53;
            one.values[i].value = one.values[i].low = one.values[i].high = at;
        }
        sl_capacity_result result = compute(&one);
        assert_true(whole.hours.low <= result.hours.value && result.hours.value <= whole.hours.high);
        assert_true(whole.cost.low <= result.cost.value && result.cost.value <= whole.cost.high);
        for (size_t i = 0; i < SL_CAPACITY_RESOURCES; i++)
            assert_true(whole.rows[i].hours.low <= result.rows[i].hours.value &&
                        result.rows[i].hours.value <= whole.rows[i].hours.high);
    }
}

static void direct_needs_no_router(void **state) {
    (void)state;
    sl_capacity_model model = full();
    set(&model, "routed=0");
    sl_capacity_result result = compute(&model);
    assert_false(result.rows[SL_RESOURCE_ROUTER].known);
    assert_false(result.rows[SL_RESOURCE_ROUTER_NETWORK].known);
    assert_near(result.cost_per_hour, 4 * 2 + 2 * 3);
}

/* Straight, but perhaps all through routers: then these may be what is waited for. */
static void what_may_be_routed_counts_for_the_worst(void **state) {
    (void)state;
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
    /* Four hosts at 2, two loaders at 3; routers at 1 at worst only. */
    assert_near(result.cost.value, 14 * result.hours.value);
    assert_near(result.cost.high, 19 * result.hours.high);
}

static void what_is_not_given_is_left_out(void **state) {
    (void)state;
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
    set(&model, "indexes=1"); /* whose rate nobody knows */
    result = compute(&model);
    assert_true(isnan(result.index_hours.value));
    assert_near(result.hours.value, 1);
}

static void yaml(void **state) {
    (void)state;
    sl_capacity_model model;
    sl_error error = {0};
    assert_true(parse("title: T\n"
                      "about: A B\n"
                      "published: {hours: 4, high: 5, note: n}\n"
                      "values:\n"
                      "  documents: 2.5G\n"
                      "  shard-rate: {value: 85k, low: 60k, from: published, note: why}\n",
                      &model, &error));
    assert_string_equal(model.name, "m");
    assert_string_equal(model.title, "T");
    assert_string_equal(model.about, "A B");
    assert_near(model.published_hours, 4);
    assert_near(model.published_low, 4);
    assert_near(model.published_high, 5);
    assert_near(model.values[SL_CAPACITY_DOCUMENTS].value, 2.5e9);
    assert_int_equal(model.values[SL_CAPACITY_DOCUMENTS].origin, SL_ORIGIN_ASSUMED);
    const sl_capacity_value *rate = &model.values[SL_CAPACITY_SHARD_RATE];
    assert_near(rate->low, 60e3);
    assert_near(rate->high, 85e3);
    assert_int_equal(rate->origin, SL_ORIGIN_PUBLISHED);
    assert_string_equal(rate->note, "why");
    assert_int_equal(model.values[SL_CAPACITY_SHARDS].origin, SL_ORIGIN_DEFAULT);
}

static void what_is_wrong_is_told_where_it_stands(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"values: {sahrds: 3}", "m.yaml:1:10: a model has no \"sahrds\""},
        {"values:\n  shards: many\n", "m.yaml:2:11: expected a number"},
        {"values:\n  shards: {low: 1}\n", "m.yaml:2:11: its value is missing"},
        {"values:\n  shards: {value: 2, low: 3}\n", "m.yaml:2:11: shards: 2 is not within 3 to 2"},
        {"values:\n  shards: 0\n", "m.yaml:2:11: shards is 1 to"},
        {"values:\n  routed: 1.5\n", "routed is 0 to 1"},
        {"values:\n  shards: {value: 2, from: hearsay}\n", "expected published, measured, fitted or assumed"},
        {"values:\n  shards: {value: 2, why: x}\n", "there is no such key"},
        {"values: 3\n", "expected keys and their values"},
        {"hosts: 3\n", "m.yaml:1:1: expected one of title, about, published, values"},
        {"title: [a]\n", "expected a plain value"},
        {"[", "not YAML"},
        {"", "there is nothing in it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_capacity_model model;
        sl_error error = {0};
        assert_false(parse(cases[i].text, &model, &error));
        assert_int_equal(error.code, SL_EXIT_USAGE);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s: %s", cases[i].text, error.message);
    }
}

static void assignments(void **state) {
    (void)state;
    sl_capacity_model model;
    sl_error error = {0};
    sl_capacity_init(&model);
    set(&model, "shard-rate=60k..85k..90k");
    assert_near(model.values[SL_CAPACITY_SHARD_RATE].low, 60e3);
    assert_near(model.values[SL_CAPACITY_SHARD_RATE].value, 85e3);
    assert_near(model.values[SL_CAPACITY_SHARD_RATE].high, 90e3);
    static const char *const wrong[] = {"shards",       "shards=",      "shards=x",  "=3",
                                        "shards=1..2",  "shards=3..2..4", "shards=0", "shards=1e30",
                                        "shards=1..2..3..4", "shards=nan", "shards=1kk", "shards=2 "};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (sl_capacity_set(&model, wrong[i], &error))
            fail_msg("%s was taken", wrong[i]);
        assert_int_equal(error.code, SL_EXIT_USAGE);
    }
}

/* Each built-in model can be read and computed, and says where each of its values comes from. */
static void built_in_models(void **state) {
    (void)state;
    size_t count = 0;
    for (const sl_embedded *one = sl_embedded_models; one->name; one++, count++) {
        sl_capacity_model model;
        sl_error error = {0};
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(one->name, "."), one->name);
        if (!sl_capacity_open(name, &model, &error))
            fail_msg("%s", error.message);
        assert_string_equal(model.name, name);
        assert_true(model.title[0] && model.about[0]);
        sl_capacity_result result = compute(&model);
        assert_true(result.hours.low <= result.hours.value && result.hours.value <= result.hours.high);
    }
    assert_true(count >= 5);
    sl_error error = {0};
    sl_capacity_model model;
    assert_false(sl_capacity_open("no-such-model", &model, &error));
    assert_non_null(strstr(error.message, "petabyte"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(each_resource_can_be_the_bottleneck),
        cmocka_unit_test(every_input_has_the_effect_of_its_row),
        cmocka_unit_test(ranges_hold),
        cmocka_unit_test(direct_needs_no_router),
        cmocka_unit_test(what_may_be_routed_counts_for_the_worst),
        cmocka_unit_test(what_is_not_given_is_left_out),
        cmocka_unit_test(yaml),
        cmocka_unit_test(what_is_wrong_is_told_where_it_stands),
        cmocka_unit_test(assignments),
        cmocka_unit_test(built_in_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
