/* SPDX-License-Identifier: Apache-2.0 */
/* Capacity models: values and ranges by the law; models from files and the command line: values
 * reach the inputs, errors name their position, a fitted figure cannot be called a prediction, and
 * the built-in models are valid and give the quotients that docs/scale.md shows. */
#include "trial/capacity.h"
#include "unit.h"
#include "util/embedded.h"

static sl_capacity_model model;

static sl_error error;

static bool parse(const char *text) {
    return sl_capacity_parse(text, strlen(text), "m.yaml", &model, &error);
}

/* Reads a model of two inputs with a range, x (4, within 2 to 5, fitted) and c (0.1, within 0 to
 * 0.2), two without, a (10) and zero, the result b (7), and the result t with these keys. */
static bool parse_result(const char *keys) {
    char text[900];
    snprintf(text, sizeof text,
             "answer: t\ninputs:\n"
             "  x: {value: 4, low: 2, high: 5, from: fitted}\n"
             "  a: {value: 10, from: assumed}\n"
             "  c: {value: 0.1, low: 0, high: 0.2, from: assumed}\n"
             "  zero: {value: 0, from: assumed}\n"
             "results:\n  b: {sum: [7]}\n  t: {%s}\n",
             keys);
    return parse(text);
}

TEST(the_law) {
    static const struct {
        const char *keys;
        double value, low, high;
        const char *decided;
        bool fitted;
    } cases[] = {
        {"sum: [a, b, 3]", 20, 20, 20, "", false},
        {"sum: [a, x]", 14, 12, 15, "", true},
        {"slowest: [a, b]", 10, 10, 10, "a", false},
        {"slowest: [b, x]", 7, 7, 7, "b", true},
        {"slowest: [x, c]", 4, 2, 5, "x", true},
        {"sum: [x], slowest: [b, x], work: [2]", 13, 11, 14, "b", true},
        {"work: [a, b]", 70, 70, 70, "", false},
        {"work: [a, x]", 40, 20, 50, "", true},
        {"work: [a], rate: [x]", 2.5, 2, 5, "", true},
        {"work: [2.5k], rate: [4, 5]", 125, 125, 125, "", false},
        {"work: [zero], rate: [x]", 0, 0, 0, "", true},
        {"work: [a], copies: [1, c]", 10, 10, 10, "", false},
        {"work: [a], copies: [3, c]", 12, 10, 14, "", false},
        {"work: [a], copies: [x, c]", 13, 10, 18, "", true},
        {"work: [a], copies: [3]", 10, 10, 10, "", false},
        {"work: [a], units: [5]", 2, 2, 2, "", false},
        {"work: [a], units: [1, c, 0.5]", 10, 10, 10, "", false},
        {"work: [a], units: [4, 0.1, 0.01]", 3.55, 3.55, 3.55, "", false},
        {"work: [a], units: [x, 0.1]", 3.25, 2.8, 5.5, "", true},
        {"work: [a], rate: [2], units: [x, c]", 1.625, 1, 3, "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
        if (!parse_result(cases[i].keys) || !sl_capacity_compute(&model, NULL, values, &error))
            fail_msg("%s: %s", cases[i].keys, error.message);
        if (fabs(values[1].number.value - cases[i].value) > 1e-9 ||
            fabs(values[1].number.low - cases[i].low) > 1e-9 ||
            fabs(values[1].number.high - cases[i].high) > 1e-9)
            fail_msg("%s: %g, %g to %g", cases[i].keys, values[1].number.value,
                     values[1].number.low, values[1].number.high);
        assert_string_equal(values[1].decided, cases[i].decided);
        assert_int_equal(values[1].fitted, cases[i].fitted);
    }
}

/* With a coherency, more units are slower in the end: the best number lies within the range. */
TEST(the_range_of_a_scaling_law_contains_its_maximum) {
    sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
    assert_true(parse_result("work: [1], units: [x, 0, 0.1]"));
    assert_true(sl_capacity_compute(&model, NULL, values, &error));
    double best = sqrt(10);
    assert_near(1 / values[1].number.low, best / (1 + 0.1 * best * (best - 1)), 1e-9);
}

/* The law is shown as a formula in the record. */
TEST(the_law_as_text) {
    static const struct {
        const char *keys, *formula;
    } cases[] = {
        {"sum: [a, b]", "a + b"},
        {"sum: [a], slowest: [a, b], work: [2, x]", "a + max(a, b) + 2 * x"},
        {"work: [a, b], rate: [x]", "a * b / x"},
        {"work: [a], rate: [x, 3600]", "a / (x * 3600)"},
        {"work: [a], copies: [3, c], units: [x, c, 0]", "a * copies(3, c) / units(x, c, 0)"},
        {"work: [a], rate: [x], units: [b]", "a / (x * units(b))"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bson_t record = BSON_INITIALIZER;
        bson_iter_t at, formula;
        assert_true(parse_result(cases[i].keys));
        assert_true(sl_capacity_append(&record, &model, 0, NULL, 0, &error));
        assert_true(bson_iter_init(&at, &record));
        assert_true(bson_iter_find_descendant(&at, "results.1.formula", &formula));
        assert_string_equal(bson_iter_utf8(&formula, NULL), cases[i].formula);
        bson_destroy(&record);
    }
}

TEST(wrong_results) {
    static const struct {
        const char *keys, *message;
    } cases[] = {
        {"unit: s", "m.yaml:9:6: nothing to compute: it has neither sum, slowest nor work"},
        {"sum: [a], rate: [x]", "copies, rate and units need work"},
        {"sum: [z]", "m.yaml:9:13: expected a number, or the name of an input or a result above"},
        {"sum: [t]", "the name of an input or a result above"},
        {"sum: [a-b]", "the name of an input or a result above"},
        {"sum: a", "expected a list of names"},
        {"sum: []", "expected a list of names"},
        {"sum: [[a]]", "expected a number, or the name"},
        {"slowest: [a, 3]", "slowest consists of names"},
        {"work: [-1]", "a number below 0"},
        {"work: [1], rate: [0]", "the result t: division by a value whose range contains 0"},
        {"work: [1], rate: [zero]", "contains 0"},
        {"work: [1], units: [zero]", "units need a number of at least 1"},
        {"work: [1], units: [2, 1.5]", "parameters of 0 to 1"},
        {"work: [1], units: [2, 0, 1.5]", "parameters of 0 to 1"},
        {"work: [1], copies: [zero, 1]", "copies need a number of at least 1"},
        {"work: [1e300, 1P]", "too large"},
        {"work: [1e300], rate: [1e-300]", "too large"},
        {"sum: [1,1,1,1,1,1,1,1,1]", "too many terms"},
        {"work: [1], units: [1,1,1,1]", "too many terms"},
        {"work: [1], copies: [1,1,1]", "too many terms"},
        {"is: a / x", "expected one of the keys sum, slowest, work, copies, rate, units"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (parse_result(cases[i].keys))
            fail_msg("%s was accepted", cases[i].keys);
        assert_int_equal(error.code, SL_EXIT_USAGE);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s: %s", cases[i].keys, error.message);
    }
}

TEST(numbers) {
    static const char *const wrong[] = {"", "x", "1kk", "nan", "inf", "1e400", "2 ", "0x3", "k"};
    double number;
    assert_true(sl_capacity_number("2.5Gx", 4, &number));
    assert_near(number, 2.5e9, 1e-9);
    assert_true(sl_capacity_number("-1e3", 4, &number));
    assert_near(number, -1000, 1e-9);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(sl_capacity_number(wrong[i], strlen(wrong[i]), &number));
}

#define SMALL                                                                                      \
    "answer: time\n"                                                                               \
    "inputs:\n"                                                                                    \
    "  size: {value: 1k, from: published, unit: bytes}\n"                                          \
    "  rate: {value: 10, low: 5, high: 20, from: assumed, note: a guess}\n"                        \
    "results:\n"                                                                                   \
    "  time: {work: [size], rate: [rate], unit: s, published: 80, note: n}\n"

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
        {"inputs:\n  size: {value: -2, from: assumed}\n", "m.yaml:2:17: a number below 0"},
        {"answer: x\nresults:\n  time: {sum: [3]}\n", "\"answer\" must name one of the results"},
        {SMALL "  time: {sum: [3]}\n", "is given twice"},
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
                                 "  u: {work: [r, 2]}\n  t: {sum: [u, 1], published: 7}\n";
    assert_false(parse(fitted));
    assert_contains(error.message, "t depends on a fitted input, so it is not a prediction");
}

TEST(assignments) {
    static const char *const wrong[] = {"rate",
                                        "rate=",
                                        "rate=x",
                                        "=3",
                                        "rate=1..2",
                                        "rate=3..2..4",
                                        "speed=1",
                                        "rate=1e999",
                                        "rate=1..2..3..4",
                                        "rate=nan",
                                        "rate=1kk",
                                        "rate=2 ",
                                        "rate=-1",
                                        "rate=-1..2..3",
                                        "rate=1..",
                                        "rate=1..2..3..",
                                        "rate=1..2.."};
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

static size_t result_named(const char *name) {
    for (size_t i = 0; i < model.result_count; i++) {
        if (strcmp(model.results[i].name, name) == 0)
            return i;
    }
    fail_msg("no result %s", name);
    return 0;
}

/* The computed value of a built-in model, over the published one. */
static double quotient(const char *name, const char *result, size_t point) {
    sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
    if (!sl_capacity_open(name, &model, &error))
        fail_msg("%s", error.message);
    bool of_model = point == SIZE_MAX;
    size_t found = result_named(result);
    assert_true(
        sl_capacity_compute(&model, of_model ? NULL : model.points[point].set, values, &error));
    const sl_capacity_figure *figure =
        of_model ? &model.results[found].figure : &model.points[point].figures[found];
    return values[found].number.value /
           (isnan(figure->published) ? figure->fitted : figure->published);
}

/* The predictions that docs/scale.md shows, good and bad. */
TEST(published_experiments) {
    static const struct {
        const char *model, *result;
        size_t point;
        double quotient;
    } cases[] = {
        {"isd-hundred-shards", "index", SIZE_MAX, 0.92}, /* from one server: within 8 % */
        {"isd-hundred-shards", "load-predicted", SIZE_MAX, 0.40},
        {"isd-one-server", "load-at-the-peak", SIZE_MAX, 0.79},
        {"petabyte", "load", 0, 0.33}, /* 54, 30 and 22 machines */
        {"petabyte", "load", 1, 0.59},
        {"petabyte", "load", 2, 0.81},
        {"mot-micro-shards", "query", 0, 0.96}, /* the disk */
        {"mot-micro-shards", "query", 2, 1.37},
        {"mot-micro-shards", "query", 7, 1.10}, /* 8 and 16 shards, from 2 and 4 */
        {"mot-micro-shards", "query", 8, 0.92},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double found = quotient(cases[i].model, cases[i].result, cases[i].point);
        if (fabs(found - cases[i].quotient) > 0.006)
            fail_msg("%s of %s: %.3f", cases[i].result, cases[i].model, found);
    }
}
