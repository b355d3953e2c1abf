// SPDX-License-Identifier: Apache-2.0
//
// Dates of the Gregorian calendar by the number of the day; day 0 is 1970-01-01.
#ifndef DATAGEN_CALENDAR_H
#define DATAGEN_CALENDAR_H

#include <stdint.h>

struct date {
    int year, month, day; // month and day are counted from 1
};

// The date of a day after 0000-02-29.
static inline struct date date_of(int64_t number) {
    // Days since 0000-03-01 in eras of 400 years, so that the leap day is the last of a year.
    int days = (int)(number + 719468);
    int era = days / 146097;
    int of_era = days - era * 146097;
    int year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int of_year = of_era - (365 * year + year / 4 - year / 100);
    int month = (5 * of_year + 2) / 153; // from March
    return (struct date){.year = year + era * 400 + (month >= 10),
                         .month = month < 10 ? month + 3 : month - 9,
                         .day = of_year - (153 * month + 2) / 5 + 1};
}

// The first day of a year after 0.
static inline int32_t year_start(int year) {
    int before = year - 1;
    return before * 365 + before / 4 - before / 100 + before / 400 - 719162;
}

#endif
