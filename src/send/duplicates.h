/* SPDX-License-Identifier: Apache-2.0 */
/* Duplicates: documents of a batch that cannot be inserted because a document with the same _id is
 * stored. Determines whether the stored document is equal, from an earlier attempt, or another one.
 * One thread. */
#ifndef SHARDLOAD_DUPLICATES_H
#define SHARDLOAD_DUPLICATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bson/bson.h>

#include "cluster/cluster.h"

typedef struct sl_duplicates {
    const bson_t *const *documents; /* of the batch; borrowed */
    uint32_t count;
    bool own_ids;      /* the _ids are of any type and in no order */
    bool *repeated;    /* with own_ids, one per document: it equals the stored document, but another
                          equal document of the batch counts as the stored one */
    bool *marked;      /* one per document */
    char **difference; /* one per document: how the stored document differs; NULL where equal */
    bool *missing;     /* one per document: its _id is not stored. NULL: such a document is an
                          error */
    uint32_t at;       /* index of the document being compared */
    int64_t lost;      /* with `is_lost`: an _id under which no document was found */
    bool is_lost;
} sl_duplicates;

/* False without memory. Clear it in any case. */
bool sl_duplicates_init(sl_duplicates *duplicates, const bson_t *const *documents, uint32_t count,
                        bool own_ids);
void sl_duplicates_clear(sl_duplicates *duplicates);

/* Marks a document that the server refused as a duplicate of _id. */
void sl_duplicates_mark(sl_duplicates *duplicates, uint32_t index);

/* Reads the documents stored under the marked ids and compares them: one find per block that has
 * duplicates, or for 1000 ids. Sets `difference` where another document is stored. SL_SCAN_AGAIN
 * also when no document is found under a marked _id. */
sl_scan_result sl_duplicates_compare(sl_duplicates *duplicates, mongoc_client_t *client,
                                     const sl_target *target, sl_error *error);

/* Searches for the documents of a batch that an earlier attempt may have inserted, before the batch
 * is sent: a server takes a hundred times longer to refuse a document than to find it. `*any`
 * false: no document of a sample is stored. Otherwise, and for any capped collection, `missing` and
 * `difference` are set for all documents. */
sl_scan_result sl_duplicates_find(sl_duplicates *duplicates, mongoc_client_t *client,
                                  const sl_target *target, bool *any, sl_error *error);

/* As sl_duplicates_find, without a sample. */
sl_scan_result sl_duplicates_find_all(sl_duplicates *duplicates, mongoc_client_t *client,
                                      const sl_target *target, sl_error *error);

/* A number for the _id of a document, for sums that tell sets of _ids apart: the lower half counts
 * _ids, the upper half adds their hashes. */
uint64_t sl_id_sum(const bson_t *document);

/* ---- documents compared with stored ones ---- */

/* Comparison of expected documents with the documents found in the same interval of _ids, byte by
 * byte. One thread. */

typedef enum sl_finding {
    SL_MISSING,   /* expected, and not found */
    SL_DIFFERENT, /* found under its _id, with other bytes */
    SL_EXTRA,     /* found, and not expected; also a second document of one _id, on another shard */
    SL_REJECTED,  /* a record that the parser rejects, so it cannot be compared */
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
