/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of a tuning: a grid of threads and batch size for each combination of the other values,
 * the fastest settings in order, and the storage and speed of compressors. */
#include "sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lookup.h"

#include "scale.h"

#include "util/estimate.h"

#define GRIDS_MAX 24
#define SETTINGS_MAX 4000
#define AXIS_MAX 24
#define BEST_SHOWN 12

/* The values of a setting besides threads and batch size. */
static const char *const others[] = {"compressor", "clustered", "writeConcern", "route",
                                     "wireCompression"};
#define OTHERS (sizeof others / sizeof others[0])

typedef struct setting {
    double threads, batch_size;
    double rate, low, high;
    const char *others[OTHERS];
    const char *combination; /* the values of `others` that differ between settings, as text */
    const char *stopped;     /* why there are no more trials, or "" */
    size_t trials;
    size_t index;
} setting;

typedef struct settings {
    setting *items;
    size_t count;
    size_t left_out;          /* number of settings beyond SETTINGS_MAX */
    double best, recommended; /* indexes in the record */
    double maximum, minimum;  /* of the rates */
} settings;

static const char *value_of(sl_page *page, const bson_t *item, const char *name) {
    bson_iter_t at;
    const char *text = bson_iter_init_find(&at, item, name) ? sl_section_scalar(page, &at) : NULL;
    return text ? text : "";
}

static settings read_settings(sl_page *page, const bson_t *record) {
    settings all = {.best = sl_look_number(record, "best"),
                    .recommended = sl_look_number(record, "recommended"),
                    .minimum = INFINITY};
    size_t count = sl_walk_count(record, "settings"), index = 0;
    if (count > SETTINGS_MAX) {
        all.left_out = count - SETTINGS_MAX;
        count = SETTINGS_MAX;
    }
    all.items = sl_page_memory(page, (count + 1) * sizeof *all.items);
    for (sl_walk walk = sl_walk_start(record, "settings");
         all.items && all.count < count && sl_walk_next(&walk); index++) {
        setting *one = &all.items[all.count++];
        one->index = index;
        one->threads = sl_look_amount(&walk.item, "threads", 0);
        one->batch_size = sl_look_amount(&walk.item, "batchSize", 0);
        one->rate = sl_look_number(&walk.item, "rate");
        one->low = sl_look_number(&walk.item, "low");
        one->high = sl_look_number(&walk.item, "high");
        one->trials = sl_walk_count(&walk.item, "trials");
        const char *stopped = sl_look_text(&walk.item, "stopped");
        one->stopped = stopped ? stopped : "";
        for (size_t i = 0; i < OTHERS; i++)
            one->others[i] = value_of(page, &walk.item, others[i]);
        if (one->rate > all.maximum)
            all.maximum = one->rate;
        if (one->rate < all.minimum)
            all.minimum = one->rate;
    }
    return all;
}

/* A value as text that is clear without the name of its dimension. */
static const char *words_of(sl_page *page, size_t dimension, const char *value) {
    static const char *const kinds[OTHERS] = {"", "", "w:", "route ", "wire "};
    if (dimension == 0 && !*value)
        return "server's compressor";
    if (dimension == 1)
        return strcmp(value, "yes") == 0 || strcmp(value, "true") == 0 ? "clustered"
                                                                       : "not clustered";
    return sl_page_text(page, "%s%.60s", kinds[dimension], value);
}

/* Sets `combination`: the values that differ between settings. */
static void name_combinations(sl_page *page, settings *all) {
    bool differs[OTHERS] = {false};
    for (size_t i = 1; i < all->count; i++) {
        for (size_t k = 0; k < OTHERS; k++)
            differs[k] =
                differs[k] || strcmp(all->items[i].others[k], all->items[0].others[k]) != 0;
    }
    for (size_t i = 0; i < all->count; i++) {
        const char *text = "";
        for (size_t k = 0; k < OTHERS; k++) {
            if (differs[k])
                text = sl_page_text(page, "%s%s%s", text, *text ? ", " : "",
                                    words_of(page, k, all->items[i].others[k]));
        }
        all->items[i].combination = text;
    }
}

/* The distinct values of an axis, ascending; at most AXIS_MAX. */
static size_t axis_of(const settings *all, const char *combination, bool threads,
                      double values[AXIS_MAX]) {
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        const setting *one = &all->items[i];
        double value = threads ? one->threads : one->batch_size;
        bool known = strcmp(one->combination, combination) != 0;
        for (size_t k = 0; k < count; k++)
            known = known || values[k] == value;
        if (!known && count < AXIS_MAX)
            values[count++] = value;
    }
    qsort(values, count, sizeof *values, sl_by_value);
    return count;
}

static size_t index_of(const double *values, size_t count, double value) {
    size_t index = 0;
    while (index < count && values[index] != value)
        index++;
    return index;
}

static const char *spread_of(sl_page *page, const setting *one) {
    char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    if (!(one->low >= 0) || !(one->high >= 0))
        return one->trials == 1 ? "one trial" : NULL;
    return sl_page_text(page, "%s to %s", sl_short_text(one->low, low),
                        sl_short_text(one->high, high));
}

static const char *mark_of(const settings *all, const setting *one) {
    bool best = all->best == (double)one->index;
    if (all->recommended == (double)one->index)
        return best ? "best, recommended" : "recommended";
    return best ? "best" : NULL;
}

static void show_grid(sl_page *page, const settings *all, const char *combination) {
    double rows[AXIS_MAX], columns[AXIS_MAX];
    char human[SL_HUMAN_ROOM];
    size_t row_count = axis_of(all, combination, true, rows);
    size_t column_count = axis_of(all, combination, false, columns);
    const char *title = *combination ? combination : "by threads and batch size";
    sl_grid *grid = sl_page_add_grid(
        page, sl_page_text(page, "Documents per second: %s", title),
        "Each cell shows the median of its trials, and the 90 % range of the true rate, from the "
        "spread of all trials. The stronger the colour, the faster. Empty cells were not tried.",
        row_count, column_count);
    if (!grid)
        return;
    size_t left_out = 0;
    grid->row_name = "threads";
    grid->column_name = "batch size";
    grid->maximum = all->maximum;
    grid->minimum = all->minimum < all->maximum ? all->minimum : 0;
    for (size_t i = 0; i < row_count; i++)
        grid->rows[i] = sl_section_number(page, rows[i], SL_UNIT_COUNT);
    for (size_t i = 0; i < column_count; i++)
        grid->columns[i] = sl_section_number(page, columns[i], SL_UNIT_COUNT);
    for (size_t i = 0; i < all->count; i++) {
        const setting *one = &all->items[i];
        size_t row = index_of(rows, row_count, one->threads);
        size_t column = index_of(columns, column_count, one->batch_size);
        if (strcmp(one->combination, combination) != 0)
            continue;
        if (row == row_count || column == column_count) {
            left_out++;
            continue;
        }
        if (!(one->rate >= 0))
            continue;
        grid->cells[row * column_count + column] = (sl_cell){
            .value = one->rate,
            .text = sl_page_text(page, "%s", sl_short_text(one->rate, human)),
            .more = spread_of(page, one),
            .mark = mark_of(all, one),
        };
    }
    if (left_out > 0)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_WARNING,
                         "%zu settings are not in this picture, which has room for %d values per "
                         "axis; the list of the fastest settings includes them.",
                         left_out, AXIS_MAX);
}

static void show_grids(sl_page *page, const settings *all) {
    size_t grids = 0;
    for (size_t i = 0; i < all->count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = strcmp(all->items[k].combination, all->items[i].combination) == 0;
        if (!seen && grids++ < GRIDS_MAX)
            show_grid(page, all, all->items[i].combination);
    }
    if (grids > GRIDS_MAX)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN,
                         "%zu more combinations were tried; see the record.", grids - GRIDS_MAX);
}

static int faster_first(const void *left, const void *right) {
    const setting *a = left, *b = right;
    double x = a->rate >= 0 ? a->rate : -1, y = b->rate >= 0 ? b->rate : -1;
    return x < y ? 1 : x > y ? -1 : (a->index > b->index) - (a->index < b->index);
}

static void show_ranking(sl_page *page, settings *all) {
    static const char *const titles[] = {"threads",     "batch size", "other values",
                                         "documents/s", "90 % range", ""};
    qsort(all->items, all->count, sizeof *all->items, faster_first);
    sl_page_table *table = sl_page_add_table(page, "The fastest", titles, "rrlrrl", 6);
    size_t shown = 0;
    for (size_t i = 0; i < all->count; i++) {
        const setting *one = &all->items[i];
        const char *mark = mark_of(all, one);
        if (!(one->rate >= 0) || one->trials == 0 || (shown >= BEST_SHOWN && !mark))
            continue;
        shown++;
        sl_page_cell(page, table, sl_section_number(page, one->threads, SL_UNIT_COUNT));
        sl_page_cell(page, table, sl_section_number(page, one->batch_size, SL_UNIT_COUNT));
        sl_page_cell(page, table, *one->combination ? one->combination : "the same for all");
        sl_page_cell(page, table, sl_section_number(page, one->rate, SL_UNIT_COUNT));
        sl_page_cell(page, table, spread_of(page, one));
        sl_page_cell(page, table, mark ? mark : one->stopped);
        if (all->recommended == (double)one->index)
            sl_section_emphasize(table);
    }
}

/* ---- compressors ---- */

/* The sum of the medians of all queries; NAN if one of them was not timed, because a sum without it
 * would be too small. */
static double query_time(const bson_t *item) {
    double sum = 0;
    size_t count = 0;
    for (sl_walk walk = sl_walk_start(item, "queries"); sl_walk_next(&walk); count++)
        sum += sl_look_amount(&walk.item, "medianMilliseconds", NAN);
    return count > 0 ? sum : NAN;
}

static double total_bytes(const bson_t *item) {
    return sl_look_number(item, "storageBytes") + sl_look_amount(item, "indexBytes", 0);
}
static double load_rate(const bson_t *item) {
    return sl_look_number(item, "rate");
}

static void show_storage(sl_page *page, const bson_t *record) {
    static const struct {
        const char *title, *caption;
        double (*value)(const bson_t *item);
        sl_unit unit;
    } pictures[] = {
        {"Size on disk, by compressor", "Documents and indexes; shorter is better.", total_bytes,
         SL_UNIT_BYTES},
        {"Documents per second while loading, by compressor", "Longer is better.", load_rate,
         SL_UNIT_COUNT},
        {"Time of the queries, by compressor",
         "The sum of the medians of all queries; shorter is better.", query_time,
         SL_UNIT_MILLISECONDS},
    };
    static const sl_column columns[] = {
        {"compressor", "compressor", .text = value_of},
        {"documents", "documents", .unit = SL_UNIT_COUNT},
        {"data", "dataBytes", .unit = SL_UNIT_BYTES},
        {"stored", "storageBytes", .unit = SL_UNIT_BYTES},
        {"indexes", "indexBytes", .unit = SL_UNIT_BYTES},
        {"data to stored", "ratio", .figure = sl_cell_ratio},
        {"documents/s", "rate", .unit = SL_UNIT_COUNT},
        {0},
    };
    if (sl_walk_count(record, "storage") == 0)
        return;
    sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "Compressors");
    for (size_t i = 0; i < sizeof pictures / sizeof pictures[0]; i++) {
        sl_bars *bars = NULL;
        size_t row = 0;
        for (sl_walk walk = sl_walk_start(record, "storage"); sl_walk_next(&walk) && row < 40;) {
            double value = pictures[i].value(&walk.item);
            if (!(value >= 0))
                continue;
            row++;
            if (!bars)
                bars = sl_page_add_bars(page, pictures[i].title, pictures[i].caption,
                                        pictures[i].unit);
            sl_page_bar(page, bars, value_of(page, &walk.item, "compressor"), value,
                        sl_section_number(page, value, pictures[i].unit));
        }
    }
    sl_section_table(page, record, "storage", NULL, columns);
}

/* ---- the page ---- */

static const setting *find(const settings *all, double index) {
    for (size_t i = 0; i < all->count; i++) {
        if ((double)all->items[i].index == index)
            return &all->items[i];
    }
    return NULL;
}

static void add_recommendation(sl_page *page, const settings *all) {
    const setting *chosen = find(all, all->recommended);
    const setting *best = find(all, all->best);
    if (!chosen) {
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING, "No setting is recommended.");
        return;
    }
    const char *against = "";
    if (best && best != chosen && chosen->rate >= 0 && chosen->rate < best->rate)
        against = sl_page_text(page, ", %s of the best",
                               sl_section_number(page, chosen->rate / best->rate, SL_UNIT_SHARE));
    sl_page_add_text(
        page, SL_BLOCK_VERDICT, SL_TONE_GOOD,
        "Recommended: %s threads, batches of %s documents%s%s: %s documents per second%s.",
        sl_section_number(page, chosen->threads, SL_UNIT_COUNT),
        sl_section_number(page, chosen->batch_size, SL_UNIT_COUNT),
        *chosen->combination ? ", " : "", chosen->combination,
        sl_section_number(page, chosen->rate, SL_UNIT_COUNT), against);
}

void sl_sections_tune(sl_page *page, const bson_t *record) {
    settings all = read_settings(page, record);
    if (!all.items)
        return;
    name_combinations(page, &all);
    add_recommendation(page, &all);
    if (all.left_out > 0)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_WARNING,
                         "The record has %zu more settings than the %d shown.", all.left_out,
                         SETTINGS_MAX);
    sl_page_table *facts = sl_page_add_facts(page);
    sl_section_fact(page, facts, record, "trials", "trials", SL_UNIT_COUNT);
    sl_section_fact(page, facts, record, "gridTrials", "trials of the full grid", SL_UNIT_COUNT);
    sl_section_fact(page, facts, record, "sample.share", "share of the sources", SL_UNIT_SHARE);
    sl_section_fact(page, facts, record, "sample.records", "records in the sample", SL_UNIT_COUNT);
    sl_section_fact(page, facts, record, "sample.textBytes", "text in the sample", SL_UNIT_BYTES);
    sl_section_fact(page, facts, record, "sample.bsonBytes", "BSON in the sample", SL_UNIT_BYTES);
    if (all.count > 0) {
        sl_page_add_text(page, SL_BLOCK_HEADING, SL_TONE_PLAIN, "Settings tried");
        show_grids(page, &all);
        show_ranking(page, &all);
    }
    show_storage(page, record);
    sl_section_setting(page, record);
}
