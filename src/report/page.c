/* SPDX-License-Identifier: Apache-2.0 */
/* A page and its blocks. All memory belongs to the page and is freed with it. */
#include "page.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct piece {
    struct piece *next;
    max_align_t bytes[];
} piece;

struct sl_page {
    piece *pieces;
    sl_block *first;
    sl_block **end;
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

const sl_block *sl_page_first(const sl_page *page) {
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

const char *sl_page_text(sl_page *page, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : sl_page_memory(page, (size_t)length + 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return text ? text : "";
}

/* Makes room for one more item of `size` bytes at the end of `list` and counts it; the item is
 * zeroed. Returns the list, or NULL without memory. */
static void *grown(sl_page *page, void *list, size_t *count, size_t *room, size_t size) {
    if (*count == *room) {
        size_t more = *room ? 2 * *room : 8;
        char *copy = sl_page_memory(page, more * size);
        if (!copy)
            return NULL;
        if (*count)
            memcpy(copy, list, *count * size);
        list = copy;
        *room = more;
    }
    ++*count;
    return list;
}

static sl_block *add_block(sl_page *page, sl_block_kind kind, const char *text) {
    sl_block *block = sl_page_memory(page, sizeof *block);
    if (!block)
        return NULL;
    block->kind = kind;
    block->text = text;
    *page->end = block;
    page->end = &block->next;
    return block;
}

void sl_page_add_text(sl_page *page, sl_block_kind kind, sl_tone tone, const char *text) {
    sl_block *block = add_block(page, kind, text);
    if (block)
        block->tone = tone;
}

static sl_page_table *new_table(sl_page *page, const char *const *titles, const char *left,
                                size_t columns) {
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
    return table;
}

/* Adds a block with a picture of `size` bytes. NULL, with no block, without memory. */
static void *add_picture(sl_page *page, sl_block_kind kind, const char *title, const char *caption,
                         size_t size, sl_block **block) {
    void *picture = sl_page_memory(page, size);
    *block = picture ? add_block(page, kind, title) : NULL;
    if (!*block)
        return NULL;
    (*block)->caption = caption;
    return picture;
}

sl_page_table *sl_page_add_facts(sl_page *page) {
    sl_page_table *table = new_table(page, NULL, "lr", 2);
    sl_block *block = table ? add_block(page, SL_BLOCK_FACTS, NULL) : NULL;
    if (!block)
        return NULL;
    block->of.table = table;
    return table;
}

sl_page_table *sl_page_add_table(sl_page *page, const char *title, const char *const *titles,
                                 const char *left, size_t columns) {
    sl_page_table *table = new_table(page, titles, left, columns);
    sl_block *block = table ? add_block(page, SL_BLOCK_TABLE, title) : NULL;
    if (!block)
        return NULL;
    block->of.table = table;
    return table;
}

sl_curves *sl_page_add_curves(sl_page *page, const char *title, const char *caption,
                              const char *y_name, sl_unit unit, bool stacked) {
    sl_block *block;
    sl_curves *curves =
        add_picture(page, SL_BLOCK_CURVES, title, caption, sizeof(sl_curves), &block);
    if (!curves)
        return NULL;
    block->of.curves = curves;
    curves->y_name = y_name;
    curves->unit = unit;
    curves->stacked = stacked;
    return curves;
}

sl_bars *sl_page_add_bars(sl_page *page, const char *title, const char *caption, sl_unit unit) {
    sl_block *block;
    sl_bars *bars = add_picture(page, SL_BLOCK_BARS, title, caption, sizeof(sl_bars), &block);
    if (!bars)
        return NULL;
    block->of.bars = bars;
    bars->unit = unit;
    return bars;
}

sl_strips *sl_page_add_strips(sl_page *page, const char *title, const char *caption, sl_unit unit) {
    sl_block *block;
    sl_strips *strips =
        add_picture(page, SL_BLOCK_STRIPS, title, caption, sizeof(sl_strips), &block);
    if (!strips)
        return NULL;
    block->of.strips = strips;
    strips->unit = unit;
    strips->limit = NAN;
    return strips;
}

sl_grid *sl_page_add_grid(sl_page *page, const char *title, const char *caption, size_t rows,
                          size_t columns) {
    sl_block *block;
    sl_grid *grid = add_picture(page, SL_BLOCK_GRID, title, caption, sizeof(sl_grid), &block);
    if (!grid)
        return NULL;
    grid->row_count = rows;
    grid->column_count = columns;
    grid->rows = sl_page_memory(page, (rows + 1) * sizeof(char *));
    grid->columns = sl_page_memory(page, (columns + 1) * sizeof(char *));
    grid->cells = sl_page_memory(page, (rows * columns + 1) * sizeof *grid->cells);
    if (!grid->rows || !grid->columns || !grid->cells) {
        grid->row_count = grid->column_count = 0;
        block->of.grid = grid;
        return NULL;
    }
    for (size_t i = 0; i < rows; i++)
        grid->rows[i] = "";
    for (size_t i = 0; i < columns; i++)
        grid->columns[i] = "";
    for (size_t i = 0; i < rows * columns; i++)
        grid->cells[i].value = NAN;
    grid->row_name = grid->column_name = "";
    block->of.grid = grid;
    return grid;
}

void sl_page_cell(sl_page *page, sl_page_table *table, const char *text) {
    void *list =
        table ? grown(page, table->cells, &table->count, &table->room, sizeof(char *)) : NULL;
    if (!list)
        return;
    table->cells = list;
    table->cells[table->count - 1] = text ? text : "";
}

void sl_page_fact(sl_page *page, sl_page_table *facts, const char *name, const char *value) {
    sl_page_cell(page, facts, name);
    sl_page_cell(page, facts, value);
}

sl_curve *sl_page_curve(sl_page *page, sl_curves *curves, const char *name, size_t count) {
    double *x = sl_page_memory(page, (count + 1) * sizeof *x);
    double *y = sl_page_memory(page, (count + 1) * sizeof *y);
    void *list = curves && x && y ? grown(page, curves->items, &curves->count, &curves->room,
                                          sizeof *curves->items)
                                  : NULL;
    if (!list)
        return NULL;
    curves->items = list;
    sl_curve *curve = &curves->items[curves->count - 1];
    *curve = (sl_curve){name, count, x, y};
    return curve;
}

void sl_page_band(sl_page *page, sl_curves *curves, const char *name, double from, double to) {
    void *list = curves ? grown(page, curves->bands, &curves->band_count, &curves->band_room,
                                sizeof *curves->bands)
                        : NULL;
    if (!list)
        return;
    curves->bands = list;
    curves->bands[curves->band_count - 1] = (sl_band){name, from, to};
}

sl_bar *sl_page_bar(sl_page *page, sl_bars *bars, const char *label, double value,
                    const char *text) {
    void *list =
        bars ? grown(page, bars->items, &bars->count, &bars->room, sizeof *bars->items) : NULL;
    if (!list)
        return NULL;
    bars->items = list;
    sl_bar *bar = &bars->items[bars->count - 1];
    *bar = (sl_bar){.label = label, .text = text, .low = NAN, .high = NAN};
    bar->value = value <= SL_VALUE_MAX ? value : NAN;
    return bar;
}

sl_strip *sl_page_strip(sl_page *page, sl_strips *strips, const char *label) {
    void *list =
        strips ? grown(page, strips->items, &strips->count, &strips->room, sizeof *strips->items)
               : NULL;
    if (!list)
        return NULL;
    strips->items = list;
    sl_strip *strip = &strips->items[strips->count - 1];
    *strip = (sl_strip){.label = label, .low = NAN, .high = NAN};
    return strip;
}

/* The index of a name in the picture's list of names; adds it if it is new. */
static size_t name_index(sl_page *page, sl_strips *strips, const char *name) {
    for (size_t i = 0; i < strips->name_count; i++) {
        if (strcmp(strips->names[i], name) == 0)
            return i;
    }
    void *list = grown(page, strips->names, &strips->name_count, &strips->name_room, sizeof name);
    if (!list)
        return 0;
    strips->names = list;
    strips->names[strips->name_count - 1] = name;
    return strips->name_count - 1;
}

void sl_page_part(sl_page *page, sl_strips *strips, sl_strip *strip, const char *name,
                  double value) {
    void *list = strips && strip && value >= 0 && value <= SL_VALUE_MAX
                     ? grown(page, strip->parts, &strip->count, &strip->room, sizeof *strip->parts)
                     : NULL;
    if (!list)
        return;
    strip->parts = list;
    strip->parts[strip->count - 1] = (sl_part){name_index(page, strips, name), value};
}
