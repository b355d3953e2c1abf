/* SPDX-License-Identifier: Apache-2.0 */
/* `shardload doctor` from start to end: runs the rows of the table of checks. A check that cannot
 * read its figures reports that they are unknown, and why; the following checks still run. */
#include "doctor.h"

#include <stdarg.h>
#include <stdlib.h>

#include "util/grow.h"
#include "util/log.h"

#include "examine.h"

/* The servers for each of which a check runs. */
typedef enum check_servers {
    FRONT,      /* sl_examined_front */
    ROUTER,     /* the same, of a sharded cluster */
    PRIMARIES,  /* of the shards */
    REPLICATED, /* likewise, if they have a replica set */
} check_servers;

typedef struct check {
    const char *name;
    sl_check_all *all;   /* runs once; or */
    sl_check_each *each; /* runs for these: */
    check_servers servers;
    sl_question question; /* with `without`: that must have been answered; */
    const char *without;  /* the meaning for the load if it has not been */
} check;

static const check checks[] = {
    {"versions", .all = sl_check_versions},
    {"compatibility", .all = sl_check_compatibility},
    {"members", .all = sl_check_members},
    {"replication lag", .each = sl_check_lag, REPLICATED, SL_ASK_REPLICAS,
     "a member that lags slows majority writes"},
    {"oplog", .each = sl_check_oplog, REPLICATED},
    {"disk room", .all = sl_check_disk},
    {"cache", .each = sl_check_cache, PRIMARIES, SL_ASK_STATUS,
     "a load is fast while its writes fit into it"},
    {"flow control", .each = sl_check_flow, REPLICATED, SL_ASK_STATUS,
     "it limits writes while a secondary lags"},
    {"operations", .each = sl_check_operations, PRIMARIES, SL_ASK_OPERATIONS,
     "long operations and open transactions hold snapshots, and fill the cache"},
    {"connections", .all = sl_check_connections},
    {"balancer", .each = sl_check_balancer, ROUTER},
    {"shards", .each = sl_check_shards, ROUTER},
    {"leftovers", .all = sl_check_leftovers},
    {"privileges", .each = sl_check_privileges, FRONT},
    {"latency", .each = sl_check_latency, FRONT},
    {"bandwidth", .each = sl_check_bandwidth, FRONT},
    {"compression", .each = sl_check_compression, FRONT},
    {"clock", .all = sl_check_clock},
    {"inserts", .each = sl_check_inserts, FRONT},
};

/* Does the check run for this server? */
static bool concerns(const check *row, const sl_examined *examined,
                     const sl_examined_server *server) {
    bool front = server == sl_examined_front(examined), primary = server->role == SL_ROLE_PRIMARY;
    const bool concerned[] = {
        [FRONT] = front,
        [ROUTER] = front && examined->server->deployment == SL_SHARDED,
        [PRIMARIES] = primary,
        [REPLICATED] = primary && examined->server->deployment != SL_STANDALONE,
    };
    return concerned[row->servers];
}

static void run_check(const check *row, sl_findings *findings) {
    const sl_examined *examined = findings->examined;
    findings->check = row->name;
    if (row->all)
        row->all(examined, findings);
    for (size_t i = 0; row->each && i < examined->count; i++) {
        const sl_examined_server *server = &examined->servers[i];
        const sl_answer *answer = &server->answers[row->question];
        if (!concerns(row, examined, server))
            continue;
        if (row->without && !answer->ok)
            sl_find_unknown(findings, answer->why, row->without);
        else
            row->each(server, findings);
    }
}

/* ---- findings ---- */

sl_finding *sl_find(sl_findings *findings, sl_verdict verdict, const char *meaning,
                    const char *figure, ...) {
    sl_finding *items =
        sl_grow(findings->items, findings->count, &findings->room, sizeof *findings->items);
    sl_finding *finding = &findings->spare;
    if (items) {
        findings->items = items;
        finding = &items[findings->count++];
        *finding = (sl_finding){.check = findings->check, .verdict = verdict};
        finding->values = bson_new();
    }
    findings->failed = findings->failed || !items;
    va_list arguments;
    va_start(arguments, figure);
    sl_print_text_v(finding->figure, sizeof finding->figure, figure, arguments);
    va_end(arguments);
    sl_print_text(finding->meaning, sizeof finding->meaning, "%s", meaning);
    return finding;
}

void sl_find_unknown(sl_findings *findings, const char *why, const char *meaning) {
    sl_find(findings, SL_VERDICT_UNKNOWN, meaning, SL_LINES, why);
}

static void findings_clear(sl_findings *findings) {
    for (size_t i = 0; i < findings->count; i++)
        bson_destroy(findings->items[i].values);
    bson_destroy(findings->spare.values);
    free(findings->items);
}

/* ---- the page ---- */

sl_exit sl_doctor_run(const sl_doctor_config *config) {
    sl_error error = {0};
    sl_examined examined;
    sl_findings findings = {.examined = &examined};
    sl_exit code = SL_EXIT_OK;
    findings.spare.values = bson_new();
    sl_log_level level = sl_log_set_level(config->json ? SL_LOG_WARNING : SL_LOG_INFO);
    bool ok = sl_examine(config, &examined, &error);
    for (size_t i = 0; ok && i < sizeof checks / sizeof checks[0]; i++)
        run_check(&checks[i], &findings);
    for (size_t i = 0; i < findings.count; i++) {
        if (findings.items[i].verdict == SL_VERDICT_PROBLEM)
            code = SL_EXIT_VERIFICATION;
    }
    ok = ok && (!findings.failed || sl_error_memory(&error, "examining the target")) &&
         sl_doctor_print(&examined, &findings, code, &error);
    if (!ok) {
        sl_error_missing(&error, "the examination");
        sl_log_error(SL_LINES, error.message);
        code = error.code;
    }
    findings_clear(&findings);
    sl_examined_clear(&examined);
    sl_log_set_level(level);
    return code;
}
