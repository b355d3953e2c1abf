/* SPDX-License-Identifier: Apache-2.0 */
/* This drill against an earlier one, by their records. What each measured is compared, not what it
 * predicted; where they had different numbers of documents, phases that grow with these are compared
 * per document. One run of each tells no more than that: differences within the usual scatter of a
 * phase are not called differences. */
#include "drill.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <shardload/log.h>
#include <shardload/lookup.h>
#include <shardload/text.h>

/* Two single runs closer than this are not told apart. */
#define RATIO_SCATTER 0.1
#define SECONDS_SCATTER 0.1

static const char *text_of(const bson_t *record, const char *path) {
    const char *text = sl_look_text(record, path);
    return text ? text : "unknown";
}

static double documents_of(const bson_t *record) {
    return sl_look_amount(record, "accounting.inserted", 0) +
           sl_look_amount(record, "accounting.alreadyThere", 0);
}

/* The seconds of a phase; negative when the record has none of that name. */
static double phase_of(const bson_t *record, const char *name) {
    for (sl_walk walk = sl_walk_start(record, "phases"); sl_walk_next(&walk);) {
        const char *called = sl_look_text(&walk.item, "name");
        if (called && strcmp(called, name) == 0)
            return sl_look_amount(&walk.item, "seconds", -1);
    }
    return -1;
}

static void say_what_differs(const bson_t *last, const bson_t *now) {
    static const struct {
        const char *path, *what;
    } texts[] = {
        {"server.version", "versions of the server"},
        {"server.deployment", "kinds of deployment"},
        {"client.host", "hosts that load"},
        {"version", "versions of shardload"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *before = text_of(last, texts[i].path), *after = text_of(now, texts[i].path);
        if (strcmp(before, after) != 0)
            sl_log_warning("  not comparable: other %s: %s, now %s", texts[i].what, before, after);
    }
    unsigned shards = sl_walk_count(last, "load.topology");
    unsigned shards_now = sl_walk_count(now, "load.topology");
    if (shards != shards_now)
        sl_log_warning("  not comparable: another number of shards: %u, now %u", shards, shards_now);
    double before = sl_look_amount(last, "sample", 0), after = sl_look_amount(now, "sample", 0);
    if (fabs(before - after) > 1e-9)
        sl_log_warning("  not comparable: another sample: %.3g %%, now %.3g %%", 100 * before,
                       100 * after);
}

static const char *verdict(double before, double after, double ratio) {
    if (fabs(after - before) < SECONDS_SCATTER || fabs(ratio - 1) < RATIO_SCATTER)
        return "within the scatter of single runs";
    return ratio < 1 ? "faster" : "slower";
}

static void compare_phase(const bson_t *last, const bson_t *now, unsigned phase,
                          bool per_document) {
    const sl_phase_row *row = &sl_drill_phases[phase];
    double before = phase_of(last, row->name), after = phase_of(now, row->name);
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    if (before < 0 || after < 0)
        return;
    double ratio = before > 0 ? after / before : NAN;
    bool scaled = per_document && row->growth != SL_GROWS_NOT;
    if (scaled)
        ratio *= documents_of(last) / documents_of(now);
    if (before < 0.001 || after < 0.001)
        sl_log_info("  %-12s %12s %12s %8s", row->name, sl_human_seconds(before, a),
                    sl_human_seconds(after, b), "-");
    else
        sl_log_info("  %-12s %12s %12s %8.3f   %s%s", row->name, sl_human_seconds(before, a),
                    sl_human_seconds(after, b), ratio,
                    verdict(scaled ? after / ratio : before, after, ratio),
                    scaled ? ", per document" : "");
}

bool sl_drill_check_last(const bson_t *last, sl_error *error) {
    if (strcmp(text_of(last, "command"), "reload") != 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "the file of --compare is not the record of a reload (reload.json)");
    return documents_of(last) > 0 ||
           sl_error_set(error, SL_EXIT_SOURCE,
                        "--compare: the earlier drill has loaded nothing: there is nothing to "
                        "compare with");
}

bool sl_drill_compare(const bson_t *last, const bson_t *now, sl_error *error) {
    double before = documents_of(last), after = documents_of(now);
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    if (after <= 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "--compare: this drill has loaded nothing");
    bool per_document = fabs(after / before - 1) > 0.001;
    sl_log_info("%s", "");
    sl_log_info("against the earlier drill: %s documents, now %s",
                sl_human_count((uint64_t)before, a), sl_human_count((uint64_t)after, b));
    say_what_differs(last, now);
    sl_log_info("  %-12s %12s %12s %8s", "phase", "then", "now", "ratio");
    for (unsigned i = 0; i < PHASES; i++)
        compare_phase(last, now, i, per_document);
    return true;
}
