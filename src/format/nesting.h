/* SPDX-License-Identifier: Apache-2.0 */
/* Nested documents: columns with names such as origin.name, tags[0] or items[0].price are stored in
 * embedded documents and arrays.
 *
 * A name is nested if its parts, between the points, begin with a letter, an underscore or a byte
 * above 0x7F, and contain no blanks; so "No. of items" and "3.5 mm" are not. If the names
 * contradict each other (a and a.b; x[0] and x.y; x[1] without x[0]), none is nested. */
#ifndef SHARDLOAD_NESTING_H
#define SHARDLOAD_NESTING_H

#include "fields.h"

typedef enum sl_nest_kind { SL_NEST_OPEN, SL_NEST_COLUMN, SL_NEST_CLOSE } sl_nest_kind;

typedef struct sl_nest_step {
    sl_nest_kind kind;
    bool array;      /* SL_NEST_OPEN: an array */
    bool point;      /* SL_NEST_OPEN: a GeoJSON point, whose coordinates follow */
    bool pair;       /* SL_NEST_CLOSE: of coordinates: both, or none is written */
    uint32_t column; /* SL_NEST_COLUMN */
    char *key;       /* "" in an array; owned */
} sl_nest_step;

/* How the documents of a dialect are written. */
typedef struct sl_nesting {
    sl_nest_step *steps;
    size_t count;
    size_t bytes; /* upper bound of what the embedding adds to a document */
} sl_nesting;

/* Is it such a name? */
bool sl_nesting_is_nested(const char *name);

/* Compiles the keys of a dialect. `*nesting` is NULL if no key is nested. `*contradict` is true if
 * keys would be nested, but contradict each other or are parts of _id. SL_EXIT_SOURCE if a point
 * lacks a coordinate, has other fields, or cannot be embedded because the names contradict each
 * other. */
bool sl_nesting_create(const sl_dialect *dialect, sl_nesting **nesting, bool *contradict,
                       sl_error *error);
void sl_nesting_destroy(sl_nesting *nesting); /* NULL is fine */

/* For $set: documents that contain columns are not written; their fields get the path as name
 * ("origin.name"). Arrays and points stay units. The dialect is to be compiled again. False without
 * memory. */
bool sl_nesting_set_paths(const sl_dialect *dialect);

/* Writes the document of a record that has been split into fields. Empty documents and arrays are
 * left out; so are missing elements at the end of an array; missing elements before others become
 * null, so that each element keeps its index. A point of which a coordinate is missing is left out.
 * NULL: a field is refused, record->failed is its column. */
uint8_t *sl_put_nested(sl_parser *parser, sl_record *record, int64_t id, uint8_t *start);

#endif
