/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of a load: the verdict, rates over time and per shard, the threads' time per stage, and
 * the outcome of the records. */
#include "sections.h"

#include <stdio.h>
#include <string.h>

#include "lookup.h"

#include "scale.h"
#include "series.h"

#include "util/load_counts.h"
#include "util/phase_names.h"

/* More intervals than this are not distinguishable on a page. */
#define INTERVALS_MAX 300
/* More shards than this are shown as rows of a grid, not as stacked curves. */
#define LAYERS_MAX 6
#define GRID_COLUMNS_MAX 100
#define BANDS_MAX 64

/* ---- the verdict ---- */

static void add_verdict(sl_page *page, const bson_t *record) {
    double rate = sl_section_rate(record);
    sl_tone tone;
    const char *words = sl_section_ending(record, &tone);
    const char *share = sl_look_text(record, "options.part");
    share = share ? share : sl_look_text(record, "options.only-shards");
    if (tone == SL_TONE_GOOD && share) /* the other loaders' shares have separate records */
        words = sl_page_text(page, "This loader's share (%s) was loaded", share);
    const char *speed = rate >= 0 ? sl_page_text(page, " at %s per second",
                                                 sl_section_number(page, rate, SL_UNIT_COUNT))
                                  : "";
    double took = sl_section_phase_seconds(record, "phases", NULL);
    int holds = sl_look_truth(record, "accounting.holds");
    int verified = sl_look_truth(record, "verification.ok");
    if (holds == 0)
        tone = SL_TONE_BAD;
    sl_page_add_text(page, SL_BLOCK_VERDICT, tone,
                     "%s: %s documents in %s%s. The totals of the records %s.%s", words,
                     sl_section_number(page, sl_section_documents(record), SL_UNIT_COUNT),
                     sl_section_number(page, took, SL_UNIT_SECONDS), speed,
                     holds == 1   ? "add up"
                     : holds == 0 ? "DO NOT ADD UP"
                                  : "are missing",
                     verified == 1   ? " The counts of the ranges on the cluster are right."
                     : verified == 0 ? " THE COUNTS OF THE RANGES ON THE CLUSTER ARE WRONG."
                                     : "");
}

static void add_figures(sl_page *page, const bson_t *record) {
    sl_page_table *facts = sl_page_add_facts(page);
    double seconds = sl_section_load_seconds(record);
    double text = sl_look_number(record, "accounting.textBytes") -
                  sl_look_amount(record, "accounting.ofThoseByEarlierRuns.textBytes", 0);
    double bson = sl_look_number(record, "accounting.bsonBytes");
    char human[SL_HUMAN_ROOM];
    sl_page_fact(page, facts, "documents",
                 sl_section_number(page, sl_section_documents(record), SL_UNIT_COUNT));
    sl_page_fact(page, facts, "documents/s while loading",
                 sl_section_number(page, sl_section_rate(record), SL_UNIT_COUNT));
    if (seconds > 0 && text > 0)
        sl_page_fact(page, facts, "text/s",
                     sl_page_text(page, "%s/s", sl_human_bytes(text / seconds, human)));
    if (seconds > 0 && bson > 0)
        sl_page_fact(page, facts, "BSON/s",
                     sl_page_text(page, "%s/s", sl_human_bytes(bson / seconds, human)));
    sl_section_fact(page, facts, record, "accounting.textBytes", "text", SL_UNIT_BYTES);
    sl_section_fact(page, facts, record, "accounting.bsonBytes", "BSON", SL_UNIT_BYTES);
    double rejects = sl_look_amount(record, "accounting.rejectedByParser", 0) +
                     sl_look_amount(record, "accounting.rejectedByServer", 0);
    sl_page_fact(page, facts, "rejects", sl_section_number(page, rejects, SL_UNIT_COUNT));
}

/* ---- over time ---- */

static const char *shard_name(sl_page *page, const bson_t *record, size_t index) {
    size_t at = 0;
    for (sl_walk walk = sl_walk_start(record, "topology"); sl_walk_next(&walk); at++) {
        const char *name = sl_look_text(&walk.item, "shard");
        if (at == index && name)
            return name;
    }
    return sl_page_text(page, "shard %zu", index);
}

/* Adds the phases of the run as bands. Returns the start of the phase "load", where the series
 * begins, in seconds. */
static double add_bands(sl_page *page, sl_curves *curves, const bson_t *record) {
    double begun = 0, now = 0;
    size_t bands = 0;
    for (sl_walk walk = sl_walk_start(record, "phases"); sl_walk_next(&walk) && bands < BANDS_MAX;
         bands++) {
        const char *name = sl_look_text(&walk.item, "name");
        double seconds = sl_look_amount(&walk.item, "seconds", 0);
        if (name && strcmp(name, SL_PHASE_LOAD) == 0)
            begun = now;
        sl_page_band(page, curves, name ? name : "?", now, now + seconds);
        now += seconds;
    }
    return begun;
}

static void show_throughput(sl_page *page, const bson_t *record, const sl_series *series) {
    bool layers = series->shards > 1 && series->shards <= LAYERS_MAX;
    const char *step = sl_series_step(page, series);
    sl_curves *curves = sl_page_add_curves(
        page, layers ? "Documents per second, stacked by shard" : "Documents per second",
        sl_page_text(page,
                     "Acknowledged by the server; each step is the mean of %s. At the top are the "
                     "phases of the run. %sA gap is a time when nothing was acknowledged.",
                     step, layers ? "With an even load all layers have the same height. " : ""),
        "documents per second", SL_UNIT_COUNT, layers);
    double begun = add_bands(page, curves, record);
    if (!layers)
        sl_series_curve(page, curves, "documents", series, SL_SERIES_DOCUMENTS, begun);
    for (size_t i = 0; layers && i < series->shards; i++)
        sl_series_curve(page, curves, shard_name(page, record, i), series,
                        sl_series_shard(series, i), begun);
}

/* For many shards: adds a grid with a row per shard, over time. */
static void show_shards_over_time(sl_page *page, const bson_t *record, const sl_series *series) {
    size_t per = (series->intervals + GRID_COLUMNS_MAX - 1) / GRID_COLUMNS_MAX;
    size_t columns = per ? (series->intervals + per - 1) / per : 0;
    if (series->shards <= LAYERS_MAX || columns == 0)
        return;
    sl_grid *grid = sl_page_add_grid(
        page, "Documents per second on each shard",
        "One row for each shard, time to the right; the stronger the colour, the higher the rate. "
        "A "
        "faint row is a slow shard, a faint column a time when all shards were slow.",
        series->shards, columns);
    if (!grid)
        return;
    grid->dense = true;
    grid->row_name = "shard";
    grid->seconds = series->borders[series->intervals];
    for (size_t row = 0; row < series->shards; row++) {
        const double *values = series->columns[sl_series_shard(series, row)];
        grid->rows[row] = shard_name(page, record, row);
        for (size_t i = 0; i < columns; i++) {
            size_t from = i * per;
            size_t to = from + per < series->intervals ? from + per : series->intervals;
            double seconds = series->borders[to] - series->borders[from];
            double rate = seconds > 0 ? (values[to] - values[from]) / seconds : 0;
            grid->cells[row * columns + i].value = rate;
            grid->maximum = rate > grid->maximum ? rate : grid->maximum;
        }
    }
}

static void show_bytes(sl_page *page, const bson_t *record, const sl_series *series) {
    static const char *const names[SL_SERIES_FIXED] = {
        [SL_SERIES_TEXT] = "text",
        [SL_SERIES_BSON] = "BSON",
        [SL_SERIES_STORED] = "read as stored",
    };
    sl_curves *curves = sl_page_add_curves(
        page, "Bytes per second",
        "Parsed text, sent documents, and bytes read from the files (fewer than the text when they "
        "are compressed).",
        "bytes per second", SL_UNIT_BYTES, false);
    double begun = add_bands(page, curves, record);
    double text = series->columns[SL_SERIES_TEXT][series->intervals];
    for (size_t i = SL_SERIES_TEXT; i < SL_SERIES_FIXED; i++) {
        double all = series->columns[i][series->intervals];
        /* For uncompressed sources the curves of stored bytes and of text are the same. */
        bool same = i == SL_SERIES_STORED && fabs(all - text) < 0.02 * text;
        if (all > 0 && !same)
            sl_series_curve(page, curves, names[i], series, i, begun);
    }
}

/* Adds the share of each stage in the workers' time over time. */
static void show_waiting_over_time(sl_page *page, const sl_series *series) {
    sl_curves *curves = sl_page_add_curves(
        page, "Threads' time by stage, over time",
        "Share of all threads' time in each interval of the load phase. A large share of \"the "
        "server\" means that the cluster is the limit; large shares of other stages mean that the "
        "client is the limit.",
        "share of the threads' time", SL_UNIT_SHARE, true);
    for (size_t k = 0; k < series->stages; k++) {
        sl_curve *curve = sl_page_curve(page, curves, sl_stage_name_of(series->stage_names[k]),
                                        series->intervals);
        for (size_t i = 0; curve && i <= series->intervals; i++)
            curve->x[i] = series->borders[i];
        for (size_t i = 0; curve && i < series->intervals; i++) {
            double all = 0;
            for (size_t other = 0; other < series->stages; other++)
                all += sl_series_rate(series, sl_series_stage(series, other), i);
            double one = sl_series_rate(series, sl_series_stage(series, k), i);
            curve->y[i] = all > 0 ? one / all : 0;
        }
    }
}

static void show_waiting(sl_page *page, const bson_t *record) {
    bson_t stages;
    bson_iter_t at;
    double all = 0;
    if (!sl_look_inside(record, "workerSeconds", &stages))
        return;
    for (bool more = bson_iter_init(&at, &stages); more && bson_iter_next(&at);)
        all += sl_value_number(&at) > 0 ? sl_value_number(&at) : 0;
    if (!(all > 0))
        return;
    sl_bars *bars = sl_page_add_bars(page, "Threads' time by stage, total",
                                     "Seconds, summed over all threads.", SL_UNIT_SHARE);
    unsigned count = 0;
    for (bool more = bson_iter_init(&at, &stages); more && bson_iter_next(&at) && count < 20;
         count++) {
        double value = sl_value_number(&at) > 0 ? sl_value_number(&at) : 0;
        sl_page_bar(page, bars, sl_stage_name_of(bson_iter_key(&at)), value / all,
                    sl_page_text(page, "%s, %s", sl_section_number(page, value, SL_UNIT_SECONDS),
                                 sl_section_number(page, value / all, SL_UNIT_SHARE)));
    }
}

/* ---- latencies and tables ---- */

static void show_latencies(sl_page *page, const bson_t *record) {
    /* A percentile needs some batches above it; of fewer it would be the slowest one. */
    static const struct {
        const char *path, *label;
        double least;
    } rows[] = {{"batchMilliseconds.p50", "half of the batches", 4},
                {"batchMilliseconds.p90", "90 %", 20},
                {"batchMilliseconds.p99", "99 %", SL_SAMPLES_FOR_P99},
                {"batchMilliseconds.p999", "99.9 %", 2000},
                {"batchMilliseconds.max", "the slowest", 1}};
    double batches = sl_look_number(record, "batchMilliseconds.batches");
    if (!(batches > 0))
        return;
    sl_bars *bars = sl_page_add_bars(
        page, "Latency of batches",
        sl_page_text(page,
                     "From sending a batch to its reply, %s batches; this share of them was at "
                     "most this slow.",
                     sl_section_number(page, batches, SL_UNIT_COUNT)),
        SL_UNIT_MILLISECONDS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double value = sl_look_number(record, rows[i].path);
        if (batches < rows[i].least)
            continue;
        sl_page_bar(page, bars, rows[i].label, value,
                    sl_section_number(page, value, SL_UNIT_MILLISECONDS));
    }
}

/* Adds a table of an array, without the columns that have no value. The first column is a name. */
static void show_array(sl_page *page, const bson_t *record, const char *path, const char *title,
                       const sl_column *all) {
    sl_column columns[8] = {all[0]};
    size_t count = 1;
    if (sl_walk_count(record, path) == 0)
        return;
    while ((++all)->title) {
        bool known = false;
        for (sl_walk walk = sl_walk_start(record, path); !known && sl_walk_next(&walk);)
            known = !isnan(sl_look_number(&walk.item, all->path));
        if (known)
            columns[count++] = *all;
    }
    sl_section_table(page, record, path, title, columns);
}

/* The rejects by reason, as the summary of the load shows them. */
static void show_rejects(sl_page *page, const bson_t *record) {
    static const sl_column columns[] = {
        {"rejects", "count", .unit = SL_UNIT_COUNT},
        {"column", "column", .text = sl_cell_text},
        {"reason", "reason", .text = sl_cell_text},
        {"first in", "firstPlace", .text = sl_cell_text},
        {"first reason", "firstReason", .text = sl_cell_text},
        {0},
    };
    static const struct {
        const char *path, *words;
    } rests[] = {{"rejects.others", "for other reasons"},
                 {"rejects.notCompleted", "in blocks that were not completed"}};
    sl_page_table *table = NULL;
    size_t row = 0;
    for (sl_walk walk = sl_walk_start(record, "rejects.kinds");
         sl_walk_next(&walk) && row < SL_ROWS_MAX; row++) {
        table = table ? table : sl_section_columns(page, "Rejects by reason", columns);
        sl_section_row(page, table, &walk.item, columns);
    }
    for (size_t i = 0; i < sizeof rests / sizeof rests[0]; i++) {
        double rest = sl_look_amount(record, rests[i].path, 0);
        if (!(rest > 0))
            continue;
        table = table ? table : sl_section_columns(page, "Rejects by reason", columns);
        sl_page_cell(page, table, sl_section_number(page, rest, SL_UNIT_COUNT));
        sl_page_cell(page, table, "");
        sl_page_cell(page, table, rests[i].words);
        sl_page_cell(page, table, "");
        sl_page_cell(page, table, "");
    }
}

const sl_column sl_shard_columns[] = {
    {"shard", "shard", .text = sl_cell_text},
    {"documents", "documents", .unit = SL_UNIT_COUNT},
    {"data", "dataBytes", .unit = SL_UNIT_BYTES},
    {"stored", "storageBytes", .unit = SL_UNIT_BYTES},
    {"indexes", "indexBytes", .unit = SL_UNIT_BYTES},
    {0},
};
static const sl_column source_columns[] = {
    {"source", "path", .text = sl_cell_text},
    {"stored", "storedBytes", .unit = SL_UNIT_BYTES},
    {"records generated", "records", .unit = SL_UNIT_COUNT},
    {"number", "number", .unit = SL_UNIT_COUNT},
    {"documents", "documents", .unit = SL_UNIT_COUNT},
    {0},
};

void sl_sections_load(sl_page *page, const bson_t *record) {
    add_verdict(page, record);
    add_figures(page, record);
    sl_series series = sl_series_read(page, record, INTERVALS_MAX);
    if (series.intervals > 0) {
        sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "Over time");
        show_throughput(page, record, &series);
        show_shards_over_time(page, record, &series);
        show_bytes(page, record, &series);
        if (series.stages > 0)
            show_waiting_over_time(page, &series);
    } else {
        sl_page_add_text(
            page, SL_BLOCK_TEXT, SL_TONE_PLAIN,
            "There is no series to draw: nothing was loaded, or the load was too short.");
    }
    show_waiting(page, record);
    sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "Phases");
    sl_strips *strips = sl_page_add_strips(page, "Time of each phase", NULL, SL_UNIT_SECONDS);
    sl_section_phase_strip(page, strips, record, "phases", "");
    sl_section_phase_table(page, record, "phases", NULL);
    show_latencies(page, record);
    sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "Totals");
    sl_section_accounting(page, record);
    show_rejects(page, record);
    show_array(page, record, "shards", "Shards", sl_shard_columns);
    show_array(page, record, "sources", "Sources", source_columns);
    sl_section_setting(page, record);
}
