/* SPDX-License-Identifier: Apache-2.0 */
/* Do two sets of runs differ? The unit is a run of the program: repeats within a run share whatever
 * the machine did meanwhile, and are not independent.
 *
 * The estimate is the ratio of the geometric means of the two sides, new / old. The interval holds
 * the ratios that a permutation test at 5 % does not reject. The test needs no distribution:
 *
 *   paired     A and B were measured in turn, in an order drawn by lot within each pair. If there is
 *              no difference, exchanging A and B in any pair gives an equally likely outcome, so the
 *              sign of each pair's log ratio is a coin: all 2^n of them are gone through. This holds
 *              whatever the machine did, also when neighbouring runs resemble each other.
 *   unpaired   reports that were made at other times. If there is no difference and the runs are
 *              independent, every way to deal them to the two sides is equally likely.
 *
 * At least 6 pairs, or 4 runs on each side, are needed for 95 %. */
#ifndef QUERY_DIFFERENCE_H
#define QUERY_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_RUNS_MAX 1000 /* of each side */
#define SL_PAIRS_LEAST 6
#define SL_RUNS_LEAST 4

typedef enum sl_verdict {
    SL_LOWER,       /* the new value is significantly lower */
    SL_HIGHER,      /* ... higher */
    SL_NO_DIFFERENCE, /* none that these runs show */
    SL_TOO_FEW,     /* runs for a verdict */
} sl_verdict;

typedef struct sl_difference {
    double old_mean, new_mean; /* geometric means of the sides */
    double ratio;              /* new_mean / old_mean */
    double low, high;          /* 95 % interval of the ratio; NAN with too few runs */
    double p;                  /* of the test that the ratio is 1; NAN with too few runs */
    sl_verdict verdict;
    size_t old_outliers, new_outliers; /* runs far from the others of their side */
    double drift;       /* how the runs changed from the first to the last, as a ratio, both sides */
    bool drifts;        /* significantly, at 1 % */
} sl_difference;

/* Values above zero, in the order of the runs. `old_values[i]` and `new_values[i]` are a pair. */
sl_difference sl_difference_paired(const double *old_values, const double *new_values, size_t count,
                                   uint64_t seed);
/* `old_times` and `new_times` (may be NULL) say when each run was, for the drift. */
sl_difference sl_difference_unpaired(const double *old_values, const double *old_times,
                                     size_t old_count, const double *new_values,
                                     const double *new_times, size_t new_count, uint64_t seed);

#endif
