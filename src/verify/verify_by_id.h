/* SPDX-License-Identifier: Apache-2.0 */
/* Verification of documents with their own _id. */
#ifndef SHARDLOAD_VERIFY_BY_ID_H
#define SHARDLOAD_VERIFY_BY_ID_H

#include "verification.h"

/* Looks up `count` consecutive documents of a block, whose records begin at `offsets`, and adds the
 * outcome to the totals and the problems. */
bool sl_verify_slice_by_id(sl_verification *verification, mongoc_client_t *client,
                           const sl_source_block *block, const uint8_t *documents,
                           const uint64_t *offsets, uint32_t count, sl_range_totals *totals,
                           sl_error *error);

/* Compares the number of documents of the collection with those found, or, without `content`, with
 * those expected. */
bool sl_verify_total_by_id(sl_verification *verification, sl_error *error);

#endif
