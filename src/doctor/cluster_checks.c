/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a cluster: balancer, shards, and what earlier work has left behind: an upgrade that was
 * not completed, registries and temporary collections of commands that ended early. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/lookup.h"
#include "util/text.h"

#include "examine.h"

/* The documents of a find on a server; `answer->reply` then holds them as "cursor.firstBatch". */
static void find_all(const sl_examined_server *server, const char *collection, sl_answer *answer) {
    sl_ask(server, "config", BCON_NEW("find", BCON_UTF8(collection), "filter", "{", "}"), answer);
}

/* ---- balancer ---- */

/* "22:00 to 05:00", from the settings of the balancer; "" without a window. */
static void read_window(const sl_answer *settings, char *out, size_t room) {
    out[0] = '\0';
    for (sl_walk walk = sl_walk_start(&settings->reply, "cursor.firstBatch");
         sl_walk_next(&walk);) {
        const char *id = sl_look_text(&walk.item, "_id");
        const char *start = sl_look_text(&walk.item, "activeWindow.start");
        const char *stop = sl_look_text(&walk.item, "activeWindow.stop");
        if (id && strcmp(id, "balancer") == 0 && start && stop)
            sl_print_text(out, room, ", window %s to %s", start, stop);
    }
}

void sl_check_balancer(const sl_examined_server *server, sl_findings *findings) {
    static const char meaning[] = "the load stops it while it runs, and restores it";
    sl_balancer_view view = {0};
    sl_error error = {0};
    sl_answer status, settings;
    char window[80];
    if (!sl_balancer_status(findings->examined->connection, &view, &error)) {
        sl_find_unknown(findings, error.message, meaning);
        return;
    }
    sl_ask(server, "admin", BCON_NEW("balancerStatus", BCON_INT32(1)), &status);
    find_all(server, "settings", &settings);
    read_window(&settings, window, sizeof window);
    bool on = strcmp(view.mode, "full") == 0;
    bool moving = sl_look_truth(&status.reply, "inBalancerRound") == 1;
    sl_finding *finding = sl_find(
        findings, view.holders > 0 && view.dead < view.holders ? SL_VERDICT_WARNING : SL_VERDICT_OK,
        view.dead > 0 && view.dead == view.holders
            ? "a load that was killed has stopped it: the next load restores it"
        : view.holders > 0 ? "another load runs: both share the servers"
        : on && window[0]  ? "the load stops it while it runs, and restores it; after the load it "
                             "moves chunks only within its window"
        : on               ? meaning
                           : "it stays off after the load: chunks that are not distributed by the "
                             "load stay where they are",
        "%s%s%s%s%s", on ? "on" : "off", window, moving ? ", moving chunks now" : "",
        view.holders > 0 ? ", stopped by " : "", view.holders > 0 ? view.names : "");
    BSON_APPEND_UTF8(finding->values, "mode", view.mode);
    BSON_APPEND_INT32(finding->values, "holders", (int32_t)view.holders);
    BSON_APPEND_UTF8(finding->values, "window", window[0] ? window + strlen(", window ") : "");
    bson_destroy(&status.reply);
    bson_destroy(&settings.reply);
}

/* ---- shards ---- */

void sl_check_shards(const sl_examined_server *server, sl_findings *findings) {
    sl_answer shards;
    char draining[200] = "";
    size_t used = 0, count = 0;
    find_all(server, "shards", &shards);
    for (sl_walk walk = sl_walk_start(&shards.reply, "cursor.firstBatch"); sl_walk_next(&walk);) {
        const char *name = sl_look_text(&walk.item, "_id");
        count++;
        if (sl_look_truth(&walk.item, "draining") == 1)
            used += sl_print_text(draining + used, sizeof draining - used, "%s%s", used ? ", " : "",
                                  name ? name : "?");
    }
    if (shards.ok) {
        sl_finding *finding =
            sl_find(findings, draining[0] ? SL_VERDICT_WARNING : SL_VERDICT_OK,
                    draining[0]  ? "a shard is being removed: documents that are loaded onto it "
                                   "must be moved away again. Complete or cancel the removal first"
                    : count == 1 ? "all data goes to one shard"
                                 : "a new collection is spread over them before the load",
                    "%zu%s%s", count, draining[0] ? ", draining: " : "", draining);
        BSON_APPEND_INT64(finding->values, "count", (int64_t)count);
        BSON_APPEND_UTF8(finding->values, "draining", draining);
    } else {
        sl_find_unknown(findings, shards.why, "");
    }
    bson_destroy(&shards.reply);
}

/* ---- featureCompatibilityVersion ---- */

/* Is the compatibility version that of the server's release, as "6.0" of "6.0.5"? */
static bool is_release(const char *compatible, const char *server) {
    size_t length = strlen(compatible);
    return strncmp(compatible, server, length) == 0 &&
           (server[length] == '.' || server[length] == '\0');
}

void sl_check_compatibility(const sl_examined *examined, sl_findings *findings) {
    static const char unknown[] = "an upgrade that was not completed is not seen";
    bool any = false;
    for (size_t i = 0; i < examined->count; i++) {
        const sl_examined_server *server = &examined->servers[i];
        sl_answer answer;
        if (server->role != SL_ROLE_PRIMARY)
            continue;
        any = true;
        sl_ask(
            server, "admin",
            BCON_NEW("getParameter", BCON_INT32(1), "featureCompatibilityVersion", BCON_BOOL(true)),
            &answer);
        const char *version = sl_look_text(&answer.reply, "featureCompatibilityVersion.version");
        const char *target =
            sl_look_text(&answer.reply, "featureCompatibilityVersion.targetVersion");
        if (!version) {
            sl_find_unknown(findings, answer.ok ? "the server does not show it" : answer.why,
                            unknown);
        } else {
            bool complete =
                !target && (!server->version[0] || is_release(version, server->version));
            sl_finding *finding = sl_find(
                findings, complete ? SL_VERDICT_OK : SL_VERDICT_WARNING,
                complete ? "all features of the servers' release can be used"
                : target ? "the version is being changed: wait until that is completed, because it "
                           "takes locks and moves no chunks"
                         : "the servers were upgraded, but not their data: features of the release "
                           "are refused; setFeatureCompatibilityVersion completes the upgrade",
                "%s: featureCompatibilityVersion %s%s%s%s%s", server->shard, version,
                target ? ", on the way to " : "", target ? target : "",
                complete || target ? "" : " on a server of version ",
                complete || target ? "" : server->version);
            BSON_APPEND_UTF8(finding->values, "shard", server->shard);
            BSON_APPEND_UTF8(finding->values, "version", version);
        }
        bson_destroy(&answer.reply);
    }
    if (!any)
        sl_find_unknown(findings, "no primary answers", unknown);
}

/* ---- leftovers ---- */

#define REGISTRY ".sources"
#define SHOWN 3 /* names in the figure; the values have all */

typedef struct sl_leftovers {
    const sl_examined_server *front;
    bson_t names; /* an array */
    size_t count;
    char shown[300];
    char why[400]; /* something could not be read; "": all was */
} sl_leftovers;

static void add(sl_leftovers *left, const char *database, const char *name) {
    char text[400], key[24];
    size_t used = strlen(left->shown);
    sl_print_text(text, sizeof text, "%s.%s", database, name);
    snprintf(key, sizeof key, "%zu", left->count);
    BSON_APPEND_UTF8(&left->names, key, text);
    if (left->count++ < SHOWN)
        sl_print_text(left->shown + used, sizeof left->shown - used, "%s%s.%s", used ? ", " : "",
                      database, name);
}

static void keep_reason(sl_leftovers *left, const sl_answer *answer) {
    if (!answer->ok && !left->why[0])
        snprintf(left->why, sizeof left->why, "%s", answer->why);
}

/* Does the name end as those of temporary collections of a trial do:
 * ".KIND.HOST.PID.START.NUMBER"? */
static bool is_temporary(const char *name) {
    static const char *const kinds[] = {".drill.", ".tune."};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *at = strstr(name, kinds[i]);
        unsigned number;
        long long pid, start;
        int end = 0;
        if (at &&
            sscanf(at + strlen(kinds[i]), "%*32[^.].%lld.%lld.%u%n", &pid, &start, &number, &end) ==
                3 &&
            end > 0 && at[strlen(kinds[i]) + (size_t)end] == '\0')
            return true;
    }
    return strncmp(name, "shardload.doctor.", 17) == 0 ||
           (strncmp(name, "shardload-restore-", 18) == 0 && strlen(name) == 34 &&
            strspn(name + 18, "0123456789abcdef") == 16);
}

/* Lists the collections whose names match. */
static void list_collections(sl_leftovers *left, const char *database, const bson_t *filter,
                             sl_answer *answer) {
    bson_t *command =
        BCON_NEW("listCollections", BCON_INT32(1), "nameOnly", BCON_BOOL(true), "filter",
                 BCON_DOCUMENT(filter), "cursor", "{", "batchSize", BCON_INT32(1000000), "}");
    sl_ask(left->front, database, command, answer);
    keep_reason(left, answer);
    if (answer->ok && sl_look_number(&answer->reply, "cursor.id") > 0 && !left->why[0])
        sl_print_text(left->why, sizeof left->why,
                      "%s has more collections with such names than one reply holds", database);
}

/* Without an answer the collection is assumed to exist, so that its registry is not reported. */
static bool has_collection(sl_leftovers *left, const char *database, const char *name,
                           size_t length) {
    sl_answer answer;
    bson_t filter = BSON_INITIALIZER;
    bson_append_utf8(&filter, "name", 4, name, (int)length);
    list_collections(left, database, &filter, &answer);
    bson_destroy(&filter);
    bool found = !answer.ok || sl_walk_count(&answer.reply, "cursor.firstBatch") > 0;
    bson_destroy(&answer.reply);
    return found;
}

/* Is it a registry? A user may have a collection of this name, too. */
static bool is_registry(sl_leftovers *left, const char *database, const char *name) {
    sl_answer answer;
    bson_t *command =
        BCON_NEW("find", BCON_UTF8(name), "filter", "{", "_id", BCON_UTF8("counter"), "last", "{",
                 "$type", BCON_UTF8("number"), "}", "}", "limit", BCON_INT32(1));
    sl_ask(left->front, database, command, &answer);
    keep_reason(left, &answer);
    bool found = sl_walk_count(&answer.reply, "cursor.firstBatch") > 0;
    bson_destroy(&answer.reply);
    return found;
}

/* Matches the names of all leftovers and few others, so that one reply holds all matches. */
#define LIKELY_NAMES "\\.sources$|\\.(drill|tune)\\.|^shardload"

static void search_database(sl_leftovers *left, const char *database) {
    sl_answer answer;
    bson_t filter = BSON_INITIALIZER;
    BSON_APPEND_REGEX(&filter, "name", LIKELY_NAMES, "");
    list_collections(left, database, &filter, &answer);
    bson_destroy(&filter);
    for (sl_walk walk = sl_walk_start(&answer.reply, "cursor.firstBatch"); sl_walk_next(&walk);) {
        const char *name = sl_look_text(&walk.item, "name");
        size_t length = name ? strlen(name) : 0, end = strlen(REGISTRY);
        if (length > end && strcmp(name + length - end, REGISTRY) == 0) {
            if (!has_collection(left, database, name, length - end) &&
                is_registry(left, database, name))
                add(left, database, name);
        } else if (name && is_temporary(name)) {
            add(left, database, name);
        }
    }
    bson_destroy(&answer.reply);
}

static void search_all(sl_leftovers *left) {
    sl_answer answer;
    bson_t *command = BCON_NEW("listDatabases", BCON_INT32(1), "nameOnly", BCON_BOOL(true),
                               "authorizedDatabases", BCON_BOOL(false));
    sl_ask(left->front, "admin", command, &answer);
    keep_reason(left, &answer);
    for (sl_walk walk = sl_walk_start(&answer.reply, "databases"); sl_walk_next(&walk);) {
        const char *name = sl_look_text(&walk.item, "name");
        if (name && strcmp(name, "local") != 0 && strcmp(name, "config") != 0 &&
            strcmp(name, "admin") != 0)
            search_database(left, name);
    }
    bson_destroy(&answer.reply);
}

/* Loads that were killed and still count as keeping the balancer stopped. */
static uint32_t dead_holders(const sl_examined *examined, sl_leftovers *left) {
    sl_balancer_view view = {0};
    sl_error error = {0};
    if (examined->server->deployment != SL_SHARDED)
        return 0;
    if (sl_balancer_status(examined->connection, &view, &error))
        return view.dead;
    if (!left->why[0])
        sl_print_text(left->why, sizeof left->why, SL_LINES, error.message);
    return 0;
}

void sl_check_leftovers(const sl_examined *examined, sl_findings *findings) {
    const char *database = examined->config->load->database;
    sl_leftovers left = {.front = sl_examined_front(examined), .names = BSON_INITIALIZER};
    if (!left.front) {
        sl_find_unknown(findings, "no server answers", "");
        return;
    }
    if (database)
        search_database(&left, database);
    else
        search_all(&left);
    uint32_t dead = dead_holders(examined, &left);
    if (left.count + dead > 0) {
        sl_finding *finding = sl_find(
            findings, SL_VERDICT_WARNING,
            left.count > 0
                ? "they belong to a restore or trial that runs, or to one that ended early: resume "
                  "it, or drop them. A registry without its collection still counts its sources "
                  "as loaded"
                : "a load that was killed has stopped the balancer: the next load restores it",
            "%zu collection%s of earlier commands%s%s%s; %u killed load%s that hold%s the balancer",
            left.count, left.count == 1 ? "" : "s", left.count > 0 ? ": " : "", left.shown,
            left.count > SHOWN ? ", ..." : "", dead, dead == 1 ? "" : "s", dead == 1 ? "s" : "");
        BSON_APPEND_ARRAY(finding->values, "collections", &left.names);
        BSON_APPEND_INT32(finding->values, "deadHolders", (int32_t)dead);
    } else if (!left.why[0]) {
        sl_finding *finding =
            sl_find(findings, SL_VERDICT_OK, "no command that ended early has left anything behind",
                    "none in %s", database ? database : "all databases");
        BSON_APPEND_ARRAY(finding->values, "collections", &left.names);
        BSON_APPEND_INT32(finding->values, "deadHolders", 0);
    }
    if (left.why[0])
        sl_find_unknown(findings, left.why,
                        "leftovers of commands that ended early may exist there");
    bson_destroy(&left.names);
}
