/* SPDX-License-Identifier: Apache-2.0 */
/* One server of a deployment, on a separate connection, whatever its role: a router, a primary, a
 * secondary. Every command ends after a limit, whether or not the server answers. */
#ifndef SHARDLOAD_MEMBER_H
#define SHARDLOAD_MEMBER_H

#include "connection.h"

/* "host:port" */
#define SL_MEMBER_NAME_ROOM 280

typedef struct sl_member sl_member;

/* Makes a client of the server, with the user, TLS options and compressors of the connection; does
 * not connect yet. One thread at a time uses it. NULL with the error set when the name is not
 * HOST:PORT, or without memory. */
sl_member *sl_member_open(const sl_connection *connection, const char *host_and_port,
                          unsigned limit_ms, sl_error *error);
void sl_member_close(sl_member *member); /* NULL is fine */

/* Runs a command. `reply` is always initialised. `*code`: the server's error code,
 * SL_MEMBER_UNKNOWN_USER (of this server), or 0 when the server did not answer. */
#define SL_MEMBER_UNKNOWN_USER 18
bool sl_member_command(sl_member *member, const char *database, const bson_t *command,
                       bson_t *reply, int32_t *code, sl_error *error);

/* Do all hosts of the URI belong to one deployment: to the routers of one cluster, or to one
 * replica set? If not, the driver uses some of them only, or all. SL_EXIT_USAGE with their names.
 * Hosts that do not answer are not checked. */
bool sl_check_hosts(sl_connection *connection, sl_error *error);

/* Calls `found` with the name of each server that the connection knows: routers, members of the
 * replica set, or the standalone server. */
void sl_connection_each_host(sl_connection *connection,
                             void (*found)(void *context, const char *host_and_port),
                             void *context);

#endif
