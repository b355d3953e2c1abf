/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the servers: versions, members, replication lag, connections, clocks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/lookup.h"
#include "report/run_record.h"
#include "util/text.h"

#include "examine.h"

#define LAG_WARNING 10.0 /* seconds; flow control begins to throttle at this lag */
#define LAG_PROBLEM 60.0
#define CLOCK_WARNING_MS 1000.0
#define CLOCK_PROBLEM_MS 60000.0
#define CONNECTIONS_LEAST 500.0 /* a load uses up to two per thread and server */

/* ---- deployment ---- */

void sl_check_deployment(const sl_examined *examined, sl_findings *findings) {
    const sl_server *server = examined->server;
    const struct {
        sl_verdict verdict;
        const char *figure, *meaning;
    } rows[] = {
        [SL_MEMBER_OF_NONE] = {SL_VERDICT_OK, "belongs to no sharded cluster",
                               "what is loaded into it is what its clients read"},
        [SL_MEMBER_OF_CLUSTER] =
            {SL_VERDICT_PROBLEM, server->member_of,
             "readers do not find documents that are written to it without the "
             "routers, so that a load is refused: name the routers in --uri"},
        [SL_MEMBERSHIP_UNKNOWN] = {SL_VERDICT_UNKNOWN,
                                   "the user may not read whether it belongs to a sharded cluster: "
                                   "that needs the privilege shardingState (in clusterMonitor)",
                                   "if it does, name the routers of the cluster in --uri"},
    };
    const bool routers = server->deployment == SL_SHARDED;
    const size_t row = server->membership;
    sl_find(findings, rows[row].verdict,
            routers ? "the router places each document on the shard that owns it"
                    : rows[row].meaning,
            "%s: %s", sl_deployment_name(server->deployment),
            routers ? "the hosts of --uri are routers of one cluster" : rows[row].figure);
}

/* ---- versions ---- */

void sl_check_versions(const sl_examined *examined, sl_findings *findings) {
    char list[300] = "";
    size_t used = 0, kinds = 0, silent = 0;
    bson_t values;
    for (size_t i = 0; i < examined->count; i++) {
        const char *version = examined->servers[i].version;
        size_t same = 0, earlier = 0;
        for (size_t k = 0; k < examined->count; k++) {
            bool equal = strcmp(version, examined->servers[k].version) == 0;
            same += equal;
            earlier += equal && k < i;
        }
        silent += !version[0];
        if (!version[0] || earlier > 0)
            continue;
        used += sl_print_text(list + used, sizeof list - used, "%s%s on %zu server%s",
                              kinds++ > 0 ? ", " : "", version, same, same == 1 ? "" : "s");
    }
    sl_finding *finding =
        sl_find(findings, kinds > 1 ? SL_VERDICT_WARNING : SL_VERDICT_OK,
                kinds > 1 ? "an upgrade is not finished: complete it before a long load, since "
                            "restarts during a load cost time"
                          : "all servers that answer have one version",
                "%s%s", list, silent > 0 ? "; some do not answer" : "");
    BSON_APPEND_ARRAY_BEGIN(finding->values, "servers", &values);
    for (size_t i = 0; i < examined->count; i++) {
        static const char *const roles[SL_ROLES] = {"unknown", "router", "primary", "secondary",
                                                    "arbiter"};
        bson_t item;
        const sl_examined_server *server = &examined->servers[i];
        sl_record_begin_item(&values, i, &item);
        BSON_APPEND_UTF8(&item, "host", server->name);
        BSON_APPEND_UTF8(&item, "shard", server->shard);
        BSON_APPEND_UTF8(&item, "role", roles[server->role]);
        BSON_APPEND_UTF8(&item, "version", server->version);
        bson_append_document_end(&values, &item);
    }
    bson_append_array_end(finding->values, &values);
}

/* ---- members ---- */

/* Counts the servers of a shard by role; `silent` receives the names of the servers without a
 * role. */
static void count_roles(const sl_examined *examined, const char *shard, size_t roles[SL_ROLES],
                        char *silent, size_t room) {
    size_t used = 0;
    memset(roles, 0, SL_ROLES * sizeof *roles);
    silent[0] = '\0';
    for (size_t i = 0; i < examined->count; i++) {
        const sl_examined_server *server = &examined->servers[i];
        if (strcmp(server->shard, shard) != 0)
            continue;
        roles[server->role]++;
        if (server->role == SL_ROLE_NONE)
            used += sl_print_text(silent + used, room - used, "%s%s (%.120s)", used ? ", " : "",
                                  server->name, server->answers[SL_ASK_HELLO].why);
    }
}

static void find_members(const sl_examined *examined, const char *shard, sl_findings *findings) {
    size_t roles[SL_ROLES];
    char silent[300];
    count_roles(examined, shard, roles, silent, sizeof silent);
    size_t all = roles[SL_ROLE_NONE] + roles[SL_ROLE_PRIMARY] + roles[SL_ROLE_SECONDARY] +
                 roles[SL_ROLE_ARBITER];
    size_t data = roles[SL_ROLE_PRIMARY] + roles[SL_ROLE_SECONDARY];
    bool replicated = examined->server->deployment != SL_STANDALONE;
    sl_verdict verdict = SL_VERDICT_OK;
    const char *meaning = "every member answers; majority writes are acknowledged";
    if (roles[SL_ROLE_PRIMARY] == 0 && roles[SL_ROLE_NONE] == all) {
        verdict = SL_VERDICT_UNKNOWN;
        meaning = "nothing is known about its members (a load through routers does not need to "
                  "reach them; --route direct does)";
    } else if (roles[SL_ROLE_PRIMARY] == 0) {
        verdict = SL_VERDICT_PROBLEM;
        meaning = "without a primary it accepts no writes: a load waits for --retry-timeout and "
                  "then ends";
    } else if (roles[SL_ROLE_NONE] > 0 && 2 * data <= all) {
        verdict = SL_VERDICT_PROBLEM;
        meaning = "no majority of the members stores data: writes with the default write concern "
                  "are never acknowledged";
    } else if (roles[SL_ROLE_NONE] > 0) {
        verdict = SL_VERDICT_WARNING;
        meaning =
            "if one more member fails, writes may not be acknowledged any more; a member that "
            "falls behind for too long must copy all data again";
    } else if (!replicated || all == 1) {
        meaning = "one copy of the data: the load stops while this server is down";
    }
    sl_finding *finding =
        sl_find(findings, verdict, meaning, "%s: %zu of %zu member%s answer%s, %s primary%s%s",
                shard, data + roles[SL_ROLE_ARBITER], all, all == 1 ? "" : "s", all == 1 ? "s" : "",
                roles[SL_ROLE_PRIMARY] ? "with a" : "no", silent[0] ? "; not: " : "", silent);
    BSON_APPEND_UTF8(finding->values, "shard", shard);
    BSON_APPEND_INT64(finding->values, "members", (int64_t)all);
    BSON_APPEND_INT64(finding->values, "answering", (int64_t)(data + roles[SL_ROLE_ARBITER]));
    BSON_APPEND_BOOL(finding->values, "primary", roles[SL_ROLE_PRIMARY] > 0);
}

void sl_check_members(const sl_examined *examined, sl_findings *findings) {
    size_t routers[SL_ROLES];
    char silent[200];
    if (examined->server->deployment == SL_SHARDED) {
        count_roles(examined, "", routers, silent, sizeof silent);
        size_t all = routers[SL_ROLE_ROUTER] + routers[SL_ROLE_NONE];
        sl_find(findings, routers[SL_ROLE_NONE] > 0 ? SL_VERDICT_WARNING : SL_VERDICT_OK,
                routers[SL_ROLE_NONE] > 0 ? "the load uses only the other routers"
                : all <= 1 ? "all batches pass through it: name all routers in --uri, or give "
                             "--route direct"
                           : "the load is spread over them",
                "%zu of %zu router%s of --uri answer%s%s%s", routers[SL_ROLE_ROUTER], all,
                all == 1 ? "" : "s", all == 1 ? "s" : "", silent[0] ? "; not: " : "", silent);
        if (!examined->topology)
            sl_find_unknown(findings, examined->topology_why.message,
                            "the shards are not examined");
        for (size_t i = 0; examined->topology && i < examined->topology->count; i++)
            find_members(examined, examined->topology->shards[i].name, findings);
    } else if (examined->count > 0) {
        find_members(examined, examined->servers[0].shard, findings);
    }
}

/* ---- replication lag ---- */

static double optime_ms(const bson_t *member) {
    bson_iter_t iter;
    return bson_iter_init_find(&iter, member, "optimeDate") && BSON_ITER_HOLDS_DATE_TIME(&iter)
               ? (double)bson_iter_date_time(&iter)
               : NAN;
}

/* The lag of the member that is furthest behind, according to one server; NAN if there is none. */
static double largest_lag(const bson_t *status, char *name, size_t room) {
    double newest = NAN, lag = NAN;
    for (sl_walk walk = sl_walk_start(status, "members"); sl_walk_next(&walk);)
        newest = fmax(newest, optime_ms(&walk.item));
    for (sl_walk walk = sl_walk_start(status, "members"); sl_walk_next(&walk);) {
        const char *state = sl_look_text(&walk.item, "stateStr");
        double behind = (newest - optime_ms(&walk.item)) / 1000;
        if (!state || strcmp(state, "SECONDARY") != 0 || !(isnan(lag) || behind > lag))
            continue;
        const char *host = sl_look_text(&walk.item, "name");
        lag = behind;
        snprintf(name, room, "%s", host ? host : "?");
    }
    return lag;
}

void sl_check_lag(const sl_examined_server *server, sl_findings *findings) {
    char member[SL_MEMBER_NAME_ROOM] = "";
    double lag = largest_lag(&server->answers[SL_ASK_REPLICAS].reply, member, sizeof member);
    if (isnan(lag)) {
        sl_find(findings, SL_VERDICT_OK, "there are no secondaries", "%s: no secondaries",
                server->shard);
        return;
    }
    sl_finding *finding = sl_find(
        findings,
        lag >= LAG_PROBLEM   ? SL_VERDICT_PROBLEM
        : lag >= LAG_WARNING ? SL_VERDICT_WARNING
                             : SL_VERDICT_OK,
        lag >= LAG_WARNING
            ? "the load increases it: flow control throttles writes, and a member that falls "
              "off the oplog must copy all data again. Find the cause first"
            : "the secondaries keep up",
        "%s: %.1f s (%s)", server->shard, lag, member);
    BSON_APPEND_UTF8(finding->values, "shard", server->shard);
    BSON_APPEND_DOUBLE(finding->values, "lagSeconds", lag);
}

/* ---- connections ---- */

void sl_check_connections(const sl_examined *examined, sl_findings *findings) {
    double least = INFINITY, used = 0;
    const char *name = "", *why = NULL;
    for (size_t i = 0; i < examined->count; i++) {
        const sl_examined_server *server = &examined->servers[i];
        const bson_t *status = &server->answers[SL_ASK_STATUS].reply;
        double available = sl_look_number(status, "connections.available");
        if (server->role != SL_ROLE_NONE && !server->answers[SL_ASK_STATUS].ok &&
            server->role != SL_ROLE_ARBITER)
            why = server->answers[SL_ASK_STATUS].why;
        if (isnan(available) || available >= least)
            continue;
        least = available;
        used = sl_look_amount(status, "connections.current", 0);
        name = server->name;
    }
    if (isinf(least)) {
        sl_find_unknown(findings, why ? why : "no server reports them",
                        "a load opens about one per thread and server");
        return;
    }
    sl_finding *finding =
        sl_find(findings, least < CONNECTIONS_LEAST ? SL_VERDICT_WARNING : SL_VERDICT_OK,
                least < CONNECTIONS_LEAST
                    ? "a load opens about one per thread and server: it may use them up, for other "
                      "clients too"
                    : "a load opens about one per thread and server",
                "%.0f left on %s, %.0f in use", least, name, used);
    BSON_APPEND_DOUBLE(finding->values, "available", least);
}

/* ---- clocks ---- */

void sl_check_clock(const sl_examined *examined, sl_findings *findings) {
    const sl_examined_server *worst = NULL;
    for (size_t i = 0; i < examined->count; i++) {
        const sl_examined_server *server = &examined->servers[i];
        if (!isnan(server->clock_ms) && (!worst || fabs(server->clock_ms) > fabs(worst->clock_ms)))
            worst = server;
    }
    if (!worst) {
        sl_find_unknown(findings, "no server reports its time", "");
        return;
    }
    double off = fabs(worst->clock_ms) - worst->error_ms;
    sl_finding *finding = sl_find(
        findings,
        off >= CLOCK_PROBLEM_MS   ? SL_VERDICT_PROBLEM
        : off >= CLOCK_WARNING_MS ? SL_VERDICT_WARNING
                                  : SL_VERDICT_OK,
        off >= CLOCK_WARNING_MS
            ? "loads on several machines use the time to decide whether another load still runs, "
              "and timestamps of logs do not match: synchronise the clocks"
            : "timestamps in logs of this machine and of the servers match",
        "%s is %.3f s %s this machine (within %.3f s)", worst->name, fabs(worst->clock_ms) / 1000,
        worst->clock_ms < 0 ? "behind" : "ahead of", worst->error_ms / 1000);
    BSON_APPEND_DOUBLE(finding->values, "seconds", worst->clock_ms / 1000);
}
