/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of distinct, unevenly spaced values, compared with figures of Python's statistics
 * module. With repeated values a rank that is off by one would not be detected. */
#include "query/query.h"
#include "unit.h"
#include "util/histogram.h"

/* ---- timings ---- */

/* An odd and an even number of values, whose medians are computed differently. */
TEST(samples) {
    static const sl_sample expected[] = {
        {.count = 7,
         .minimum = 0.7,
         .median = 4.1,
         .mean = 8.557142857142857,
         .deviation = 10.203080767241683,
         .maximum = 29.3},
        {.count = 8,
         .minimum = 0.7,
         .median = 5.9,
         .mean = 15.125,
         .deviation = 20.84046544585797,
         .maximum = 61.1},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        double values[] = {7.7, 0.7, 29.3, 1.9, 13.9, 2.3, 4.1, 61.1};
        sl_sample actual = sl_sample_of(values, expected[i].count);
        assert_int_equal(actual.count, expected[i].count);
        assert_near(actual.minimum, expected[i].minimum, 1e-12);
        assert_near(actual.median, expected[i].median, 1e-12);
        assert_near(actual.mean, expected[i].mean, 1e-12);
        assert_near(actual.deviation, expected[i].deviation, 1e-12);
        assert_near(actual.maximum, expected[i].maximum, 1e-12);
    }
}

/* ---- the histogram ---- */

TEST(small_values_have_exact_percentiles) {
    static const uint64_t values[] = {14, 1, 11, 2, 7, 4};
    sl_histogram histogram = {0};
    for (int i = 0; i < 6; i++)
        sl_histogram_add(&histogram, values[i]);
    static const struct {
        double quantile;
        uint64_t value;
    } rows[] = {{0.0, 1},   {0.16, 1},  {0.17, 2},  {0.5, 4}, {0.51, 7},
                {0.75, 11}, {0.84, 14}, {0.99, 14}, {1.0, 14}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(sl_histogram_quantile(&histogram, rows[i].quantile), rows[i].value);
    assert_int_equal(histogram.sum, 39);
    assert_int_equal(histogram.minimum, 1);
    assert_int_equal(histogram.maximum, 14);
}

#define VALUES 4000

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Distinct values over nine orders of magnitude. */
static void make_values(uint64_t values[VALUES]) {
    uint64_t random = 12345;
    for (int i = 0; i < VALUES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        values[i] = (uint64_t)pow(10, 6 + 9 * (double)(random >> 11) / 0x1p53);
    }
}

/* A quantile is at least the value of rank ceil(quantile * count), and larger by at most the width
 * of a bucket. */
TEST(large_values_have_percentiles_within_a_bucket) {
    static uint64_t values[VALUES];
    static sl_histogram histogram, parts[3], merged;
    make_values(values);
    for (int i = 0; i < VALUES; i++) {
        sl_histogram_add(&histogram, values[i]);
        sl_histogram_add(&parts[i * 3 / VALUES], values[i]);
    }
    for (int i = 0; i < 3; i++)
        sl_histogram_merge(&merged, &parts[i]);
    assert_memory_equal(&merged, &histogram, sizeof merged);
    qsort(values, VALUES, sizeof *values, ascending);
    assert_int_equal(merged.minimum, values[0]);
    assert_int_equal(merged.maximum, values[VALUES - 1]);
    static const double quantiles[] = {0.0001, 0.013, 0.25, 0.5, 0.777, 0.95, 0.999, 1};
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        uint64_t exact = values[(size_t)ceil(quantiles[i] * VALUES) - 1];
        uint64_t actual = sl_histogram_quantile(&merged, quantiles[i]);
        if (actual < exact || actual > exact + exact / 256)
            fail_msg("quantile %g is %llu, not %llu", quantiles[i], (unsigned long long)actual,
                     (unsigned long long)exact);
    }
}
