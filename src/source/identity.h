/* SPDX-License-Identifier: Apache-2.0 */
/* Is a source still the file that was looked at first? Compared at each open, after each block that
 * was read, and at the end. */
#ifndef SHARDLOAD_SOURCE_IDENTITY_H
#define SHARDLOAD_SOURCE_IDENTITY_H

#include <sys/stat.h>

#include "source_set.h"

/* The identity of a regular file; all zero for anything else. */
sl_source_identity sl_identity_of(const struct stat *facts);

/* Compares a source with its open file, from which bytes were just read or will be. False, and
 * SL_EXIT_SOURCE with what has changed, when it is not the file that it was. True for a source that
 * has no identity. Any thread. */
bool sl_identity_check_open(sl_source_set *set, size_t index, int file, sl_error *error);

/* The same with what is at its path. */
bool sl_identity_check_path(sl_source_set *set, size_t index, sl_error *error);

#endif
