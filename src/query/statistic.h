/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics that the client computes itself: minimum, maximum, sum and count of one field over the
 * documents of a find. */
#ifndef QUERY_STATISTIC_H
#define QUERY_STATISTIC_H

#include "operation.h"

/* Runs the query with as many threads as it says, each over its share of the documents, and puts
 * {min, max, sum, count} into `answer`, which is initialised; nothing when no document has a number in
 * the field. `documents` in the collection are shared out where the query has no limit. Clients come
 * from the connection's pool. */
bool sl_statistic_run(sl_connection *connection, const sl_query *query, const sl_place *place,
                      uint64_t documents, bson_t *answer, sl_result *result, sl_error *error);

#endif
