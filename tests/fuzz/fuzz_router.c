/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the commands of the local router; fuzz_wire.c fuzzes its message reader. The input holds
 * up to three commands, each for a new connection, and the servers' replies. Every command gets one
 * valid reply. Each message to a server is valid, names a database, and has no session fields. A
 * command sends at most SENT_MAX messages. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../tools/router/commands.h"
#include "documents.h"

#define COMMANDS 3u
#define SETS 3u
#define SENT_MAX 500u
#define REPLY_MAX 60000u /* bytes; less than a socket's buffer, so that writes do not block */

/* ---- the servers: replaces backend.c ---- */

static input *replies;
static unsigned sent;

bool node_set_parse(struct node_set *set, const char *name, const char *text) {
    (void)set, (void)name, (void)text;
    return false;
}

bool backend_is_primary(const bson_t *hello) {
    (void)hello;
    return true;
}

int backend_connect_node(const char *node, int watch_fd, bson_t *hello, char *why) {
    (void)node, (void)watch_fd, (void)hello, (void)why;
    return -1;
}

enum stream_status backend_run(int fd, const bson_t *command, struct buffer *scratch,
                               bson_t *reply) {
    (void)fd, (void)command, (void)scratch, (void)reply;
    return STREAM_BROKEN;
}

int backend_connect(struct node_set *set, int watch_fd, int patience_ms, bson_t *hello, char *why) {
    (void)watch_fd, (void)patience_ms;
    require(set->name[0] && !hello, "connections are to a replica set with a name");
    snprintf(why, MAX_REASON, "none");
    return open("/dev/null", O_RDWR);
}

static void check_sent(const struct wire_message *message) {
    static const char *const withheld[] = {"lsid", "txnNumber", "$clusterTime", "apiVersion"};
    bson_iter_t iter;
    require(bson_iter_init_find(&iter, &message->body, "$db") && BSON_ITER_HOLDS_UTF8(&iter),
            "a message names its database");
    for (size_t i = 0; i < sizeof withheld / sizeof withheld[0]; i++) {
        bool first = bson_iter_init(&iter, &message->body) && bson_iter_next(&iter) &&
                     BSON_ITER_IS_KEY(&iter, withheld[i]);
        require(first || !bson_has_field(&message->body, withheld[i]),
                "a message has no session fields");
    }
}

enum stream_status backend_exchange(int fd, int watch_fd, const struct iovec *parts, int count,
                                    struct buffer *reply) {
    struct buffer whole = {0};
    struct wire_message message;
    (void)fd, (void)watch_fd;
    require(++sent <= SENT_MAX, "a command sends a limited number of messages");
    for (int i = 0; i < count; i++) {
        require(buffer_reserve(&whole, whole.length + parts[i].iov_len), "allocation succeeds");
        if (parts[i].iov_len > 0)
            memcpy(whole.data + whole.length, parts[i].iov_base, parts[i].iov_len);
        whole.length += parts[i].iov_len;
    }
    require(wire_parse_message(whole.data, whole.length, &message), "a sent message is valid");
    check_sent(&message);
    buffer_destroy(&whole);

    if (replies->at == replies->end)
        return STREAM_BROKEN;
    const bson_t *document = take_document(replies);
    bool built = document->len < REPLY_MAX && wire_build_reply(reply, 1, OP_MSG, document);
    release_document(replies);
    return built ? STREAM_OK : STREAM_BROKEN;
}

/* ---- the client ---- */

static void check_reply(const uint8_t *bytes, size_t length) {
    struct wire_message message;
    require(wire_parse_message(bytes, length, &message), "a command has a reply");
    if (!replies->raw) /* a raw document may be invalid, and the router copies it into the reply */
        check_built(&message.body);
}

static void run(struct router *router, const bson_t *command, uint64_t number) {
    static uint8_t bytes[1 << 20];
    int ends[2];
    struct buffer message = {0};
    require(wire_build_reply(&message, 0, OP_MSG, command), "allocation succeeds");
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 &&
                fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0,
            "a socket pair can be created");
    require(write(ends[1], message.data, message.length) == (ssize_t)message.length &&
                shutdown(ends[1], SHUT_WR) == 0,
            "a command fits into the socket's buffer");
    sent = 0;
    session_serve(router, ends[0], number, "fuzz");
    close(ends[0]);
    size_t length = 0;
    for (ssize_t got;
         length < sizeof bytes && (got = read(ends[1], bytes + length, sizeof bytes - length)) > 0;)
        length += (size_t)got;
    struct wire_message reply;
    if (wire_parse_message(message.data, message.length, &reply))
        check_reply(bytes, length);
    else
        require(length == 0, "an invalid message has no reply");
    close(ends[1]);
    buffer_destroy(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct node_set sets[SETS] = {{.name = "config"}, {.name = "s0"}, {.name = "s1"}};
    static struct topology topology = {.sets = sets,
                                       .count = SETS,
                                       .max_bson_size = 16777216,
                                       .max_message_size = 48000000,
                                       .max_write_batch = 100000,
                                       .max_wire_version = 17};
    input in;
    uint8_t flags = begin(&in, data, size);
    struct router router = {.topology = &topology, .cursors = cursors_create(4)};
    require(router.cursors != NULL, "allocation succeeds");
    replies = &in;
    for (uint64_t i = 0; i < 1 + (flags >> 1) % COMMANDS; i++) {
        bson_t body;
        bson_copy_to(take_document(&in), &body);
        if (!bson_empty(&body) && !bson_has_field(&body, "$db"))
            BSON_APPEND_UTF8(&body, "$db", "d");
        if (body.len < REPLY_MAX)
            run(&router, &body, i);
        bson_destroy(&body);
    }
    cursors_destroy(router.cursors);
    return finish(&in);
}
