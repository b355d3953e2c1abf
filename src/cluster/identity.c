/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of the target collection: its UUID.
 *
 * A server completes an insert even if its client has died. If the collection has been dropped and
 * created again in the meantime, an insert that names the collection only by its name stores its
 * documents in the new one, or creates a collection of that name. So commands contain the UUID too,
 * as `collectionUUID`, and the server refuses them with error 361 when the name belongs to another
 * collection. Servers before 6.0 (and 6.0 with an older feature compatibility version) do not
 * accept the field; for these servers sl_wait_for_writes waits until no write is running.
 *
 * On the direct route each shard is asked, by the connections of direct.c, whose check also asks
 * for the identity. So the two files call each other. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/log.h"
#include "util/text.h"

#include "internal.h"

/* ---- commands with a UUID ---- */

void sl_append_uuid(bson_t *document, const char *key, const char *uuid) {
    uint8_t bytes[16] = {0};
    for (size_t i = 0; i < sizeof bytes; i++) {
        unsigned byte = 0;
        sscanf(uuid + 2 * i, "%2x", &byte);
        bytes[i] = (uint8_t)byte;
    }
    BSON_APPEND_BINARY(document, key, BSON_SUBTYPE_UUID, bytes, sizeof bytes);
}

void sl_target_append_uuid(const sl_target *target, bson_t *command) {
    if (target->by_uuid && target->uuid[0])
        sl_append_uuid(command, "collectionUUID", target->uuid);
}

/* A find of one document in the collection that has the name and the UUID. */
static void begin_find(bson_t *find, const sl_target *target, const char *uuid) {
    bson_init(find);
    BSON_APPEND_UTF8(find, "find", target->collection);
    BCON_APPEND(find, "limit", BCON_INT32(1), "singleBatch", BCON_BOOL(true), "projection", "{",
                "_id", BCON_INT32(1), "}");
    sl_append_uuid(find, "collectionUUID", uuid);
}

/* Sends a find with a UUID that no collection has: a server that accepts the field returns a
 * mismatch. */
bool sl_target_find_support(sl_connection *connection, sl_target *target, sl_error *error) {
    /* Error codes for a field that the server does not accept. */
    static const int32_t refusals[] = {9 /* FailedToParse */, 72 /* InvalidOptions */, 40415,
                                       323 /* APIStrictError */};
    int32_t code;
    bson_t find;
    begin_find(&find, target, "00000000000000000000000000000000");
    bool ok = sl_cluster_command(connection, target->database, &find, NULL, &code, error);
    bson_destroy(&find);
    target->by_uuid = code == SL_CODE_COLLECTION_UUID_MISMATCH;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        ok = ok || code == refusals[i];
    return ok || target->by_uuid;
}

/* ---- looking up the name and the UUID ---- */

typedef struct identity {
    char uuid[SL_UUID_ROOM]; /* of the collection with the target's name; "" when there is none */
    char name[256];          /* of the collection with the target's UUID; "" when there is none */
} identity;

static bool look_up(mongoc_client_t *client, const sl_target *target, identity *found,
                    bson_error_t *why) {
    bson_t reply;
    bson_iter_t inner;
    *found = (identity){.uuid = ""};
    bson_t by_uuid = BSON_INITIALIZER;
    sl_append_uuid(&by_uuid, "info.uuid", target->uuid);
    bson_t *command =
        BCON_NEW("listCollections", BCON_INT32(1), "filter", "{", "$or", "[", "{", "name",
                 BCON_UTF8(target->collection), "}", BCON_DOCUMENT(&by_uuid), "]", "}");
    bson_destroy(&by_uuid);
    bool ok = mongoc_client_command_simple(client, target->database, command, NULL, &reply, why);
    for (sl_walk walk = sl_walk_start(&reply, "cursor.firstBatch"); ok && sl_walk_next(&walk);) {
        char uuid[SL_UUID_ROOM] = "";
        const char *name = sl_look_text(&walk.item, "name");
        if (!name)
            continue;
        if (sl_look_find(&walk.item, "info.uuid", &inner))
            sl_uuid_of(&inner, uuid);
        if (strcmp(name, target->collection) == 0)
            memcpy(found->uuid, uuid, sizeof uuid);
        if (uuid[0] && strcmp(uuid, target->uuid) == 0)
            snprintf(found->name, sizeof found->name, "%s", name);
    }
    bson_destroy(&reply);
    bson_destroy(command);
    return ok;
}

/* 8-4-4-4-12 digits, as servers and shells print them. */
static const char *printed(const char *uuid, char out[40]) {
    snprintf(out, 40, "%.8s-%.4s-%.4s-%.4s-%.12s", uuid, uuid + 8, uuid + 12, uuid + 16, uuid + 20);
    return out;
}

/* For the case that the routers still return the target's UUID: a shard has no such collection, or
 * a different one. */
static bool shard_differs(const sl_target *target, sl_error *error) {
    char was[40];
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "%s.%s (UUID %s): a server refuses this UUID, so one of the shards has lost the collection "
        "or has another collection of this name, from a program that inserted directly into the "
        "shard. Connect to each shard directly to find that collection, drop it there, and give "
        "the same command again",
        target->database, target->collection, printed(target->uuid, was));
}

bool sl_target_replaced(mongoc_client_t *client, const sl_target *target, sl_error *error) {
    identity now;
    bson_error_t why;
    char was[40], is[40], what[400] = "";
    bool known = look_up(client, target, &now, &why);
    bool renamed = known && now.name[0] && strcmp(now.name, target->collection) != 0;
    if (known && strcmp(now.uuid, target->uuid) == 0)
        return shard_differs(target, error);
    if (renamed) {
        char name[300];
        sl_text_printable(sl_text_of(now.name), name, sizeof name);
        snprintf(what, sizeof what, ": its name is %s now", name);
    } else if (known && !now.uuid[0])
        snprintf(what, sizeof what, ": there is no collection of this name now");
    else if (known)
        snprintf(what, sizeof what, ": another collection has this name now, with UUID %s",
                 printed(now.uuid, is));
    sl_error_set(
        error, SL_EXIT_CLUSTER,
        "%s.%s (UUID %s) was dropped, replaced, renamed or resharded during the load%s. "
        "Another program did that, such as another load with --drop, or movePrimary, which "
        "copies unsharded collections. %s. %s",
        target->database, target->collection, printed(target->uuid, was), what,
        target->by_uuid
            ? "No document of this load went into another collection"
            : "This server accepts inserts by name only, so the new collection may hold "
              "documents of this load",
        renamed ? "Rename it back, and complete the load with --resume"
                : "To load the sources again, give the same command without --resume and "
                  "with another --work-dir; --again accepts the documents that are stored");
    if (error)
        error->no_resume = !renamed;
    return false;
}

bool sl_target_mismatch(sl_connection *connection, const sl_target *target, sl_error *error) {
    mongoc_client_t *client = sl_connection_borrow(connection);
    sl_target_replaced(client, target, error);
    sl_connection_return(connection, client);
    return false;
}

bool sl_target_identify(sl_connection *connection, sl_target *target, sl_error *error) {
    return sl_target_read(connection, target, error) &&
           (target->uuid[0] ||
            sl_error_set(error, SL_EXIT_CLUSTER,
                         "%s.%s was dropped while it was being prepared; did another program do "
                         "that? Give the same command again",
                         target->database, target->collection));
}

bool sl_target_check(sl_connection *connection, const sl_target *target, sl_error *error) {
    char uuid[SL_UUID_ROOM];
    if (!sl_target_uuid(connection, target, uuid, error))
        return false;
    return strcmp(uuid, target->uuid) == 0 || sl_target_mismatch(connection, target, error);
}

/* Checks a shard through its client. `*same` is false when the shard has another collection of the
 * name, or has none although it is `required`; `uuid` is then the UUID on the shard, "" if
 * unknown. */
static bool check_shard(mongoc_client_t *client, const sl_target *target, bool required, bool *same,
                        char uuid[SL_UUID_ROOM], bson_error_t *why) {
    identity now;
    *same = true;
    uuid[0] = '\0';
    if (!target->by_uuid) {
        bool ok = look_up(client, target, &now, why);
        memcpy(uuid, now.uuid, sizeof now.uuid);
        *same = !ok || (uuid[0] ? strcmp(uuid, target->uuid) == 0 : !required);
        return ok;
    }
    if (!required) /* the shard would refuse each insert */
        return true;
    bson_t find;
    begin_find(&find, target, target->uuid);
    bool ok = mongoc_client_command_simple(client, target->database, &find, NULL, NULL, why);
    bson_destroy(&find);
    *same = ok || why->code != SL_CODE_COLLECTION_UUID_MISMATCH;
    return ok || !*same;
}

bool sl_target_check_shard(sl_connection *connection, sl_direct *direct, uint32_t shard,
                           const char *name, const sl_target *target, bool required,
                           sl_error *error) {
    bson_error_t why = {0};
    char uuid[SL_UUID_ROOM], was[40], is[40];
    bool same = true;
    for (unsigned attempt = 0;; attempt++) {
        mongoc_client_t *client = sl_direct_borrow(direct, shard);
        bool ok = check_shard(client, target, required, &same, uuid, &why);
        sl_direct_return(direct, shard, client);
        if (ok && same)
            return true;
        if (ok)
            break;
        if (why.code == SL_CODE_UNAUTHORIZED && !target->by_uuid) {
            sl_log_warning("cannot check whether shard %s has another collection named %s.%s: "
                           "the user lacks the privilege listCollections on the shard",
                           name, target->database, target->collection);
            return true;
        }
        sl_error_from_driver(error, "reading the collection's UUID", &why);
        if (!sl_connection_backoff(connection, attempt, error))
            return sl_error_prefix(error, "shard %s", name);
        if (error)
            error->code = SL_EXIT_OK; /* not a failure while the wait continues */
    }
    return sl_error_set(
        error, SL_EXIT_CLUSTER,
        "%s.%s has UUID %s, and shard %s has %s%s: the collection was dropped there, or created by "
        "a program that inserted directly into the shard. Connect to that shard directly, drop the "
        "collection there, and load again with --drop",
        target->database, target->collection, printed(target->uuid, was), name,
        uuid[0] ? "another collection of this name, with UUID " : "no such collection",
        uuid[0] ? printed(uuid, is) : "");
}

/* ---- writes of dead clients ----
 *
 * Waits until no server runs a write into the target: an insert, update, delete or findAndModify.
 *
 * A server continues a write after its client has died. The collection's UUID in the command stops
 * the write if the collection has been dropped and created again. It does not stop it if the
 * collection is the same, and servers before 6.0 do not accept it. A server reads a command as soon
 * as it has arrived completely, and a writer sends one command at a time. So if $currentOp shows no
 * write twice, a quarter of a second apart, no write of a dead client is left. */

/* Names of operations and of commands in $currentOp. The first INSERTS of them store new documents,
 * the others change stored ones. */
static const char *const names[] = {
    "insert", "clusterInsert", "update",        "clusterUpdate", "remove",
    "delete", "clusterDelete", "findAndModify", "findandmodify", "clusterFindAndModify"};
#define INSERTS 2

static const char *words_for(const char *operation) {
    static const char *const words[][2] = {
        {"insert", "an insert"}, {"update", "an update"}, {"remove", "a delete"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(operation, words[i][0]) == 0)
            return words[i][1];
    return "a write";
}

/* Describes one of the running writes: its kind, server and client. "" when there is none. */
static void describe(const bson_t *reply, char *out, size_t room) {
    static const struct {
        const char *field, *words;
    } parts[] = {{"shard", " on shard "},
                 {"host", " on server "},
                 {"appName", " for program "},
                 {"client", " from "},
                 {"client_s", " from "}};
    bson_t entry;
    out[0] = '\0';
    if (!sl_look_inside(reply, "cursor.firstBatch.0", &entry))
        return;
    size_t used =
        (size_t)snprintf(out, room, "%s is running", words_for(sl_look_string(&entry, "op")));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char shown[100];
        const char *text = sl_look_text(&entry, parts[i].field);
        if (!text || used >= room)
            continue;
        sl_text_printable(sl_text_of(text), shown, sizeof shown);
        used += (size_t)snprintf(out + used, room - used, "%s%s", parts[i].words, shown);
    }
}

/* Appends to a $match: an operation has one of the names, or its command has. */
static void append_names(bson_t *match, bool changes_only) {
    bson_t any;
    uint32_t count = 0;
    BSON_APPEND_ARRAY_BEGIN(match, "$or", &any);
    for (size_t i = changes_only ? INSERTS : 0; i < sizeof names / sizeof names[0]; i++) {
        char room[SL_ARRAY_KEY_ROOM], command[40];
        snprintf(command, sizeof command, "command.%s", names[i]);
        BCON_APPEND(&any, sl_array_key(count++, room), "{", "op", names[i], "}");
        BCON_APPEND(&any, sl_array_key(count++, room), "{", command, "{", "$exists",
                    BCON_BOOL(true), "}", "}");
    }
    bson_append_array_end(match, &any);
}

/* Describes a running write in `running`, or sets it to "". On failure `*code` is the server's
 * error code. */
static bool find_write(sl_connection *connection, const sl_target *target, bool changes_only,
                       char *running, size_t room, int32_t *code, sl_error *error) {
    char ns[SL_NAMESPACE_ROOM];
    bson_t reply, match = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&match, "ns", sl_target_namespace(target, ns));
    append_names(&match, changes_only);
    bson_t *command =
        BCON_NEW("aggregate", BCON_INT32(1), "pipeline", "[", "{", "$currentOp", "{", "allUsers",
                 BCON_BOOL(true), "}", "}", "{", "$match", BCON_DOCUMENT(&match), "}", "{",
                 "$limit", BCON_INT32(1), "}", "]", "cursor", "{", "}");
    bool ok = sl_cluster_run(connection, "admin", command, &reply, code, error);
    describe(&reply, running, room);
    bson_destroy(&reply);
    bson_destroy(&match);
    return ok;
}

bool sl_wait_for_writes(sl_connection *connection, const sl_target *target, bool changes_only,
                        sl_error *error) {
    char running[500];
    int32_t code;
    unsigned attempt = 0;
    for (unsigned quiet = 0; quiet < 2;) {
        if (!find_write(connection, target, changes_only, running, sizeof running, &code, error)) {
            if (!sl_code_is_refusal(code))
                return sl_error_prefix(error, "looking for writes into %s.%s", target->database,
                                       target->collection);
            sl_log_warning("cannot check whether another program is writing to %s.%s: "
                           "%s (privilege inprog, role clusterMonitor)",
                           target->database, target->collection, error->message);
            return true;
        }
        if (!running[0]) {
            if (++quiet < 2)
                nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
            continue;
        }
        if (attempt == 0)
            sl_log_info("%s.%s: %s; waiting for its end", target->database, target->collection,
                        running);
        quiet = 0;
        sl_error_set(
            error, SL_EXIT_CLUSTER,
            "%s.%s: %s. On this server it could continue into the new collection of this name: "
            "stop the program that sends it, and give the same command again",
            target->database, target->collection, running);
        if (!sl_connection_backoff(connection, attempt++, error))
            return false;
        if (error)
            error->code = SL_EXIT_OK; /* not a failure while the wait continues */
    }
    return true;
}
