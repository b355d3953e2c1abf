/* SPDX-License-Identifier: Apache-2.0 */
/* Mean, median and deviation of timings. */
#include "query.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_sorted(const double *values, size_t count) {
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

void sl_sort_values(double *values, size_t count) {
    qsort(values, count, sizeof *values, ascending);
}

sl_sample sl_sample_of(double *values, size_t count) {
    sl_sort_values(values, count);
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
