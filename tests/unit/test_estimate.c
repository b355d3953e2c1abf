/* SPDX-License-Identifier: Apache-2.0 */
/* Quantiles of Student's t distribution, against published tables. */
#include "unit.h"
#include "util/estimate.h"

TEST(quantiles_of_student) {
    static const struct {
        double freedom, of_90, of_95, of_99;
    } known[] = {
        {1, 6.3138, 12.7062, 63.6567}, {2, 2.9200, 4.3027, 9.9248},
        {3, 2.3534, 3.1824, 5.8409},   {4, 2.1318, 2.7764, 4.6041},
        {7, 1.8946, 2.3646, 3.4995},   {9, 1.8331, 2.2622, 3.2498},
        {11, 1.7959, 2.2010, 3.1058},  {13, 1.7709, 2.1604, 3.0123},
        {18, 1.7341, 2.1009, 2.8784},  {25, 1.7081, 2.0595, 2.7874},
        {40, 1.6839, 2.0211, 2.7045},  {120, 1.6577, 1.9799, 2.6174},
        {1e4, 1.6450, 1.9602, 2.5763}, {INFINITY, 1.6449, 1.9600, 2.5758},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        double n = known[i].freedom;
        assert_near(sl_student_quantile(SL_90_PERCENT, n), known[i].of_90, 3e-3);
        assert_near(sl_student_quantile(SL_95_PERCENT, n), known[i].of_95, 3e-3);
        assert_near(sl_student_quantile(SL_99_PERCENT, n), known[i].of_99, 3e-3);
    }
}

TEST(degrees_of_freedom_may_be_fractional) {
    assert_near(sl_student_quantile(SL_95_PERCENT, 0.5), 12.7062, 3e-3);
    double half = sl_student_quantile(SL_95_PERCENT, 2.5);
    assert_true(half < 4.303 && half > 3.182);
}
