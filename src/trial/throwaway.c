/* SPDX-License-Identifier: Apache-2.0 */
/* Throw-away collections. */
#include "throwaway.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <shardload/clock.h>
#include <shardload/interrupt.h>
#include <shardload/log.h>
#include <shardload/process.h>

#define NAMESPACE_MAX 255 /* bytes, of database, dot and collection */
#define REGISTRY ".sources"
#define AWAIT_SECONDS 5.0 /* what was under way at the second signal has come in by then */
#define AWAIT_MORE_SECONDS 0.5
#define REMOVE_SECONDS 10.0 /* how long all of it may take then, but for a server that hangs */

/* ---- names ---- */

bool sl_throwaway_name(const char *database, const char *collection, const char *kind,
                       unsigned number, char out[SL_THROWAWAY_ROOM], sl_error *error) {
    char host[SL_HOST_ROOM];
    sl_host_identity(host);
    int length = snprintf(out, SL_THROWAWAY_ROOM, "%s.%s.%s.%lld.%lld.%u", collection, kind, host,
                          (long long)getpid(), (long long)sl_process_start(getpid()), number);
    if (length > 0 && strlen(database) + 1 + (size_t)length + strlen(REGISTRY) <= NAMESPACE_MAX)
        return true;
    return sl_error_set(error, SL_EXIT_USAGE,
                        "--collection %s: too long; the throw-away collections beside it have names "
                        "like %.*s, which must not be longer than %d bytes", collection,
                        SL_THROWAWAY_ROOM - 1, out, NAMESPACE_MAX);
}

/* ---- leftovers ---- */

static bool drop(sl_connection *connection, const char *database, const char *name,
                 sl_error *error) {
    const sl_target target = {.database = database, .collection = name};
    return sl_drop_target(connection, &target, error);
}

/* What a name tells of who made the collection. */
typedef struct sl_maker {
    char host[SL_HOST_ROOM];
    long long pid, start;
} sl_maker;

/* Takes "<host>.<pid>.<start>.<number>" apart; false when it is something else. */
static bool read_maker(const char *text, sl_maker *maker) {
    unsigned number;
    int end = 0;
    return sscanf(text, "%32[^.].%lld.%lld.%u%n", maker->host, &maker->pid, &maker->start, &number,
                  &end) == 4 &&
           end > 0 && text[end] == '\0';
}

static bool remove_leftover(sl_connection *connection, const char *database, const char *name,
                            const char *made_by, sl_error *error) {
    char host[SL_HOST_ROOM];
    sl_maker maker;
    sl_host_identity(host);
    if (!read_maker(made_by, &maker))
        return true;
    if (strcmp(maker.host, host) != 0) {
        sl_log_warning("%s.%s was made by process %lld of %s, which is another host, or this one "
                       "before it was started anew; if that process has ended, drop it by hand",
                       database, name, maker.pid, maker.host);
        return true;
    }
    int64_t start = sl_process_start(maker.pid);
    if (start < 0 || start == maker.start) /* it still runs, as far as can be told */
        return true;
    sl_log_warning("removing %s.%s, which process %lld left when it was killed", database, name,
                   maker.pid);
    return drop(connection, database, name, error);
}

/* A regular expression that the names of this kind begin with; malloc'd. */
static char *pattern_of(const char *prefix) {
    char *pattern = malloc(2 * strlen(prefix) + 2);
    if (!pattern)
        return NULL;
    char *to = pattern;
    *to++ = '^';
    for (const char *at = prefix; *at; at++) {
        if (strchr("\\.+*?()[]{}|^$/", *at))
            *to++ = '\\';
        *to++ = *at;
    }
    *to = '\0';
    return pattern;
}

bool sl_throwaway_remove_leftovers(sl_connection *connection, const char *database,
                                   const char *collection, const char *kind, sl_error *error) {
    char prefix[SL_THROWAWAY_ROOM];
    snprintf(prefix, sizeof prefix, "%s.%s.", collection, kind);
    char *pattern = pattern_of(prefix);
    if (!pattern)
        return sl_error_memory(error, "looking for leftovers");
    bson_t reply;
    bson_t *list = BCON_NEW("listCollections", BCON_INT32(1), "nameOnly", BCON_BOOL(true), "filter",
                            "{", "name", BCON_REGEX(pattern, ""), "}", "cursor", "{", "batchSize",
                            BCON_INT32(10000), "}");
    bool ok = sl_connection_command(connection, database, list, &reply, NULL, error);
    bson_iter_t iter, batch, name;
    if (ok && bson_iter_init(&iter, &reply) &&
        bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch) &&
        bson_iter_recurse(&batch, &iter)) {
        while (ok && bson_iter_next(&iter)) {
            char found[SL_THROWAWAY_ROOM];
            if (!bson_iter_recurse(&iter, &name) || !bson_iter_find(&name, "name") ||
                !BSON_ITER_HOLDS_UTF8(&name))
                continue;
            snprintf(found, sizeof found, "%s", bson_iter_utf8(&name, NULL));
            size_t length = strlen(found), tail = strlen(REGISTRY);
            if (length > tail && strcmp(found + length - tail, REGISTRY) == 0)
                found[length - tail] = '\0'; /* it goes with its collection, or alone */
            ok = remove_leftover(connection, database, found, found + strlen(prefix), error);
        }
    }
    bson_destroy(&reply);
    bson_destroy(list);
    free(pattern);
    return ok;
}

/* ---- the one that there is ---- */

static struct {
    pthread_mutex_t lock;
    sl_connection *connection;
    const char *database;
    char name[SL_THROWAWAY_ROOM]; /* "" for none */
} litter = {.lock = PTHREAD_MUTEX_INITIALIZER};

void sl_litter_note(sl_connection *connection, const char *database, const char *name) {
    pthread_mutex_lock(&litter.lock);
    litter.connection = connection;
    litter.database = database;
    snprintf(litter.name, sizeof litter.name, "%s", name);
    pthread_mutex_unlock(&litter.lock);
}

/* Under the lock: it is left, for the reason in the error. */
static bool is_left(sl_error *error) {
    char why[300];
    snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, error->message);
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "the throw-away collection %s.%s is left: %s; the next trial of the same "
        "target on this host removes it, or mongosh with "
        "db.getSiblingDB(\"%s\").getCollection(\"%s\").drop(), and the same for its "
        "registry, whose name ends with %s",
        litter.database, litter.name, why, litter.database, litter.name, REGISTRY);
}

bool sl_litter_remove(sl_error *error) {
    pthread_mutex_lock(&litter.lock);
    bool ok = !litter.name[0] || drop(litter.connection, litter.database, litter.name, error) ||
              is_left(error);
    if (ok)
        litter.name[0] = '\0';
    pthread_mutex_unlock(&litter.lock);
    return ok;
}

/* Under the lock: is the collection there, or its registry? */
static bool look(bool *there, sl_error *error) {
    char registry[SL_THROWAWAY_ROOM + sizeof REGISTRY], uuid[SL_UUID_ROOM],
        registry_uuid[SL_UUID_ROOM];
    snprintf(registry, sizeof registry, "%s%s", litter.name, REGISTRY);
    const sl_target target = {.database = litter.database, .collection = litter.name};
    const sl_target its_registry = {.database = litter.database, .collection = registry};
    if (!sl_target_uuid(litter.connection, &target, uuid, error) ||
        !sl_target_uuid(litter.connection, &its_registry, registry_uuid, error))
        return false;
    *there = uuid[0] || registry_uuid[0];
    return true;
}

/* Under the lock. Nothing new is sent any more. What was under way is waited for, since it makes
 * the collection again if it comes behind the drop; if it takes too long, the collection is dropped
 * meanwhile, and once more when it has ended. */
static bool remove_for_good(sl_error *error) {
    int64_t start = sl_clock_ns();
    double patience = AWAIT_SECONDS;
    for (;;) {
        bool quiet = sl_interrupt_await_changes(patience), there;
        if (!drop(litter.connection, litter.database, litter.name, error) || !look(&there, error))
            return false;
        if (quiet && !there)
            return true;
        if (sl_seconds_since(start) > REMOVE_SECONDS)
            return sl_error_set(error, SL_EXIT_CLUSTER,
                                there
                                    ? "it was dropped, and is there again"
                                    : "an insert that the server has not answered yet may make it "
                                      "again");
        if (quiet)
            nanosleep(&(struct timespec){0, 50000000}, NULL);
        patience = AWAIT_MORE_SECONDS;
    }
}

bool sl_litter_remove_at_once(sl_error *error) {
    pthread_mutex_lock(&litter.lock);
    bool ok = !litter.name[0] || remove_for_good(error) || is_left(error);
    if (ok)
        litter.name[0] = '\0';
    pthread_mutex_unlock(&litter.lock);
    return ok;
}

/* ---- loads into it ---- */

sl_load_config sl_load_as_trial(const sl_load_config *whole, const char *collection,
                                const char *work_directory, double share, bson_t *account) {
    sl_load_config load = *whole;
    load.collection = collection;
    load.work_directory = work_directory;
    load.sample = share;
    load.run_record = account;
    load.part_of_trial = true;
    load.skip_other = true; /* a measurement */
    load.threads_most = 0;
    load.adapt_batches = false;
    load.again = false;
    load.resume = false;
    load.report = NULL;
    load.html = NULL;
    load.progress = SL_PROGRESS_NONE;
    return load;
}
