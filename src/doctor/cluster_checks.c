/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a sharded cluster: balancer, shards. */
#include <stdio.h>
#include <string.h>

#include "report/lookup.h"
#include "util/text.h"

#include "examine.h"

/* The documents of a find on a server; `answer->reply` then holds them as "cursor.firstBatch". */
static void find_all(const sl_examined_server *server, const char *collection, sl_answer *answer) {
    bson_t *command = BCON_NEW("find", BCON_UTF8(collection), "filter", "{", "}");
    sl_ask(server, "config", command, answer);
    bson_destroy(command);
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

void sl_check_balancer(sl_examined *examined, sl_findings *findings) {
    static const char meaning[] = "the load stops it while it runs, and restores it";
    const sl_examined_server *front = sl_examined_front(examined);
    sl_balancer_view view = {0};
    sl_error error = {0};
    sl_answer status, settings;
    char window[80];
    if (examined->server->deployment != SL_SHARDED || !front)
        return;
    if (!sl_balancer_status(examined->connection, &view, &error)) {
        sl_find_unknown(findings, error.message, meaning);
        return;
    }
    bson_t *command = BCON_NEW("balancerStatus", BCON_INT32(1));
    sl_ask(front, "admin", command, &status);
    bson_destroy(command);
    find_all(front, "settings", &settings);
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

void sl_check_shards(sl_examined *examined, sl_findings *findings) {
    const sl_examined_server *front = sl_examined_front(examined);
    sl_answer shards;
    char draining[200] = "";
    size_t used = 0, count = 0;
    if (examined->server->deployment != SL_SHARDED || !front)
        return;
    find_all(front, "shards", &shards);
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
