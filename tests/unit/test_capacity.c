/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas of capacity models: values, ranges, errors; and complete models. */
#include "trial/capacity.h"
#include "unit.h"

/* x is 4, within 2 to 5, and fitted; a-b is 10; y is -1 to 1. */
static bool names(void *context, const char *name, size_t length, sl_capacity_value *value) {
    static const struct {
        const char *name;
        sl_capacity_value value;
    } all[] = {{"x", {.number = {4, 2, 5}, .fitted = true}},
               {"a-b", {.number = {10, 10, 10}}},
               {"y", {.number = {0.5, -1, 1}}}};
    (void)context;
    for (size_t i = 0; i < 3; i++) {
        if (strlen(all[i].name) == length && memcmp(all[i].name, name, length) == 0) {
            *value = all[i].value;
            return true;
        }
    }
    return false;
}

TEST(formulas) {
    static const struct {
        const char *text;
        double value, low, high;
        const char *decided;
        bool fitted;
    } cases[] = {
        {"2 + 3 * 4", 14, 14, 14, "", false},
        {"(2 + 3) * 4", 20, 20, 20, "", false},
        {"24 / 4 / 2", 3, 3, 3, "", false},
        {"2 - 3 - 4", -5, -5, -5, "", false},
        {"-x", -4, -5, -2, "", true},
        {"a-b - x", 6, 5, 8, "", true},
        {"a-b * x", 40, 20, 50, "", true},
        {"a-b / x", 2.5, 2, 5, "", true},
        {"y * x", 2, -5, 5, "", true},
        {"2.5k + 1M", 1002500, 1002500, 1002500, "", false},
        {"max(a-b, x * 2)", 10, 10, 10, "a-b", true},
        {"max(x * 2, 3,1)", 8, 4, 10, "x * 2", true},
        {"min(a-b, x)", 4, 2, 5, "x", true},
        {"max(3, 2) + 0", 3, 3, 3, "", false},
        {"usl(1, 0.5, 0.5)", 1, 1, 1, "", false},
        {"usl(4, 0, 0)", 4, 4, 4, "", false},
        {"usl(4, 0.1, 0.01)", 4 / 1.42, 4 / 1.42, 4 / 1.42, "", false},
        {"usl(x, 0.1, 0)", 4 / 1.3, 2 / 1.1, 5 / 1.4, "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_capacity_value found;
        sl_error error = {0};
        if (!sl_capacity_formula(cases[i].text, names, NULL, &found, &error))
            fail_msg("%s: %s", cases[i].text, error.message);
        assert_near(found.number.value, cases[i].value, 1e-9);
        assert_near(found.number.low, cases[i].low, 1e-9);
        assert_near(found.number.high, cases[i].high, 1e-9);
        assert_string_equal(found.decided, cases[i].decided);
        assert_int_equal(found.fitted, cases[i].fitted);
    }
}

/* With a coherency, more units are slower in the end: the best number lies within the range. */
TEST(the_range_of_a_scaling_law_contains_its_maximum) {
    sl_capacity_value found;
    sl_error error = {0};
    assert_true(sl_capacity_formula("usl(x, 0, 0.1)", names, NULL, &found, &error));
    double best = sqrt(10);
    assert_near(found.number.high, best / (1 + 0.1 * best * (best - 1)), 1e-9);
}

/* 1e306; a thousand times as much is not a finite number. */
#define HUGE_NUMBER                                                                                \
    "1000P * 1000P * 1000P * 1000P * 1000P * 1000P * 1000P * 1000P * 1000P * 1000P * 1000P "       \
    "* 1000P * 1000P * 1000P * 1000P * 1000P * 1000P"

TEST(wrong_formulas) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "expected a number"},
        {"2 +", "expected a number, a name or ( at: the end"},
        {"(2", "expected )"},
        {"2 3", "expected + - * / or the end at: 3"},
        {"z", "no input, and no result before this one, has the name at: z"},
        {"a-c", "has the name at: a-c"},
        {"1 / 0", "contains 0"},
        {"1 / y", "contains 0"},
        {"usl(1, 2)", "the functions are min, max and usl"},
        {"log(3)", "the functions are"},
        {"usl(0, 0, 0)", "needs n >= 1"},
        {"usl(2, 1.5, 0)", "parameters of 0 to 1"},
        {"max(1, 2", "expected , or )"},
        {HUGE_NUMBER " * 1000P", "too large"},
        {"min(5, " HUGE_NUMBER " * 1000P - " HUGE_NUMBER " * 1000P)", "too large"},
        {"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1", "too deeply nested"},
        {"max(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)", "too many arguments"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_capacity_value found;
        sl_error error = {0};
        assert_false(sl_capacity_formula(cases[i].text, names, NULL, &found, &error));
        assert_int_equal(error.code, SL_EXIT_USAGE);
        if (!strstr(error.message, cases[i].message))
            fail_msg("%s: %s", cases[i].text, error.message);
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

static size_t result_named(const sl_capacity_model *model, const char *name) {
    for (size_t i = 0; i < model->result_count; i++) {
        if (strcmp(model->results[i].name, name) == 0)
            return i;
    }
    fail_msg("no result %s", name);
    return 0;
}

/* The computed value of a built-in model, over the published one. */
static double quotient(const char *name, const char *result, size_t point) {
    static sl_capacity_model model;
    sl_capacity_value values[SL_CAPACITY_RESULTS_MAX];
    sl_error error = {0};
    if (!sl_capacity_open(name, &model, &error))
        fail_msg("%s", error.message);
    bool of_model = point == SIZE_MAX;
    size_t found = result_named(&model, result);
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
