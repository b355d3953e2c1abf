/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findOne by _id in a closed loop over plain sockets, for the comparison with shardquery.
 *
 *   shardload-yardstick-reads HOST PORT DATABASE COLLECTION FIRST COUNT CLIENTS SECONDS
 *
 * Each client is a thread with one socket. It sends one OP_MSG like a driver (find, filter
 * {_id: id}, limit 1, singleBatch, lsid) with a random id from FIRST to FIRST + COUNT - 1, and
 * waits for the reply. Prints {"operations", "seconds", "p50Us", "p99Us"} for all clients. Exit
 * status 1 if a connection fails or a document is missing.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bson/bson.h>

#include "plain.h"

enum { HEAD = HEADER_BYTES + 5, REPLY_MOST = 1 << 20, CLIENTS_MOST = 1024 };
enum { LATENCIES = 1000000 }; /* microseconds; longer latencies are counted as LATENCIES - 1 */

static const char *host, *port, *database, *collection;
static int64_t first, count;
static double seconds;
static atomic_bool failed;
static pthread_barrier_t ready;

struct client {
    uint64_t random;
    uint64_t operations;
    uint32_t *latencies; /* number of operations by microseconds */
    double ended;
};

/* Builds the message; `*id_at` is the offset of the id in it. */
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

static bool send_bytes(int socket, const uint8_t *bytes, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t sent = send(socket, bytes + done, length - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return complain("sending", strerror(errno));
        done += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* Reads a reply. True if its first batch has a document. */
static bool read_reply(int socket, uint8_t *reply) {
    uint32_t length;
    bson_t body;
    bson_iter_t iter, found;
    if (!read_bytes(socket, reply, HEADER_BYTES))
        return false;
    memcpy(&length, reply, sizeof length);
    return length > HEAD && length < REPLY_MOST &&
           read_bytes(socket, reply + HEADER_BYTES, length - HEADER_BYTES) &&
           bson_init_static(&body, reply + HEAD, length - HEAD) && bson_iter_init(&iter, &body) &&
           bson_iter_find_descendant(&iter, "cursor.firstBatch.0._id", &found);
}

static void *work(void *context) {
    struct client *client = context;
    size_t length = 0, id_at = 0;
    uint8_t *message = make_message(&length, &id_at), *reply = malloc(REPLY_MOST);
    int socket = open_socket(host, port);
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
        ok = send_bytes(socket, message, length) && read_reply(socket, reply);
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

/* The latency in microseconds that this share of the operations does not exceed. */
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
        fprintf(stderr,
                "shardload-yardstick-reads: a connection failed, or a document is missing\n");
        return 1;
    }
    printf("{\"operations\": %" PRIu64 ", \"seconds\": %.6f, \"p50Us\": %zu, \"p99Us\": %zu}\n",
           operations, ended - begun, percentile(clients, number, 0.5),
           percentile(clients, number, 0.99));
    return 0;
}
