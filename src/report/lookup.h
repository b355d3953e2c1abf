/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values from records. Records are untrusted: a value that is missing or has another type is
 * returned as NULL or NAN. Paths are dotted: "accounting.records". */
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
/* 1 true, 0 false, -1 missing. */
int sl_look_truth(const bson_t *document, const char *path);
/* Sets `*inner` to a document or an array, borrowed; empty when it returns false. */
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
uint32_t sl_walk_count(const bson_t *document, const char *path); /* counts its documents */
uint32_t sl_look_count(const bson_t *document, const char *path); /* counts its elements */

/* The sum of the seconds of the phases in the array at `path`: all, or those named `name` unless
 * it is NULL. NAN if there is no such phase. */
double sl_look_phase_seconds(const bson_t *record, const char *path, const char *name);

/* Finds an option of a record. */
bool sl_option_find(const bson_t *record, const char *name, bson_iter_t *at);
/* Are the values of an option in two records equal lists? *both is false unless both are lists. */
bool sl_option_lists_equal(const bson_t *a, const bson_t *b, const char *name, bool *both);

/* Did the drill in a record of `reload` complete, including its queries? From its field "ended";
 * older records without it are judged by their exit code. */
bool sl_look_drill_ended(const bson_t *record);

/* Can an option of a record change the results of a run? False for options about output. */
bool sl_option_matters(const char *name);

/* The value at `at`: a number from -1e18 to 1e18, or NAN. */
double sl_value_number(const bson_iter_t *at);

#endif
