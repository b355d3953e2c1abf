/* SPDX-License-Identifier: Apache-2.0 */
/* What a few timings say, and whether two sets of them can be told apart.
 *
 * Timings of queries are skewed and have outliers, so nothing here assumes a normal distribution.
 * Two sets are compared by the ratios of all pairs (new / old), in order of size. Their median is
 * the estimate (Hodges and Lehmann). The interval goes from the c-th smallest to the c-th largest
 * ratio, where c comes from the distribution of the Mann-Whitney count U, the number of pairs in
 * which the new timing is the smaller one: if both sets came from the same distribution but for a
 * factor f, all orders of the pooled timings would be equally likely once the old ones are
 * multiplied by f, and the interval holds the factors for which the U observed is not among the
 * rarest 2.5 % at either end. */
#include <shardload/query.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFIDENCE 0.95
/* Up to here orders are counted exactly: C(40, 20) is far below 2^53. */
#define EXACT_MAX 20

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_sorted(const double *values, size_t count) {
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

sl_sample sl_sample_of(double *values, size_t count) {
    qsort(values, count, sizeof *values, ascending);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    double mean = sum / (double)count;
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return (sl_sample){
        .count = count,
        .minimum = values[0],
        .median = median_of_sorted(values, count),
        .mean = mean,
        .deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0,
        .maximum = values[count - 1],
    };
}

/* The largest c for which P(U <= c - 1) is at most the tail, or 1 when there is none, exactly. The
 * number of orders with U = u is the coefficient of q^u in the Gaussian binomial coefficient, the
 * product over i = 1..n of (1 - q^(m+i)) / (1 - q^i). */
static size_t critical_exact(size_t m, size_t n, double *confidence) {
    double ways[EXACT_MAX * EXACT_MAX + 1] = {1};
    size_t pairs = m * n;
    for (size_t i = 1; i <= n; i++) {
        for (size_t u = pairs; u >= m + i; u--)
            ways[u] -= ways[u - m - i];
        for (size_t u = i; u <= pairs; u++)
            ways[u] += ways[u - i];
    }
    double all = 0;
    for (size_t u = 0; u <= pairs; u++)
        all += ways[u];
    size_t c = 1;
    double below = ways[0];
    while (c <= pairs && below + ways[c] <= all * (1 - CONFIDENCE) / 2)
        below += ways[c++];
    *confidence = 1 - 2 * below / all;
    return c;
}

/* The same by the normal distribution that U comes close to. */
static size_t critical_normal(size_t m, size_t n, double *confidence) {
    double mean = (double)m * (double)n / 2;
    double deviation = sqrt((double)m * (double)n * (double)(m + n + 1) / 12);
    double c = floor(mean - 1.959964 * deviation);
    if (c < 1)
        c = 1;
    *confidence = erf((mean + 0.5 - c) / deviation / sqrt(2));
    return (size_t)c;
}

bool sl_ratio_of(const double *old_values, size_t old_count, const double *new_values,
                 size_t new_count, sl_ratio *ratio) {
    if (old_count == 0 || new_count == 0 || old_count > SL_RATIO_TIMINGS_MAX ||
        new_count > SL_RATIO_TIMINGS_MAX)
        return false;
    size_t pairs = old_count * new_count;
    double *ratios = malloc(pairs * sizeof *ratios);
    if (!ratios)
        return false;
    for (size_t i = 0; i < pairs; i++)
        ratios[i] = new_values[i / old_count] / old_values[i % old_count];
    qsort(ratios, pairs, sizeof *ratios, ascending);
    bool exact = old_count <= EXACT_MAX && new_count <= EXACT_MAX;
    size_t c = (exact ? critical_exact : critical_normal)(old_count, new_count, &ratio->confidence);
    ratio->estimate = median_of_sorted(ratios, pairs);
    ratio->low = ratios[c - 1];
    ratio->high = ratios[pairs - c];
    ratio->verdict = SL_NOT_TOLD_APART;
    if (ratio->confidence >= CONFIDENCE && ratio->high < 1)
        ratio->verdict = SL_FASTER;
    if (ratio->confidence >= CONFIDENCE && ratio->low > 1)
        ratio->verdict = SL_SLOWER;
    free(ratios);
    return true;
}

const char *sl_verdict_text(sl_verdict verdict) {
    static const char *const texts[] = {"faster", "slower", "cannot be told apart"};
    return texts[verdict];
}
