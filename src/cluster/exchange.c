/* SPDX-License-Identifier: Apache-2.0 */
/* Reads without the driver, on the driver's own connections.
 *
 * For each command the driver copies the server's description, starts a session and assembles the
 * message from parts. That is more work than the server has with a read of one small document. So
 * an exchange writes the command to the client's connection as one OP_MSG and reads the reply.
 *
 * The driver does everything else: it opens the connection, authenticates, and must have run a
 * command of the same thread on it before the first exchange. When an exchange fails, the
 * connection is shut down, because the rest of a reply may still arrive; the driver finds it broken
 * at its next command and opens another one. Messages are never compressed. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define OP_MSG 2013
#define HEADER_BYTES 16
#define FLAG_BYTES 4
#define REPLY_BYTES_LEAST (HEADER_BYTES + FLAG_BYTES + 1 + 5) /* with an empty document */

struct sl_exchange {
    sl_streams *streams;
    const sl_connection *connection;
    char host[BSON_HOST_NAME_MAX + 8]; /* of the selected server, with its port */
    int32_t timeout_ms;
    int32_t request; /* number of the last message */
    bson_t fields;   /* appended to each command */
    bson_t message;  /* the last command with these fields */
    uint8_t *reply;
    size_t reply_room;
};

sl_exchange *sl_exchange_create(sl_connection *connection, mongoc_client_t *client) {
    const mongoc_uri_t *uri = sl_connection_uri(connection);
    const bson_t *compressors = mongoc_uri_get_compressors(uri);
    if (compressors && !bson_empty(compressors))
        return NULL;
    sl_exchange *made = bson_malloc0(sizeof *made);
    made->streams = sl_connection_streams(connection, client);
    made->connection = connection;
    made->timeout_ms = mongoc_uri_get_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, INT32_MAX);
    if (made->timeout_ms <= 0)
        made->timeout_ms = INT32_MAX;
    bson_init(&made->fields);
    bson_init(&made->message);
    return made;
}

void sl_exchange_destroy(sl_exchange *exchange) {
    if (!exchange)
        return;
    bson_destroy(&exchange->fields);
    bson_destroy(&exchange->message);
    bson_free(exchange->reply);
    bson_free(exchange);
}

/* ---- the fields that the driver appends to a read ---- */

static const char *mode_name(mongoc_read_mode_t mode) {
    return mode == MONGOC_READ_PRIMARY_PREFERRED     ? "primaryPreferred"
           : mode == MONGOC_READ_SECONDARY           ? "secondary"
           : mode == MONGOC_READ_SECONDARY_PREFERRED ? "secondaryPreferred"
           : mode == MONGOC_READ_NEAREST             ? "nearest"
                                                     : "primary";
}

/* A secondary is selected for the mode "primary" only if it is the only host of the URI (a direct
 * connection). It answers only if the mode allows secondaries. */
static void append_preference(bson_t *fields, const mongoc_read_prefs_t *preference,
                              const char *server_type) {
    mongoc_read_mode_t mode = mongoc_read_prefs_get_mode(preference);
    bool secondary = strcmp(server_type, "RSSecondary") == 0;
    bson_t document;
    if (mode == MONGOC_READ_PRIMARY && secondary)
        mode = MONGOC_READ_PRIMARY_PREFERRED;
    if (mode == MONGOC_READ_PRIMARY || strcmp(server_type, "Standalone") == 0)
        return;
    BSON_APPEND_DOCUMENT_BEGIN(fields, "$readPreference", &document);
    BSON_APPEND_UTF8(&document, "mode", mode_name(mode));
    if (!bson_empty0(mongoc_read_prefs_get_tags(preference)))
        BSON_APPEND_ARRAY(&document, "tags", mongoc_read_prefs_get_tags(preference));
    if (mongoc_read_prefs_get_max_staleness_seconds(preference) > 0)
        BSON_APPEND_INT64(&document, "maxStalenessSeconds",
                          mongoc_read_prefs_get_max_staleness_seconds(preference));
    bson_append_document_end(fields, &document);
}

void sl_exchange_select(sl_exchange *exchange, const sl_exchange_target *target,
                        const mongoc_client_t *client) {
    const char *level = mongoc_read_concern_get_level(mongoc_client_get_read_concern(client));
    bson_t concern;
    snprintf(exchange->host, sizeof exchange->host, "%s",
             mongoc_server_description_host(target->server)->host_and_port);
    bson_reinit(&exchange->fields);
    BSON_APPEND_UTF8(&exchange->fields, "$db", target->database);
    if (target->session)
        BSON_APPEND_DOCUMENT(&exchange->fields, "lsid",
                             mongoc_client_session_get_lsid(target->session));
    if (target->read_concern) {
        BSON_APPEND_DOCUMENT(&exchange->fields, "readConcern", target->read_concern);
    } else if (level) {
        BSON_APPEND_DOCUMENT_BEGIN(&exchange->fields, "readConcern", &concern);
        BSON_APPEND_UTF8(&concern, "level", level);
        bson_append_document_end(&exchange->fields, &concern);
    }
    append_preference(&exchange->fields,
                      target->preference ? target->preference
                                         : mongoc_client_get_read_prefs(client),
                      mongoc_server_description_type(target->server));
}

/* ---- messages ---- */

static void put_u32(uint8_t *to, uint32_t value) {
    value = BSON_UINT32_TO_LE(value);
    memcpy(to, &value, sizeof value);
}

static uint32_t get_u32(const uint8_t *from) {
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return BSON_UINT32_FROM_LE(value);
}

bool sl_exchange_check_header(const uint8_t *header, int32_t request, size_t most) {
    uint32_t length = get_u32(header);
    return length >= REPLY_BYTES_LEAST && length <= most &&
           get_u32(header + 8) == (uint32_t)request && get_u32(header + 12) == OP_MSG;
}

/* Flags of a reply announce a checksum or a further message; neither was requested, so the flags
 * must be 0. The only section has the kind 0: one document. */
bool sl_exchange_check_body(const uint8_t *body, size_t length, bson_t *document) {
    return get_u32(body) == 0 && body[FLAG_BYTES] == 0 &&
           bson_init_static(document, body + FLAG_BYTES + 1, length - FLAG_BYTES - 1);
}

static bool send_message(sl_exchange *exchange, mongoc_stream_t *stream) {
    uint8_t head[HEADER_BYTES + FLAG_BYTES + 1] = {0};
    mongoc_iovec_t parts[2] = {{.iov_base = head, .iov_len = sizeof head},
                               {.iov_base = (void *)(uintptr_t)bson_get_data(&exchange->message),
                                .iov_len = exchange->message.len}};
    const size_t length = sizeof head + exchange->message.len;
    exchange->request = exchange->request == INT32_MAX ? 1 : exchange->request + 1;
    put_u32(head, (uint32_t)length);
    put_u32(head + 4, (uint32_t)exchange->request);
    put_u32(head + 12, OP_MSG);
    return mongoc_stream_writev(stream, parts, 2, exchange->timeout_ms) == (ssize_t)length;
}

static bool receive(mongoc_stream_t *stream, uint8_t *into, size_t length, int32_t timeout_ms) {
    return mongoc_stream_read(stream, into, length, length, timeout_ms) == (ssize_t)length;
}

static bool receive_reply(sl_exchange *exchange, mongoc_stream_t *stream, bson_t *reply) {
    const size_t most = (size_t)sl_connection_server(exchange->connection)->max_message_bytes;
    uint8_t header[HEADER_BYTES];
    if (!receive(stream, header, sizeof header, exchange->timeout_ms) ||
        !sl_exchange_check_header(header, exchange->request, most))
        return false;
    size_t length = get_u32(header) - HEADER_BYTES;
    if (length > exchange->reply_room) {
        exchange->reply = bson_realloc(exchange->reply, length);
        exchange->reply_room = length;
    }
    return receive(stream, exchange->reply, length, exchange->timeout_ms) &&
           sl_exchange_check_body(exchange->reply, length, reply);
}

bool sl_exchange_run(sl_exchange *exchange, const bson_t *command, bson_t *reply) {
    mongoc_stream_t *stream = sl_streams_find(exchange->streams, exchange->host);
    if (!stream)
        return false;
    bson_reinit(&exchange->message);
    if (bson_concat(&exchange->message, command) &&
        bson_concat(&exchange->message, &exchange->fields) && send_message(exchange, stream) &&
        receive_reply(exchange, stream, reply))
        return true;
    sl_streams_shut_down(exchange->streams, exchange->host);
    return false;
}
