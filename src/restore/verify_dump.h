/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload verify --dump`: compares a dump with the cluster, to test a backup. */
#ifndef SHARDLOAD_VERIFY_DUMP_H
#define SHARDLOAD_VERIFY_DUMP_H

#include "restore.h"

/* Compares kind, options, validator, indexes and documents (with `content` byte by byte, otherwise
 * their number) of each namespace that is not left out. Changes nothing on the cluster. Logs its
 * errors; SL_EXIT_VERIFICATION if a namespace differs. An archive is unpacked into the work
 * directory, which must then be given. */
sl_exit sl_verify_dump_run(const sl_restore_config *config, bool content, uint64_t problems_shown);

#endif
