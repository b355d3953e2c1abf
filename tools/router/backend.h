/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The servers behind the router: sets of nodes (the config servers, each shard), and connections to
 * the primary of a set.
 */

#ifndef ROUTER_BACKEND_H
#define ROUTER_BACKEND_H

#include <bson/bson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "stream.h"

enum {
    MAX_NODES = 50,      /* members of a replica set: the server's own limit */
    MAX_SET_NAME = 128,  /* bytes of a set's or a shard's name, NUL included */
    MAX_ADDRESS = 256,   /* bytes of "HOST:PORT", NUL included */
    MAX_REASON = 512,    /* bytes of an error's reason, NUL included */
    PRIMARY_WAIT = 20000 /* ms to wait for a primary: what mongos allows for an election */
};

/* A replica set or a standalone server. Read by all threads; only `primary` changes. */
struct node_set {
    char name[MAX_SET_NAME]; /* the shard's name; "config" for the config servers */
    char nodes[MAX_NODES][MAX_ADDRESS];
    size_t count;
    atomic_size_t primary; /* index of the last known primary, which may have changed */
};

/*
 * Fills `set` from "NAME/HOST:PORT,HOST:PORT" or "HOST:PORT". `name` replaces the one in the text;
 * NULL keeps it. False if the text has another form.
 */
bool node_set_parse(struct node_set *set, const char *name, const char *text);

/*
 * Connects to the set's primary, and searches for it for up to `patience_ms`. On success `hello`
 * (unless NULL) is initialised with the primary's reply to hello. Returns a descriptor that the
 * caller closes, or -1 with the reason in `why` (MAX_REASON bytes).
 */
int backend_connect(struct node_set *set, int watch_fd, int patience_ms, bson_t *hello, char *why);

/*
 * Connects to the server at `node`, in any role; `hello` has its role. Returns like
 * backend_connect.
 */
int backend_connect_node(const char *node, int watch_fd, bson_t *hello, char *why);

/* True if a server's hello is that of a primary or a standalone server. */
bool backend_is_primary(const bson_t *hello);

/* Sends the gathered `parts` and reads the one reply into `reply`. */
enum stream_status backend_exchange(int fd, int watch_fd, const struct iovec *parts, int count,
                                    struct buffer *reply);

/*
 * Runs `command` (with its "$db") on an open connection. `scratch` holds the reply's bytes and
 * `reply` becomes a view on them, valid until `scratch` is used again.
 */
enum stream_status backend_run(int fd, const bson_t *command, struct buffer *scratch,
                               bson_t *reply);

#endif
