/* SPDX-License-Identifier: Apache-2.0 */
/* What the servers examine for one answer of a query. */
#ifndef QUERY_EXPLAIN_H
#define QUERY_EXPLAIN_H

#include "operation.h"

/* Fills run->examined, and run->explained where the server explains the operation. The query is
 * prepared here. False, with run->error set, only without memory: a server that does not explain
 * leaves both unknown. `documents` in the collection; 0: not known. */
bool sl_explain_query(sl_runner *runner, uint64_t documents, sl_query_run *run);

#endif
