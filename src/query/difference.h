/* SPDX-License-Identifier: Apache-2.0 */
/* Statistical comparison of two sets of runs. Each value is a figure of one run of the program:
 * repeats within a run are not independent, because they share the state of the machine.
 *
 * The estimate is the ratio of the geometric means of the two sides, new / old. Its interval
 * contains the ratios that a permutation test at 5 % does not reject. The test assumes no
 * distribution:
 *
 *   paired     each pair consists of an old and a new run, one after the other in random order. If
 *              there is no difference, exchanging the two runs of a pair gives an equally likely
 *              outcome: the log ratio of each pair is as likely positive as negative. The runs need
 *              not be independent, so a slow phase of the machine does not invalidate the test.
 *   unpaired   the reports were made at other times. If there is no difference and the runs are
 *              independent, every division of the runs into the two sides is equally likely.
 *
 * An interval needs at least 6 pairs, or 4 runs on each side. */
#ifndef QUERY_DIFFERENCE_H
#define QUERY_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_RUNS_MAX 1000 /* on each side; also the most pairs */
#define SL_PAIRS_LEAST 6
#define SL_RUNS_LEAST 4

typedef enum sl_significance {
    SL_LOWER,         /* the new value is significantly lower */
    SL_HIGHER,        /* the new value is significantly higher */
    SL_NO_DIFFERENCE, /* no significant difference */
    SL_TOO_FEW,       /* too few runs for a test */
} sl_significance;

typedef struct sl_difference {
    double old_mean, new_mean; /* geometric means of the sides */
    double ratio;              /* new_mean / old_mean */
    double low, high;          /* 95 % interval of the ratio; NAN with too few runs */
    double p;                  /* p value of "the ratio is 1"; NAN with too few runs */
    sl_significance verdict;
    size_t old_outliers, new_outliers; /* runs far from the median of their side */
    double drift; /* linear trend of both sides from the first run to the last, as a ratio */
    bool drifts;  /* the trend is significant at 1 % */
} sl_difference;

/* `old_values[i]` and `new_values[i]` are a pair. Values are above 0 and in the order of the runs.
 * `seed` selects the permutations where only some of them are tested. */
sl_difference sl_difference_paired(const double *old_values, const double *new_values, size_t count,
                                   uint64_t seed);
/* `old_times` and `new_times` are the times of the runs in any unit, for the drift; or NULL. */
sl_difference sl_difference_unpaired(const double *old_values, const double *old_times,
                                     size_t old_count, const double *new_values,
                                     const double *new_times, size_t new_count, uint64_t seed);

#endif
