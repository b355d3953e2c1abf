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
 *   server.c            accepting connections, a thread for each, and stopping
 *   log.c               the log
 *   clusterctl.c        another program: configures servers as a cluster
 */

#include "log.h"
#include "server.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    KNOWN_CURSORS = 16384, /* a power of two; when it is exceeded, the oldest cursors are dropped */
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
    listen_fd = server_listen(host, port, &bound, why, sizeof why);
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
    server_run(&router, listen_fd, signal_fd);
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
