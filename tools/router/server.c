/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Accepting connections, a thread for each, and stopping: see server.h.
 *
 * Why this is correct. The threads are detached; the only record of them is a list of open
 * connections under one lock.
 *
 *   accepting thread                     thread of a session
 *   ----------------                     -------------------
 *   lock, add to list, unlock
 *   create thread ─────────────────────► serve the client
 *   ...                                  lock
 *   lock                                 take out of list, close the socket
 *   shut down every socket in the list   signal
 *   wait until the list is empty         unlock, return
 *   unlock
 *
 * A socket is closed under the lock under which its entry is removed, so the accepting thread never
 * shuts down a descriptor that has been reused meanwhile. A socket that is shut down ends
 * every wait of its session (session.c), so the wait for an empty list ends. After the last unlock
 * a session's thread touches nothing that is shared, so the caller may free the router.
 */

#include "server.h"

#include "log.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    THREAD_STACK = 512 * 1024,
    BACKLOG = 512,
    PAUSE_WHEN_FULL = 100, /* ms to wait when the system has no descriptor or thread left */
};

struct connection {
    struct connection *previous; /* under the server's lock, like next */
    struct connection *next;
    struct server *server; /* set at creation, like all that follows */
    int fd;
    uint64_t number;
    char peer[64];
};

struct server {
    struct router *router;
    pthread_mutex_t lock;
    pthread_cond_t emptied;
    struct connection *connections; /* under the lock */
};

int server_listen(const char *host, const char *port, int *bound, char *why, size_t why_size) {
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *addresses = NULL;
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char number[NI_MAXSERV];
    const int on = 1;
    int failure = getaddrinfo(host, port, &hints, &addresses);
    if (failure != 0) {
        snprintf(why, why_size, "%s:%s: %s", host, port, gai_strerror(failure));
        return -1;
    }
    const int fd = socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, addresses->ai_addr, addresses->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0 ||
        getnameinfo((struct sockaddr *)&address, size, NULL, 0, number, sizeof number,
                    NI_NUMERICSERV) != 0) {
        snprintf(why, why_size, "%s:%s: %s", host, port, strerror(errno));
        freeaddrinfo(addresses);
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    *bound = atoi(number);
    freeaddrinfo(addresses);
    return fd;
}

static void add_connection(struct server *server, struct connection *connection) {
    pthread_mutex_lock(&server->lock);
    connection->next = server->connections;
    if (connection->next) {
        connection->next->previous = connection;
    }
    server->connections = connection;
    pthread_mutex_unlock(&server->lock);
}

static void remove_connection(struct connection *connection) {
    struct server *server = connection->server;
    pthread_mutex_lock(&server->lock);
    if (connection->previous) {
        connection->previous->next = connection->next;
    } else {
        server->connections = connection->next;
    }
    if (connection->next) {
        connection->next->previous = connection->previous;
    }
    close(connection->fd);
    free(connection);
    if (!server->connections) {
        pthread_cond_signal(&server->emptied);
    }
    pthread_mutex_unlock(&server->lock);
}

static void *serve_connection(void *argument) {
    struct connection *connection = argument;
    pthread_setname_np(pthread_self(), "client");
    session_serve(connection->server->router, connection->fd, connection->number, connection->peer);
    remove_connection(connection);
    return NULL;
}

/* Starts the thread of a connection; on failure the connection is closed. */
static void start_connection(struct server *server, int fd, uint64_t number,
                             const struct sockaddr_storage *address, socklen_t size) {
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    pthread_attr_t attributes;
    pthread_t thread;
    struct connection *connection = calloc(1, sizeof *connection);
    if (!connection || !stream_prepare(fd)) {
        free(connection);
        close(fd);
        return;
    }
    connection->server = server;
    connection->fd = fd;
    connection->number = number;
    if (getnameinfo((const struct sockaddr *)address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        snprintf(connection->peer, sizeof connection->peer, "%.50s:%.8s", host, port);
    }
    add_connection(server, connection);
    int failure = pthread_attr_init(&attributes);
    if (failure == 0) {
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, THREAD_STACK);
        failure = pthread_create(&thread, &attributes, serve_connection, connection);
        pthread_attr_destroy(&attributes);
    }
    if (failure != 0) {
        router_log("no thread for %s: %s", connection->peer, strerror(failure));
        remove_connection(connection);
    }
}

void server_run(struct router *router, int listen_fd, int stop_fd) {
    struct server server = {.router = router};
    uint64_t number = 0;
    pthread_mutex_init(&server.lock, NULL);
    pthread_cond_init(&server.emptied, NULL);

    struct pollfd polled[2] = {{.fd = stop_fd, .events = POLLIN},
                               {.fd = listen_fd, .events = POLLIN}};
    while (!polled[0].revents) {
        if (poll(polled, 2, -1) < 0 || !polled[1].revents) {
            continue;
        }
        struct sockaddr_storage address;
        socklen_t size = sizeof address;
        const int fd = accept(listen_fd, (struct sockaddr *)&address, &size);
        if (fd >= 0) {
            start_connection(&server, fd, number++, &address, size);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            router_log("cannot accept a connection: %s", strerror(errno));
            poll(polled, 1, PAUSE_WHEN_FULL);
        }
    }

    pthread_mutex_lock(&server.lock);
    for (struct connection *each = server.connections; each; each = each->next) {
        shutdown(each->fd, SHUT_RDWR);
    }
    while (server.connections) {
        pthread_cond_wait(&server.emptied, &server.lock);
    }
    pthread_mutex_unlock(&server.lock);
    pthread_cond_destroy(&server.emptied);
    pthread_mutex_destroy(&server.lock);
}
