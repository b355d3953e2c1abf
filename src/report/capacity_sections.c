/* SPDX-License-Identifier: Apache-2.0 */
/* A capacity model that was computed: how long each resource would take, which of them is waited for,
 * and what all that rests on. */
#include "sections.h"

#include <stdio.h>
#include <string.h>

#include <shardload/lookup.h>

#include "scale.h"

#define SECONDS_PER_HOUR 3600

static double seconds_at(const bson_t *item, const char *path) {
    return sl_look_number(item, path) * SECONDS_PER_HOUR;
}

/* "2 h 10 min to 3 h 5 min", or "" where there is no range. */
static const char *time_range(sl_page *page, const bson_t *item, const char *key) {
    char path[40], a[SL_HUMAN_ROOM], b[SL_HUMAN_ROOM];
    snprintf(path, sizeof path, "%s.low", key);
    double low = seconds_at(item, path);
    snprintf(path, sizeof path, "%s.high", key);
    double high = seconds_at(item, path);
    return low < high ? sl_page_text(page, "%s to %s", sl_value_text(low, SL_UNIT_SECONDS, a),
                                     sl_value_text(high, SL_UNIT_SECONDS, b))
                      : "";
}

static void say_result(sl_page *page, const bson_t *model) {
    char human[SL_HUMAN_ROOM], rate[SL_HUMAN_ROOM];
    const char *bottleneck = sl_look_text(model, "bottleneck");
    const char *range = time_range(page, model, "hours");
    sl_page_say(page, SL_BLOCK_VERDICT, SL_TONE_PLAIN,
                sl_page_text(page, "Computed, not measured: %s%s%s%s, %s documents a second while "
                                   "loading. It waits for: %.80s.",
                             sl_value_text(seconds_at(model, "hours.value"), SL_UNIT_SECONDS, human),
                             *range ? " (" : "", range, *range ? ")" : "",
                             sl_value_text(sl_look_number(model, "documentsPerSecond"),
                                           SL_UNIT_COUNT, rate),
                             bottleneck ? bottleneck : "nothing that is known"));
}

static void show_resources(sl_page *page, const bson_t *model) {
    static const char *const titles[] = {"resource", "demand", "capacity a second", "time", "range",
                                         "busy"};
    char human[SL_HUMAN_ROOM];
    size_t row = 0;
    sl_bars *bars = sl_page_add_bars(
        page, "What each resource takes for its part",
        "They all work at the same time, so the longest is the time of the load. The whisker is the "
        "range of the inputs.", SL_UNIT_SECONDS);
    for (sl_walk walk = sl_walk_start(model, "resources"); sl_walk_next(&walk) && row < SL_ROWS_MAX;
         row++) {
        double seconds = seconds_at(&walk.item, "hours.value");
        const char *name = sl_look_text(&walk.item, "name");
        sl_bar *bar = sl_page_bar(page, bars, name ? name : "", seconds,
                                  sl_section_number(page, seconds, SL_UNIT_SECONDS));
        if (bar) {
            bar->low = seconds_at(&walk.item, "hours.low");
            bar->high = seconds_at(&walk.item, "hours.high");
        }
    }
    sl_page_table *table = sl_page_add_table(page, "Resources", titles, "lrrrlr", 6);
    row = 0;
    for (sl_walk walk = sl_walk_start(model, "resources"); sl_walk_next(&walk) && row < SL_ROWS_MAX;
         row++) {
        const bson_t *item = &walk.item;
        const char *kind = sl_look_text(item, "unit");
        sl_unit unit = kind && strcmp(kind, "bytes") == 0 ? SL_UNIT_BYTES : SL_UNIT_COUNT;
        double busy = sl_look_number(item, "utilisation");
        sl_page_cell(page, table, sl_look_text(item, "name"));
        sl_page_cell(page, table, sl_section_value(page, item, "demand", unit));
        sl_page_cell(page, table, sl_section_value(page, item, "capacityPerSecond", unit));
        sl_page_cell(page, table, sl_section_number(page, seconds_at(item, "hours.value"),
                                                    SL_UNIT_SECONDS));
        sl_page_cell(page, table, time_range(page, item, "hours"));
        sl_page_cell(page, table,
                     busy >= 0 ? sl_page_text(page, "%s", sl_share_text(busy, human)) : "-");
    }
}

/* What was given or assumed; what has its default says nothing. */
static void show_inputs(sl_page *page, const bson_t *model) {
    static const char *const titles[] = {"input", "value", "low", "high", "unit", "from"};
    static const char *const figures[] = {"value", "low", "high"};
    bson_t inputs, item;
    bson_iter_t at;
    size_t row = 0;
    if (!sl_look_inside(model, "inputs", &inputs) || !bson_iter_init(&at, &inputs))
        return;
    sl_page_table *table = sl_page_add_table(page, "What it rests on", titles, "lrrrll", 6);
    while (bson_iter_next(&at) && row < SL_ROWS_MAX) {
        const char *from = NULL, *unit = NULL;
        if (sl_look_inside(&inputs, bson_iter_key(&at), &item)) {
            from = sl_look_text(&item, "from");
            unit = sl_look_text(&item, "unit");
        }
        if (!from || strcmp(from, "default") == 0)
            continue;
        row++;
        sl_page_cell(page, table, bson_iter_key(&at));
        for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
            double figure = sl_look_number(&item, figures[i]);
            sl_page_cell(page, table, isnan(figure) ? "-" : sl_page_text(page, "%.6g", figure));
        }
        sl_page_cell(page, table, unit);
        sl_page_cell(page, table, from);
    }
}

void sl_sections_capacity(sl_page *page, const bson_t *record) {
    bson_t model;
    if (!sl_look_inside(record, "capacity", &model))
        return;
    const char *title = sl_look_text(&model, "title");
    say_result(page, &model);
    if (title)
        sl_page_say(page, SL_BLOCK_TEXT, SL_TONE_PLAIN, title);
    sl_page_table *facts = sl_page_add_facts(page);
    double published = seconds_at(&model, "publishedHours");
    if (published > 0)
        sl_page_fact(page, facts, "published",
                     sl_section_number(page, published, SL_UNIT_SECONDS));
    sl_page_fact(page, facts, "loading",
                 sl_section_number(page, seconds_at(&model, "loadHours.value"), SL_UNIT_SECONDS));
    if (seconds_at(&model, "indexHours.value") > 0)
        sl_page_fact(page, facts, "indexes",
                     sl_section_number(page, seconds_at(&model, "indexHours.value"),
                                       SL_UNIT_SECONDS));
    sl_section_fact(page, facts, &model, "storedBytes", "stored", SL_UNIT_BYTES);
    sl_section_fact(page, facts, &model, "cost.value", "cost", SL_UNIT_COUNT);
    show_resources(page, &model);
    show_inputs(page, &model);
    sl_section_setting(page, record);
}
