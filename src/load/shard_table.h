/* SPDX-License-Identifier: Apache-2.0 */
/* The table of shards at the end of a load. */
#ifndef SHARDLOAD_SHARD_TABLE_H
#define SHARDLOAD_SHARD_TABLE_H

#include "record.h"

/* Records and logs the documents and bytes of the collection on each shard. `succeeded`: the load
 * has not failed, so the documents may be counted where the servers' statistics are in doubt. */
void sl_shard_table(sl_load *load, bool succeeded);

#endif
