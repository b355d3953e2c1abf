/* SPDX-License-Identifier: Apache-2.0 */
/* Capacity models from files and the command line: values reach the inputs, errors name their
 * position, and the built-in models are valid. */
#include "capacity_computing.h"

#include "util/embedded.h"

static bool parse(const char *text, sl_capacity_model *model, sl_error *error) {
    return sl_capacity_parse(text, strlen(text), "m.yaml", model, error);
}

TEST(yaml) {
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

TEST(errors_name_their_position) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"values: {sahrds: 3}", "m.yaml:1:10: a model has no input \"sahrds\""},
        {"values:\n  shards: many\n", "m.yaml:2:11: expected a number"},
        {"values:\n  shards: {low: 1}\n", "m.yaml:2:11: its value is missing"},
        {"values:\n  shards: {value: 2, low: 3}\n", "m.yaml:2:11: shards: 2 is not within 3 to 2"},
        {"values:\n  shards: 0\n", "m.yaml:2:11: shards must be 1 to"},
        {"values:\n  routed: 1.5\n", "routed must be 0 to 1"},
        {"values:\n  shards: {value: 2, from: hearsay}\n",
         "expected published, measured, fitted or assumed"},
        {"values:\n  shards: {value: 2, why: x}\n", "unknown key"},
        {"values: 3\n", "expected keys and their values"},
        {"hosts: 3\n", "m.yaml:1:1: expected one of title, about, published, values"},
        {"title: [a]\n", "expected a plain value"},
        {"[", "not YAML"},
        {"", "the file is empty"},
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

TEST(assignments) {
    sl_capacity_model model;
    sl_error error = {0};
    sl_capacity_init(&model);
    set(&model, "shard-rate=60k..85k..90k");
    assert_near(model.values[SL_CAPACITY_SHARD_RATE].low, 60e3);
    assert_near(model.values[SL_CAPACITY_SHARD_RATE].value, 85e3);
    assert_near(model.values[SL_CAPACITY_SHARD_RATE].high, 90e3);
    static const char *const wrong[] = {"shards",     "shards=",     "shards=x",
                                        "=3",         "shards=1..2", "shards=3..2..4",
                                        "shards=0",   "shards=1e30", "shards=1..2..3..4",
                                        "shards=nan", "shards=1kk",  "shards=2 "};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (sl_capacity_set(&model, wrong[i], &error))
            fail_msg("%s was accepted", wrong[i]);
        assert_int_equal(error.code, SL_EXIT_USAGE);
    }
}

#define TEN_SHARDS "values: {documents: 1G, document-bytes: 100, shards: 10, host-disk: 1M, "

/* Only one of the two may be given; a value of the command line replaces the file's. */
TEST(hosts_or_shards_per_host) {
    sl_capacity_model model, both;
    sl_capacity_result result;
    sl_error error = {0};
    assert_true(parse(TEN_SHARDS "hosts: 7}", &model, &error));
    both = model;
    set(&model, "shards-per-host=2");
    assert_near(compute(&model).hosts.value, 5);
    set(&both, "hosts=3");
    set(&both, "shards-per-host=2");
    assert_false(sl_capacity_compute(&both, &result, &error));
    assert_int_equal(error.code, SL_EXIT_USAGE);
    assert_non_null(strstr(error.message, "give one of them"));
    assert_true(parse(TEN_SHARDS "shards-per-host: 5}", &model, &error));
    assert_near(compute(&model).hosts.value, 2);
    set(&model, "hosts=3");
    assert_near(compute(&model).hosts.value, 3);
    assert_true(parse(TEN_SHARDS "hosts: 7, shards-per-host: 5}", &model, &error));
    assert_false(sl_capacity_compute(&model, &result, &error));
    set(&model, "hosts=3");
    assert_near(compute(&model).hosts.value, 3);
}

/* Each built-in model can be read and computed, and has a title and a description. */
TEST(built_in_models) {
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
        assert_true(result.hours.low <= result.hours.value &&
                    result.hours.value <= result.hours.high);
        /* A model with a cost has the prices of everything that it uses. */
        const char *missing[SL_CAPACITY_MISSING_MAX];
        size_t count_missing = sl_capacity_missing(&model, &result, missing);
        for (size_t i = 0; i < count_missing && !isnan(result.cost.value); i++) {
            if (strstr(missing[i], "-price"))
                fail_msg("%s has no %s, but a cost", name, missing[i]);
        }
    }
    assert_true(count >= 5);
    sl_error error = {0};
    sl_capacity_model model;
    assert_false(sl_capacity_open("no-such-model", &model, &error));
    assert_non_null(strstr(error.message, "petabyte"));
}
