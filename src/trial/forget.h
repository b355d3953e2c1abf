/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload forget`: removes what finished and dead loads leave. docs/remains.md lists it. */
#ifndef SHARDLOAD_FORGET_H
#define SHARDLOAD_FORGET_H

#include "load/load.h"

/* With a database and a collection in the configuration: drops the registry of the collection, and
 * the temporary collections that ended processes of this host have left beside it, and restores a
 * balancer that dead loads have left stopped. Removes the files of loads from the work
 * directories, and those that are empty then. Documents are not changed. Logs errors and returns
 * the exit code. */
sl_exit sl_forget_run(const sl_load_config *config, const char *const *directories, size_t count);

#endif
