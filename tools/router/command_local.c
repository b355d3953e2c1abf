/* SPDX-License-Identifier: Apache-2.0 */

/* Commands that the router answers itself: the handshake, and commands about the connection. */

#include "commands.h"

#include <string.h>

#include "util/clock.h"

/*
 * Replies like mongos, so that drivers see a sharded cluster, without unsupported features: no
 * logicalSessionTimeoutMinutes (so that drivers use no sessions and no retryable writes), no
 * compression, and no topologyVersion (so that drivers poll instead of waiting for changes).
 */
enum outcome answer_hello(struct session *session, const struct request *request, bson_t *reply) {
    const struct topology *topology = session->router->topology;
    bson_iter_t iter;
    bson_init(reply);
    BSON_APPEND_BOOL(reply, strcmp(request->name, "hello") == 0 ? "isWritablePrimary" : "ismaster",
                     true);
    if (bson_iter_init_find(&iter, request->body, "helloOk") && bson_iter_as_bool(&iter)) {
        BSON_APPEND_BOOL(reply, "helloOk", true);
    }
    BSON_APPEND_UTF8(reply, "msg", "isdbgrid");
    BSON_APPEND_INT32(reply, "maxBsonObjectSize", topology->max_bson_size);
    BSON_APPEND_INT32(reply, "maxMessageSizeBytes", topology->max_message_size - WIRE_RENAME_ROOM);
    BSON_APPEND_INT32(reply, "maxWriteBatchSize", topology->max_write_batch);
    BSON_APPEND_DATE_TIME(reply, "localTime", sl_wall_clock_ms());
    BSON_APPEND_INT32(reply, "connectionId", (int32_t)(session->number & INT32_MAX));
    BSON_APPEND_INT32(reply, "minWireVersion", topology->min_wire_version);
    BSON_APPEND_INT32(reply, "maxWireVersion", topology->max_wire_version);
    BSON_APPEND_DOUBLE(reply, "ok", 1.0);
    return ANSWERED;
}

enum outcome answer_ping(struct session *session, const struct request *request, bson_t *reply) {
    (void)session;
    (void)request;
    answer_ok(reply);
    return ANSWERED;
}

enum outcome answer_my_address(struct session *session, const struct request *request,
                               bson_t *reply) {
    (void)request;
    bson_init(reply);
    BSON_APPEND_UTF8(reply, "you", session->peer);
    BSON_APPEND_DOUBLE(reply, "ok", 1.0);
    return ANSWERED;
}
