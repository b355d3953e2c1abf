/* SPDX-License-Identifier: Apache-2.0 */
/* The significance test for two sets of runs. An error here would report noise as a slower release,
 * or a slower release as noise. The rate of false verdicts is measured on simulated runs that are
 * skewed, autocorrelated, drifting, and have outliers, like real ones. */
#include "query/difference.h"
#include "unit.h"

/* ---- exact values ---- */

/* Six pairs, B always above A: of 64 sign patterns 2 are as extreme. */
TEST(pairs_by_hand) {
    const double a[] = {10, 20, 10, 20, 10, 20};
    const double b[] = {11, 24, 13, 28, 15, 32};
    sl_difference d = sl_difference_paired(a, b, 6, 1);
    assert_near(d.p, 2.0 / 64, 1e-12);
    assert_int_equal(d.verdict, SL_HIGHER);
    assert_near(d.old_mean, sqrt(200), 1e-10);
    assert_near(d.ratio, d.new_mean / d.old_mean, 1e-12); /* the printed figures are consistent */
    assert_near(d.ratio, pow(1.1 * 1.2 * 1.3 * 1.4 * 1.5 * 1.6, 1.0 / 6), 1e-12);
    assert_true(d.low > 1 && d.low < d.ratio && d.ratio < d.high);
    sl_difference back = sl_difference_paired(b, a, 6, 1);
    assert_int_equal(back.verdict, SL_LOWER);
    assert_near(back.low, 1 / d.high, 1e-6);
    assert_near(back.high, 1 / d.low, 1e-6);
}

/* Four runs on each side without overlap: 2 of the 70 divisions are as extreme. */
TEST(sides_by_hand) {
    const double a[] = {1, 1.1, 1.2, 1.3};
    const double b[] = {9, 9.1, 9.2, 9.3};
    sl_difference d = sl_difference_unpaired(a, NULL, 4, b, NULL, 4, 1);
    assert_near(d.p, 2.0 / 70, 1e-12);
    assert_int_equal(d.verdict, SL_HIGHER);
    assert_true(d.low > 1);
    d = sl_difference_unpaired(a, NULL, 4, a, NULL, 4, 1);
    assert_int_equal(d.verdict, SL_NO_DIFFERENCE);
    assert_near(d.ratio, 1, 1e-12);
    assert_true(d.low < 1 && d.high > 1);
}

TEST(few_runs_give_no_verdict) {
    const double a[] = {1, 1, 1, 1, 1}, b[] = {9, 9, 9, 9, 9};
    assert_int_equal(sl_difference_paired(a, b, 5, 1).verdict, SL_TOO_FEW);
    assert_int_equal(sl_difference_unpaired(a, NULL, 3, b, NULL, 5, 1).verdict, SL_TOO_FEW);
    assert_int_equal(sl_difference_unpaired(a, NULL, 1, b, NULL, 1, 1).verdict, SL_TOO_FEW);
    assert_near(sl_difference_unpaired(a, NULL, 1, b, NULL, 1, 1).ratio, 9, 1e-9);
    assert_true(isnan(sl_difference_paired(a, b, 5, 1).low));
}

TEST(equal_runs) {
    const double a[] = {5, 5, 5, 5, 5, 5};
    sl_difference d = sl_difference_paired(a, a, 6, 1);
    assert_int_equal(d.verdict, SL_NO_DIFFERENCE);
    assert_near(d.p, 1, 0);
    assert_near(d.low, 1, 1e-6);
    assert_near(d.high, 1, 1e-6);
}

TEST(outliers_and_drift_are_flagged) {
    double a[12], b[12];
    for (int i = 0; i < 12; i++) {
        a[i] = 100 + i % 3;
        b[i] = 100 + (i + 1) % 3;
    }
    assert_int_equal(sl_difference_paired(a, b, 12, 1).old_outliers, 0);
    assert_false(sl_difference_paired(a, b, 12, 1).drifts);
    a[4] = 300;
    assert_int_equal(sl_difference_paired(a, b, 12, 1).old_outliers, 1);
    for (int i = 0; i < 12; i++)
        a[i] = 100 + 0.01 * (i % 3);
    a[4] = 100.45; /* 5 * 0.1 % are no outlier, however small the other distances are */
    assert_int_equal(sl_difference_paired(a, b, 12, 1).old_outliers, 0);
    a[4] = 100.55;
    assert_int_equal(sl_difference_paired(a, b, 12, 1).old_outliers, 1);
    for (int i = 0; i < 12; i++) { /* both sides become 30 % slower during the session */
        a[i] = b[i] = 100 * (1 + 0.3 * i / 11) + i % 2;
    }
    sl_difference d = sl_difference_paired(a, b, 12, 1);
    assert_true(d.drifts);
    assert_near(d.drift, 1.3, 0.015);
    assert_int_equal(d.verdict, SL_NO_DIFFERENCE);
}

/* ---- simulated runs ---- */

static uint64_t random_state = 42;

static double unit(void) {
    uint64_t z = random_state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(void) {
    return sqrt(-2 * log(1 - unit())) * cos(2 * acos(-1) * unit());
}

/* A machine whose speed is autocorrelated (0.6 from run to run). One run in twenty takes three
 * times as long, and over the session all runs become slower by the share `drift`. */
typedef struct machine {
    double state, drift;
} machine;

/* The duration of a run at `when`, from 0 (start of the session) to 1. */
static double run_on(machine *m, double when) {
    m->state = 0.6 * m->state + 0.08 * normal();
    double value = exp(m->state + 0.02 * normal()) * (1 + m->drift * when);
    return unit() < 0.05 ? 3 * value : value;
}

#define SESSIONS 1000

/* The share of sessions with a significant difference when B takes `factor` times as long as A;
 * `*covered`: the share whose confidence interval contains `factor`. */
static double share_of_verdicts(size_t pairs, double factor, double drift, double *covered) {
    size_t verdicts = 0, inside = 0;
    for (int session = 0; session < SESSIONS; session++) {
        double a[30], b[30];
        machine m = {.drift = drift};
        for (size_t i = 0; i < pairs; i++) {
            double first = run_on(&m, (double)i / (double)pairs);
            double second = run_on(&m, ((double)i + 0.5) / (double)pairs);
            bool swap = unit() < 0.5;
            a[i] = swap ? second : first;
            b[i] = factor * (swap ? first : second);
        }
        sl_difference d = sl_difference_paired(a, b, pairs, (uint64_t)session);
        verdicts += d.verdict != SL_NO_DIFFERENCE;
        inside += d.low <= factor && factor <= d.high;
    }
    *covered = (double)inside / SESSIONS;
    return (double)verdicts / SESSIONS;
}

/* 5 % plus three standard errors of the simulation (0.69 % each). */
#define MOST (0.05 + 3 * 0.0069)

TEST(false_verdicts_are_rare) {
    static const size_t counts[] = {6, 10, 14, 20};
    static const double drifts[] = {0, 0.5};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (size_t k = 0; k < 2; k++) {
            double covered, wrong = share_of_verdicts(counts[i], 1, drifts[k], &covered);
            printf("# %zu pairs, drift %.1f: %.1f %% false verdicts, interval right in %.1f %%\n",
                   counts[i], drifts[k], 100 * wrong, 100 * covered);
            if (wrong > MOST || covered < 1 - MOST)
                fail_msg("%zu pairs: %.3f false verdicts, %.3f covered", counts[i], wrong, covered);
        }
    }
}

TEST(differences_are_found) {
    double covered, found = share_of_verdicts(20, 1.5, 0, &covered);
    printf("# 50 %% slower, 20 pairs: found in %.1f %%, interval right in %.1f %%\n", 100 * found,
           100 * covered);
    assert_true(found > 0.8);
    assert_true(covered > 1 - MOST);
}

/* Repetitions within a run are correlated, so each run counts as one value. */
TEST(independent_runs_on_two_sides) {
    static const size_t counts[] = {4, 5, 8, 12};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        size_t wrong = 0;
        for (int session = 0; session < SESSIONS; session++) {
            double sides[2][12];
            for (size_t k = 0; k < 2 * counts[i]; k++)
                sides[k % 2][k / 2] = exp(0.1 * normal()) * (unit() < 0.05 ? 3 : 1);
            wrong += sl_difference_unpaired(sides[0], NULL, counts[i], sides[1], NULL, counts[i],
                                            (uint64_t)session)
                         .verdict != SL_NO_DIFFERENCE;
        }
        printf("# %zu and %zu independent runs: %.1f %% false verdicts\n", counts[i], counts[i],
               100.0 * (double)wrong / SESSIONS);
        assert_true((double)wrong / SESSIONS <= MOST);
    }
}
