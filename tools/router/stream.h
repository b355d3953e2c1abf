/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sockets with timeouts, and the growable byte buffer for messages.
 *
 * Every socket is non-blocking. Reads and writes take a `watch_fd`: while one thread waits for a
 * server on behalf of a client, it watches the client's socket as well, and gives up as soon as
 * that client has hung up. A `watch_fd` of -1 watches nothing.
 */

#ifndef ROUTER_STREAM_H
#define ROUTER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct buffer {
    uint8_t *data;
    size_t length;
    size_t capacity;
};

/* Grows the buffer to at least `capacity` bytes and keeps its content. False when out of memory. */
bool buffer_reserve(struct buffer *buffer, size_t capacity);

/* Frees the memory; the buffer is empty and can be used again. */
void buffer_destroy(struct buffer *buffer);

/* Frees the memory if it is more than `keep` bytes; the content is lost. */
void buffer_shrink(struct buffer *buffer, size_t keep);

enum stream_status {
    STREAM_OK,
    STREAM_CLOSED,    /* the peer closed in an orderly way before the first byte */
    STREAM_BROKEN,    /* the connection failed, or ended in the middle */
    STREAM_TIMEOUT,   /* no byte was transferred within the timeout */
    STREAM_ABANDONED, /* the peer of `watch_fd` has disconnected */
    STREAM_MALFORMED, /* the bytes are not a valid message, or it is too long */
    STREAM_NO_MEMORY,
};

/* Describes a status, for logs and errors. */
const char *stream_status_text(enum stream_status status);

/*
 * Connects to `host` (a name or an address) and `port` within `timeout_ms`. Returns the descriptor,
 * non-blocking and with TCP_NODELAY, which the caller closes; or -1, with the reason in `why`.
 */
int stream_connect(const char *host, const char *port, int watch_fd, int timeout_ms, char *why,
                   size_t why_size);

/* Splits "HOST:PORT" or "[ADDRESS]:PORT" into its two parts. False when it is neither. */
bool stream_split_address(const char *address, char *host, size_t host_size, char *port,
                          size_t port_size);

/* Sets the flags that every socket here has. False when the system refuses. */
bool stream_prepare(int fd);

/* Reads exactly `length` bytes. `timeout_ms` of -1 waits for ever. */
enum stream_status stream_read(int fd, int watch_fd, int timeout_ms, void *bytes, size_t length);

/* Writes all of `count` (at most 8) parts, without changing `parts`. */
enum stream_status stream_write(int fd, int watch_fd, const struct iovec *parts, int count);

/* True if a connection is open and has no unread bytes, so that it can be used for a command. */
bool stream_is_idle(int fd);

/* Sleeps. Returns false, early, if the peer of `watch_fd` disconnects. */
bool stream_pause(int watch_fd, int milliseconds);

/*
 * Reads one complete wire message into `into`, replacing its content. The length field is checked
 * against the protocol's limits before anything is allocated.
 */
enum stream_status stream_read_message(int fd, int watch_fd, int timeout_ms, struct buffer *into);

#endif
