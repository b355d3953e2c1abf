/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of a computed capacity model: the time of each resource, the bottleneck, and the
 * inputs. */
#include "sections.h"

#include <stdio.h>
#include <string.h>

#include "lookup.h"

#include "scale.h"

#define SECONDS_PER_HOUR 3600

static double seconds_at(const bson_t *item, const char *path) {
    return sl_look_number(item, path) * SECONDS_PER_HOUR;
}

/* "2 h 10 min to 3 h 5 min", or "" without a range. */
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

static void add_result(sl_page *page, const bson_t *model) {
    char human[SL_HUMAN_ROOM], rate[SL_HUMAN_ROOM];
    const char *bottleneck = sl_look_text(model, "bottleneck");
    const char *range = time_range(page, model, "hours");
    sl_page_add_text(
        page, SL_BLOCK_VERDICT, SL_TONE_PLAIN,
        sl_page_text(
            page,
            "Computed, not measured: %s%s%s%s, %s documents per second while "
            "loading. Bottleneck: %.80s.",
            sl_value_text(seconds_at(model, "hours.value"), SL_UNIT_SECONDS, human),
            *range ? " (" : "", range, *range ? ")" : "",
            sl_value_text(sl_look_number(model, "documentsPerSecond"), SL_UNIT_COUNT, rate),
            bottleneck ? bottleneck : "unknown"));
}

/* "loaders, network; shards, bytes" from an array of texts; "" without any. */
static const char *joined(sl_page *page, const bson_t *model, const char *path) {
    const char *all = "";
    bson_t list;
    bson_iter_t at;
    if (!sl_look_inside(model, path, &list) || !bson_iter_init(&at, &list))
        return all;
    for (unsigned i = 0; i < 20 && bson_iter_next(&at); i++) {
        if (BSON_ITER_HOLDS_UTF8(&at))
            all = sl_page_text(page, "%.1000s%s%.80s", all, *all ? "; " : "",
                               bson_iter_utf8(&at, NULL));
    }
    return all;
}

/* Adds the limits of the result: data that do not fit, idle machines, missing inputs. */
static void add_caveats(sl_page *page, const bson_t *model) {
    char human[SL_HUMAN_ROOM], all[SL_HUMAN_ROOM];
    double share = sl_look_number(model, "hostShare");
    double hosts = sl_look_number(model, "inputs.hosts.value");
    double idle = hosts - sl_look_number(model, "busyHosts");
    const char *missing = joined(page, model, "notInModel");
    if (share > 1)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_BAD,
                         sl_page_text(page,
                                      "IT DOES NOT FIT: the stored data take %s of the room of the "
                                      "machines that store them.",
                                      sl_share_text(share, human)));
    if (idle >= 1)
        sl_page_add_text(page, SL_BLOCK_VERDICT, SL_TONE_WARNING,
                         sl_page_text(page, "%s of %s machines are idle: there are too few shards.",
                                      sl_value_text(idle, SL_UNIT_COUNT, human),
                                      sl_value_text(hosts, SL_UNIT_COUNT, all)));
    if (*missing)
        sl_page_add_text(
            page, SL_BLOCK_TEXT, SL_TONE_PLAIN,
            sl_page_text(page,
                         "Not in the model, so never the bottleneck nor part of the cost: "
                         "%s.",
                         missing));
}

/* Was an input chosen to match the published time? */
static bool fitted(const bson_t *model) {
    bson_t inputs;
    bson_iter_t at;
    if (!sl_look_inside(model, "inputs", &inputs) || !bson_iter_init(&at, &inputs))
        return false;
    while (bson_iter_next(&at)) {
        bson_t item;
        const char *from =
            sl_look_inside(&inputs, bson_iter_key(&at), &item) ? sl_look_text(&item, "from") : NULL;
        if (from && strcmp(from, "fitted") == 0)
            return true;
    }
    return false;
}

static void add_published(sl_page *page, const bson_t *model) {
    double published = sl_look_number(model, "publishedHours");
    double hours = sl_look_number(model, "hours.value");
    const char *note = sl_look_text(model, "publishedNote");
    bool within = sl_look_number(model, "hours.low") <= published &&
                  published <= sl_look_number(model, "hours.high");
    if (!(published > 0) || !(hours >= 0))
        return;
    sl_page_add_text(
        page, SL_BLOCK_TEXT, SL_TONE_PLAIN,
        sl_page_text(page,
                     "The published time is %s; the model's time is %s times that, and its range "
                     "%s it%s.",
                     sl_section_number(page, published * SECONDS_PER_HOUR, SL_UNIT_SECONDS),
                     sl_section_ratio(page, hours, published),
                     within ? "contains" : "does not contain",
                     fitted(model) ? " (to which an input was fitted)" : ""));
    if (note)
        sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN, note);
}

static void show_resources(sl_page *page, const bson_t *model) {
    static const char *const titles[] = {"resource", "demand", "capacity per second",
                                         "time",     "range",  "busy"};
    char human[SL_HUMAN_ROOM];
    size_t row = 0;
    sl_bars *bars = sl_page_add_bars(
        page, "Time of each resource",
        "All resources work at the same time, so the slowest one determines the time of the load. "
        "The whisker is the range of the inputs.",
        SL_UNIT_SECONDS);
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
        sl_page_cell(page, table,
                     sl_section_number(page, seconds_at(item, "hours.value"), SL_UNIT_SECONDS));
        sl_page_cell(page, table, time_range(page, item, "hours"));
        sl_page_cell(page, table,
                     busy >= 0 ? sl_page_text(page, "%s", sl_share_text(busy, human)) : "-");
    }
}

/* Adds a table of the inputs, without those that have their default. */
static void show_inputs(sl_page *page, const bson_t *model) {
    static const char *const titles[] = {"input", "value", "low", "high", "unit", "from", "why"};
    static const char *const figures[] = {"value", "low", "high"};
    bson_t inputs, item;
    bson_iter_t at;
    size_t row = 0;
    if (!sl_look_inside(model, "inputs", &inputs) || !bson_iter_init(&at, &inputs))
        return;
    sl_page_table *table = sl_page_add_table(page, "Inputs", titles, "lrrrlll", 7);
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
        sl_page_cell(page, table, sl_look_text(&item, "note"));
    }
}

/* A number without a unit: 1,000,000, 12.5, 0.25. */
static const char *plain(sl_page *page, double value) {
    bool whole = isnan(value) || value >= 100 || value == floor(value);
    return whole ? sl_section_number(page, value, SL_UNIT_COUNT)
                 : sl_page_text(page, "%.3g", value);
}

/* Adds the results for several values of one input. */
static void show_sweep(sl_page *page, const bson_t *model) {
    const char *titles[] = {"value", "documents/s", "time", "range", "cost", "bottleneck"};
    const char *input = sl_look_text(model, "sweep.input");
    size_t row = 0;
    if (sl_walk_count(model, "sweep.rows") == 0)
        return;
    titles[0] = input ? input : titles[0];
    sl_bars *bars = sl_page_add_bars(page, sl_page_text(page, "Total time by %.80s", titles[0]),
                                     "All other inputs as in the model.", SL_UNIT_SECONDS);
    for (sl_walk walk = sl_walk_start(model, "sweep.rows");
         sl_walk_next(&walk) && row < SL_ROWS_MAX; row++) {
        double seconds = seconds_at(&walk.item, "hours.value");
        sl_bar *bar = sl_page_bar(page, bars, plain(page, sl_look_number(&walk.item, "value")),
                                  seconds, sl_section_number(page, seconds, SL_UNIT_SECONDS));
        if (bar) {
            bar->low = seconds_at(&walk.item, "hours.low");
            bar->high = seconds_at(&walk.item, "hours.high");
        }
    }
    sl_page_table *table = sl_page_add_table(page, "Sweep", titles, "rrrlrl", 6);
    row = 0;
    for (sl_walk walk = sl_walk_start(model, "sweep.rows"); sl_walk_next(&walk); row++) {
        const bson_t *item = &walk.item;
        const char *bottleneck = sl_look_text(item, "bottleneck");
        if (row >= SL_ROWS_MAX)
            continue;
        sl_page_cell(page, table, plain(page, sl_look_number(item, "value")));
        sl_page_cell(page, table,
                     sl_section_value(page, item, "documentsPerSecond", SL_UNIT_COUNT));
        sl_page_cell(page, table,
                     sl_section_number(page, seconds_at(item, "hours.value"), SL_UNIT_SECONDS));
        sl_page_cell(page, table, time_range(page, item, "hours"));
        sl_page_cell(page, table, plain(page, sl_look_number(item, "cost.value")));
        sl_page_cell(
            page, table,
            sl_page_text(page, "%.80s%s", bottleneck ? bottleneck : "?",
                         sl_look_number(item, "hostShare") > 1 ? "; IT DOES NOT FIT" : ""));
    }
    sl_section_more(page, table, row > SL_ROWS_MAX ? row - SL_ROWS_MAX : 0);
}

void sl_sections_capacity(sl_page *page, const bson_t *record) {
    bson_t model;
    if (!sl_look_inside(record, "capacity", &model))
        return;
    static const char *const texts[] = {"title", "about"};
    add_result(page, &model);
    add_caveats(page, &model);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = sl_look_text(&model, texts[i]);
        if (text)
            sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN, text);
    }
    add_published(page, &model);
    sl_page_table *facts = sl_page_add_facts(page);
    double published = seconds_at(&model, "publishedHours");
    if (published > 0)
        sl_page_fact(page, facts, "published", sl_section_number(page, published, SL_UNIT_SECONDS));
    sl_page_fact(page, facts, "loading",
                 sl_section_number(page, seconds_at(&model, "loadHours.value"), SL_UNIT_SECONDS));
    if (seconds_at(&model, "indexHours.value") > 0)
        sl_page_fact(
            page, facts, "indexes",
            sl_section_number(page, seconds_at(&model, "indexHours.value"), SL_UNIT_SECONDS));
    sl_section_fact(page, facts, &model, "storedBytes", "stored", SL_UNIT_BYTES);
    sl_section_fact(page, facts, &model, "hostShare", "share of the machines' room", SL_UNIT_SHARE);
    sl_section_fact(page, facts, &model, "cost.value", "cost", SL_UNIT_COUNT);
    show_resources(page, &model);
    show_sweep(page, &model);
    show_inputs(page, &model);
    sl_section_setting(page, record);
}
