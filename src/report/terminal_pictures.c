/* SPDX-License-Identifier: Apache-2.0 */
/* Draws pictures with characters: curves, bars, strips and grids. */
#include <stdlib.h>
#include <string.h>

#include "util/print.h"

#include "picture.h"
#include "scale.h"
#include "terminal.h"

#define LABEL_MOST 28
#define CHART_ROWS 8

/* Nine levels, from empty to full. */
static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const shades[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};

static const char *level_of(const sl_screen *screen, double share) {
    int level = share > 0 ? (int)(share * 8 + 0.5) : 0;
    level = level > 8 ? 8 : level == 0 && share > 0 ? 1 : level;
    return screen->ascii ? shades[level] : blocks[level];
}

/* The mean of a curve between two times. */
static double mean_between(const sl_curve *curve, double from, double to) {
    double sum = 0;
    for (size_t i = 0; i < curve->count; i++) {
        double begin = curve->x[i] > from ? curve->x[i] : from;
        double end = curve->x[i + 1] < to ? curve->x[i + 1] : to;
        if (end > begin)
            sum += curve->y[i] * (end - begin);
    }
    return to > from ? sum / (to - from) : 0;
}

static double mean_of(const sl_curve *curve) {
    return curve->count ? mean_between(curve, curve->x[0], curve->x[curve->count]) : 0;
}

/* Draws the sum of the curves as columns of eight rows, with axes. */
static void put_chart(const sl_screen *screen, const sl_curves *curves, double end) {
    size_t width = screen->columns - 14;
    double values[200], maximum = 0;
    char text[SL_HUMAN_ROOM];
    for (size_t i = 0; i < width; i++) {
        values[i] = 0;
        for (size_t k = 0; k < curves->count; k++)
            values[i] += mean_between(&curves->items[k], end * (double)i / (double)width,
                                      end * (double)(i + 1) / (double)width);
        maximum = values[i] > maximum ? values[i] : maximum;
    }
    sl_ticks ticks = sl_ticks_for(maximum, 2, curves->unit);
    for (unsigned row = CHART_ROWS; row-- > 0;) {
        bool ticked = row == CHART_ROWS - 1;
        sl_put_letters(screen, ticked ? sl_tick_text(ticks.top, &ticks, curves->unit, text) : "", 9,
                       true);
        fputs(screen->ascii ? " |" : " │", screen->out);
        for (size_t i = 0; i < width; i++) {
            double share = values[i] / ticks.top * CHART_ROWS - row;
            if (screen->ascii)
                fputs(share >= 0.5 ? "#" : share > 0 && row == 0 ? "." : " ", screen->out);
            else
                fputs(level_of(screen, share < 0 ? 0 : share > 1 ? 1 : share), screen->out);
        }
        fputs("\n", screen->out);
    }
    sl_put_letters(screen, "0", 9, true);
    fputs(screen->ascii ? " +" : " └", screen->out);
    sl_put_repeated(screen, screen->ascii ? "-" : "─", width);
    fputs("\n           0", screen->out);
    sl_put_letters(screen, sl_human_seconds(end, text), width - 1, true);
    fputs("\n", screen->out);
}

/* Writes the names of phases below the time axis, where they fit. */
static void put_bands(const sl_screen *screen, const sl_curves *curves, double end) {
    size_t width = screen->columns - 14, column = 0;
    if (curves->band_count == 0)
        return;
    fputs("           ", screen->out);
    for (size_t i = 0; i < curves->band_count; i++) {
        size_t from = (size_t)(curves->bands[i].from / end * (double)width);
        size_t to = (size_t)(curves->bands[i].to / end * (double)width);
        size_t letters = sl_letters(sl_text_of(curves->bands[i].name));
        if (to < from + letters + 2 || from < column)
            continue;
        sl_print_to(screen->out, "%*s|", (int)(from - column), "");
        sl_put_letters(screen, curves->bands[i].name, letters, false);
        column = from + 1 + letters;
    }
    fputs("\n", screen->out);
}

/* Draws one line per curve: its name, its values over time, its mean. */
static void put_lines(const sl_screen *screen, const sl_curves *curves, double end) {
    size_t label = 0;
    double maximum = 0;
    char text[SL_HUMAN_ROOM];
    for (size_t k = 0; k < curves->count; k++) {
        const sl_curve *curve = &curves->items[k];
        size_t letters = sl_letters(sl_text_of(curve->name));
        label = letters > label ? letters : label;
        for (size_t i = 0; i < curve->count; i++)
            maximum = curve->y[i] > maximum ? curve->y[i] : maximum;
    }
    label = label > LABEL_MOST ? LABEL_MOST : label;
    /* 26 columns are for spaces and the mean with its unit. */
    size_t width = screen->columns > label + 32 ? screen->columns - label - 26 : 8;
    for (size_t k = 0; k < curves->count; k++) {
        const sl_curve *curve = &curves->items[k];
        fputs("  ", screen->out);
        sl_put_letters(screen, curve->name, label, false);
        fputs("  ", screen->out);
        for (size_t i = 0; i < width; i++) {
            double mean = mean_between(curve, end * (double)i / (double)width,
                                       end * (double)(i + 1) / (double)width);
            fputs(level_of(screen, maximum > 0 ? mean / maximum : 0), screen->out);
        }
        sl_print_to(screen->out, "  mean %s\n", sl_value_text(mean_of(curve), curves->unit, text));
    }
}

void sl_terminal_curves(const sl_screen *screen, const sl_curves *curves) {
    double end = sl_curves_end(curves);
    if (!(end > 0) || curves->count == 0)
        return;
    bool sum = curves->count == 1 || (curves->stacked && curves->unit != SL_UNIT_SHARE);
    if (sum) {
        put_chart(screen, curves, end);
        put_bands(screen, curves, end);
    }
    if (curves->count > 1)
        put_lines(screen, curves, end);
}

/* ---- bars and strips ---- */

void sl_terminal_bars(const sl_screen *screen, const sl_bars *bars) {
    size_t label = 0, words = 0;
    double maximum = 0;
    for (size_t i = 0; i < bars->count; i++) {
        size_t letters = sl_letters(sl_text_of(bars->items[i].label));
        label = letters > label ? letters : label;
        letters = sl_letters(sl_text_of(bars->items[i].text)) + (bars->items[i].high >= 0 ? 24 : 0);
        words = letters > words ? letters : words;
        maximum = bars->items[i].value > maximum ? bars->items[i].value : maximum;
    }
    label = label > screen->columns / 3 ? screen->columns / 3 : label;
    size_t room = screen->columns > label + words + 10 ? screen->columns - label - words - 6 : 4;
    for (size_t i = 0; i < bars->count; i++) {
        const sl_bar *bar = &bars->items[i];
        char low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
        fputs("  ", screen->out);
        sl_put_letters(screen, bar->label, label, false);
        fputs("  ", screen->out);
        sl_put_bar(screen, maximum > 0 && bar->value > 0 ? bar->value / maximum * (double)room : 0);
        fputs(" ", screen->out);
        sl_put_letters(screen, bar->text, sl_letters(sl_text_of(bar->text)), false);
        if (bar->low >= 0 && bar->high >= 0)
            sl_print_to(screen->out, " (%s to %s)", sl_value_text(bar->low, bars->unit, low),
                        sl_value_text(bar->high, bars->unit, high));
        fputs("\n", screen->out);
    }
}

/* Draws each part on its own line, from its start to its end. */
static void put_strip(const sl_screen *screen, const sl_strips *strips, const sl_strip *strip,
                      size_t label, double maximum) {
    char text[SL_HUMAN_ROOM], low[SL_HUMAN_ROOM], high[SL_HUMAN_ROOM];
    size_t room = screen->columns - label - 18;
    double begun = 0, scale = maximum > 0 ? (double)room / maximum : 0;
    if (*strip->label) {
        sl_put_letters(screen, strip->label, sl_letters(sl_text_of(strip->label)), false);
        fputs("\n", screen->out);
    }
    for (size_t i = 0; i < strip->count; i++) {
        const sl_part *part = &strip->parts[i];
        size_t from = (size_t)(begun * scale);
        double length = part->value * scale;
        fputs("  ", screen->out);
        sl_put_letters(screen, strips->names[part->name], label, false);
        sl_print_to(screen->out, "  %*s", (int)from, "");
        sl_put_bar(screen, length);
        sl_print_to(screen->out, " %s\n", sl_value_text(part->value, strips->unit, text));
        begun += part->value;
    }
    if (strips->unit != SL_UNIT_SHARE)
        sl_print_to(screen->out, "  total %s", sl_value_text(begun, strips->unit, text));
    if (strip->low >= 0 && strip->high >= 0)
        sl_print_to(screen->out, " (%s to %s)", sl_value_text(strip->low, strips->unit, low),
                    sl_value_text(strip->high, strips->unit, high));
    fputs("\n", screen->out);
}

void sl_terminal_strips(const sl_screen *screen, const sl_strips *strips) {
    size_t label = 0;
    double maximum = sl_strips_maximum(strips);
    for (size_t i = 0; i < strips->name_count; i++) {
        size_t letters = sl_letters(sl_text_of(strips->names[i]));
        label = letters > label ? letters : label;
    }
    label = label > 16 ? 16 : label;
    for (size_t i = 0; i < strips->count; i++)
        put_strip(screen, strips, &strips->items[i], label, maximum);
    if (strips->limit > 0) {
        sl_put_letters(screen, strips->limit_name, sl_letters(sl_text_of(strips->limit_name)),
                       false);
        fputs("\n", screen->out);
    }
}

/* ---- grids ---- */

static void put_dense(const sl_screen *screen, const sl_grid *grid, size_t label) {
    size_t room = screen->columns - label - 4;
    size_t columns = grid->column_count < room ? grid->column_count : room;
    char text[SL_HUMAN_ROOM];
    for (size_t row = 0; row < grid->row_count; row++) {
        fputs("  ", screen->out);
        sl_put_letters(screen, grid->rows[row], label, false);
        fputs("  ", screen->out);
        for (size_t i = 0; i < columns; i++) {
            const sl_cell *cell =
                &grid->cells[row * grid->column_count + i * grid->column_count / columns];
            fputs(level_of(screen, sl_grid_strength(grid, cell->value)), screen->out);
        }
        fputs("\n", screen->out);
    }
    sl_print_to(screen->out, "  maximum: %s per second\n",
                sl_value_text(grid->maximum, SL_UNIT_COUNT, text));
}

static void put_cells(const sl_screen *screen, const sl_grid *grid, size_t label) {
    size_t width = 12;
    fputs("  ", screen->out);
    sl_put_letters(screen, grid->row_name, label, false);
    sl_put_letters(screen, grid->column_name, width, true);
    fputs("\n  ", screen->out);
    sl_put_letters(screen, "", label, false);
    for (size_t i = 0; i < grid->column_count; i++)
        sl_put_letters(screen, grid->columns[i], width, true);
    fputs("\n", screen->out);
    for (size_t row = 0; row < grid->row_count; row++) {
        fputs("  ", screen->out);
        sl_put_letters(screen, grid->rows[row], label, true);
        for (size_t i = 0; i < grid->column_count; i++) {
            const sl_cell *cell = &grid->cells[row * grid->column_count + i];
            sl_put_letters(screen, cell->text ? cell->text : "-", width - 3, true);
            sl_print_to(screen->out, " %s%s",
                        cell->value >= 0 ? level_of(screen, sl_grid_strength(grid, cell->value))
                                         : " ",
                        cell->mark ? (strstr(cell->mark, "recommended") ? ">" : "*") : " ");
        }
        fputs("\n", screen->out);
    }
    fputs("  > recommended, * the fastest\n", screen->out);
}

void sl_terminal_grid(const sl_screen *screen, const sl_grid *grid) {
    size_t label = sl_letters(sl_text_of(grid->row_name));
    for (size_t i = 0; i < grid->row_count; i++) {
        size_t letters = sl_letters(sl_text_of(grid->rows[i]));
        label = letters > label ? letters : label;
    }
    label = label > 16 ? 16 : label;
    if (grid->row_count == 0 || grid->column_count == 0)
        return;
    if (grid->dense)
        put_dense(screen, grid, label);
    else
        put_cells(screen, grid, label);
}
