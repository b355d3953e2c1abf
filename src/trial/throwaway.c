/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary collections: names, leftovers of killed processes, and dropping the current one. */
#include "throwaway.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bson/bson_lookup.h"
#include "job/preview.h"
#include "util/clock.h"
#include "util/context.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/process.h"

#define NAMESPACE_MAX 255 /* bytes, of database, dot and collection */
#define AWAIT_SECONDS 5.0 /* first wait for requests that run at the second signal */
#define AWAIT_MORE_SECONDS 0.5
#define REMOVE_SECONDS 10.0 /* limit of sl_throwaway_drop_at_once, unless a server hangs */

/* ---- names ---- */

bool sl_throwaway_name(const char *database, const char *collection, const char *kind,
                       unsigned number, char out[SL_THROWAWAY_ROOM], sl_error *error) {
    char host[SL_HOST_ROOM];
    sl_host_identity(host);
    int length = snprintf(out, SL_THROWAWAY_ROOM, "%s.%s.%s.%lld.%lld.%u", collection, kind, host,
                          (long long)getpid(), (long long)sl_process_start(getpid()), number);
    if (length > 0 &&
        strlen(database) + 1 + (size_t)length + strlen(SL_REGISTRY_SUFFIX) <= NAMESPACE_MAX)
        return true;
    return sl_error_set(error, SL_EXIT_USAGE,
                        "--collection %s: too long; temporary collections beside it have names "
                        "like %.*s, and with the database a name must not exceed %d bytes",
                        collection, SL_THROWAWAY_ROOM - 1, out, NAMESPACE_MAX);
}

/* ---- leftovers ---- */

static bool drop(sl_connection *connection, const char *database, const char *name,
                 sl_error *error) {
    const sl_target target = {.database = database, .collection = name};
    return sl_drop_target(connection, &target, error);
}

/* The process that created a collection, from the collection's name. */
typedef struct sl_maker {
    char host[SL_HOST_ROOM];
    long long pid, start;
} sl_maker;

/* Parses "<host>.<pid>.<start>.<number>"; false for any other text. */
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
        sl_log_warning(
            "%s.%s was created by process %lld on %s, which is another host, or this "
            "host before a reboot; if that process has ended, drop the collection manually",
            database, name, maker.pid, maker.host);
        return true;
    }
    int64_t start = sl_process_start(maker.pid);
    if (start < 0 || start == maker.start) /* it still runs, or its start time is unknown */
        return true;
    sl_log_warning("dropping %s.%s, which process %lld left when it was killed", database, name,
                   maker.pid);
    return drop(connection, database, name, error);
}

/* A regular expression for names that begin with `prefix`; malloc'd. */
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

static bool remove_leftovers(sl_connection *connection, const char *database,
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
    for (sl_walk walk = sl_walk_start(&reply, "cursor.firstBatch"); ok && sl_walk_next(&walk);) {
        char found[SL_THROWAWAY_ROOM];
        const char *name = sl_look_text(&walk.item, "name");
        if (!name ||
            strncmp(name, prefix, strlen(prefix)) != 0) /* a server may ignore the filter */
            continue;
        snprintf(found, sizeof found, "%s", name);
        if (sl_is_registry_name(found)) /* it is dropped with its collection */
            found[strlen(found) - strlen(SL_REGISTRY_SUFFIX)] = '\0';
        ok = remove_leftover(connection, database, found, found + strlen(prefix), error);
    }
    bson_destroy(&reply);
    bson_destroy(list);
    free(pattern);
    return ok;
}

/* A user who may not drop a collection would leave the temporary one behind. */
static bool may_drop(sl_connection *connection, const char *database, const char *collection,
                     const char *kind, sl_error *error) {
    char name[SL_THROWAWAY_ROOM];
    const sl_target target = {.database = database, .collection = name};
    return sl_throwaway_name(database, collection, kind, 0, name, error) &&
           (sl_may_drop(connection, &target, error) ||
            sl_error_prefix(error, "the temporary collection could not be removed in the end"));
}

bool sl_throwaway_begin(sl_connection *connection, const char *database, const char *collection,
                        const char *kind, bool will_create, sl_error *error) {
    return remove_leftovers(connection, database, collection, kind, error) &&
           (!will_create || may_drop(connection, database, collection, kind, error));
}

/* ---- the current temporary collection ---- */

void sl_throwaway_init(sl_throwaway *current) {
    *current = (sl_throwaway){.connection = NULL};
    pthread_mutex_init(&current->lock, NULL);
}

void sl_throwaway_clear(sl_throwaway *current) {
    pthread_mutex_destroy(&current->lock);
}

/* After the second signal no command is repeated: its thread waits for the lock of a drop. */
static bool keep_trying(void *context) {
    const sl_throwaway *current = context;
    return !atomic_load(&current->at_once);
}

void sl_throwaway_register(sl_throwaway *current, sl_connection *connection, const char *database,
                           const char *name) {
    sl_context_is_trial();
    sl_connection_set_retry_check(connection, keep_trying, current);
    pthread_mutex_lock(&current->lock);
    current->connection = connection;
    current->database = database;
    snprintf(current->name, sizeof current->name, "%s", name);
    pthread_mutex_unlock(&current->lock);
}

/* Replaces the error by one that also contains the command to drop the collection. Call it under
 * the lock. Returns false. */
static bool not_dropped(const sl_throwaway *current, sl_error *error) {
    char why[300];
    snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, error->message);
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "the temporary collection %s.%s is left: %s; the next trial of the same target on this "
        "host drops it, or drop it in mongosh with "
        "%s.drop(), and likewise its registry, whose "
        "name ends with %s",
        current->database, current->name, why,
        sl_mongosh_collection(current->database, current->name), SL_REGISTRY_SUFFIX);
}

bool sl_throwaway_drop(sl_throwaway *current, sl_error *error) {
    pthread_mutex_lock(&current->lock);
    bool ok = !current->name[0] ||
              drop(current->connection, current->database, current->name, error) ||
              not_dropped(current, error);
    if (ok)
        current->name[0] = '\0';
    pthread_mutex_unlock(&current->lock);
    return ok;
}

/* Does the collection or its registry exist? Call it under the lock. */
static bool read_exists(const sl_throwaway *current, bool *exists, sl_error *error) {
    char registry[SL_THROWAWAY_ROOM + sizeof SL_REGISTRY_SUFFIX];
    bool registered;
    snprintf(registry, sizeof registry, "%s%s", current->name, SL_REGISTRY_SUFFIX);
    const sl_target target = {.database = current->database, .collection = current->name};
    const sl_target its_registry = {.database = current->database, .collection = registry};
    if (!sl_target_exists(current->connection, &target, exists, error) ||
        !sl_target_exists(current->connection, &its_registry, &registered, error))
        return false;
    *exists = *exists || registered;
    return true;
}

/* Drops the collection until it no longer exists. Call it under the lock, when no new request is
 * sent. Waits for running requests first, because an insert after the drop creates the collection
 * again. If they take too long, it drops the collection meanwhile, and again after they have
 * ended. */
static bool drop_until_gone(const sl_throwaway *current, sl_error *error) {
    int64_t start = sl_clock_ns();
    double patience = AWAIT_SECONDS;
    for (;;) {
        bool quiet = sl_interrupt_await_changes(patience), exists;
        if (!drop(current->connection, current->database, current->name, error) ||
            !read_exists(current, &exists, error))
            return false;
        if (quiet && !exists)
            return true;
        if (sl_seconds_since(start) > REMOVE_SECONDS)
            return sl_error_set(error, SL_EXIT_CLUSTER,
                                exists
                                    ? "it was dropped, but exists again"
                                    : "an insert that the server has not answered yet may create "
                                      "it again");
        if (quiet)
            nanosleep(&(struct timespec){0, 50000000}, NULL);
        patience = AWAIT_MORE_SECONDS;
    }
}

bool sl_throwaway_drop_at_once(sl_throwaway *current, sl_error *error) {
    atomic_store(&current->at_once, true);
    pthread_mutex_lock(&current->lock);
    bool ok = !current->name[0] || drop_until_gone(current, error) || not_dropped(current, error);
    if (ok)
        current->name[0] = '\0';
    pthread_mutex_unlock(&current->lock);
    return ok;
}

/* ---- loads into a temporary collection ---- */

#define BLOCKS_READ 16 /* 1 MiB each */

bool sl_trial_target_decide(const sl_load_config *load, sl_trial_target *target, sl_error *error) {
    sl_load_config config = *load;
    sl_preview *preview;
    config.part_of_trial = true;
    config.again = true;
    *target = (sl_trial_target){.shard_key = NULL};
    if (!sl_preview_create(&config, 1, BLOCKS_READ, &preview, error))
        return false;
    bool ok = preview->refusal.code == SL_EXIT_OK;
    if (!ok)
        *error = preview->refusal;
    if (ok && preview->layout != SL_LAYOUT_UNSHARDED && preview->shard_key)
        target->shard_key = bson_copy(preview->shard_key);
    target->bson_bytes = preview->all.bson_bytes.high;
    target->empty = preview->all.documents.value == 0 && preview->all.records.value == 0 &&
                    preview->all.blocks_read >= preview->all.blocks;
    sl_preview_destroy(preview);
    return ok;
}

void sl_trial_target_clear(sl_trial_target *target) {
    bson_destroy(target->shard_key);
}

sl_load_config sl_load_as_trial(const sl_load_config *user_config, const sl_trial_target *target,
                                const char *collection, const char *work_directory, double share,
                                bson_t *run_record) {
    sl_load_config load = *user_config;
    load.shard_key = target->shard_key;
    load.shard_key_given = true;
    load.collection = collection;
    load.work_directory = work_directory;
    load.sample = share;
    load.run_record = run_record;
    load.part_of_trial = true;
    load.skip_other = true; /* a trial need not load every file */
    load.threads_most = 0;
    load.adapt_batches = false;
    load.again = false;
    load.resume = false;
    load.report = NULL;
    load.html = NULL;
    load.progress = SL_PROGRESS_NONE;
    return load;
}
