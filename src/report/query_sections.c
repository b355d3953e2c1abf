/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of measured queries: `shardquery run` repeats queries one by one, or measures steps
 * under load. */
#include "sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lookup.h"

#define PICTURES_MAX 12 /* steps with pictures; the table has all steps */
#define SLOTS_MAX 2000

/* The label of a table row: "suite/query, swept values". */
static const char *label_of(sl_page *page, const bson_t *entry) {
    const char *name = sl_look_text(entry, "name"), *phase = sl_look_text(entry, "phase");
    const char *preference = sl_look_text(entry, "readPreference");
    double limit = sl_look_number(entry, "limit"), clients = sl_look_number(entry, "clients");
    char parts[200] = "";
    size_t used = 0;
    if (limit > 0)
        used += (size_t)snprintf(parts + used, sizeof parts - used, ", limit %.0f", limit);
    if (clients > 0)
        used += (size_t)snprintf(parts + used, sizeof parts - used, ", %.0f clients", clients);
    if (preference && used < sizeof parts)
        used += (size_t)snprintf(parts + used, sizeof parts - used, ", %.40s", preference);
    if (phase && used < sizeof parts)
        snprintf(parts + used, sizeof parts - used, ", %.20s", phase);
    return sl_page_text(page, "%.100s%s", name ? name : "?", parts);
}

static bool is_load(const bson_t *entry) {
    return sl_look_text(entry, "mode") != NULL;
}

static bool is_repeated(const bson_t *entry) {
    return !is_load(entry);
}

static const char *label_cell(sl_page *page, const bson_t *entry, const char *path) {
    (void)path;
    return label_of(page, entry);
}

static const char *answer_cell(sl_page *page, const bson_t *entry, const char *path) {
    (void)page;
    const char *answer = sl_look_text(entry, path);
    return answer ? answer : "-";
}

static const char *rate_cell(sl_page *page, const bson_t *entry, const char *path) {
    double rate = sl_look_number(entry, path);
    return rate >= 0 ? sl_page_text(page, "%.4g", rate) : "-";
}

static const char *deviation_cell(sl_page *page, const bson_t *entry, const char *path) {
    double deviation = sl_look_number(entry, path);
    return deviation >= 0 ? sl_page_text(page, "%.3g", deviation) : "-";
}

static double runs_of(const bson_t *entry) {
    return sl_look_count(entry, "timingsMs");
}

static const sl_figure repeated_columns[] = {
    {"query", .left = label_cell},
    {"examined", "examined", .unit = SL_UNIT_COUNT},
    {"runs", .value = runs_of},
    {"min", "minMs", .unit = SL_UNIT_MILLISECONDS},
    {"median", "medianMs", .unit = SL_UNIT_MILLISECONDS},
    {"mean", "meanMs", .unit = SL_UNIT_MILLISECONDS},
    {"max", "maxMs", .unit = SL_UNIT_MILLISECONDS},
    {"documents/ms", "documentsPerMsMean", .right = rate_cell},
    {"+-", "documentsPerMsDeviation", .right = deviation_cell},
    {"answer", "answer", .left = answer_cell},
    {0},
};
static const sl_array repeated = {"queries", "Repeated queries", .columns = repeated_columns,
                                  .shown = is_repeated};
static const sl_array medians = {"queries",
                                 "Median time of each query",
                                 .shown = is_repeated,
                                 .label = label_of,
                                 .gaps = true,
                                 .caption = "The line goes from the fastest to the slowest run.",
                                 .bar = {.path = "medianMs", .unit = SL_UNIT_MILLISECONDS},
                                 .low = "minMs",
                                 .high = "maxMs"};

/* Adds bars of a figure of each document in the arrays at `path` of all entries, such as of the
 * shards of each query. */
static void add_inner(sl_page *page, const bson_t *record, const char *title, const char *caption,
                      const char *path, const char *name, const sl_figure *figure) {
    sl_bars *bars = NULL;
    size_t count = 0;
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        const char *label = label_of(page, &walk.item);
        for (sl_walk inner = sl_walk_start(&walk.item, path); sl_walk_next(&inner);) {
            const char *part = sl_look_string(&inner.item, name);
            double value = sl_section_figure(&inner.item, figure);
            if (!figure->always && (!*part || !(value >= 0)))
                continue;
            if (count++ == SL_ROWS_MAX) {
                sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN,
                                 "The first %d bars are shown; the record has more.", SL_ROWS_MAX);
                return;
            }
            if (!bars)
                bars = sl_page_add_bars(page, title, caption, figure->unit);
            sl_page_bar(page, bars, sl_page_text(page, "%.60s, %.40s", label, *part ? part : "?"),
                        value, sl_section_number(page, value, figure->unit));
        }
    }
}

/* ---- steps under load ---- */

static const sl_figure step_columns[] = {
    {"step", .left = label_cell},
    {"operations/s", "operationsPerSecond", .unit = SL_UNIT_COUNT},
    {"p50", "latencyMs.p50", .unit = SL_UNIT_MILLISECONDS, .least = 4},
    {"p95", "latencyMs.p95", .unit = SL_UNIT_MILLISECONDS, .least = 40},
    {"p99", "latencyMs.p99", .unit = SL_UNIT_MILLISECONDS, .least = SL_SAMPLES_FOR_P99},
    {"p99.9", "latencyMs.p99_9", .unit = SL_UNIT_MILLISECONDS, .least = 2000},
    {"max", "latencyMs.max", .unit = SL_UNIT_MILLISECONDS, .least = 1},
    {"failed", "failed", .unit = SL_UNIT_COUNT},
    {"skipped", "skipped", .unit = SL_UNIT_COUNT},
    {0},
};
static const sl_array steps = {"queries", "Operations under load", .columns = step_columns,
                               .shown = is_load};
static const sl_array step_bars[] = {
    {"queries", "Throughput", .shown = is_load, .label = label_of, .gaps = true,
     .caption = "Succeeded operations per second.",
     .bar = {.path = "operationsPerSecond", .unit = SL_UNIT_COUNT}},
    {"queries", "95th percentile of the latency", .shown = is_load, .label = label_of, .gaps = true,
     .bar = {.path = "latencyMs.p95", .unit = SL_UNIT_MILLISECONDS}},
};

/* Adds a curve: the numbers of an array, times `scale`, one per slot of `slot` seconds. */
static void add_slots(sl_page *page, sl_curves *curves, const char *name, const bson_t *entry,
                      const char *path, double slot, double scale) {
    bson_t list;
    bson_iter_t at;
    if (!sl_look_inside(entry, path, &list) || !bson_iter_init(&at, &list))
        return;
    size_t count = bson_count_keys(&list), i = 0;
    count = count > SLOTS_MAX ? SLOTS_MAX : count;
    sl_curve *curve = count ? sl_page_curve(page, curves, name, count) : NULL;
    while (curve && i < count && bson_iter_next(&at)) {
        double value = sl_value_number(&at);
        curve->x[i] = (double)i * slot;
        curve->y[i++] = value >= 0 ? value * scale : 0;
    }
    if (curve)
        curve->x[count] = (double)count * slot;
}

static void add_step(sl_page *page, const bson_t *entry) {
    const char *label = label_of(page, entry);
    double slot = sl_look_number(entry, "overTime.slotSeconds");
    sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "%s", label);
    if (slot > 0) {
        sl_curves *rates = sl_page_add_curves(page, "Operations over time", NULL,
                                              "operations per second", SL_UNIT_COUNT, false);
        add_slots(page, rates, "operations", entry, "overTime.succeeded", slot, 1 / slot);
        sl_curves *latencies = sl_page_add_curves(page, "Latency over time",
                                                  "Of the operations that ended in each interval.",
                                                  "milliseconds", SL_UNIT_MILLISECONDS, false);
        add_slots(page, latencies, "longest", entry, "overTime.maxMs", slot, 1);
        add_slots(page, latencies, "mean", entry, "overTime.meanMs", slot, 1);
    }
    bson_t curve;
    bson_iter_t at, value;
    if (!sl_look_inside(entry, "latencyCurve", &curve) || bson_empty(&curve) ||
        !bson_iter_init(&at, &curve))
        return;
    sl_bars *bars = sl_page_add_bars(page, "Latency by percentile",
                                     "This share of the operations was at most this slow.",
                                     SL_UNIT_MILLISECONDS);
    for (size_t i = 0; i < SL_ROWS_MAX && bson_iter_next(&at); i++) { /* a run has at most 17 */
        if (!bson_iter_recurse(&at, &value) || !bson_iter_next(&value))
            continue;
        double share = sl_value_number(&value);
        double latency = bson_iter_next(&value) ? sl_value_number(&value) : NAN;
        sl_page_bar(page, bars, sl_page_text(page, "%.5g %%", 100 * share), latency,
                    sl_section_number(page, latency, SL_UNIT_MILLISECONDS));
    }
}

static void add_loads(sl_page *page, const bson_t *record) {
    static const sl_figure lag = {"", "maxSeconds", .unit = SL_UNIT_SECONDS, .always = true};
    size_t count = 0, shown = 0;
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);)
        count += is_load(&walk.item);
    if (count == 0)
        return;
    sl_section_table(page, record, &steps);
    for (size_t i = 0; i < sizeof step_bars / sizeof step_bars[0]; i++)
        sl_section_bars(page, record, &step_bars[i]);
    add_inner(page, record, "Maximum replication lag", "Of each secondary behind the primary.",
              "replicationLag", "member", &lag);
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        if (is_load(&walk.item) && shown++ < PICTURES_MAX)
            add_step(page, &walk.item);
    }
    if (count > PICTURES_MAX)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN,
                         "%zu more steps are in the table only.", count - PICTURES_MAX);
}

static void add_verdict(sl_page *page, const bson_t *record) {
    size_t wrong = 0, failed = 0, entries = 0, unsound = 0;
    double operations = 0;
    char why[SL_UNSOUND_ROOM], first[SL_UNSOUND_ROOM] = "";
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk); entries++) {
        const char *answer = sl_look_text(&walk.item, "answer");
        wrong += answer && strcmp(answer, "WRONG") == 0;
        failed += answer && strcmp(answer, "FAILED") == 0;
        operations += sl_look_amount(&walk.item, "failed", 0);
        if (sl_look_unsound(&walk.item, why) && unsound++ == 0)
            memcpy(first, why, sizeof first);
    }
    if (sl_look_truth(record, "complete") == 0)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING,
                         "The run was interrupted: only the measurements before that are shown.");
    if (wrong + failed > 0)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD,
                         "%zu answers are wrong, %zu queries failed.", wrong, failed);
    else if (unsound > 0)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD,
                         "The figures of %zu of %s do not count: %s.", unsound,
                         sl_plural(entries, "measurement"), first);
    else if (operations > 0)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING, "%.0f operations failed.",
                         operations);
    else
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_GOOD, "%s, no failure.",
                         sl_plural(entries, "measurement"));
}

void sl_sections_queries(sl_page *page, const bson_t *record) {
    static const sl_figure examined = {"", "examined", .unit = SL_UNIT_COUNT};
    add_verdict(page, record);
    sl_section_bars(page, record, &medians);
    sl_section_table(page, record, &repeated);
    add_inner(page, record, "Documents examined on each shard", NULL, "explain.plans", "shard",
              &examined);
    add_loads(page, record);
    sl_section_setting(page, record);
}
