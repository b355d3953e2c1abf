/* SPDX-License-Identifier: Apache-2.0 */
/* Extrapolation by weighted least squares for a + b g(n), with one more observation: a = 0 with the
 * standard deviation `fixed_deviation`.
 *
 * The normal equations are [A00 A01; A01 A11] [a b] = [r0 r1], and the variance of the prediction
 * at G is [1 G] A^-1 [1 G]. If a or b would be negative, it is set to 0 and only the other is
 * fitted; the variance stays that of the unconstrained line, which is larger.
 *
 * Timings farther from the line than their deviations allow show that the deviations are too small
 * or the model is wrong. The variance is then multiplied by chi squared per degree of freedom (the
 * Birge ratio).
 *
 * The exponent of g is not known exactly. A line is fitted for each of several exponents, and
 * weighted by the prior probability of the exponent times the likelihood of the timings. The
 * prediction is the weighted mean.
 *
 * The variance of the prediction has two parts: one in proportion to the variation between runs (of
 * the line, and of the run that is predicted), which is estimated with few degrees of freedom, and
 * one from assumptions (e, the number of documents). The degrees of freedom of their sum are those
 * of Welch and Satterthwaite, and the range is the quantile of Student's t for these. */
#include "extrapolate.h"

#include <math.h>

#include "util/estimate.h"

/* Half width of the range in standard deviations, when these are known. */
#define SIGMAS 2.0
/* Relative standard deviation of a phase that does not grow with the documents. */
#define CONSTANT_DEVIATION 0.2
/* The variation between runs is assumed to be at least this share of their total time. */
#define TOTAL_VARIATION_LEAST 0.03

/* g(n). Sizes are divided by `unit`, the largest timed size, so that b means the same for every
 * exponent. */
typedef struct curve {
    sl_growth growth;
    double steepness;
    double unit;
    double fixed_deviation;
} curve;

static double grown(const curve *c, double size) {
    double g = c->growth == SL_GROWS_AS_SORTING && size > 2 ? size * log2(size) : size;
    return c->steepness != 0 && size > 0 ? g * pow(size / c->unit, c->steepness) : g;
}

sl_variation sl_variation_of(const sl_timing *timings, size_t count) {
    sl_variation found = {0};
    double squares = 0;
    for (size_t first = 0; first < count; first++) {
        double sum = 0, runs = 0;
        bool counted = false;
        for (size_t i = 0; i < count; i++) {
            bool same = !(timings[i].size < timings[first].size) &&
                        !(timings[i].size > timings[first].size);
            counted = counted || (same && i < first);
            sum += same ? timings[i].seconds : 0;
            runs += same;
        }
        for (size_t i = first; !counted && sum > 0 && i < count; i++) {
            bool same = !(timings[i].size < timings[first].size) &&
                        !(timings[i].size > timings[first].size);
            squares += same ? pow(timings[i].seconds * runs / sum - 1, 2) : 0;
        }
        found.freedom += counted || sum <= 0 ? 0 : runs - 1;
    }
    found.relative = found.freedom > 0 ? sqrt(squares / found.freedom) : 0;
    return found;
}

static sl_prediction around(double seconds, double width) {
    return (sl_prediction){seconds, fmax(seconds - width, 0), seconds + width, 0, 0, 0};
}

static sl_prediction constant(const sl_timing *timings, size_t count) {
    double sum = 0, scatter = 0;
    for (size_t i = 0; i < count; i++)
        sum += timings[i].seconds;
    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        scatter += (timings[i].seconds - mean) * (timings[i].seconds - mean);
    double freedom = (double)count - 1, width = SIGMAS * CONSTANT_DEVIATION * mean;
    if (count > 1) /* of one further run, and of the mean */
        width = fmax(width, sl_student_quantile(SL_95_PERCENT, freedom) *
                                sqrt(scatter / freedom * (1 + 1 / (double)count)));
    return around(mean, width);
}

typedef struct line {
    double a, b;          /* a + b g(n) */
    double a00, a01, a11; /* of the normal equations */
} line;

static line fit(const curve *c, const sl_timing *timings, size_t count) {
    line made = {0};
    double r0 = 0, r1 = 0;
    if (isfinite(c->fixed_deviation))
        made.a00 = 1 / (c->fixed_deviation * c->fixed_deviation);
    for (size_t i = 0; i < count; i++) {
        double weight = 1 / (timings[i].deviation * timings[i].deviation);
        double g = grown(c, timings[i].size);
        made.a00 += weight;
        made.a01 += weight * g;
        made.a11 += weight * g * g;
        r0 += weight * timings[i].seconds;
        r1 += weight * g * timings[i].seconds;
    }
    double determinant = made.a00 * made.a11 - made.a01 * made.a01;
    if (made.a11 <= 0) { /* all sizes are 0: b is unknown */
        made.a = r0 / made.a00;
        return made;
    }
    if (determinant <= 1e-12 * made.a00 * made.a11) { /* one size only: assume a = 0 */
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

/* Chi squared: the sum of squared distances from the line, each in units of its deviation. */
static double squares_of(const line *found, const curve *c, const sl_timing *timings,
                         size_t count) {
    double squares = isfinite(c->fixed_deviation) ? pow(found->a / c->fixed_deviation, 2) : 0;
    for (size_t i = 0; i < count; i++) {
        double off = timings[i].seconds - found->a - found->b * grown(c, timings[i].size);
        squares += pow(off / timings[i].deviation, 2);
    }
    return squares;
}

/* The prediction of one curve. */
typedef struct guess {
    double seconds;
    double varying; /* variance in proportion to that of the timings */
    double of_size; /* variance from the uncertain number of documents */
    double squares; /* chi squared of the curve, later including the prior of its exponent */
} guess;

static guess follow(const curve *c, const sl_timing *timings, size_t count, sl_size size) {
    line found = fit(c, timings, count);
    guess made = {.squares = squares_of(&found, c, timings, count)};
    double g = grown(c, size.documents);
    double determinant = found.a00 * found.a11 - found.a01 * found.a01;
    if (found.a11 > 0 && determinant > 1e-12 * found.a00 * found.a11)
        made.varying = (found.a11 - 2 * g * found.a01 + g * g * found.a00) / determinant;
    else if (found.a11 > 0)
        made.varying = g * g / found.a11;
    double freedom = (double)count + isfinite(c->fixed_deviation) - (found.a > 0) - (found.b > 0);
    if (freedom >= 1)
        made.varying *= fmax(made.squares / freedom, 1);
    made.of_size = pow(found.b * (grown(c, size.documents + size.deviation) - g), 2);
    made.seconds = found.a + found.b * g;
    return made;
}

#define EXPONENTS 101  /* number of exponents that are tried */
#define REACH 5.0      /* exponents differ from the expected one by up to this many deviations */
#define TIMINGS_MAX 64 /* timings beyond these keep their own deviations */

/* The weighted mean of the predictions for all exponents. Sets `steep` to the variance between
 * them. */
static guess mean_of_curves(const sl_growth_model *model, const sl_timing *timings, size_t count,
                            sl_size size, double *steep) {
    guess guesses[EXPONENTS], mean = {0};
    double least = HUGE_VAL, sum = 0, squares = 0;
    size_t tried = model->steepness_deviation > 0 ? EXPONENTS : 1;
    curve c = {.growth = model->growth,
               .fixed_deviation = model->fixed_deviation,
               .unit = fmax(timings[count - 1].size, 1)};
    for (size_t i = 0; i < tried; i++) {
        double off = tried > 1 ? REACH * (2.0 * (double)i / (EXPONENTS - 1) - 1) : 0;
        c.steepness = model->steepness + off * model->steepness_deviation;
        guesses[i] = follow(&c, timings, count, size);
        guesses[i].squares += off * off;
        least = fmin(least, guesses[i].squares);
    }
    for (size_t i = 0; i < tried; i++) {
        double weight = exp((least - guesses[i].squares) / 2);
        sum += weight;
        mean.seconds += weight * guesses[i].seconds;
        mean.varying += weight * guesses[i].varying;
        mean.of_size += weight * guesses[i].of_size;
        squares += weight * guesses[i].seconds * guesses[i].seconds;
    }
    mean.seconds /= sum;
    mean.varying /= sum;
    mean.of_size /= sum;
    *steep = fmax(squares / sum - mean.seconds * mean.seconds, 0);
    return mean;
}

/* The half width of a range of 95 %, in standard deviations, for a variance of which the part
 * `varying` was estimated with `freedom` degrees of freedom, and the rest is known. */
static double quantile_of(double freedom, double varying, double known) {
    return freedom > 0 && varying > 0
               ? sl_student_quantile(SL_95_PERCENT, freedom * pow(1 + known / varying, 2))
               : SIGMAS;
}

sl_prediction sl_extrapolate(const sl_growth_model *model, const sl_timing *timings, size_t count,
                             sl_size size) {
    sl_timing used[TIMINGS_MAX];
    double steep, least = INFINITY;
    if (count == 0)
        return (sl_prediction){0};
    if (model->growth == SL_GROWS_NOT)
        return constant(timings, count);
    count = count < TIMINGS_MAX ? count : TIMINGS_MAX;
    sl_variation variation = sl_variation_of(timings, count);
    for (size_t i = 0; i < count; i++) {
        used[i] = timings[i];
        used[i].deviation = fmax(used[i].deviation, variation.relative * used[i].seconds);
        least = fmin(least, used[i].deviation / fmax(used[i].seconds, 1e-9));
    }
    guess mean = mean_of_curves(model, used, count, size, &steep);
    double varying =
        mean.varying + pow(least * mean.seconds, 2); /* the latter: of one further run */
    double quantile = quantile_of(variation.freedom, varying, mean.of_size + steep);
    sl_prediction made = around(mean.seconds, quantile * sqrt(varying + mean.of_size + steep));
    made.steep = sqrt(steep);
    made.varying = sqrt(varying) / least;
    made.common = quantile * sqrt(steep + varying);
    return made;
}

/* The square of the distance between a prediction and its bound, without the common part. */
static double own_square(double away, double common) {
    return fmax(away * away - common * common, 0);
}

sl_prediction sl_prediction_sum(const sl_prediction *parts, size_t count, sl_variation variation) {
    sl_prediction sum = {0};
    double below = 0, above = 0;
    for (size_t i = 0; i < count; i++) {
        const sl_prediction *part = &parts[i];
        sum.seconds += part->seconds;
        sum.steep += part->steep;
        sum.varying += part->varying;
        below += own_square(part->seconds - part->low, part->common);
        above += own_square(part->high - part->seconds, part->common);
    }
    double varying = pow(sum.varying * fmax(variation.relative, TOTAL_VARIATION_LEAST), 2);
    double steep = sum.steep * sum.steep;
    sum.common = quantile_of(variation.freedom, varying, steep) * sqrt(varying + steep);
    sum.low = fmax(sum.seconds - hypot(sqrt(below), sum.common), 0);
    sum.high = sum.seconds + hypot(sqrt(above), sum.common);
    return sum;
}

#define INTERVALS_LEAST 4

double sl_rate_deviation(const sl_series_point *points, size_t count) {
    if (count < INTERVALS_LEAST + 1)
        return 0;
    double usual = (points[count - 1].seconds - points[0].seconds) / (double)(count - 1);
    double sum = 0, squares = 0, halves[2] = {0}, spans[2] = {0};
    double middle = (points[0].seconds + points[count - 1].seconds) / 2;
    size_t intervals = 0;
    for (size_t i = 1; i < count; i++) { /* leaves out the load's start, before the first point */
        double span = points[i].seconds - points[i - 1].seconds;
        if (span < usual / 2)
            continue;
        double more = points[i].documents - points[i - 1].documents;
        unsigned half = points[i].seconds > middle;
        halves[half] += more;
        spans[half] += span;
        sum += more / span;
        squares += more / span * (more / span);
        intervals++;
    }
    if (intervals < INTERVALS_LEAST || sum <= 0)
        return 0;
    double mean = sum / (double)intervals;
    double variance = (squares - sum * mean) / (double)(intervals - 1);
    double scatter = sqrt(fmax(variance, 0) / (double)intervals) / mean;
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
    static const char *const texts[] = {"yes", "no", "unknown", "not shown"};
    return texts[objective];
}
