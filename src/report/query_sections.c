/* SPDX-License-Identifier: Apache-2.0 */
/* A report of `shardquery run`: queries repeated one by one, and steps under load. */
#include "sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lookup.h"

#include "scale.h"

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

static const char *milliseconds(sl_page *page, const bson_t *entry, const char *path) {
    return sl_section_value(page, entry, path, SL_UNIT_MILLISECONDS);
}

/* ---- repeated queries ---- */

static void add_repeated(sl_page *page, const bson_t *record) {
    static const char *const titles[] = {"query", "examined", "runs",         "min", "median",
                                         "mean",  "max",      "documents/ms", "+-",  "answer"};
    sl_bars *bars = NULL;
    sl_page_table *table = NULL;
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        const bson_t *entry = &walk.item;
        if (is_load(entry))
            continue;
        if (!bars)
            bars = sl_page_add_bars(page, "Median time of each query",
                                    "The line goes from the fastest to the slowest run.",
                                    SL_UNIT_MILLISECONDS);
        sl_bar *bar =
            sl_page_bar(page, bars, label_of(page, entry), sl_look_number(entry, "medianMs"),
                        milliseconds(page, entry, "medianMs"));
        if (bar) {
            bar->low = sl_look_number(entry, "minMs");
            bar->high = sl_look_number(entry, "maxMs");
        }
    }
    if (!bars)
        return;
    table = sl_page_add_table(page, "Repeated queries", titles, "lrrrrrrrrl",
                              sizeof titles / sizeof titles[0]);
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        const bson_t *entry = &walk.item;
        const char *answer = sl_look_text(entry, "answer");
        if (is_load(entry))
            continue;
        sl_page_cell(page, table, label_of(page, entry));
        sl_page_cell(page, table, sl_section_value(page, entry, "examined", SL_UNIT_COUNT));
        sl_page_cell(page, table,
                     sl_section_number(page, sl_look_count(entry, "timingsMs"), SL_UNIT_COUNT));
        sl_page_cell(page, table, milliseconds(page, entry, "minMs"));
        sl_page_cell(page, table, milliseconds(page, entry, "medianMs"));
        sl_page_cell(page, table, milliseconds(page, entry, "meanMs"));
        sl_page_cell(page, table, milliseconds(page, entry, "maxMs"));
        double rate = sl_look_number(entry, "documentsPerMsMean");
        double deviation = sl_look_number(entry, "documentsPerMsDeviation");
        sl_page_cell(page, table, rate >= 0 ? sl_page_text(page, "%.4g", rate) : "-");
        sl_page_cell(page, table, deviation >= 0 ? sl_page_text(page, "%.3g", deviation) : "-");
        sl_page_cell(page, table, answer ? answer : "-");
    }
}

/* Adds bars of the documents examined on each shard. */
static void add_shards(sl_page *page, const bson_t *record) {
    sl_bars *bars = NULL;
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        const char *label = label_of(page, &walk.item);
        bson_t explain;
        if (!sl_look_inside(&walk.item, "explain", &explain))
            continue;
        for (sl_walk plan = sl_walk_start(&explain, "plans"); sl_walk_next(&plan);) {
            const char *shard = sl_look_text(&plan.item, "shard");
            double examined = sl_look_number(&plan.item, "examined");
            if (!shard || !*shard || !(examined >= 0))
                continue;
            if (!bars)
                bars =
                    sl_page_add_bars(page, "Documents examined on each shard", NULL, SL_UNIT_COUNT);
            sl_page_bar(page, bars, sl_page_text(page, "%.60s, %.40s", label, shard), examined,
                        sl_section_number(page, examined, SL_UNIT_COUNT));
        }
    }
}

/* ---- steps under load ---- */

static void add_steps_table(sl_page *page, const bson_t *record) {
    static const char *const titles[] = {"step",  "operations/s", "p50",    "p95",    "p99",
                                         "p99.9", "max",          "failed", "skipped"};
    sl_page_table *table = sl_page_add_table(page, "Operations under load", titles, "lrrrrrrrr",
                                             sizeof titles / sizeof titles[0]);
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        const bson_t *entry = &walk.item;
        if (!is_load(entry))
            continue;
        sl_page_cell(page, table, label_of(page, entry));
        sl_page_cell(page, table,
                     sl_section_value(page, entry, "operationsPerSecond", SL_UNIT_COUNT));
        static const char *const paths[] = {"latencyMs.p50", "latencyMs.p95", "latencyMs.p99",
                                            "latencyMs.p99_9", "latencyMs.max"};
        static const double least[] = {4, 40, SL_SAMPLES_FOR_P99, 2000, 1}; /* operations */
        double operations = sl_look_amount(entry, "succeeded", INFINITY);
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
            sl_page_cell(page, table,
                         operations >= least[i] ? milliseconds(page, entry, paths[i]) : "-");
        sl_page_cell(page, table, sl_section_value(page, entry, "failed", SL_UNIT_COUNT));
        sl_page_cell(page, table, sl_section_value(page, entry, "skipped", SL_UNIT_COUNT));
    }
}

/* Adds bars of one figure of all steps. */
static void add_step_bars(sl_page *page, const bson_t *record, const char *title,
                          const char *caption, const char *path, sl_unit unit) {
    sl_bars *bars = sl_page_add_bars(page, title, caption, unit);
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        if (is_load(&walk.item))
            sl_page_bar(page, bars, label_of(page, &walk.item), sl_look_number(&walk.item, path),
                        sl_section_value(page, &walk.item, path, unit));
    }
}

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
    while (bson_iter_next(&at)) {
        if (!bson_iter_recurse(&at, &value) || !bson_iter_next(&value))
            continue;
        double share = sl_value_number(&value);
        double latency = bson_iter_next(&value) ? sl_value_number(&value) : NAN;
        sl_page_bar(page, bars, sl_page_text(page, "%.5g %%", 100 * share), latency,
                    sl_section_number(page, latency, SL_UNIT_MILLISECONDS));
    }
}

static void add_lag(sl_page *page, const bson_t *record) {
    sl_bars *bars = NULL;
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        const char *label = label_of(page, &walk.item);
        for (sl_walk lag = sl_walk_start(&walk.item, "replicationLag"); sl_walk_next(&lag);) {
            const char *member = sl_look_text(&lag.item, "member");
            double most = sl_look_number(&lag.item, "maxSeconds");
            if (!bars)
                bars = sl_page_add_bars(page, "Maximum replication lag",
                                        "Of each secondary behind the primary.", SL_UNIT_SECONDS);
            sl_page_bar(page, bars,
                        sl_page_text(page, "%.60s, %.40s", label, member ? member : "?"), most,
                        sl_section_number(page, most, SL_UNIT_SECONDS));
        }
    }
}

static void add_loads(sl_page *page, const bson_t *record) {
    size_t steps = 0;
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);)
        steps += is_load(&walk.item);
    if (steps == 0)
        return;
    add_steps_table(page, record);
    add_step_bars(page, record, "Throughput", "Succeeded operations per second.",
                  "operationsPerSecond", SL_UNIT_COUNT);
    add_step_bars(page, record, "95th percentile of the latency", NULL, "latencyMs.p95",
                  SL_UNIT_MILLISECONDS);
    add_lag(page, record);
    size_t shown = 0;
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        if (is_load(&walk.item) && shown++ < PICTURES_MAX)
            add_step(page, &walk.item);
    }
    if (steps > PICTURES_MAX)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN,
                         "%zu more steps are in the table only.", steps - PICTURES_MAX);
}

static void add_verdict(sl_page *page, const bson_t *record) {
    size_t wrong = 0, failed = 0, entries = 0;
    double operations = 0;
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk); entries++) {
        const char *answer = sl_look_text(&walk.item, "answer");
        wrong += answer && strcmp(answer, "WRONG") == 0;
        failed += answer && strcmp(answer, "FAILED") == 0;
        operations += sl_look_amount(&walk.item, "failed", 0);
    }
    if (sl_look_truth(record, "complete") == 0)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING,
                         "The run was interrupted: only the measurements before that are shown.");
    if (wrong + failed > 0)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD,
                         "%zu answers are wrong, %zu queries failed.", wrong, failed);
    else if (operations > 0)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING, "%.0f operations failed.",
                         operations);
    else
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_GOOD, "%zu measurement%s, no failure.",
                         entries, entries == 1 ? "" : "s");
}

void sl_sections_queries(sl_page *page, const bson_t *record) {
    add_verdict(page, record);
    add_repeated(page, record);
    add_shards(page, record);
    add_loads(page, record);
    sl_section_setting(page, record);
}
