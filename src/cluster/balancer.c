/* SPDX-License-Identifier: Apache-2.0 */
/* Stops the balancer while loads run, and restores its mode after the last one.
 *
 * The previous mode and the loads that keep the balancer stopped (its holders) are stored in the
 * collection "balancer" of the database "shardload". There is one such document per cluster,
 * because loads into different collections share one balancer:
 *
 *   {_id: "state", before: "full" | "off",
 *    holders: [{id, host, hostId, pid, start, since, refreshed}]}
 *
 * A loader adds itself to the holders and then stops the balancer; at its end it removes itself,
 * and the last holder restores the balancer and removes the document. If the document exists when a
 * loader starts, the balancer is off or should be: the loader takes `before` from the document and
 * not from the balancer.
 *
 * A loader that was killed leaves its entry. Whether the process of an entry is dead is decided as
 * follows:
 *  - on this host (`hostId` distinguishes hosts, boots and containers) by looking up the process;
 *    `start` distinguishes the process from a later one with the same pid;
 *  - on any other host by `refreshed`, the heartbeat: a thread of each loader sets it every few
 *    seconds, and after two minutes without it the loader is dead. Both times are the server's;
 *  - an entry with the same `id` is an earlier run of the same load, whose journal keeps the id;
 *  - loaders of earlier versions set no `refreshed`: on another host they count as alive for a day.
 * If all other holders are on other hosts when a loader ends, it waits for a heartbeat of one of
 * them, or until all are dead. So it never relies on a loader that has ended to restore the
 * balancer.
 *
 * If a loader cannot reach the server for two minutes, other loaders may count it as dead, and the
 * balancer may run. Its next heartbeat finds no entry; then the loader joins the holders and stops
 * the balancer again. No document is lost meanwhile: a migration costs speed, and --route direct
 * checks by itself that no chunk has moved.
 *
 * Why this is correct with several loaders: they read, change and write the document under a lock,
 * the document {_id: "lock"}, which only one upsert can create. So
 *  - `before` is read from the balancer only when there is no holder: the last holder restores the
 *    balancer and removes the document in one locked section;
 *  - the balancer is started only in a locked section that found no other holder, and every stop is
 *    sent by a loader that is a holder already: no start can follow it before that loader leaves.
 * Heartbeats need no lock: if a heartbeat is overwritten, the next one follows in seconds. After a
 * crash in a locked section, the document may exist although the balancer was not stopped or has
 * already been restored; but the balancer is never stopped without the document. The lock of a dead
 * process on this host is broken at once; any other lock after two minutes with the same owner (a
 * locked section takes seconds). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/context.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/process.h"

#include "internal.h"

struct sl_balancer {
    sl_connection *connection;
    char before[8];          /* "full", "off" */
    bool found;              /* the state document existed when this load joined the holders */
    bool refused;            /* the server does not permit balancerStop */
    char name[256];          /* host name, for messages */
    char host[SL_HOST_ROOM]; /* sl_host_identity of this host */
    bson_oid_t id;           /* of this load as a holder, the same in all its runs */
    pthread_t thread;        /* sends the heartbeats */
    bool thread_runs;
    pthread_mutex_t lock; /* guards `leaving`; held while this loader rejoins the holders */
    pthread_cond_t woken; /* by the monotonic clock */
    bool leaving;
};

typedef enum sl_holder_state {
    SL_HOLDER_ALIVE,  /* its process runs on this host; or its version sends no heartbeats */
    SL_HOLDER_UNSURE, /* on another host: alive if it sends another heartbeat */
    SL_HOLDER_DEAD,
} sl_holder_state;

typedef struct sl_balancer_document {
    bool exists;
    char before[8];
    uint32_t others; /* number of other holders that are not dead */
    uint32_t unsure; /* number of other holders that are SL_HOLDER_UNSURE */
    bson_t holders;  /* the other holders that are not dead, as an array; always initialised */
    char first[300]; /* the first of `holders`, for messages */
} sl_balancer_document;

/* ---- the state document: its holders, and the lock that guards it ---- */

#define STATE_DATABASE "shardload"
#define STATE_COLLECTION "balancer"
#define LOCK_PATIENCE_S 120.0
#define LOCKED_MOST_S 900.0 /* the same, whoever owns the lock */
#define HOLDERS_MOST 1000u
#define NAMED_MOST 3u /* holders that have ended, in messages */
#define EXPIRY_MS                                                                                  \
    INT64_C(120000)                     /* a holder counts as dead after this time without a
                                           heartbeat */
#define OLD_EXPIRY_MS INT64_C(86400000) /* the same for old loaders, which send no heartbeats */

static void append_fields(const sl_balancer *balancer, bson_t *me) {
    BSON_APPEND_OID(me, "id", &balancer->id);
    BSON_APPEND_UTF8(me, "host", balancer->name);
    BSON_APPEND_UTF8(me, "hostId", balancer->host);
    BSON_APPEND_INT64(me, "pid", getpid());
    BSON_APPEND_INT64(me, "start", sl_process_start(getpid()));
    BSON_APPEND_DATE_TIME(me, "since", sl_wall_clock_ms());
}

/* Appends this loader to an array of holders. */
static void balancer_append_self(const sl_balancer *balancer, int64_t now, bson_t *holders,
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

/* Does the process of a holder still run? SL_HOLDER_UNSURE if it is on another host. Holders that
 * earlier versions registered have no `hostId`, so their host names are compared. */
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

/* A time in the future is no time of a loader. */
static bool is_near(int64_t time, int64_t now, int64_t distance) {
    return time >= now - distance && time <= now + distance;
}

static sl_holder_state state_of(const sl_balancer *balancer, const bson_t *holder, int64_t now) {
    sl_holder_state state = state_of_process(balancer, holder);
    int64_t refreshed = time_of(holder, "refreshed");
    if (state != SL_HOLDER_UNSURE)
        return state;
    if (refreshed)
        return is_near(refreshed, now, EXPIRY_MS) ? SL_HOLDER_UNSURE : SL_HOLDER_DEAD;
    return is_near(time_of(holder, "since"), now, OLD_EXPIRY_MS) ? SL_HOLDER_ALIVE : SL_HOLDER_DEAD;
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

/* Has a holder in `after` sent a heartbeat since `before`, or joined since then? */
static bool balancer_any_refreshed(const sl_balancer_document *before,
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

/* Adds the holders of the document that was `found`, except this loader, dead ones, and those
 * beyond the limit. A loader that is left out adds itself again with its next heartbeat. */
static void take_holders(const sl_balancer *balancer, const bson_t *found, int64_t now,
                         sl_balancer_document *document) {
    uint32_t dead = 0;
    for (sl_walk walk = sl_walk_start(found, "holders"); sl_walk_next(&walk);) {
        char name[300], room[SL_ARRAY_KEY_ROOM];
        bson_oid_t id;
        if (id_of(&walk.item, &id) && bson_oid_equal(&id, &balancer->id))
            continue;
        name_holder(&walk.item, name, sizeof name);
        sl_holder_state state = state_of(balancer, &walk.item, now);
        if (state == SL_HOLDER_DEAD || document->others == HOLDERS_MOST) {
            if (dead++ < NAMED_MOST)
                sl_log_info("an earlier load (%s) ended without restoring the balancer", name);
            continue;
        }
        if (document->others == 0)
            snprintf(document->first, sizeof document->first, "%s", name);
        document->unsure += state == SL_HOLDER_UNSURE;
        bson_append_document(&document->holders, sl_array_key(document->others++, room), -1,
                             &walk.item);
    }
    if (dead > NAMED_MOST)
        sl_log_info("the same applies to %u more loads", dead - NAMED_MOST);
}

/* Reads the document, leaving out this loader and dead holders. */
static bool balancer_document_read(const sl_balancer *balancer, int64_t now,
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

static bool balancer_document_write(const sl_balancer *balancer,
                                    const sl_balancer_document *document, sl_error *error) {
    bson_t *query = BCON_NEW("_id", "state");
    bson_t *update = BCON_NEW("$set", "{", "before", BCON_UTF8(document->before), "holders",
                              BCON_ARRAY(&document->holders), "}");
    bool ok = modify(balancer, query, update, NULL, error);
    bson_destroy(update);
    bson_destroy(query);
    return ok;
}

static bool balancer_document_remove(const sl_balancer *balancer, sl_error *error) {
    bson_t *query = BCON_NEW("_id", "state");
    bool ok = modify(balancer, query, NULL, NULL, error);
    bson_destroy(query);
    return ok;
}

/* Not repeated after a failure: the next heartbeat follows in a few seconds. */
static bool balancer_refresh(const sl_balancer *balancer, bool *is_holder, sl_error *error) {
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

/* NULL: this loader's lock. */
static bool unlock(const sl_balancer *balancer, const bson_oid_t *owner, sl_error *error) {
    bson_t *query = BCON_NEW("_id", "lock", "holder.id", BCON_OID(owner ? owner : &balancer->id));
    bool ok = modify(balancer, query, NULL, NULL, error);
    bson_destroy(query);
    return ok;
}

/* Takes the lock. `*now` is the server's clock in milliseconds; all times in the document are the
 * server's. */
static bool balancer_lock(const sl_balancer *balancer, int64_t *now, sl_error *error) {
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
    const int64_t began = since;
    bool ok = true, mine = false;
    while (ok && !mine) {
        bson_t document, holder;
        ok = modify(balancer, query, &update, &document, error);
        if (ok && !(sl_look_inside(&document, "holder", &holder) && id_of(&holder, &found)))
            ok = sl_error_set(error, SL_EXIT_CLUSTER, "the lock of the balancer has no holder");
        mine = ok && bson_oid_equal(&found, &balancer->id);
        *now = time_of(&document, "now");
        if (ok && !mine && sl_seconds_since(began) > LOCKED_MOST_S)
            ok = sl_error_set(error, SL_EXIT_CLUSTER,
                              "others have held the lock of the balancer for 15 minutes, the "
                              "document \"lock\" of shardload.balancer");
        if (ok && !mine) {
            if (!bson_oid_equal(&owner, &found)) {
                owner = found;
                since = sl_clock_ns();
            }
            if (state_of_process(balancer, &holder) == SL_HOLDER_DEAD ||
                sl_seconds_since(since) > LOCK_PATIENCE_S)
                ok = unlock(balancer, &owner, error);
            sl_backoff(0, NULL, NULL);
            if (ok && !balancer->before[0] && sl_interrupt_requested()) /* it has not joined */
                ok = sl_error_set(error, SL_EXIT_INTERRUPTED,
                                  "interrupted while another load held the lock of the balancer");
        }
        bson_destroy(&document);
    }
    bson_destroy(&update);
    bson_destroy(query);
    return ok;
}

/* ---- the status for `shardload plan` ---- */

/* The balancer's current mode: "full" or "off". */
static bool read_mode(sl_connection *connection, char mode[8], sl_error *error) {
    bson_t reply, *command = BCON_NEW("balancerStatus", BCON_INT32(1));
    bool ok = sl_cluster_run(connection, "admin", command, &reply, NULL, error);
    strcpy(mode, ok && strcmp(sl_look_string(&reply, "mode"), "full") == 0 ? "full" : "off");
    bson_destroy(&reply);
    return ok;
}

bool sl_balancer_status(sl_connection *connection, sl_balancer_view *view, sl_error *error) {
    *view = (sl_balancer_view){.mode = ""};
    if (sl_connection_server(connection)->deployment != SL_SHARDED)
        return true;
    if (!read_mode(connection, view->mode, error))
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

/* ---- stopping and restoring ---- */

#define HEARTBEAT_SECONDS 5

/* balancerStop waits for running moves. After a minute it fails with a transient error, and
 * sl_cluster_command sends it again. */
static bool switch_to(const sl_balancer *balancer, const char *command_name, sl_error *error) {
    bson_t *command = BCON_NEW(command_name, BCON_INT32(1), "maxTimeMS", BCON_INT32(60000));
    return sl_cluster_change(balancer->connection, "admin", command, 0, error);
}

/* Adds this loader to the holders. */
static bool join(sl_balancer *balancer, sl_error *error) {
    int64_t now;
    if (!balancer_lock(balancer, &now, error))
        return false;
    sl_balancer_document document;
    bool ok = balancer_document_read(balancer, now, &document, error) &&
              (document.exists || read_mode(balancer->connection, document.before, error));
    if (ok) {
        char room[SL_ARRAY_KEY_ROOM];
        balancer_append_self(balancer, now, &document.holders, sl_array_key(document.others, room));
        strcpy(balancer->before, document.before);
        balancer->found = document.exists;
        ok = balancer_document_write(balancer, &document, error);
    }
    bson_destroy(&document.holders);
    return unlock(balancer, NULL, ok ? error : NULL) && ok;
}

/* Removes this loader from the holders; the last holder restores the balancer. A loader that the
 * server did not permit to stop the balancer restores nothing, and removes the document only if it
 * has created it. Call under the lock. */
static bool take_out(const sl_balancer *balancer, sl_balancer_document *document, sl_error *error) {
    if (!document->exists) /* a user removed it: restore the mode that this loader read */
        strcpy(document->before, balancer->before);
    if (document->others == 0 && !(balancer->refused && balancer->found))
        return (balancer->refused || strcmp(document->before, "full") != 0 ||
                switch_to(balancer, "balancerStart", error)) &&
               balancer_document_remove(balancer, error);
    if (!balancer_document_write(balancer, document, error))
        return false;
    if (!balancer->refused)
        sl_log_info("the balancer stays stopped for another load (%s), which will restore it",
                    document->first);
    return true;
}

static bool leave(sl_balancer *balancer, sl_error *error) {
    sl_balancer_document first = {.exists = false}, document;
    bool ok, waiting = true;
    bson_init(&first.holders);
    for (unsigned round = 0; waiting; round++) {
        int64_t now;
        ok = balancer_lock(balancer, &now, error);
        if (!ok)
            break;
        ok = balancer_document_read(balancer, now, &document, error);
        waiting = ok && !balancer->refused && document.unsure > 0 &&
                  document.unsure == document.others &&
                  (round == 0 || !balancer_any_refreshed(&first, &document));
        if (ok && !waiting)
            ok = take_out(balancer, &document, error);
        if (waiting && round == 0) {
            sl_log_info("waiting up to two minutes for the heartbeat of another load (%s); if it "
                        "has ended, this load will restore the balancer",
                        document.first);
            bson_copy_to(&document.holders, &first.holders);
        }
        bson_destroy(&document.holders);
        ok = unlock(balancer, NULL, ok ? error : NULL) && ok;
        if (!ok)
            break;
        if (waiting)
            nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    }
    bson_destroy(&first.holders);
    return ok;
}

/* ---- the heartbeat ---- */

/* Waits until the next heartbeat is due; false when this loader leaves. */
static bool wait_until_due(sl_balancer *balancer) {
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    due.tv_sec += HEARTBEAT_SECONDS;
    pthread_mutex_lock(&balancer->lock);
    while (!balancer->leaving &&
           pthread_cond_timedwait(&balancer->woken, &balancer->lock, &due) == 0)
        ;
    bool leaving = balancer->leaving;
    pthread_mutex_unlock(&balancer->lock);
    return !leaving;
}

static void join_again(sl_balancer *balancer) {
    sl_error error = {0};
    char before[8];
    pthread_mutex_lock(&balancer->lock);
    if (!balancer->leaving) {
        sl_log_warning(
            "another load has restored the balancer, because no heartbeat of this load reached the "
            "server for two minutes: stopping the balancer again");
        strcpy(before, balancer->before);
        if (!join(balancer, &error) ||
            (strcmp(balancer->before, "full") == 0 && !switch_to(balancer, "balancerStop", &error)))
            sl_log_debug("cannot stop the balancer yet: %s", error.message);
        if (strcmp(balancer->before, before) != 0)
            sl_log_info("the balancer was \"%s\"", balancer->before);
    }
    pthread_mutex_unlock(&balancer->lock);
}

static void *send_heartbeats(void *context) {
    sl_balancer *balancer = context;
    while (wait_until_due(balancer)) {
        bool is_holder;
        sl_error error = {0};
        if (!balancer_refresh(balancer, &is_holder, &error))
            sl_log_debug("the heartbeat was not stored: %s", error.message);
        else if (!is_holder)
            join_again(balancer);
    }
    return NULL;
}

static void stop_heartbeats(sl_balancer *balancer) {
    pthread_mutex_lock(&balancer->lock);
    balancer->leaving = true;
    pthread_cond_broadcast(&balancer->woken);
    pthread_mutex_unlock(&balancer->lock);
}

/* ---- pause and restore ---- */

static sl_balancer *balancer_create(sl_connection *connection, const char *holder) {
    sl_balancer *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->connection = connection;
    gethostname(made->name, sizeof made->name - 1);
    sl_host_identity(made->host);
    if (holder && bson_oid_is_valid(holder, strlen(holder)))
        bson_oid_init_from_string(&made->id, holder);
    else
        bson_oid_init(&made->id, NULL);
    sl_clock_init_condition(&made->woken);
    pthread_mutex_init(&made->lock, NULL);
    return made;
}

static void balancer_destroy(sl_balancer *balancer) {
    stop_heartbeats(balancer);
    if (balancer->thread_runs)
        pthread_join(balancer->thread, NULL);
    pthread_cond_destroy(&balancer->woken);
    pthread_mutex_destroy(&balancer->lock);
    free(balancer);
}

/* The balancer was not stopped. If the server does not permit it, this is only a warning. */
static bool not_stopped(sl_error *error) {
    if (!sl_code_is_refusal(error->server_code))
        return sl_error_prefix(error, "cannot stop the balancer");
    sl_log_warning("the balancer is not stopped: " SL_LINES "; it may move chunks during the load, "
                   "which slows it down",
                   error->message);
    *error = (sl_error){.code = SL_EXIT_OK};
    return true;
}

bool sl_balancer_pause(sl_connection *connection, const char *holder, sl_balancer **balancer,
                       sl_error *error) {
    *balancer = NULL;
    if (sl_connection_server(connection)->deployment != SL_SHARDED)
        return true;
    sl_balancer *made = balancer_create(connection, holder);
    if (!made)
        return sl_error_memory(error, "stopping the balancer");
    if (!join(made, error)) {
        balancer_destroy(made);
        return not_stopped(error);
    }
    made->thread_runs = sl_thread_start(&made->thread, send_heartbeats, made) == 0;
    if (!made->thread_runs)
        sl_error_set(error, SL_EXIT_RESOURCES, "cannot start a thread");
    if (!made->thread_runs ||
        (strcmp(made->before, "full") == 0 && !switch_to(made, "balancerStop", error))) {
        stop_heartbeats(made);
        made->refused = sl_code_is_refusal(error->server_code);
        leave(made, NULL);
        balancer_destroy(made);
        return not_stopped(error);
    }
    *balancer = made;
    return true;
}

bool sl_balancer_restore(sl_balancer *balancer, sl_error *error) {
    if (!balancer)
        return true;
    stop_heartbeats(balancer);
    bool ok = leave(balancer, error);
    if (!ok)
        sl_error_prefix(
            error,
            "cannot restore the balancer (it was \"%s\"): the next load on this cluster "
            "restores it, or start it with sh.startBalancer()",
            balancer->before);
    balancer_destroy(balancer);
    return ok;
}

const char *sl_balancer_before(const sl_balancer *balancer) {
    return balancer ? balancer->before : "";
}
