/* SPDX-License-Identifier: Apache-2.0 */
/* The balancer, stopped while loads run and put back as it was.
 *
 * How it was is remembered in the cluster, in the collection "balancer" of the database "shardload",
 * with everybody who wants it stopped. It is one place for the whole cluster, because loads into
 * different collections share the one balancer:
 *
 *   {_id: "state", before: "full" | "off", holders: [{id, host, pid, start, since}]}
 *
 * A loader adds itself and then stops the balancer; at its end it takes itself out, and the last
 * one puts the balancer back and removes the document. A document that is there when a loader comes
 * means that the balancer is, or should be, off: `before` is then what it says, whatever the
 * balancer does now. A loader that was killed outright leaves its entry; the next one on the same
 * host sees that the process is gone (`start` tells it from a later process with the same pid)
 * and drops the entry, while `before` stays.
 *
 * Why this is right with several loaders. Reading the document, deciding and writing it happen
 * under a lock, the document {_id: "lock"}, which only one upsert can make. So
 *  - `before` is read from the balancer only when nobody holds it: the last holder puts the
 * balancer back and removes the document in one locked section, never half of it;
 *  - the balancer is started only in a locked section that saw no other holder, and every stop is
 *    sent by a loader that is a holder already: no start can follow it before that loader leaves.
 * A crash in a locked section leaves a document that says more than is true ("off, and before it
 * was on") and never less. The lock of a dead process on this host is broken at once; anybody
 * else's when it has not changed hands for two minutes, where a locked section takes seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shardload/clock.h>
#include <shardload/log.h>
#include <shardload/process.h>

#include "internal.h"

#define STATE_DATABASE "shardload"
#define STATE_COLLECTION "balancer"
#define LOCK_PATIENCE_S 120.0

struct sl_balancer {
    sl_connection *connection;
    char before[8];
    char host[256];
    bson_oid_t id; /* of this loader as a holder */
};

/* ---- holders ---- */

static void append_holder(const sl_balancer *balancer, bson_t *holders, const char *key) {
    bson_t me;
    bson_append_document_begin(holders, key, -1, &me);
    BSON_APPEND_OID(&me, "id", &balancer->id);
    BSON_APPEND_UTF8(&me, "host", balancer->host);
    BSON_APPEND_INT64(&me, "pid", getpid());
    BSON_APPEND_INT64(&me, "start", sl_process_start(getpid()));
    BSON_APPEND_DATE_TIME(&me, "since", sl_wall_clock_ms());
    bson_append_document_end(holders, &me);
}

/* Is the holder (a document) a process of this host that is no more? */
static bool is_dead(const sl_balancer *balancer, const bson_t *holder) {
    bson_iter_t host, pid, iter;
    if (!bson_iter_init_find(&host, holder, "host") || !BSON_ITER_HOLDS_UTF8(&host) ||
        strcmp(bson_iter_utf8(&host, NULL), balancer->host) != 0 ||
        !bson_iter_init_find(&pid, holder, "pid"))
        return false;
    int64_t began = sl_process_start(bson_iter_as_int64(&pid));
    int64_t start = bson_iter_init_find(&iter, holder, "start") ? bson_iter_as_int64(&iter) : -1;
    return began == 0 || (began > 0 && start > 0 && began != start);
}

static bool is_me(const sl_balancer *balancer, const bson_t *holder) {
    bson_iter_t id;
    return bson_iter_init_find(&id, holder, "id") && BSON_ITER_HOLDS_OID(&id) &&
           bson_oid_equal(bson_iter_oid(&id), &balancer->id);
}

/* "process 123 on host" into `out`. */
static void name_holder(const bson_t *holder, char *out, size_t room) {
    bson_iter_t host, pid;
    bool named = bson_iter_init_find(&host, holder, "host") && BSON_ITER_HOLDS_UTF8(&host);
    snprintf(out, room, "process %lld on %s",
             (long long)(bson_iter_init_find(&pid, holder, "pid") ? bson_iter_as_int64(&pid) : 0),
             named ? bson_iter_utf8(&host, NULL) : "an unknown host");
}

/* ---- the document ---- */

typedef struct balancer_state {
    bool there;
    char before[8];
    uint32_t others; /* live holders but this loader */
    bson_t holders;  /* they, as an array; initialised always */
    char first[300]; /* one of them, for messages */
} balancer_state;

static bool read_state(const sl_balancer *balancer, balancer_state *state, sl_error *error) {
    *state = (balancer_state){.before = "off"};
    bson_init(&state->holders);
    bson_t document;
    bson_iter_t iter, list;
    bool ok = sl_find_by_id(balancer->connection, STATE_DATABASE, STATE_COLLECTION,
                            "state", &document, &state->there, error);
    if (state->there && bson_iter_init_find(&iter, &document, "before") &&
        BSON_ITER_HOLDS_UTF8(&iter))
        snprintf(state->before, sizeof state->before, "%s", bson_iter_utf8(&iter, NULL));
    if (state->there && bson_iter_init_find(&iter, &document, "holders") &&
        BSON_ITER_HOLDS_ARRAY(&iter) && bson_iter_recurse(&iter, &list)) {
        while (bson_iter_next(&list)) {
            const uint8_t *bytes;
            uint32_t length;
            bson_t holder;
            if (!BSON_ITER_HOLDS_DOCUMENT(&list))
                continue;
            bson_iter_document(&list, &length, &bytes);
            if (!bson_init_static(&holder, bytes, length) || is_me(balancer, &holder))
                continue;
            if (is_dead(balancer, &holder)) {
                char name[300];
                name_holder(&holder, name, sizeof name);
                sl_log_info("an earlier load (%s) ended without putting the balancer back", name);
                continue;
            }
            const char *key;
            char room[16];
            if (state->others == 0)
                name_holder(&holder, state->first, sizeof state->first);
            bson_uint32_to_string(state->others++, &key, room, sizeof room);
            BSON_APPEND_DOCUMENT(&state->holders, key, &holder);
        }
    }
    bson_destroy(&document);
    return ok;
}

static bool modify(const sl_balancer *balancer, const bson_t *query, const bson_t *update,
                   bson_t *document, sl_error *error) {
    return sl_find_and_modify(balancer->connection, STATE_DATABASE, STATE_COLLECTION, query,
                              update, update != NULL, document, NULL, error);
}

static bool write_state(const sl_balancer *balancer, const balancer_state *state, sl_error *error) {
    bson_t *query = BCON_NEW("_id", "state");
    bson_t *update = BCON_NEW("$set", "{", "before", BCON_UTF8(state->before), "holders",
                              BCON_ARRAY(&state->holders), "}");
    bool ok = modify(balancer, query, update, NULL, error);
    bson_destroy(update);
    bson_destroy(query);
    return ok;
}

static bool remove_state(const sl_balancer *balancer, sl_error *error) {
    bson_t *query = BCON_NEW("_id", "state");
    bool ok = modify(balancer, query, NULL, NULL, error);
    bson_destroy(query);
    return ok;
}

/* ---- the lock ---- */

static bool unlock(const sl_balancer *balancer, const bson_oid_t *owner, sl_error *error) {
    bson_t *query = BCON_NEW("_id", "lock", "holder.id", BCON_OID(owner));
    bool ok = modify(balancer, query, NULL, NULL, error);
    bson_destroy(query);
    return ok;
}

static bool lock(const sl_balancer *balancer, sl_error *error) {
    bson_t *query = BCON_NEW("_id", "lock");
    bson_t update = BSON_INITIALIZER, fields;
    bson_append_document_begin(&update, "$setOnInsert", -1, &fields);
    append_holder(balancer, &fields, "holder");
    bson_append_document_end(&update, &fields);

    bson_oid_t owner = balancer->id;
    int64_t since = sl_clock_ns(); /* when `owner` was first seen */
    bool ok = true, mine = false;
    while (ok && !mine) {
        bson_t document, holder;
        bson_iter_t iter, id;
        const uint8_t *bytes;
        uint32_t length;
        ok = modify(balancer, query, &update, &document, error);
        if (ok && bson_iter_init_find(&iter, &document, "holder") &&
            BSON_ITER_HOLDS_DOCUMENT(&iter)) {
            bson_iter_document(&iter, &length, &bytes);
            mine = bson_init_static(&holder, bytes, length) && is_me(balancer, &holder);
            if (!mine && bson_iter_init_find(&id, &holder, "id") && BSON_ITER_HOLDS_OID(&id)) {
                if (!bson_oid_equal(&owner, bson_iter_oid(&id))) {
                    bson_oid_copy(bson_iter_oid(&id), &owner);
                    since = sl_clock_ns();
                }
                if (is_dead(balancer, &holder) || sl_seconds_since(since) > LOCK_PATIENCE_S)
                    ok = unlock(balancer, &owner, error);
                else
                    sl_backoff(0, NULL, NULL);
            }
        }
        bson_destroy(&document);
    }
    bson_destroy(&update);
    bson_destroy(query);
    return ok;
}

/* ---- the balancer itself ---- */

static bool read_mode(sl_connection *connection, char before[8], sl_error *error) {
    bson_t reply;
    bson_iter_t iter;
    bson_t *command = BCON_NEW("balancerStatus", BCON_INT32(1));
    bool ok = sl_cluster_command(connection, "admin", command, &reply, NULL, error);
    bool on = ok && bson_iter_init_find(&iter, &reply, "mode") && BSON_ITER_HOLDS_UTF8(&iter) &&
              strcmp(bson_iter_utf8(&iter, NULL), "full") == 0;
    strcpy(before, on ? "full" : "off");
    bson_destroy(&reply);
    bson_destroy(command);
    return ok;
}

/* Stopping waits for the moves under way, a minute at a time; that it was not enough is a transient
 * failure, so that it is asked again some times. */
static bool switch_to(const sl_balancer *balancer, const char *command_name, sl_error *error) {
    bson_t *command = BCON_NEW(command_name, BCON_INT32(1), "maxTimeMS", BCON_INT32(60000));
    bool ok = sl_cluster_command(balancer->connection, "admin", command, NULL, NULL, error);
    bson_destroy(command);
    return ok;
}

/* Adds this loader to the holders. */
static bool join(sl_balancer *balancer, sl_error *error) {
    if (!lock(balancer, error))
        return false;
    balancer_state state;
    bool ok = read_state(balancer, &state, error) &&
              (state.there || read_mode(balancer->connection, state.before, error));
    if (ok) {
        char room[16];
        const char *key;
        bson_uint32_to_string(state.others, &key, room, sizeof room);
        append_holder(balancer, &state.holders, key);
        strcpy(balancer->before, state.before);
        ok = write_state(balancer, &state, error);
    }
    bson_destroy(&state.holders);
    return unlock(balancer, &balancer->id, ok ? error : NULL) && ok;
}

/* Takes this loader out of the holders; the last one puts the balancer back. */
static bool leave(sl_balancer *balancer, sl_error *error) {
    if (!lock(balancer, error))
        return false;
    balancer_state state;
    bool ok = read_state(balancer, &state, error);
    if (ok && !state.there) /* somebody removed it by hand: what this loader saw counts */
        strcpy(state.before, balancer->before);
    if (ok && state.others > 0) {
        ok = write_state(balancer, &state, error);
        sl_log_info("the balancer stays stopped for another load (%s), which will put it back",
                    state.first);
    } else if (ok) {
        ok = (strcmp(state.before, "full") != 0 || switch_to(balancer, "balancerStart", error)) &&
             remove_state(balancer, error);
    }
    bson_destroy(&state.holders);
    return unlock(balancer, &balancer->id, ok ? error : NULL) && ok;
}

bool sl_balancer_read(sl_connection *connection, char mode[8], sl_error *error) {
    mode[0] = '\0';
    return sl_connection_server(connection)->deployment != SL_SHARDED ||
           read_mode(connection, mode, error);
}

bool sl_balancer_pause(sl_connection *connection, sl_balancer **balancer, sl_error *error) {
    *balancer = NULL;
    if (sl_connection_server(connection)->deployment != SL_SHARDED)
        return true;
    sl_balancer *made = calloc(1, sizeof *made);
    if (!made)
        return sl_error_memory(error, "stopping the balancer");
    made->connection = connection;
    gethostname(made->host, sizeof made->host - 1);
    bson_oid_init(&made->id, NULL);
    if (!join(made, error)) {
        free(made);
        return sl_error_prefix(error, "cannot stop the balancer");
    }
    if (strcmp(made->before, "full") == 0 && !switch_to(made, "balancerStop", error)) {
        leave(made, NULL);
        free(made);
        return sl_error_prefix(error, "cannot stop the balancer");
    }
    *balancer = made;
    return true;
}

bool sl_balancer_restore(sl_balancer *balancer, sl_error *error) {
    if (!balancer)
        return true;
    bool ok = leave(balancer, error);
    if (!ok)
        sl_error_prefix(error,
                        "cannot put the balancer back (it was \"%s\"); the next load into the same "
                        "collection will, or start it with sh.startBalancer()",
                        balancer->before);
    free(balancer);
    return ok;
}

const char *sl_balancer_before(const sl_balancer *balancer) {
    return balancer ? balancer->before : "";
}
