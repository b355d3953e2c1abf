/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One client connection: see session.h.
 *
 * A session belongs to one thread, so its data needs no lock. All sessions share two objects: the
 * topology, whose only variable part is an atomic number (each set's last known primary), and the
 * cursor table, which has its own lock. Another thread ends a session by shutting down the client's
 * socket: whenever the session waits, for its client or for a server, it also waits for that.
 *
 * A connection to a server is used for one command at a time and is closed when an exchange fails,
 * so that a reply is never mistaken for the reply to another command.
 */

#include "session.h"

#include "answer.h"
#include "commands.h"
#include "log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Message memory that a connection keeps between commands: several usual batches. */
enum { KEPT_MEMORY = 8 * 1024 * 1024 };

static void drop_backend(struct session *session, size_t set) {
    if (session->backends[set] >= 0) {
        close(session->backends[set]);
        session->backends[set] = -1;
    }
}

/* Replies with the error that mongos returns for a failed connection. */
static void answer_unreachable(const struct node_set *set, enum stream_status status,
                               bson_t *reply) {
    answer_error(reply, CODE_HOST_UNREACHABLE, "the primary of %s at %s failed: %s", set->name,
                 set->nodes[atomic_load(&set->primary)], stream_status_text(status));
    answer_add_retryable_label(reply);
}

/*
 * Sends the parts to the primary of a set and reads the reply into `into`. Tries once more, after a
 * new search for the primary, if the first attempt certainly had no effect or if the command may
 * run twice. False without a reply; `error` is then initialised.
 */
static bool exchange(struct session *session, size_t set, const struct iovec *parts, int count,
                     bool repeatable, struct buffer *into, bson_t *error) {
    struct node_set *nodes = &session->router->topology->sets[set];
    int *fd = &session->backends[set];
    for (int attempt = 0;; attempt++) {
        if (*fd >= 0 && !stream_is_idle(*fd)) {
            drop_backend(session, set); /* the server closed it since the last command */
        }
        if (*fd < 0) {
            char why[MAX_REASON] = "";
            *fd = backend_connect(nodes, session->fd, PRIMARY_WAIT, NULL, why);
            if (*fd < 0) {
                answer_error(error, CODE_FAILED_TO_SATISFY_READ_PREFERENCE,
                             "no primary found for %s: %s", nodes->name, why);
                answer_add_retryable_label(error);
                return false;
            }
        }
        enum stream_status status = backend_exchange(*fd, session->fd, parts, count, into);
        struct wire_message message;
        if (status == STREAM_OK && !wire_parse_message(into->data, into->length, &message)) {
            status = STREAM_MALFORMED;
        }
        if (status != STREAM_OK) {
            drop_backend(session, set);
            if (attempt == 0 && repeatable && status != STREAM_ABANDONED) {
                continue;
            }
            answer_unreachable(nodes, status, error);
            return false;
        }
        const int code = answer_code(&message.body);
        if (answer_is_not_primary(code)) {
            drop_backend(session, set);
            if (attempt == 0 && (repeatable || answer_was_not_run(code))) {
                continue;
            }
        }
        return true;
    }
}

enum outcome session_forward(struct session *session, const struct request *request, size_t set,
                             const bson_t *body, bool repeatable, bson_t *reply) {
    uint8_t prefix[WIRE_PREFIX_SIZE];
    struct iovec parts[4];
    const int count = wire_gather(body, request->id, request->message, prefix, parts);
    if (count == 0) {
        answer_error(reply, CODE_OBJECT_TOO_LARGE, "the message is longer than %d bytes",
                     session->router->topology->max_message_size - WIRE_RENAME_ROOM);
        return ANSWERED;
    }
    return exchange(session, set, parts, count, repeatable, &session->out, reply) ? FORWARDED
                                                                                  : ANSWERED;
}

bool session_run(struct session *session, size_t set, const bson_t *command, bson_t *reply) {
    uint8_t prefix[WIRE_PREFIX_SIZE];
    struct iovec parts[4];
    struct wire_message message;
    const int count = wire_gather(command, 1, NULL, prefix, parts);
    if (count == 0) {
        return answer_error(reply, CODE_OBJECT_TOO_LARGE, "the command is too long");
    }
    if (!exchange(session, set, parts, count, false, &session->inner, reply)) {
        return false;
    }
    wire_parse_message(session->inner.data, session->inner.length, &message);
    bson_copy_to(&message.body, reply);
    return answer_code(reply) == CODE_OK;
}

bool session_run_built(struct session *session, size_t set, bson_t *command, bson_t *reply) {
    const bool good = session_run(session, set, command, reply);
    bson_destroy(command);
    return good;
}

bool session_forwarded_body(const struct session *session, bson_t *body) {
    struct wire_message message;
    return wire_parse_message(session->out.data, session->out.length, &message) &&
           bson_init_static(body, bson_get_data(&message.body), message.body.len);
}

static enum stream_status send_out(struct session *session) {
    const struct iovec part = {session->out.data, session->out.length};
    return stream_write(session->fd, -1, &part, 1);
}

/* Sets the body, name and target of the request. False (with an error in `reply`) if it is not a
 * command. */
static bool read_request(struct request *request, const bson_t *body, bson_t *reply) {
    bson_iter_t iter;
    request->body = body;
    if (!bson_iter_init(&iter, body) || !bson_iter_next(&iter)) {
        return answer_error(reply, CODE_FAILED_TO_PARSE, "an empty document is not a command");
    }
    request->name = bson_iter_key(&iter);
    request->target = BSON_ITER_HOLDS_UTF8(&iter) ? bson_iter_utf8(&iter, NULL) : NULL;
    return true;
}

/* Answers an OP_MSG. The caller closes the connection unless the status is STREAM_OK. */
static enum stream_status serve_message(struct session *session) {
    struct wire_message message;
    bson_t reply;
    bson_iter_t iter;
    if (!wire_parse_message(session->in.data, session->in.length, &message)) {
        return STREAM_MALFORMED;
    }
    struct request request = {.message = &message, .id = message.header.request_id};
    enum outcome outcome = ANSWERED;
    if (read_request(&request, &message.body, &reply)) {
        if (!bson_iter_init_find(&iter, &message.body, "$db") || !BSON_ITER_HOLDS_UTF8(&iter)) {
            answer_error(&reply, CODE_FAILED_TO_PARSE, "the command names no database ($db)");
        } else {
            request.db = bson_iter_utf8(&iter, NULL);
            outcome = command_run(session, &request, &reply);
        }
    }
    if (outcome == ANSWERED) {
        const bool built =
            wire_build_reply(&session->out, message.header.request_id, OP_MSG, &reply);
        bson_destroy(&reply);
        if (!built) {
            return STREAM_NO_MEMORY;
        }
    }
    /* A client of an unacknowledged command gets no reply; the server's reply is discarded. */
    return message.flags & WIRE_MORE_TO_COME ? STREAM_OK : send_out(session);
}

/* Replies to an OP_QUERY, which drivers use for their first handshake. Other commands are
 * refused. */
static enum stream_status serve_query(struct session *session) {
    struct wire_query query;
    bson_t reply;
    if (!wire_parse_query(session->in.data, session->in.length, &query)) {
        return STREAM_MALFORMED;
    }
    struct request request = {.id = query.header.request_id, .db = "admin"};
    if (read_request(&request, &query.body, &reply)) {
        if (strstr(query.collection, ".$cmd") && command_is_handshake(request.name)) {
            command_run(session, &request, &reply); /* never forwarded */
        } else {
            answer_error(&reply, CODE_UNSUPPORTED_OP_QUERY, "Unsupported OP_QUERY command: %s",
                         request.name);
        }
    }
    const bool built = wire_build_reply(&session->out, query.header.request_id, OP_REPLY, &reply);
    bson_destroy(&reply);
    return built ? send_out(session) : STREAM_NO_MEMORY;
}

void session_serve(struct router *router, int fd, uint64_t number, const char *peer) {
    const size_t shards = router->topology->count - 1;
    struct session session = {.router = router, .fd = fd, .number = number};
    snprintf(session.peer, sizeof session.peer, "%s", peer);
    session.home = CONFIG_SET + 1 + (size_t)(number % shards);
    session.backends = malloc(router->topology->count * sizeof *session.backends);
    if (!session.backends) {
        return;
    }
    for (size_t i = 0; i < router->topology->count; i++) {
        session.backends[i] = -1;
    }

    enum stream_status status;
    while ((status = stream_read_message(fd, -1, -1, &session.in)) == STREAM_OK) {
        struct wire_header header;
        wire_parse_header(session.in.data, session.in.length, &header);
        if (header.opcode == OP_MSG) {
            status = serve_message(&session);
        } else if (header.opcode == OP_QUERY) {
            status = serve_query(&session);
        } else {
            status = STREAM_MALFORMED;
        }
        if (status != STREAM_OK) {
            break;
        }
        buffer_shrink(&session.in, KEPT_MEMORY);
        buffer_shrink(&session.out, KEPT_MEMORY);
        buffer_shrink(&session.inner, KEPT_MEMORY);
    }
    if (status == STREAM_MALFORMED || status == STREAM_NO_MEMORY) {
        router_log("leaving client %s: %s", session.peer, stream_status_text(status));
    }

    for (size_t i = 0; i < router->topology->count; i++) {
        drop_backend(&session, i);
    }
    free(session.backends);
    buffer_destroy(&session.in);
    buffer_destroy(&session.out);
    buffer_destroy(&session.inner);
}
