/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of expected documents with the documents found in the same interval of _ids, byte by
 * byte. One thread. */
#ifndef SHARDLOAD_COMPARE_H
#define SHARDLOAD_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "bson/bson_writer.h"

typedef enum sl_finding {
    SL_MISSING,   /* expected, and not found */
    SL_DIFFERENT, /* found under its _id, with other bytes */
    SL_EXTRA,     /* found, and not expected; also a second document of one _id, on another shard */
} sl_finding;

/* The caller sets the first four fields; the others begin as zero. */
typedef struct sl_comparison {
    /* Consecutive BSON documents, ascending by _id, which is the first field and an int64. */
    const uint8_t *expected;
    const uint8_t *end;
    /* Called for each difference. `expected` is NULL for an extra document, `found` for a missing
     * one; both are valid during the call only. Calls with an expected document are in the order of
     * the expected documents. */
    void (*report)(void *context, sl_finding finding, const uint8_t *expected, const bson_t *found);
    void *context;

    bool matched; /* the next expected document has been found */
    bson_t *held; /* copy of a different document found under its _id */
} sl_comparison;

/* Processes the next document that was found, by ascending _id. An _id of another numeric type with
 * the same value is the same _id, as it is for the server. */
void sl_compare_found(sl_comparison *comparison, const bson_t *found);

/* Ends the comparison: expected documents that were not found are missing. */
void sl_compare_end(sl_comparison *comparison);

/* Frees the memory of a comparison that was not ended. */
void sl_compare_clear(sl_comparison *comparison);

/* The _id of an expected document. */
int64_t sl_expected_id(const uint8_t *document);

/* Describes the fields in which a found document differs from the expected one: "m is 49829, not
 * 49828; s is missing; x is not expected". Nested fields are named with dots. A text of more than
 * `room` bytes is truncated. Returns out. */
char *sl_difference(const uint8_t *expected, const bson_t *found, char *out, size_t room);

#endif
