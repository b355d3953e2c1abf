/* SPDX-License-Identifier: Apache-2.0 */
#include "lookup.h"

#include <stdio.h>
#include <string.h>

#include "util/text.h"

double sl_look_phase_seconds(const bson_t *record, const char *path, const char *name) {
    double seconds = NAN;
    for (sl_walk walk = sl_walk_start(record, path); sl_walk_next(&walk);) {
        const char *phase = sl_look_text(&walk.item, "name");
        double own = sl_look_number(&walk.item, "seconds");
        if (own >= 0 && (!name || (phase && strcmp(phase, name) == 0)))
            seconds = (isnan(seconds) ? 0 : seconds) + own;
    }
    return seconds;
}

bool sl_option_find(const bson_t *record, const char *name, bson_iter_t *at) {
    bson_t options;
    return sl_look_inside(record, "options", &options) && bson_iter_init_find(at, &options, name);
}

bool sl_option_differs(const bson_t *a, const bson_t *b, const char *name) {
    const bson_t *const records[2] = {a, b};
    bson_t lists[2];
    const char *texts[2] = {"", ""};
    unsigned count = 0;
    for (int i = 0; i < 2; i++) {
        bson_iter_t at;
        const bool found = sl_option_find(records[i], name, &at);
        if (found && BSON_ITER_HOLDS_ARRAY(&at))
            count += sl_container_at(&at, &lists[count]);
        else if (found && BSON_ITER_HOLDS_UTF8(&at) && strcmp(bson_iter_utf8(&at, NULL), "false"))
            texts[i] = bson_iter_utf8(&at, NULL);
    }
    return count > 0 ? count == 1 || !bson_equal(&lists[0], &lists[1]) : strcmp(texts[0], texts[1]);
}

bool sl_look_drill_ended(const bson_t *record) {
    int ended = sl_look_truth(record, "ended");
    double code = sl_look_number(record, "exitCode");
    return ended >= 0 ? ended == 1 : code == 0 || code == 1 || code == 5;
}

bool sl_option_matters(const char *name) {
    return !sl_list_has("work-dir|report|html|progress|compare|metrics-file", '|',
                        sl_text_of(name));
}

/* ---- queries ---- */

double sl_look_documents(const bson_t *record, const char *path) {
    bson_t totals;
    if (!sl_look_inside(record, path, &totals))
        return NAN;
    return sl_look_number(&totals, "inserted") + sl_look_amount(&totals, "alreadyStored", 0) +
           sl_look_amount(&totals, "changed", 0);
}

#define IGNORED_SHARE 0.001 /* a tenth of the operations that are slower than the p99 */

bool sl_look_unsound(const bson_t *entry, char why[SL_UNSOUND_ROOM]) {
    const char *answer = sl_look_string(entry, "answer");
    double failed = sl_look_amount(entry, "failed", 0);
    double skipped = sl_look_amount(entry, "skipped", 0);
    double attempted = sl_look_amount(entry, "attempted",
                                      sl_look_amount(entry, "succeeded", 0) + failed + skipped);
    why[0] = '\0';
    if (strcmp(answer, "WRONG") == 0)
        snprintf(why, SL_UNSOUND_ROOM, "the answer is wrong");
    else if (strcmp(answer, "FAILED") == 0)
        snprintf(why, SL_UNSOUND_ROOM, "the query failed");
    else if (sl_look_number(entry, "attempted") == 0)
        snprintf(why, SL_UNSOUND_ROOM, "no operation was measured: give a longer --duration");
    else if (failed + skipped > IGNORED_SHARE * attempted)
        snprintf(why, SL_UNSOUND_ROOM, "of %.0f operations, %.0f failed and %.0f were skipped",
                 attempted, failed, skipped);
    return why[0] != '\0';
}
