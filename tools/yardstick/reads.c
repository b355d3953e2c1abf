/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findOne by _id in a closed loop over plain sockets: what a query runner is held against.
 *
 *   shardload-yardstick-reads HOST PORT DATABASE COLLECTION FIRST COUNT CLIENTS SECONDS
 *
 * Each client is a thread with one socket. It sends one OP_MSG (find, filter {_id: id}, limit 1,
 * singleBatch, lsid, as a driver sends them) with an id drawn from FIRST to FIRST + COUNT - 1, and
 * waits for the reply. It prints {"operations", "seconds", "p50Us", "p99Us"}. Exit status 1 when a
 * connection fails or a document is missing.
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bson/bson.h>

enum { OP_MSG = 2013, HEAD = 16 + 5, REPLY_MOST = 1 << 20, CLIENTS_MOST = 1024 };
enum { LATENCIES = 1000000 }; /* microseconds; longer ones count as this */

static const char *host, *port, *database, *collection;
static int64_t first, count;
static double seconds;
static atomic_bool failed;
static pthread_barrier_t ready;

struct client {
    uint64_t random;
    uint64_t operations;
    uint32_t *latencies; /* how many took so many microseconds */
    double ended;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int open_socket(void) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int on = 1, made = -1;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return -1;
    made = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made >= 0 && connect(made, found->ai_addr, found->ai_addrlen) != 0) {
        close(made);
        made = -1;
    }
    freeaddrinfo(found);
    if (made >= 0)
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return made;
}

/* The message, and where in it the id stands. */
static uint8_t *make_message(size_t *length, size_t *id_at) {
    bson_t command = BSON_INITIALIZER, filter, session;
    uint8_t uuid[16];
    for (size_t i = 0; i < sizeof uuid; i++)
        uuid[i] = (uint8_t)rand();
    BSON_APPEND_UTF8(&command, "find", collection);
    BSON_APPEND_DOCUMENT_BEGIN(&command, "filter", &filter);
    BSON_APPEND_INT64(&filter, "_id", INT64_C(0x1122334455667788));
    bson_append_document_end(&command, &filter);
    BSON_APPEND_INT64(&command, "limit", 1);
    BSON_APPEND_BOOL(&command, "singleBatch", true);
    BSON_APPEND_UTF8(&command, "$db", database);
    BSON_APPEND_DOCUMENT_BEGIN(&command, "lsid", &session);
    BSON_APPEND_BINARY(&session, "id", BSON_SUBTYPE_UUID, uuid, sizeof uuid);
    bson_append_document_end(&command, &session);
    *length = HEAD + command.len;
    uint8_t *message = calloc(1, *length);
    if (message) {
        uint32_t sizes[] = {(uint32_t)*length, 1, 0, OP_MSG};
        static const uint8_t mark[] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
        memcpy(message, sizes, sizeof sizes); /* x86-64 and arm64 are little-endian */
        memcpy(message + HEAD, bson_get_data(&command), command.len);
        uint8_t *at = memmem(message, *length, mark, sizeof mark);
        *id_at = (size_t)(at - message);
    }
    bson_destroy(&command);
    return message;
}

static bool transfer(int socket, uint8_t *bytes, size_t length, bool out) {
    for (size_t done = 0; done < length;) {
        ssize_t moved = out ? send(socket, bytes + done, length - done, MSG_NOSIGNAL)
                            : recv(socket, bytes + done, length - done, 0);
        if (moved <= 0 && errno != EINTR)
            return false;
        done += moved > 0 ? (size_t)moved : 0;
    }
    return true;
}

/* One reply: is there a document in its first batch? */
static bool read_reply(int socket, uint8_t *reply) {
    uint32_t length;
    bson_t body;
    bson_iter_t iter, found;
    if (!transfer(socket, reply, 16, false))
        return false;
    memcpy(&length, reply, sizeof length);
    return length > HEAD && length < REPLY_MOST &&
           transfer(socket, reply + 16, length - 16, false) &&
           bson_init_static(&body, reply + HEAD, length - HEAD) && bson_iter_init(&iter, &body) &&
           bson_iter_find_descendant(&iter, "cursor.firstBatch.0._id", &found);
}

static void *work(void *context) {
    struct client *client = context;
    size_t length = 0, id_at = 0;
    uint8_t *message = make_message(&length, &id_at), *reply = malloc(REPLY_MOST);
    int socket = open_socket();
    bool ok = message && reply && socket >= 0;
    if (!ok)
        atomic_store(&failed, true);
    pthread_barrier_wait(&ready);
    double end = now() + seconds;
    while (ok && !atomic_load_explicit(&failed, memory_order_relaxed)) {
        client->random = client->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        int64_t id = first + (int64_t)((client->random >> 11) % (uint64_t)count);
        memcpy(message + id_at, &id, sizeof id);
        double begun = now();
        if (begun >= end)
            break;
        ok = transfer(socket, message, length, true) && read_reply(socket, reply);
        double microseconds = (now() - begun) * 1e6;
        client->latencies[microseconds < LATENCIES ? (size_t)microseconds : LATENCIES - 1]++;
        client->operations++;
    }
    client->ended = now();
    if (!ok)
        atomic_store(&failed, true);
    if (socket >= 0)
        close(socket);
    free(message);
    free(reply);
    return NULL;
}

/* The microseconds within which this share of the operations ended. */
static size_t percentile(const struct client *clients, unsigned number, double share) {
    uint64_t all = 0, seen = 0;
    for (unsigned i = 0; i < number; i++)
        all += clients[i].operations;
    for (size_t at = 0; at < LATENCIES; at++) {
        for (unsigned i = 0; i < number; i++)
            seen += clients[i].latencies[at];
        if ((double)seen >= share * (double)all)
            return at;
    }
    return LATENCIES;
}

int main(int words, char **word) {
    if (words != 9) {
        fprintf(stderr, "usage: %s HOST PORT DATABASE COLLECTION FIRST COUNT CLIENTS SECONDS\n",
                word[0]);
        return 2;
    }
    host = word[1], port = word[2], database = word[3], collection = word[4];
    first = strtoll(word[5], NULL, 10), count = strtoll(word[6], NULL, 10);
    unsigned number = (unsigned)strtoul(word[7], NULL, 10);
    seconds = strtod(word[8], NULL);
    if (count < 1 || number < 1 || number > CLIENTS_MOST || !(seconds > 0))
        return 2;
    struct client *clients = calloc(number, sizeof *clients);
    pthread_t threads[CLIENTS_MOST];
    pthread_barrier_init(&ready, NULL, number + 1);
    for (unsigned i = 0; i < number; i++) {
        clients[i].random = i + 1;
        clients[i].latencies = calloc(LATENCIES, sizeof *clients[i].latencies);
        if (!clients[i].latencies || pthread_create(&threads[i], NULL, work, &clients[i]) != 0)
            return 1;
    }
    pthread_barrier_wait(&ready);
    double begun = now(), ended = begun;
    uint64_t operations = 0;
    for (unsigned i = 0; i < number; i++) {
        pthread_join(threads[i], NULL);
        operations += clients[i].operations;
        ended = clients[i].ended > ended ? clients[i].ended : ended;
    }
    if (atomic_load(&failed)) {
        fprintf(stderr, "shardload-yardstick-reads: a connection failed, or a document is missing\n");
        return 1;
    }
    printf("{\"operations\": %" PRIu64 ", \"seconds\": %.6f, \"p50Us\": %zu, \"p99Us\": %zu}\n",
           operations, ended - begun, percentile(clients, number, 0.5),
           percentile(clients, number, 0.99));
    return 0;
}
