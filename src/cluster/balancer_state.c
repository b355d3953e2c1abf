/* SPDX-License-Identifier: Apache-2.0 */
/* The balancer's state document in the cluster: its holders, which of them are dead, and the lock
 * that guards the document. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"

#include "balancer.h"

#define STATE_DATABASE "shardload"
#define STATE_COLLECTION "balancer"
#define LOCK_PATIENCE_S 120.0
#define EXPIRY_MS                                                                                  \
    INT64_C(120000)                     /* a holder counts as dead after this time without a
                                           heartbeat */
#define OLD_EXPIRY_MS INT64_C(86400000) /* the same for old loaders, which send no heartbeats */

/* ---- holders ---- */

static void append_fields(const sl_balancer *balancer, bson_t *me) {
    BSON_APPEND_OID(me, "id", &balancer->id);
    BSON_APPEND_UTF8(me, "host", balancer->name);
    BSON_APPEND_UTF8(me, "hostId", balancer->host);
    BSON_APPEND_INT64(me, "pid", getpid());
    BSON_APPEND_INT64(me, "start", sl_process_start(getpid()));
    BSON_APPEND_DATE_TIME(me, "since", sl_wall_clock_ms());
}

void sl_balancer_append_self(const sl_balancer *balancer, int64_t now, bson_t *holders,
                             const char *key) {
    bson_t me;
    bson_append_document_begin(holders, key, -1, &me);
    append_fields(balancer, &me);
    BSON_APPEND_DATE_TIME(&me, "refreshed", now);
    bson_append_document_end(holders, &me);
}

/* Milliseconds, or 0. */
static int64_t time_of(const bson_t *holder, const char *key) {
    return (int64_t)sl_look_amount(holder, key, 0);
}

static bool id_of(const bson_t *holder, bson_oid_t *id) {
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, holder, "id") || !BSON_ITER_HOLDS_OID(&iter))
        return false;
    bson_oid_copy(bson_iter_oid(&iter), id);
    return true;
}

static bool is_me(const sl_balancer *balancer, const bson_t *holder) {
    bson_oid_t id;
    return id_of(holder, &id) && bson_oid_equal(&id, &balancer->id);
}

/* The state of a holder by the processes of this host; for a holder on another host it is
 * SL_HOLDER_UNSURE. Entries of earlier versions have no `hostId`: for them the host name is
 * compared. */
static sl_holder_state state_of_process(const sl_balancer *balancer, const bson_t *holder) {
    const char *host = sl_look_string(holder, "hostId");
    bool here = host[0] ? strcmp(host, balancer->host) == 0
                        : strcmp(sl_look_string(holder, "host"), balancer->name) == 0;
    if (!here || !bson_has_field(holder, "pid"))
        return SL_HOLDER_UNSURE;
    int64_t actual = sl_process_start(sl_look_int64(holder, "pid", 0));
    int64_t stored = sl_look_int64(holder, "start", -1);
    if (actual == 0 || (actual > 0 && stored > 0 && actual != stored))
        return SL_HOLDER_DEAD;
    return actual > 0 && actual == stored ? SL_HOLDER_ALIVE : SL_HOLDER_UNSURE;
}

static sl_holder_state state_of(const sl_balancer *balancer, const bson_t *holder, int64_t now) {
    sl_holder_state state = state_of_process(balancer, holder);
    int64_t refreshed = time_of(holder, "refreshed");
    if (state != SL_HOLDER_UNSURE)
        return state;
    if (refreshed)
        return now - refreshed > EXPIRY_MS ? SL_HOLDER_DEAD : SL_HOLDER_UNSURE;
    return now - time_of(holder, "since") > OLD_EXPIRY_MS ? SL_HOLDER_DEAD : SL_HOLDER_ALIVE;
}

/* "process 123 on host" into `out`. */
static void name_holder(const bson_t *holder, char *out, size_t room) {
    const char *host = sl_look_string(holder, "host");
    snprintf(out, room, "process %lld on %s", (long long)sl_look_int64(holder, "pid", 0),
             host[0] ? host : "an unknown host");
}

/* When the holder with this id sent its last heartbeat; -1: there is no such holder. */
static int64_t last_heartbeat(const bson_t *holders, const bson_oid_t *id) {
    bson_oid_t other;
    for (sl_walk walk = sl_walk_of(holders); sl_walk_next(&walk);) {
        if (id_of(&walk.item, &other) && bson_oid_equal(&other, id))
            return time_of(&walk.item, "refreshed");
    }
    return -1;
}

bool sl_balancer_any_refreshed(const sl_balancer_document *before,
                               const sl_balancer_document *after) {
    bson_oid_t id;
    for (sl_walk walk = sl_walk_of(&after->holders); sl_walk_next(&walk);) {
        if (!id_of(&walk.item, &id) ||
            time_of(&walk.item, "refreshed") != last_heartbeat(&before->holders, &id))
            return true;
    }
    return false;
}

/* ---- the document ---- */

/* Adds the holders of the document that was `found`, except this loader and dead ones. */
static void take_holders(const sl_balancer *balancer, const bson_t *found, int64_t now,
                         sl_balancer_document *document) {
    for (sl_walk walk = sl_walk_start(found, "holders"); sl_walk_next(&walk);) {
        char name[300], room[SL_ARRAY_KEY_ROOM];
        if (is_me(balancer, &walk.item))
            continue;
        name_holder(&walk.item, name, sizeof name);
        sl_holder_state state = state_of(balancer, &walk.item, now);
        if (state == SL_HOLDER_DEAD) {
            sl_log_info("an earlier load (%s) ended without restoring the balancer", name);
            continue;
        }
        if (document->others == 0)
            snprintf(document->first, sizeof document->first, "%s", name);
        document->unsure += state == SL_HOLDER_UNSURE;
        bson_append_document(&document->holders, sl_array_key(document->others++, room), -1,
                             &walk.item);
    }
}

bool sl_balancer_document_read(const sl_balancer *balancer, int64_t now,
                               sl_balancer_document *document, sl_error *error) {
    *document = (sl_balancer_document){.before = "off"};
    bson_init(&document->holders);
    bson_t found;
    bool ok = sl_find_by_id(balancer->connection, STATE_DATABASE, STATE_COLLECTION, "state", &found,
                            &document->exists, error);
    if (document->exists && strcmp(sl_look_string(&found, "before"), "full") == 0)
        strcpy(document->before, "full");
    take_holders(balancer, &found, now, document);
    bson_destroy(&found);
    return ok;
}

static bool modify(const sl_balancer *balancer, const bson_t *query, const bson_t *update,
                   bson_t *document, sl_error *error) {
    return sl_find_and_modify(balancer->connection, STATE_DATABASE, STATE_COLLECTION, query, update,
                              update != NULL, document, NULL, error);
}

bool sl_balancer_document_write(const sl_balancer *balancer, const sl_balancer_document *document,
                                sl_error *error) {
    bson_t *query = BCON_NEW("_id", "state");
    bson_t *update = BCON_NEW("$set", "{", "before", BCON_UTF8(document->before), "holders",
                              BCON_ARRAY(&document->holders), "}");
    bool ok = modify(balancer, query, update, NULL, error);
    bson_destroy(update);
    bson_destroy(query);
    return ok;
}

bool sl_balancer_document_remove(const sl_balancer *balancer, sl_error *error) {
    bson_t *query = BCON_NEW("_id", "state");
    bool ok = modify(balancer, query, NULL, NULL, error);
    bson_destroy(query);
    return ok;
}

/* Not repeated after a failure: the next heartbeat follows in a few seconds. */
bool sl_balancer_refresh(const sl_balancer *balancer, bool *is_holder, sl_error *error) {
    bson_t reply;
    bson_iter_t iter;
    bson_t *update = BCON_NEW("update", STATE_COLLECTION, "updates", "[", "{", "q", "{", "_id",
                              "state", "holders.id", BCON_OID(&balancer->id), "}", "u", "{",
                              "$currentDate", "{", "holders.$.refreshed", BCON_BOOL(true), "}", "}",
                              "}", "]", "writeConcern", "{", "w", BCON_INT32(1), "}");
    bool ok =
        sl_connection_command(balancer->connection, STATE_DATABASE, update, &reply, NULL, error);
    ok = ok && !bson_has_field(&reply, "writeErrors") && bson_iter_init_find(&iter, &reply, "n");
    *is_holder = !ok || bson_iter_as_int64(&iter) > 0;
    bson_destroy(&reply);
    bson_destroy(update);
    return ok;
}

/* ---- the lock ---- */

static bool unlock(const sl_balancer *balancer, const bson_oid_t *owner, sl_error *error) {
    bson_t *query = BCON_NEW("_id", "lock", "holder.id", BCON_OID(owner));
    bool ok = modify(balancer, query, NULL, NULL, error);
    bson_destroy(query);
    return ok;
}

bool sl_balancer_unlock(const sl_balancer *balancer, sl_error *error) {
    return unlock(balancer, &balancer->id, error);
}

bool sl_balancer_lock(const sl_balancer *balancer, int64_t *now, sl_error *error) {
    bson_t *query = BCON_NEW("_id", "lock");
    bson_t update = BSON_INITIALIZER, fields, me;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$setOnInsert", &fields);
    BSON_APPEND_DOCUMENT_BEGIN(&fields, "holder", &me);
    append_fields(balancer, &me);
    bson_append_document_end(&fields, &me);
    bson_append_document_end(&update, &fields);
    BCON_APPEND(&update, "$currentDate", "{", "now", BCON_BOOL(true), "}");

    bson_oid_t owner = balancer->id, found;
    int64_t since = sl_clock_ns(); /* when `owner` was first read */
    bool ok = true, mine = false;
    while (ok && !mine) {
        bson_t document, holder;
        bson_iter_t iter;
        ok = modify(balancer, query, &update, &document, error);
        if (ok && bson_iter_init_find(&iter, &document, "holder") &&
            sl_document_at(&iter, &holder)) {
            mine = is_me(balancer, &holder);
            *now = time_of(&document, "now");
            if (!mine && id_of(&holder, &found)) {
                if (!bson_oid_equal(&owner, &found)) {
                    owner = found;
                    since = sl_clock_ns();
                }
                if (state_of_process(balancer, &holder) == SL_HOLDER_DEAD ||
                    sl_seconds_since(since) > LOCK_PATIENCE_S)
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

/* ---- the status for `shardload plan` ---- */

bool sl_balancer_status(sl_connection *connection, sl_balancer_view *view, sl_error *error) {
    *view = (sl_balancer_view){.mode = ""};
    if (sl_connection_server(connection)->deployment != SL_SHARDED)
        return true;
    if (!sl_balancer_read_mode(connection, view->mode, error))
        return false;
    sl_balancer reader = {.connection = connection};
    gethostname(reader.name, sizeof reader.name - 1);
    sl_host_identity(reader.host);
    bson_t reply, document;
    bson_t *command = BCON_NEW("aggregate", STATE_COLLECTION, "pipeline", "[", "{", "$match", "{",
                               "_id", "state", "}", "}", "{", "$addFields", "{", "now", "$$NOW",
                               "}", "}", "]", "cursor", "{", "}");
    int32_t code;
    bool ok = sl_cluster_run(connection, STATE_DATABASE, command, &reply, &code, error);
    if (ok && sl_look_inside(&reply, "cursor.firstBatch.0", &document)) {
        int64_t now = time_of(&document, "now");
        snprintf(view->before, sizeof view->before, "%s", sl_look_string(&document, "before"));
        size_t used = 0;
        for (sl_walk walk = sl_walk_start(&document, "holders"); sl_walk_next(&walk);) {
            char name[300], age[60] = "";
            int64_t refreshed = time_of(&walk.item, "refreshed");
            bool dead = state_of(&reader, &walk.item, now) == SL_HOLDER_DEAD;
            view->holders++;
            view->dead += dead;
            name_holder(&walk.item, name, sizeof name);
            if (refreshed)
                snprintf(age, sizeof age, ", last heartbeat %lld s ago",
                         (long long)(now > refreshed ? (now - refreshed) / 1000 : 0));
            if (used < sizeof view->names)
                used += (size_t)snprintf(view->names + used, sizeof view->names - used,
                                         "%s%s (%s%s)", used ? ", " : "", name,
                                         dead ? "it has ended" : "it holds the balancer", age);
        }
    }
    bson_destroy(&reply);
    return ok || code == SL_CODE_UNAUTHORIZED; /* the mode alone is reported */
}

bool sl_balancer_read_mode(sl_connection *connection, char mode[8], sl_error *error) {
    bson_t reply, *command = BCON_NEW("balancerStatus", BCON_INT32(1));
    bool ok = sl_cluster_run(connection, "admin", command, &reply, NULL, error);
    strcpy(mode, ok && strcmp(sl_look_string(&reply, "mode"), "full") == 0 ? "full" : "off");
    bson_destroy(&reply);
    return ok;
}
