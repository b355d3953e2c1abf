/* SPDX-License-Identifier: Apache-2.0 */
/* Draws grids: cells with figures, or many small cells over time. The value sets the opacity of one
 * colour, which works on white, on black and in print. */
#include "picture.h"

#include "scale.h"

#define TOP 40.0
#define LEVELS 16

/* Opacities: the palest visible cell; and from STRONG on, text in a cell has the page's colour. */
#define PALEST 0.07
#define STRONG 0.64

static double opacity_of(const sl_grid *grid, double value) {
    return PALEST + (0.92 - PALEST) * sl_grid_strength(grid, value);
}

static double rows_end(const sl_grid *grid) {
    size_t letters = 0;
    for (size_t i = 0; i < grid->row_count; i++) {
        size_t width = sl_markup_width(grid->rows[i], 24);
        letters = width > letters ? width : letters;
    }
    size_t name = sl_markup_width(grid->row_name, 24);
    return 16 + SL_PICTURE_CHARACTER * (double)(letters > name ? letters : name);
}

static void draw_cell(FILE *out, const sl_grid *grid, const sl_cell *cell, double x, double y,
                      double width, double height) {
    if (!(cell->value >= 0)) {
        fprintf(out,
                "<rect class=\"empty\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\"/>\n",
                x + 1, y + 1, width - 2, height - 2);
        return;
    }
    double opacity = opacity_of(grid, cell->value);
    const char *class = opacity > STRONG ? "over" : "label";
    const char *small = opacity > STRONG ? "over small" : "small";
    size_t room = (size_t)(width / 5.4);
    fprintf(out,
            "<rect class=\"heat%s\" fill-opacity=\"%.2f\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"/>\n",
            cell->mark ? " marked" : "", opacity, x + 1, y + 1, width - 2, height - 2);
    double line = y + height / 2 + (cell->mark ? -9 : cell->more ? -2 : 4);
    if (cell->text)
        sl_picture_text(out, x + width / 2, line, class, "middle", cell->text, room);
    if (cell->more)
        sl_picture_text(out, x + width / 2, line + 14, small, "middle", cell->more, room);
    if (cell->mark)
        sl_picture_text(out, x + width / 2, line + 27, small, "middle", cell->mark, room);
}

static void draw_table(FILE *out, const sl_grid *grid, const char *label) {
    double left = rows_end(grid);
    double width = (SL_PICTURE_WIDTH - left - 8) / (double)grid->column_count;
    double height = 50;
    width = width > 150 ? 150 : width;
    sl_picture_begin(out, TOP + height * (double)grid->row_count + 6, label);
    sl_picture_text(out, left - 8, TOP - 8, "name", "end", grid->row_name, 24);
    sl_picture_text(out, left, 14, "name", "start", grid->column_name, 60);
    for (size_t i = 0; i < grid->column_count; i++)
        sl_picture_text(out, left + width * ((double)i + 0.5), TOP - 8, "tick", "middle",
                        grid->columns[i], (size_t)(width / SL_PICTURE_CHARACTER) + 1);
    for (size_t row = 0; row < grid->row_count; row++) {
        double y = TOP + height * (double)row;
        sl_picture_text(out, left - 8, y + height / 2 + 4, "tick", "end", grid->rows[row], 24);
        for (size_t i = 0; i < grid->column_count; i++)
            draw_cell(out, grid, &grid->cells[row * grid->column_count + i],
                      left + width * (double)i, y, width, height);
    }
    sl_picture_end(out);
}

/* Draws all cells of one strength as one path, so that a page with 64 shards stays small. */
static void draw_levels(FILE *out, const sl_grid *grid, double left, double width, double height) {
    for (unsigned level = 0; level < LEVELS; level++) {
        bool any = false;
        for (size_t i = 0; i < grid->row_count * grid->column_count; i++) {
            double strength = sl_grid_strength(grid, grid->cells[i].value);
            unsigned of = (unsigned)(strength * (LEVELS - 1) + 0.5);
            if (!(grid->cells[i].value >= 0) || of != level)
                continue;
            if (!any)
                fprintf(out, "<path class=\"heat crisp\" fill-opacity=\"%.2f\" d=\"",
                        PALEST / 2 + (0.95 - PALEST / 2) * level / (LEVELS - 1));
            any = true;
            fprintf(out, "M%.1f %.1fh%.1fv%.1fh-%.1fz",
                    left + width * (double)(i % grid->column_count),
                    TOP / 2 + height * (double)(i / grid->column_count), width, height, width);
        }
        if (any)
            fputs("\"/>\n", out);
    }
}

static void draw_dense(FILE *out, const sl_grid *grid, const char *label) {
    char text[SL_HUMAN_ROOM];
    double left = rows_end(grid), right = SL_PICTURE_WIDTH - 24;
    double height = 420 / (double)grid->row_count;
    height = height > 18 ? 18 : height < 2 ? 2 : height;
    double width = (right - left) / (double)grid->column_count;
    double bottom = TOP / 2 + height * (double)grid->row_count;
    size_t every = (size_t)(13 / height) + 1; /* rows from name to name */
    sl_picture_begin(out, bottom + 26, label);
    for (size_t row = 0; row < grid->row_count; row += every)
        sl_picture_text(out, left - 8, TOP / 2 + height * ((double)row + 0.5) + 4, "tick", "end",
                        grid->rows[row], 24);
    draw_levels(out, grid, left, width, height);
    const sl_axis time = {
        .left = left, .width = right - left, .end = grid->seconds, .unit = SL_UNIT_SECONDS};
    sl_picture_scale(out, &time, bottom);
    sl_picture_end(out);
    fprintf(out, "<p class=\"note\">The strongest colour is %s per second.</p>\n",
            sl_value_text(grid->maximum, SL_UNIT_COUNT, text));
}

void sl_picture_grid(FILE *out, const sl_grid *grid, const char *label) {
    if (grid->row_count == 0 || grid->column_count == 0)
        return;
    if (grid->dense && grid->seconds > 0)
        draw_dense(out, grid, label);
    else
        draw_table(out, grid, label);
}
