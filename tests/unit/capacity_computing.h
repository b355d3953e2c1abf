/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of capacity models: assignments and results, which must not fail. */
#ifndef CAPACITY_COMPUTING_H
#define CAPACITY_COMPUTING_H

#include <math.h>

#include "trial/capacity.h"
#include "unit.h"

static inline void set(sl_capacity_model *model, const char *assignment) {
    sl_error error = {0};
    if (!sl_capacity_set(model, assignment, &error))
        fail_msg("%s", error.message);
}

static inline sl_capacity_result compute(const sl_capacity_model *model) {
    sl_error error = {0};
    sl_capacity_result result;
    if (!sl_capacity_compute(model, &result, &error))
        fail_msg("%s", error.message);
    return result;
}

static inline void assert_near(double actual, double expected) {
    if (!(fabs(actual - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g, expected %.12g", actual, expected);
}

#endif
