/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison: documents that were made from a source against those that the cluster holds in the
 * same interval of ids, to the byte. Knows nothing of where either comes from. One thread. */
#ifndef SHARDLOAD_COMPARE_H
#define SHARDLOAD_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

typedef enum sl_finding {
    SL_MISSING,   /* expected, and not found */
    SL_DIFFERENT, /* found under its _id, with other bytes */
    SL_EXTRA,     /* found, and not expected; also a second one of the same _id, on another shard */
} sl_finding;

/* Set the first part; the rest begins as zero. */
typedef struct sl_comparison {
    /* Finished BSON documents one behind the other, each with a 64-bit _id in front, ascending. */
    const uint8_t *expected;
    const uint8_t *end;
    /* Called for all that is not equal. `expected` is NULL for what is extra, `found` for what is
     * missing; both for the call only. Those that have `expected` come in its order. */
    void (*report)(void *context, sl_finding finding, const uint8_t *expected, const bson_t *found);
    void *context;

    bool met;     /* the next of `expected` has been found */
    bson_t *held; /* another document under its _id */
} sl_comparison;

/* The next document that was found, by ascending _id. An _id of another numeric type with the same
 * value is the same _id, as it is for the server. */
void sl_compare_found(sl_comparison *comparison, const bson_t *found);

/* Nothing more was found. */
void sl_compare_end(sl_comparison *comparison);

/* Forgets what is held, after a comparison that was not brought to its end. */
void sl_compare_clear(sl_comparison *comparison);

/* The _id and the length of a document as in `expected`. */
int64_t sl_expected_id(const uint8_t *document);
size_t sl_expected_length(const uint8_t *document);

/* ---- difference.c ---- */

/* Says into `out` (cut when it is longer) in what fields a document that was found differs from the
 * one expected: "m is 49829, not 49828; s is missing; x is too many". Fields within fields are
 * named with dots. Returns out. */
char *sl_difference(const uint8_t *expected, const bson_t *found, char *out, size_t room);

#endif
