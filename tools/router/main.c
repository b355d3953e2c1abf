/* SPDX-License-Identifier: Apache-2.0 */

/*
 * shardload-router: replaces mongos for a local sharded cluster.
 *
 * It forwards the clients' commands to the shards, whose mongod contains the code of mongos. Like
 * mongos it must not slow down a measured load, so it is in C. The files, from the bottom up:
 *
 *   stream.c            sockets with timeouts
 *   wire.c              parsing and building messages
 *   answer.c            server-style replies and error codes
 *   backend.c           connections to the primaries of shards and config servers
 *   topology.c          the servers of the cluster
 *   cursors.c           the server of each open cursor
 *   session.c           one client connection: its loop, and its own connections to the servers
 *   metadata.c          the config servers' data about databases and collections
 *   commands.c          the table of commands
 *   command_local.c     ... answered by the router itself
 *   command_forward.c   ... forwarded to one server; cursors
 *   command_query.c     ... count, distinct, explain, findAndModify
 *   command_schema.c    ... databases, collections, indexes
 *   command_sharding.c  ... sharded collections, chunks, zones, the balancer
 *   command_stats.c     ... sums of the shards' statistics
 *   log.c               the log
 *   main.c              options; accepting connections, a thread for each; stopping
 *   clusterctl.c        another program: configures servers as a cluster
 *
 * Why the stopping is correct. The threads are detached; the only record of them is a list of open
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

#include "log.h"
#include "session.h"

#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    KNOWN_CURSORS = 16384, /* a power of two; when it is exceeded, the oldest cursors are dropped */
    THREAD_STACK = 512 * 1024,
    BACKLOG = 512,
    PAUSE_WHEN_FULL = 100, /* ms to wait when the system has no descriptor or thread left */
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
};

static const char usage[] =
    "Usage: shardload-router --config-server HOST:PORT --listen HOST:PORT [--log FILE]\n"
    "\n"
    "Replaces mongos for a local sharded cluster: routes commands with the router code of mongod.\n"
    "\n"
    "  --config-server HOST:PORT  a config server, or several: NAME/HOST:PORT,HOST:PORT\n"
    "  --listen HOST:PORT         address for clients; port 0: any free port\n"
    "  --log FILE                 append messages to FILE, not to the standard error output\n"
    "  --help                     show this text\n"
    "\n"
    "It has no authentication, no transport encryption, no sessions and no transactions:\n"
    "it is for tests on one machine. SIGTERM stops it.\n";

struct options {
    const char *config;
    const char *listen;
    const char *log;
};

/* Returns -1 to continue, or the exit status. */
static int read_options(int argc, char **argv, struct options *options) {
    static const struct option known[] = {
        {"config-server", required_argument, NULL, 'c'},
        {"listen", required_argument, NULL, 'l'},
        {"log", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (option) {
        case 'c':
            options->config = optarg;
            break;
        case 'l':
            options->listen = optarg;
            break;
        case 'o':
            options->log = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fputs("Try: shardload-router --help\n", stderr);
            return EXIT_USAGE;
        }
    }
    if (optind < argc || !options->config || !options->listen) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    return -1;
}

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

/*
 * Listens on `host` and `port` ("0": any free one). Returns the socket, with the port it has in
 * `*bound`; or -1 with the reason in `why`.
 */
static int listen_on(const char *host, const char *port, int *bound, char *why, size_t why_size) {
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

/* Serves clients until a byte can be read from `stop_fd`, then ends all sessions and waits. */
static void serve(struct router *router, int listen_fd, int stop_fd) {
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

/* Makes SIGTERM and SIGINT readable; all threads inherit that they are blocked. */
static int open_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0) {
        return -1;
    }
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv) {
    struct options options = {0};
    struct router router = {0};
    char why[MAX_REASON] = "";
    char host[MAX_ADDRESS];
    char port[8];
    int status = read_options(argc, argv, &options);
    int listen_fd = -1;
    int signal_fd = -1;
    int bound = 0;
    if (status >= 0) {
        return status;
    }
    status = EXIT_FAILED;
    if (!stream_split_address(options.listen, host, sizeof host, port, sizeof port)) {
        fprintf(stderr, "shardload-router: --listen %s: not HOST:PORT\n", options.listen);
        return EXIT_USAGE;
    }
    if (options.log && !freopen(options.log, "a", stderr)) {
        printf("shardload-router: %s: %s\n", options.log, strerror(errno));
        return EXIT_FAILED;
    }
    setvbuf(stderr, NULL, _IOLBF, 0);

    signal_fd = open_signals();
    router.cursors = cursors_create(KNOWN_CURSORS);
    if (signal_fd < 0 || !router.cursors) {
        router_log("cannot start: %s", strerror(errno));
        goto done;
    }
    listen_fd = listen_on(host, port, &bound, why, sizeof why);
    if (listen_fd < 0) {
        router_log("cannot listen on %s", why);
        goto done;
    }
    router.topology = topology_create(options.config, why);
    if (!router.topology) {
        router_log("cannot read the cluster: %s", why);
        goto done;
    }
    router_log("listening on %s:%d, %zu shards", host, bound, router.topology->count - 1);
    serve(&router, listen_fd, signal_fd);
    router_log("stopped");
    status = 0;
done:
    if (listen_fd >= 0) {
        close(listen_fd);
    }
    if (signal_fd >= 0) {
        close(signal_fd);
    }
    topology_destroy(router.topology);
    cursors_destroy(router.cursors);
    return status;
}
