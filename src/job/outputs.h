/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a command does not use a folder of a user as its work directory. */
#ifndef SHARDLOAD_OUTPUTS_H
#define SHARDLOAD_OUTPUTS_H

#include "util/error.h"

/* Refuses (SL_EXIT_USAGE) a --work-dir that holds files and is no work directory of this program: a
 * command would replace those with the names of its own. A folder that does not exist, or is empty,
 * is fine, and so is one that cannot be read: creating files there fails. Nothing is written. */
bool sl_outputs_check_folder(const char *directory, sl_error *error);

#endif
