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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/context.h"
#include "util/log.h"

#include "balancer.h"

#define HEARTBEAT_SECONDS 5

/* ---- the balancer's commands ---- */

/* balancerStop waits for running moves. After a minute it fails with a transient error, and
 * sl_cluster_command sends it again. */
static bool switch_to(const sl_balancer *balancer, const char *command_name, sl_error *error) {
    bson_t *command = BCON_NEW(command_name, BCON_INT32(1), "maxTimeMS", BCON_INT32(60000));
    return sl_cluster_change(balancer->connection, "admin", command, 0, error);
}

/* ---- the holders ---- */

/* Adds this loader to the holders. */
static bool join(sl_balancer *balancer, sl_error *error) {
    int64_t now;
    if (!sl_balancer_lock(balancer, &now, error))
        return false;
    sl_balancer_document document;
    bool ok =
        sl_balancer_document_read(balancer, now, &document, error) &&
        (document.exists || sl_balancer_read_mode(balancer->connection, document.before, error));
    if (ok) {
        char room[SL_ARRAY_KEY_ROOM];
        sl_balancer_append_self(balancer, now, &document.holders,
                                sl_array_key(document.others, room));
        strcpy(balancer->before, document.before);
        ok = sl_balancer_document_write(balancer, &document, error);
    }
    bson_destroy(&document.holders);
    return sl_balancer_unlock(balancer, ok ? error : NULL) && ok;
}

/* Removes this loader from the holders; the last one restores the balancer. Call under the lock. */
static bool take_out(const sl_balancer *balancer, sl_balancer_document *document, sl_error *error) {
    if (!document->exists) /* a user removed it: restore the mode that this loader read */
        strcpy(document->before, balancer->before);
    if (document->others == 0)
        return (strcmp(document->before, "full") != 0 ||
                switch_to(balancer, "balancerStart", error)) &&
               sl_balancer_document_remove(balancer, error);
    if (!sl_balancer_document_write(balancer, document, error))
        return false;
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
        ok = sl_balancer_lock(balancer, &now, error);
        if (!ok)
            break;
        ok = sl_balancer_document_read(balancer, now, &document, error);
        waiting = ok && document.unsure > 0 && document.unsure == document.others &&
                  (round == 0 || !sl_balancer_any_refreshed(&first, &document));
        if (ok && !waiting)
            ok = take_out(balancer, &document, error);
        if (waiting && round == 0) {
            sl_log_info("waiting up to two minutes for the heartbeat of another load (%s); if it "
                        "has ended, this load will restore the balancer",
                        document.first);
            bson_copy_to(&document.holders, &first.holders);
        }
        bson_destroy(&document.holders);
        ok = sl_balancer_unlock(balancer, ok ? error : NULL) && ok;
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
        if (!sl_balancer_refresh(balancer, &is_holder, &error))
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
        return sl_error_prefix(error, "cannot stop the balancer");
    }
    made->thread_runs = sl_thread_start(&made->thread, send_heartbeats, made) == 0;
    if (!made->thread_runs)
        sl_error_set(error, SL_EXIT_RESOURCES, "cannot start a thread");
    if (!made->thread_runs ||
        (strcmp(made->before, "full") == 0 && !switch_to(made, "balancerStop", error))) {
        stop_heartbeats(made);
        leave(made, NULL);
        balancer_destroy(made);
        return sl_error_prefix(error, "cannot stop the balancer");
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
