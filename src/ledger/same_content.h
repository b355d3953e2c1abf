/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that an earlier load has loaded under another name. The registry does not notice them,
 * because a fingerprint covers the name. So the records (run.json) in the work directories beside
 * that of this load are searched for a source with the same content. */
#ifndef SHARDLOAD_SAME_CONTENT_H
#define SHARDLOAD_SAME_CONTENT_H

#include "job/job.h"

/* Logs the sources whose content a completed load beside `work_directory` has loaded under another
 * name. False with error (SL_EXIT_SOURCE) when that load was into the same collection, and this
 * load would store its documents a second time; --again and --drop allow it. Called before anything
 * is changed. */
bool sl_same_content_check(const sl_job *job, const sl_destination *destination,
                           const char *work_directory, sl_error *error);

#endif
