/* SPDX-License-Identifier: Apache-2.0 */
/* How far back do the oplogs of the primaries reach, and how far will they during the load? */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/lookup.h"
#include "util/text.h"

#include "examine.h"

#define FULL 0.9             /* of its size; before, the oplog still grows and removes nothing */
#define HOURS_WARNING 24.0   /* a member that is away for longer must copy all data again */
#define SECONDS_WARNING 3600 /* the same, during a load at the planned rate */

/* The oplog of one primary. NAN: not known. */
typedef struct sl_oplog {
    double seconds;         /* from its first to its last entry */
    double used, size;      /* bytes */
    double added;           /* by the load: bytes of BSON, of this shard */
    double seconds_in_load; /* that it holds while the load runs at the planned rate */
    bool read_by_others;    /* the shard has other members with data */
} sl_oplog;

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

/* What the oplog means for the load, in words. */
static sl_verdict judge(const sl_oplog *oplog, char *meaning, size_t room) {
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

static void find_oplog(const sl_examined *examined, const sl_examined_server *server,
                       sl_findings *findings) {
    static const char why_it_matters[] =
        "a member that is away for longer than the oplog holds must copy all data again";
    const sl_answer *status = &server->answers[SL_ASK_STATUS];
    sl_oplog oplog = {.read_by_others = has_other_members(examined, server->shard)};
    char meaning[400], used[SL_HUMAN_ROOM], size[SL_HUMAN_ROOM];
    sl_answer stats;
    bson_t *command = BCON_NEW("collStats", BCON_UTF8("oplog.rs"));
    sl_ask(server, "local", command, &stats);
    bson_destroy(command);
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
    plan(examined, &oplog);
    sl_verdict verdict = judge(&oplog, meaning, sizeof meaning);
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

void sl_check_oplog(sl_examined *examined, sl_findings *findings) {
    for (size_t i = 0; i < examined->count; i++) {
        const sl_examined_server *server = &examined->servers[i];
        if (server->role == SL_ROLE_PRIMARY && examined->server->deployment != SL_STANDALONE)
            find_oplog(examined, server, findings);
    }
}
