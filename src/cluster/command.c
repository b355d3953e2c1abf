/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that are repeated after transient failures (an election, a lock of another client), and
 * small reads and updates built on them. A command may be executed twice: when the connection
 * breaks, the client cannot know whether the server executed the first one. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

char *sl_target_namespace(const sl_target *target, char out[SL_NAMESPACE_ROOM]) {
    snprintf(out, SL_NAMESPACE_ROOM, "%s.%s", target->database, target->collection);
    return out;
}

char *sl_target_registry(const sl_target *target, char out[SL_NAMESPACE_ROOM]) {
    if (target->registry)
        snprintf(out, SL_NAMESPACE_ROOM, "%s", target->registry);
    else
        snprintf(out, SL_NAMESPACE_ROOM, "%s.sources", target->collection);
    return out;
}

int32_t sl_hidden_failure(const bson_t *reply, const char **reason) {
    static const char *const paths[][2] = {{"writeErrors.0.code", "writeErrors.0.errmsg"},
                                           {"writeConcernError.code", "writeConcernError.errmsg"}};
    for (size_t i = 0; i < 2; i++) {
        bson_iter_t code;
        if (!sl_look_find(reply, paths[i][0], &code))
            continue;
        const char *text = sl_look_text(reply, paths[i][1]);
        *reason = text ? text : "no reason";
        int32_t value = (int32_t)bson_iter_as_int64(&code);
        return value >= 0 ? value : 0;
    }
    return -1;
}

bool sl_cluster_command(sl_connection *connection, const char *database, const bson_t *command,
                        bson_t *reply, int32_t *code, sl_error *error) {
    bson_t own_reply;
    if (!reply)
        reply = &own_reply;
    int32_t own_code = 0;
    if (!code)
        code = &own_code;
    bool ok;
    int64_t until = sl_connection_retry_until(connection);
    for (unsigned attempt = 0;; attempt++) {
        ok = sl_connection_command(connection, database, command, reply, code, error);
        const char *reason;
        int32_t hidden = ok ? sl_hidden_failure(reply, &reason) : -1;
        if (hidden >= 0) {
            bson_iter_t iter;
            const char *name =
                bson_iter_init(&iter, command) && bson_iter_next(&iter) ? bson_iter_key(&iter) : "";
            *code = hidden;
            ok = sl_error_set(error, SL_EXIT_CLUSTER, "%s on database %s: %s", name, database,
                              reason);
        }
        /* `until` limits only failures without a reply. A server that replies may take any time
         * for each attempt: balancerStop takes as long as the running chunk moves. */
        if (ok || !sl_code_is_transient(*code) || (*code == 0 && sl_clock_ns() > until))
            break;
        if (error)
            sl_log_debug("trying again: " SL_LINES, error->message);
        if (!sl_connection_backoff(connection, attempt, error))
            break;
        bson_destroy(reply);
    }
    if (reply == &own_reply)
        bson_destroy(&own_reply);
    return ok;
}

bool sl_cluster_run(sl_connection *connection, const char *database, bson_t *command, bson_t *reply,
                    int32_t *code, sl_error *error) {
    bool ok = sl_cluster_command(connection, database, command, reply, code, error);
    bson_destroy(command);
    return ok;
}

bool sl_cluster_change(sl_connection *connection, const char *database, bson_t *command,
                       int32_t harmless, sl_error *error) {
    int32_t code;
    if (sl_cluster_run(connection, database, command, NULL, &code, error))
        return true;
    if (harmless == 0 || code != harmless)
        return false;
    if (error)
        *error = (sl_error){.code = SL_EXIT_OK};
    return true;
}

void sl_append_majority(bson_t *command) {
    bson_t concern;
    bson_append_document_begin(command, "writeConcern", -1, &concern);
    BSON_APPEND_UTF8(&concern, "w", "majority");
    BSON_APPEND_INT32(&concern, "wtimeout", 30000);
    bson_append_document_end(command, &concern);
}

bool sl_find_by_id(sl_connection *connection, const char *database, const char *collection,
                   const char *id, bson_t *document, bool *found, sl_error *error) {
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(id));
    bson_t documents, view;
    bool ok = sl_connection_find(connection, database, collection, filter, NULL, &documents, error);
    *found = sl_look_inside(&documents, "0", &view) && ok;
    bson_copy_to(&view, document);
    bson_destroy(&documents);
    bson_destroy(filter);
    return ok;
}

bson_t *sl_range_filter(int64_t minimum, int64_t maximum) {
    return BCON_NEW("_id", "{", "$gte", BCON_INT64(minimum), "$lt", BCON_INT64(maximum), "}");
}

bool sl_is_empty(sl_connection *connection, const sl_target *target, const bson_t *filter,
                 bool *empty, sl_error *error) {
    bson_t documents;
    bson_t *options =
        BCON_NEW("limit", BCON_INT64(1), "projection", "{", "_id", BCON_INT32(1), "}");
    bool ok = sl_connection_find(connection, target->database, target->collection, filter, options,
                                 &documents, error);
    *empty = ok && bson_empty(&documents);
    bson_destroy(&documents);
    bson_destroy(options);
    return ok;
}

bool sl_find_and_modify(sl_connection *connection, const char *database, const char *collection,
                        const bson_t *query, const bson_t *update, bool upsert, bson_t *document,
                        bool *found, sl_error *error) {
    bson_t command, reply;
    bson_init(&command);
    BSON_APPEND_UTF8(&command, "findAndModify", collection);
    BSON_APPEND_DOCUMENT(&command, "query", query);
    if (update) {
        BSON_APPEND_DOCUMENT(&command, "update", update);
        BSON_APPEND_BOOL(&command, "new", true);
        BSON_APPEND_BOOL(&command, "upsert", upsert);
    } else {
        BSON_APPEND_BOOL(&command, "remove", true);
    }
    sl_append_majority(&command);

    int32_t code;
    bool ok = false;
    /* One of two concurrent upserts of one _id fails; repeated, it finds the document. */
    for (unsigned attempt = 0; !ok && attempt < 5; attempt++) {
        if (attempt > 0)
            bson_destroy(&reply);
        ok = sl_cluster_command(connection, database, &command, &reply, &code, error);
        if (code != SL_CODE_DUPLICATE_KEY)
            break;
    }

    bson_iter_t iter;
    bson_t view;
    bool any = ok && bson_iter_init_find(&iter, &reply, "value") && sl_document_at(&iter, &view);
    if (found)
        *found = any;
    if (document && any)
        bson_copy_to(&view, document);
    else if (document)
        bson_init(document);
    bson_destroy(&reply);
    bson_destroy(&command);
    return ok;
}

bool sl_server_at_least(const sl_server *server, unsigned major, unsigned minor) {
    unsigned its_major, its_minor;
    return sscanf(server->version, "%u.%u", &its_major, &its_minor) != 2 || its_major > major ||
           (its_major == major && its_minor >= minor);
}

void sl_uuid_of(const bson_iter_t *field, char uuid[SL_UUID_ROOM]) {
    const uint8_t *bytes;
    uint32_t length;
    uuid[0] = '\0';
    if (!BSON_ITER_HOLDS_BINARY(field))
        return;
    bson_iter_binary(field, NULL, &length, &bytes);
    for (uint32_t i = 0; i < length && i < 16; i++)
        snprintf(uuid + 2 * i, 3, "%02x", bytes[i]);
}
