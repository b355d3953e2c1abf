/* SPDX-License-Identifier: Apache-2.0 */
/* Extrapolation: weighted least squares for a + b g(n), with one more observation, a = 0 give or take
 * `fixed_deviation`.
 *
 * The normal equations are  [A00 A01; A01 A11] [a b] = [r0 r1],  and the variance of the prediction
 * at G is  [1 G] A^-1 [1 G]. Where the best line would have a negative part, that part is 0 and the
 * other is fitted alone; the variance stays that of the free line, which is the larger one.
 *
 * Timings that lie farther off the line than their deviations allow show that these are too small, or
 * that there is no such line. The variance then grows by as much as they are too far off (chi squared
 * per degree of freedom, as physicists average measurements that do not agree). */
#include <shardload/extrapolate.h>

#include <math.h>

#define SIGMAS 2.0
/* What does not grow with the documents is small, and its next value is anyone's guess within this. */
#define CONSTANT_DEVIATION 0.2

static double grown(sl_growth growth, double size) {
    if (growth == SL_GROWS_AS_SORTING)
        return size > 2 ? size * log2(size) : size;
    return size;
}

static sl_prediction around(double seconds, double deviation) {
    sl_prediction made = {seconds, seconds - SIGMAS * deviation, seconds + SIGMAS * deviation};
    if (made.low < 0)
        made.low = 0;
    return made;
}

static sl_prediction constant(const sl_timing *timings, size_t count) {
    double sum = 0, scatter = 0;
    for (size_t i = 0; i < count; i++)
        sum += timings[i].seconds;
    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        scatter += (timings[i].seconds - mean) * (timings[i].seconds - mean);
    double deviation = count > 1 ? sqrt(scatter / (double)(count - 1)) : 0;
    return around(mean, fmax(deviation, CONSTANT_DEVIATION * mean));
}

typedef struct line {
    double a, b;             /* the fixed part, and what is multiplied by g */
    double a00, a01, a11;    /* of the normal equations */
} line;

static line fit(sl_growth growth, double fixed_deviation, const sl_timing *timings, size_t count) {
    line made = {0};
    double r0 = 0, r1 = 0;
    if (isfinite(fixed_deviation))
        made.a00 = 1 / (fixed_deviation * fixed_deviation);
    for (size_t i = 0; i < count; i++) {
        double weight = 1 / (timings[i].deviation * timings[i].deviation);
        double g = grown(growth, timings[i].size);
        made.a00 += weight;
        made.a01 += weight * g;
        made.a11 += weight * g * g;
        r0 += weight * timings[i].seconds;
        r1 += weight * g * timings[i].seconds;
    }
    double determinant = made.a00 * made.a11 - made.a01 * made.a01;
    if (made.a11 <= 0) { /* all sizes are 0: nothing is known of b */
        made.a = r0 / made.a00;
        return made;
    }
    if (determinant <= 1e-12 * made.a00 * made.a11) { /* one size only: all of it grows */
        made.b = r1 / made.a11;
        return made;
    }
    made.a = (r0 * made.a11 - r1 * made.a01) / determinant;
    made.b = (r1 * made.a00 - r0 * made.a01) / determinant;
    if (made.a < 0) {
        made.a = 0;
        made.b = r1 / made.a11;
    } else if (made.b < 0) {
        made.b = 0;
        made.a = r0 / made.a00;
    }
    return made;
}

/* By how much the variance is too small; 1 when it is not. */
static double disagreement(const line *found, sl_growth growth, double fixed_deviation,
                           const sl_timing *timings, size_t count) {
    bool known = isfinite(fixed_deviation);
    double squares = known ? pow(found->a / fixed_deviation, 2) : 0;
    for (size_t i = 0; i < count; i++) {
        double off = timings[i].seconds - found->a - found->b * grown(growth, timings[i].size);
        squares += pow(off / timings[i].deviation, 2);
    }
    double freedom = (double)count + known - (found->a > 0) - (found->b > 0);
    return freedom >= 1 ? fmax(squares / freedom, 1) : 1;
}

sl_prediction sl_extrapolate(sl_growth growth, double fixed_deviation, const sl_timing *timings,
                             size_t count, sl_size size) {
    if (count == 0)
        return (sl_prediction){0};
    if (growth == SL_GROWS_NOT)
        return constant(timings, count);
    line found = fit(growth, fixed_deviation, timings, count);
    double g = grown(growth, size.documents);
    double determinant = found.a00 * found.a11 - found.a01 * found.a01;
    double variance = 0;
    if (found.a11 > 0 && determinant > 1e-12 * found.a00 * found.a11)
        variance = (found.a11 - 2 * g * found.a01 + g * g * found.a00) / determinant;
    else if (found.a11 > 0)
        variance = g * g / found.a11;
    variance *= disagreement(&found, growth, fixed_deviation, timings, count);
    double of_size = found.b * (grown(growth, size.documents + size.deviation) - g);
    return around(found.a + found.b * g, sqrt(variance + of_size * of_size));
}

sl_prediction sl_prediction_sum(const sl_prediction *parts, size_t count) {
    sl_prediction sum = {0};
    double below = 0, above = 0;
    for (size_t i = 0; i < count; i++) {
        sum.seconds += parts[i].seconds;
        below += (parts[i].seconds - parts[i].low) * (parts[i].seconds - parts[i].low);
        above += (parts[i].high - parts[i].seconds) * (parts[i].high - parts[i].seconds);
    }
    sum.low = fmax(sum.seconds - sqrt(below), 0);
    sum.high = sum.seconds + sqrt(above);
    return sum;
}

#define STRETCHES_LEAST 4

double sl_rate_deviation(const sl_series_point *points, size_t count) {
    if (count < STRETCHES_LEAST + 1)
        return 0;
    double usual = (points[count - 1].seconds - points[0].seconds) / (double)(count - 1);
    double sum = 0, squares = 0, halves[2] = {0}, spans[2] = {0};
    double middle = (points[0].seconds + points[count - 1].seconds) / 2;
    size_t stretches = 0;
    for (size_t i = 1; i < count; i++) { /* from the second point: before the first it gets going */
        double span = points[i].seconds - points[i - 1].seconds;
        if (span < usual / 2)
            continue;
        double more = points[i].documents - points[i - 1].documents;
        unsigned half = points[i].seconds > middle;
        halves[half] += more;
        spans[half] += span;
        sum += more / span;
        squares += more / span * (more / span);
        stretches++;
    }
    if (stretches < STRETCHES_LEAST || sum <= 0)
        return 0;
    double mean = sum / (double)stretches;
    double variance = (squares - sum * mean) / (double)(stretches - 1);
    double scatter = sqrt(fmax(variance, 0) / (double)stretches) / mean;
    double drift = 0;
    if (spans[0] > 0 && spans[1] > 0)
        drift = fabs(halves[1] / spans[1] - halves[0] / spans[0]) / mean / 2;
    return hypot(scatter, drift);
}

sl_objective sl_objective_of(const sl_prediction *prediction, double objective_seconds) {
    if (prediction->high <= objective_seconds)
        return SL_OBJECTIVE_MET;
    return prediction->low > objective_seconds ? SL_OBJECTIVE_NOT_MET : SL_OBJECTIVE_UNKNOWN;
}

const char *sl_objective_text(sl_objective objective) {
    static const char *const texts[] = {"yes", "no", "cannot be told"};
    return texts[objective];
}
