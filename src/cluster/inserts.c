/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until no server runs an insert into the target.
 *
 * For servers that do not accept a collection's UUID in commands (identity.c): such a server
 * continues an insert after its client has died, into the collection that has the name at that
 * time. A server reads a command as soon as it has arrived completely, and a writer sends one
 * command at a time. So if $currentOp shows no insert twice, a quarter of a second apart, no insert
 * of a dead client is left. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/log.h"
#include "util/text.h"

#include "internal.h"

/* Describes one of the running inserts: its server and its client. "" when there is none. */
static void describe(const bson_t *reply, char *out, size_t room) {
    static const struct {
        const char *field, *words;
    } parts[] = {{"shard", " on shard "},
                 {"host", " on server "},
                 {"appName", " for program "},
                 {"client", " from "},
                 {"client_s", " from "}};
    bson_iter_t iter, entry, field;
    out[0] = '\0';
    if (!bson_iter_init(&iter, reply) ||
        !bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &entry))
        return;
    size_t used = (size_t)snprintf(out, room, "an insert is running");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char shown[100];
        if (!bson_iter_recurse(&entry, &field) || !bson_iter_find(&field, parts[i].field) ||
            !BSON_ITER_HOLDS_UTF8(&field) || used >= room)
            continue;
        sl_text_printable(sl_text_of(bson_iter_utf8(&field, NULL)), shown, sizeof shown);
        used += (size_t)snprintf(out + used, room - used, "%s%s", parts[i].words, shown);
    }
}

/* Describes a running insert in `running`, or sets it to "". On failure `*code` is the server's
 * error code. */
static bool find_insert(sl_connection *connection, const sl_target *target, char *running,
                        size_t room, int32_t *code, sl_error *error) {
    char ns[SL_NAMESPACE_ROOM];
    bson_t reply;
    bson_t *command =
        BCON_NEW("aggregate", BCON_INT32(1), "pipeline", "[", "{", "$currentOp", "{", "allUsers",
                 BCON_BOOL(true), "}", "}", "{", "$match", "{", "ns",
                 BCON_UTF8(sl_target_namespace(target, ns)), "$or", "[", "{", "op", "insert", "}",
                 "{", "command.insert", "{", "$exists", BCON_BOOL(true), "}", "}", "{",
                 "command.clusterInsert", "{", "$exists", BCON_BOOL(true), "}", "}", "]", "}", "}",
                 "{", "$limit", BCON_INT32(1), "}", "]", "cursor", "{", "}");
    bool ok = sl_cluster_command(connection, "admin", command, &reply, code, error);
    describe(&reply, running, room);
    bson_destroy(&reply);
    bson_destroy(command);
    return ok;
}

bool sl_wait_for_inserts(sl_connection *connection, const sl_target *target, sl_error *error) {
    char running[500];
    int32_t code;
    unsigned attempt = 0;
    for (unsigned quiet = 0; quiet < 2;) {
        if (!find_insert(connection, target, running, sizeof running, &code, error)) {
            if (code != SL_CODE_UNAUTHORIZED)
                return sl_error_prefix(error, "looking for inserts into %s.%s", target->database,
                                       target->collection);
            sl_log_warning("cannot check whether another program is inserting into %s.%s: "
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
            "%s.%s: %s. On this server the insert could continue into the new collection of this "
            "name: stop the program that sends it, and give the same command again",
            target->database, target->collection, running);
        if (!sl_connection_backoff(connection, attempt++, error))
            return false;
        if (error)
            error->code = SL_EXIT_OK; /* not a failure while the wait continues */
    }
    return true;
}
