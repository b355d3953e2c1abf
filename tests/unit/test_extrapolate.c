/* SPDX-License-Identifier: Apache-2.0 */
/* The extrapolation of durations: known lines are recovered, noise is amplified as little as
 * possible, and the interval contains the true value as often as declared. */
#include <math.h>

#include "trial/extrapolate.h"
#include "unit.h"

/* cmocka compares floats, not doubles. */
static bool within(double actual, double expected, double tolerance) {
    return fabs(actual - expected) <= tolerance;
}

static sl_prediction between(double seconds, double low, double high) {
    return (sl_prediction){.seconds = seconds, .low = low, .high = high};
}

#define NEAR(actual, expected)                                                                     \
    assert_true(within(actual, expected, 1e-6 * (1 + fabs((double)(expected)))))

static sl_timing timing(double size, double seconds, double relative) {
    return (sl_timing){size, seconds, relative * seconds};
}

/* Extrapolates without uncertainty about the exponent of the growth. */
static sl_prediction extrapolate(sl_growth growth, double fixed_deviation, const sl_timing *timings,
                                 size_t count, sl_size size) {
    const sl_growth_model model = {growth, fixed_deviation, 0, 0};
    return sl_extrapolate(&model, timings, count, size);
}

TEST(test_a_line_is_recovered) {
    sl_timing measured[] = {timing(1e6, 2 + 3, 0.01), timing(4e6, 2 + 12, 0.01)};
    sl_prediction found = extrapolate(SL_GROWS_LINEARLY, INFINITY, measured, 2, (sl_size){40e6, 0});
    NEAR(found.seconds, 2 + 120);
    assert_true(found.low < 122 && found.high > 122);
}

TEST(test_sorting_grows_faster) {
    sl_timing measured[] = {timing(1 << 10, 10 * (1 << 10), 0.01),
                            timing(1 << 12, 12 * (1 << 12), 0.01)};
    sl_prediction found =
        extrapolate(SL_GROWS_AS_SORTING, INFINITY, measured, 2, (sl_size){1 << 20, 0});
    NEAR(found.seconds, 20.0 * (1 << 20));
}

TEST(test_a_constant_duration) {
    sl_timing measured[] = {timing(1e6, 1.0, 0.01), timing(4e6, 1.2, 0.01)};
    sl_prediction found = extrapolate(SL_GROWS_NOT, 1, measured, 2, (sl_size){1e9, 0});
    NEAR(found.seconds, 1.1);
    assert_true(found.low < 1.0 && found.high > 1.2);
}

/* The noise of a short sample looks like a fixed part; the prior limits that part. */
TEST(test_the_prior_limits_the_fixed_part) {
    sl_timing measured[] = {timing(1e6, 1.10, 0.05), timing(4e6, 4.0, 0.05)};
    sl_size whole = {40e6, 0};
    sl_prediction free = extrapolate(SL_GROWS_LINEARLY, INFINITY, measured, 2, whole);
    sl_prediction held = extrapolate(SL_GROWS_LINEARLY, 0.01, measured, 2, whole);
    assert_true(free.seconds < 39.5);
    assert_true(held.seconds > 40 && held.seconds < 43);
    assert_true(held.high - held.low < free.high - free.low);
}

TEST(test_no_part_is_negative) {
    sl_timing steep[] = {timing(1e6, 0.5, 0.05),
                         timing(4e6, 4.0, 0.05)}; /* the fixed part would be -0.67 */
    sl_prediction found = extrapolate(SL_GROWS_LINEARLY, INFINITY, steep, 2, (sl_size){0, 0});
    NEAR(found.seconds, 0);
    sl_timing falling[] = {timing(1e6, 5.0, 0.05), timing(4e6, 4.0, 0.05)};
    found = extrapolate(SL_GROWS_LINEARLY, INFINITY, falling, 2, (sl_size){40e6, 0});
    assert_true(found.seconds > 4.0 && found.seconds < 5.0);
    assert_true(found.low >= 0 && found.high > found.seconds);
}

/* Timings that do not fit a line widen the interval. */
TEST(test_inconsistent_timings) {
    sl_timing agreeing[] = {timing(1e6, 1, 0.03), timing(4e6, 4, 0.03)};
    sl_timing odd[] = {timing(1e6, 1, 0.03), timing(4e6, 10, 0.03)};
    sl_size whole = {40e6, 0};
    sl_prediction sure = extrapolate(SL_GROWS_LINEARLY, 0.05, agreeing, 2, whole);
    sl_prediction unsure = extrapolate(SL_GROWS_LINEARLY, 0.05, odd, 2, whole);
    assert_true(sure.high - sure.low < 0.2 * sure.seconds);
    assert_true(unsure.high - unsure.low > 0.8 * unsure.seconds);
    assert_true(unsure.high > 100 * 0.9); /* near the value that the larger timing alone gives */
}

TEST(test_few_timings) {
    sl_size whole = {10e6, 0};
    sl_prediction none = extrapolate(SL_GROWS_LINEARLY, 1, NULL, 0, whole);
    NEAR(none.seconds, 0);
    sl_timing one = timing(1e6, 2, 0.05);
    sl_prediction found = extrapolate(SL_GROWS_LINEARLY, INFINITY, &one, 1, whole);
    NEAR(found.seconds, 20);
    NEAR(found.high, 20 + 2 * sqrt(2));
    sl_timing empty = timing(0, 0.1, 0.05);
    found = extrapolate(SL_GROWS_LINEARLY, INFINITY, &empty, 1, whole);
    NEAR(found.seconds, 0.1);
    sl_timing same[] = {timing(1e6, 2, 0.05), timing(1e6, 2.2, 0.05)};
    found = extrapolate(SL_GROWS_LINEARLY, INFINITY, same, 2, whole);
    assert_true(found.seconds > 20 && found.seconds < 22);
}

TEST(test_an_uncertain_size) {
    sl_timing measured[] = {timing(1e6, 1, 1e-6), timing(4e6, 4, 1e-6)};
    sl_prediction found =
        extrapolate(SL_GROWS_LINEARLY, INFINITY, measured, 2, (sl_size){40e6, 2e6});
    assert_true(within(found.low, 36, 0.01));
    assert_true(within(found.high, 44, 0.01));
}

/* A random number, approximately normally distributed. */
static double scattered(unsigned *seed) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += rand_r(seed) / (double)RAND_MAX;
    return sum - 6;
}

/* The time per document grows with the size. Precise timings show by how much; with noisy timings
 * the prior determines the result. */
TEST(test_a_steeper_growth_is_estimated) {
    const sl_growth_model model = {SL_GROWS_LINEARLY, 0.01, SL_STEEPNESS, SL_STEEPNESS_DEVIATION};
    sl_size whole = {40e6, 0};
    for (double e = -0.05; e <= 0.16; e += 0.05) {
        sl_timing measured[] = {timing(1e6, 10, 0.001), timing(4e6, 10 * pow(4, 1 + e), 0.001)};
        sl_prediction found = sl_extrapolate(&model, measured, 2, whole);
        double truth = 10 * pow(40, 1 + e);
        assert_true(within(found.seconds, truth, 0.01 * truth));
        assert_true(found.low < truth && truth < found.high);
    }
    sl_timing loose[] = {timing(1e6, 10, 0.3), timing(4e6, 40, 0.3)};
    double usual = sl_extrapolate(&model, loose, 2, whole).seconds;
    assert_true(usual > 400 * 1.05 && usual < 400 * 1.15);
}

/* The uncertainty of the growth widens the interval with the distance of the extrapolation. */
TEST(test_farther_extrapolation_is_less_certain) {
    const sl_growth_model model = {SL_GROWS_AS_SORTING, 0.05, SL_STEEPNESS, SL_STEEPNESS_DEVIATION};
    sl_timing measured[] = {timing(1e6, 1, 0.05), timing(4e6, 4.4, 0.05)};
    double last = 0;
    for (double times = 2; times < 300; times *= 4) {
        sl_prediction found = sl_extrapolate(&model, measured, 2, (sl_size){times * 4e6, 0});
        double width = (found.high - found.low) / found.seconds;
        assert_true(width > last + 0.02);
        assert_true(found.steep > 0);
        last = width;
    }
}

/* Simulated machines whose exponents are distributed as the model declares, or known: the interval
 * holds for a phase and for a sum of phases with the same exponent. */
TEST(test_the_interval_holds_for_random_exponents) {
    const double deviations[] = {0, SL_STEEPNESS_DEVIATION};
    const unsigned tries = 1000;
    for (unsigned m = 0; m < 2; m++) {
        const sl_growth_model model = {SL_GROWS_LINEARLY, 0.05, SL_STEEPNESS, deviations[m]};
        unsigned seed = 11, inside = 0, sums_inside = 0;
        double errors = 0;
        for (unsigned i = 0; i < tries; i++) {
            double e = SL_STEEPNESS + deviations[m] * scattered(&seed), truth = 0;
            double fixed = 0.05 * fabs(scattered(&seed));
            sl_prediction parts[3];
            for (int part = 0; part < 3; part++) {
                sl_timing measured[2];
                for (int k = 0; k < 2; k++) {
                    double size = k == 0 ? 0.25e6 : 1e6;
                    double seconds = fixed + 3 * pow(size / 1e6, 1 + e);
                    measured[k] =
                        (sl_timing){size, seconds * (1 + 0.05 * scattered(&seed)), 0.05 * seconds};
                }
                double one = fixed + 3 * pow(10, 1 + e);
                parts[part] = sl_extrapolate(&model, measured, 2, (sl_size){10e6, 0});
                inside += parts[part].low <= one && one <= parts[part].high;
                errors += fabs(parts[part].seconds / one - 1);
                truth += one;
            }
            sl_prediction sum = sl_prediction_sum(parts, 3, (sl_variation){0.05, 0});
            sums_inside += sum.low <= truth && truth <= sum.high;
        }
        assert_true(inside > 3 * tries * 93 / 100);
        assert_true(sums_inside > tries * 93 / 100);
        assert_true(errors / (3 * tries) < 0.08); /* at ten times the size, with 5 % noise */
    }
}

TEST(test_the_variation_between_runs) {
    sl_timing runs[] = {timing(1e6, 9, 0.05),  timing(4e6, 40, 0.05), timing(1e6, 11, 0.05),
                        timing(4e6, 40, 0.05), timing(1e6, 10, 0.05), timing(4e6, 40, 0.05),
                        timing(0.1e6, 3, 0.05)}; /* deviations of 10 % and of 0 % */
    sl_variation found = sl_variation_of(runs, 7);
    NEAR(found.freedom, 4);
    NEAR(found.relative, sqrt((0.01 + 0.01) / 4));
    NEAR(sl_variation_of(runs, 2).freedom, 0);
    NEAR(sl_variation_of(NULL, 0).relative, 0);
    sl_timing idle[] = {timing(1e6, 0, 0.05), timing(1e6, 0, 0.05)};
    NEAR(sl_variation_of(idle, 2).relative, 0);
}

#define DRILLS 1000 /* per case */
#define REPEATS 3

/* How many of simulated drills predict a range that contains the time of the real run. Each run,
 * the real one included, varies by `variation`; REPEATS runs of the sample and of a quarter of it
 * have the given share of the documents. Phases vary together or independently. */
static unsigned drills_inside(unsigned *seed, double variation, double share) {
    static const sl_growth_model model = {SL_GROWS_LINEARLY, 0.1, SL_STEEPNESS,
                                          SL_STEEPNESS_DEVIATION};
    static const double weights[] = {100, 12, 5}; /* seconds of load, verify and query */
    unsigned inside = 0;
    for (unsigned drill = 0; drill < DRILLS; drill++) {
        double e = SL_STEEPNESS + SL_STEEPNESS_DEVIATION * scattered(seed),
               fixed = 0.05 * fabs(scattered(seed));
        sl_timing timings[3][2 * REPEATS], sums[2 * REPEATS] = {{0}};
        sl_prediction parts[3];
        double truth = 0;
        for (unsigned run = 0; run <= 2 * REPEATS; run++) {
            bool real = run == 2 * REPEATS;
            double size = real ? 1 : run % 2 ? share : share / 4;
            double machine = variation * scattered(seed);
            for (unsigned k = 0; k < 3; k++) {
                double own = drill % 2 ? variation * scattered(seed) : machine;
                double seconds = (fixed + weights[k] * pow(size, 1 + e)) * exp(own);
                truth += real ? seconds : 0;
                if (real)
                    continue;
                timings[k][run] = (sl_timing){size * 1e7, seconds, hypot(0.03 * seconds, 0.01)};
                sums[run].size = size * 1e7;
                sums[run].seconds += seconds;
            }
        }
        for (unsigned k = 0; k < 3; k++)
            parts[k] = sl_extrapolate(&model, timings[k], 2 * REPEATS, (sl_size){1e7, 0});
        sl_prediction total = sl_prediction_sum(parts, 3, sl_variation_of(sums, 2 * REPEATS));
        inside += total.low <= truth && truth <= total.high;
    }
    return inside;
}

/* The range of 95 % contains at least 90 % of the real runs, for each variation and sample. */
TEST(test_the_range_of_a_drill_holds_when_runs_vary) {
    static const double variations[] = {0, 0.02, 0.05, 0.08, 0.12};
    static const double shares[] = {0.05, 0.1, 0.25, 0.5, 0.9};
    unsigned seed = 23;
    for (size_t i = 0; i < sizeof variations / sizeof variations[0]; i++) {
        for (size_t k = 0; k < sizeof shares / sizeof shares[0]; k++) {
            unsigned inside = drills_inside(&seed, variations[i], shares[k]);
            print_message("# runs vary by %2.0f %%, sample of %2.0f %%: %5.1f %% inside\n",
                          100 * variations[i], 100 * shares[k], 100.0 * inside / DRILLS);
            assert_true(inside >= DRILLS * 90 / 100);
        }
    }
}

/* Errors of the phases are independent, those due to e are added, and those due to the variation
 * between runs are as large as the sums varied: 20 % in each phase may be 5 % of the sum. */
TEST(test_sums) {
    const sl_variation half = {0.1, 1000}, few = {0.1, 2};
    sl_prediction own[] = {between(10, 7, 14), between(20, 16, 23), between(1, 1, 1)};
    sl_prediction sum = sl_prediction_sum(own, 3, half);
    NEAR(sum.seconds, 31);
    NEAR(sum.low, 26);
    NEAR(sum.high, 36);
    NEAR(sl_prediction_sum(NULL, 0, half).high, 0);
    sl_prediction part = between(10, 5, 15);
    part.common = 5;
    part.steep = 1;
    sl_prediction steep[] = {part, part};
    NEAR(sl_prediction_sum(steep, 2, half).high, 20 + 2 * 2);
    part.steep = 0;
    part.varying = 12.5;
    sl_prediction varying[] = {part, part};
    assert_true(fabs(sl_prediction_sum(varying, 2, half).high - 20 - 1.96 * 2.5) < 0.01);
    assert_true(fabs(sl_prediction_sum(varying, 2, few).high - 20 - 4.303 * 2.5) < 0.01);
    NEAR(sl_prediction_sum(varying, 2, (sl_variation){0, 1000}).high,
         sl_prediction_sum(varying, 2, (sl_variation){0.03, 1000}).high);
}

TEST(test_rates_that_scatter) {
    sl_series_point steady[12], drifting[12];
    for (int i = 0; i < 12; i++) {
        steady[i] = (sl_series_point){i + 1, 100.0 * i + 40};
        drifting[i] = (sl_series_point){i + 1, 100.0 * i - 2.0 * i * i};
    }
    NEAR(sl_rate_deviation(steady, 12), 0);
    assert_true(sl_rate_deviation(drifting, 12) > 0.05);
    NEAR(sl_rate_deviation(steady, 4), 0); /* too few points */
    NEAR(sl_rate_deviation(NULL, 0), 0);
    steady[11] = (sl_series_point){11.1, 1041}; /* a short last interval is ignored */
    assert_true(sl_rate_deviation(steady, 12) < 0.001);
}

TEST(test_objectives) {
    sl_prediction prediction = between(100, 90, 110);
    assert_string_equal(sl_objective_text(sl_objective_of(&prediction, 120)), "yes");
    assert_string_equal(sl_objective_text(sl_objective_of(&prediction, 80)), "no");
    assert_string_equal(sl_objective_text(sl_objective_of(&prediction, 100)), "unknown");
}
