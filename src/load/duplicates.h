/* SPDX-License-Identifier: Apache-2.0 */
/* Duplicates: documents of a batch that the server did not insert, or would not, because their _id
 * is taken. Are they there already, from an earlier attempt, or does another document stand in their
 * place? One thread. */
#ifndef SHARDLOAD_DUPLICATES_H
#define SHARDLOAD_DUPLICATES_H

#include <shardload/cluster.h>

typedef struct sl_duplicates {
    const bson_t *const *documents; /* of the batch; borrowed */
    uint32_t count;
    bool *marked;      /* one per document */
    char **difference; /* one per document: in what the other one differs; NULL where equal */
    bool *missing;     /* one per document: nothing is found under its _id. NULL: that is an error */
    uint32_t at;       /* the document that the comparison has come to */
    int64_t lost;      /* with `is_lost`: an _id under which nothing was found */
    bool is_lost;
} sl_duplicates;

/* False without memory. Clear it in any case. */
bool sl_duplicates_init(sl_duplicates *duplicates, const bson_t *const *documents, uint32_t count);
void sl_duplicates_clear(sl_duplicates *duplicates);

/* The server says that the _id of this document is taken. */
void sl_duplicates_mark(sl_duplicates *duplicates, uint32_t index);

/* Reads what stands under the ids that are marked, and compares: one find per block of which there
 * are duplicates, whose documents are read once and not kept. Afterwards `difference` tells which
 * are others. SL_SCAN_AGAIN also when nothing is found any more under an _id. */
sl_scan_result sl_duplicates_judge(sl_duplicates *duplicates, mongoc_client_t *client,
                                   const sl_target *target, sl_error *error);

/* Looks, before a batch is sent that an earlier attempt may have brought home, whether it has: a
 * server takes a hundred times longer to refuse a document than to find it. `*any` false: as far as
 * a sample shows, none is there. Else `missing` and `difference` tell of every document. */
sl_scan_result sl_duplicates_look(sl_duplicates *duplicates, mongoc_client_t *client,
                                  const sl_target *target, bool *any, sl_error *error);

#endif
