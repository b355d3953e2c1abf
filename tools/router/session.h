/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One client connection: its loop from the first message to the last, and the router's own
 * connections to the servers that it opens on the way.
 */

#ifndef ROUTER_SESSION_H
#define ROUTER_SESSION_H

#include <bson/bson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cursors.h"
#include "stream.h"
#include "topology.h"
#include "wire.h"

/* Shared by all sessions; created before the first one and destroyed after the last one. */
struct router {
    struct topology *topology;
    struct cursors *cursors;
};

struct session {
    struct router *router;
    int fd;              /* the client's socket */
    uint64_t number;     /* connections are numbered from 0 */
    char peer[64];       /* the client's address */
    size_t home;         /* the shard this connection routes through */
    int *backends;       /* one descriptor for each set of the topology; -1: not connected */
    struct buffer in;    /* the client's message */
    struct buffer out;   /* the reply to it */
    struct buffer inner; /* replies to commands that the router itself sends */
};

struct command;

/* A command of a client; all pointers are into session->in. */
struct request {
    const struct wire_message *message; /* NULL for the old handshake, which has no sections */
    const bson_t *body;
    int32_t id;
    const char *name;              /* the command's name, as the client wrote it */
    const struct command *command; /* its entry in the table of commands; set by command_run */
    const char *db;                /* its "$db" */
    const char *target;            /* the text of its first field, usually a collection; or NULL */
};

/* How a command was answered. */
enum outcome {
    ANSWERED,  /* in the `reply` document, which was initialised */
    FORWARDED, /* in session->out, as the server sent it; `reply` was not initialised */
};

/* Serves the client at `fd` until it disconnects. Does not close `fd`. */
void session_serve(struct router *router, int fd, uint64_t number, const char *peer);

/*
 * Sends `body`, with the request's document sequences, to the primary of a set, and leaves its
 * reply in session->out. `repeatable` says that running the command twice does no harm, so that it
 * may be sent again when a connection breaks. Errors of the server's are forwarded like any other
 * reply; a server that cannot be reached gives an ANSWERED error.
 */
enum outcome session_forward(struct session *session, const struct request *request, size_t set,
                             const bson_t *body, bool repeatable, bson_t *reply);

/*
 * Runs a command of the router itself on the primary of a set. `reply` is always initialised, as a
 * copy that the caller destroys. True if it is `ok: 1`; otherwise it can be returned to the
 * client. */
bool session_run(struct session *session, size_t set, const bson_t *command, bson_t *reply);

/* As session_run; destroys the command. */
bool session_run_built(struct session *session, size_t set, bson_t *command, bson_t *reply);

/* The document in session->out, as a view. False if there is none. */
bool session_forwarded_body(const struct session *session, bson_t *body);

#endif
