/* SPDX-License-Identifier: Apache-2.0 */
/* The dialects of archive entries. The job's entries_lock guards the entries being read. */
#ifndef SHARDLOAD_ARCHIVE_ENTRIES_H
#define SHARDLOAD_ARCHIVE_ENTRIES_H

#include "job.h"

/* The dialect of a block's text; *dialect NULL: the block's entry is not loaded. Valid until
 * sl_sources_done_with, which must be called once for each block. Any thread. */
bool sl_sources_dialect(sl_job *job, const sl_source_block *block, const sl_dialect **dialect,
                        sl_error *error);
void sl_sources_done_with(sl_job *job, const sl_source_block *block);
void sl_archive_entries_clear(const sl_job_source *source);

#endif
