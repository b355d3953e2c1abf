/* SPDX-License-Identifier: Apache-2.0 */

/* Accepts client connections and starts a thread for each, until it is stopped. */

#ifndef ROUTER_SERVER_H
#define ROUTER_SERVER_H

#include <stddef.h>

#include "session.h"

/*
 * Listens on `host` and `port` ("0": any free one). Returns the socket, with the port it has in
 * `*bound`; or -1 with the reason in `why`.
 */
int server_listen(const char *host, const char *port, int *bound, char *why, size_t why_size);

/*
 * Serves clients until a byte can be read from `stop_fd`, then ends all sessions and waits for
 * them. The caller closes both descriptors.
 */
void server_run(struct router *router, int listen_fd, int stop_fd);

#endif
