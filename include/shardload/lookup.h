/* SPDX-License-Identifier: Apache-2.0 */
/* Values out of records. Whatever is not there, or is of another type, is NULL or NAN: a record may
 * come from anywhere. Paths are dotted: "accounting.records". */
#ifndef SHARDLOAD_LOOKUP_H
#define SHARDLOAD_LOOKUP_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include <bson/bson.h>

/* A number from -1e18 to 1e18, or NAN. */
double sl_look_number(const bson_t *document, const char *path);
/* The same, not negative; `fallback` otherwise. */
double sl_look_amount(const bson_t *document, const char *path, double fallback);
const char *sl_look_text(const bson_t *document, const char *path);
/* -1: not there; 0 false; 1 true. */
int sl_look_truth(const bson_t *document, const char *path);
/* A document or an array, borrowed; `*inner` is empty when false. */
bool sl_look_inside(const bson_t *document, const char *path, bson_t *inner);

/* Walks the documents of an array:
 *     for (sl_walk walk = sl_walk_start(record, "phases"); sl_walk_next(&walk);)
 *         use(&walk.item); */
typedef struct sl_walk {
    bson_iter_t at;
    bool more;
    bson_t item; /* the document at hand, borrowed */
} sl_walk;
sl_walk sl_walk_start(const bson_t *document, const char *path);
bool sl_walk_next(sl_walk *walk); /* what is no document is passed over */
uint32_t sl_walk_count(const bson_t *document, const char *path); /* documents of the array */
uint32_t sl_look_count(const bson_t *document, const char *path); /* elements of any type */

/* Did the drill of a record of `reload` come to its end, queries and all? By its "ended", and where
 * there is none by its exit code. */
bool sl_look_drill_ended(const bson_t *record);

/* Does an option of a record say anything of how the run went? Where its account goes, and how it
 * is shown, does not. */
bool sl_option_matters(const char *name);

/* The value at `at` as a number as above, or NAN. */
double sl_value_number(const bson_iter_t *at);

#endif
