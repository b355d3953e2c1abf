/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values from run records (JSON files) by dotted path: "accounting.records". A missing value
 * or one of another type gives NULL or NAN: records may come from any version or program. */
#ifndef SHARDLOAD_LOOKUP_H
#define SHARDLOAD_LOOKUP_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include <bson/bson.h>

/* A number from -1e18 to 1e18, or NAN. */
double sl_look_number(const bson_t *document, const char *path);
/* A number from 0 to 1e18, or `fallback`. */
double sl_look_amount(const bson_t *document, const char *path, double fallback);
const char *sl_look_text(const bson_t *document, const char *path);
/* 1: true; 0: false; -1: no such value. */
int sl_look_truth(const bson_t *document, const char *path);
/* A document or an array, borrowed; `*inner` is empty when false. */
bool sl_look_inside(const bson_t *document, const char *path, bson_t *inner);

/* Walks the documents of an array:
 *     for (sl_walk walk = sl_walk_start(record, "phases"); sl_walk_next(&walk);)
 *         use(&walk.item); */
typedef struct sl_walk {
    bson_iter_t at;
    bool more;
    bson_t item; /* the current document, borrowed */
} sl_walk;
sl_walk sl_walk_start(const bson_t *document, const char *path);
bool sl_walk_next(sl_walk *walk); /* skips elements that are not documents */
uint32_t sl_walk_count(const bson_t *document, const char *path); /* documents of the array */
uint32_t sl_look_count(const bson_t *document, const char *path); /* elements of any type */

/* Has the drill of a `reload` record finished, including its queries? From the record's "ended",
 * or, in records without it, from the exit code. */
bool sl_look_drill_ended(const bson_t *record);

/* Can the option affect the results of a run? False for options that name output files or choose
 * their form. */
bool sl_option_matters(const char *name);

/* The value at `at`, as sl_look_number. */
double sl_value_number(const bson_iter_t *at);

#endif
