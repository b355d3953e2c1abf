/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of measured queries: of `shardquery run`, which repeats queries one by one or measures
 * steps under load, and of tools/bench shards, which compares several small shards on one machine
 * with one large mongod. */
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
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        const char *label = label_of(page, &walk.item);
        for (sl_walk inner = sl_walk_start(&walk.item, path); sl_walk_next(&inner);) {
            const char *part = sl_look_string(&inner.item, name);
            double value = sl_section_figure(&inner.item, figure);
            if (!figure->always && (!*part || !(value >= 0)))
                continue;
            if (!bars)
                bars = sl_page_add_bars(page, title, caption, figure->unit);
            sl_page_bar(page, bars, sl_page_text(page, "%.60s, %.40s", label, *part ? part : "?"),
                        value, sl_section_number(page, value, figure->unit));
        }
    }
}

/* ---- steps under load ---- */

/* A percentile of the latency, if the operations are numerous enough for it. */
static const char *percentile_cell(sl_page *page, const bson_t *entry, const char *path) {
    static const struct {
        const char *path;
        double least; /* operations */
    } percentiles[] = {{"latencyMs.p50", 4},
                       {"latencyMs.p95", 40},
                       {"latencyMs.p99", SL_SAMPLES_FOR_P99},
                       {"latencyMs.p99_9", 2000}};
    double operations = sl_look_amount(entry, "succeeded", INFINITY);
    for (size_t i = 0; i < sizeof percentiles / sizeof percentiles[0]; i++) {
        if (strcmp(path, percentiles[i].path) == 0 && operations < percentiles[i].least)
            return "-";
    }
    return operations < 1 ? "-" : sl_section_value(page, entry, path, SL_UNIT_MILLISECONDS);
}

static const sl_figure step_columns[] = {
    {"step", .left = label_cell},
    {"operations/s", "operationsPerSecond", .unit = SL_UNIT_COUNT},
    {"p50", "latencyMs.p50", .right = percentile_cell},
    {"p95", "latencyMs.p95", .right = percentile_cell},
    {"p99", "latencyMs.p99", .right = percentile_cell},
    {"p99.9", "latencyMs.p99_9", .right = percentile_cell},
    {"max", "latencyMs.max", .right = percentile_cell},
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
    while (bson_iter_next(&at)) {
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
    static const sl_figure examined = {"", "examined", .unit = SL_UNIT_COUNT};
    add_verdict(page, record);
    sl_section_bars(page, record, &medians);
    sl_section_table(page, record, &repeated);
    add_inner(page, record, "Documents examined on each shard", NULL, "explain.plans", "shard",
              &examined);
    add_loads(page, record);
    sl_section_setting(page, record);
}

/* ---- tools/bench shards ---- */

#define QUERIES_MAX 8

/* The names of the queries, from the first row that has any. */
static size_t query_names(const bson_t *record, const char *names[QUERIES_MAX]) {
    size_t count = 0;
    for (sl_walk walk = sl_walk_start(record, "rows"); count == 0 && sl_walk_next(&walk);) {
        for (sl_walk query = sl_walk_start(&walk.item, "queries");
             count < QUERIES_MAX && sl_walk_next(&query);) {
            const char *name = sl_look_text(&query.item, "name");
            if (name)
                names[count++] = name;
        }
    }
    return count;
}

/* A figure of the query called `name`, or NAN. */
static double query_figure(const bson_t *row, const char *name, const char *figure) {
    for (sl_walk walk = sl_walk_start(row, "queries"); sl_walk_next(&walk);) {
        const char *one = sl_look_text(&walk.item, "name");
        if (one && strcmp(one, name) == 0)
            return sl_look_number(&walk.item, figure);
    }
    return NAN;
}

static const char *shards_text(sl_page *page, const bson_t *row) {
    double count = sl_look_number(row, "shards");
    if (count == 0)
        return "lone mongod";
    return sl_page_text(page, "%s shard%s", sl_section_number(page, count, SL_UNIT_COUNT),
                        count == 1 ? "" : "s");
}

static const char *shards_label(sl_page *page, const bson_t *row) {
    const char *engine = sl_look_text(row, "engineName");
    engine = engine ? engine : sl_look_text(row, "engine");
    return sl_page_text(page, "%s, %s cache%s%.80s", shards_text(page, row),
                        sl_section_value(page, row, "cacheBytes", SL_UNIT_BYTES),
                        engine && *engine ? ", " : "", engine ? engine : "");
}

static const char *shards_cell(sl_page *page, const bson_t *row, const char *path) {
    (void)path;
    return shards_text(page, row);
}

/* The time of the query named `path`. */
static const char *query_cell(sl_page *page, const bson_t *row, const char *path) {
    return sl_section_number(page, query_figure(row, path, "milliseconds"), SL_UNIT_MILLISECONDS);
}

static const sl_figure measurement[] = {
    {"shards", .left = shards_cell},
    {"engine options", "engine", .left = sl_cell_text},
    {"cache", "cacheBytes", .unit = SL_UNIT_BYTES},
    {0},
};
static const sl_figure loading[] = {
    {"load time", "loadSeconds", .unit = SL_UNIT_SECONDS},
    {"documents/s", "rate", .unit = SL_UNIT_COUNT},
    {"ratio", "ratio", .right = sl_cell_ratio},
    {"on disk", "storageBytes", .unit = SL_UNIT_BYTES},
    {"all files", "fileBytes", .unit = SL_UNIT_BYTES},
    {"memory", "memoryBytes", .unit = SL_UNIT_BYTES},
    {0},
};
static const sl_figure cpu_while_loading[] = {
    {"CPU user", "cpu.user", .unit = SL_UNIT_SHARE},
    {"CPU system", "cpu.system", .unit = SL_UNIT_SHARE},
    {"CPU wait", "cpu.wait", .unit = SL_UNIT_SHARE},
    {"CPU idle", "cpu.idle", .unit = SL_UNIT_SHARE},
    {0},
};
static const sl_figure querying[] = {
    {"query", "name", .left = sl_cell_text},
    {"median", "milliseconds", .unit = SL_UNIT_MILLISECONDS},
    {"at least", "low", .unit = SL_UNIT_MILLISECONDS},
    {"at most", "high", .unit = SL_UNIT_MILLISECONDS},
    {"documents/ms", "documentsPerMillisecond", .unit = SL_UNIT_COUNT},
    {"ratio", "ratio", .right = sl_cell_ratio},
    {0},
};
static const sl_figure cpu_while_querying[] = {
    {"CPU user", "queryCpu.user", .unit = SL_UNIT_SHARE},
    {"CPU system", "queryCpu.system", .unit = SL_UNIT_SHARE},
    {"CPU wait", "queryCpu.wait", .unit = SL_UNIT_SHARE},
    {"CPU idle", "queryCpu.idle", .unit = SL_UNIT_SHARE},
    {0},
};

/* Appends rows; returns their new number. */
static size_t append(sl_figure *rows, size_t count, const sl_figure *more) {
    while (more->title)
        rows[count++] = *more++;
    return count;
}

static void show_table(sl_page *page, const bson_t *record, const char *const *queries,
                       size_t query_count) {
    sl_figure columns[14 + QUERIES_MAX] = {{0}};
    sl_array table = {"rows", "All figures", .columns = columns};
    size_t count = append(columns, append(columns, 0, measurement), loading);
    for (size_t i = 0; i < query_count; i++)
        columns[count++] = (sl_figure){queries[i], queries[i], .right = query_cell};
    append(columns, count, cpu_while_loading);
    sl_section_table(page, record, &table);
}

/* Adds a table with a row for each query of each measurement. */
static void show_queries(sl_page *page, const bson_t *record) {
    sl_figure columns[14] = {{0}};
    size_t rows = 0;
    append(columns, append(columns, append(columns, 0, measurement), querying), cpu_while_querying);
    sl_page_table *table = sl_section_columns(page, "Queries", columns);
    for (sl_walk walk = sl_walk_start(record, "rows"); sl_walk_next(&walk);) {
        for (sl_walk query = sl_walk_start(&walk.item, "queries"); sl_walk_next(&query);) {
            if (rows++ >= SL_ROWS_MAX)
                continue;
            sl_section_row(page, table, &walk.item, measurement);
            sl_section_row(page, table, &query.item, querying);
            sl_section_row(page, table, &walk.item, cpu_while_querying);
        }
    }
    sl_section_more(page, table, rows);
}

static const sl_array shards_bars[] = {
    {"rows", "Documents per second while loading", .label = shards_label, .gaps = true,
     .caption = "The whisker is the spread of the rounds; longer is better.",
     .bar = {.path = "rate", .unit = SL_UNIT_COUNT}, .low = "low", .high = "high"},
    {"rows", "Size on disk", .label = shards_label, .gaps = true,
     .caption = "The collection and its indexes; shorter is better.",
     .bar = {.path = "storageBytes", .unit = SL_UNIT_BYTES}},
    {"rows", "All files of the shards", .label = shards_label, .gaps = true,
     .caption = "Journals and oplogs included; shorter is better.",
     .bar = {.path = "fileBytes", .unit = SL_UNIT_BYTES}},
    {"rows", "Memory of the shards' servers", .label = shards_label, .gaps = true,
     .caption = "The sum of their peaks; shorter is better.",
     .bar = {.path = "memoryBytes", .unit = SL_UNIT_BYTES}},
};

#define BARS_MAX 60

/* Adds bars of the times of a query. */
static void show_query_bars(sl_page *page, const bson_t *record, const char *query) {
    size_t row = 0;
    sl_bars *bars = sl_page_add_bars(page, sl_page_text(page, "Query %.100s", query),
                                     "The whisker is the spread of the rounds; shorter is better.",
                                     SL_UNIT_MILLISECONDS);
    for (sl_walk walk = sl_walk_start(record, "rows"); sl_walk_next(&walk) && row < BARS_MAX;
         row++) {
        double value = query_figure(&walk.item, query, "milliseconds");
        sl_bar *bar = sl_page_bar(page, bars, shards_label(page, &walk.item), value,
                                  query_cell(page, &walk.item, query));
        if (bar) {
            bar->low = query_figure(&walk.item, query, "low");
            bar->high = query_figure(&walk.item, query, "high");
        }
    }
}

/* Adds a strip for each measurement: the states of the machine's processors. `of`: "cpu" or
 * "queryCpu". "stolen" is time of other virtual machines on the same host. */
static void show_processors(sl_page *page, const bson_t *record, const char *of, const char *title,
                            const char *caption) {
    static const char *const names[] = {"user", "system", "wait", "idle", "steal"};
    bool any = false;
    size_t row = 0;
    for (sl_walk walk = sl_walk_start(record, "rows"); !any && sl_walk_next(&walk);)
        any = sl_look_number(&walk.item, sl_page_text(page, "%s.idle", of)) >= 0;
    if (!any)
        return;
    sl_strips *strips = sl_page_add_strips(page, title, caption, SL_UNIT_SHARE);
    for (sl_walk walk = sl_walk_start(record, "rows"); sl_walk_next(&walk) && row < BARS_MAX;
         row++) {
        sl_strip *strip = sl_page_strip(page, strips, shards_label(page, &walk.item));
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            double share = sl_look_number(&walk.item, sl_page_text(page, "%s.%s", of, names[i]));
            if (share > 0)
                sl_page_part(page, strips, strip,
                             strcmp(names[i], "steal") == 0 ? "stolen" : names[i], share);
        }
    }
}

static void add_fastest(sl_page *page, const bson_t *record) {
    double best = 0;
    const char *label = NULL;
    for (sl_walk walk = sl_walk_start(record, "rows"); sl_walk_next(&walk);) {
        double rate = sl_look_number(&walk.item, "rate");
        if (rate > best) {
            best = rate;
            label = shards_label(page, &walk.item);
        }
    }
    if (label)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_PLAIN,
                         "Fastest to load %s documents: %s, %s per second.",
                         sl_section_value(page, record, "documents", SL_UNIT_COUNT), label,
                         sl_section_number(page, best, SL_UNIT_COUNT));
    else
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING, "There is no row with a rate.");
}

void sl_sections_shards(sl_page *page, const bson_t *record) {
    const char *queries[QUERIES_MAX];
    size_t query_count = query_names(record, queries);
    add_fastest(page, record);
    sl_section_texts(page, record, "warnings", SL_TONE_WARNING);
    const char *why = sl_look_text(record, "why"); /* the reason of an early end, or empty */
    if (why && *why)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD, "%s", why);
    if (sl_walk_count(record, "rows") > 0) {
        for (size_t i = 0; i < sizeof shards_bars / sizeof shards_bars[0]; i++)
            sl_section_bars(page, record, &shards_bars[i]);
        for (size_t i = 0; i < query_count; i++)
            show_query_bars(page, record, queries[i]);
        show_processors(page, record, "cpu", "Time of the machine's processors while loading",
                        "More shards could use the idle time; \"wait\" is waiting for the disk.");
        show_processors(page, record, "queryCpu", "Time of the machine's processors while querying",
                        "One shard uses one core per query; more shards could use the idle time.");
        show_table(page, record, queries, query_count);
        if (query_count > 0)
            show_queries(page, record);
    }
    sl_section_setting(page, record);
}
