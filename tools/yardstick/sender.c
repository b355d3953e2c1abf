/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches as OP_MSG inserts over plain sockets, one in flight per connection.
 *
 * Threads share the dump, which is only read; `next`, an atomic counter, which gives each batch to
 * one thread; `failed`, which is set once and never cleared, and ends all threads; and a barrier.
 * The barrier holds all threads until all connections are open: each thread passes it exactly once,
 * connected or not, and so does the main thread, which then reads the clock. The clock is read
 * again after all threads have been joined.
 */
#include "sender.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "plain.h"

enum {
    REPLY_HEAD = HEADER_BYTES + 5, /* header, flags, kind of the section */
    SEQUENCE_HEAD = 1 + 4 + 10,    /* kind 1, size, "documents" with its zero */
    REPLY_MOST = 48 * 1000 * 1000,
};

struct sending {
    const struct dump *dump;
    const struct target *target;
    const bson_t *command; /* the same for every batch */
    pthread_barrier_t connected;
    _Atomic size_t next;
    atomic_uint connections;
    atomic_bool failed;
};

/* The data of one thread. */
struct connection {
    int socket;
    uint8_t *head; /* the part of a message before the documents */
    size_t head_bytes;
    struct iovec *pieces; /* of the message that is being sent */
    size_t piece_room;
    uint8_t *reply;
    size_t reply_room;
};

static void put_int32(uint8_t *at, size_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static size_t get_int32(const uint8_t *at) {
    return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

/* Builds the head: header, flags, the command as section 0, the head of the document sequence. The
 * sizes are set for each batch. */
static bool connection_init(struct connection *connection, struct sending *sending) {
    const bson_t *command = sending->command;
    size_t sequence = HEADER_BYTES + 4 + 1 + command->len;
    *connection = (struct connection){.socket = -1, .head_bytes = sequence + SEQUENCE_HEAD};
    connection->head = calloc(1, connection->head_bytes);
    if (connection->head == NULL)
        return complain("connecting", "memory is exhausted");
    put_int32(connection->head + 12, OP_MSG);
    memcpy(connection->head + HEADER_BYTES + 5, bson_get_data(command), command->len);
    connection->head[sequence] = 1;
    memcpy(connection->head + sequence + 5, "documents", 10);
    const struct target *target = sending->target;
    const struct address *address =
        &target->addresses[atomic_fetch_add(&sending->connections, 1) % target->address_count];
    connection->socket = open_socket(address->host, address->port);
    return connection->socket >= 0;
}

static void connection_clear(struct connection *connection) {
    if (connection->socket >= 0)
        close(connection->socket);
    free(connection->head);
    free(connection->pieces);
    free(connection->reply);
}

/* Sends `pieces`, and changes them. */
static bool write_pieces(int to, struct iovec *pieces, size_t count) {
    while (count > 0) {
        struct msghdr message = {.msg_iov = pieces,
                                 .msg_iovlen = count < IOV_MAX ? count : IOV_MAX};
        ssize_t sent = sendmsg(to, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return complain("sending", strerror(errno));
        size_t left = (size_t)sent;
        while (count > 0 && left >= pieces->iov_len) {
            left -= pieces->iov_len;
            pieces++;
            count--;
        }
        if (count > 0) {
            pieces->iov_base = (uint8_t *)pieces->iov_base + left;
            pieces->iov_len -= left;
        }
    }
    return true;
}

static bool send_batch(struct connection *connection, const struct batch *batch, uint32_t number) {
    size_t count = batch->piece_count + 1;
    if (connection->pieces == NULL || count > connection->piece_room) {
        free(connection->pieces);
        connection->piece_room = 0;
        connection->pieces = malloc(count * sizeof *connection->pieces);
        if (connection->pieces == NULL)
            return complain("sending", "memory is exhausted");
        connection->piece_room = count;
    }
    put_int32(connection->head, connection->head_bytes + batch->bytes);
    put_int32(connection->head + 4, number);
    /* The size of a document sequence counts itself and what follows, but not its kind. */
    put_int32(connection->head + connection->head_bytes - SEQUENCE_HEAD + 1,
              SEQUENCE_HEAD - 1 + batch->bytes);
    connection->pieces[0] =
        (struct iovec){.iov_base = connection->head, .iov_len = connection->head_bytes};
    memcpy(connection->pieces + 1, batch->pieces, batch->piece_count * sizeof *batch->pieces);
    return write_pieces(connection->socket, connection->pieces, count);
}

static bool refused(const char *what, const bson_t *reply) {
    char *text = bson_as_relaxed_extended_json(reply, NULL);
    fprintf(stderr, "shardload-yardstick: %s: %.2000s\n", what, text != NULL ? text : "");
    bson_free(text);
    return false;
}

/* Were all documents inserted with the requested write concern? */
static bool accept_reply(const bson_t *reply, uint32_t documents) {
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, reply, "ok") || !bson_iter_as_bool(&iter))
        return refused("the insert failed", reply);
    if (bson_iter_init_find(&iter, reply, "writeErrors"))
        return refused("documents were refused", reply);
    if (bson_iter_init_find(&iter, reply, "writeConcernError"))
        return refused("the write concern was not met", reply);
    if (!bson_iter_init_find(&iter, reply, "n") || bson_iter_as_int64(&iter) != (int64_t)documents)
        return refused("not every document was inserted", reply);
    return true;
}

static bool await_reply(struct connection *connection, uint32_t number, uint32_t documents) {
    uint8_t head[REPLY_HEAD];
    if (!read_bytes(connection->socket, head, sizeof head))
        return false;
    size_t length = get_int32(head);
    if (length <= REPLY_HEAD || length > REPLY_MOST || get_int32(head + 12) != OP_MSG ||
        get_int32(head + 8) != number || head[REPLY_HEAD - 1] != 0)
        return complain("reading a reply", "it is not a reply to the last message");
    length -= REPLY_HEAD;
    if (length > connection->reply_room) {
        free(connection->reply);
        connection->reply_room = 0;
        connection->reply = malloc(length);
        if (connection->reply == NULL)
            return complain("reading a reply", "memory is exhausted");
        connection->reply_room = length;
    }
    bson_t reply;
    if (!read_bytes(connection->socket, connection->reply, length))
        return false;
    if (!bson_init_static(&reply, connection->reply, length))
        return complain("reading a reply", "it is not valid BSON");
    return accept_reply(&reply, documents);
}

static void *run_connection(void *argument) {
    struct sending *sending = argument;
    const struct dump *dump = sending->dump;
    struct connection connection;
    if (!connection_init(&connection, sending))
        atomic_store(&sending->failed, true);
    pthread_barrier_wait(&sending->connected);
    while (!atomic_load(&sending->failed)) {
        size_t index = atomic_fetch_add(&sending->next, 1);
        if (index >= dump->batch_count)
            break;
        const struct batch *batch = &dump->batches[index];
        uint32_t number = (uint32_t)index + 1;
        if (!send_batch(&connection, batch, number) ||
            !await_reply(&connection, number, batch->documents))
            atomic_store(&sending->failed, true);
    }
    connection_clear(&connection);
    return NULL;
}

static bool run_threads(struct sending *sending, pthread_t *threads, double *seconds) {
    unsigned count = sending->target->threads, started = 0;
    while (started < count && pthread_create(&threads[started], NULL, run_connection, sending) == 0)
        started++;
    if (started < count) {
        /* The started threads wait at the barrier and cannot be joined: end the process. */
        complain("starting threads", "the system's limit is reached");
        exit(EXIT_FAILURE);
    }
    pthread_barrier_wait(&sending->connected);
    double begun = now();
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    *seconds = now() - begun;
    return !atomic_load(&sending->failed);
}

bool send_all(const struct dump *dump, const struct target *target, double *seconds) {
    bson_t *command = BCON_NEW("insert", BCON_UTF8(target->collection), "ordered", BCON_BOOL(false),
                               "writeConcern", BCON_DOCUMENT(target->write_concern), "$db",
                               BCON_UTF8(target->database));
    struct sending sending = {.dump = dump, .target = target, .command = command};
    pthread_t *threads = calloc(target->threads, sizeof *threads);
    bool ok = false;
    if (command == NULL || threads == NULL ||
        pthread_barrier_init(&sending.connected, NULL, target->threads + 1) != 0) {
        complain("starting threads", "memory is exhausted");
    } else {
        ok = run_threads(&sending, threads, seconds);
        pthread_barrier_destroy(&sending.connected);
    }
    free(threads);
    bson_destroy(command);
    return ok;
}
