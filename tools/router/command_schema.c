/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Databases, collections and indexes. Commands on a database, or on a collection's metadata, are
 * coordinated by the database's primary shard, with the internal commands that mongos sends to it.
 * Commands on the data of a sharded collection go to every shard that owns chunks.
 */

#include "commands.h"

#include <string.h>

bool visit_owners(struct session *session, const char *db, const char *ns, struct routing *routing,
                  const bson_t *command, const struct owner_visitor *visitor, bson_t *reply) {
    for (int attempt = 1;; attempt++) {
        bool good = true;
        visitor->restart(visitor->state);
        for (size_t i = 0; good && i < routing->owner_count; i++) {
            const struct owner *owner = &routing->owners[i];
            bson_t versioned;
            bson_copy_to(command, &versioned);
            routing_append_version(routing, owner, &versioned);
            BSON_APPEND_UTF8(&versioned, "$db", db);
            good = session_run(session, owner->set, &versioned, reply);
            bson_destroy(&versioned);
            if (good) {
                visitor->each(visitor->state, &session->router->topology->sets[owner->set], reply);
                bson_destroy(reply);
            }
        }
        if (good) {
            return true;
        }
        if (answer_code(reply) != CODE_STALE_CONFIG || attempt == STALE_ATTEMPTS) {
            return false;
        }
        bson_destroy(reply);
        routing_clear(routing);
        if (!routing_load(session, ns, routing, reply)) {
            return false;
        }
        if (!routing->sharded) {
            return answer_error(reply, CODE_NAMESPACE_NOT_FOUND, "ns not found: %s", ns);
        }
    }
}

/* drop and collMod. As with mongos, dropping a missing collection succeeds. */
enum outcome run_ddl(struct session *session, const struct request *request, bson_t *reply) {
    const struct command *command = request->command;
    struct database database;
    char ns[MAX_NAMESPACE];
    enum outcome outcome = ANSWERED;
    bson_t body;
    if (!request_namespace(request, ns, reply)) {
        return ANSWERED;
    }
    if (database_load(session, request->db, &database, reply)) {
        if (database.primary == CONFIG_SET && database.exists) {
            struct command plain = *command;
            struct request renamed = *request;
            plain.sent_as = NULL;
            renamed.command = &plain;
            outcome = forward_config(session, &renamed, reply);
        } else if (database.exists) {
            /* With the version, the shard checks that it still is the primary shard. */
            command_rewrite_majority(request->body, command->sent_as, &body);
            BSON_APPEND_DOCUMENT(&body, "databaseVersion", &database.version);
            outcome = session_forward(session, request, database.primary, &body, false, reply);
            bson_destroy(&body);
        } else if (strcmp(command->name, "drop") == 0) {
            answer_ok(reply);
            BSON_APPEND_UTF8(reply, "info", "database does not exist");
        } else {
            answer_error(reply, CODE_NAMESPACE_NOT_FOUND, "ns not found: %s", ns);
        }
    }
    database_clear(&database);
    return outcome;
}

enum outcome run_drop_database(struct session *session, const struct request *request,
                               bson_t *reply) {
    struct database database;
    if (database_load(session, request->db, &database, reply)) {
        if (database.primary == CONFIG_SET && database.exists) {
            answer_error(reply, CODE_ILLEGAL_OPERATION, "Cannot drop the %s database", request->db);
        } else if (!database.exists) {
            answer_ok(reply);
            BSON_APPEND_UTF8(reply, "info", "database does not exist");
        } else {
            bson_t body = BSON_INITIALIZER;
            BSON_APPEND_INT32(&body, "_shardsvrDropDatabase", 1);
            BSON_APPEND_DOCUMENT(&body, "databaseVersion", &database.version);
            append_majority(&body);
            BSON_APPEND_UTF8(&body, "$db", request->db);
            if (session_run(session, database.primary, &body, reply)) {
                BSON_APPEND_UTF8(reply, "dropped", request->db);
            }
            bson_destroy(&body);
        }
    }
    database_clear(&database);
    return ANSWERED;
}

enum outcome run_rename(struct session *session, const struct request *request, bson_t *reply) {
    struct database database;
    char db[MAX_NAMESPACE];
    const char *collection;
    if (!split_namespace(request->target, db, &collection, reply)) {
        return ANSWERED;
    }
    if (database_load(session, db, &database, reply)) {
        if (!database.exists) {
            answer_error(reply, CODE_NAMESPACE_NOT_FOUND, "Collection %s doesn't exist.",
                         request->target);
        } else {
            bson_t body = BSON_INITIALIZER;
            BSON_APPEND_UTF8(&body, "_shardsvrRenameCollection", collection);
            copy_field(request->body, "to", &body);
            copy_field(request->body, "dropTarget", &body);
            BSON_APPEND_DOCUMENT(&body, "databaseVersion", &database.version);
            append_majority(&body);
            BSON_APPEND_UTF8(&body, "$db", db);
            session_run(session, database.primary, &body, reply);
            bson_destroy(&body);
        }
    }
    database_clear(&database);
    return ANSWERED;
}

/* The replies of all shards, as in mongos: {raw: {shard: reply, ...}}. */
static void restart_raw(void *state) {
    bson_reinit(state);
}

static void append_raw(void *state, const struct node_set *shard, const bson_t *reply) {
    bson_append_document(state, shard->name, -1, reply);
}

/* createIndexes, dropIndexes and validate: on every shard with documents of the collection. */
enum outcome run_on_owners(struct session *session, const struct request *request, const char *ns,
                           struct routing *routing, bson_t *reply) {
    bson_t raw = BSON_INITIALIZER;
    bson_t renamed;
    bson_t body = BSON_INITIALIZER;
    const struct owner_visitor visitor = {restart_raw, append_raw, &raw};
    command_prepare(request, &renamed);
    bson_copy_to_excluding_noinit(&renamed, &body, "$db", NULL);
    if (visit_owners(session, request->db, ns, routing, &body, &visitor, reply)) {
        bson_init(reply);
        BSON_APPEND_DOCUMENT(reply, "raw", &raw);
        BSON_APPEND_DOUBLE(reply, "ok", 1.0);
    }
    bson_destroy(&raw);
    bson_destroy(&renamed);
    bson_destroy(&body);
    return ANSWERED;
}

/* Reads the indexes from an owner of chunks; those of the primary shard may be outdated. */
enum outcome list_indexes(struct session *session, const struct request *request, const char *ns,
                          struct routing *routing, bson_t *reply) {
    bson_t body;
    (void)ns;
    command_rewrite(request->body, request->command->name, &body);
    const enum outcome outcome = forward_to(session, request, routing->owners[0].set, &body, reply);
    bson_destroy(&body);
    return outcome;
}
