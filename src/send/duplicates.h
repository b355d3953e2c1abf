/* SPDX-License-Identifier: Apache-2.0 */
/* Duplicates: documents of a batch that cannot be inserted because a document with the same _id is
 * stored. Determines whether the stored document is equal, from an earlier attempt, or another one.
 * One thread. */
#ifndef SHARDLOAD_DUPLICATES_H
#define SHARDLOAD_DUPLICATES_H

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
 * false: no document of a sample is stored. Otherwise `missing` and `difference` are set for all
 * documents. */
sl_scan_result sl_duplicates_find(sl_duplicates *duplicates, mongoc_client_t *client,
                                  const sl_target *target, bool *any, sl_error *error);

/* As sl_duplicates_find, without a sample. */
sl_scan_result sl_duplicates_find_all(sl_duplicates *duplicates, mongoc_client_t *client,
                                      const sl_target *target, sl_error *error);

/* ---- between duplicates.c and duplicates_by_id.c ---- */

#define SL_DIFFERENCE_ROOM 400

/* As sl_duplicates_compare, for documents that have their own _id. */
sl_scan_result sl_duplicates_compare_by_id(sl_duplicates *duplicates, mongoc_client_t *client,
                                           const sl_target *target, sl_error *error);

/* Calls `each` for the stored documents that have the _ids of the `count` documents in `list`. */
sl_scan_result sl_duplicates_scan(const sl_duplicates *duplicates, const uint32_t *list,
                                  uint32_t count, bool ids_only, mongoc_client_t *client,
                                  const sl_target *target,
                                  void (*each)(void *context, const bson_t *document),
                                  void *context, sl_error *error);

#endif
