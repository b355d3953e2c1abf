/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to the hosts of a URI. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

/* Waits until the connection is made. Returns 0 or an errno. */
static int await_connection(int file, int milliseconds) {
    int error = 0;
    socklen_t size = sizeof error;
    struct pollfd ready = {.fd = file, .events = POLLOUT};
    int count = poll(&ready, 1, milliseconds);
    if (count == 0)
        return ETIMEDOUT;
    return count < 0 || getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

/* Connects to one address. Returns a blocking socket, or -1 with errno set. */
static int connect_to(const struct sockaddr *address, socklen_t length, int milliseconds) {
    int file = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (file < 0)
        return -1;
    int code = connect(file, address, length) == 0 ? 0 : errno;
    if (code == EINPROGRESS)
        code = await_connection(file, milliseconds);
    if (code == 0 && fcntl(file, F_SETFL, 0) == 0)
        return file;
    close(file);
    errno = code ? code : EBADF;
    return -1;
}

static int connect_to_path(const char *path, int milliseconds) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, length);
    return connect_to((struct sockaddr *)&address, sizeof address, milliseconds);
}

/* Sets the reason why a connection failed. A missing reply may still arrive later; all other
 * reasons are final. */
static void explain(int code, int milliseconds, sl_socket_failure *failure) {
    *failure = (sl_socket_failure){.in_time = code != ETIMEDOUT};
    switch (code) {
    case ECONNREFUSED:
        snprintf(failure->why, sizeof failure->why, "no server listens there (connection refused)");
        return;
    case ENOENT:
        snprintf(failure->why, sizeof failure->why, "there is no such socket");
        return;
    case ETIMEDOUT:
        snprintf(failure->why, sizeof failure->why, "no connection within %g s",
                 (double)milliseconds / 1000);
        return;
    default:
        snprintf(failure->why, sizeof failure->why, "%s", strerror(code));
    }
}

static void explain_name(int code, sl_socket_failure *failure) {
    *failure = (sl_socket_failure){.in_time = true};
    if (code == EAI_NONAME)
        snprintf(failure->why, sizeof failure->why, "DNS knows no host of this name");
    else if (code == EAI_AGAIN)
        snprintf(failure->why, sizeof failure->why,
                 "the name cannot be resolved: DNS does not answer");
    else
        snprintf(failure->why, sizeof failure->why, "the name cannot be resolved: %s",
                 code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code));
}

int sl_socket_connect(const mongoc_host_list_t *host, int milliseconds,
                      sl_socket_failure *failure) {
    char port[8];
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    sl_socket_failure unused;
    int file = -1;
    if (!failure)
        failure = &unused;
    if (strchr(host->host, '/')) {
        file = connect_to_path(host->host, milliseconds);
    } else {
        snprintf(port, sizeof port, "%u", host->port);
        int code = getaddrinfo(host->host, port, &hints, &found);
        if (code != 0) {
            explain_name(code, failure);
            return -1;
        }
        for (const struct addrinfo *one = found; one && file < 0; one = one->ai_next)
            file = connect_to(one->ai_addr, one->ai_addrlen, milliseconds);
    }
    if (file < 0)
        explain(errno, milliseconds, failure);
    if (found)
        freeaddrinfo(found);
    return file;
}

bool sl_socket_set_timeout(int file, int option, int64_t milliseconds) {
    const struct timeval timeout = {.tv_sec = milliseconds / 1000,
                                    .tv_usec = milliseconds % 1000 * 1000};
    return setsockopt(file, SOL_SOCKET, option, &timeout, sizeof timeout) == 0;
}

void sl_socket_keep_alive(int file) {
    static const struct {
        int level, option, value;
    } options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, 120},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 10},
                   {IPPROTO_TCP, TCP_KEEPCNT, 9},
                   {IPPROTO_TCP, TCP_NODELAY, 1}};
    /* Failures are ignored: on a Unix socket, setting a TCP option fails. */
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        setsockopt(file, options[i].level, options[i].option, &options[i].value,
                   sizeof options[i].value);
}
