// SPDX-License-Identifier: Apache-2.0
//
// Formats whose records depend only on the seed and their number: e-mails, flights, orders with their
// line items, tweets, a sensor log. They repeat themselves as real data does, and they are the data
// sets of tools/reproduce. They have no answers, and no irregularities.
#ifndef DATAGEN_ROWS_H
#define DATAGEN_ROWS_H

#include "options.h"
#include "random.h"

// The sources of a record's random values. `rng` restarts with each record.
struct drawer {
    struct rng rng;
    const struct options *options; // borrowed
    const char **words;            // the table words.txt; points into `text`
    char *text;
    struct alias frequencies; // of the words: Zipf's law
};

extern const struct format emails_format, flights_format, orders_format, lineitems_format,
    tweets_format, sensors_format;

// The functions of `struct format` for all of them.
void rows_check(struct options *options, unsigned *problems);
bool rows_write(const struct options *options, struct failure *failure);

// Starts the random numbers of record `number`. `stream` separates several uses of one number.
void drawer_start(struct drawer *drawer, uint64_t number, uint32_t stream);

// A number from 0 to n - 1; and one that prefers small values, as sizes and popularities do.
uint32_t drawer_below(struct drawer *drawer, uint32_t n);
uint32_t drawer_skewed(struct drawer *drawer, uint32_t n);
bool drawer_chance(struct drawer *drawer, uint32_t percent);
// A word, by its frequency.
const char *drawer_word(struct drawer *drawer);

// Append to a text that has room, and return its new end. `put` formats like sprintf.
char *put(char *p, const char *format, ...) PRINTF_LIKE(2, 3);
// A number of hundredths with two decimals.
char *put_hundredths(char *p, int64_t hundredths);
// YYYY-MM-DD of a day since 1970.
char *put_date(char *p, int64_t day);
// `count` words with full stops between sentences and commas.
char *put_words(struct drawer *drawer, char *p, unsigned count);
// The name of person `number`: "First Last", and with `address` "first.last".
char *put_person(char *p, uint32_t number, bool address);

#endif
