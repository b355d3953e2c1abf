/* SPDX-License-Identifier: Apache-2.0 */
/* Values drawn for the parameters of queries. An error here would read other keys than the suite
 * declares, and measure the latencies of another distribution. */
#include "report/json.h"
#include "unit.h"
#include "util/histogram.h"

#include "query/parameters.h"

#define SUITE(declaration)                                                                         \
    "name: s\nqueries:\n  - name: q\n    operation: findOne\n"                                     \
    "    filter: '{\"a\": {\"$parameter\": \"x\"}, \"b\": [{\"c\": {\"$parameter\": \"x\"}}]}'\n"  \
    "    parameters: {x: " declaration "}\n"

RELEASER(destroy_suite, sl_suite_destroy)

RELEASER(clear_generator, sl_value_generator_clear)

/* Valid until the end of the test. */
static sl_suite *open_suite(const char *text) {
    sl_error error = {0};
    sl_suite *suite;
    if (!sl_suite_parse(text, strlen(text), "s.yaml", &suite, &error))
        fail_msg("%s", error.message);
    unit_release_later(destroy_suite, suite);
    return suite;
}

/* A generator of the suite's query; valid until the end of the test. */
static sl_value_generator *generator_of(const sl_suite *suite, uint64_t seed, uint64_t client,
                                        uint64_t clients) {
    sl_value_generator *made = unit_keep(calloc(1, sizeof *made));
    assert_true(sl_value_generator_init(made, &suite->queries[0], seed, client, clients, 0));
    unit_release_later(clear_generator, made);
    return made;
}

static int64_t next(sl_value_generator *generator) {
    bson_t values = BSON_INITIALIZER;
    bson_iter_t iter;
    assert_true(sl_value_generator_next(generator, &values));
    assert_true(bson_iter_init_find(&iter, &values, "x"));
    int64_t value = bson_iter_as_int64(&iter);
    bson_destroy(&values);
    return value;
}

/* The frequencies follow Zipf's law: a chi-square test of the first values, and of all larger ones
 * together. */
TEST(zipf_values_follow_zipfs_law) {
    static const struct {
        const char *text;
        double skew, count;
    } cases[] = {
        {SUITE("{zipf: {from: 10, count: 1000, skew: 0.99}}"), 0.99, 1000},
        {SUITE("{zipf: {from: 10, count: 1000, skew: 1}}"), 1, 1000},
        {SUITE("{zipf: {from: 10, count: 50, skew: 2.5}}"), 2.5, 50},
        {SUITE("{zipf: {from: 10, count: 1, skew: 0.5}}"), 0.5, 1},
    };
    enum { CELLS = 30, DRAWS = 200000 };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_suite *suite = open_suite(cases[i].text);
        double seen[CELLS + 1] = {0}, sum = 0, square = 0, rest = 1;
        sl_value_generator *generator = generator_of(suite, 7, 0, 1);
        for (int n = 0; n < DRAWS; n++) {
            int64_t value = next(generator) - 10;
            assert_in_range(value, 0, (int64_t)cases[i].count - 1);
            seen[value < CELLS ? value : CELLS]++;
        }
        for (double k = 1; k <= cases[i].count; k++)
            sum += pow(k, -cases[i].skew);
        int cells = 0;
        for (int k = 0; k < CELLS && k < cases[i].count; k++) {
            double expected = DRAWS * pow(k + 1, -cases[i].skew) / sum;
            rest -= expected / DRAWS;
            if (expected >= 5) {
                square += (seen[k] - expected) * (seen[k] - expected) / expected;
                cells++;
            }
        }
        if (rest * DRAWS >= 5)
            square += pow(seen[CELLS] - rest * DRAWS, 2) / (rest * DRAWS);
        /* The mean of chi-square plus five standard deviations; exceeded about once in a
         * million. */
        if (square > cells + 1 + 5 * sqrt(2.0 * (cells + 1)))
            fail_msg("skew %g: chi-square %.1f over %d cells", cases[i].skew, square, cells);
    }
}

TEST(ranges_reach_both_ends) {
    sl_suite *suite = open_suite(SUITE("{range: [-2, 2]}"));
    int seen[5] = {0};
    sl_value_generator *generator = generator_of(suite, 1, 0, 1);
    for (int i = 0; i < 5000; i++) {
        int64_t value = next(generator);
        assert_in_range(value + 2, 0, 4);
        seen[value + 2]++;
    }
    for (int i = 0; i < 5; i++)
        assert_in_range(seen[i], 850, 1150);
}

/* Each number of a sequence is drawn by exactly one client. */
TEST(sequences_are_divided_among_clients) {
    sl_suite *suite = open_suite(SUITE("{sequence: {from: 100, step: 3}}"));
    bool seen[40] = {false};
    for (uint64_t client = 0; client < 4; client++) {
        sl_value_generator *generator = generator_of(suite, 1, client, 4);
        for (int i = 0; i < 10; i++) {
            int64_t index = (next(generator) - 100) / 3;
            assert_in_range(index, 0, 39);
            assert_false(seen[index]);
            seen[index] = true;
        }
    }
}

TEST(values_replace_their_parameters) {
    sl_suite *suite = open_suite(SUITE("{list: '[\"only\"]'}"));
    bson_t *values = unit_keep_bson(bson_new()), *filled = unit_keep_bson(bson_new());
    bson_iter_t iter, field;
    sl_value_generator *generator = generator_of(suite, 1, 0, 1);
    assert_true(sl_value_generator_next(generator, values));
    assert_true(sl_parameters_fill(suite->queries[0].body, values, filled));
    assert_true(bson_validate(filled, BSON_VALIDATE_NONE, NULL));
    static const char *const paths[] = {"filter.a", "filter.b.0.c"};
    for (int i = 0; i < 2; i++) {
        assert_true(bson_iter_init(&iter, filled));
        assert_true(bson_iter_find_descendant(&iter, paths[i], &field));
        assert_string_equal(bson_iter_utf8(&field, NULL), "only");
    }
    assert_false(sl_has_parameter(filled, NULL));
    bson_t none = BSON_INITIALIZER;
    bson_reinit(filled);
    assert_false(sl_parameters_fill(suite->queries[0].body, &none, filled)); /* no such value */
}

TEST(values_depend_only_on_the_seed) {
    sl_suite *suite = open_suite(SUITE("{range: [0, 1000000000000]}"));
    int64_t value = next(generator_of(suite, 5, 0, 2));
    assert_int_equal(value, next(generator_of(suite, 5, 0, 2)));
    assert_int_not_equal(value, next(generator_of(suite, 5, 1, 2)));
    assert_int_not_equal(value, next(generator_of(suite, 6, 0, 2)));
    /* Queries with different names draw different values. */
    suite->queries[0].name[0] = 'r';
    assert_int_not_equal(value, next(generator_of(suite, 5, 0, 2)));
}

/* ---- the histogram of latencies ---- */

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Compared with exact quantiles of distinct values over nine orders of magnitude. */
TEST(quantiles_are_as_precise_as_stated) {
    enum { COUNT = 20000 };
    static const double quantiles[] = {0.5, 0.9, 0.95, 0.99, 0.999};
    uint64_t *values = unit_keep(malloc(COUNT * sizeof *values));
    sl_histogram *histogram = unit_keep(calloc(1, sizeof *histogram));
    sl_histogram *merged = unit_keep(calloc(1, sizeof *merged));
    for (uint64_t i = 0; i < COUNT; i++) {
        values[i] = (uint64_t)exp(20.7 * fmod((double)i * 0.6180339887498949, 1)) + i;
        sl_histogram_add(histogram, values[i]);
    }
    sl_histogram_merge(merged, histogram);
    qsort(values, COUNT, sizeof *values, ascending);
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        uint64_t exact = values[(size_t)ceil(quantiles[i] * COUNT) - 1];
        uint64_t found = sl_histogram_quantile(merged, quantiles[i]);
        if (found < exact || (double)found > (double)exact * (1 + SL_HISTOGRAM_PRECISION) + 1)
            fail_msg("%g: %llu for %llu", quantiles[i], (unsigned long long)found,
                     (unsigned long long)exact);
    }
    assert_int_equal(sl_histogram_quantile(merged, 1), values[COUNT - 1]);
}

TEST(a_quantile_needs_ten_values_beyond) {
    sl_histogram *histogram = unit_keep(calloc(1, sizeof *histogram));
    for (int i = 1; i <= 10000; i++) {
        sl_histogram_add(histogram, (uint64_t)i);
        assert_int_equal(sl_histogram_supports(histogram, 0.5), i >= 20);
        assert_int_equal(sl_histogram_supports(histogram, 0.95), i >= 200);
        assert_int_equal(sl_histogram_supports(histogram, 0.99), i >= 1000);
        assert_int_equal(sl_histogram_supports(histogram, 0.999), i >= 10000);
    }
}
