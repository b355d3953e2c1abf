/* SPDX-License-Identifier: Apache-2.0 */

/* Non-blocking socket input and output with a watched second socket: see stream.h. */

#include "stream.h"

#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_PARTS = 8 };

bool buffer_reserve(struct buffer *buffer, size_t capacity) {
    if (capacity <= buffer->capacity) {
        return true;
    }
    uint8_t *grown = realloc(buffer->data, capacity);
    if (!grown) {
        return false;
    }
    buffer->data = grown;
    buffer->capacity = capacity;
    return true;
}

void buffer_destroy(struct buffer *buffer) {
    free(buffer->data);
    *buffer = (struct buffer){0};
}

void buffer_shrink(struct buffer *buffer, size_t keep) {
    buffer->length = 0;
    if (buffer->capacity > keep) {
        buffer_destroy(buffer);
    }
}

const char *stream_status_text(enum stream_status status) {
    static const char *const texts[] = {
        [STREAM_OK] = "no error",
        [STREAM_CLOSED] = "the connection was closed",
        [STREAM_BROKEN] = "the connection broke",
        [STREAM_TIMEOUT] = "it did not answer in time",
        [STREAM_ABANDONED] = "the client has disconnected",
        [STREAM_MALFORMED] = "the message is malformed or too long",
        [STREAM_NO_MEMORY] = "out of memory",
    };
    return texts[status];
}

bool stream_prepare(int fd) {
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        return false;
    }
    int on = 1;
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
}

bool stream_split_address(const char *address, char *host, size_t host_size, char *port,
                          size_t port_size) {
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || !colon[1] || strlen(colon + 1) >= port_size ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1)) {
        return false;
    }
    const char *start = address;
    size_t length = (size_t)(colon - address);
    if (start[0] == '[' && start[length - 1] == ']') {
        start += 1;
        length -= 2;
    }
    if (length == 0 || length >= host_size) {
        return false;
    }
    memcpy(host, start, length);
    host[length] = '\0';
    memcpy(port, colon + 1, strlen(colon + 1) + 1);
    return true;
}

/* Waits until `fd` is ready for `events`. STREAM_OK if it is ready, even if the peer of
 * `watch_fd` has disconnected. */
static enum stream_status wait_for(int fd, short events, int watch_fd, int timeout_ms) {
    struct pollfd polled[2] = {
        {.fd = fd, .events = events},
        {.fd = watch_fd, .events = POLLRDHUP},
    };
    for (;;) {
        int ready = poll(polled, watch_fd >= 0 ? 2 : 1, timeout_ms);
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready < 0) {
            return STREAM_BROKEN;
        }
        if (ready == 0) {
            return STREAM_TIMEOUT;
        }
        return polled[0].revents ? STREAM_OK : STREAM_ABANDONED;
    }
}

static int connect_one(const struct addrinfo *address, int watch_fd, int timeout_ms,
                       const char **why) {
    int fd = socket(address->ai_family, SOCK_STREAM, 0);
    if (fd < 0) {
        *why = strerror(errno);
        return -1;
    }
    int failure = 0;
    if (!stream_prepare(fd)) {
        failure = errno;
    } else if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        failure = errno;
        if (failure == EINPROGRESS) {
            enum stream_status status = wait_for(fd, POLLOUT, watch_fd, timeout_ms);
            socklen_t size = sizeof failure;
            if (status != STREAM_OK) {
                *why = stream_status_text(status);
                close(fd);
                return -1;
            }
            if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) {
                failure = errno;
            }
        }
    }
    if (failure != 0) {
        *why = strerror(failure);
        close(fd);
        return -1;
    }
    return fd;
}

int stream_connect(const char *host, const char *port, int watch_fd, int timeout_ms, char *why,
                   size_t why_size) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    int failure = getaddrinfo(host, port, &hints, &addresses);
    if (failure != 0) {
        snprintf(why, why_size, "%s:%s: %s", host, port, gai_strerror(failure));
        return -1;
    }
    int fd = -1;
    const char *reason = "no address";
    for (struct addrinfo *each = addresses; each && fd < 0; each = each->ai_next) {
        fd = connect_one(each, watch_fd, timeout_ms, &reason);
    }
    freeaddrinfo(addresses);
    if (fd < 0) {
        snprintf(why, why_size, "%s:%s: %s", host, port, reason);
    }
    return fd;
}

enum stream_status stream_read(int fd, int watch_fd, int timeout_ms, void *bytes, size_t length) {
    size_t done = 0;
    while (done < length) {
        ssize_t got = recv(fd, (uint8_t *)bytes + done, length - done, 0);
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0) {
            return done == 0 ? STREAM_CLOSED : STREAM_BROKEN;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            enum stream_status status = wait_for(fd, POLLIN, watch_fd, timeout_ms);
            if (status != STREAM_OK) {
                return status;
            }
        } else if (errno != EINTR) {
            return STREAM_BROKEN;
        }
    }
    return STREAM_OK;
}

enum stream_status stream_write(int fd, int watch_fd, const struct iovec *parts, int count) {
    struct iovec left[MAX_PARTS];
    int first = 0;
    for (int i = 0; i < count && i < MAX_PARTS; i++) {
        left[i] = parts[i];
    }
    for (;;) {
        while (first < count && left[first].iov_len == 0) {
            first++;
        }
        if (first == count) {
            return STREAM_OK;
        }
        struct msghdr message = {.msg_iov = left + first, .msg_iovlen = (size_t)(count - first)};
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK) {
                enum stream_status status = wait_for(fd, POLLOUT, watch_fd, -1);
                if (status != STREAM_OK) {
                    return status;
                }
            } else if (errno != EINTR) {
                return STREAM_BROKEN;
            }
            continue;
        }
        for (size_t taken = (size_t)sent; taken > 0;) {
            size_t step = taken < left[first].iov_len ? taken : left[first].iov_len;
            left[first].iov_base = (uint8_t *)left[first].iov_base + step;
            left[first].iov_len -= step;
            taken -= step;
            if (left[first].iov_len == 0) {
                first++;
            }
        }
    }
}

bool stream_is_idle(int fd) {
    uint8_t byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool stream_pause(int watch_fd, int milliseconds) {
    struct pollfd polled = {.fd = watch_fd, .events = POLLRDHUP};
    return poll(&polled, watch_fd >= 0 ? 1 : 0, milliseconds) <= 0;
}

enum stream_status stream_read_message(int fd, int watch_fd, int timeout_ms, struct buffer *into) {
    uint8_t bytes[WIRE_HEADER_SIZE];
    struct wire_header header;

    into->length = 0;
    enum stream_status status = stream_read(fd, watch_fd, timeout_ms, bytes, sizeof bytes);
    if (status != STREAM_OK) {
        return status;
    }
    if (!wire_parse_header(bytes, sizeof bytes, &header)) {
        return STREAM_MALFORMED;
    }
    if (!buffer_reserve(into, header.length)) {
        return STREAM_NO_MEMORY;
    }
    memcpy(into->data, bytes, sizeof bytes);
    status = stream_read(fd, watch_fd, timeout_ms, into->data + sizeof bytes,
                         header.length - sizeof bytes);
    if (status == STREAM_OK) {
        into->length = header.length;
    }
    return status == STREAM_CLOSED ? STREAM_BROKEN : status;
}
