/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Commands that are forwarded to one server, and their cursors.
 *
 * A cursor opened by a cluster* command is known only to the router code of that server, and must
 * be continued there with clusterGetMore. mongod has no clusterKillCursors. But its router code
 * closes a cursor when a clusterGetMore for it fails, and a maxTimeMS on a cursor that is not
 * tailable always fails, before anything is read: that is how such a cursor is closed here.
 */

#include "commands.h"

#include <string.h>

static enum cursor_kind kind_of_cursor(const struct command *command) {
    return command->sent_as && strncmp(command->sent_as, "cluster", 7) == 0 ? CURSOR_OF_ROUTER
                                                                            : CURSOR_OF_SERVER;
}

/* The id in a reply's `cursor` document; 0 without a cursor, or for an exhausted one. */
static int64_t cursor_in_reply(const struct session *session) {
    bson_t body;
    bson_t cursor;
    bson_iter_t iter;
    return session_forwarded_body(session, &body) && find_document(&body, "cursor", &cursor) &&
                   bson_iter_init_find(&iter, &cursor, "id")
               ? bson_iter_as_int64(&iter)
               : 0;
}

/*
 * Did a shard's router code fail because its routing table is out of date? mongos would refresh the
 * table and route again; a shard does this for some commands only (not for $collStats after a
 * move). */
static bool gave_up_on_stale_routing(const struct session *session) {
    bson_t answer;
    return session_forwarded_body(session, &answer) && answer_code(&answer) == CODE_STALE_CONFIG;
}

static bool renew_routing(struct session *session, const struct request *request, size_t set) {
    char ns[MAX_NAMESPACE];
    bson_t ignored;
    const bool good =
        request_namespace(request, ns, &ignored) &&
        session_run_built(session, set,
                          BCON_NEW("flushRouterConfig", BCON_UTF8(ns), "$db", "admin"), &ignored);
    bson_destroy(&ignored);
    return good;
}

bool run_at_home(struct session *session, const struct request *request, const bson_t *body,
                 bson_t *reply) {
    for (int attempt = 1;; attempt++) {
        if (session_run(session, session->home, body, reply)) {
            return true;
        }
        if (answer_code(reply) != CODE_STALE_CONFIG || attempt == STALE_ATTEMPTS ||
            !renew_routing(session, request, session->home)) {
            return false;
        }
        bson_destroy(reply);
    }
}

enum outcome forward_to(struct session *session, const struct request *request, size_t set,
                        const bson_t *body, bson_t *reply) {
    const struct command *command = request->command;
    enum outcome outcome;
    for (int attempt = 1;; attempt++) {
        outcome = session_forward(session, request, set, body, command->flags & COMMAND_REPEATABLE,
                                  reply);
        /* A command with this error has done nothing, so any command may be sent again. */
        if (outcome != FORWARDED || attempt == STALE_ATTEMPTS ||
            !gave_up_on_stale_routing(session) || !renew_routing(session, request, set)) {
            break;
        }
    }
    if (outcome == FORWARDED && command->flags & COMMAND_OPENS_CURSOR) {
        const int64_t id = cursor_in_reply(session);
        if (id != 0) {
            cursors_note(session->router->cursors, id,
                         (struct cursor_place){.set = set, .kind = kind_of_cursor(command)});
        }
    }
    return outcome;
}

static enum outcome forward_renamed(struct session *session, const struct request *request,
                                    size_t set, bson_t *reply) {
    bson_t body;
    command_prepare(request, &body);
    const enum outcome outcome = forward_to(session, request, set, &body, reply);
    bson_destroy(&body);
    return outcome;
}

enum outcome forward_home(struct session *session, const struct request *request, bson_t *reply) {
    return forward_renamed(session, request, session->home, reply);
}

enum outcome forward_config(struct session *session, const struct request *request, bson_t *reply) {
    return forward_renamed(session, request, CONFIG_SET, reply);
}

/* Forwards to the primary shard of the command's database. A missing database counts as empty. */
enum outcome forward_primary(struct session *session, const struct request *request,
                             bson_t *reply) {
    struct database database;
    enum outcome outcome = ANSWERED;
    if (request->command->flags & COMMAND_CREATES
            ? database_ensure(session, request->db, &database, reply)
            : database_load(session, request->db, &database, reply)) {
        outcome = forward_renamed(session, request,
                                  database.exists ? database.primary : session->home, reply);
    }
    database_clear(&database);
    return outcome;
}

enum outcome run_by_sharding(struct session *session, const struct request *request,
                             bson_t *reply) {
    struct routing routing;
    char ns[MAX_NAMESPACE];
    if (!request_namespace(request, ns, reply) || !routing_load(session, ns, &routing, reply)) {
        return ANSWERED;
    }
    const enum outcome outcome =
        routing.sharded ? request->command->sharded(session, request, ns, &routing, reply)
                        : forward_primary(session, request, reply);
    routing_clear(&routing);
    return outcome;
}

bool run_on_sets(struct session *session, size_t first, const bson_t *command, reply_visitor *each,
                 void *state, bson_t *reply) {
    const struct topology *topology = session->router->topology;
    for (size_t set = first; set < topology->count; set++) {
        if (!session_run(session, set, command, reply)) {
            return false;
        }
        if (each) {
            each(state, &topology->sets[set], reply);
        }
        bson_destroy(reply);
    }
    return true;
}

/* Forwards to every shard; the reply is the first error, or success. */
enum outcome forward_everywhere(struct session *session, const struct request *request,
                                bson_t *reply) {
    bson_t body;
    command_prepare(request, &body);
    if (run_on_sets(session, CONFIG_SET + 1, &body, NULL, NULL, reply)) {
        answer_ok(reply);
    }
    bson_destroy(&body);
    return ANSWERED;
}

enum outcome forward_get_more(struct session *session, const struct request *request,
                              bson_t *reply) {
    struct cursor_place place;
    bson_iter_t iter;
    bson_t body;
    if (!bson_iter_init(&iter, request->body) || !bson_iter_next(&iter) ||
        !BSON_ITER_HOLDS_INT64(&iter)) {
        answer_error(reply, CODE_TYPE_MISMATCH, "getMore needs a 64-bit cursor id");
        return ANSWERED;
    }
    const int64_t id = bson_iter_int64(&iter);
    if (!cursors_find(session->router->cursors, id, &place)) {
        answer_error(reply, CODE_CURSOR_NOT_FOUND, "cursor id %lld not found", (long long)id);
        return ANSWERED;
    }
    command_rewrite(request->body, place.kind == CURSOR_OF_ROUTER ? "clusterGetMore" : "getMore",
                    &body);
    const enum outcome outcome = session_forward(session, request, place.set, &body, false, reply);
    bson_destroy(&body);
    /* A reply without a cursor id is the last one: the cursor is exhausted or has failed. */
    if (outcome == FORWARDED && cursor_in_reply(session) == 0) {
        cursors_forget(session->router->cursors, id);
    }
    return outcome;
}

/* Closes one cursor. True when it was open. */
static bool kill_cursor(struct session *session, const struct request *request, int64_t id) {
    struct cursor_place place;
    bson_t kill = BSON_INITIALIZER;
    bson_t answer;
    if (!cursors_find(session->router->cursors, id, &place)) {
        return false;
    }
    cursors_forget(session->router->cursors, id);
    if (place.kind == CURSOR_OF_ROUTER) {
        BSON_APPEND_INT64(&kill, "clusterGetMore", id);
        BSON_APPEND_UTF8(&kill, "collection", request->target ? request->target : "");
        BSON_APPEND_INT32(&kill, "batchSize", 1);
        BSON_APPEND_INT32(&kill, "maxTimeMS", 1);
    } else {
        bson_t list;
        BSON_APPEND_UTF8(&kill, "killCursors", request->target ? request->target : "");
        BSON_APPEND_ARRAY_BEGIN(&kill, "cursors", &list);
        BSON_APPEND_INT64(&list, "0", id);
        bson_append_array_end(&kill, &list);
    }
    BSON_APPEND_UTF8(&kill, "$db", request->db);
    session_run(session, place.set, &kill, &answer);
    const bool was_open = answer_code(&answer) != CODE_CURSOR_NOT_FOUND;
    bson_destroy(&answer);
    bson_destroy(&kill);
    return was_open;
}

enum outcome kill_cursors(struct session *session, const struct request *request, bson_t *reply) {
    bson_t asked;
    bson_t lists[2]; /* not found, killed */
    bson_iter_t iter;
    if (!find_document(request->body, "cursors", &asked) || !bson_iter_init(&iter, &asked)) {
        answer_error(reply, CODE_TYPE_MISMATCH, "killCursors needs an array of cursors");
        return ANSWERED;
    }
    bson_init(&lists[0]);
    bson_init(&lists[1]);
    while (bson_iter_next(&iter)) {
        if (BSON_ITER_HOLDS_INT64(&iter)) {
            const int64_t id = bson_iter_int64(&iter);
            bson_t *list = &lists[kill_cursor(session, request, id)];
            char index[16];
            const char *key;
            bson_uint32_to_string(bson_count_keys(list), &key, index, sizeof index);
            BSON_APPEND_INT64(list, key, id);
        }
    }
    bson_init(reply);
    BSON_APPEND_ARRAY(reply, "cursorsKilled", &lists[1]);
    BSON_APPEND_ARRAY(reply, "cursorsNotFound", &lists[0]);
    bson_destroy(&lists[0]);
    bson_init(&lists[0]);
    BSON_APPEND_ARRAY(reply, "cursorsAlive", &lists[0]);
    BSON_APPEND_ARRAY(reply, "cursorsUnknown", &lists[0]);
    BSON_APPEND_DOUBLE(reply, "ok", 1.0);
    bson_destroy(&lists[0]);
    bson_destroy(&lists[1]);
    return ANSWERED;
}
