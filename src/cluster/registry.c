/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of sources: one small document per source beside the target collection.
 *
 *   {_id: <fingerprint>, number, name, size, state: "started" | "loaded", documents, startedAt,
 *    loadedAt, loads}
 *   {_id: "counter", last: <the last number given>}
 *
 * A source's number goes into the ids of its documents, so two sources must never get the same one
 * and one source never two. The counter gives each caller a number of its own; of two loaders that
 * register the same source at once, the one whose upsert comes second finds the first one's
 * document and takes the number from there. The number it drew is lost, which does no harm. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shardload/clock.h>
#include <shardload/document_id.h>

#include "internal.h"

struct sl_registry {
    sl_connection *connection;
    char *database;
    char *collection;
};

bool sl_registry_open(sl_connection *connection, const sl_target *target, sl_registry **registry,
                      sl_error *error) {
    char name[SL_NAMESPACE_ROOM];
    *registry = calloc(1, sizeof **registry);
    if (*registry) {
        (*registry)->connection = connection;
        (*registry)->database = strdup(target->database);
        (*registry)->collection = strdup(sl_target_registry(target, name));
        if ((*registry)->database && (*registry)->collection)
            return true;
    }
    sl_registry_close(*registry);
    *registry = NULL;
    return sl_error_memory(error, "opening the registry");
}

void sl_registry_close(sl_registry *registry) {
    if (!registry)
        return;
    free(registry->database);
    free(registry->collection);
    free(registry);
}

static bool number_of(const sl_registry *registry, const bson_t *document, const char *key,
                      uint32_t *number, sl_error *error) {
    bson_iter_t iter;
    int64_t value = bson_iter_init_find(&iter, document, key) ? bson_iter_as_int64(&iter) : 0;
    if (value >= 1 && value <= SL_SOURCE_NUMBER_MAX) {
        *number = (uint32_t)value;
        return true;
    }
    if (value > SL_SOURCE_NUMBER_MAX)
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "the registry %s.%s has given out all %" PRIu32
                            " source numbers; load into another collection",
                            registry->database, registry->collection, SL_SOURCE_NUMBER_MAX);
    return sl_error_set(error, SL_EXIT_CLUSTER,
                        "the registry %s.%s holds a document without a valid number; was it "
                        "changed by hand?",
                        registry->database, registry->collection);
}

bool sl_registry_find(sl_registry *registry, const char *fingerprint, sl_source_state *state,
                      uint32_t *number, char when[32], sl_error *error) {
    *state = SL_SOURCE_NEW;
    *number = 0;
    when[0] = '\0';
    bson_t document;
    bson_iter_t iter;
    bool found;
    bool ok = sl_find_by_id(registry->connection, registry->database, registry->collection,
                            fingerprint, &document, &found, error);
    if (found) {
        ok = number_of(registry, &document, "number", number, error);
        *state = bson_iter_init_find(&iter, &document, "state") && BSON_ITER_HOLDS_UTF8(&iter) &&
                         strcmp(bson_iter_utf8(&iter, NULL), "loaded") == 0
                     ? SL_SOURCE_LOADED
                     : SL_SOURCE_STARTED;
        if (bson_iter_init_find(&iter, &document, "loadedAt") && BSON_ITER_HOLDS_DATE_TIME(&iter)) {
            time_t seconds = (time_t)(bson_iter_date_time(&iter) / 1000);
            struct tm utc;
            if (gmtime_r(&seconds, &utc))
                strftime(when, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
        }
    }
    bson_destroy(&document);
    return ok;
}

/* findAndModify of one registry document. */
static bool modify(sl_registry *registry, const char *id, const bson_t *update, bool upsert,
                   bson_t *document, bool *found, sl_error *error) {
    bson_t *query = BCON_NEW("_id", BCON_UTF8(id));
    bool ok = sl_find_and_modify(registry->connection, registry->database, registry->collection,
                                 query, update, upsert, document, found, error);
    bson_destroy(query);
    return ok || sl_error_prefix(error, "registry %s.%s", registry->database, registry->collection);
}

static bool draw_number(sl_registry *registry, uint32_t *number, sl_error *error) {
    bson_t counter;
    bson_t *update = BCON_NEW("$inc", "{", "last", BCON_INT32(1), "}");
    bool ok = modify(registry, "counter", update, true, &counter, NULL, error) &&
              number_of(registry, &counter, "last", number, error);
    bson_destroy(&counter);
    bson_destroy(update);
    return ok;
}

bool sl_registry_start(sl_registry *registry, const char *fingerprint, const char *name,
                       uint64_t size, uint32_t *number, sl_error *error) {
    bson_t document;
    bool found;
    *number = 0;
    bson_t *update =
        BCON_NEW("$set", "{", "name", BCON_UTF8(name), "size", BCON_INT64((int64_t)size), "state",
                 "started", "startedAt", BCON_DATE_TIME(sl_wall_clock_ms()), "}");
    bool ok = modify(registry, fingerprint, update, false, &document, &found, error);
    if (ok && !found) {
        uint32_t drawn = 0;
        ok = draw_number(registry, &drawn, error);
        if (ok) {
            BCON_APPEND(update, "$setOnInsert", "{", "number", BCON_INT32((int32_t)drawn), "loads",
                        BCON_INT32(0), "}");
            bson_destroy(&document);
            ok = modify(registry, fingerprint, update, true, &document, NULL, error);
        }
    }
    ok = ok && number_of(registry, &document, "number", number, error);
    bson_destroy(&document);
    bson_destroy(update);
    return ok;
}

bool sl_registry_finish(sl_registry *registry, const char *fingerprint, uint64_t documents,
                        sl_error *error) {
    bool found;
    bson_t *update = BCON_NEW(
        "$set", "{", "state", "loaded", "documents", BCON_INT64((int64_t)documents), "loadedAt",
        BCON_DATE_TIME(sl_wall_clock_ms()), "}", "$inc", "{", "loads", BCON_INT32(1), "}");
    bool ok = modify(registry, fingerprint, update, false, NULL, &found, error);
    bson_destroy(update);
    if (ok && !found)
        return sl_error_set(error, SL_EXIT_CLUSTER,
                            "the registry %s.%s has lost a source while it was loaded; did "
                            "somebody drop the collection meanwhile?",
                            registry->database, registry->collection);
    return ok;
}
