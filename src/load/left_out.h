/* SPDX-License-Identifier: Apache-2.0 */
/* Counts, for each column, the values that did not fit their type and were left out (`invalid:
 * missing` in a schema). Each worker has its own counts; they are added up when all have ended. */
#ifndef SHARDLOAD_LEFT_OUT_H
#define SHARDLOAD_LEFT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

/* All zero: empty. */
typedef struct sl_left_out {
    struct sl_left_out_column {
        char *name; /* in the header; owned */
        uint64_t values;
    } * columns; /* in the order of their first values */
    size_t count;
} sl_left_out;

/* False without memory. */
bool sl_left_out_add(sl_left_out *list, const char *column, uint64_t values);
/* Adds all columns of `more`. */
bool sl_left_out_merge(sl_left_out *list, const sl_left_out *more);
void sl_left_out_clear(sl_left_out *list);

/* Appends the array "leftOutByColumn", [{column, values}]; nothing if the list is empty. */
void sl_left_out_append(const sl_left_out *list, bson_t *record);
/* Logs a line for each column of this run, and one for the values of earlier runs, so that they add
 * up to `total`. */
void sl_left_out_log(const sl_left_out *list, uint64_t total);

#endif
