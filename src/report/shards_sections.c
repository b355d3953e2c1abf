/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of tools/bench shards, which compares several small shards on one machine with one large
 * mongod: tables and bars. */
#include "sections.h"

#include <stdio.h>
#include <string.h>

#include "lookup.h"

#include "scale.h"

#define BARS_MAX 60
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

static const char *label_of(sl_page *page, const bson_t *row) {
    const char *engine = sl_look_text(row, "engineName");
    engine = engine ? engine : sl_look_text(row, "engine");
    return sl_page_text(page, "%s, %s cache%s%.80s", shards_text(page, row),
                        sl_section_value(page, row, "cacheBytes", SL_UNIT_BYTES),
                        engine && *engine ? ", " : "", engine ? engine : "");
}

/* "steal" is time of other virtual machines on the same host; it is shown only in the picture. */
static const char *const cpu_keys[] = {"user", "system", "wait", "idle", "steal"};
static const char *const cpu_names[] = {"user", "system", "wait", "idle", "stolen"};
#define CPU_KEYS (sizeof cpu_keys / sizeof cpu_keys[0])

/* `of` is "cpu" (while loading) or "queryCpu". */
static double cpu_share(const bson_t *row, const char *of, size_t key) {
    char path[32];
    snprintf(path, sizeof path, "%s.%s", of, cpu_keys[key]);
    return sl_look_number(row, path);
}

static bool any_has(const bson_t *record, const char *path) {
    bool any = false;
    for (sl_walk walk = sl_walk_start(record, "rows"); !any && sl_walk_next(&walk);)
        any = sl_look_number(&walk.item, path) >= 0;
    return any;
}

static void show_table(sl_page *page, const bson_t *record, const char *const *queries,
                       size_t query_count) {
    const char *titles[13 + QUERIES_MAX] = {"shards",    "engine options", "cache",
                                            "load time", "documents/s",    "ratio",
                                            "on disk",   "all files",      "memory"};
    char left[14 + QUERIES_MAX];
    size_t columns = 9, rows = 0;
    memset(left, 'r', sizeof left);
    left[0] = left[1] = 'l';
    for (size_t i = 0; i < query_count; i++)
        titles[columns++] = queries[i];
    for (size_t i = 0; i < 4; i++)
        titles[columns++] = sl_page_text(page, "CPU %s", cpu_names[i]);
    sl_page_table *table = sl_page_add_table(page, "All figures", titles, left, columns);
    for (sl_walk walk = sl_walk_start(record, "rows"); sl_walk_next(&walk);) {
        const bson_t *item = &walk.item;
        if (rows++ >= SL_ROWS_MAX)
            continue;
        sl_page_cell(page, table, shards_text(page, item));
        sl_page_cell(page, table, sl_look_text(item, "engine"));
        sl_page_cell(page, table, sl_section_value(page, item, "cacheBytes", SL_UNIT_BYTES));
        sl_page_cell(page, table, sl_section_value(page, item, "loadSeconds", SL_UNIT_SECONDS));
        sl_page_cell(page, table, sl_section_value(page, item, "rate", SL_UNIT_COUNT));
        sl_page_cell(page, table, sl_cell_ratio(page, item, "ratio"));
        sl_page_cell(page, table, sl_section_value(page, item, "storageBytes", SL_UNIT_BYTES));
        sl_page_cell(page, table, sl_section_value(page, item, "fileBytes", SL_UNIT_BYTES));
        sl_page_cell(page, table, sl_section_value(page, item, "memoryBytes", SL_UNIT_BYTES));
        for (size_t i = 0; i < query_count; i++)
            sl_page_cell(page, table,
                         sl_section_number(page, query_figure(item, queries[i], "milliseconds"),
                                           SL_UNIT_MILLISECONDS));
        for (size_t i = 0; i < 4; i++)
            sl_page_cell(page, table,
                         sl_section_number(page, cpu_share(item, "cpu", i), SL_UNIT_SHARE));
    }
    sl_section_more(page, table, rows);
}

/* Adds a table with a row for each query of each measurement. */
static void show_queries(sl_page *page, const bson_t *record) {
    static const char *const titles[] = {"shards",  "engine options", "cache",      "query",
                                         "median",  "at least",       "at most",    "documents/ms",
                                         "ratio",   "CPU user",       "CPU system", "CPU wait",
                                         "CPU idle"};
    size_t rows = 0;
    sl_page_table *table = sl_page_add_table(page, "Queries", titles, "llrlrrrrrrrrr",
                                             sizeof titles / sizeof titles[0]);
    for (sl_walk walk = sl_walk_start(record, "rows"); sl_walk_next(&walk);) {
        const bson_t *item = &walk.item;
        for (sl_walk query = sl_walk_start(item, "queries"); sl_walk_next(&query);) {
            static const char *const times[] = {"milliseconds", "low", "high"};
            if (rows++ >= SL_ROWS_MAX)
                continue;
            sl_page_cell(page, table, shards_text(page, item));
            sl_page_cell(page, table, sl_look_text(item, "engine"));
            sl_page_cell(page, table, sl_section_value(page, item, "cacheBytes", SL_UNIT_BYTES));
            sl_page_cell(page, table, sl_look_text(&query.item, "name"));
            for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
                sl_page_cell(page, table,
                             sl_section_value(page, &query.item, times[i], SL_UNIT_MILLISECONDS));
            sl_page_cell(
                page, table,
                sl_section_value(page, &query.item, "documentsPerMillisecond", SL_UNIT_COUNT));
            sl_page_cell(page, table, sl_cell_ratio(page, &query.item, "ratio"));
            for (size_t i = 0; i < 4; i++)
                sl_page_cell(
                    page, table,
                    sl_section_number(page, cpu_share(item, "queryCpu", i), SL_UNIT_SHARE));
        }
    }
    sl_section_more(page, table, rows);
}

/* Adds bars of the figure at `path`, or of the times of the query named `query`. */
static void show_bars(sl_page *page, const bson_t *record, const char *title, const char *caption,
                      const char *path, const char *query, sl_unit unit) {
    if (path && !any_has(record, path))
        return;
    sl_bars *bars = sl_page_add_bars(page, title, caption, unit);
    size_t row = 0;
    for (sl_walk walk = sl_walk_start(record, "rows"); sl_walk_next(&walk) && row < BARS_MAX;
         row++) {
        double value = query ? query_figure(&walk.item, query, "milliseconds")
                             : sl_look_number(&walk.item, path);
        sl_bar *bar = sl_page_bar(page, bars, label_of(page, &walk.item), value,
                                  sl_section_number(page, value, unit));
        if (bar && query) {
            bar->low = query_figure(&walk.item, query, "low");
            bar->high = query_figure(&walk.item, query, "high");
        } else if (bar && path && strcmp(path, "rate") == 0) {
            bar->low = sl_look_number(&walk.item, "low");
            bar->high = sl_look_number(&walk.item, "high");
        }
    }
}

/* Adds a strip for each measurement: the states of the machine's processors. */
static void show_processors(sl_page *page, const bson_t *record, const char *of, const char *title,
                            const char *caption) {
    size_t row = 0;
    if (!any_has(record, sl_page_text(page, "%s.idle", of)))
        return;
    sl_strips *strips = sl_page_add_strips(page, title, caption, SL_UNIT_SHARE);
    for (sl_walk walk = sl_walk_start(record, "rows"); sl_walk_next(&walk) && row < BARS_MAX;
         row++) {
        sl_strip *strip = sl_page_strip(page, strips, label_of(page, &walk.item));
        for (size_t i = 0; i < CPU_KEYS; i++) {
            double share = cpu_share(&walk.item, of, i);
            if (share > 0)
                sl_page_part(page, strips, strip, cpu_names[i], share);
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
            label = label_of(page, &walk.item);
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
        show_bars(page, record, "Documents per second while loading",
                  "The whisker is the spread of the rounds; longer is better.", "rate", NULL,
                  SL_UNIT_COUNT);
        show_bars(page, record, "Size on disk",
                  "The collection and its indexes; shorter is better.", "storageBytes", NULL,
                  SL_UNIT_BYTES);
        show_bars(page, record, "All files of the shards",
                  "Journals and oplogs included; shorter is better.", "fileBytes", NULL,
                  SL_UNIT_BYTES);
        show_bars(page, record, "Memory of the shards' servers",
                  "The sum of their peaks; shorter is better.", "memoryBytes", NULL, SL_UNIT_BYTES);
        for (size_t i = 0; i < query_count; i++)
            show_bars(page, record, sl_page_text(page, "Query %.100s", queries[i]),
                      "The whisker is the spread of the rounds; shorter is better.", NULL,
                      queries[i], SL_UNIT_MILLISECONDS);
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
