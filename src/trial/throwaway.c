/* SPDX-License-Identifier: Apache-2.0 */
/* Throw-away collections. */
#include "throwaway.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shardload/log.h>
#include <shardload/process.h>

#define HOST_ROOM 33
#define NAMESPACE_MAX 255 /* bytes, of database, dot and collection */
#define REGISTRY ".sources"

/* This host's name as it stands in names of collections: dots would be taken for separators. */
static void own_host(char out[HOST_ROOM]) {
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    snprintf(out, HOST_ROOM, "%.*s", HOST_ROOM - 1, name[0] ? name : "host");
    for (char *at = out; *at; at++) {
        if (!isalnum((unsigned char)*at))
            *at = '-';
    }
}

bool sl_throwaway_name(const char *database, const char *collection, const char *kind,
                       unsigned number, char out[SL_THROWAWAY_ROOM], sl_error *error) {
    char host[HOST_ROOM];
    own_host(host);
    int length = snprintf(out, SL_THROWAWAY_ROOM, "%s.%s.%s.%lld.%lld.%u", collection, kind, host,
                          (long long)getpid(), (long long)sl_process_start(getpid()), number);
    if (length > 0 && strlen(database) + 1 + (size_t)length + strlen(REGISTRY) <= NAMESPACE_MAX)
        return true;
    return sl_error_set(error, SL_EXIT_USAGE,
                        "--collection %s: too long; the throw-away collections beside it have names "
                        "like %.*s, which must not be longer than %d bytes", collection,
                        SL_THROWAWAY_ROOM - 1, out, NAMESPACE_MAX);
}

bool sl_throwaway_drop(sl_connection *connection, const char *database, const char *name,
                       sl_error *error) {
    const sl_target target = {.database = database, .collection = name};
    return sl_drop_target(connection, &target, error);
}

/* What a name tells of who made the collection. */
typedef struct sl_maker {
    char host[HOST_ROOM];
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
    char host[HOST_ROOM];
    sl_maker maker;
    own_host(host);
    if (!read_maker(made_by, &maker))
        return true;
    if (strcmp(maker.host, host) != 0) {
        sl_log_warning("%s.%s was made by process %lld on %s; if that has ended, drop it by hand",
                       database, name, maker.pid, maker.host);
        return true;
    }
    int64_t start = sl_process_start(maker.pid);
    if (start < 0 || start == maker.start) /* it still runs, as far as can be told */
        return true;
    sl_log_warning("removing %s.%s, which process %lld left when it was killed", database, name,
                   maker.pid);
    return sl_throwaway_drop(connection, database, name, error);
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
