/* SPDX-License-Identifier: Apache-2.0 */
/* Capacity models from files and the command line: values reach the inputs, errors name their
 * position, a fitted figure cannot be called a prediction, and the built-in models are valid. */
#include "trial/capacity.h"
#include "unit.h"
#include "util/embedded.h"

static sl_capacity_model model;

static sl_error error;

static bool parse(const char *text) {
    return sl_capacity_parse(text, strlen(text), "m.yaml", &model, &error);
}

#define SMALL                                                                                      \
    "answer: time\n"                                                                               \
    "inputs:\n"                                                                                    \
    "  size: {value: 1k, from: published, unit: bytes}\n"                                          \
    "  rate: {value: 10, low: 5, high: 20, from: assumed, note: a guess}\n"                        \
    "results:\n"                                                                                   \
    "  time: {is: size / rate, unit: s, published: 80, note: n}\n"

#define POINTS                                                                                     \
    "points:\n"                                                                                    \
    "  - {name: twice, set: {size: 2k}, published: {time: 250}}\n"

TEST(yaml) {
    sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
    if (!parse("title: T\nabout: A\n" SMALL POINTS))
        fail_msg("%s", error.message);
    assert_string_equal(model.name, "m");
    assert_string_equal(model.title, "T");
    assert_string_equal(model.about, "A");
    assert_int_equal(model.input_count, 2);
    assert_int_equal(model.inputs[0].origin, SL_ORIGIN_PUBLISHED);
    assert_string_equal(model.inputs[0].unit, "bytes");
    assert_string_equal(model.inputs[1].note, "a guess");
    assert_true(sl_capacity_compute(&model, NULL, values, &error));
    assert_near(values[0].number.value, 100, 0.001);
    assert_true(values[0].number.low < 50.1 && values[0].number.high > 199.9);
    assert_near(model.results[0].figure.published, 80, 1e-11);
    assert_true(sl_capacity_compute(&model, model.points[0].set, values, &error));
    assert_near(values[0].number.value, 200, 0.0005);
    assert_near(model.points[0].figures[0].published, 250, 1e-12);
}

TEST(errors_name_their_position) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"inputs:\n  size: {value: many}\n", "m.yaml:2:17: expected a number"},
        {"inputs:\n  size: 3\n", "m.yaml:2:9: expected a mapping of keys to values"},
        {"inputs:\n  size: {low: 1, from: assumed}\n", "m.yaml:2:9: its value is missing"},
        {"inputs:\n  size: {value: 1}\n",
         "from is missing: published, measured, fitted or assumed"},
        {"inputs:\n  size: {value: 2, low: 3, from: assumed}\n", "not within low and high"},
        {"inputs:\n  size: {value: 2, from: hearsay}\n", "expected published, measured, fitted or"},
        {"inputs:\n  size: {value: 2, why: x}\n", "expected one of the keys value, low, high,"},
        {"inputs:\n  Size: {value: 2, from: assumed}\n", "m.yaml:2:3: a name consists of"},
        {"results:\n  time: {unit: s}\n", "its formula is missing"},
        {"answer: x\nresults:\n  time: {is: 3}\n", "\"answer\" must name one of the results"},
        {"answer: t\nresults:\n  t: {is: 3 / sixe}\n",
         "m.yaml: the formula of t: no input, and no result before this one, has the name at: "
         "sixe"},
        {SMALL "  time: {is: 3}\n", "is given twice"},
        {SMALL "points:\n  - {set: {sizo: 3}}\n", "no input above has this name"},
        {SMALL "points:\n  - {published: {tome: 3}}\n", "no result above has this name"},
        {SMALL "points:\n  - {set: {rate: 0}}\n", "contains 0"},
        {SMALL "points: 3\n", "expected a list"},
        {"title: [a]\n", "expected a plain value"},
        {"hosts: 3\n", "m.yaml:1:1: expected one of the keys title,"},
        {"inputs:\n  size: {value: 2, from: assumed, value: 3}\n",
         "m.yaml:2:35: the key \"value\" is given twice"},
        {"title: \"a\\0b\"\n", "contains a null character"},
        {"[", "not YAML"},
        {"", "the file is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_false(parse(cases[i].text));
        assert_int_equal(error.code, SL_EXIT_USAGE);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s: %s", cases[i].text, error.message);
    }
}

TEST(a_fitted_figure_is_no_prediction) {
    static const char fitted[] = "answer: t\ninputs:\n  r: {value: 3, from: fitted}\nresults:\n"
                                 "  u: {is: r * 2}\n  t: {is: u + 1, published: 7}\n";
    assert_false(parse(fitted));
    assert_contains(error.message, "t depends on a fitted input, so it is not a prediction");
}

TEST(assignments) {
    static const char *const wrong[] = {
        "rate",     "rate=",          "rate=x",          "=3",       "rate=1..2", "rate=3..2..4",
        "speed=1",  "rate=1e999",     "rate=1..2..3..4", "rate=nan", "rate=1kk",  "rate=2 ",
        "rate=1..", "rate=1..2..3..", "rate=1..2.."};
    assert_true(parse(SMALL POINTS));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (sl_capacity_set(&model, wrong[i], &error))
            fail_msg("%s was accepted", wrong[i]);
        assert_int_equal(error.code, SL_EXIT_USAGE);
    }
    assert_contains(error.message, "rate");
    assert_true(sl_capacity_set(&model, "rate=6..8.5..9k", &error));
    assert_true(model.inputs[1].low < 6.1 && model.inputs[1].high > 8999);
    assert_int_equal(model.inputs[1].origin, SL_ORIGIN_GIVEN);
    assert_false(model.other_data); /* an assumed input: the published figure still applies */
    assert_true(sl_capacity_set(&model, "size=6", &error));
    assert_true(model.other_data);
}

/* Each built-in model can be read and computed, and has a title and a description. */
TEST(built_in_models) {
    size_t count = 0;
    for (const sl_embedded *one = sl_embedded_models; one->name; one++, count++) {
        sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(one->name, "."), one->name);
        if (!sl_capacity_open(name, &model, &error))
            fail_msg("%s", error.message);
        assert_string_equal(model.name, name);
        assert_true(model.title[0] && model.about[0]);
        assert_true(sl_capacity_compute(&model, NULL, values, &error));
        for (size_t i = 0; i < model.result_count; i++)
            assert_true(values[i].number.low <= values[i].number.value &&
                        values[i].number.value <= values[i].number.high);
    }
    assert_true(count >= 5);
    assert_false(sl_capacity_open("no-such-model", &model, &error));
    assert_contains(error.message, "petabyte");
}
