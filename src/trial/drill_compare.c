/* SPDX-License-Identifier: Apache-2.0 */
/* Compares this drill with an earlier one by their records: the measured times per phase and in
 * total; for sampled drills also the times predicted for all documents. If the numbers of documents
 * differ, phases that grow with the documents are compared per document. Each drill is a single
 * run, so differences within the usual scatter of a phase are not reported as faster or slower. */
#include "drill.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/lookup.h"
#include "util/log.h"
#include "util/text_table.h"

/* Two single runs that differ by less (relative, or in seconds) are not significantly different. */
#define RATIO_SCATTER 0.1
#define SECONDS_SCATTER 0.1
/* Further options that differ are only counted. */
#define OPTIONS_SHOWN 40

static const char *text_of(const bson_t *record, const char *path) {
    const char *text = sl_look_text(record, path);
    return text ? text : "unknown";
}

static double documents_of(const bson_t *record) {
    return sl_look_amount(record, "accounting.inserted", 0) +
           sl_look_amount(record, "accounting.alreadyThere", 0);
}

/* ---- differences of options, servers and hosts ---- */

/* The value of an option as text, safe on a terminal; "off" if it is off or missing. */
static const char *option_of(const bson_t *record, const char *name, char out[200]) {
    bson_iter_t at, items;
    size_t used = 0;
    strcpy(out, "off");
    if (!sl_option_find(record, name, &at))
        return out;
    if (BSON_ITER_HOLDS_UTF8(&at) && strcmp(bson_iter_utf8(&at, NULL), "false") != 0)
        sl_text_printable(sl_text_of(bson_iter_utf8(&at, NULL)), out, 200);
    bool list = BSON_ITER_HOLDS_ARRAY(&at) && bson_iter_recurse(&at, &items);
    while (list && bson_iter_next(&items)) {
        if (used > 0 && used < 190)
            used += (size_t)snprintf(out + used, 200 - used, ", ");
        if (BSON_ITER_HOLDS_UTF8(&items) && used < 190)
            used +=
                sl_text_printable(sl_text_of(bson_iter_utf8(&items, NULL)), out + used, 200 - used);
    }
    return out;
}

/* Compares lists by their items, because option_of cuts long lists short. */
static bool same_option(const bson_t *last, const bson_t *now, const char *name) {
    char before[200], after[200];
    bool lists, equal = sl_option_lists_equal(last, now, name, &lists);
    return lists ? equal : strcmp(option_of(last, name, before), option_of(now, name, after)) == 0;
}

/* Logs the options that differ. Each record may have options that the other version does not
 * have. */
static void log_options(const bson_t *last, const bson_t *now) {
    const bson_t *const records[] = {now, last};
    size_t differing = 0;
    for (size_t i = 0; i < 2; i++) {
        bson_t options;
        bson_iter_t at, other;
        if (!sl_look_inside(records[i], "options", &options) || !bson_iter_init(&at, &options))
            continue;
        while (bson_iter_next(&at)) {
            const char *name = bson_iter_key(&at);
            char shown[60], before[200], after[200];
            if (!sl_option_matters(name) || (i == 1 && sl_option_find(now, name, &other)) ||
                same_option(last, now, name) || differing++ >= OPTIONS_SHOWN)
                continue;
            sl_text_printable(sl_text_of(name), shown, sizeof shown);
            sl_log_info("  --%s differs: %s, now %s", shown, option_of(last, name, before),
                        option_of(now, name, after));
        }
    }
    if (differing > OPTIONS_SHOWN)
        sl_log_info("  and %zu more options differ", differing - OPTIONS_SHOWN);
}

static void log_differences(const bson_t *last, const bson_t *now) {
    static const struct {
        const char *path, *what;
    } texts[] = {
        {"server.version", "server version"},
        {"server.deployment", "deployment"},
        {"client.host", "loader host"},
        {"version", "shardload version"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *before = text_of(last, texts[i].path), *after = text_of(now, texts[i].path);
        char shown[200];
        sl_text_printable(sl_text_of(before), shown, sizeof shown);
        if (strcmp(before, after) != 0)
            sl_log_warning("not comparable: different %s: %s, now %s", texts[i].what, shown, after);
    }
    unsigned shards = sl_walk_count(last, "load.topology");
    unsigned shards_now = sl_walk_count(now, "load.topology");
    if (shards != shards_now)
        sl_log_warning("not comparable: different number of shards: %u, now %u", shards,
                       shards_now);
    double before = sl_look_amount(last, "sample", 0), after = sl_look_amount(now, "sample", 0);
    if (fabs(before - after) > 1e-9)
        sl_log_warning("not comparable: different sample: %.3g %%, now %.3g %%", 100 * before,
                       100 * after);
    if (sl_look_number(last, "exitCode") == SL_EXIT_CLUSTER)
        sl_log_warning("  not comparable: a query of the earlier drill failed");
    if (sl_look_number(now, "exitCode") == SL_EXIT_CLUSTER)
        sl_log_warning("  not comparable: a query of this drill failed");
    log_options(last, now);
}

/* ---- phases ---- */

static const char *verdict(double before, double after, double ratio) {
    if (fabs(after - before) < SECONDS_SCATTER || fabs(ratio - 1) < RATIO_SCATTER)
        return "within the scatter of single runs";
    return ratio < 1 ? "faster" : "slower";
}

static const sl_text_column columns[] = {
    {"phase", .left = true, .least = 12},
    {"then", .least = 11, .unit = SL_UNIT_SECONDS},
    {"now", .least = 11, .unit = SL_UNIT_SECONDS},
    {"ratio", .least = 7},
    {"", .left = true},
    {0},
};

/* `words`: NULL when the times are too short to be compared. */
static void add_row(sl_text_table *table, const char *name, double before, double after,
                    double ratio, const char *words, bool scaled) {
    sl_text_table_cell(table, "%s", name);
    sl_text_table_number(table, before);
    sl_text_table_number(table, after);
    sl_text_table_figure(table, words, ratio, 3);
    sl_text_table_cell(table, "%s%s", words ? words : "", words && scaled ? ", per document" : "");
}

static void compare_phase(sl_text_table *table, const bson_t *last, const bson_t *now,
                          unsigned phase, bool per_document) {
    const sl_phase_row *row = &sl_drill_phases[phase];
    double before = sl_look_phase_seconds(last, "phases", row->name);
    double after = sl_look_phase_seconds(now, "phases", row->name);
    if (isnan(before) || isnan(after))
        return;
    double ratio = before > 0 ? after / before : NAN;
    bool scaled = per_document && row->model.growth != SL_GROWS_NOT;
    bool long_enough = before >= 0.001 && after >= 0.001;
    if (scaled)
        ratio *= documents_of(last) / documents_of(now);
    add_row(table, row->name, before, after, ratio,
            long_enough ? verdict(scaled ? after / ratio : before, after, ratio) : NULL, scaled);
}

/* ---- totals ---- */

/* The total of one drill, measured, or for a sampled drill predicted for all documents. */
typedef struct extent {
    const bson_t *record;
    const char *path; /* of its phases */
    double documents; /* 0: unknown */
    double low, high; /* of the total, in seconds; equal when measured */
    bool predicted;
} extent;

/* The seconds of all phases, with `times` as many documents for the phases that grow. */
static double sum_of(const extent *all, double times) {
    double sum = 0;
    for (unsigned i = 0; i < PHASES; i++) {
        double seconds = sl_look_phase_seconds(all->record, all->path, sl_drill_phases[i].name);
        if (seconds > 0)
            sum += sl_drill_phases[i].model.growth == SL_GROWS_NOT ? seconds : times * seconds;
    }
    return sum;
}

static extent measured(const bson_t *record) {
    extent all = {.record = record, .path = "phases", .documents = documents_of(record)};
    all.low = all.high = sum_of(&all, 1);
    return all;
}

/* The total for all documents. */
static extent whole_of(const bson_t *record) {
    if (!(sl_look_amount(record, "sample", 1) < 1))
        return measured(record);
    return (extent){.record = record,
                    .path = "predicted.phases",
                    .documents = sl_look_amount(record, "predicted.documents", 0),
                    .low = sl_look_amount(record, "predicted.low", 0),
                    .high = sl_look_amount(record, "predicted.high", 0),
                    .predicted = true};
}

static void compare_extent(sl_text_table *table, const char *name, const extent *last,
                           const extent *now) {
    double before = sum_of(last, 1), after = sum_of(now, 1);
    double times = last->documents > 0 ? now->documents / last->documents : 1;
    bool scaled = fabs(times - 1) > 0.001;
    if (!(before > 0) || !(after > 0))
        return;
    /* The earlier drill's time for the same number of documents. */
    double rescaled = scaled ? sum_of(last, times) : before;
    const char *words = verdict(rescaled, after, after / rescaled);
    if ((last->predicted || now->predicted) && last->low * rescaled / before <= now->high &&
        now->low <= last->high * rescaled / before)
        words = "within the error of the prediction";
    add_row(table, name, before, after, after / rescaled, words, scaled);
}

bool sl_drill_check_last(const bson_t *last, sl_error *error) {
    double code = sl_look_amount(last, "exitCode", 0);
    if (strcmp(text_of(last, "command"), "reload") != 0)
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "the file of --compare is not the record of a reload (reload.json)");
    if (documents_of(last) <= 0)
        return sl_error_set(
            error, SL_EXIT_SOURCE,
            "--compare: the earlier drill loaded no document, so there is nothing to "
            "compare with");
    return sl_look_drill_ended(last) ||
           sl_error_set(
               error, SL_EXIT_SOURCE,
               "--compare: the earlier drill did not complete (exit code %.0f), and some of its "
               "phases are missing: name a completed drill",
               code);
}

bool sl_drill_compare(const bson_t *last, const bson_t *now, sl_error *error) {
    double before = documents_of(last), after = documents_of(now);
    char a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    if (after <= 0)
        return sl_error_set(error, SL_EXIT_SOURCE, "--compare: this drill loaded no document");
    if (!sl_look_drill_ended(now))
        return sl_error_set(error, SL_EXIT_SOURCE,
                            "--compare: this drill did not complete, and is not compared");
    bool per_document = fabs(after / before - 1) > 0.001;
    sl_log_info("%s", "");
    sl_log_info("compared with the earlier drill: %s documents, now %s",
                sl_human_count((uint64_t)before, a), sl_human_count((uint64_t)after, b));
    log_differences(last, now);
    sl_text_table *table = sl_text_table_create(columns);
    for (unsigned i = 0; i < PHASES; i++)
        compare_phase(table, last, now, i, per_document);
    extent all_before = measured(last), all_now = measured(now);
    compare_extent(table, "total", &all_before, &all_now);
    extent whole_before = whole_of(last), whole_now = whole_of(now);
    if (whole_before.predicted || whole_now.predicted)
        compare_extent(table, "all data", &whole_before, &whole_now);
    sl_text_table_log(table);
    return true;
}
