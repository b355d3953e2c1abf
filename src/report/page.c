/* SPDX-License-Identifier: Apache-2.0 */
/* A page and its blocks; sizes, ticks and numbers of its pictures. All memory belongs to the page
 * and is freed with it. */
#include "page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct piece {
    struct piece *next;
    max_align_t bytes[];
} piece;

struct sl_page {
    piece *pieces;
    sl_page_block *first;
    sl_page_block **end;
    bool failed;
};

sl_page *sl_page_create(void) {
    sl_page *page = calloc(1, sizeof *page);
    if (page)
        page->end = &page->first;
    return page;
}

void sl_page_destroy(sl_page *page) {
    if (!page)
        return;
    while (page->pieces) {
        piece *next = page->pieces->next;
        free(page->pieces);
        page->pieces = next;
    }
    free(page);
}

bool sl_page_failed(const sl_page *page) {
    return page->failed;
}

const sl_page_block *sl_page_first(const sl_page *page) {
    return page->first;
}

void *sl_page_memory(sl_page *page, size_t bytes) {
    piece *made = bytes < SIZE_MAX - sizeof *made ? calloc(1, sizeof *made + bytes) : NULL;
    if (!made) {
        page->failed = true;
        return NULL;
    }
    made->next = page->pieces;
    page->pieces = made;
    return made->bytes;
}

static const char *text_of(sl_page *page, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : sl_page_memory(page, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text ? text : "";
}

const char *sl_page_text(sl_page *page, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *text = text_of(page, format, arguments);
    va_end(arguments);
    return text;
}

/* Adds a zeroed item of `size` bytes to a list: `list_at` is the address of the pointer to its
 * first item. Returns the new item, or NULL without memory. */
static void *add_item(sl_page *page, void *list_at, size_t *count, size_t *room, size_t size) {
    char *list;
    memcpy(&list, list_at, sizeof list);
    if (*count == *room) {
        size_t more = *room ? 2 * *room : 8;
        char *copy = sl_page_memory(page, more * size);
        if (!copy)
            return NULL;
        if (*count)
            memcpy(copy, list, *count * size);
        list = copy;
        memcpy(list_at, &list, sizeof list);
        *room = more;
    }
    return list + size * (*count)++;
}

static sl_page_block *add_block(sl_page *page, sl_block_kind kind, const char *text) {
    sl_page_block *block = sl_page_memory(page, sizeof *block);
    if (!block)
        return NULL;
    block->kind = kind;
    block->text = text;
    *page->end = block;
    page->end = &block->next;
    return block;
}

void sl_page_add_text(sl_page *page, sl_block_kind kind, sl_tone tone, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    sl_page_block *block = add_block(page, kind, text_of(page, format, arguments));
    va_end(arguments);
    if (block)
        block->tone = tone;
}

/* Adds a table as a block of this kind. NULL without memory. */
static sl_page_table *add_table(sl_page *page, sl_block_kind kind, const char *title,
                                const char *const *titles, const char *left, size_t columns) {
    sl_page_table *table = sl_page_memory(page, sizeof *table);
    if (!table || !(table->titles = sl_page_memory(page, columns * sizeof(char *))) ||
        !(table->left = sl_page_memory(page, columns * sizeof(bool))))
        return NULL;
    for (size_t i = 0; i < columns; i++) {
        table->titles[i] = titles ? titles[i] : "";
        table->left[i] = left[i] == 'l';
    }
    table->columns = columns;
    table->emphasized = SIZE_MAX;
    sl_page_block *block = add_block(page, kind, title);
    if (!block)
        return NULL;
    block->of.table = table;
    return table;
}

/* Adds a block with a picture of `size` bytes, zeroed. NULL, with no block, without memory. */
static void *add_picture(sl_page *page, sl_block_kind kind, const char *title, const char *caption,
                         size_t size) {
    void *picture = sl_page_memory(page, size);
    sl_page_block *block = picture ? add_block(page, kind, title) : NULL;
    if (!block)
        return NULL;
    block->caption = caption;
    block->of.picture = picture;
    return picture;
}

sl_page_table *sl_page_add_facts(sl_page *page) {
    return add_table(page, SL_BLOCK_FACTS, NULL, NULL, "lr", 2);
}

sl_page_table *sl_page_add_table(sl_page *page, const char *title, const char *const *titles,
                                 const char *left, size_t columns) {
    return add_table(page, SL_BLOCK_TABLE, title, titles, left, columns);
}

sl_curves *sl_page_add_curves(sl_page *page, const char *title, const char *caption,
                              const char *y_name, sl_unit unit, bool stacked) {
    sl_curves *curves = add_picture(page, SL_BLOCK_CURVES, title, caption, sizeof *curves);
    if (curves)
        *curves = (sl_curves){.y_name = y_name, .unit = unit, .stacked = stacked};
    return curves;
}

sl_bars *sl_page_add_bars(sl_page *page, const char *title, const char *caption, sl_unit unit) {
    sl_bars *bars = add_picture(page, SL_BLOCK_BARS, title, caption, sizeof *bars);
    if (bars)
        bars->unit = unit;
    return bars;
}

sl_strips *sl_page_add_strips(sl_page *page, const char *title, const char *caption, sl_unit unit) {
    sl_strips *strips = add_picture(page, SL_BLOCK_STRIPS, title, caption, sizeof *strips);
    if (strips)
        *strips = (sl_strips){.unit = unit, .limit = NAN};
    return strips;
}

sl_grid *sl_page_add_grid(sl_page *page, const char *title, const char *caption, size_t rows,
                          size_t columns) {
    sl_grid *grid = add_picture(page, SL_BLOCK_GRID, title, caption, sizeof *grid);
    if (!grid)
        return NULL;
    grid->rows = sl_page_memory(page, (rows + 1) * sizeof(char *));
    grid->columns = sl_page_memory(page, (columns + 1) * sizeof(char *));
    grid->cells = sl_page_memory(page, (rows * columns + 1) * sizeof *grid->cells);
    if (!grid->rows || !grid->columns || !grid->cells)
        return NULL; /* the grid has no rows */
    grid->row_count = rows;
    grid->column_count = columns;
    for (size_t i = 0; i < rows; i++)
        grid->rows[i] = "";
    for (size_t i = 0; i < columns; i++)
        grid->columns[i] = "";
    for (size_t i = 0; i < rows * columns; i++)
        grid->cells[i].value = NAN;
    grid->row_name = grid->column_name = "";
    return grid;
}

void sl_page_cell(sl_page *page, sl_page_table *table, const char *text) {
    const char **cell =
        table ? add_item(page, &table->cells, &table->count, &table->room, sizeof *cell) : NULL;
    if (cell)
        *cell = text ? text : "";
}

sl_curve *sl_page_curve(sl_page *page, sl_curves *curves, const char *name, size_t count) {
    double *x = sl_page_memory(page, (count + 1) * sizeof *x);
    double *y = sl_page_memory(page, (count + 1) * sizeof *y);
    sl_curve *curve = curves && x && y ? add_item(page, &curves->items, &curves->count,
                                                  &curves->room, sizeof *curve)
                                       : NULL;
    if (curve)
        *curve = (sl_curve){name, count, x, y};
    return curve;
}

void sl_page_band(sl_page *page, sl_curves *curves, const char *name, double from, double to) {
    sl_band *band = curves ? add_item(page, &curves->bands, &curves->band_count, &curves->band_room,
                                      sizeof *band)
                           : NULL;
    if (band)
        *band = (sl_band){name, from, to};
}

sl_bar *sl_page_bar(sl_page *page, sl_bars *bars, const char *label, double value,
                    const char *text) {
    sl_bar *bar =
        bars ? add_item(page, &bars->items, &bars->count, &bars->room, sizeof *bar) : NULL;
    if (!bar)
        return NULL;
    *bar = (sl_bar){.label = label, .text = text, .low = NAN, .high = NAN};
    bar->value = value <= SL_VALUE_MAX ? value : NAN;
    return bar;
}

sl_strip *sl_page_strip(sl_page *page, sl_strips *strips, const char *label) {
    sl_strip *strip =
        strips ? add_item(page, &strips->items, &strips->count, &strips->room, sizeof *strip)
               : NULL;
    if (strip)
        *strip = (sl_strip){.label = label, .low = NAN, .high = NAN};
    return strip;
}

/* The index of a name in the picture's list of names; adds it if it is new. */
static size_t name_index(sl_page *page, sl_strips *strips, const char *name) {
    for (size_t i = 0; i < strips->name_count; i++) {
        if (strcmp(strips->names[i], name) == 0)
            return i;
    }
    const char **added =
        add_item(page, &strips->names, &strips->name_count, &strips->name_room, sizeof *added);
    if (!added)
        return 0;
    *added = name;
    return strips->name_count - 1;
}

void sl_page_part(sl_page *page, sl_strips *strips, sl_strip *strip, const char *name,
                  double value) {
    sl_part *part = strips && strip && value >= 0 && value <= SL_VALUE_MAX
                        ? add_item(page, &strip->parts, &strip->count, &strip->room, sizeof *part)
                        : NULL;
    if (part)
        *part = (sl_part){name_index(page, strips, name), value};
}

/* ---- sizes of pictures ---- */

double sl_strip_sum(const sl_strip *strip) {
    double sum = 0;
    for (size_t i = 0; i < strip->count; i++)
        sum += strip->parts[i].value;
    return sum;
}

double sl_strips_maximum(const sl_strips *strips) {
    double maximum = strips->limit > 0 ? strips->limit : 0;
    for (size_t i = 0; i < strips->count; i++) {
        double sum = sl_strip_sum(&strips->items[i]);
        maximum = sum > maximum ? sum : maximum;
        maximum = strips->items[i].high > maximum ? strips->items[i].high : maximum;
    }
    return maximum;
}

double sl_grid_strength(const sl_grid *grid, double value) {
    /* The scale begins below the minimum, so that the slowest cell differs from an empty one. */
    double low = grid->minimum > 0 ? grid->minimum - (grid->maximum - grid->minimum) / 8 : 0;
    double strength = grid->maximum > low ? (value - low) / (grid->maximum - low) : 1;
    return strength < 0 ? 0 : strength > 1 ? 1 : strength;
}

double sl_curves_maximum(const sl_curves *curves) {
    double maximum = 0;
    for (size_t k = 0; k < curves->count; k++) {
        for (size_t i = 0; i < curves->items[k].count; i++) {
            double value = curves->items[k].y[i];
            for (size_t below = 0; curves->stacked && below < k; below++)
                value += curves->items[below].y[i];
            maximum = value > maximum ? value : maximum;
        }
    }
    return curves->unit == SL_UNIT_SHARE && maximum > 0 ? 1 : maximum;
}

double sl_curves_end(const sl_curves *curves) {
    double end = 0;
    for (size_t k = 0; k < curves->count; k++) {
        const sl_curve *curve = &curves->items[k];
        if (curve->count > 0 && curve->x[curve->count] > end)
            end = curve->x[curve->count];
    }
    for (size_t i = 0; i < curves->band_count; i++)
        end = curves->bands[i].to > end ? curves->bands[i].to : end;
    return end;
}

/* ---- ticks ---- */

static double round_step(double least) {
    double power = pow(10, floor(log10(least)));
    static const double steps[] = {1, 2, 5, 10};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i] * power >= least * (1 - 1e-9))
            return steps[i] * power;
    }
    return 10 * power;
}

static double clock_step(double least) {
    static const double steps[] = {1,   2,   5,    10,   15,   30,    60,    120,   300,
                                   600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400};
    if (least < 1)
        return round_step(least);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i] >= least * (1 - 1e-9))
            return steps[i];
    }
    return 86400 * round_step(least / 86400);
}

sl_ticks sl_ticks_for(double maximum, unsigned count, sl_unit unit) {
    if (!(maximum > 1e-12) || !isfinite(maximum))
        maximum = 1;
    if (unit == SL_UNIT_COUNT && maximum < 1)
        maximum = 1;
    double least = maximum / (count ? count : 1);
    sl_ticks ticks = {.step = unit == SL_UNIT_SECONDS ? clock_step(least) : round_step(least)};
    if (unit == SL_UNIT_COUNT && ticks.step < 1)
        ticks.step = 1;
    ticks.count = (unsigned)ceil(maximum / ticks.step * (1 - 1e-9));
    ticks.top = ticks.count * ticks.step;
    return ticks;
}

/* The number of decimals that the step of the ticks needs. */
static int decimals_of(double step) {
    int decimals = 0;
    for (double rest = step; decimals < 6 && fabs(rest - round(rest)) > 1e-6 * rest; rest *= 10)
        decimals++;
    return decimals;
}

static char *clock_text(double seconds, double step, char out[SL_HUMAN_ROOM]) {
    if (seconds == 0)
        snprintf(out, SL_HUMAN_ROOM, "0");
    else if (step < 60 && seconds < 120)
        snprintf(out, SL_HUMAN_ROOM, "%.*f s", decimals_of(step), seconds);
    else if (seconds < 3600)
        snprintf(out, SL_HUMAN_ROOM, fmod(seconds, 60) == 0 ? "%.0f min" : "%.0f:%02.0f",
                 floor(seconds / 60), fmod(seconds, 60));
    else if (fmod(seconds, 3600) == 0)
        snprintf(out, SL_HUMAN_ROOM, "%.0f h", seconds / 3600);
    else
        snprintf(out, SL_HUMAN_ROOM, "%.0f h %02.0f", floor(seconds / 3600),
                 floor(fmod(seconds, 3600) / 60));
    return out;
}

/* Ticks of one axis share their unit and their decimals: 0.5 MB, 1.0 MB, 1.5 MB. */
static char *scaled_text(double value, const sl_ticks *ticks, const char *const *units,
                         unsigned count, char out[SL_HUMAN_ROOM]) {
    double divisor = 1;
    unsigned unit = 0;
    while (ticks->top / divisor >= 1000 && unit + 1 < count) {
        divisor *= 1000;
        unit++;
    }
    snprintf(out, SL_HUMAN_ROOM, "%.*f%s", decimals_of(ticks->step / divisor), value / divisor,
             units[unit]);
    return out;
}

char *sl_tick_text(double value, const sl_ticks *ticks, sl_unit unit, char out[SL_HUMAN_ROOM]) {
    static const char *const counts[] = {"", "k", "M", "G", "T", "P"};
    static const char *const bytes[] = {" B", " kB", " MB", " GB", " TB", " PB"};
    if (value == 0) {
        snprintf(out, SL_HUMAN_ROOM, "0");
        return out;
    }
    switch (unit) {
    case SL_UNIT_SECONDS:
        return clock_text(value, ticks->step, out);
    case SL_UNIT_BYTES:
        return scaled_text(value, ticks, bytes, sizeof bytes / sizeof bytes[0], out);
    case SL_UNIT_COUNT:
        return scaled_text(value, ticks, counts, sizeof counts / sizeof counts[0], out);
    case SL_UNIT_MILLISECONDS:
        snprintf(out, SL_HUMAN_ROOM, "%.*f ms", decimals_of(ticks->step), value);
        return out;
    case SL_UNIT_SHARE:
        snprintf(out, SL_HUMAN_ROOM, "%.*f %%", decimals_of(100 * ticks->step), 100 * value);
        return out;
    }
    return out;
}
