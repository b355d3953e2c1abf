/* SPDX-License-Identifier: Apache-2.0 */
/* The rejects of a load by reason and column: at the end of the summary, and in run.json. */
#ifndef SHARDLOAD_REJECT_SUMMARY_H
#define SHARDLOAD_REJECT_SUMMARY_H

#include <bson/bson.h>

#include "ledger/reject_kinds.h"

/* Logs what sl_reject_summary_record has appended to a record; nothing if there were no rejects.
 * `of`: the source of the rejects; NULL where a load has only one kind of sources. */
void sl_reject_summary_log(const bson_t *record, const char *of);
/* `all`: the number of rejects in the totals. Those that are in no kind belong to blocks that were
 * not completed before an early end. */
void sl_reject_summary_record(const sl_reject_kinds *kinds, uint64_t all, bson_t *record);

#endif
