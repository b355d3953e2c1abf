/* SPDX-License-Identifier: Apache-2.0 */
/* A Gaussian process over the grid.
 *
 * The logarithm of the rate is modelled as a smooth surface with an unknown level. The covariance
 * between two cells falls with their distance: by a Matern function of the steps along each ordered
 * dimension, by a constant factor for a difference in an unordered dimension. A cell's observation
 * is the median of its trials' logarithms, so that a disturbed trial has little influence.
 *
 * The length scale along each ordered dimension, the height of the surface and the noise of trials
 * are chosen from small tables by maximum likelihood. Repeated trials of one cell are part of that
 * likelihood. Once there are enough of them, the reported noise is computed from them alone; the
 * noise of the table is for the model.
 *
 * A search has a few dozen cells with trials, so each fit computes everything again with dense
 * matrices. With more cells, an evenly spread subset chooses the model, because each candidate
 * model takes time proportional to the cube of their number. */
#include "surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/estimate.h"

#define JITTER 1e-9
#define OTHER_VALUE 0.85 /* correlation of two cells that differ in an unordered dimension */
#define NOISE_USUAL 0.04 /* prior relative standard deviation of a trial */
#define MODEL_CELLS 64   /* maximum number of cells that choose the model */
#define FREEDOM_ENOUGH 8 /* degrees of freedom from which the noise is measured */
#define NOISE_LEAST 0.001

/* Length scales of the correlation, relative to the length of the ordered dimension. */
static const double scales[] = {0.6, 1.2, 2.5};
static const double heights[] = {0.1, 0.3, 0.7, 1.5}; /* standard deviation of the surface */
static const double noises[] = {0.01, 0.02, 0.035, 0.06, 0.1, 0.17, 0.3, 0.45, 0.6};
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

typedef struct surface_model {
    double scale[SL_SEARCH_DIMENSIONS_MAX];
    double height;
    double noise;
} surface_model;

struct sl_surface {
    const sl_search_dimension *dimensions;
    size_t dimension_count;
    const sl_search_cell *cells;
    size_t count;
    size_t used;         /* number of cells with trials */
    size_t *measured;    /* the cells with trials */
    size_t *spread;      /* buffer to reorder `measured` */
    size_t room;         /* `used` for which the three matrices are allocated */
    double *values;      /* observations of the measured cells, less `level` */
    double *correlation; /* between measured cells, used * used, lower triangle */
    double *factor;      /* Cholesky factor of their covariance, used * used, lower triangle */
    double *weights;
    double *projection; /* factor^-1 * covariance with each cell: count rows of `used` */
    double *means;
    double *variances;
    double level;
    surface_model model;
    double scatter; /* sum of squares of repeated trials about their cells' means */
    size_t freedom; /* degrees of freedom of `scatter` */
};

sl_surface *sl_surface_create(const sl_search_dimension *dimensions, size_t dimension_count,
                              const sl_search_cell *cells, size_t count) {
    sl_surface *surface = calloc(1, sizeof *surface);
    if (!surface)
        return NULL;
    surface->dimensions = dimensions;
    surface->dimension_count = dimension_count;
    surface->cells = cells;
    surface->count = count;
    surface->measured = calloc(count, sizeof *surface->measured);
    surface->spread = calloc(count, sizeof *surface->spread);
    surface->values = calloc(count, sizeof *surface->values);
    surface->weights = calloc(count, sizeof *surface->weights);
    surface->means = calloc(count, sizeof *surface->means);
    surface->variances = calloc(count, sizeof *surface->variances);
    if (surface->measured && surface->spread && surface->values && surface->weights &&
        surface->means && surface->variances)
        return surface;
    sl_surface_destroy(surface);
    return NULL;
}

void sl_surface_destroy(sl_surface *surface) {
    if (!surface)
        return;
    free(surface->measured);
    free(surface->spread);
    free(surface->values);
    free(surface->correlation);
    free(surface->factor);
    free(surface->weights);
    free(surface->projection);
    free(surface->means);
    free(surface->variances);
    free(surface);
}

/* ---- observations ---- */

double sl_surface_median_variance(size_t trials) {
    return (trials < 3 ? 1 : 1.4) / (double)trials;
}

static size_t greatest_common_divisor(size_t a, size_t b) {
    while (b > 0) {
        size_t remainder = a % b;
        a = b;
        b = remainder;
    }
    return a;
}

/* Reorders the observations so that the first ones are spread evenly: in steps of the golden
 * section, modulo their number, which reaches each of them once. */
static void spread_evenly(sl_surface *surface) {
    size_t n = surface->used, step = (size_t)(0.6180339887 * (double)n), at = 0;
    while (greatest_common_divisor(step, n) > 1)
        step++;
    for (size_t i = 0; i < n; i++, at = (at + step) % n) {
        surface->spread[i] = surface->measured[at];
        surface->weights[i] = surface->values[at];
    }
    memcpy(surface->measured, surface->spread, n * sizeof *surface->measured);
    memcpy(surface->values, surface->weights, n * sizeof *surface->values);
}

static void observe(sl_surface *surface) {
    surface->used = 0;
    surface->scatter = 0;
    surface->freedom = 0;
    double sum = 0;
    for (size_t i = 0; i < surface->count; i++) {
        const sl_search_cell *cell = &surface->cells[i];
        double logs[SL_SEARCH_REPEATS_MAX], mean = 0;
        size_t n = cell->trials;
        if (n == 0)
            continue;
        for (size_t k = 0; k < n; k++) {
            logs[k] = log(cell->rates[k]);
            mean += logs[k] / (double)n;
        }
        for (size_t k = 0; k < n; k++)
            surface->scatter += (logs[k] - mean) * (logs[k] - mean);
        surface->freedom += n - 1;
        qsort(logs, n, sizeof logs[0], sl_by_value);
        double median = (logs[n / 2] + logs[(n - 1) / 2]) / 2;
        surface->measured[surface->used] = i;
        surface->values[surface->used++] = median;
        sum += median;
    }
    surface->level = sum / (double)surface->used;
    for (size_t i = 0; i < surface->used; i++)
        surface->values[i] -= surface->level;
    if (surface->used > MODEL_CELLS)
        spread_evenly(surface);
}

/* ---- the model ---- */

static double correlation(const sl_surface *surface, const surface_model *model, size_t a,
                          size_t b) {
    double product = 1;
    for (size_t d = 0; d < surface->dimension_count; d++) {
        size_t x = surface->cells[a].at[d], y = surface->cells[b].at[d];
        if (x == y)
            continue;
        if (!surface->dimensions[d].ordered) {
            product *= OTHER_VALUE;
            continue;
        }
        double length = model->scale[d] * (double)(surface->dimensions[d].count - 1);
        double r = sqrt(5) * fabs((double)x - (double)y) / length;
        product *= (1 + r + r * r / 3) * exp(-r);
    }
    return product;
}

static double covariance(const sl_surface *surface, const surface_model *model, size_t a,
                         size_t b) {
    return model->height * model->height * correlation(surface, model, a, b);
}

/* Computes the correlations of the first n observations. They depend only on the length scales, so
 * they serve for many heights and noises. */
static void correlate(sl_surface *surface, const surface_model *model, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            surface->correlation[i * n + j] =
                correlation(surface, model, surface->measured[i], surface->measured[j]);
    }
}

/* Factorizes the covariance of the first n observations. Call correlate before. */
static void factorize(sl_surface *surface, const surface_model *model, size_t n) {
    double *factor = surface->factor;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = model->height * model->height * surface->correlation[i * n + j];
            size_t trials = surface->cells[surface->measured[i]].trials;
            if (i == j)
                sum += JITTER + model->noise * model->noise * sl_surface_median_variance(trials);
            for (size_t k = 0; k < j; k++)
                sum -= factor[i * n + k] * factor[j * n + k];
            factor[i * n + j] = i == j ? sqrt(fmax(sum, JITTER)) : sum / factor[j * n + j];
        }
    }
}

/* Solves factor * x = x in place. */
static void solve_forward(const sl_surface *surface, double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= surface->factor[i * n + k] * x[k];
        x[i] /= surface->factor[i * n + i];
    }
}

/* The log likelihood of the first n observations under the model, up to a constant, with a weak
 * prior for the usual noise. Sets `factor` to the model's, and `weights` to factor^-1 * values. */
static double likelihood(sl_surface *surface, const surface_model *model, size_t n) {
    factorize(surface, model, n);
    memcpy(surface->weights, surface->values, n * sizeof *surface->weights);
    solve_forward(surface, surface->weights, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum -= surface->weights[i] * surface->weights[i] / 2 + log(surface->factor[i * n + i]);
    double unusual = log(model->noise / NOISE_USUAL) / log(2);
    return sum - (double)surface->freedom * log(model->noise) -
           surface->scatter / (2 * model->noise * model->noise) - unusual * unusual / 2;
}

typedef struct surface_choice {
    surface_model model;
    double likelihood;
} surface_choice;

/* Tries all heights and noises with the length scales of `model`; keeps the most likely model. */
static void choose_height_and_noise(sl_surface *surface, surface_model model,
                                    surface_choice *kept) {
    size_t n = surface->used < MODEL_CELLS ? surface->used : MODEL_CELLS;
    correlate(surface, &model, n);
    for (size_t h = 0; h < COUNT(heights); h++) {
        for (size_t s = 0; s < COUNT(noises); s++) {
            model.height = heights[h];
            model.noise = noises[s];
            double result = likelihood(surface, &model, n);
            if (result > kept->likelihood)
                *kept = (surface_choice){model, result};
        }
    }
}

/* Chooses the most likely model: the length scales one dimension at a time, starting from the
 * middle of the table. */
static void choose_model(sl_surface *surface) {
    surface_model best = {.height = heights[1], .noise = NOISE_USUAL};
    surface_choice kept = {best, -HUGE_VAL};
    for (size_t d = 0; d < SL_SEARCH_DIMENSIONS_MAX; d++)
        best.scale[d] = scales[1];
    choose_height_and_noise(surface, best, &kept); /* for grids without an ordered dimension */
    for (unsigned round = 0; round < 2; round++) {
        for (size_t d = 0; d < surface->dimension_count; d++) {
            if (!surface->dimensions[d].ordered || surface->dimensions[d].count < 2)
                continue;
            surface_model model = kept.model;
            for (size_t r = 0; r < COUNT(scales); r++) {
                model.scale[d] = scales[r];
                choose_height_and_noise(surface, model, &kept);
            }
        }
    }
    surface->model = kept.model;
}

bool sl_surface_fit(sl_surface *surface) {
    observe(surface);
    size_t n = surface->used;
    if (n > surface->room) { /* the matrices are computed again, so their content may be lost */
        free(surface->correlation);
        free(surface->factor);
        free(surface->projection);
        surface->room = n + 16 < surface->count ? n + 16 : surface->count;
        surface->correlation = calloc(surface->room * surface->room, sizeof *surface->correlation);
        surface->factor = calloc(surface->room * surface->room, sizeof *surface->factor);
        surface->projection = calloc(surface->room * surface->count, sizeof *surface->projection);
        if (!surface->correlation || !surface->factor || !surface->projection) {
            surface->room = 0;
            return false;
        }
    }
    choose_model(surface);
    correlate(surface, &surface->model, n);
    likelihood(surface, &surface->model, n);
    for (size_t c = 0; c < surface->count; c++) {
        double *row = &surface->projection[c * n];
        for (size_t i = 0; i < n; i++)
            row[i] = covariance(surface, &surface->model, c, surface->measured[i]);
        solve_forward(surface, row, n);
        double mean = 0, variance = surface->model.height * surface->model.height;
        for (size_t i = 0; i < n; i++) {
            mean += row[i] * surface->weights[i];
            variance -= row[i] * row[i];
        }
        surface->means[c] = surface->level + mean;
        surface->variances[c] = fmax(variance, JITTER);
    }
    return true;
}

double sl_surface_mean(const sl_surface *surface, size_t cell) {
    return surface->means[cell];
}

double sl_surface_deviation(const sl_surface *surface, size_t cell) {
    return sqrt(surface->variances[cell]);
}

double sl_surface_difference(const sl_surface *surface, size_t a, size_t b) {
    size_t n = surface->used;
    if (a == b)
        return 0;
    double common = covariance(surface, &surface->model, a, b);
    for (size_t i = 0; i < n; i++)
        common -= surface->projection[a * n + i] * surface->projection[b * n + i];
    return sqrt(fmax(surface->variances[a] + surface->variances[b] - 2 * common, JITTER));
}

size_t sl_surface_repeated(const sl_surface *surface) {
    return surface->freedom;
}

double sl_surface_noise(const sl_surface *surface, bool *measured) {
    *measured = surface->freedom >= FREEDOM_ENOUGH;
    return *measured ? fmax(sqrt(surface->scatter / (double)surface->freedom), NOISE_LEAST)
                     : surface->model.noise;
}
