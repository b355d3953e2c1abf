/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a command writes neither to files that it reads nor to files of a user. */
#ifndef SHARDLOAD_OUTPUTS_H
#define SHARDLOAD_OUTPUTS_H

#include "load_config.h"
#include "source/source.h"
#include "util/error.h"

/* Refuses (SL_EXIT_USAGE) a --report, --html or --metrics-file that is a source, a schema, a file
 * of the work directory or another output, or that lies in a folder all of whose files are sources:
 * it would replace that file, or be loaded itself by the next load. `set`: the sources; `dump`: the
 * dump of a restore; each may be NULL. Nothing is written. */
bool sl_outputs_check(const sl_load_config *config, const sl_source_set *set, const char *dump,
                      sl_error *error);

/* Refuses (SL_EXIT_USAGE) a --work-dir that holds files and is no work directory of this program: a
 * command would replace those with the names of its own. A folder that does not exist, or is empty,
 * is fine, and so is one that cannot be read: creating files there fails. Nothing is written. */
bool sl_outputs_check_folder(const char *directory, sl_error *error);

#endif
