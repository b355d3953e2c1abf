/* SPDX-License-Identifier: Apache-2.0 */
/* Plain sockets, the clock, error messages: see plain.h. */
#include "plain.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"

bool complain(const char *what, const char *why) {
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    return false;
}

int open_socket(const char *host, const char *port) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    int on = 1, made = -1;
    int status = getaddrinfo(host, port, &hints, &found);
    if (status != 0) {
        complain(host, gai_strerror(status));
        return -1;
    }
    for (struct addrinfo *one = found; one != NULL && made < 0; one = one->ai_next) {
        made = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
        if (made >= 0 && connect(made, one->ai_addr, one->ai_addrlen) != 0) {
            complain(host, strerror(errno));
            close(made);
            made = -1;
        }
    }
    freeaddrinfo(found);
    if (made >= 0 && setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        complain("TCP_NODELAY", strerror(errno)); /* not a failure: only slower */
    return made;
}

bool read_bytes(int from, uint8_t *to, size_t count) {
    while (count > 0) {
        ssize_t got = recv(from, to, count, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return complain("reading a reply", got < 0 ? strerror(errno) : "connection closed");
        to += got;
        count -= (size_t)got;
    }
    return true;
}

double now(void) {
    return (double)sl_clock_ns() / 1e9;
}
