/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `shardload doctor`; the table at the end lists them. A check is a row of the table
 * and a function that adds findings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/lookup.h"
#include "report/run_record.h"
#include "util/clock.h"
#include "util/estimate.h"
#include "util/hash.h"
#include "util/text.h"

#include "examine.h"

#define LAG_WARNING 10.0 /* seconds; flow control begins to throttle at this lag */
#define LAG_PROBLEM 60.0
#define CLOCK_WARNING_MS 1000.0
#define CLOCK_PROBLEM_MS 60000.0
#define CONNECTIONS_LEAST 500.0 /* a load uses up to two per thread and server */

/* ---- deployment ---- */

static void check_deployment(const sl_examined *examined, sl_check_findings *findings) {
    const sl_server *server = examined->server;
    const struct {
        sl_check_verdict verdict;
        const char *figure, *meaning;
    } rows[] = {
        [SL_MEMBER_OF_NONE] = {SL_CHECK_OK, "belongs to no sharded cluster",
                               "what is loaded into it is what its clients read"},
        [SL_MEMBER_OF_CLUSTER] =
            {SL_CHECK_PROBLEM, server->member_of,
             "readers do not find documents that are written to it without the "
             "routers, so that a load is refused: name the routers in --uri"},
        [SL_MEMBERSHIP_UNKNOWN] = {SL_CHECK_UNKNOWN,
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

static void check_versions(const sl_examined *examined, sl_check_findings *findings) {
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
        used += sl_print_text(list + used, sizeof list - used, "%s%s on %s",
                              kinds++ > 0 ? ", " : "", version, sl_plural(same, "server"));
    }
    sl_check_finding *finding =
        sl_find(findings, kinds > 1 ? SL_CHECK_WARNING : SL_CHECK_OK,
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

static void find_members(const sl_examined *examined, const char *shard,
                         sl_check_findings *findings) {
    size_t roles[SL_ROLES];
    char silent[300];
    count_roles(examined, shard, roles, silent, sizeof silent);
    size_t all = roles[SL_ROLE_NONE] + roles[SL_ROLE_PRIMARY] + roles[SL_ROLE_SECONDARY] +
                 roles[SL_ROLE_ARBITER];
    size_t data = roles[SL_ROLE_PRIMARY] + roles[SL_ROLE_SECONDARY];
    bool replicated = examined->server->deployment != SL_STANDALONE;
    sl_check_verdict verdict = SL_CHECK_OK;
    const char *meaning = "every member answers; majority writes are acknowledged";
    if (roles[SL_ROLE_PRIMARY] == 0 && roles[SL_ROLE_NONE] == all) {
        verdict = SL_CHECK_UNKNOWN;
        meaning = "nothing is known about its members (a load through routers does not need to "
                  "reach them; --route direct does)";
    } else if (roles[SL_ROLE_PRIMARY] == 0) {
        verdict = SL_CHECK_PROBLEM;
        meaning = "without a primary it accepts no writes: a load waits for --retry-timeout and "
                  "then ends";
    } else if (roles[SL_ROLE_NONE] > 0 && 2 * data <= all) {
        verdict = SL_CHECK_PROBLEM;
        meaning = "no majority of the members stores data: writes with the default write concern "
                  "are never acknowledged";
    } else if (roles[SL_ROLE_NONE] > 0) {
        verdict = SL_CHECK_WARNING;
        meaning =
            "if one more member fails, writes may not be acknowledged any more; a member that "
            "falls behind for too long must copy all data again";
    } else if (!replicated || all == 1) {
        meaning = "one copy of the data: the load stops while this server is down";
    }
    sl_check_finding *finding =
        sl_find(findings, verdict, meaning, "%s: %zu of %s answer%s, %s primary%s%s", shard,
                data + roles[SL_ROLE_ARBITER], sl_plural(all, "member"), all == 1 ? "s" : "",
                roles[SL_ROLE_PRIMARY] ? "with a" : "no", silent[0] ? "; not: " : "", silent);
    BSON_APPEND_UTF8(finding->values, "shard", shard);
    BSON_APPEND_INT64(finding->values, "members", (int64_t)all);
    BSON_APPEND_INT64(finding->values, "answering", (int64_t)(data + roles[SL_ROLE_ARBITER]));
    BSON_APPEND_BOOL(finding->values, "primary", roles[SL_ROLE_PRIMARY] > 0);
}

static void check_members(const sl_examined *examined, sl_check_findings *findings) {
    size_t routers[SL_ROLES];
    char silent[200];
    if (examined->server->deployment == SL_SHARDED) {
        count_roles(examined, "", routers, silent, sizeof silent);
        size_t all = routers[SL_ROLE_ROUTER] + routers[SL_ROLE_NONE];
        sl_find(findings, routers[SL_ROLE_NONE] > 0 ? SL_CHECK_WARNING : SL_CHECK_OK,
                routers[SL_ROLE_NONE] > 0 ? "the load uses only the other routers"
                : all <= 1 ? "all batches pass through it: name all routers in --uri, or give "
                             "--route direct"
                           : "the load is spread over them",
                "%zu of %s of --uri answer%s%s%s", routers[SL_ROLE_ROUTER],
                sl_plural(all, "router"), all == 1 ? "s" : "", silent[0] ? "; not: " : "", silent);
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

typedef struct furthest {
    double lag;
    char name[SL_MEMBER_NAME_ROOM];
} furthest;

static void note_furthest(void *context, const char *member, double seconds) {
    furthest *noted = context;
    if (noted->name[0] && seconds <= noted->lag)
        return;
    noted->lag = seconds;
    snprintf(noted->name, sizeof noted->name, "%s", member);
}

static void check_lag(const sl_examined_server *server, sl_check_findings *findings) {
    furthest member = {.name = ""};
    double lag =
        sl_replication_lag(&server->answers[SL_ASK_REPLICAS].reply, note_furthest, &member);
    if (isnan(lag)) {
        sl_find(findings, SL_CHECK_OK, "there are no secondaries", "%s: no secondaries",
                server->shard);
        return;
    }
    sl_check_finding *finding = sl_find(
        findings,
        lag >= LAG_PROBLEM   ? SL_CHECK_PROBLEM
        : lag >= LAG_WARNING ? SL_CHECK_WARNING
                             : SL_CHECK_OK,
        lag >= LAG_WARNING
            ? "the load increases it: flow control throttles writes, and a member that falls "
              "off the oplog must copy all data again. Find the cause first"
            : "the secondaries keep up",
        "%s: %.1f s (%s)", server->shard, lag, member.name);
    BSON_APPEND_UTF8(finding->values, "shard", server->shard);
    BSON_APPEND_DOUBLE(finding->values, "lagSeconds", lag);
}

/* ---- connections ---- */

static void check_connections(const sl_examined *examined, sl_check_findings *findings) {
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
    sl_check_finding *finding =
        sl_find(findings, least < CONNECTIONS_LEAST ? SL_CHECK_WARNING : SL_CHECK_OK,
                least < CONNECTIONS_LEAST
                    ? "a load opens about one per thread and server: it may use them up, for other "
                      "clients too"
                    : "a load opens about one per thread and server",
                "%.0f left on %s, %.0f in use", least, name, used);
    BSON_APPEND_DOUBLE(finding->values, "available", least);
}

/* ---- clocks ---- */

static void check_clock(const sl_examined *examined, sl_check_findings *findings) {
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
    sl_check_finding *finding = sl_find(
        findings,
        off >= CLOCK_PROBLEM_MS   ? SL_CHECK_PROBLEM
        : off >= CLOCK_WARNING_MS ? SL_CHECK_WARNING
                                  : SL_CHECK_OK,
        off >= CLOCK_WARNING_MS
            ? "loads on several machines use the time to decide whether another load still runs, "
              "and timestamps of logs do not match: synchronise the clocks"
            : "timestamps in logs of this machine and of the servers match",
        "%s is %.3f s %s this machine (within %.3f s)", worst->name, fabs(worst->clock_ms) / 1000,
        worst->clock_ms < 0 ? "behind" : "ahead of", worst->error_ms / 1000);
    BSON_APPEND_DOUBLE(finding->values, "seconds", worst->clock_ms / 1000);
}

#define DISK_WARNING 0.85  /* of the disk in use */
#define STORED_LEAST 0.3   /* stored bytes per byte of BSON: compressed text */
#define DIRTY_WARNING 0.05 /* of the cache: eviction of dirty pages begins */
#define DIRTY_PROBLEM 0.20 /* writing threads must help to evict */

static bool stores_data(const sl_examined_server *server) {
    return server->role == SL_ROLE_PRIMARY || server->role == SL_ROLE_SECONDARY;
}

/* ---- free disk space ---- */

/* Are both servers on one disk, as on a test machine? */
static bool share_disk(const sl_examined_server *a, const sl_examined_server *b) {
    size_t length = strcspn(a->name, ":");
    const bson_t *x = &a->answers[SL_ASK_STORAGE].reply, *y = &b->answers[SL_ASK_STORAGE].reply;
    return length == strcspn(b->name, ":") && strncmp(a->name, b->name, length) == 0 &&
           sl_look_number(x, "fsTotalSize") == sl_look_number(y, "fsTotalSize");
}

/* The share of the data that the disk of this server receives. */
static double share_of_data(const sl_examined *examined, const sl_examined_server *server) {
    double shards =
        examined->topology && examined->topology->count > 0 ? (double)examined->topology->count : 1;
    double sharing = 0;
    for (size_t i = 0; i < examined->count; i++)
        sharing += stores_data(&examined->servers[i]) && share_disk(server, &examined->servers[i]);
    return fmax(sharing, 1) / shards;
}

static void find_room(const sl_examined *examined, const sl_examined_server *server,
                      sl_check_findings *findings) {
    const bson_t *reply = &server->answers[SL_ASK_STORAGE].reply;
    double all = sl_look_number(reply, "fsTotalSize"), used = sl_look_number(reply, "fsUsedSize");
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM], c[SL_HUMAN_ROOM], d[SL_HUMAN_ROOM], plan[120] = "";
    if (isnan(all) || isnan(used) || all <= 0) {
        sl_find_unknown(findings, "the server does not report the size of its disk", "");
        return;
    }
    double least = 0, most = 0;
    if (examined->preview) {
        double share = share_of_data(examined, server);
        least = share * STORED_LEAST * examined->preview->all.bson_bytes.low;
        most = share * SL_STORED_MOST * examined->preview->all.bson_bytes.high;
        snprintf(plan, sizeof plan, "; the load adds %s to %s", sl_human_bytes(least, c),
                 sl_human_bytes(most, d));
    }
    bool full = used + least > SL_DISK_FULL * all, may_fill = used + most > DISK_WARNING * all;
    sl_check_finding *finding = sl_find(
        findings,
        full       ? SL_CHECK_PROBLEM
        : may_fill ? SL_CHECK_WARNING
                   : SL_CHECK_OK,
        full       ? "the disk would fill up: a full disk stops the server. Free or add disk space "
                     "before the load"
        : may_fill ? "the free space may not be enough, also for index builds and the oplog"
        : examined->preview ? "enough for the load, according to a sample of the sources; indexes "
                              "need additional space"
                            : "name the sources as arguments to compare their size with the free "
                              "space",
        "%s (%s): %s free of %s%s", server->name, server->shard, sl_human_bytes(all - used, a),
        sl_human_bytes(all, b), plan);
    BSON_APPEND_UTF8(finding->values, "host", server->name);
    BSON_APPEND_DOUBLE(finding->values, "totalBytes", all);
    BSON_APPEND_DOUBLE(finding->values, "usedBytes", used);
    if (examined->preview) {
        BSON_APPEND_DOUBLE(finding->values, "addedBytesLow", least);
        BSON_APPEND_DOUBLE(finding->values, "addedBytesHigh", most);
    }
}

static void check_disk(const sl_examined *examined, sl_check_findings *findings) {
    for (size_t i = 0; i < examined->count; i++) {
        const sl_examined_server *server = &examined->servers[i];
        bool shown = false; /* reported for a server on the same disk */
        for (size_t k = 0; k < i && !shown; k++)
            shown = examined->servers[k].answers[SL_ASK_STORAGE].ok &&
                    stores_data(&examined->servers[k]) && share_disk(&examined->servers[k], server);
        if (!stores_data(server) || shown)
            continue;
        if (server->answers[SL_ASK_STORAGE].ok)
            find_room(examined, server, findings);
        else
            sl_find_unknown(findings, server->answers[SL_ASK_STORAGE].why,
                            "compare the free space of the disks with the size of the data "
                            "yourself");
    }
}

/* ---- cache ---- */

static void check_cache(const sl_examined_server *server, sl_check_findings *findings) {
    const bson_t *status = &server->answers[SL_ASK_STATUS].reply;
    char a[SL_HUMAN_ROOM];
    double size = sl_look_number(status, "wiredTiger.cache.maximum bytes configured");
    double dirty = sl_look_number(status, "wiredTiger.cache.tracked dirty bytes in the cache");
    double used = sl_look_number(status, "wiredTiger.cache.bytes currently in the cache");
    if (isnan(size) || isnan(dirty) || isnan(used) || size <= 0) {
        sl_find(findings, SL_CHECK_WARNING,
                "shardload is tested with the storage engine wiredTiger only",
                "%s: the storage engine is not wiredTiger", server->shard);
        return;
    }
    double share = dirty / size;
    sl_check_finding *finding = sl_find(
        findings,
        share >= DIRTY_PROBLEM   ? SL_CHECK_PROBLEM
        : share >= DIRTY_WARNING ? SL_CHECK_WARNING
                                 : SL_CHECK_OK,
        share >= DIRTY_PROBLEM
            ? "its disk does not keep up: the clients' threads already write pages to disk. "
              "Wait, or find the client that writes"
        : share >= DIRTY_WARNING
            ? "other clients write, and its disk is behind: a load now competes with them"
            : "it has room for writes; when the cache is full, the load's speed drops to that "
              "of the disk",
        "%s: %s, %.0f %% in use, %.1f %% dirty", server->shard, sl_human_bytes(size, a),
        100 * used / size, 100 * share);
    BSON_APPEND_UTF8(finding->values, "shard", server->shard);
    BSON_APPEND_DOUBLE(finding->values, "bytes", size);
    BSON_APPEND_DOUBLE(finding->values, "dirtyShare", share);
}

/* ---- flow control ---- */

static void check_flow(const sl_examined_server *server, sl_check_findings *findings) {
    const bson_t *status = &server->answers[SL_ASK_STATUS].reply;
    int enabled = sl_look_truth(status, "flowControl.enabled");
    bool lagged = sl_look_truth(status, "flowControl.isLagged") == 1;
    double seconds = sl_look_amount(status, "flowControl.timeAcquiringMicros", 0) / 1e6;
    sl_check_finding *finding = sl_find(
        findings, lagged ? SL_CHECK_WARNING : SL_CHECK_OK,
        lagged ? "it throttles writes now, because secondaries lag: the load would be slow"
        : enabled == 1
            ? "it does not limit writes now; it does when secondaries lag by 10 s or more"
            : "nothing limits writes when secondaries lag; watch the lag during the load",
        "%s: %s%s; writes have waited for it for %.0f s since the server's start", server->shard,
        enabled == 1 ? "on" : "off", lagged ? ", and throttles" : "", seconds);
    BSON_APPEND_UTF8(finding->values, "shard", server->shard);
    BSON_APPEND_BOOL(finding->values, "enabled", enabled == 1);
    BSON_APPEND_BOOL(finding->values, "lagged", lagged);
}

/* ---- operations ---- */

/* Describes the first of the long operations of clients; returns their number. Threads of the
 * server itself, which run forever, have no client. */
static size_t long_operations(const bson_t *reply, char *first, size_t room) {
    size_t count = 0;
    for (sl_walk walk = sl_walk_start(reply, "inprog"); sl_walk_next(&walk);) {
        const char *kind = sl_look_text(&walk.item, "op"), *where = sl_look_text(&walk.item, "ns");
        if (!sl_look_text(&walk.item, "client") || !kind || strcmp(kind, "none") == 0 ||
            (where && strncmp(where, "local.", 6) == 0)) /* secondaries read the oplog */
            continue;
        if (count++ == 0)
            sl_print_text(first, room, "%s on %s for %.0f s", kind, where ? where : "?",
                          sl_look_amount(&walk.item, "secs_running", 0));
    }
    return count;
}

static void check_operations(const sl_examined_server *server, sl_check_findings *findings) {
    const bson_t *reply = &server->answers[SL_ASK_OPERATIONS].reply;
    const bson_t *status = &server->answers[SL_ASK_STATUS].reply;
    char first[200] = "";
    bool locked = sl_look_truth(reply, "fsyncLock") == 1;
    size_t count = long_operations(reply, first, sizeof first);
    double open = sl_look_amount(status, "transactions.currentOpen", 0);
    double waiting = sl_look_amount(status, "globalLock.currentQueue.writers", 0);
    sl_check_verdict verdict = locked                                    ? SL_CHECK_PROBLEM
                               : count > 0 || open >= 1 || waiting >= 10 ? SL_CHECK_WARNING
                                                                         : SL_CHECK_OK;
    sl_check_finding *finding =
        sl_find(findings, verdict,
                locked ? "fsyncLock blocks all writes, perhaps for a backup: run fsyncUnlock first"
                : verdict == SL_CHECK_OK
                    ? "no long operation runs, and no transaction is open"
                    : "they hold snapshots, which fill the cache, and compete for the disk",
                "%s: %s%s of a minute or longer%s%s, %s, %.0f writers waiting", server->shard,
                locked ? "WRITES ARE LOCKED, " : "", sl_plural(count, "operation"),
                count > 0 ? ", the first: " : "", first,
                sl_plural((uint64_t)open, "open transaction"), waiting);
    BSON_APPEND_UTF8(finding->values, "shard", server->shard);
    BSON_APPEND_BOOL(finding->values, "locked", locked);
    BSON_APPEND_INT64(finding->values, "longOperations", (int64_t)count);
    BSON_APPEND_DOUBLE(finding->values, "openTransactions", open);
}

/* ---- oplog: how far back it reaches, and how far it will during the load ---- */

#define FULL 0.9             /* of its size; before, the oplog still grows and removes nothing */
#define HOURS_WARNING 24.0   /* a member that is away for longer must copy all data again */
#define SECONDS_WARNING 3600 /* the same, during a load at the planned rate */

static double seconds_at(const bson_t *reply, const char *path) {
    bson_iter_t found;
    uint32_t seconds = 0, increment;
    if (!sl_look_find(reply, path, &found) || !BSON_ITER_HOLDS_TIMESTAMP(&found))
        return NAN;
    bson_iter_timestamp(&found, &seconds, &increment);
    return seconds > 0 ? (double)seconds : NAN;
}

/* Adds what the load writes into it. An entry is a little longer than its document. */
static void plan(const sl_examined *examined, sl_oplog *oplog) {
    const sl_load_config *load = examined->config->load;
    double shards =
        examined->topology && examined->topology->count > 0 ? (double)examined->topology->count : 1;
    oplog->added = oplog->seconds_in_load = NAN;
    if (!examined->preview)
        return;
    double documents = examined->preview->all.documents.value,
           bytes = examined->preview->all.bson_bytes.value;
    oplog->added = bytes / shards;
    if (load->rate_limit > 0 && documents > 0 && bytes > 0)
        oplog->seconds_in_load =
            oplog->size / ((double)load->rate_limit * bytes / documents / shards);
}

static bool has_other_members(const sl_examined *examined, const char *shard) {
    size_t members = 0;
    for (size_t i = 0; i < examined->count; i++)
        members += examined->servers[i].role != SL_ROLE_ARBITER &&
                   strcmp(examined->servers[i].shard, shard) == 0;
    return members > 1;
}

sl_check_verdict sl_judge_oplog(const sl_oplog *oplog, char *meaning, size_t room) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    bool full = oplog->used >= FULL * oplog->size;
    const char *resize = "; a larger one: replSetResizeOplog";
    if (!oplog->read_by_others) {
        snprintf(meaning, room, "no other member reads it");
        return SL_CHECK_OK;
    }
    if (oplog->seconds_in_load < SECONDS_WARNING) {
        snprintf(meaning, room,
                 "at the planned rate it holds the last %s: a member that is away for longer, or "
                 "lags by more, must copy all data again%s",
                 sl_human_seconds(oplog->seconds_in_load, a), resize);
        return SL_CHECK_WARNING;
    }
    if (!isnan(oplog->seconds_in_load)) {
        snprintf(meaning, room,
                 "at the planned rate it holds the last %s; the load writes %s into it",
                 sl_human_seconds(oplog->seconds_in_load, a), sl_human_bytes(oplog->added, b));
        return SL_CHECK_OK;
    }
    if (oplog->added > oplog->size) {
        snprintf(meaning, room,
                 "the load writes %s into it, so it holds the last %.3g %% of the load: a member "
                 "that is away for longer must copy all data again%s (--rate-limit: the planned "
                 "rate)",
                 sl_human_bytes(oplog->added, a), 100 * oplog->size / oplog->added, resize);
        return SL_CHECK_WARNING;
    }
    if (full && oplog->seconds < HOURS_WARNING * 3600) {
        snprintf(meaning, room,
                 "it is full, and a load shortens the time that it holds: a member that is away "
                 "for longer must copy all data again%s",
                 resize);
        return SL_CHECK_WARNING;
    }
    if (!isnan(oplog->added))
        snprintf(meaning, room, "the load writes %s into it: it holds all of the load",
                 sl_human_bytes(oplog->added, a));
    else
        snprintf(meaning, room,
                 "a load shortens this time; name the sources, and --rate-limit with the planned "
                 "rate, to see by how much");
    return SL_CHECK_OK;
}

static void append_number(bson_t *values, const char *key, double value) {
    if (!isnan(value))
        BSON_APPEND_DOUBLE(values, key, value);
}

static void check_oplog(const sl_examined_server *server, sl_check_findings *findings) {
    static const char why_it_matters[] =
        "a member that is away for longer than the oplog holds must copy all data again";
    const sl_server_answer *status = &server->answers[SL_ASK_STATUS];
    const sl_server_answer *stats = &server->answers[SL_ASK_OPLOG];
    sl_oplog oplog = {.read_by_others = has_other_members(findings->examined, server->shard)};
    char meaning[400], used[SL_HUMAN_ROOM], size[SL_HUMAN_ROOM];
    oplog.seconds = seconds_at(&status->reply, "oplog.latestOptime") -
                    seconds_at(&status->reply, "oplog.earliestOptime");
    oplog.used = sl_look_number(&stats->reply, "size");
    oplog.size = sl_look_number(&stats->reply, "maxSize");
    bool known = !isnan(oplog.seconds) && oplog.used >= 0 && oplog.size > 0;
    if (!known) {
        sl_find_unknown(findings,
                        !status->ok  ? status->why
                        : !stats->ok ? stats->why
                                     : "the server does not show its oplog",
                        why_it_matters);
        return;
    }
    plan(findings->examined, &oplog);
    sl_check_verdict verdict = sl_judge_oplog(&oplog, meaning, sizeof meaning);
    sl_check_finding *finding = sl_find(
        findings, verdict, meaning, "%s: %.1f hours, %s of %s used", server->shard,
        oplog.seconds / 3600, sl_human_bytes(oplog.used, used), sl_human_bytes(oplog.size, size));
    BSON_APPEND_UTF8(finding->values, "shard", server->shard);
    append_number(finding->values, "windowSeconds", oplog.seconds);
    append_number(finding->values, "usedBytes", oplog.used);
    append_number(finding->values, "sizeBytes", oplog.size);
    append_number(finding->values, "addedBytes", oplog.added);
    append_number(finding->values, "windowInLoadSeconds", oplog.seconds_in_load);
}

/* The documents of a find on a server; `answer->reply` then holds them as "cursor.firstBatch". */
static void find_all(const sl_examined_server *server, const char *collection,
                     sl_server_answer *answer) {
    sl_ask(server, "config",
           BCON_NEW("find", BCON_UTF8(collection), "filter", "{", "}", "batchSize",
                    BCON_INT32(1000000)),
           answer);
}

/* ---- balancer ---- */

/* "22:00 to 05:00", from the settings of the balancer; "" without a window. */
static void read_window(const sl_server_answer *settings, char *out, size_t room) {
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

static void check_balancer(const sl_examined_server *server, sl_check_findings *findings) {
    static const char meaning[] = "the load stops it while it runs, and restores it";
    sl_balancer_view view = {0};
    sl_error error = {0};
    sl_server_answer status, settings;
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
    sl_check_finding *finding = sl_find(
        findings, view.holders > 0 && view.dead < view.holders ? SL_CHECK_WARNING : SL_CHECK_OK,
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

static void check_shards(const sl_examined_server *server, sl_check_findings *findings) {
    sl_server_answer shards;
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
        sl_check_finding *finding =
            sl_find(findings, draining[0] ? SL_CHECK_WARNING : SL_CHECK_OK,
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

static void check_compatibility(const sl_examined *examined, sl_check_findings *findings) {
    static const char unknown[] = "an upgrade that was not completed is not seen";
    bool any = false;
    for (size_t i = 0; i < examined->count; i++) {
        const sl_examined_server *server = &examined->servers[i];
        const sl_server_answer *answer = &server->answers[SL_ASK_COMPATIBILITY];
        if (server->role != SL_ROLE_PRIMARY)
            continue;
        any = true;
        const char *version = sl_look_text(&answer->reply, "featureCompatibilityVersion.version");
        const char *target =
            sl_look_text(&answer->reply, "featureCompatibilityVersion.targetVersion");
        if (!version) {
            sl_find_unknown(findings, answer->ok ? "the server does not show it" : answer->why,
                            unknown);
        } else {
            bool complete =
                !target && (!server->version[0] || is_release(version, server->version));
            sl_check_finding *finding = sl_find(
                findings, complete ? SL_CHECK_OK : SL_CHECK_WARNING,
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
    }
    if (!any)
        sl_find_unknown(findings, "no primary answers", unknown);
}

/* ---- leftovers ---- */

#define SHOWN 3 /* names in the figure; the values have all */

typedef struct sl_leftovers {
    const sl_examined_server *front;
    sl_check_findings *findings;
    int64_t start;
    unsigned limit; /* seconds */
    bson_t names;   /* an array */
    size_t count;
    size_t registries; /* of renamed collections */
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

static void keep_reason(sl_leftovers *left, const sl_server_answer *answer) {
    if (!answer->ok && !left->why[0])
        snprintf(left->why, sizeof left->why, "%s", answer->why);
}

/* A server may list names without end. */
static bool may_ask(sl_leftovers *left) {
    bool may = sl_seconds_since(left->start) < left->limit;
    if (!may && !left->why[0])
        snprintf(left->why, sizeof left->why,
                 "looking up the listed names took more than %u s; the others were not looked up",
                 left->limit);
    return may;
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

/* Lists the collections that match; only by names, if that is what the filter has. */
static void list_collections(sl_leftovers *left, const char *database, const bson_t *filter,
                             sl_server_answer *answer) {
    bson_t *command = BCON_NEW(
        "listCollections", BCON_INT32(1), "nameOnly", BCON_BOOL(bson_has_field(filter, "name")),
        "filter", BCON_DOCUMENT(filter), "cursor", "{", "batchSize", BCON_INT32(1000000), "}");
    sl_ask(left->front, database, command, answer);
    keep_reason(left, answer);
    if (answer->ok && sl_look_int64(&answer->reply, "cursor.id", 0) != 0 && !left->why[0])
        sl_print_text(left->why, sizeof left->why,
                      "%s has more collections with such names than one reply holds", database);
}

static bool has_collection(sl_leftovers *left, const char *database, const char *name) {
    sl_server_answer found;
    bson_t filter = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&filter, "name", name);
    list_collections(left, database, &filter, &found);
    const bool has = sl_walk_count(&found.reply, "cursor.firstBatch") > 0;
    bson_destroy(&found.reply);
    bson_destroy(&filter);
    return has;
}

/* Reports a registry whose collection was renamed. A load empties that of a dropped collection. */
static void look_at_registry(sl_leftovers *left, const char *database, const char *name) {
    sl_server_answer counter, found;
    bson_t *command =
        BCON_NEW("find", BCON_UTF8(name), "filter", "{", "_id", BCON_UTF8("counter"), "last", "{",
                 "$type", BCON_UTF8("number"), "}", "}", "limit", BCON_INT32(1));
    sl_ask(left->front, database, command, &counter);
    keep_reason(left, &counter);
    const char *uuid = sl_look_text(&counter.reply, "cursor.firstBatch.0.collection");
    char *was = bson_strndup(name, strlen(name) - strlen(SL_REGISTRY_SUFFIX));
    if (uuid && strlen(uuid) == SL_UUID_ROOM - 1 && !has_collection(left, database, was)) {
        bson_t by_uuid = BSON_INITIALIZER;
        sl_append_uuid(&by_uuid, "info.uuid", uuid);
        list_collections(left, database, &by_uuid, &found);
        const char *now = sl_look_text(&found.reply, "cursor.firstBatch.0.name");
        char *from = bson_strdup_printf("%s.%s", database, name);
        char *to = bson_strdup_printf("%s.%s" SL_REGISTRY_SUFFIX, database, now ? now : "");
        if (now && !has_collection(left, database, to + strlen(database) + 1)) {
            left->registries++;
            sl_find(
                left->findings, SL_CHECK_WARNING,
                "do not drop it: loads into the collection know their sources by it. The command "
                "too, with",
                "%s is the registry of %s, which was renamed; mongosh: "
                "db.adminCommand({renameCollection: %s, to: %s})",
                from, now, sl_mongosh_string(from), sl_mongosh_string(to));
        }
        bson_free(to);
        bson_free(from);
        bson_destroy(&found.reply);
        bson_destroy(&by_uuid);
    }
    bson_free(was);
    bson_destroy(&counter.reply);
}

/* Matches the names of all leftovers and few others, so that one reply holds all matches. */
#define LIKELY_NAMES "\\" SL_REGISTRY_SUFFIX "$|\\.(drill|tune)\\.|^shardload"

static void search_database(sl_leftovers *left, const char *database) {
    sl_server_answer answer;
    bson_t filter = BSON_INITIALIZER;
    BSON_APPEND_REGEX(&filter, "name", LIKELY_NAMES, "");
    list_collections(left, database, &filter, &answer);
    bson_destroy(&filter);
    for (sl_walk walk = sl_walk_start(&answer.reply, "cursor.firstBatch"); sl_walk_next(&walk);) {
        const char *name = sl_look_text(&walk.item, "name");
        if (name && sl_is_registry_name(name)) {
            if (may_ask(left))
                look_at_registry(left, database, name);
        } else if (name && is_temporary(name)) {
            add(left, database, name);
        }
    }
    bson_destroy(&answer.reply);
}

static void search_all(sl_leftovers *left) {
    sl_server_answer answer;
    bson_t *command = BCON_NEW("listDatabases", BCON_INT32(1), "nameOnly", BCON_BOOL(true),
                               "authorizedDatabases", BCON_BOOL(false));
    sl_ask(left->front, "admin", command, &answer);
    keep_reason(left, &answer);
    for (sl_walk walk = sl_walk_start(&answer.reply, "databases"); sl_walk_next(&walk);) {
        const char *name = sl_look_text(&walk.item, "name");
        if (name && strcmp(name, "local") != 0 && strcmp(name, "config") != 0 &&
            strcmp(name, "admin") != 0 && may_ask(left))
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

static void check_leftovers(const sl_examined *examined, sl_check_findings *findings) {
    const char *database = examined->config->load->database;
    sl_leftovers left = {.front = sl_examined_front(examined),
                         .findings = findings,
                         .start = sl_clock_ns(),
                         .limit = examined->config->limit_seconds * SL_ASK_TIMES,
                         .names = BSON_INITIALIZER};
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
        sl_check_finding *finding = sl_find(
            findings, SL_CHECK_WARNING,
            left.count > 0
                ? "they belong to a restore or trial that runs, or to one that ended early: resume "
                  "it, or drop them"
                : "a load that was killed has stopped the balancer: the next load restores it",
            "%s of earlier commands%s%s%s; %s that hold%s the balancer",
            sl_plural(left.count, "collection"), left.count > 0 ? ": " : "", left.shown,
            left.count > SHOWN ? ", ..." : "", sl_plural(dead, "killed load"),
            dead == 1 ? "s" : "");
        BSON_APPEND_ARRAY(finding->values, "collections", &left.names);
        BSON_APPEND_INT32(finding->values, "deadHolders", (int32_t)dead);
    } else if (!left.why[0] && left.registries == 0) {
        sl_check_finding *finding =
            sl_find(findings, SL_CHECK_OK, "no command that ended early has left anything behind",
                    "none in %s", database ? database : "all databases");
        BSON_APPEND_ARRAY(finding->values, "collections", &left.names);
        BSON_APPEND_INT32(finding->values, "deadHolders", 0);
    }
    if (left.why[0])
        sl_find_unknown(findings, left.why,
                        "leftovers of commands that ended early may exist there");
    bson_destroy(&left.names);
}

/* ---- latency, bandwidth, compression ---- */

/* The bandwidth is measured with a ping that has a large comment, which the server reads and
 * discards. It is the bandwidth in the direction that a load uses. The bytes are random, so that
 * they cannot be compressed. */

#define PINGS 40
#define PING_SECONDS 2.0 /* no further ping is sent after this time */
#define SMALL_BYTES ((size_t)256 << 10)
#define LARGE_BYTES ((size_t)8 << 20)
#define LARGE_SECONDS 2.0 /* the large ping is sent if it will not take longer */
#define LATENCY_WARNING_MS 20.0
#define BANDWIDTH_WARNING 20e6 /* bytes per second */
#define INSERTS 200
#define INSERT_BYTES 1000

sl_check_verdict sl_judge_latency(double median_ms) {
    return median_ms >= LATENCY_WARNING_MS ? SL_CHECK_WARNING : SL_CHECK_OK;
}

sl_check_verdict sl_judge_bandwidth(double bytes_per_second) {
    return bytes_per_second < BANDWIDTH_WARNING ? SL_CHECK_WARNING : SL_CHECK_OK;
}

/* Seconds that a ping takes; NAN, with `why` set, when it fails. */
static double ping(const sl_examined_server *server, const uint8_t *comment, size_t length,
                   char *why, size_t room) {
    bson_t command = BSON_INITIALIZER;
    sl_server_answer answer;
    BSON_APPEND_INT32(&command, "ping", 1);
    if (length > 0)
        bson_append_binary(&command, "comment", -1, BSON_SUBTYPE_BINARY, comment, (uint32_t)length);
    int64_t start = sl_clock_ns();
    sl_ask(server, "admin", &command, &answer);
    double seconds = sl_seconds_since(start);
    if (!answer.ok)
        snprintf(why, room, "%s", answer.why);
    bson_destroy(&answer.reply);
    return answer.ok ? seconds : NAN;
}

/* The times of pings in milliseconds, sorted. Returns their number. */
static size_t measure_pings(const sl_examined_server *server, double times[PINGS], char *why,
                            size_t room) {
    size_t count = 0;
    for (int64_t start = sl_clock_ns(); count < PINGS && sl_seconds_since(start) < PING_SECONDS;) {
        double seconds = ping(server, NULL, 0, why, room);
        if (isnan(seconds))
            break;
        times[count++] = 1000 * seconds;
    }
    qsort(times, count, sizeof *times, sl_by_value);
    return count;
}

static void check_latency(const sl_examined_server *server, sl_check_findings *findings) {
    double times[PINGS];
    char why[400] = "";
    size_t count = measure_pings(server, times, why, sizeof why);
    if (count < 5) {
        sl_find_unknown(findings, why[0] ? why : "a ping takes too long", "");
        return;
    }
    double median = times[count / 2], high = times[(count * 95 + 99) / 100 - 1];
    sl_check_verdict verdict = sl_judge_latency(median);
    sl_check_finding *finding =
        sl_find(findings, verdict,
                verdict == SL_CHECK_WARNING
                    ? "each batch waits at least this long: use more threads (--threads 32), or "
                      "load from a machine nearby"
                    : "a batch waits for its inserts, not for the network",
                "median %.2f ms, 95th percentile %.2f ms (%zu pings of %s)", median, high, count,
                server->name);
    BSON_APPEND_DOUBLE(finding->values, "medianMs", median);
    BSON_APPEND_DOUBLE(finding->values, "p95Ms", high);
}

static void check_bandwidth(const sl_examined_server *server, sl_check_findings *findings) {
    char why[400] = "", human[SL_HUMAN_ROOM], sent[SL_HUMAN_ROOM];
    uint8_t *bytes = calloc(1, LARGE_BYTES);
    if (!bytes)
        return;
    uint64_t state = (uint64_t)sl_clock_ns() | 1;
    for (size_t i = 0; i + 8 <= LARGE_BYTES; i += 8) { /* random, so not compressible */
        sl_random_next(&state);
        memcpy(bytes + i, &state, 8);
    }
    double none = ping(server, NULL, 0, why, sizeof why);
    double seconds = ping(server, bytes, SMALL_BYTES, why, sizeof why);
    size_t length = SMALL_BYTES;
    if (seconds * ((double)LARGE_BYTES / (double)SMALL_BYTES) < LARGE_SECONDS) {
        seconds = ping(server, bytes, LARGE_BYTES, why, sizeof why);
        length = LARGE_BYTES;
    }
    free(bytes);
    if (isnan(seconds) || isnan(none)) {
        sl_find_unknown(findings, why, "it limits a load over a slow network");
        return;
    }
    double rate = (double)length / fmax(seconds - none, seconds / 10);
    sl_check_verdict verdict = sl_judge_bandwidth(rate);
    sl_check_finding *finding =
        sl_find(findings, verdict,
                verdict == SL_CHECK_WARNING
                    ? "the network limits the load: try --wire-compression zstd, or load from a "
                      "machine nearby"
                    : "of one connection; a load uses several",
                "%s/s to %s (%s sent)", sl_human_bytes(rate, human), server->name,
                sl_human_bytes((double)length, sent));
    BSON_APPEND_DOUBLE(finding->values, "bytesPerSecond", rate);
}

static void check_compression(const sl_examined_server *server, sl_check_findings *findings) {
    bson_t list;
    bson_iter_t iter;
    char names[100] = "";
    size_t used = 0;
    const bson_t *hello = &server->answers[SL_ASK_HELLO].reply;
    if (sl_look_inside(hello, "compression", &list) && bson_iter_init(&iter, &list)) {
        while (bson_iter_next(&iter)) {
            if (BSON_ITER_HOLDS_UTF8(&iter))
                used += sl_print_text(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                      bson_iter_utf8(&iter, NULL));
        }
    }
    sl_check_finding *finding = sl_find(
        findings, SL_CHECK_OK,
        names[0] ? "--wire-compression helps on a slow network, and costs processor time on "
                   "a fast one"
                 : "--wire-compression has no effect",
        "%s%s", names[0] ? "the server allows " : "the server allows none", names);
    BSON_APPEND_UTF8(finding->values, "allowed", names);
}

/* ---- inserts ---- */

#define CODE_NAMESPACE_NOT_FOUND 26

/* An insert of INSERTS documents with write concern majority. */
static void make_insert(bson_t *command, const char *collection, const char *field,
                        int32_t limit_ms) {
    bson_t documents;
    BSON_APPEND_UTF8(command, "insert", collection);
    BSON_APPEND_ARRAY_BEGIN(command, "documents", &documents);
    for (uint32_t i = 0; i < INSERTS; i++) {
        char room[SL_ARRAY_KEY_ROOM];
        BCON_APPEND(&documents, sl_array_key(i, room), "{", "_id", BCON_INT32((int32_t)i), "text",
                    BCON_UTF8(field), "}");
    }
    bson_append_array_end(command, &documents);
    BCON_APPEND(command, "writeConcern", "{", "w", "majority", "wtimeout", BCON_INT32(limit_ms),
                "}", "maxTimeMS", BCON_INT32(limit_ms));
}

static void check_inserts(const sl_examined_server *server, sl_check_findings *findings) {
    const char *database = findings->examined->config->load->database;
    char collection[64], field[INSERT_BYTES + 1], oid[25];
    bson_t insert = BSON_INITIALIZER;
    bson_oid_t id;
    sl_server_answer inserted, dropped;
    if (!findings->examined->config->write)
        return;
    bson_oid_init(&id, NULL);
    bson_oid_to_string(&id, oid);
    snprintf(collection, sizeof collection, "shardload.doctor.%s", oid);
    memset(field, 'x', INSERT_BYTES);
    field[INSERT_BYTES] = '\0';
    /* The server's limit is shorter than the client's, so that the insert does not happen after the
     * client has given up. */
    int32_t limit_ms = (int32_t)findings->examined->config->limit_seconds * 500;
    make_insert(&insert, collection, field, limit_ms);
    int64_t start = sl_clock_ns();
    sl_ask(server, database, &insert, &inserted);
    double seconds = sl_seconds_since(start);
    bson_t *drop = BCON_NEW("drop", BCON_UTF8(collection), "maxTimeMS", BCON_INT32(limit_ms));
    sl_ask(server, database, drop, &dropped);
    const char *refused = NULL;
    bool ok = inserted.ok && sl_hidden_failure(&inserted.reply, &refused) < 0 &&
              sl_look_number(&inserted.reply, "n") == INSERTS;
    const bool may_exist = inserted.ok || (server->member && !sl_code_is_refusal(inserted.code)),
               left = may_exist && !dropped.ok && dropped.code != CODE_NAMESPACE_NOT_FOUND;
    char within[40] = "";
    if (ok)
        snprintf(within, sizeof within, "stored within %.0f ms", 1000 * seconds);
    sl_check_finding *finding =
        sl_find(findings, ok && dropped.ok ? SL_CHECK_OK : SL_CHECK_PROBLEM,
                ok ? "a majority of the members has acknowledged it"
                   : "a load would wait in the same way, and then end",
                "%d documents of 1 kB into %s.%s: %s%s%s", INSERTS, database, collection,
                ok             ? within
                : !inserted.ok ? inserted.why
                : refused      ? refused
                               : "not all are stored",
                left ? "; IT MAY EXIST, AND COULD NOT BE DROPPED: " : "", left ? dropped.why : "");
    BSON_APPEND_DOUBLE(finding->values, "seconds", seconds);
    bson_destroy(&inserted.reply);
    bson_destroy(&dropped.reply);
}

/* ---- privileges: those of the roles in docs/security.md that the user lacks ---- */

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
                       "--drop, --index and --compressor fail, and sizes are not shown", false,
                       false},
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
    {FOR_LOADING, "remove", TARGET, REGISTRY},
    {FOR_LOADING, "update", TARGET, REGISTRY},
    {FOR_PREPARING, "collStats", TARGET, TARGET},
    {FOR_PREPARING, "createIndex", TARGET, TARGET},
    {FOR_PREPARING, "dropCollection", TARGET, TARGET},
    {FOR_PREPARING, "listIndexes", TARGET, TARGET},
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

static void find_lacking(const bson_t *status, sl_purpose purpose, sl_check_findings *findings) {
    const sl_load_config *load = findings->examined->config->load;
    char registry[300], list[300] = "";
    size_t used = 0, lacking = 0;
    bson_t array = BSON_INITIALIZER;
    snprintf(registry, sizeof registry, "%s" SL_REGISTRY_SUFFIX, load->collection);
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
    sl_check_finding *finding =
        sl_find(findings,
                lacking == 0                ? SL_CHECK_OK
                : purposes[purpose].problem ? SL_CHECK_PROBLEM
                                            : SL_CHECK_WARNING,
                lacking == 0 ? "all privileges for this part" : purposes[purpose].lacking,
                "%s: %s%s", purposes[purpose].name, lacking ? "lacks " : "complete", list);
    BSON_APPEND_UTF8(finding->values, "purpose", purposes[purpose].name);
    BSON_APPEND_ARRAY(finding->values, "lacking", &array);
    bson_destroy(&array);
}

static void check_privileges(const sl_examined_server *server, sl_check_findings *findings) {
    const sl_load_config *load = findings->examined->config->load;
    sl_server_answer answer;
    sl_ask(server, "admin",
           BCON_NEW("connectionStatus", BCON_INT32(1), "showPrivileges", BCON_BOOL(true)), &answer);
    if (!answer.ok) {
        sl_find_unknown(findings, answer.why, "");
    } else if (sl_look_count(&answer.reply, "authInfo.authenticatedUsers") == 0) {
        sl_check_finding *finding = sl_find(
            findings, SL_CHECK_OK,
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

/* ---- the table, in the order of the page ---- */

const sl_check sl_checks[] = {
    {"deployment", .all = check_deployment},
    {"versions", .all = check_versions},
    {"compatibility", .all = check_compatibility},
    {"members", .all = check_members},
    {"replication lag", .each = check_lag, SL_CHECK_REPLICATED, SL_ASK_REPLICAS,
     "a member that lags slows majority writes"},
    {"oplog", .each = check_oplog, SL_CHECK_REPLICATED},
    {"disk room", .all = check_disk},
    {"cache", .each = check_cache, SL_CHECK_PRIMARIES, SL_ASK_STATUS,
     "a load is fast while its writes fit into it"},
    {"flow control", .each = check_flow, SL_CHECK_REPLICATED, SL_ASK_STATUS,
     "it limits writes while a secondary lags"},
    {"operations", .each = check_operations, SL_CHECK_PRIMARIES, SL_ASK_OPERATIONS,
     "long operations and open transactions hold snapshots, and fill the cache"},
    {"connections", .all = check_connections},
    {"balancer", .each = check_balancer, SL_CHECK_ROUTER},
    {"shards", .each = check_shards, SL_CHECK_ROUTER},
    {"leftovers", .all = check_leftovers},
    {"privileges", .each = check_privileges, SL_CHECK_FRONT},
    {"latency", .each = check_latency, SL_CHECK_FRONT},
    {"bandwidth", .each = check_bandwidth, SL_CHECK_FRONT},
    {"compression", .each = check_compression, SL_CHECK_FRONT},
    {"clock", .all = check_clock},
    {"inserts", .each = check_inserts, SL_CHECK_FRONT},
};

const size_t sl_check_count = sizeof sl_checks / sizeof sl_checks[0];
