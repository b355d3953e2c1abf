/* SPDX-License-Identifier: Apache-2.0 */
/* Explains queries: their plans, and the number of documents that the servers examine. */
#ifndef QUERY_EXPLAIN_H
#define QUERY_EXPLAIN_H

#include "operation.h"

/* Sets run->examined, and run->explained if the server explains the operation. Prepares the runner.
 * `documents`: in the collection, 0: unknown. False, with run->error set, only without memory; a
 * server that does not explain the query is not an error. */
bool sl_explain_query(sl_runner *runner, uint64_t documents, sl_query_run *run);

#endif
