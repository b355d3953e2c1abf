/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to the hosts of a URI. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

/* Connects to one address. Returns a blocking socket, or -1. */
static int connect_to(const struct sockaddr *address, socklen_t length, int milliseconds) {
    int file = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    socklen_t size = sizeof error;
    struct pollfd ready = {.fd = file, .events = POLLOUT};
    if (file < 0)
        return -1;
    if ((connect(file, address, length) == 0 ||
         (errno == EINPROGRESS && poll(&ready, 1, milliseconds) == 1 &&
          getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)) &&
        fcntl(file, F_SETFL, 0) == 0)
        return file;
    close(file);
    return -1;
}

static int connect_to_path(const char *path, int milliseconds) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path)
        return -1;
    memcpy(address.sun_path, path, length);
    return connect_to((struct sockaddr *)&address, sizeof address, milliseconds);
}

int sl_socket_connect(const mongoc_host_list_t *host, int milliseconds) {
    char port[8];
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int file = -1;
    if (strchr(host->host, '/'))
        return connect_to_path(host->host, milliseconds);
    snprintf(port, sizeof port, "%u", host->port);
    if (getaddrinfo(host->host, port, &hints, &found) != 0)
        return -1;
    for (const struct addrinfo *one = found; one && file < 0; one = one->ai_next)
        file = connect_to(one->ai_addr, one->ai_addrlen, milliseconds);
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
