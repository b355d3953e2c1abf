/* SPDX-License-Identifier: Apache-2.0 */
/* Permutation tests of a ratio, and their confidence intervals; difference.h gives the assumptions.
 *
 * All computations use logarithms: a ratio becomes a shift, a geometric mean an arithmetic mean.
 *
 * Each permutation exchanges some values, and has one typical value (Hartigan). For pairs it is the
 * mean of the log ratios whose sign the permutation changes. For two sides it is the difference of
 * the means of the values that the permutation exchanges. The test of a shift counts a permutation
 * as at least as extreme as the observed data when its typical value lies beyond the shift. The
 * one-sided p of a shift is therefore the share of typical values below it, and the ends of the
 * interval are the K-th typical values from either end. Up to PERMUTATIONS_MAX permutations are
 * enumerated; if there are more, PERMUTATIONS_MAX are drawn at random. */
#include "difference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "query.h"
#include "util/estimate.h"
#include "util/hash.h"

#define LEVEL 0.05 /* of significance */
#define PERMUTATIONS_MAX 4096
#define OUTLIER 5.0 /* standard deviations from the median */

static double mean_of(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* ---- permutations ---- */

/* The typical values of all permutations but the identity, which exchanges nothing. */
typedef struct typical_values {
    double values[PERMUTATIONS_MAX];
    size_t count;
} typical_values;

/* The mean of each non-empty subset of the log ratios. */
static void typical_of_pairs(const double *ratios, size_t count, uint64_t seed,
                             typical_values *found) {
    found->count = 0;
    if (count <= 12) { /* 2^12 = PERMUTATIONS_MAX subsets */
        for (uint32_t set = 1; set < UINT32_C(1) << count; set++) {
            double sum = 0;
            for (size_t i = 0; i < count; i++)
                sum += set >> i & 1 ? ratios[i] : 0;
            found->values[found->count++] = sum / __builtin_popcount(set);
        }
        return;
    }
    while (found->count + 1 < PERMUTATIONS_MAX) {
        double sum = 0;
        size_t size = 0;
        uint64_t bits = 0;
        for (size_t i = 0; i < count; i++) {
            bits = i % 64 ? bits >> 1 : sl_random_word(seed += SL_HASH_A);
            sum += bits & 1 ? ratios[i] : 0;
            size += bits & 1;
        }
        if (size > 0)
            found->values[found->count++] = sum / (double)size;
    }
}

/* The number of combinations of `k` out of `n`, at most PERMUTATIONS_MAX + 1. */
static size_t combinations(size_t n, size_t k) {
    double product = 1;
    for (size_t i = 1; i <= k; i++)
        product = product * (double)(n - k + i) / (double)i;
    return product > PERMUTATIONS_MAX ? PERMUTATIONS_MAX + 1 : (size_t)(product + 0.5);
}

/* Replaces `chosen` (`k` indices below `n`, ascending) by the next combination; false after the
 * last. */
static bool next_combination(size_t *chosen, size_t k, size_t n) {
    for (size_t i = k; i-- > 0;) {
        if (chosen[i] < n - k + i) {
            chosen[i]++;
            for (size_t j = i + 1; j < k; j++)
                chosen[j] = chosen[j - 1] + 1;
            return true;
        }
    }
    return false;
}

/* Adds the typical value of the permutation that makes `chosen` the new runs. In the observed data
 * the first `new_count` values of the pool, with the sum `new_sum`, are the new runs. Adds nothing
 * for the identity. */
static void add_permutation(const double *pool, const size_t *chosen, size_t new_count,
                            double new_sum, typical_values *found) {
    double kept = 0, exchanged_in = 0;
    size_t exchanged = 0;
    for (size_t i = 0; i < new_count; i++) {
        if (chosen[i] < new_count) {
            kept += pool[chosen[i]];
        } else {
            exchanged_in += pool[chosen[i]];
            exchanged++;
        }
    }
    if (exchanged > 0)
        found->values[found->count++] = (new_sum - kept - exchanged_in) / (double)exchanged;
}

static void typical_of_sides(const double *old, size_t old_count, const double *new,
                             size_t new_count, uint64_t seed, typical_values *found) {
    double pool[2 * SL_RUNS_MAX], new_sum = 0;
    size_t chosen[2 * SL_RUNS_MAX], n = old_count + new_count;
    for (size_t i = 0; i < n; i++) {
        pool[i] = i < new_count ? new[i] : old[i - new_count];
        new_sum += i < new_count ? new[i] : 0;
        chosen[i] = i;
    }
    found->count = 0;
    if (combinations(n, new_count) <= PERMUTATIONS_MAX) {
        do
            add_permutation(pool, chosen, new_count, new_sum, found);
        while (next_combination(chosen, new_count, n));
        return;
    }
    while (found->count + 1 < PERMUTATIONS_MAX) {
        for (size_t i = 0; i < new_count; i++) { /* the first new_count steps of a shuffle */
            size_t j = i + (size_t)(sl_random_word(seed += SL_HASH_A) % (n - i)),
                   swapped = chosen[i];
            chosen[i] = chosen[j];
            chosen[j] = swapped;
        }
        add_permutation(pool, chosen, new_count, new_sum, found);
    }
}

/* Tests the shift 0 and computes the interval. Sorts `found`. The identity counts once on each
 * side. */
static void test_difference(typical_values *found, double estimate, sl_difference *result) {
    qsort(found->values, found->count, sizeof *found->values, sl_by_value);
    size_t below = 0, above = 0, all = found->count + 1;
    for (size_t i = 0; i < found->count; i++) {
        below += found->values[i] <= 1e-15;
        above += found->values[i] >= -1e-15;
    }
    double p = 2.0 * (double)((below < above ? below : above) + 1) / (double)all;
    /* The test rejects a shift when fewer than k typical values lie beyond it. */
    size_t k = (size_t)(LEVEL / 2 * (double)all * (1 + 1e-12));
    result->p = p < 1 ? p : 1;
    if (k == 0)
        return;
    result->low = exp(found->values[k - 1]);
    result->high = exp(found->values[found->count - k]);
    result->verdict = p > LEVEL ? SL_NO_DIFFERENCE : estimate < 0 ? SL_LOWER : SL_HIGHER;
}

/* ---- outliers and drift ---- */

static double median_of(const double *values, size_t count) {
    double sorted[SL_RUNS_MAX];
    memcpy(sorted, values, count * sizeof *sorted);
    return sl_sample_of(sorted, count).median;
}

/* Counts the values further from the median than OUTLIER standard deviations, which are estimated
 * by the median absolute deviation. */
static size_t count_outliers(const double *logs, size_t count) {
    double distances[SL_RUNS_MAX], median = median_of(logs, count);
    size_t outliers = 0;
    for (size_t i = 0; i < count; i++)
        distances[i] = fabs(logs[i] - median);
    /* At least 0.1 %: smaller distances are not worth reporting. */
    double unit = fmax(1.4826 * median_of(distances, count), 1e-3);
    for (size_t i = 0; i < count; i++)
        outliers += distances[i] > OUTLIER * unit;
    return outliers;
}

typedef struct timed {
    double when, value; /* logarithm of the value, less the mean of its side */
} timed;

static int by_time(const void *a, const void *b) {
    double x = ((const timed *)a)->when, y = ((const timed *)b)->when;
    return (x > y) - (x < y);
}

/* Tests Kendall's rank correlation of value and time (2.5758: 1 %, two-sided), and fits the slope
 * from the first run to the last by least squares. */
static void find_drift(timed *runs, size_t count, sl_difference *result) {
    qsort(runs, count, sizeof *runs, by_time);
    double score = 0, sum = 0, squares = 0, n = (double)count;
    for (size_t i = 0; i < count; i++) {
        double position = count > 1 ? (double)i / (n - 1) - 0.5 : 0;
        sum += position * runs[i].value;
        squares += position * position;
        for (size_t k = 0; k < i; k++)
            score += (runs[i].value > runs[k].value) - (runs[i].value < runs[k].value);
    }
    double deviation = sqrt(n * (n - 1) * (2 * n + 5) / 18);
    result->drift = squares > 0 ? exp(sum / squares) : 1;
    result->drifts = count >= 8 && fabs(score) - 1 > 2.5758 * deviation &&
                     fabs(result->drift - 1) >= 2e-3; /* less is rounding, as of outliers */
}

static void logs_of(const double *values, size_t count, double *logs) {
    for (size_t i = 0; i < count; i++)
        logs[i] = log(values[i]);
}

sl_difference sl_difference_paired(const double *old_values, const double *new_values, size_t count,
                                   uint64_t seed) {
    double before[SL_RUNS_MAX], after[SL_RUNS_MAX], ratios[SL_RUNS_MAX];
    timed runs[SL_RUNS_MAX];
    sl_difference result = {
        .ratio = NAN, .low = NAN, .high = NAN, .p = NAN, .drift = 1, .verdict = SL_TOO_FEW};
    if (count == 0 || count > SL_RUNS_MAX)
        return result;
    logs_of(old_values, count, before);
    logs_of(new_values, count, after);
    double estimate = mean_of(after, count) - mean_of(before, count);
    for (size_t i = 0; i < count; i++) {
        ratios[i] = after[i] - before[i];
        runs[i] = (timed){(double)i, before[i] + after[i]};
    }
    result.old_mean = exp(mean_of(before, count));
    result.new_mean = exp(mean_of(after, count));
    result.old_outliers = count_outliers(before, count);
    result.new_outliers = count_outliers(after, count);
    find_drift(runs, count, &result);
    result.drift = sqrt(result.drift); /* the slope belongs to the sum of both sides */
    result.ratio = exp(estimate);
    if (count < SL_PAIRS_LEAST)
        return result;
    static _Thread_local typical_values found;
    typical_of_pairs(ratios, count, seed, &found);
    test_difference(&found, estimate, &result);
    return result;
}

sl_difference sl_difference_unpaired(const double *old_values, const double *old_times,
                                     size_t old_count, const double *new_values,
                                     const double *new_times, size_t new_count, uint64_t seed) {
    double before[SL_RUNS_MAX], after[SL_RUNS_MAX];
    timed runs[2 * SL_RUNS_MAX];
    sl_difference result = {
        .ratio = NAN, .low = NAN, .high = NAN, .p = NAN, .drift = 1, .verdict = SL_TOO_FEW};
    if (old_count == 0 || new_count == 0 || old_count > SL_RUNS_MAX || new_count > SL_RUNS_MAX)
        return result;
    logs_of(old_values, old_count, before);
    logs_of(new_values, new_count, after);
    double old_log = mean_of(before, old_count), new_log = mean_of(after, new_count);
    for (size_t i = 0; i < old_count + new_count; i++) {
        size_t k = i - old_count;
        runs[i] = i < old_count ? (timed){old_times ? old_times[i] : 0, before[i] - old_log}
                                : (timed){new_times ? new_times[k] : 0, after[k] - new_log};
    }
    result.old_mean = exp(old_log);
    result.new_mean = exp(new_log);
    result.old_outliers = count_outliers(before, old_count);
    result.new_outliers = count_outliers(after, new_count);
    if (old_times && new_times)
        find_drift(runs, old_count + new_count, &result);
    result.ratio = exp(new_log - old_log);
    if (old_count < SL_RUNS_LEAST || new_count < SL_RUNS_LEAST)
        return result;
    static _Thread_local typical_values found;
    typical_of_sides(before, old_count, after, new_count, seed, &found);
    test_difference(&found, new_log - old_log, &result);
    return result;
}
