/* SPDX-License-Identifier: Apache-2.0 */
/* Private to duplicates.c and duplicates_by_id.c. */
#ifndef SHARDLOAD_DUPLICATES_INTERNAL_H
#define SHARDLOAD_DUPLICATES_INTERNAL_H

#include "duplicates.h"

#define SL_DIFFERENCE_ROOM 400

/* sl_duplicates_compare for documents with their own _ids. */
sl_scan_result sl_duplicates_compare_by_id(sl_duplicates *duplicates, mongoc_client_t *client,
                                           const sl_target *target, sl_error *error);

/* Calls `each` for the stored documents that have the _ids of the `count` documents in `list`. */
sl_scan_result sl_duplicates_scan(const sl_duplicates *duplicates, const uint32_t *list,
                                  uint32_t count, bool ids_only, mongoc_client_t *client,
                                  const sl_target *target,
                                  void (*each)(void *context, const bson_t *document),
                                  void *context, sl_error *error);

#endif
