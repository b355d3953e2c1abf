/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of a computed capacity model: its answer, the results beside published figures, the
 * points, a sweep, and the inputs. */
#include "sections.h"

#include <stdio.h>
#include <string.h>

#include "lookup.h"

#include "scale.h"

/* A number with its unit: times and bytes in larger units, others with the unit's name. */
static const char *amount(sl_page *page, double value, const char *unit) {
    if (isnan(value))
        return "-";
    if (strcmp(unit, "s") == 0)
        return sl_section_number(page, value, SL_UNIT_SECONDS);
    if (strncmp(unit, "bytes", 5) == 0 && value >= 1000)
        return sl_page_text(page, "%s%.10s", sl_section_number(page, value, SL_UNIT_BYTES),
                            unit + 5);
    bool whole = value >= 100 || value == floor(value);
    const char *number =
        whole ? sl_section_number(page, value, SL_UNIT_COUNT) : sl_page_text(page, "%.3g", value);
    return *unit ? sl_page_text(page, "%s %.24s", number, unit) : number;
}

/* "1 h 10 min to 3 h 05 min", or "" without a range. */
static const char *range(sl_page *page, const bson_t *item, const char *unit) {
    double low = sl_look_number(item, "low"), high = sl_look_number(item, "high");
    return low < high
               ? sl_page_text(page, "%s to %s", amount(page, low, unit), amount(page, high, unit))
               : "";
}

/* Adds a bar for the value of `item`, with a whisker for its range. */
static void add_bar(sl_page *page, sl_bars *bars, const char *label, const bson_t *item,
                    const char *unit) {
    double value = sl_look_number(item, "value");
    sl_bar *bar = sl_page_bar(page, bars, label, value, amount(page, value, unit));
    double low = sl_look_number(item, "low"), high = sl_look_number(item, "high");
    if (bar && low < high) {
        bar->low = low;
        bar->high = high;
    }
}

/* Moves `walk` to the result that the model names as its answer; false if there is none. */
static bool find_answer(const bson_t *model, sl_walk *walk) {
    *walk = sl_walk_start(model, "results");
    while (sl_walk_next(walk)) {
        if (strcmp(sl_look_string(&walk->item, "name"), sl_look_string(model, "answer")) == 0)
            return true;
    }
    return false;
}

static void add_answer(sl_page *page, const bson_t *model) {
    sl_walk walk;
    if (!find_answer(model, &walk))
        return;
    const bson_t *answer = &walk.item;
    const char *unit = sl_look_string(answer, "unit"), *between = range(page, answer, unit);
    const char *decided = sl_look_string(answer, "decidedBy");
    sl_page_add_text(
        page, SL_BLOCK_VERDICT, SL_TONE_PLAIN,
        "Computed, not measured: %.40s is %s%s%s%s.%s%.60s%s", sl_look_string(answer, "name"),
        amount(page, sl_look_number(answer, "value"), unit), *between ? " (" : "", between,
        *between ? ")" : "", *decided ? " Decided by: " : "", decided, *decided ? "." : "");
}

/* ---- tables ---- */

static const char *amount_cell(sl_page *page, const bson_t *item, const char *path) {
    return amount(page, sl_look_number(item, path), sl_look_string(item, "unit"));
}

static const char *range_cell(sl_page *page, const bson_t *item, const char *path) {
    (void)path;
    return range(page, item, sl_look_string(item, "unit"));
}

static const sl_column inputs[] = {
    {"input", "name", .text = sl_cell_text}, {"value", "value", .figure = amount_cell},
    {"range", .text = range_cell},           {"from", "from", .text = sl_cell_text},
    {"why", "note", .text = sl_cell_text},   {0},
};
static const sl_column results[] = {
    {"result", "name", .text = sl_cell_text},
    {"value", "value", .figure = amount_cell},
    {"range", .text = range_cell},
    {"decided by", "decidedBy", .text = sl_cell_text},
    {"published", "published", .figure = amount_cell},
    {"quotient", "quotient", .figure = sl_cell_ratio},
    {"how", "how", .text = sl_cell_text},
    {0},
};
static const sl_column formulas[] = {
    {"result", "name", .text = sl_cell_text},
    {"formula", "formula", .text = sl_cell_text},
    {"remark", "note", .text = sl_cell_text},
    {0},
};
static const sl_column points[] = {
    {"result", "result", .text = sl_cell_text},
    {"set-up", "name", .text = sl_cell_text},
    {"computed", "value", .figure = amount_cell},
    {"published", "published", .figure = amount_cell},
    {"quotient", "quotient", .figure = sl_cell_ratio},
    {"how", "how", .text = sl_cell_text},
    {0},
};

static void show_sweep(sl_page *page, const bson_t *model) {
    const char *input = sl_look_string(model, "sweep.input"),
               *unit = sl_look_string(model, "sweep.unit");
    const char *result = sl_look_string(model, "sweep.result");
    const char *const titles[] = {input, result, "range", "decided by"};
    size_t rows = 0;
    if (sl_walk_count(model, "sweep.rows") == 0)
        return;
    sl_bars *bars = sl_page_add_bars(page, sl_page_text(page, "%.80s by %.80s", result, input),
                                     "All other inputs as in the model.",
                                     strcmp(unit, "s") == 0 ? SL_UNIT_SECONDS : SL_UNIT_COUNT);
    sl_page_table *table = sl_page_add_table(page, "Sweep", titles, "rrll", 4);
    for (sl_walk walk = sl_walk_start(model, "sweep.rows"); sl_walk_next(&walk);) {
        if (rows++ >= SL_ROWS_MAX)
            continue;
        const char *label = amount(page, sl_look_number(&walk.item, "input"), "");
        add_bar(page, bars, label, &walk.item, unit);
        sl_page_cell(page, table, label);
        sl_page_cell(page, table, amount(page, sl_look_number(&walk.item, "value"), unit));
        sl_page_cell(page, table, range(page, &walk.item, unit));
        sl_page_cell(page, table, sl_look_string(&walk.item, "decidedBy"));
    }
    sl_section_more(page, table, rows);
}

/* Bars of the results that are times: what the load waits for, and what is idle. */
static void show_times(sl_page *page, const bson_t *model) {
    size_t row = 0;
    sl_bars *bars =
        sl_page_add_bars(page, "Times", "The whisker is the range of the inputs.", SL_UNIT_SECONDS);
    for (sl_walk walk = sl_walk_start(model, "results"); sl_walk_next(&walk) && row < SL_ROWS_MAX;
         row++) {
        if (strcmp(sl_look_string(&walk.item, "unit"), "s") == 0)
            add_bar(page, bars, sl_look_string(&walk.item, "name"), &walk.item, "s");
    }
}

void sl_sections_capacity(sl_page *page, const bson_t *record) {
    static const char *const texts[] = {"title", "about"};
    bson_t model;
    if (!sl_look_inside(record, "capacity", &model))
        return;
    add_answer(page, &model);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = sl_look_string(&model, texts[i]);
        if (*text)
            sl_page_add_text(page, SL_BLOCK_TEXT, SL_TONE_PLAIN, "%s", text);
    }
    show_times(page, &model);
    sl_section_table(page, &model, "inputs", "Inputs", inputs);
    sl_section_table(page, &model, "results", "Results", results);
    sl_section_table(page, &model, "results", "Formulas", formulas);
    if (sl_walk_count(&model, "points") > 0)
        sl_section_table(page, &model, "points", "Published points", points);
    show_sweep(page, &model);
}
