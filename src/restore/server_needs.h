/* SPDX-License-Identifier: Apache-2.0 */
/* Is the server new enough for the collections of a dump? */
#ifndef SHARDLOAD_SERVER_NEEDS_H
#define SHARDLOAD_SERVER_NEEDS_H

#include "cluster/connection.h"

#include "dump.h"

/* SL_EXIT_CLUSTER with the namespace, the version that it needs and the server's version. */
bool sl_dump_fits_server(const sl_dump *dump, const sl_server *server, sl_error *error);

#endif
