/* SPDX-License-Identifier: Apache-2.0 */
/* The table of years: the compiler computes its 10,000 entries from nested macros. It is in a
 * separate file because cppcheck cannot process these macros (tools/check leaves the file out). */
#include "convert.h"

#define DAYS_TO_1970 719162 /* from 0001-01-01 */
#define LEAP(y) ((y) % 4 == 0 && ((y) % 100 != 0 || (y) % 400 == 0))
#define DAYS(y) (((y)-1) * 365 + ((y)-1) / 4 - ((y)-1) / 100 + ((y)-1) / 400 - DAYS_TO_1970 - 1)
#define YEAR(y) ((y) == 0 ? 2 : DAYS(y) * 4 + LEAP(y))
#define YEARS_5(y) YEAR(y), YEAR((y) + 1), YEAR((y) + 2), YEAR((y) + 3), YEAR((y) + 4)
#define YEARS_25(y)                                                                                \
    YEARS_5(y), YEARS_5((y) + 5), YEARS_5((y) + 10), YEARS_5((y) + 15), YEARS_5((y) + 20)
#define YEARS_100(y) YEARS_25(y), YEARS_25((y) + 25), YEARS_25((y) + 50), YEARS_25((y) + 75)
#define YEARS_500(y)                                                                               \
    YEARS_100(y), YEARS_100((y) + 100), YEARS_100((y) + 200), YEARS_100((y) + 300),                \
        YEARS_100((y) + 400)
#define YEARS_2500(y)                                                                              \
    YEARS_500(y), YEARS_500((y) + 500), YEARS_500((y) + 1000), YEARS_500((y) + 1500),              \
        YEARS_500((y) + 2000)

const int32_t sl_years[10000] = {YEARS_2500(0), YEARS_2500(2500), YEARS_2500(5000),
                                 YEARS_2500(7500)};
