/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the privileges of the roles in docs/security.md that the user lacks. */
#include <stdio.h>
#include <string.h>

#include "report/lookup.h"
#include "util/text.h"

#include "examine.h"

/* What a privilege is needed for. */
typedef enum sl_purpose {
    FOR_LOADING,
    FOR_PREPARING,
    FOR_SHARDING,
    FOR_BALANCER,
    PURPOSES,
} sl_purpose;

static const struct {
    const char *name;
    const char *lacking; /* what fails without it */
    bool sharded;        /* needed on a sharded cluster only */
    bool problem;        /* a load fails without it */
} purposes[PURPOSES] = {
    [FOR_LOADING] = {"load", "a load fails", false, true},
    [FOR_PREPARING] = {"drop, index",
                       "--drop, --index and --compressor fail, and sizes are not "
                       "shown",
                       false, false},
    [FOR_SHARDING] = {"shard", "a new collection cannot be sharded and split", true, true},
    [FOR_BALANCER] = {"balancer", "the balancer cannot be stopped during the load", true, true},
};

/* Databases and collections of a resource; TARGET stands for --db, --collection and its
 * registry. */
#define TARGET ""
#define REGISTRY "."

static const struct {
    sl_purpose purpose;
    const char *action;
    const char *database;   /* TARGET: that of --db */
    const char *collection; /* TARGET: that of --collection; REGISTRY; NULL: the database */
} needs[] = {
    {FOR_LOADING, "listCollections", TARGET, NULL},
    {FOR_LOADING, "find", TARGET, TARGET},
    {FOR_LOADING, "insert", TARGET, TARGET},
    {FOR_LOADING, "find", TARGET, REGISTRY},
    {FOR_LOADING, "insert", TARGET, REGISTRY},
    {FOR_LOADING, "update", TARGET, REGISTRY},
    {FOR_PREPARING, "collStats", TARGET, TARGET},
    {FOR_PREPARING, "createIndex", TARGET, TARGET},
    {FOR_PREPARING, "dropCollection", TARGET, TARGET},
    {FOR_PREPARING, "dropCollection", TARGET, REGISTRY},
    {FOR_SHARDING, "enableSharding", TARGET, NULL},
    {FOR_SHARDING, "enableSharding", TARGET, TARGET},
    {FOR_SHARDING, "splitChunk", TARGET, TARGET},
    {FOR_SHARDING, "moveChunk", TARGET, TARGET},
    {FOR_SHARDING, "find", "config", "shards"},
    {FOR_SHARDING, "find", "config", "collections"},
    {FOR_SHARDING, "find", "config", "chunks"},
    {FOR_BALANCER, "find", "config", "settings"},
    {FOR_BALANCER, "update", "config", "settings"},
    {FOR_BALANCER, "find", "shardload", "balancer"},
    {FOR_BALANCER, "insert", "shardload", "balancer"},
    {FOR_BALANCER, "update", "shardload", "balancer"},
    {FOR_BALANCER, "remove", "shardload", "balancer"},
};

/* Does a name in a privilege cover the wanted one? An empty name covers all databases except those
 * of the server, and all collections. `wanted` NULL: the database itself. */
static bool covers(const bson_t *resource, const char *database, const char *collection) {
    if (sl_look_truth(resource, "anyResource") == 1)
        return true;
    const char *db = sl_look_text(resource, "db"), *name = sl_look_text(resource, "collection");
    if (!db || !name)
        return false;
    bool any = !db[0] && strcmp(database, "config") != 0 && strcmp(database, "local") != 0;
    if (!any && strcmp(db, database) != 0)
        return false;
    return !name[0] || (collection && strcmp(name, collection) == 0);
}

static bool may(const bson_t *status, const char *action, const char *database,
                const char *collection) {
    for (sl_walk walk = sl_walk_start(status, "authInfo.authenticatedUserPrivileges");
         sl_walk_next(&walk);) {
        bson_t resource, actions;
        bson_iter_t iter;
        if (!sl_look_inside(&walk.item, "resource", &resource) ||
            !covers(&resource, database, collection) ||
            !sl_look_inside(&walk.item, "actions", &actions) || !bson_iter_init(&iter, &actions))
            continue;
        while (bson_iter_next(&iter)) {
            const char *one = BSON_ITER_HOLDS_UTF8(&iter) ? bson_iter_utf8(&iter, NULL) : "";
            if (strcmp(one, action) == 0 || strcmp(one, "anyAction") == 0)
                return true;
        }
    }
    return false;
}

static void find_lacking(const bson_t *status, sl_purpose purpose, sl_findings *findings) {
    const sl_load_config *load = findings->examined->config->load;
    char registry[300], list[300] = "";
    size_t used = 0, lacking = 0;
    bson_t array = BSON_INITIALIZER;
    snprintf(registry, sizeof registry, "%s.sources", load->collection);
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        const char *database = needs[i].database, *collection = needs[i].collection;
        if (needs[i].purpose != purpose)
            continue;
        database = database[0] ? database : load->database;
        if (collection && !collection[0])
            collection = load->collection;
        else if (collection && strcmp(collection, REGISTRY) == 0)
            collection = registry;
        if (may(status, needs[i].action, database, collection))
            continue;
        char text[400], key[16];
        snprintf(text, sizeof text, "%s on %s%s%s", needs[i].action, database,
                 collection ? "." : "", collection ? collection : "");
        snprintf(key, sizeof key, "%zu", lacking);
        BSON_APPEND_UTF8(&array, key, text);
        used += sl_print_text(list + used, sizeof list - used, "%s%s", lacking++ ? ", " : "", text);
    }
    sl_finding *finding =
        sl_find(findings,
                lacking == 0                ? SL_VERDICT_OK
                : purposes[purpose].problem ? SL_VERDICT_PROBLEM
                                            : SL_VERDICT_WARNING,
                lacking == 0 ? "all privileges for this part" : purposes[purpose].lacking,
                "%s: %s%s", purposes[purpose].name, lacking ? "lacks " : "complete", list);
    BSON_APPEND_UTF8(finding->values, "purpose", purposes[purpose].name);
    BSON_APPEND_ARRAY(finding->values, "lacking", &array);
    bson_destroy(&array);
}

void sl_check_privileges(const sl_examined_server *server, sl_findings *findings) {
    const sl_load_config *load = findings->examined->config->load;
    sl_answer answer;
    sl_ask(server, "admin",
           BCON_NEW("connectionStatus", BCON_INT32(1), "showPrivileges", BCON_BOOL(true)), &answer);
    if (!answer.ok) {
        sl_find_unknown(findings, answer.why, "");
    } else if (sl_look_count(&answer.reply, "authInfo.authenticatedUsers") == 0) {
        sl_finding *finding = sl_find(
            findings, SL_VERDICT_OK,
            "if the server requires users, give --username; if not, anyone who can connect may "
            "change its data",
            "no user: connected without authentication");
        BSON_APPEND_UTF8(finding->values, "user", "");
    } else if (!load->database || !load->collection) {
        sl_find_unknown(findings, "give --db and --collection",
                        "the privileges are compared with those of a load into them");
    } else {
        for (int purpose = 0; purpose < PURPOSES; purpose++) {
            if (!purposes[purpose].sharded || findings->examined->server->deployment == SL_SHARDED)
                find_lacking(&answer.reply, purpose, findings);
        }
    }
    bson_destroy(&answer.reply);
}
