/* SPDX-License-Identifier: Apache-2.0 */
/* The balancer, stopped while loads run and put back as it was.
 *
 * How it was is remembered in the cluster, in the collection "balancer" of the database
 * "shardload", with every load that wants it stopped, its holders. It is one place for the whole
 * cluster, because loads into different collections share the one balancer:
 *
 *   {_id: "state", before: "full" | "off",
 *    holders: [{id, host, hostId, pid, start, since, refreshed}]}
 *
 * A loader adds itself and then stops the balancer; at its end it takes itself out, and the last
 * one puts the balancer back and removes the document. A document that is there when a loader comes
 * means that the balancer is, or should be, off: `before` is then what it says, whatever the
 * balancer does now.
 *
 * A loader that was killed leaves its entry. Which entries are those of dead loaders:
 *  - on this host (`hostId` tells hosts, boots and containers apart) the process is looked up, and
 *    `start` tells it from a later process of the same number;
 *  - on any other host, `refreshed` counts: a thread of each loader sets it every few seconds, and
 *    an entry that is older than two minutes is dead. The time is the server's on both sides;
 *  - an entry of the same `id` is an earlier run of the same load, whose journal keeps the id;
 *  - loaders of earlier versions set no `refreshed`: on another host they count as alive for a day.
 * A loader that ends, and finds others of which only time can tell, waits for their next sign of
 * life, or until they are dead: it never leaves the balancer to a loader that has ended.
 *
 * A loader that could not reach the server for two minutes may have been taken for dead, and the
 * balancer may run. Its next sign of life finds no entry; then it joins again and stops the
 * balancer again. Nothing is lost meanwhile: a migration costs speed, and --route direct checks by
 * itself that no chunk has moved.
 *
 * Why this is right with several loaders. Reading the document, deciding and writing it happen
 * under a lock, the document {_id: "lock"}, which only one upsert can make. So
 *  - `before` is read from the balancer only when nobody holds it: the last holder puts the
 *    balancer back and removes the document in one locked section, never half of it;
 *  - the balancer is started only in a locked section that saw no other holder, and every stop is
 *    sent by a loader that is a holder already: no start can follow it before that loader leaves.
 * Signs of life need no lock: one that is overwritten is followed by the next. A crash in a locked
 * section leaves a document that says more than is true ("off, and before it was on") and never
 * less. The lock of a dead process on this host is broken at once; anybody else's when it has not
 * changed hands for two minutes, where a locked section takes seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <shardload/clock.h>
#include <shardload/log.h>

#include "balancer.h"

#define BEAT_SECONDS 5

/* ---- the balancer itself ---- */

bool sl_balancer_read_mode(sl_connection *connection, char mode[8], sl_error *error) {
    bson_t reply;
    bson_iter_t iter;
    bson_t *command = BCON_NEW("balancerStatus", BCON_INT32(1));
    bool ok = sl_cluster_command(connection, "admin", command, &reply, NULL, error);
    bool on = ok && bson_iter_init_find(&iter, &reply, "mode") && BSON_ITER_HOLDS_UTF8(&iter) &&
              strcmp(bson_iter_utf8(&iter, NULL), "full") == 0;
    strcpy(mode, on ? "full" : "off");
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
    int64_t now;
    if (!sl_balancer_lock(balancer, &now, error))
        return false;
    sl_balancer_document document;
    bool ok =
        sl_balancer_document_read(balancer, now, &document, error) &&
        (document.there || sl_balancer_read_mode(balancer->connection, document.before, error));
    if (ok) {
        char room[16];
        const char *key;
        bson_uint32_to_string(document.others, &key, room, sizeof room);
        sl_balancer_append_self(balancer, now, &document.holders, key);
        strcpy(balancer->before, document.before);
        ok = sl_balancer_document_write(balancer, &document, error);
    }
    bson_destroy(&document.holders);
    return sl_balancer_unlock(balancer, ok ? error : NULL) && ok;
}

/* Under the lock: takes this loader out of the holders; the last one puts the balancer back. */
static bool take_out(const sl_balancer *balancer, sl_balancer_document *document, sl_error *error) {
    if (!document->there) /* it was removed by hand: what this loader saw counts */
        strcpy(document->before, balancer->before);
    if (document->others == 0)
        return (strcmp(document->before, "full") != 0 ||
                switch_to(balancer, "balancerStart", error)) &&
               sl_balancer_document_remove(balancer, error);
    if (!sl_balancer_document_write(balancer, document, error))
        return false;
    sl_log_info("the balancer stays stopped for another load (%s), which will put it back",
                document->first);
    return true;
}

static bool leave(sl_balancer *balancer, sl_error *error) {
    sl_balancer_document first = {.there = false}, document;
    bool ok, waiting = true;
    bson_init(&first.holders);
    for (unsigned round = 0; waiting; round++) {
        int64_t now;
        ok = sl_balancer_lock(balancer, &now, error);
        if (!ok)
            break;
        ok = sl_balancer_document_read(balancer, now, &document, error);
        waiting = ok && document.unsure > 0 && document.unsure == document.others &&
                  (round == 0 || !sl_balancer_moved_on(&first, &document));
        if (ok && !waiting)
            ok = take_out(balancer, &document, error);
        if (waiting && round == 0) {
            sl_log_info("waiting for a sign of life of another load (%s), two minutes at most: if "
                        "it has ended, the balancer is put back now",
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

/* Waits until the next sign of life is due; false when this loader leaves. */
static bool await_beat(sl_balancer *balancer) {
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    due.tv_sec += BEAT_SECONDS;
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
            "this loader was taken for dead, since the server had no sign of life of it: "
            "stopping the balancer again");
        strcpy(before, balancer->before);
        if (!join(balancer, &error) ||
            (strcmp(balancer->before, "full") == 0 && !switch_to(balancer, "balancerStop", &error)))
            sl_log_debug("not yet: %s", error.message);
        if (strcmp(balancer->before, before) != 0)
            sl_log_info("the balancer was \"%s\"", balancer->before);
    }
    pthread_mutex_unlock(&balancer->lock);
}

static void *beat(void *context) {
    sl_balancer *balancer = context;
    while (await_beat(balancer)) {
        bool known;
        sl_error error = {0};
        if (!sl_balancer_beat(balancer, &known, &error))
            sl_log_debug("no sign of life: %s", error.message);
        else if (!known)
            join_again(balancer);
    }
    return NULL;
}

static void stop_beating(sl_balancer *balancer) {
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
    stop_beating(balancer);
    if (balancer->beating)
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
    made->beating = pthread_create(&made->thread, NULL, beat, made) == 0;
    if (!made->beating)
        sl_error_set(error, SL_EXIT_USAGE, "cannot start a thread");
    if (!made->beating ||
        (strcmp(made->before, "full") == 0 && !switch_to(made, "balancerStop", error))) {
        stop_beating(made);
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
    stop_beating(balancer);
    bool ok = leave(balancer, error);
    if (!ok)
        sl_error_prefix(
            error,
            "cannot put the balancer back (it was \"%s\"): the next load on this cluster "
            "does, or start it with sh.startBalancer()",
            balancer->before);
    balancer_destroy(balancer);
    return ok;
}

const char *sl_balancer_before(const sl_balancer *balancer) {
    return balancer ? balancer->before : "";
}
