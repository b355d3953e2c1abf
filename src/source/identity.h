/* SPDX-License-Identifier: Apache-2.0 */
/* Detects that a source's file has changed since the set was created. Checked at each open, after
 * each block read, and at the end. */
#ifndef SHARDLOAD_SOURCE_IDENTITY_H
#define SHARDLOAD_SOURCE_IDENTITY_H

#include <sys/stat.h>

#include "source_set.h"

/* The identity of a regular file; all zero for other kinds. */
sl_source_identity sl_identity_of(const struct stat *facts);

/* Compares a source's identity with that of the open descriptor `file`. False when the file has
 * changed; the error (SL_EXIT_SOURCE) describes the change. True for a source without identity. Any
 * thread. */
bool sl_identity_check_open(sl_source_set *set, size_t index, int file, sl_error *error);

/* The same for the file that is now at the source's path. */
bool sl_identity_check_path(sl_source_set *set, size_t index, sl_error *error);

#endif
