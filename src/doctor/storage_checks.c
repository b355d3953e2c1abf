/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what limits the writes of a server: disk, cache, flow control, other operations,
 * oplog. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/lookup.h"
#include "util/text.h"

#include "examine.h"

#define DISK_WARNING 0.85 /* of the disk in use */
#define DISK_PROBLEM 0.95
/* Stored bytes per byte of BSON, as a range: compressed text, and incompressible data with the
 * index of _id. */
#define STORED_LEAST 0.3
#define STORED_MOST 1.2
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
                      sl_findings *findings) {
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
        most = share * STORED_MOST * examined->preview->all.bson_bytes.high;
        snprintf(plan, sizeof plan, "; the load adds %s to %s", sl_human_bytes(least, c),
                 sl_human_bytes(most, d));
    }
    bool full = used + least > DISK_PROBLEM * all, may_fill = used + most > DISK_WARNING * all;
    sl_finding *finding = sl_find(
        findings,
        full       ? SL_VERDICT_PROBLEM
        : may_fill ? SL_VERDICT_WARNING
                   : SL_VERDICT_OK,
        full       ? "the disk would fill up: a full disk stops the server. Free or add disk space "
                     "before the load"
        : may_fill ? "the free space may not be enough, also for index builds and the "
                     "oplog"
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

void sl_check_disk(const sl_examined *examined, sl_findings *findings) {
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

void sl_check_cache(const sl_examined_server *server, sl_findings *findings) {
    const bson_t *status = &server->answers[SL_ASK_STATUS].reply;
    char a[SL_HUMAN_ROOM];
    double size = sl_look_number(status, "wiredTiger.cache.maximum bytes configured");
    double dirty = sl_look_number(status, "wiredTiger.cache.tracked dirty bytes in the cache");
    double used = sl_look_number(status, "wiredTiger.cache.bytes currently in the cache");
    if (isnan(size) || isnan(dirty) || isnan(used) || size <= 0) {
        sl_find(findings, SL_VERDICT_WARNING,
                "shardload is tested with the storage engine wiredTiger only",
                "%s: the storage engine is not wiredTiger", server->shard);
        return;
    }
    double share = dirty / size;
    sl_finding *finding = sl_find(
        findings,
        share >= DIRTY_PROBLEM   ? SL_VERDICT_PROBLEM
        : share >= DIRTY_WARNING ? SL_VERDICT_WARNING
                                 : SL_VERDICT_OK,
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

void sl_check_flow(const sl_examined_server *server, sl_findings *findings) {
    const bson_t *status = &server->answers[SL_ASK_STATUS].reply;
    int enabled = sl_look_truth(status, "flowControl.enabled");
    bool lagged = sl_look_truth(status, "flowControl.isLagged") == 1;
    double seconds = sl_look_amount(status, "flowControl.timeAcquiringMicros", 0) / 1e6;
    sl_finding *finding = sl_find(
        findings, lagged ? SL_VERDICT_WARNING : SL_VERDICT_OK,
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

void sl_check_operations(const sl_examined_server *server, sl_findings *findings) {
    const bson_t *reply = &server->answers[SL_ASK_OPERATIONS].reply;
    const bson_t *status = &server->answers[SL_ASK_STATUS].reply;
    char first[200] = "";
    bool locked = sl_look_truth(reply, "fsyncLock") == 1;
    size_t count = long_operations(reply, first, sizeof first);
    double open = sl_look_amount(status, "transactions.currentOpen", 0);
    double waiting = sl_look_amount(status, "globalLock.currentQueue.writers", 0);
    sl_verdict verdict = locked                                    ? SL_VERDICT_PROBLEM
                         : count > 0 || open >= 1 || waiting >= 10 ? SL_VERDICT_WARNING
                                                                   : SL_VERDICT_OK;
    sl_finding *finding =
        sl_find(findings, verdict,
                locked ? "fsyncLock blocks all writes, perhaps for a backup: run fsyncUnlock first"
                : verdict == SL_VERDICT_OK
                    ? "no long operation runs, and no transaction is open"
                    : "they hold snapshots, which fill the cache, and compete for the disk",
                "%s: %s%zu operation%s of a minute or longer%s%s, %.0f open transaction%s, %.0f "
                "writers waiting",
                server->shard, locked ? "WRITES ARE LOCKED, " : "", count, count == 1 ? "" : "s",
                count > 0 ? ", the first: " : "", first, open, open == 1 ? "" : "s", waiting);
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

sl_verdict sl_judge_oplog(const sl_oplog *oplog, char *meaning, size_t room) {
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    bool full = oplog->used >= FULL * oplog->size;
    const char *resize = "; a larger one: replSetResizeOplog";
    if (!oplog->read_by_others) {
        snprintf(meaning, room, "no other member reads it");
        return SL_VERDICT_OK;
    }
    if (oplog->seconds_in_load < SECONDS_WARNING) {
        snprintf(meaning, room,
                 "at the planned rate it holds the last %s: a member that is away for longer, or "
                 "lags by more, must copy all data again%s",
                 sl_human_seconds(oplog->seconds_in_load, a), resize);
        return SL_VERDICT_WARNING;
    }
    if (!isnan(oplog->seconds_in_load)) {
        snprintf(meaning, room,
                 "at the planned rate it holds the last %s; the load writes %s into it",
                 sl_human_seconds(oplog->seconds_in_load, a), sl_human_bytes(oplog->added, b));
        return SL_VERDICT_OK;
    }
    if (oplog->added > oplog->size) {
        snprintf(meaning, room,
                 "the load writes %s into it, so it holds the last %.3g %% of the load: a member "
                 "that is away for longer must copy all data again%s (--rate-limit: the planned "
                 "rate)",
                 sl_human_bytes(oplog->added, a), 100 * oplog->size / oplog->added, resize);
        return SL_VERDICT_WARNING;
    }
    if (full && oplog->seconds < HOURS_WARNING * 3600) {
        snprintf(meaning, room,
                 "it is full, and a load shortens the time that it holds: a member that is away "
                 "for longer must copy all data again%s",
                 resize);
        return SL_VERDICT_WARNING;
    }
    if (!isnan(oplog->added))
        snprintf(meaning, room, "the load writes %s into it: it holds all of the load",
                 sl_human_bytes(oplog->added, a));
    else
        snprintf(meaning, room,
                 "a load shortens this time; name the sources, and --rate-limit with the planned "
                 "rate, to see by how much");
    return SL_VERDICT_OK;
}

static void append_number(bson_t *values, const char *key, double value) {
    if (!isnan(value))
        BSON_APPEND_DOUBLE(values, key, value);
}

void sl_check_oplog(const sl_examined_server *server, sl_findings *findings) {
    static const char why_it_matters[] =
        "a member that is away for longer than the oplog holds must copy all data again";
    const sl_answer *status = &server->answers[SL_ASK_STATUS];
    sl_oplog oplog = {.read_by_others = has_other_members(findings->examined, server->shard)};
    char meaning[400], used[SL_HUMAN_ROOM], size[SL_HUMAN_ROOM];
    sl_answer stats;
    sl_ask(server, "local", BCON_NEW("collStats", BCON_UTF8("oplog.rs")), &stats);
    oplog.seconds = seconds_at(&status->reply, "oplog.latestOptime") -
                    seconds_at(&status->reply, "oplog.earliestOptime");
    oplog.used = sl_look_number(&stats.reply, "size");
    oplog.size = sl_look_number(&stats.reply, "maxSize");
    bool known = !isnan(oplog.seconds) && oplog.used >= 0 && oplog.size > 0;
    bson_destroy(&stats.reply);
    if (!known) {
        sl_find_unknown(findings,
                        !status->ok ? status->why
                        : !stats.ok ? stats.why
                                    : "the server does not show its oplog",
                        why_it_matters);
        return;
    }
    plan(findings->examined, &oplog);
    sl_verdict verdict = sl_judge_oplog(&oplog, meaning, sizeof meaning);
    sl_finding *finding = sl_find(
        findings, verdict, meaning, "%s: %.1f hours, %s of %s used", server->shard,
        oplog.seconds / 3600, sl_human_bytes(oplog.used, used), sl_human_bytes(oplog.size, size));
    BSON_APPEND_UTF8(finding->values, "shard", server->shard);
    append_number(finding->values, "windowSeconds", oplog.seconds);
    append_number(finding->values, "usedBytes", oplog.used);
    append_number(finding->values, "sizeBytes", oplog.size);
    append_number(finding->values, "addedBytes", oplog.added);
    append_number(finding->values, "windowInLoadSeconds", oplog.seconds_in_load);
}
