/* SPDX-License-Identifier: Apache-2.0 */

/* Connections to the primaries of the servers behind the router: see backend.h. */

#include "backend.h"

#include "answer.h"
#include "util/clock.h"
#include "wire.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    CONNECT_WAIT = 2000, /* ms for one node to accept a connection and to answer hello */
    PRIMARY_PAUSE = 100, /* ms between two searches for a primary */
};

bool node_set_parse(struct node_set *set, const char *name, const char *text) {
    const char *slash = strchr(text, '/');
    const size_t named = slash ? (size_t)(slash - text) : 0;
    const char *nodes = slash ? slash + 1 : text;

    memset(set, 0, sizeof *set);
    if (named >= sizeof set->name || (name && strlen(name) >= sizeof set->name)) {
        return false;
    }
    snprintf(set->name, sizeof set->name, "%.*s", name ? (int)strlen(name) : (int)named,
             name ? name : text);

    while (set->count < MAX_NODES) {
        const size_t length = strcspn(nodes, ",");
        char host[MAX_ADDRESS];
        char port[8];
        if (length == 0 || length >= MAX_ADDRESS) {
            return false;
        }
        memcpy(set->nodes[set->count], nodes, length);
        if (!stream_split_address(set->nodes[set->count], host, sizeof host, port, sizeof port)) {
            return false;
        }
        set->count++;
        if (!nodes[length]) {
            return true;
        }
        nodes += length + 1;
    }
    return false;
}

enum stream_status backend_exchange(int fd, int watch_fd, const struct iovec *parts, int count,
                                    struct buffer *reply) {
    enum stream_status status = stream_write(fd, watch_fd, parts, count);
    return status == STREAM_OK ? stream_read_message(fd, watch_fd, -1, reply) : status;
}

/* Like backend_run, but fails if nothing arrives for `timeout_ms`. */
static enum stream_status run_within(int fd, int watch_fd, int timeout_ms, const bson_t *command,
                                     struct buffer *scratch, bson_t *reply) {
    uint8_t prefix[WIRE_PREFIX_SIZE];
    struct iovec parts[4];
    struct wire_message message;
    const int count = wire_gather(command, 1, NULL, prefix, parts);
    if (count == 0) {
        return STREAM_MALFORMED;
    }
    enum stream_status status = stream_write(fd, watch_fd, parts, count);
    if (status == STREAM_OK) {
        status = stream_read_message(fd, watch_fd, timeout_ms, scratch);
    }
    if (status == STREAM_OK) {
        if (!wire_parse_message(scratch->data, scratch->length, &message) ||
            !bson_init_static(reply, bson_get_data(&message.body), message.body.len)) {
            return STREAM_MALFORMED;
        }
    }
    return status;
}

enum stream_status backend_run(int fd, const bson_t *command, struct buffer *scratch,
                               bson_t *reply) {
    return run_within(fd, -1, -1, command, scratch, reply);
}

bool backend_is_primary(const bson_t *hello) {
    bson_iter_t iter;
    return bson_iter_init_find(&iter, hello, "isWritablePrimary") && bson_iter_as_bool(&iter);
}

int backend_connect_node(const char *node, int watch_fd, bson_t *hello, char *why) {
    char host[MAX_ADDRESS];
    char port[8];
    struct buffer scratch = {0};
    bson_t command = BSON_INITIALIZER;
    bson_t reply;
    int fd = -1;

    BSON_APPEND_INT32(&command, "hello", 1);
    BSON_APPEND_UTF8(&command, "$db", "admin");
    if (!stream_split_address(node, host, sizeof host, port, sizeof port)) {
        snprintf(why, MAX_REASON, "%s: not an address", node);
        goto done;
    }
    fd = stream_connect(host, port, watch_fd, CONNECT_WAIT, why, MAX_REASON);
    if (fd < 0) {
        goto done;
    }
    enum stream_status status = run_within(fd, watch_fd, CONNECT_WAIT, &command, &scratch, &reply);
    if (status == STREAM_OK && answer_code(&reply) == CODE_OK) {
        bson_copy_to(&reply, hello);
        goto done;
    }
    snprintf(why, MAX_REASON, "%s: %s", node,
             status == STREAM_OK ? "it refused the handshake" : stream_status_text(status));
    close(fd);
    fd = -1;
done:
    bson_destroy(&command);
    buffer_destroy(&scratch);
    return fd;
}

int backend_connect(struct node_set *set, int watch_fd, int patience_ms, bson_t *hello, char *why) {
    const int64_t start = sl_clock_ns();
    for (;;) {
        const size_t hint = atomic_load(&set->primary);
        for (size_t i = 0; i < set->count; i++) {
            const size_t node = (hint + i) % set->count;
            bson_t answer;
            const int fd = backend_connect_node(set->nodes[node], watch_fd, &answer, why);
            if (fd < 0) {
                continue;
            }
            if (backend_is_primary(&answer)) {
                atomic_store(&set->primary, node);
                if (hello) {
                    bson_copy_to(&answer, hello);
                }
                bson_destroy(&answer);
                return fd;
            }
            bson_destroy(&answer);
            close(fd);
            snprintf(why, MAX_REASON, "%s is not the primary", set->nodes[node]);
        }
        if ((sl_clock_ns() - start) / 1000000 >= patience_ms ||
            !stream_pause(watch_fd, PRIMARY_PAUSE)) {
            return -1;
        }
    }
}
