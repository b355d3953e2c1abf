/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until no server runs a write into the target: an insert, update, delete or findAndModify.
 *
 * A server continues a write after its client has died. The collection's UUID in the command
 * (identity.c) stops the write if the collection has been dropped and created again. It does not
 * stop it if the collection is the same, and servers before 6.0 do not accept it. A server reads a
 * command as soon as it has arrived completely, and a writer sends one command at a time. So if
 * $currentOp shows no write twice, a quarter of a second apart, no write of a dead client is
 * left. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/log.h"
#include "util/text.h"

#include "internal.h"

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
            if (code != SL_CODE_UNAUTHORIZED)
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
