/* SPDX-License-Identifier: Apache-2.0 */
/* Compares records of one kind: tables with a column per record and its ratio to the first record,
 * and the options that differ. */
#include "sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/estimate.h"

#include "lookup.h"

#include "scale.h"
#include "series.h"

/* The maximum number of records on a page. */
#define COLUMNS_MAX 12

typedef struct figure {
    const char *title;
    sl_unit unit;
    const char *path; /* of a number; or NULL, with a function: */
    double (*value)(const bson_t *record);
} figure;

static double all_seconds(const bson_t *record) {
    return sl_section_phase_seconds(record, "phases", NULL);
}
static double rejects(const bson_t *record) {
    return sl_look_number(record, "accounting.rejectedByParser") +
           sl_look_amount(record, "accounting.rejectedByServer", 0);
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
    return sl_look_inside(record, "load", &load) ? sl_section_rate(&load) : NAN;
}

static const figure load_figures[] = {
    {"documents", SL_UNIT_COUNT, .value = sl_section_documents},
    {"documents/s while loading", SL_UNIT_COUNT, .value = sl_section_rate},
    {"load phase", SL_UNIT_SECONDS, .value = sl_section_load_seconds},
    {"all phases", SL_UNIT_SECONDS, .value = all_seconds},
    {"BSON sent", SL_UNIT_BYTES, .path = "accounting.bsonBytes"},
    {"batch, median", SL_UNIT_MILLISECONDS, .path = "batchMilliseconds.p50"},
    {"batch, 99 %", SL_UNIT_MILLISECONDS, .value = slow_batch},
    {"batches sent again", SL_UNIT_COUNT, .path = "accounting.retries"},
    {"rejects", SL_UNIT_COUNT, .value = rejects},
    {"stored on the shards", SL_UNIT_BYTES, .value = stored_bytes},
    {"indexes on the shards", SL_UNIT_BYTES, .value = index_bytes},
};
static const figure reload_figures[] = {
    {"share of the data", SL_UNIT_SHARE, .value = drill_share},
    {"all phases", SL_UNIT_SECONDS, .value = all_seconds},
    {"first correct answer after", SL_UNIT_SECONDS, .path = "firstCorrectQuerySeconds"},
    {"all data, predicted", SL_UNIT_SECONDS, .path = "predicted.seconds"},
    {"documents", SL_UNIT_COUNT, .value = sl_section_documents},
    {"documents/s while loading", SL_UNIT_COUNT, .value = drill_rate},
};

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
            sl_page_cell(page, table, sl_section_ratio(page, values[i], values[0]));
    }
}

static void compare_figures(sl_page *page, const sl_records *records, const figure *figures,
                            size_t count) {
    double values[COLUMNS_MAX];
    sl_page_table *table = comparison(page, records, "Comparison");
    for (size_t row = 0; row < count; row++) {
        bool known = false;
        for (size_t i = 0; i < records->count; i++) {
            values[i] = figures[row].path ? sl_look_number(records->items[i], figures[row].path)
                                          : figures[row].value(records->items[i]);
            known = known || !isnan(values[i]);
        }
        if (!known)
            continue;
        compare_row(page, table, figures[row].title, values, records->count, figures[row].unit);
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

static const char *option_of(sl_page *page, const bson_t *record, const char *name) {
    bson_iter_t at;
    const char *text = sl_option_find(record, name, &at) ? sl_section_words(page, &at) : NULL;
    return text ? text : "";
}

/* Compares lists by all their items, because option_of returns only the first ones. */
static bool same_option(sl_page *page, const bson_t *left, const bson_t *right, const char *name) {
    bool lists, equal = sl_option_lists_equal(left, right, name, &lists);
    return lists ? equal : strcmp(option_of(page, left, name), option_of(page, right, name)) == 0;
}

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
                differs = differs || !same_option(page, records->items[0], records->items[i], name);
            if (!differs || rows++ >= SL_ROWS_MAX)
                continue;
            if (!table)
                table = sl_page_add_table(page, "Options that differ", titles, "lllllllllllll",
                                          records->count + 1);
            sl_page_cell(page, table, name);
            for (size_t i = 0; i < records->count; i++)
                sl_page_cell(page, table, option_of(page, records->items[i], name));
        }
    }
    sl_section_more(page, table, rows);
    if (rows == 0)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN, "All runs had the same options.");
}

static void list_endings(sl_page *page, const sl_records *records) {
    static const char *const titles[] = {"run", "started (UTC)", "host", "server", "exit"};
    sl_page_table *table = sl_page_add_table(page, "The runs", titles, "llllr", 5);
    for (size_t i = 0; i < records->count; i++) {
        sl_page_cell(page, table, records->names[i]);
        sl_page_cell(page, table, sl_section_time(page, records->items[i], "startedAt"));
        sl_page_cell(page, table, sl_look_text(records->items[i], "client.host"));
        const char *server = sl_look_text(records->items[i], "server.version");
        const char *deployment = sl_look_text(records->items[i], "server.deployment");
        sl_page_cell(
            page, table,
            sl_page_text(page, "%.40s %.80s", deployment ? deployment : "", server ? server : ""));
        sl_page_cell(page, table,
                     sl_section_value(page, records->items[i], "exitCode", SL_UNIT_COUNT));
    }
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

/* Can record `index` be compared with the first one? Writes the reason if not. */
static bool both_completed(sl_page *page, const sl_records *records, size_t index) {
    bool first = completed(records->items[0]);
    if (first && completed(records->items[index]))
        return true;
    sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING,
                     "%.200s is not compared: %s ended with exit code %.0f.", records->names[index],
                     first ? "it" : "the first run",
                     sl_look_amount(records->items[first ? index : 0], "exitCode", 0));
    return false;
}

static void compare_with_first(sl_page *page, const sl_records *records, size_t index,
                               const spread *first) {
    const bson_t *record = records->items[index];
    double rate = sl_section_rate(record), base = sl_section_rate(records->items[0]);
    const char *name = records->names[index];
    if (!both_completed(page, records, index) || !(rate > 0) || !(base > 0))
        return;
    double ratio = rate / base;
    spread other = spread_of(page, record);
    if (isnan(first->relative) || isnan(other.relative)) {
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING,
                         "%.200s loaded at %.2f times the rate of the first run. One of them was "
                         "too short to estimate the uncertainty.",
                         name, ratio);
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
                             "%.200s took %.2f times as long as the first drill. The uncertainty "
                             "is not known, because each side is a single drill.",
                             records->names[i], seconds / first);
    }
}

/* ---- the pages ---- */

void sl_sections_loads(sl_page *page, const sl_records *records) {
    sl_records few = limited(page, records);
    double first = sl_section_rate(few.items[0]);
    compare_rates(page, &few);
    list_endings(page, &few);
    sl_bars *bars = sl_page_add_bars(page, "Documents per second while loading",
                                     "The mean of the load phase of each run.", SL_UNIT_COUNT);
    for (size_t i = 0; i < few.count; i++) {
        double rate = sl_section_rate(few.items[i]);
        const char *ratio = sl_section_ratio(page, rate, first);
        sl_page_bar(page, bars, few.names[i], rate,
                    sl_page_text(page, "%s%s%s%s", sl_section_number(page, rate, SL_UNIT_COUNT),
                                 i && *ratio ? " (" : "", i ? ratio : "",
                                 i && *ratio ? " of the first)" : ""));
    }
    sl_curves *curves = NULL;
    for (size_t i = 0; i < few.count; i++) {
        sl_series series = sl_series_read(page, few.items[i], 120);
        if (series.intervals == 0)
            continue;
        if (!curves)
            curves = sl_page_add_curves(page, "Documents per second over time",
                                        "From the beginning of each run's load phase.",
                                        "documents per second", SL_UNIT_COUNT, false);
        sl_series_curve(page, curves, few.names[i], &series, SL_SERIES_DOCUMENTS, 0);
    }
    sl_strips *strips = sl_page_add_strips(page, "Phases", NULL, SL_UNIT_SECONDS);
    for (size_t i = 0; i < few.count; i++)
        sl_section_phase_strip(page, strips, few.items[i], "phases", few.names[i]);
    compare_figures(page, &few, load_figures, sizeof load_figures / sizeof load_figures[0]);
    compare_options(page, &few);
}

void sl_sections_reloads(sl_page *page, const sl_records *records) {
    sl_records few = limited(page, records);
    compare_times(page, &few);
    list_endings(page, &few);
    sl_strips *strips = sl_page_add_strips(
        page, "The drills",
        "From the empty target to the correct answers. The line is the objective "
        "of the first drill, if it has one. For a drill with a sample of the "
        "data, the prediction for all data and its range are shown.",
        SL_UNIT_SECONDS);
    for (size_t i = 0; i < few.count; i++)
        sl_section_drill_strip(page, strips, few.items[i], few.names[i]);
    sl_section_objective(page, strips, few.items[0]);
    compare_figures(page, &few, reload_figures, sizeof reload_figures / sizeof reload_figures[0]);
    compare_queries(page, &few);
    compare_options(page, &few);
}
