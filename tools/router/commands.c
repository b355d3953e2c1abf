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
    {"hello", .run = answer_hello},
    {"isMaster", "ismaster", .run = answer_hello},
    {"ping", .run = answer_ping},
    {"whatsmyuri", .run = answer_my_address},
    {"listCommands", .run = answer_list_commands},
    {"endSessions", .run = answer_ping},
    {"refreshSessions", .run = answer_ping},
    {"logout", .run = answer_ping},

    /* Reads and writes, routed by the server's own code. */
    {"insert", .run = forward_home, .sent_as = "clusterInsert", .flags = COMMAND_WRITES},
    {"update", .run = forward_home, .sent_as = "clusterUpdate", .flags = COMMAND_WRITES},
    {"delete", .run = forward_home, .sent_as = "clusterDelete", .flags = COMMAND_WRITES},
    {"find", .run = forward_home, .sent_as = "clusterFind",
     .flags = COMMAND_REPEATABLE | COMMAND_OPENS_CURSOR},
    {"aggregate", .run = forward_home, .sent_as = "clusterAggregate",
     .flags = COMMAND_OPENS_CURSOR},
    {"getMore", .run = forward_get_more},
    {"killCursors", .run = kill_cursors},

    /* Reads and writes without a cluster* form. */
    {"count", .run = run_count},
    {"distinct", .run = run_distinct},
    {"explain", .run = run_explain},
    {"findAndModify", "findandmodify", .run = run_by_sharding, .sharded = find_and_modify,
     .flags = COMMAND_WRITES | COMMAND_CREATES},

    /* Databases, collections and indexes. */
    {"create", .run = forward_primary, .flags = COMMAND_WRITES | COMMAND_CREATES},
    {"createIndexes", .run = run_by_sharding, .sharded = run_on_owners,
     .flags = COMMAND_WRITES | COMMAND_CREATES},
    {"dropIndexes", "deleteIndexes", .run = run_by_sharding, .sharded = run_on_owners,
     .flags = COMMAND_WRITES},
    {"validate", .run = run_by_sharding, .sharded = run_on_owners, .flags = COMMAND_REPEATABLE},
    {"collMod", .run = run_ddl, .sent_as = "_shardsvrCollMod"},
    {"drop", .run = run_ddl, .sent_as = "_shardsvrDropCollection"},
    {"dropDatabase", .run = run_drop_database},
    {"renameCollection", .run = run_rename},
    {"listCollections", .run = forward_primary, .flags = COMMAND_REPEATABLE | COMMAND_OPENS_CURSOR},
    {"listIndexes", .run = run_by_sharding, .sharded = list_indexes,
     .flags = COMMAND_REPEATABLE | COMMAND_OPENS_CURSOR},
    {"listDatabases", .run = run_list_databases},
    {"collStats", "collstats", .run = run_by_sharding, .sharded = collection_stats},
    {"dbStats", "dbstats", .run = run_database_stats},

    /* Sharding. */
    {"enableSharding", "enablesharding", .run = run_enable_sharding},
    {"shardCollection", "shardcollection", .run = run_shard_collection},
    {"split", .run = run_split},
    {"moveChunk", "movechunk", .run = run_move_chunk},
    {"moveRange", .run = run_move_range},
    {"listShards", "listshards", .run = run_list_shards},
    {"getShardMap", .run = forward_config, .flags = COMMAND_REPEATABLE},
    {"balancerStart", .run = forward_config, .sent_as = "_configsvrBalancerStart",
     .flags = COMMAND_REPEATABLE},
    {"balancerStop", .run = forward_config, .sent_as = "_configsvrBalancerStop",
     .flags = COMMAND_REPEATABLE},
    {"balancerStatus", .run = forward_config, .sent_as = "_configsvrBalancerStatus",
     .flags = COMMAND_REPEATABLE},
    {"balancerCollectionStatus", .run = forward_config,
     .sent_as = "_configsvrBalancerCollectionStatus", .flags = COMMAND_REPEATABLE},
    {"addShardToZone", .run = run_on_config, .sent_as = "_configsvrAddShardToZone"},
    {"removeShardFromZone", .run = run_on_config, .sent_as = "_configsvrRemoveShardFromZone"},
    {"updateZoneKeyRange", .run = run_on_config, .sent_as = "_configsvrUpdateZoneKeyRange"},
    {"flushRouterConfig", "flushrouterconfig", .run = forward_everywhere,
     .flags = COMMAND_REPEATABLE},

    /* Commands about a server. */
    {"buildInfo", "buildinfo", .run = forward_home, .flags = COMMAND_REPEATABLE},
    {"serverStatus", .run = forward_home, .flags = COMMAND_REPEATABLE},
    {"hostInfo", .run = forward_home, .flags = COMMAND_REPEATABLE},
    {"getParameter", .run = forward_home, .flags = COMMAND_REPEATABLE},
    {"getCmdLineOpts", .run = forward_home, .flags = COMMAND_REPEATABLE},
    {"getLog", .run = forward_home, .flags = COMMAND_REPEATABLE},
    {"connectionStatus", .run = forward_home, .flags = COMMAND_REPEATABLE},
    {"getDefaultRWConcern", .run = forward_config, .flags = COMMAND_REPEATABLE},
    {"fsync", .run = forward_everywhere, .flags = COMMAND_REPEATABLE},
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

void command_rewrite_majority(const bson_t *command, const char *name, bson_t *out) {
    bson_t renamed;
    command_rewrite(command, name, &renamed);
    bson_init(out);
    bson_copy_to_excluding_noinit(&renamed, out, "writeConcern", NULL);
    append_majority(out);
    bson_destroy(&renamed);
}

void command_prepare(const struct request *request, bson_t *out) {
    const struct command *command = request->command;
    command_rewrite(request->body, command->sent_as ? command->sent_as : command->name, out);
    if ((command->flags & COMMAND_WRITES || stores_result(request->body)) &&
        !bson_has_field(request->body, "writeConcern")) {
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

enum outcome command_run(struct session *session, struct request *request, bson_t *reply) {
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
    request->command = command;
    return command->run(session, request, reply);
}

enum outcome answer_list_commands(struct session *session, const struct request *request,
                                  bson_t *reply) {
    bson_t list;
    bson_t entry;
    (void)session;
    (void)request;
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
