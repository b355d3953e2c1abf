/* SPDX-License-Identifier: Apache-2.0 */

/* Sums of the shards' statistics: of collections, of databases, of the cluster. */

#include "commands.h"

#include <stdlib.h>
#include <string.h>

/* The figures that are sums over the shards. */
static const char *const summed[] = {
    "count",   "size",        "storageSize", "freeStorageSize", "totalIndexSize", "totalSize",
    "objects", "collections", "views",       "dataSize",        "indexes",        "indexSize",
};
enum { SUMMED = sizeof summed / sizeof summed[0] };

struct sums {
    int64_t values[SUMMED];
    bool seen[SUMMED];
    int64_t indexes; /* the most that any shard has */
    bson_t shards;   /* each shard's own reply */
};

static void restart_sums(void *state) {
    struct sums *sums = state;
    memset(sums->values, 0, sizeof sums->values);
    memset(sums->seen, 0, sizeof sums->seen);
    sums->indexes = 0;
    bson_reinit(&sums->shards);
}

static void add_to_sums(void *state, const struct node_set *shard, const bson_t *reply) {
    struct sums *sums = state;
    bson_iter_t iter;
    for (size_t i = 0; i < SUMMED; i++) {
        if (bson_iter_init_find(&iter, reply, summed[i]) && BSON_ITER_HOLDS_NUMBER(&iter)) {
            sums->values[i] += bson_iter_as_int64(&iter);
            sums->seen[i] = true;
        }
    }
    if (bson_iter_init_find(&iter, reply, "nindexes") &&
        bson_iter_as_int64(&iter) > sums->indexes) {
        sums->indexes = bson_iter_as_int64(&iter);
    }
    bson_append_document(&sums->shards, shard->name, -1, reply);
}

/* Appends the sums and the mean size of an object. */
static void append_sums(const struct sums *sums, const char *objects, const char *size,
                        bson_t *reply) {
    int64_t number = 0;
    int64_t bytes = 0;
    for (size_t i = 0; i < SUMMED; i++) {
        if (sums->seen[i]) {
            BSON_APPEND_INT64(reply, summed[i], sums->values[i]);
        }
        if (strcmp(summed[i], objects) == 0) {
            number = sums->values[i];
        } else if (strcmp(summed[i], size) == 0) {
            bytes = sums->values[i];
        }
    }
    BSON_APPEND_DOUBLE(reply, "avgObjSize", number > 0 ? (double)bytes / (double)number : 0.0);
}

enum outcome collection_stats(struct session *session, const struct request *request,
                              const char *ns, struct routing *routing, bson_t *reply) {
    struct sums sums = {.shards = BSON_INITIALIZER};
    const struct owner_visitor visitor = {restart_sums, add_to_sums, &sums};
    bson_t body = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&body, "collStats", request->target);
    copy_field(request->body, "scale", &body);
    if (visit_owners(session, request->db, ns, routing, &body, &visitor, reply)) {
        int64_t chunks = 0;
        for (size_t i = 0; i < routing->owner_count; i++) {
            chunks += routing->owners[i].chunks;
        }
        bson_init(reply);
        BSON_APPEND_BOOL(reply, "sharded", true);
        BSON_APPEND_UTF8(reply, "ns", ns);
        append_sums(&sums, "count", "size", reply);
        BSON_APPEND_INT64(reply, "nindexes", sums.indexes);
        BSON_APPEND_INT64(reply, "nchunks", chunks);
        BSON_APPEND_DOCUMENT(reply, "shards", &sums.shards);
        BSON_APPEND_DOUBLE(reply, "ok", 1.0);
    }
    bson_destroy(&body);
    bson_destroy(&sums.shards);
    return ANSWERED;
}

enum outcome run_database_stats(struct session *session, const struct request *request,
                                bson_t *reply) {
    struct sums sums = {.shards = BSON_INITIALIZER};
    bson_t body;
    command_rewrite(request->body, request->command->name, &body);
    if (run_on_sets(session, CONFIG_SET + 1, &body, add_to_sums, &sums, reply)) {
        bson_init(reply);
        BSON_APPEND_UTF8(reply, "db", request->db);
        BSON_APPEND_DOCUMENT(reply, "raw", &sums.shards);
        append_sums(&sums, "objects", "dataSize", reply);
        BSON_APPEND_DOUBLE(reply, "ok", 1.0);
    }
    bson_destroy(&body);
    bson_destroy(&sums.shards);
    return ANSWERED;
}

/* A database found on one shard or several. */
struct found_database {
    char name[MAX_SET_NAME];
    int64_t size;
    bson_t *shards; /* {shard: bytes} */
};

struct found_databases {
    const struct node_set *config; /* the config servers */
    struct found_database *list;
    size_t count;
};

static struct found_database *note_database(struct found_databases *found, const char *name) {
    for (size_t i = 0; i < found->count; i++) {
        if (strcmp(found->list[i].name, name) == 0) {
            return &found->list[i];
        }
    }
    struct found_database *grown = realloc(found->list, (found->count + 1) * sizeof *grown);
    if (!grown || strlen(name) >= sizeof grown->name) {
        found->list = grown ? grown : found->list;
        return NULL;
    }
    found->list = grown;
    struct found_database *database = &grown[found->count++];
    memcpy(database->name, name, strlen(name) + 1);
    database->size = 0;
    database->shards = bson_new();
    return database;
}

/* admin and config are on the config servers, local on each server, other databases on shards. */
static bool belongs_to(const char *name, bool config_servers) {
    const bool of_config = strcmp(name, "admin") == 0 || strcmp(name, "config") == 0;
    return strcmp(name, "local") != 0 && of_config == config_servers;
}

static void note_databases(void *state, const struct node_set *set, const bson_t *reply) {
    struct found_databases *found = state;
    bson_t list;
    bson_iter_t iter;
    if (!find_document(reply, "databases", &list) || !bson_iter_init(&iter, &list)) {
        return;
    }
    while (bson_iter_next(&iter)) {
        bson_iter_t size;
        bson_t entry;
        const char *name = NULL;
        if (find_document(&list, bson_iter_key(&iter), &entry)) {
            name = find_text(&entry, "name");
        }
        if (!name || !belongs_to(name, set == found->config)) {
            continue;
        }
        struct found_database *database = note_database(found, name);
        if (database && bson_iter_init_find(&size, &entry, "sizeOnDisk")) {
            database->size += bson_iter_as_int64(&size);
            BSON_APPEND_INT64(database->shards, set->name, bson_iter_as_int64(&size));
        }
    }
}

enum outcome run_list_databases(struct session *session, const struct request *request,
                                bson_t *reply) {
    struct found_databases found = {.config = &session->router->topology->sets[CONFIG_SET]};
    bson_iter_t iter;
    bson_t body;
    bson_t list;
    const bool name_only =
        bson_iter_init_find(&iter, request->body, "nameOnly") && bson_iter_as_bool(&iter);
    command_rewrite(request->body, request->command->name, &body);
    if (run_on_sets(session, CONFIG_SET, &body, note_databases, &found, reply)) {
        int64_t total = 0;
        bson_init(reply);
        BSON_APPEND_ARRAY_BEGIN(reply, "databases", &list);
        for (size_t i = 0; i < found.count; i++) {
            char index[16];
            const char *key;
            bson_t entry;
            bson_uint32_to_string((uint32_t)i, &key, index, sizeof index);
            BSON_APPEND_DOCUMENT_BEGIN(&list, key, &entry);
            BSON_APPEND_UTF8(&entry, "name", found.list[i].name);
            if (!name_only) {
                BSON_APPEND_INT64(&entry, "sizeOnDisk", found.list[i].size);
                BSON_APPEND_BOOL(&entry, "empty", found.list[i].size == 0);
                BSON_APPEND_DOCUMENT(&entry, "shards", found.list[i].shards);
                total += found.list[i].size;
            }
            bson_append_document_end(&list, &entry);
        }
        bson_append_array_end(reply, &list);
        if (!name_only) {
            BSON_APPEND_INT64(reply, "totalSize", total);
        }
        BSON_APPEND_DOUBLE(reply, "ok", 1.0);
    }
    for (size_t i = 0; i < found.count; i++) {
        bson_destroy(found.list[i].shards);
    }
    free(found.list);
    bson_destroy(&body);
    return ANSWERED;
}
