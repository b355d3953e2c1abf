/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of commands, and the processing of every command before its handler.
 *
 * A mongod that is a shard contains the code of mongos as commands named cluster*. These commands
 * do the routing: they find the shards, send each its part with the right version, and merge the
 * replies. So most commands of the table are renamed and sent to any shard. Commands without a
 * cluster* form are built from the internal commands that mongos sends.
 */

#include "commands.h"

#include <string.h>

static const struct command commands[] = {
    /* The handshake, and commands about the router itself. */
    {"hello", NULL, answer_hello, NULL, 0},
    {"isMaster", "ismaster", answer_hello, NULL, 0},
    {"ping", NULL, answer_ping, NULL, 0},
    {"whatsmyuri", NULL, answer_my_address, NULL, 0},
    {"listCommands", NULL, answer_list_commands, NULL, 0},
    {"endSessions", NULL, answer_ping, NULL, 0},
    {"refreshSessions", NULL, answer_ping, NULL, 0},
    {"logout", NULL, answer_ping, NULL, 0},

    /* Reads and writes, routed by the server's own code. */
    {"insert", NULL, forward_home, "clusterInsert", COMMAND_WRITES},
    {"update", NULL, forward_home, "clusterUpdate", COMMAND_WRITES},
    {"delete", NULL, forward_home, "clusterDelete", COMMAND_WRITES},
    {"find", NULL, forward_home, "clusterFind", COMMAND_REPEATABLE | COMMAND_OPENS_CURSOR},
    {"aggregate", NULL, forward_home, "clusterAggregate", COMMAND_OPENS_CURSOR},
    {"getMore", NULL, forward_get_more, NULL, 0},
    {"killCursors", NULL, kill_cursors, NULL, 0},

    /* Reads and writes without a cluster* form. */
    {"count", NULL, run_count, NULL, 0},
    {"distinct", NULL, run_distinct, NULL, 0},
    {"explain", NULL, run_explain, NULL, 0},
    {"findAndModify", "findandmodify", run_find_and_modify, NULL, COMMAND_WRITES | COMMAND_CREATES},

    /* Databases, collections and indexes. */
    {"create", NULL, forward_primary, NULL, COMMAND_WRITES | COMMAND_CREATES},
    {"createIndexes", NULL, run_on_owners, NULL, COMMAND_WRITES | COMMAND_CREATES},
    {"dropIndexes", "deleteIndexes", run_on_owners, NULL, COMMAND_WRITES},
    {"validate", NULL, run_on_owners, NULL, COMMAND_REPEATABLE},
    {"collMod", NULL, run_ddl, "_shardsvrCollMod", 0},
    {"drop", NULL, run_ddl, "_shardsvrDropCollection", 0},
    {"dropDatabase", NULL, run_drop_database, NULL, 0},
    {"renameCollection", NULL, run_rename, NULL, 0},
    {"listCollections", NULL, forward_primary, NULL, COMMAND_REPEATABLE | COMMAND_OPENS_CURSOR},
    {"listIndexes", NULL, run_list_indexes, NULL, COMMAND_REPEATABLE | COMMAND_OPENS_CURSOR},
    {"listDatabases", NULL, run_list_databases, NULL, 0},
    {"collStats", "collstats", run_collection_stats, NULL, 0},
    {"dbStats", "dbstats", run_database_stats, NULL, 0},

    /* Sharding. */
    {"enableSharding", "enablesharding", run_enable_sharding, NULL, 0},
    {"shardCollection", "shardcollection", run_shard_collection, NULL, 0},
    {"split", NULL, run_split, NULL, 0},
    {"moveChunk", "movechunk", run_move_chunk, NULL, 0},
    {"moveRange", NULL, run_move_range, NULL, 0},
    {"listShards", "listshards", run_list_shards, NULL, 0},
    {"getShardMap", NULL, forward_config, NULL, COMMAND_REPEATABLE},
    {"balancerStart", NULL, forward_config, "_configsvrBalancerStart", COMMAND_REPEATABLE},
    {"balancerStop", NULL, forward_config, "_configsvrBalancerStop", COMMAND_REPEATABLE},
    {"balancerStatus", NULL, forward_config, "_configsvrBalancerStatus", COMMAND_REPEATABLE},
    {"balancerCollectionStatus", NULL, forward_config, "_configsvrBalancerCollectionStatus",
     COMMAND_REPEATABLE},
    {"addShardToZone", NULL, run_on_config, "_configsvrAddShardToZone", 0},
    {"removeShardFromZone", NULL, run_on_config, "_configsvrRemoveShardFromZone", 0},
    {"updateZoneKeyRange", NULL, run_on_config, "_configsvrUpdateZoneKeyRange", 0},
    {"flushRouterConfig", "flushrouterconfig", forward_everywhere, NULL, COMMAND_REPEATABLE},

    /* Commands about a server. */
    {"buildInfo", "buildinfo", forward_home, NULL, COMMAND_REPEATABLE},
    {"serverStatus", NULL, forward_home, NULL, COMMAND_REPEATABLE},
    {"hostInfo", NULL, forward_home, NULL, COMMAND_REPEATABLE},
    {"getParameter", NULL, forward_home, NULL, COMMAND_REPEATABLE},
    {"getCmdLineOpts", NULL, forward_home, NULL, COMMAND_REPEATABLE},
    {"getLog", NULL, forward_home, NULL, COMMAND_REPEATABLE},
    {"connectionStatus", NULL, forward_home, NULL, COMMAND_REPEATABLE},
    {"getDefaultRWConcern", NULL, forward_config, NULL, COMMAND_REPEATABLE},
    {"fsync", NULL, forward_everywhere, NULL, COMMAND_REPEATABLE},
};

static const size_t command_count = sizeof commands / sizeof commands[0];

/*
 * Fields that are not forwarded. A txnNumber in a cluster* command aborts mongod by an invariant;
 * the other fields of sessions and cluster times belong to it. API versions are checked against the
 * name of the command, which changes.
 */
static const char *const withheld[] = {
    "lsid",       "txnNumber",   "autocommit",           "startTransaction", "stmtId",
    "stmtIds",    "coordinator", "$clusterTime",         "$configTime",      "$topologyTime",
    "apiVersion", "apiStrict",   "apiDeprecationErrors", "databaseVersion",  "shardVersion",
};

static bool is_withheld(const char *name) {
    for (size_t i = 0; i < sizeof withheld / sizeof withheld[0]; i++) {
        if (strcmp(withheld[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Copies a read concern without the times of a session, because sessions are not forwarded. */
static void append_read_concern(bson_iter_t *iter, bson_t *out) {
    bson_iter_t field;
    bson_t concern;
    BSON_APPEND_DOCUMENT_BEGIN(out, "readConcern", &concern);
    if (bson_iter_recurse(iter, &field)) {
        while (bson_iter_next(&field)) {
            if (strcmp(bson_iter_key(&field), "afterClusterTime") != 0) {
                bson_append_iter(&concern, NULL, 0, &field);
            }
        }
    }
    bson_append_document_end(out, &concern);
}

void command_rewrite(const bson_t *command, const char *name, bson_t *out) {
    bson_iter_t iter;
    bson_init(out);
    bson_iter_init(&iter, command);
    for (bool first = true; bson_iter_next(&iter); first = false) {
        const char *key = bson_iter_key(&iter);
        if (first) {
            bson_append_iter(out, name, -1, &iter);
        } else if (strcmp(key, "readConcern") == 0 && BSON_ITER_HOLDS_DOCUMENT(&iter)) {
            append_read_concern(&iter, out);
        } else if (!is_withheld(key)) {
            bson_append_iter(out, NULL, 0, &iter);
        }
    }
}

/* True for an aggregation whose last stage stores its result. */
static bool stores_result(const bson_t *command) {
    bson_t stages;
    bson_iter_t iter;
    bson_iter_t stage;
    bool stores = false;
    if (find_document(command, "pipeline", &stages) && bson_iter_init(&iter, &stages)) {
        while (bson_iter_next(&iter)) {
            stores = BSON_ITER_HOLDS_DOCUMENT(&iter) && bson_iter_recurse(&iter, &stage) &&
                     bson_iter_next(&stage) &&
                     (BSON_ITER_IS_KEY(&stage, "$out") || BSON_ITER_IS_KEY(&stage, "$merge"));
        }
    }
    return stores;
}

void command_prepare(const struct request *request, const struct command *command, bson_t *out) {
    bson_iter_t iter;
    command_rewrite(request->body, command->sent_as ? command->sent_as : command->name, out);
    if ((command->flags & COMMAND_WRITES || stores_result(request->body)) &&
        !bson_iter_init_find(&iter, request->body, "writeConcern")) {
        append_majority(out);
    }
}

void copy_field(const bson_t *command, const char *name, bson_t *out) {
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, command, name)) {
        bson_append_iter(out, NULL, 0, &iter);
    }
}

bool command_is_handshake(const char *name) {
    return strcmp(name, "hello") == 0 || strcmp(name, "isMaster") == 0 ||
           strcmp(name, "ismaster") == 0;
}

static const struct command *find_command(const char *name) {
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(commands[i].name, name) == 0 ||
            (commands[i].alias && strcmp(commands[i].alias, name) == 0)) {
            return &commands[i];
        }
    }
    return NULL;
}

enum outcome command_run(struct session *session, const struct request *request, bson_t *reply) {
    const struct command *command = find_command(request->name);
    bson_iter_t iter;
    if (!command) {
        answer_error(
            reply, CODE_COMMAND_NOT_FOUND,
            "no such command: '%.100s' (the local router does not support it; a real mongos may)",
            request->name);
        return ANSWERED;
    }
    /* A transaction is refused, because its writes would be run outside a transaction. */
    if (bson_iter_init_find(&iter, request->body, "autocommit") ||
        bson_iter_init_find(&iter, request->body, "startTransaction")) {
        answer_error(reply, CODE_ILLEGAL_OPERATION,
                     "the local router does not support transactions");
        return ANSWERED;
    }
    return command->run(session, request, command, reply);
}

enum outcome answer_list_commands(struct session *session, const struct request *request,
                                  const struct command *command, bson_t *reply) {
    bson_t list;
    bson_t entry;
    (void)session;
    (void)request;
    (void)command;
    bson_init(reply);
    BSON_APPEND_DOCUMENT_BEGIN(reply, "commands", &list);
    for (size_t i = 0; i < command_count; i++) {
        BSON_APPEND_DOCUMENT_BEGIN(&list, commands[i].name, &entry);
        bson_append_document_end(&list, &entry);
    }
    bson_append_document_end(reply, &list);
    BSON_APPEND_DOUBLE(reply, "ok", 1.0);
    return ANSWERED;
}
