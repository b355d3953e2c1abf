/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of loads: one load (the verdict, rates over time and per shard, the threads' time per
 * stage, the outcome of the records); one load that several loaders share; loads and drills side by
 * side, with ratios to the first record and the options that differ. */
#include "sections.h"

#include <stdio.h>
#include <string.h>

#include "lookup.h"
#include "util/estimate.h"
#include "util/load_counts.h"

/* More intervals than this are not distinguishable on a page. */
#define INTERVALS_MAX 300
#define FEW_INTERVALS 120 /* of the curves of several records */
/* More shards than this are shown as rows of a grid, not as stacked curves. */
#define LAYERS_MAX 6
#define GRID_COLUMNS_MAX 100
#define BANDS_MAX 64
/* More curves are not distinguishable. */
#define CURVES_MAX 12

/* ---- the series of a load ----
 *
 * Chooses the points that become borders, and reads the totals at each. Records are untrusted, so
 * points whose time does not advance are skipped, and totals that fall are corrected. */

/* Minimum interval between two borders. */
#define INTERVAL_SECONDS 0.5

static size_t stage_column(size_t stage) {
    return SL_SERIES_FIXED + stage;
}

static size_t shard_column(const sl_series *series, size_t shard) {
    return SL_SERIES_FIXED + series->stages + shard;
}

static const char *const fixed[SL_SERIES_FIXED] = {"documents", "textBytes", "bsonBytes",
                                                   "storedBytes"};

/* Finds the number of shards and the names of stages. Returns the last time in seconds. */
static double survey(const bson_t *record, sl_series *series) {
    double last = 0;
    for (sl_walk walk = sl_walk_start(record, "series"); sl_walk_next(&walk);) {
        bson_t inner;
        bson_iter_t at;
        double seconds = sl_look_amount(&walk.item, "seconds", 0);
        last = seconds > last ? seconds : last;
        sl_look_inside(&walk.item, "shardDocuments", &inner);
        uint32_t shards = bson_count_keys(&inner);
        if (shards > series->shards)
            series->shards = shards < SL_SERIES_SHARDS_MAX ? shards : SL_SERIES_SHARDS_MAX;
        if (series->stages == 0 && sl_look_inside(&walk.item, "workerSeconds", &inner) &&
            bson_iter_init(&at, &inner)) {
            while (series->stages < SL_SERIES_STAGES_MAX && bson_iter_next(&at))
                series->stage_keys[series->stages++] = bson_iter_key(&at);
        }
    }
    return last;
}

/* Sets a total, which never falls. */
static void put(sl_series *series, size_t column, double value) {
    double *values = series->columns[column];
    double before = series->intervals ? values[series->intervals - 1] : 0;
    values[series->intervals] = value > before ? value : before;
}

static void take(sl_series *series, const bson_t *point, double seconds) {
    bson_t inner;
    bson_iter_t at;
    series->borders[series->intervals] = seconds;
    for (size_t i = 0; i < SL_SERIES_FIXED; i++)
        put(series, i, sl_look_amount(point, fixed[i], 0));
    sl_look_inside(point, "workerSeconds", &inner);
    for (size_t i = 0; i < series->stages; i++) {
        bool found = bson_iter_init_find(&at, &inner, series->stage_keys[i]);
        put(series, stage_column(i), found ? sl_value_number(&at) : 0);
    }
    sl_look_inside(point, "shardDocuments", &inner);
    bool more = bson_iter_init(&at, &inner);
    for (size_t i = 0; i < series->shards; i++) {
        more = more && bson_iter_next(&at);
        put(series, shard_column(series, i), more ? sl_value_number(&at) : 0);
    }
}

sl_series sl_series_read(sl_page *page, const bson_t *record, size_t most) {
    sl_series series = {0};
    double span = survey(record, &series);
    double least = span / (double)(most ? most : 1);
    if (least < INTERVAL_SECONDS)
        least = INTERVAL_SECONDS;
    if (span < 2 * INTERVAL_SECONDS)
        least = span / 2;
    size_t columns = SL_SERIES_FIXED + series.stages + series.shards;
    size_t room = (size_t)(span > 0 ? span / least : 0) + 3;
    series.borders = sl_page_memory(page, room * sizeof(double));
    series.columns = sl_page_memory(page, columns * sizeof(double *));
    if (!(span > 0) || !series.borders || !series.columns)
        return series;
    for (size_t i = 0; i < columns; i++) {
        if (!(series.columns[i] = sl_page_memory(page, room * sizeof(double))))
            return series;
    }
    double border = 0;
    for (sl_walk walk = sl_walk_start(record, "series"); sl_walk_next(&walk);) {
        double seconds = sl_look_amount(&walk.item, "seconds", 0);
        if (!(seconds > border))
            continue;
        /* A point soon after a border is skipped; the last point of the series replaces it. */
        bool soon = seconds - border < least * (1 - 1e-3);
        if (soon && seconds < span)
            continue;
        if (series.intervals + 2 < room &&
            !(soon && series.intervals > 0 && seconds - border < least / 2)) {
            series.intervals++;
            border = seconds;
        }
        take(&series, &walk.item, seconds);
    }
    return series;
}

double sl_series_rate(const sl_series *series, size_t column, size_t interval) {
    const double *values = series->columns[column];
    double seconds = series->borders[interval + 1] - series->borders[interval];
    double rate = seconds > 0 ? (values[interval + 1] - values[interval]) / seconds : 0;
    return rate <= SL_VALUE_MAX ? rate : 0;
}

/* Adds a curve of the rates, shifted by `offset` seconds. */
static void add_curve(sl_page *page, sl_curves *curves, const char *name, const sl_series *series,
                      size_t column, double offset) {
    sl_curve *curve = sl_page_curve(page, curves, name, series->intervals);
    if (!curve)
        return;
    for (size_t i = 0; i <= series->intervals; i++)
        curve->x[i] = series->borders[i] + offset;
    for (size_t i = 0; i < series->intervals; i++)
        curve->y[i] = sl_series_rate(series, column, i);
}

/* The mean length of an interval as text. */
static const char *step_of(sl_page *page, const sl_series *series) {
    char human[SL_HUMAN_ROOM];
    double span = series->intervals ? series->borders[series->intervals] : 0;
    return sl_page_text(
        page, "%s",
        sl_human_seconds(series->intervals ? span / (double)series->intervals : 0, human));
}

/* ---- totals ---- */

static double documents_of(const bson_t *record) {
    return sl_look_documents(record, "accounting");
}

/* Records that the parser or the server rejected; NAN if unknown. */
static double rejects_of(const bson_t *record) {
    return sl_look_number(record, "accounting.rejectedByParser") +
           sl_look_amount(record, "accounting.rejectedByServer", 0);
}

/* How long the workers of a load ran; of older records the load phase. */
static double load_seconds(const bson_t *record) {
    return sl_look_amount(record, "accounting.loadSeconds",
                          sl_section_phase_seconds(record, "phases", SL_PHASE_LOAD));
}

/* The documents of the last run, without those of runs that it resumed; NAN if unknown. */
static double new_documents(const bson_t *record) {
    double earlier = sl_look_documents(record, "accounting.earlierRuns");
    return documents_of(record) - (isnan(earlier) ? 0 : earlier);
}

/* These per second of the load phase; NAN if unknown. */
static double rate_of(const bson_t *record) {
    double seconds = load_seconds(record), documents = new_documents(record);
    return seconds > 0 && documents >= 0 ? documents / seconds : NAN;
}

/* Has the load found most of its documents stored? Its rate is not that of a load. */
static bool was_stored(const bson_t *record) {
    return !sl_section_mode(record)->matches &&
           sl_look_amount(record, "accounting.alreadyStored", 0) > documents_of(record) / 2;
}

/* The documents of each outcome: "5,000 documents", "4,000 deleted, 12 not found". */
static const char *describe_outcomes(sl_page *page, const bson_t *record) {
    const sl_mode_row *mode = sl_section_mode(record);
    const char *all = "";
    const struct {
        const char *label, *path;
    } rows[] = {{mode->inserted, "accounting.inserted"},
                {mode->changed, "accounting.changed"},
                {mode->already_stored, "accounting.alreadyStored"}};
    if (!mode->matches)
        return sl_page_text(page, "%s document%s",
                            sl_section_number(page, documents_of(record), SL_UNIT_COUNT),
                            documents_of(record) == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].label)
            all = sl_page_text(page, "%s%s%s %s", all, *all ? ", " : "",
                               sl_section_value(page, record, rows[i].path, SL_UNIT_COUNT),
                               rows[i].label);
    }
    return all;
}

/* Adds a curve of the documents per second of each record, which begins at its offset. */
static void show_rates(sl_page *page, const sl_records *records, const char *title,
                       const char *caption, double (*offset)(const sl_records *, size_t index)) {
    sl_curves *curves = NULL;
    for (size_t i = 0; i < records->count && i < CURVES_MAX; i++) {
        sl_series series = sl_series_read(page, records->items[i], FEW_INTERVALS);
        if (series.intervals == 0)
            continue;
        if (!curves)
            curves = sl_page_add_curves(page, title, caption, "documents per second", SL_UNIT_COUNT,
                                        false);
        add_curve(page, curves, records->names[i], &series, SL_SERIES_DOCUMENTS,
                  offset ? offset(records, i) : 0);
    }
}

/* ---- a loader's share of a load ---- */

#define PARTS_OF_LOAD_MAX 9999

typedef struct load_share {
    const char *text;     /* "1/4", or the names of shards; NULL: all of the load */
    bool is_part;         /* not a list of shards */
    unsigned part, parts; /* K and N of "K/N", or 0 */
} load_share;

/* Parts have numbers, because --part also accepts 01/4. */
static load_share share_of(const bson_t *record) {
    load_share share = {.text = sl_look_text(record, "options.part")};
    share.is_part = share.text != NULL;
    if (!share.is_part)
        share.text = sl_look_text(record, "options.only-shards");
    else if (sscanf(share.text, "%8u/%8u", &share.part, &share.parts) != 2 ||
             share.parts > PARTS_OF_LOAD_MAX)
        share.part = share.parts = 0;
    return share;
}

/* ---- one load: the verdict ---- */

static void add_verdict(sl_page *page, const bson_t *record) {
    double rate = rate_of(record);
    sl_tone tone;
    const char *words = sl_section_exit(record, sl_look_number(record, "exitCode"), &tone);
    const char *share = share_of(record).text;
    if (tone == SL_TONE_GOOD && share) /* the other loaders' shares have separate records */
        words = sl_page_text(page, "This loader's share (%s) was %s", share,
                             sl_section_mode(record)->done);
    const char *speed =
        was_stored(record) ? sl_page_text(page, ", of which %s were stored before",
                                          sl_section_value(page, record, "accounting.alreadyStored",
                                                           SL_UNIT_COUNT))
        : rate >= 0        ? sl_page_text(page, " (%s per second while %s)",
                                          sl_section_number(page, rate, SL_UNIT_COUNT),
                                          sl_section_mode(record)->doing)
                           : "";
    const double earlier = sl_look_amount(record, "accounting.earlierRuns.records", 0);
    const char *before = earlier > 0 ? sl_page_text(page, " (%s of the records in earlier runs)",
                                                    sl_section_number(page, earlier, SL_UNIT_COUNT))
                                     : "";
    double took = sl_section_phase_seconds(record, "phases", NULL);
    int holds = sl_look_truth(record, "accounting.addsUp");
    int verified = sl_look_truth(record, "verification.ok");
    if (holds == 0)
        tone = SL_TONE_BAD;
    sl_page_add_text(page, SL_BLOCK_VERDICT, tone,
                     "%s: %s%s in %s%s. The totals of the records %s.%s", words,
                     describe_outcomes(page, record), before,
                     sl_section_number(page, took, SL_UNIT_SECONDS), speed,
                     holds == 1   ? "add up"
                     : holds == 0 ? "DO NOT ADD UP"
                                  : "are missing",
                     verified == 1   ? " The counts of the ranges on the cluster are right."
                     : verified == 0 ? " THE COUNTS OF THE RANGES ON THE CLUSTER ARE WRONG."
                                     : "");
}

/* Bytes per second of the load phase, without those of runs that were resumed; NAN: unknown. */
static double speed_of(const bson_t *record, const char *total, const char *earlier) {
    double seconds = load_seconds(record);
    double bytes = sl_look_number(record, total) - sl_look_amount(record, earlier, 0);
    return seconds > 0 && bytes > 0 ? bytes / seconds : NAN;
}

static double text_speed(const bson_t *record) {
    return speed_of(record, "accounting.textBytes", "accounting.earlierRuns.textBytes");
}

static double bson_speed(const bson_t *record) {
    return speed_of(record, "accounting.bsonBytes", "none");
}

static void add_figures(sl_page *page, const bson_t *record) {
    const sl_mode_row *mode = sl_section_mode(record);
    const sl_figure facts[] = {
        {mode->documents, .value = documents_of, .always = true},
        {sl_page_text(page, "documents/s while %s", mode->doing), .value = rate_of, .always = true},
        {"text/s", .value = text_speed, .unit = SL_UNIT_BYTES, .suffix = "/s"},
        {"BSON/s", .value = bson_speed, .unit = SL_UNIT_BYTES, .suffix = "/s"},
        {"text", "accounting.textBytes", .unit = SL_UNIT_BYTES},
        {"BSON", "accounting.bsonBytes", .unit = SL_UNIT_BYTES},
        {"rejects", .value = rejects_of, .always = true},
        {0},
    };
    sl_section_facts(page, record, facts);
}

/* ---- one load: over time ---- */

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
    const char *step = step_of(page, series);
    sl_curves *curves = sl_page_add_curves(
        page, layers ? "Documents per second, stacked by shard" : "Documents per second",
        sl_page_text(page,
                     "Acknowledged by the server; each step is the mean of %s. At the top are the "
                     "phases of the run. %sA gap is a time when nothing was acknowledged.",
                     step, layers ? "With an even load all layers have the same height. " : ""),
        "documents per second", SL_UNIT_COUNT, layers);
    double begun = add_bands(page, curves, record);
    if (!layers)
        add_curve(page, curves, "documents", series, SL_SERIES_DOCUMENTS, begun);
    for (size_t i = 0; layers && i < series->shards; i++)
        add_curve(page, curves, shard_name(page, record, i), series, shard_column(series, i),
                  begun);
}

/* For many shards: adds a grid with a row per shard, over time. */
static void show_shards_over_time(sl_page *page, const bson_t *record, const sl_series *series) {
    if (series->shards <= LAYERS_MAX)
        return;
    size_t per = (series->intervals + GRID_COLUMNS_MAX - 1) / GRID_COLUMNS_MAX;
    size_t columns = (series->intervals + per - 1) / per;
    sl_grid *grid = sl_page_add_grid(
        page, "Documents per second on each shard",
        "One row for each shard, time to the right; the stronger the colour, the higher the rate. "
        "A faint row is a slow shard, a faint column a time when all shards were slow.",
        series->shards, columns);
    if (!grid)
        return;
    grid->dense = true;
    grid->row_name = "shard";
    grid->seconds = series->borders[series->intervals];
    for (size_t row = 0; row < series->shards; row++) {
        const double *values = series->columns[shard_column(series, row)];
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
            add_curve(page, curves, names[i], series, i, begun);
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
        sl_curve *curve =
            sl_page_curve(page, curves, sl_stage_name_of(series->stage_keys[k]), series->intervals);
        for (size_t i = 0; curve && i <= series->intervals; i++)
            curve->x[i] = series->borders[i];
        for (size_t i = 0; curve && i < series->intervals; i++) {
            double all = 0;
            for (size_t other = 0; other < series->stages; other++)
                all += sl_series_rate(series, stage_column(other), i);
            double one = sl_series_rate(series, stage_column(k), i);
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

/* ---- one load: latencies and tables ---- */

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

/* The rejects by reason, as the summary of the load shows them. */
static void show_rejects(sl_page *page, const bson_t *record) {
    static const sl_figure columns[] = {
        {"rejects", "count", .unit = SL_UNIT_COUNT},
        {"column", "column", .left = sl_cell_text},
        {"reason", "reason", .left = sl_cell_text},
        {"first in", "firstPlace", .left = sl_cell_text},
        {"first reason", "firstReason", .left = sl_cell_text},
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

static const sl_figure shard_columns[] = {
    {"shard", "shard", .left = sl_cell_text},
    {"documents", "documents", .unit = SL_UNIT_COUNT},
    {"data", "dataBytes", .unit = SL_UNIT_BYTES},
    {"stored", "storageBytes", .unit = SL_UNIT_BYTES},
    {"indexes", "indexBytes", .unit = SL_UNIT_BYTES},
    {0},
};
static const sl_figure source_columns[] = {
    {"source", "path", .left = sl_cell_text},
    {"stored", "storedBytes", .unit = SL_UNIT_BYTES},
    {"records generated", "records", .unit = SL_UNIT_COUNT},
    {"number", "number", .unit = SL_UNIT_COUNT},
    {"documents", "documents", .unit = SL_UNIT_COUNT},
    {0},
};
static const sl_array shard_table = {"shards", "Shards", .columns = shard_columns, .sparse = true};
static const sl_array source_table = {"sources", "Sources", .columns = source_columns,
                                      .sparse = true};

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
    sl_section_table(page, record, &shard_table);
    sl_section_table(page, record, &source_table);
    sl_section_setting(page, record);
}

/* ---- several loaders of one load: which records belong together ---- */

/* Shares that are missing, or that several records have. */
#define LISTED_MAX 20
/* More fields of the totals are ignored. */
#define FIELDS_MAX 64

static bool same_text(const bson_t *a, const bson_t *b, const char *path) {
    const char *left = sl_look_text(a, path), *right = sl_look_text(b, path);
    return left && right && strcmp(left, right) == 0;
}

static bool same_sources(const bson_t *a, const bson_t *b) {
    sl_walk left = sl_walk_start(a, "sources"), right = sl_walk_start(b, "sources");
    while (sl_walk_next(&left)) {
        if (!sl_walk_next(&right))
            return false;
        const char *one = sl_look_text(&left.item, "fingerprint");
        const char *other = sl_look_text(&right.item, "fingerprint");
        if (!one != !other || (one && strcmp(one, other) != 0))
            return false;
    }
    return !sl_walk_next(&right);
}

bool sl_sections_are_shared(const sl_records *records) {
    const bson_t *first = records->items[0];
    load_share share = share_of(first);
    for (size_t i = 0; i < records->count && share.text; i++) {
        const bson_t *one = records->items[i];
        load_share other = share_of(one);
        if (!other.text || share.is_part != other.is_part || share.parts != other.parts ||
            !same_text(first, one, "options.db") || !same_text(first, one, "options.collection") ||
            !same_sources(first, one))
            return false;
    }
    return share.text && records->count > 1;
}

/* The number of records with this part or, if `part` is 0, whose list contains this shard. */
static size_t holders(const sl_records *records, const char *shard, unsigned part) {
    size_t found = 0;
    for (size_t i = 0; i < records->count; i++) {
        load_share share = share_of(records->items[i]);
        found += part > 0 ? share.parts > 0 && share.part == part
                          : sl_list_has(share.text, ',', sl_text_of(shard));
    }
    return found;
}

/* The shares that no record has or, `several`, that more than one has. "" if there are none. */
static const char *shares(sl_page *page, const sl_records *records, bool several) {
    const bson_t *first = records->items[0];
    unsigned parts = share_of(first).parts;
    const char *all = "";
    unsigned listed = 0;
    char part[24];
    sl_walk walk = sl_walk_start(first, "topology");
    for (unsigned k = 1; parts ? k <= parts : sl_walk_next(&walk); k++) {
        const char *share = parts ? part : sl_look_text(&walk.item, "shard");
        snprintf(part, sizeof part, "%u/%u", k, parts);
        size_t count = share ? holders(records, share, parts > 0 ? k : 0) : 1;
        if ((several ? count <= 1 : count > 0) || listed > LISTED_MAX)
            continue;
        all = sl_page_text(page, "%.1900s%s%.90s", all, *all ? ", " : "",
                           listed++ < LISTED_MAX ? share : "and more");
    }
    return all;
}

/* ---- several loaders of one load: all together ---- */

/* When a loader did its load phase, in seconds since 1970. */
typedef struct span {
    double started, begin, end, ended;
} span;

static span span_of(const bson_t *record) {
    span found = {.started = sl_look_amount(record, "startedAt", 0) / 1e3};
    double now = found.started;
    found.begin = found.end = now;
    for (sl_walk walk = sl_walk_start(record, "phases"); sl_walk_next(&walk);) {
        const char *name = sl_look_text(&walk.item, "name");
        bool loading = name && strcmp(name, SL_PHASE_LOAD) == 0;
        if (loading)
            found.begin = now;
        now += sl_look_amount(&walk.item, "seconds", 0);
        if (loading)
            found.end = now;
    }
    found.ended = now;
    return found;
}

static span span_of_all(const sl_records *records) {
    span all = span_of(records->items[0]);
    for (size_t i = 1; i < records->count; i++) {
        span one = span_of(records->items[i]);
        all.started = one.started < all.started ? one.started : all.started;
        all.begin = one.begin < all.begin ? one.begin : all.begin;
        all.end = one.end > all.end ? one.end : all.end;
        all.ended = one.ended > all.ended ? one.ended : all.ended;
    }
    return all;
}

/* The common verdict of all records. */
typedef struct verdict {
    double documents, loaded, rejects;
    bool complete, failed, interrupted, holds, counted, miscounted;
} verdict;

static verdict judge(const sl_records *records) {
    verdict all = {.complete = true, .holds = true};
    for (size_t i = 0; i < records->count; i++) {
        const bson_t *one = records->items[i];
        double code = sl_look_number(one, "exitCode");
        double documents = documents_of(one), loaded = new_documents(one), bad = rejects_of(one);
        int verified = sl_look_truth(one, "verification.ok");
        all.documents += documents >= 0 ? documents : 0;
        all.loaded += loaded >= 0 ? loaded : 0;
        all.rejects += bad >= 0 ? bad : 0;
        all.interrupted = all.interrupted || code == 130;
        all.complete = all.complete && (code == 0 || code == 1);
        all.failed = all.failed || !(code == 0 || code == 1 || code == 130);
        all.holds = all.holds && sl_look_truth(one, "accounting.addsUp") == 1;
        all.counted = all.counted || verified == 1;
        all.miscounted = all.miscounted || verified == 0;
    }
    return all;
}

static void add_common_verdict(sl_page *page, const sl_records *records) {
    const sl_mode_row *mode = sl_section_mode(records->items[0]);
    verdict all = judge(records);
    sl_tone tone;
    span time = span_of_all(records);
    const char *missing = shares(page, records, false);
    const char *kind = share_of(records->items[0]).parts ? "part" : "shard";
    double seconds = time.end - time.begin;
    const char *speed =
        seconds > 0 && all.loaded > 0
            ? sl_page_text(page, " at %s per second",
                           sl_section_number(page, all.loaded / seconds, SL_UNIT_COUNT))
            : "";
    const char *words = all.failed        ? "A loader has failed"
                        : all.interrupted ? "A loader was interrupted, to be resumed"
                        : *missing        ? "Records of some loaders are missing"
                                   : sl_section_exit(records->items[0], all.rejects > 0, &tone);
    bool bad = all.failed || !all.holds || all.miscounted;
    bool doubtful = !all.complete || *missing || all.rejects > 0;
    sl_page_add_text(page, SL_BLOCK_VERDICT,
                     bad        ? SL_TONE_BAD
                     : doubtful ? SL_TONE_WARNING
                                : SL_TONE_GOOD,
                     "%s: %zu loaders %s %s documents in %s%s. The totals of %s.%s%s%s%s%s", words,
                     records->count, strcmp(mode->done, "loaded") == 0 ? "stored" : mode->done,
                     sl_section_number(page, all.documents, SL_UNIT_COUNT),
                     sl_section_number(page, time.ended - time.started, SL_UNIT_SECONDS), speed,
                     all.holds ? "all loaders add up" : "a loader DO NOT ADD UP",
                     all.miscounted ? " THE COUNTS OF THE RANGES ON THE CLUSTER ARE WRONG."
                     : all.counted  ? " The counts of the ranges on the cluster are right."
                                    : "",
                     *missing ? " No record for " : "", *missing ? kind : "", *missing ? " " : "",
                     *missing ? sl_page_text(page, "%s.", missing) : "");
}

static const char *share_cell(sl_page *page, const bson_t *record, const char *path) {
    (void)page, (void)path;
    return share_of(record).text;
}

/* Adds a table with a row for each record; the first column has their names. */
static void list_records(sl_page *page, const sl_records *records, const char *title,
                         const char *name, const sl_figure *columns) {
    sl_figure all[SL_COLUMNS_MAX] = {{name, .left = sl_cell_text}};
    for (size_t i = 0; columns[i].title && i + 2 < SL_COLUMNS_MAX; i++)
        all[i + 1] = columns[i];
    sl_page_table *table = sl_section_columns(page, title, all);
    for (size_t i = 0; i < records->count && i < SL_ROWS_MAX; i++) {
        sl_page_cell(page, table, records->names[i]);
        sl_section_row(page, table, records->items[i], columns);
    }
    sl_section_more(page, table, records->count);
}

static void show_loaders(sl_page *page, const sl_records *records) {
    static const sl_figure columns[] = {
        {"share", .left = share_cell},
        {"host", "client.host", .left = sl_cell_text},
        {"documents", .value = documents_of},
        {"documents/s", .value = rate_of},
        {"load phase", .unit = SL_UNIT_SECONDS, .value = load_seconds},
        {"rejects", .value = rejects_of},
        {"batches sent again", "accounting.retries", .unit = SL_UNIT_COUNT},
        {"exit", "exitCode", .unit = SL_UNIT_COUNT},
        {0},
    };
    list_records(page, records, "The loaders", "loader", columns);
}

static double begin_of(const sl_records *records, size_t index) {
    return span_of(records->items[index]).begin - span_of_all(records).begin;
}

static void show_times(sl_page *page, const sl_records *records) {
    double started = span_of_all(records).started;
    show_rates(page, records, "Documents per second of each loader",
               "On one time axis, by the clocks of the loaders' machines. At most 12 are drawn.",
               begin_of);
    sl_strips *strips = sl_page_add_strips(page, "Phases of each loader",
                                           "From the start of the first loader.", SL_UNIT_SECONDS);
    for (size_t i = 0; i < records->count && i < SL_ROWS_MAX; i++) {
        sl_strip *strip = sl_page_strip(page, strips, records->names[i]);
        sl_page_part(page, strips, strip, "before its start",
                     span_of(records->items[i]).started - started);
        sl_section_phase_parts(page, strips, strip, records->items[i], "phases");
    }
}

/* Adds the sums of all records' totals. */
static void show_totals(sl_page *page, const sl_records *records) {
    bson_t merged, section;
    unsigned fields = 0;
    bson_init(&merged);
    BSON_APPEND_DOCUMENT_BEGIN(&merged, "accounting", &section);
    for (size_t i = 0; i < records->count; i++) {
        bson_t account;
        bson_iter_t at;
        bool more = sl_look_inside(records->items[i], "accounting", &account) &&
                    bson_iter_init(&at, &account);
        while (more && bson_iter_next(&at) && fields < FIELDS_MAX) {
            const char *key = bson_iter_key(&at);
            double sum = 0;
            if (!(sl_value_number(&at) >= 0) || bson_has_field(&section, key) || strchr(key, '.'))
                continue;
            for (size_t k = i; k < records->count; k++) {
                bson_t other;
                if (sl_look_inside(records->items[k], "accounting", &other))
                    sum += sl_look_amount(&other, key, 0);
            }
            BSON_APPEND_DOUBLE(&section, key, sum);
            fields++;
        }
    }
    BSON_APPEND_UTF8(&section, "mode", sl_section_mode(records->items[0])->name);
    bson_append_document_end(&merged, &section);
    sl_section_accounting(page, &merged);
    bson_destroy(&merged);
}

/* The shards as the loader that ended last has found them. */
static void show_shards(sl_page *page, const sl_records *records) {
    const bson_t *last = records->items[0];
    for (size_t i = 1; i < records->count; i++) {
        if (span_of(records->items[i]).ended > span_of(last).ended)
            last = records->items[i];
    }
    static const sl_array at_end = {"shards", "Shards, when the last loader ended",
                                    .columns = shard_columns};
    sl_section_table(page, last, &at_end);
}

void sl_sections_shared(sl_page *page, const sl_records *records) {
    const char *twice = shares(page, records, true);
    if (*twice)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD,
                         "Several records belong to %s, so the sums below count some documents "
                         "twice: give one record for each share.",
                         twice);
    add_common_verdict(page, records);
    show_loaders(page, records);
    show_times(page, records);
    sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "Totals of all loaders");
    show_totals(page, records);
    show_shards(page, records);
    sl_section_setting(page, records->items[0]);
}

/* ---- records side by side ---- */

/* The maximum number of records on a page. */
#define COLUMNS_MAX 12

static double all_seconds(const bson_t *record) {
    return sl_section_phase_seconds(record, "phases", NULL);
}
static double slow_batch(const bson_t *record) {
    if (sl_look_amount(record, "batchMilliseconds.batches", 0) < SL_SAMPLES_FOR_P99)
        return NAN;
    return sl_look_number(record, "batchMilliseconds.p99");
}
static double sum_of(const bson_t *record, const char *path) {
    double sum = NAN;
    for (sl_walk walk = sl_walk_start(record, "shards"); sl_walk_next(&walk);)
        sum = (isnan(sum) ? 0 : sum) + sl_look_amount(&walk.item, path, 0);
    return sum;
}
static double stored_bytes(const bson_t *record) {
    return sum_of(record, "storageBytes");
}
static double index_bytes(const bson_t *record) {
    return sum_of(record, "indexBytes");
}
static double drill_share(const bson_t *record) {
    return sl_look_amount(record, "sample", 1);
}
static double drill_rate(const bson_t *record) {
    bson_t load;
    return sl_look_inside(record, "load", &load) ? rate_of(&load) : NAN;
}

static const sl_figure load_figures[] = {
    {"documents", .value = documents_of},
    {"documents/s while loading", .value = rate_of},
    {"load phase", .unit = SL_UNIT_SECONDS, .value = load_seconds},
    {"all phases", .unit = SL_UNIT_SECONDS, .value = all_seconds},
    {"BSON sent", "accounting.bsonBytes", .unit = SL_UNIT_BYTES},
    {"batch, median", "batchMilliseconds.p50", .unit = SL_UNIT_MILLISECONDS},
    {"batch, 99 %", .unit = SL_UNIT_MILLISECONDS, .value = slow_batch},
    {"batches sent again", "accounting.retries", .unit = SL_UNIT_COUNT},
    {"rejects", .value = rejects_of},
    {"stored on the shards", .unit = SL_UNIT_BYTES, .value = stored_bytes},
    {"indexes on the shards", .unit = SL_UNIT_BYTES, .value = index_bytes},
    {0},
};
static const sl_figure reload_figures[] = {
    {"share of the data", .unit = SL_UNIT_SHARE, .value = drill_share},
    {"all phases", .unit = SL_UNIT_SECONDS, .value = all_seconds},
    {"first correct answer after", "firstCorrectQuerySeconds", .unit = SL_UNIT_SECONDS},
    {"all data, predicted", "predicted.seconds", .unit = SL_UNIT_SECONDS},
    {"documents", .value = documents_of},
    {"documents/s while loading", .value = drill_rate},
    {0},
};

/* "1.25"; "" if it is unknown. */
static const char *ratio_text(sl_page *page, double value, double first) {
    if (!(value >= 0) || !(first > 0))
        return "";
    return sl_page_text(page, value / first < 0.095 ? "%.2g" : "%.2f", value / first);
}

/* Adds a table with a column for each run, followed by its ratio to the first run. */
static sl_page_table *comparison(sl_page *page, const sl_records *records, const char *title) {
    const char *titles[2 * COLUMNS_MAX];
    char left[2 * COLUMNS_MAX + 1];
    size_t columns = 0;
    memset(left, 'r', sizeof left);
    left[0] = 'l';
    titles[columns++] = "";
    for (size_t i = 0; i < records->count; i++) {
        titles[columns++] = records->names[i];
        if (i > 0)
            titles[columns++] = "ratio to first";
    }
    return sl_page_add_table(page, title, titles, left, columns);
}

static void compare_row(sl_page *page, sl_page_table *table, const char *title,
                        const double *values, size_t count, sl_unit unit) {
    sl_page_cell(page, table, title);
    for (size_t i = 0; i < count; i++) {
        sl_page_cell(page, table, sl_section_number(page, values[i], unit));
        if (i > 0)
            sl_page_cell(page, table, ratio_text(page, values[i], values[0]));
    }
}

static void compare_figures(sl_page *page, const sl_records *records, const sl_figure *figure) {
    double values[COLUMNS_MAX];
    sl_page_table *table = comparison(page, records, "Comparison");
    for (; figure->title; figure++) {
        bool known = false;
        for (size_t i = 0; i < records->count; i++) {
            values[i] = sl_section_figure(records->items[i], figure);
            known = known || !isnan(values[i]);
        }
        if (known)
            compare_row(page, table, figure->title, values, records->count, figure->unit);
    }
}

static double query_median(const bson_t *record, const char *name) {
    for (sl_walk walk = sl_walk_start(record, "queries"); sl_walk_next(&walk);) {
        const char *one = sl_look_text(&walk.item, "name");
        char why[SL_UNSOUND_ROOM];
        if (one && strcmp(one, name) == 0)
            return sl_look_unsound(&walk.item, why) ? NAN : sl_look_number(&walk.item, "medianMs");
    }
    return NAN;
}

/* Compares the queries of the first drill with those of the other drills. A median of a query whose
 * answer is wrong is not shown. */
static void compare_queries(sl_page *page, const sl_records *records) {
    double values[COLUMNS_MAX];
    size_t row = 0;
    if (sl_walk_count(records->items[0], "queries") == 0)
        return;
    sl_page_table *table = comparison(page, records, "Queries, medians");
    for (sl_walk walk = sl_walk_start(records->items[0], "queries");
         sl_walk_next(&walk) && row < SL_ROWS_MAX; row++) {
        const char *name = sl_look_text(&walk.item, "name");
        for (size_t i = 0; i < records->count; i++)
            values[i] = name ? query_median(records->items[i], name) : NAN;
        compare_row(page, table, name, values, records->count, SL_UNIT_MILLISECONDS);
    }
}

/* ---- options that differ ---- */

/* Has one of the first `count` records this option? */
static bool is_known(const sl_records *records, size_t count, const char *name) {
    bson_iter_t at;
    for (size_t i = 0; i < count; i++) {
        if (sl_option_find(records->items[i], name, &at))
            return true;
    }
    return false;
}

/* Adds a table of the options that differ. Each record may have options that others lack, since the
 * options depend on the version. */
static void compare_options(sl_page *page, const sl_records *records) {
    const char *titles[COLUMNS_MAX + 1] = {"option"};
    sl_page_table *table = NULL;
    size_t rows = 0;
    for (size_t i = 0; i < records->count; i++)
        titles[i + 1] = records->names[i];
    for (size_t from = 0; from < records->count; from++) {
        bson_t options;
        bson_iter_t at;
        if (!sl_look_inside(records->items[from], "options", &options) ||
            !bson_iter_init(&at, &options))
            continue;
        while (bson_iter_next(&at)) {
            const char *name = bson_iter_key(&at);
            if (!sl_option_matters(name) || is_known(records, from, name))
                continue;
            bool differs = false;
            for (size_t i = 1; i < records->count; i++)
                differs |= sl_option_differs(records->items[0], records->items[i], name);
            if (!differs || rows++ >= SL_ROWS_MAX)
                continue;
            if (!table)
                table = sl_page_add_table(page, "Options that differ", titles, "lllllllllllll",
                                          records->count + 1);
            sl_page_cell(page, table, name);
            for (size_t i = 0; i < records->count; i++) {
                bson_iter_t given_at;
                const bool given = sl_option_find(records->items[i], name, &given_at);
                const char *text = given ? sl_section_words(page, &given_at) : NULL;
                sl_page_cell(page, table, text ? text : "");
            }
        }
    }
    sl_section_more(page, table, rows);
    if (rows == 0)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN, "All runs had the same options.");
}

static const char *server_cell(sl_page *page, const bson_t *record, const char *path) {
    (void)path;
    return sl_page_text(page, "%.40s %.80s", sl_look_string(record, "server.deployment"),
                        sl_look_string(record, "server.version"));
}

static void list_endings(sl_page *page, const sl_records *records) {
    static const sl_figure columns[] = {
        {"started (UTC)", "startedAt", .left = sl_section_time},
        {"host", "client.host", .left = sl_cell_text},
        {"server", .left = server_cell},
        {"exit", "exitCode", .unit = SL_UNIT_COUNT},
        {0},
    };
    list_records(page, records, "The runs", "run", columns);
}

static sl_records limited(sl_page *page, const sl_records *records) {
    sl_records few = *records;
    if (records->count > COLUMNS_MAX) {
        few.count = COLUMNS_MAX;
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_WARNING,
                         "Of %zu records the first %d are shown.", records->count, COLUMNS_MAX);
    }
    return few;
}

/* ---- the verdict ----
 *
 * A load is one measurement; how much its rate varies is estimated from ten parts of equal length.
 * Their mean and standard error give an interval for the ratio of two rates (Student's t, relative
 * errors added in squares). The interval does not include the variation between runs, which the
 * text states. */

#define PARTS 10
#define PARTS_LEAST 5

typedef struct spread {
    double relative; /* standard error over mean; NAN: too few parts */
    size_t parts;
} spread;

static spread spread_of(sl_page *page, const bson_t *record) {
    sl_series series = sl_series_read(page, record, PARTS);
    double sum = 0, squares = 0;
    size_t count = series.intervals;
    for (size_t i = 0; i < count; i++)
        sum += sl_series_rate(&series, SL_SERIES_DOCUMENTS, i);
    double mean = count ? sum / (double)count : 0;
    for (size_t i = 0; i < count; i++) {
        double off = sl_series_rate(&series, SL_SERIES_DOCUMENTS, i) - mean;
        squares += off * off;
    }
    if (count < PARTS_LEAST || !(mean > 0))
        return (spread){NAN, count};
    double deviation = sqrt(squares / (double)(count - 1));
    return (spread){deviation / sqrt((double)count) / mean, count};
}

/* Did the load or drill complete? A load, perhaps with rejects. */
static bool completed(const bson_t *record) {
    return sl_look_truth(record, "ended") >= 0 ? sl_look_drill_ended(record)
                                               : sl_look_amount(record, "exitCode", 0) <= 1;
}

/* Why a record cannot be compared; NULL: it can. */
static const char *flaw_of(sl_page *page, const bson_t *record) {
    if (!completed(record))
        return sl_page_text(page, "ended with exit code %.0f",
                            sl_look_amount(record, "exitCode", 0));
    return was_stored(record) ? "found most of its documents stored before" : NULL;
}

/* Can record `index` be compared with the first one? Writes the reason if not. */
static bool both_completed(sl_page *page, const sl_records *records, size_t index) {
    const char *first = flaw_of(page, records->items[0]);
    const char *flaw = first ? first : flaw_of(page, records->items[index]);
    if (flaw)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING, "%.200s is not compared: %s %s.",
                         records->names[index], first ? "the first run" : "it", flaw);
    return !flaw;
}

static void compare_with_first(sl_page *page, const sl_records *records, size_t index,
                               const spread *first) {
    const bson_t *record = records->items[index];
    double rate = rate_of(record), base = rate_of(records->items[0]);
    const char *name = records->names[index];
    if (!both_completed(page, records, index) || !(rate > 0) || !(base > 0))
        return;
    double ratio = rate / base;
    spread other = spread_of(page, record);
    if (isnan(first->relative) || isnan(other.relative)) {
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING,
                         "%.200s is not compared: it or the first run was too short to estimate "
                         "the uncertainty of its rate.",
                         name);
        return;
    }
    size_t parts = other.parts < first->parts ? other.parts : first->parts;
    double t = sl_student_quantile(SL_95_PERCENT, (double)(parts > PARTS ? PARTS : parts) - 1);
    double half =
        ratio * t * sqrt(first->relative * first->relative + other.relative * other.relative);
    double low = ratio - half > 0 ? ratio - half : 0, high = ratio + half;
    bool differs = low > 1 || high < 1;
    sl_page_add_text(page, SL_BLOCK_VERDICT,
                     !differs    ? SL_TONE_PLAIN
                     : ratio > 1 ? SL_TONE_GOOD
                                 : SL_TONE_BAD,
                     "%.200s loaded %s: %.2f times the rate of the first run (95 %%: %.2f to "
                     "%.2f).",
                     name,
                     !differs    ? "at a rate that does not differ significantly"
                     : ratio > 1 ? "faster"
                                 : "more slowly",
                     ratio, low, high);
}

static void compare_rates(sl_page *page, const sl_records *records) {
    spread first = spread_of(page, records->items[0]);
    for (size_t i = 1; i < records->count; i++)
        compare_with_first(page, records, i, &first);
    sl_page_add_text(
        page, SL_BLOCK_TEXT, SL_TONE_PLAIN,
        "The ranges come from the variation of the rate within each run. Different runs also vary: "
        "before a decision, repeat each run and compare runs with the same settings.");
}

static void compare_times(sl_page *page, const sl_records *records) {
    double first = sl_section_phase_seconds(records->items[0], "phases", NULL);
    double share = sl_look_amount(records->items[0], "sample", 1);
    for (size_t i = 1; i < records->count && first > 0; i++) {
        if (!both_completed(page, records, i))
            continue;
        double seconds = sl_section_phase_seconds(records->items[i], "phases", NULL);
        bool same = fabs(sl_look_amount(records->items[i], "sample", 1) - share) < 1e-9;
        if (seconds > 0 && same)
            sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_PLAIN,
                             "%.200s took %.2f times as long as the first reload. The uncertainty "
                             "is not known, because each side is a single reload.",
                             records->names[i], seconds / first);
    }
}

/* ---- the pages ---- */

void sl_sections_loads(sl_page *page, const sl_records *records) {
    sl_records few = limited(page, records);
    double first = rate_of(few.items[0]);
    compare_rates(page, &few);
    list_endings(page, &few);
    sl_bars *bars = sl_page_add_bars(page, "Documents per second while loading",
                                     "The mean of the load phase of each run.", SL_UNIT_COUNT);
    for (size_t i = 0; i < few.count; i++) {
        double rate = rate_of(few.items[i]);
        const char *ratio = ratio_text(page, rate, first);
        sl_page_bar(page, bars, few.names[i], rate,
                    sl_page_text(page, "%s%s%s%s", sl_section_number(page, rate, SL_UNIT_COUNT),
                                 i && *ratio ? " (" : "", i ? ratio : "",
                                 i && *ratio ? " of the first)" : ""));
    }
    show_rates(page, &few, "Documents per second over time",
               "From the beginning of each run's load phase.", NULL);
    sl_strips *strips = sl_page_add_strips(page, "Phases", NULL, SL_UNIT_SECONDS);
    for (size_t i = 0; i < few.count; i++)
        sl_section_phase_strip(page, strips, few.items[i], "phases", few.names[i]);
    compare_figures(page, &few, load_figures);
    compare_options(page, &few);
}

void sl_sections_reloads(sl_page *page, const sl_records *records) {
    sl_records few = limited(page, records);
    compare_times(page, &few);
    list_endings(page, &few);
    sl_strips *strips = sl_page_add_strips(
        page, "The reloads",
        "From the empty target to the correct answers. The line is the recovery time objective "
        "of the first reload, if it has one. For a reload with a sample of the "
        "data, the prediction for all data and its range are shown.",
        SL_UNIT_SECONDS);
    for (size_t i = 0; i < few.count; i++)
        sl_section_drill_strip(page, strips, few.items[i], few.names[i]);
    sl_section_objective(page, strips, few.items[0]);
    compare_figures(page, &few, reload_figures);
    compare_queries(page, &few);
    compare_options(page, &few);
}
