/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics that the client computes: minimum, maximum, sum and count of one field over the
 * documents of a find. */
#ifndef QUERY_STATISTIC_H
#define QUERY_STATISTIC_H

#include "operation.h"

/* Runs the query in query->threads threads, each over a part of the documents, and appends {min,
 * max, sum, count} to `answer`; nothing when the field holds no number in any document.
 * `documents`: in the collection, used when the query has no limit. The clients are borrowed from
 * the connection's pool. */
bool sl_statistic_run(sl_connection *connection, const sl_query *query,
                      const sl_query_target *target, uint64_t documents, bson_t *answer,
                      sl_result *result, sl_error *error);

#endif
