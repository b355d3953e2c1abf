/* SPDX-License-Identifier: Apache-2.0 */
/* Compares records of one kind: tables with a column per record and its ratio to the first record,
 * and the options that differ. */
#include "sections.h"

#include <stdio.h>
#include <string.h>

#include "lookup.h"

#include "scale.h"
#include "series.h"

/* The maximum number of records on a page. */
#define COLUMNS_MAX 12

typedef struct figure {
    const char *title;
    double (*value)(const bson_t *record);
    sl_unit unit;
} figure;

static double all_seconds(const bson_t *record) {
    return sl_section_phase_seconds(record, "phases", NULL);
}
static double rejects(const bson_t *record) {
    return sl_look_number(record, "accounting.rejectedByParser") +
           sl_look_amount(record, "accounting.rejectedByServer", 0);
}
static double bson_bytes(const bson_t *record) {
    return sl_look_number(record, "accounting.bsonBytes");
}
static double median_batch(const bson_t *record) {
    return sl_look_number(record, "batchMilliseconds.p50");
}
static double slow_batch(const bson_t *record) {
    if (sl_look_amount(record, "batchMilliseconds.batches", 0) < SL_SAMPLES_FOR_P99)
        return NAN;
    return sl_look_number(record, "batchMilliseconds.p99");
}
static double retries(const bson_t *record) {
    return sl_look_number(record, "accounting.retries");
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
static double first_answer(const bson_t *record) {
    return sl_look_number(record, "firstCorrectQuerySeconds");
}
static double predicted(const bson_t *record) {
    return sl_look_number(record, "predicted.seconds");
}
static double drill_share(const bson_t *record) {
    return sl_look_amount(record, "sample", 1);
}
static double drill_rate(const bson_t *record) {
    bson_t load;
    return sl_look_inside(record, "load", &load) ? sl_section_rate(&load) : NAN;
}

static const figure load_figures[] = {
    {"documents", sl_section_documents, SL_UNIT_COUNT},
    {"documents/s while loading", sl_section_rate, SL_UNIT_COUNT},
    {"load phase", sl_section_load_seconds, SL_UNIT_SECONDS},
    {"all phases", all_seconds, SL_UNIT_SECONDS},
    {"BSON sent", bson_bytes, SL_UNIT_BYTES},
    {"batch, median", median_batch, SL_UNIT_MILLISECONDS},
    {"batch, 99 %", slow_batch, SL_UNIT_MILLISECONDS},
    {"batches sent again", retries, SL_UNIT_COUNT},
    {"rejects", rejects, SL_UNIT_COUNT},
    {"stored on the shards", stored_bytes, SL_UNIT_BYTES},
    {"indexes on the shards", index_bytes, SL_UNIT_BYTES},
};
static const figure reload_figures[] = {
    {"share of the data", drill_share, SL_UNIT_SHARE},
    {"all phases", all_seconds, SL_UNIT_SECONDS},
    {"first correct answer after", first_answer, SL_UNIT_SECONDS},
    {"all data, predicted", predicted, SL_UNIT_SECONDS},
    {"documents", sl_section_documents, SL_UNIT_COUNT},
    {"documents/s while loading", drill_rate, SL_UNIT_COUNT},
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
            values[i] = figures[row].value(records->items[i]);
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
        if (one && strcmp(one, name) == 0)
            return sl_look_number(&walk.item, "medianMs");
    }
    return NAN;
}

/* Compares the queries of the first drill with those of the other drills. */
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
    sl_section_more(page, table, rows > SL_ROWS_MAX ? rows - SL_ROWS_MAX : 0);
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
                         sl_page_text(page, "Of %zu records the first %d are shown.",
                                      records->count, COLUMNS_MAX));
    }
    return few;
}

void sl_sections_loads(sl_page *page, const sl_records *records) {
    sl_records few = limited(page, records);
    double first = sl_section_rate(few.items[0]);
    sl_section_compare_rates(page, &few);
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
    sl_section_compare_times(page, &few);
    list_endings(page, &few);
    sl_strips *strips = sl_page_add_strips(
        page, "The drills",
        "From the empty target to the correct answers. The line is the objective "
        "of the first drill, if it has one. For a drill with a sample of the "
        "data, the prediction for all data and its range are shown.",
        SL_UNIT_SECONDS);
    for (size_t i = 0; i < few.count; i++)
        sl_section_drill_strip(page, strips, few.items[i], few.names[i]);
    double objective = sl_look_number(few.items[0], "objectiveSeconds");
    if (strips && objective > 0) {
        strips->limit = objective;
        strips->limit_name = sl_page_text(page, "objective: %s",
                                          sl_section_number(page, objective, SL_UNIT_SECONDS));
    }
    compare_figures(page, &few, reload_figures, sizeof reload_figures / sizeof reload_figures[0]);
    compare_queries(page, &few);
    compare_options(page, &few);
}
