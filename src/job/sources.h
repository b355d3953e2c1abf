/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of a job. */
#ifndef SHARDLOAD_SOURCES_H
#define SHARDLOAD_SOURCES_H

#include "job.h"

/* Finds the sources that the config names, recognises their formats, and leaves out repeated ones.
 * Whatever it returns, sl_job_clear closes the sources. */
bool sl_sources_open(sl_job *job, sl_error *error);
void sl_sources_close(sl_job *job);
const sl_plan *sl_sources_plan_of(const sl_job *job, const sl_job_source *source);
/* Parses a block of a source; as the `parse` of its format. */
bool sl_sources_parse(const sl_job *job, const sl_source_block *block, const sl_dialect *dialect,
                      sl_sink *sink, sl_parse_counts *counts);

#endif
