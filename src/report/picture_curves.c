/* SPDX-License-Identifier: Apache-2.0 */
/* Draws curves over time: one step per interval, stacked or overlaid, with the names of the curves
 * at the right edge. */
#include "picture.h"

#include <stdlib.h>
#include <string.h>

#include "scale.h"

#define HEIGHT 270
#define LEFT 64.0
#define RIGHT 752.0 /* of the plot; the names are to the right of it */
#define TOP 30.0
#define BOTTOM 228.0
#define LINE 15.0 /* from name to name */
#define NAMES_MAX 16
#define NAME_LETTERS 17

typedef struct plot {
    FILE *out;
    const sl_curves *curves;
    double end;     /* of the time axis, seconds */
    sl_ticks ticks; /* of the y axis */
} plot;

static double at_x(const plot *p, double seconds) {
    return LEFT + (RIGHT - LEFT) * seconds / p->end;
}

static double at_y(const plot *p, double value) {
    return BOTTOM - (BOTTOM - TOP) * value / p->ticks.top;
}

static void draw_axes(const plot *p) {
    char text[SL_HUMAN_ROOM];
    for (unsigned i = 0; i <= p->ticks.count; i++) {
        double value = i * p->ticks.step, y = at_y(p, value);
        fprintf(p->out, "<path class=\"rule\" d=\"M%.1f %.1fH%.1f\"/>\n", LEFT, y, RIGHT);
        sl_picture_text(p->out, LEFT - 6, y + 4, "tick", "end",
                        sl_tick_text(value, &p->ticks, p->curves->unit, text), 20);
    }
    const sl_axis time = {
        .left = LEFT, .width = RIGHT - LEFT, .end = p->end, .unit = SL_UNIT_SECONDS};
    sl_picture_scale(p->out, &time, BOTTOM);
    fprintf(p->out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", LEFT, BOTTOM, RIGHT);
    sl_picture_text(p->out, RIGHT, BOTTOM + 34, "name", "end", "time", 20);
    sl_picture_text(p->out, 4, 14, "name", "start", p->curves->y_name, 60);
}

/* Draws the phases: a tint for every second phase, its name if it fits. */
static void draw_bands(const plot *p) {
    for (size_t i = 0; i < p->curves->band_count; i++) {
        const sl_band *band = &p->curves->bands[i];
        double from = at_x(p, band->from), width = at_x(p, band->to) - from;
        size_t letters = sl_markup_width(band->name, 40);
        if (width < 0.5)
            continue;
        fprintf(p->out,
                "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
                "<title>",
                i % 2 ? "band" : "none", from, TOP, width, BOTTOM - TOP);
        sl_markup_text(p->out, band->name, 40);
        fputs("</title></rect>\n", p->out);
        if (width > SL_PICTURE_CHARACTER * (double)letters + 4)
            sl_picture_text(p->out, from + width / 2, TOP - 4, "name", "middle", band->name, 40);
    }
}

/* The sum of the curves below curve `k` in interval `i`; 0 unless stacked. */
static double base_of(const sl_curves *curves, size_t k, size_t i) {
    double sum = 0;
    for (size_t below = 0; curves->stacked && below < k; below++)
        sum += curves->items[below].y[i];
    return sum;
}

static void draw_steps(const plot *p, size_t k) {
    const sl_curve *curve = &p->curves->items[k];
    for (size_t i = 0; i < curve->count; i++) {
        double y = at_y(p, base_of(p->curves, k, i) + curve->y[i]);
        if (i == 0)
            fprintf(p->out, "M%.1f %.1f", at_x(p, curve->x[0]), y);
        else
            fprintf(p->out, "V%.1f", y);
        fprintf(p->out, "H%.1f", at_x(p, curve->x[i + 1]));
    }
}

/* The style of a line beside others: colours alone are not enough. */
static const char *dashes_of(size_t k) {
    static const char *const styles[] = {"", " dash", " dots"};
    return styles[k % 3];
}

static void draw_curve(const plot *p, size_t k) {
    const sl_curve *curve = &p->curves->items[k];
    bool area = p->curves->stacked || p->curves->count == 1;
    size_t colour = k % SL_PICTURE_COLOURS;
    if (curve->count == 0)
        return;
    if (area) {
        fprintf(p->out, "<path class=\"area f%zu\" d=\"", colour);
        draw_steps(p, k);
        for (size_t i = curve->count; i-- > 0;)
            fprintf(p->out, "V%.1fH%.1f", at_y(p, base_of(p->curves, k, i)), at_x(p, curve->x[i]));
        fputs("Z\"/>\n", p->out);
    }
    fprintf(p->out, "<path class=\"line s%zu%s\" d=\"", colour, area ? "" : dashes_of(k));
    draw_steps(p, k);
    fputs("\"/>\n", p->out);
}

/* ---- names ---- */

typedef struct name {
    double y;
    size_t curve;
} name;

static int from_the_top(const void *left, const void *right) {
    const name *a = left, *b = right;
    return a->y < b->y ? -1 : a->y > b->y ? 1 : (a->curve > b->curve) - (a->curve < b->curve);
}

/* The y coordinate for a curve's name: the mean of the last third of the curve. */
static double height_at_the_end(const plot *p, size_t k) {
    const sl_curve *curve = &p->curves->items[k];
    size_t from = curve->count - (curve->count + 2) / 3;
    double sum = 0;
    for (size_t i = from; i < curve->count; i++) {
        double base = base_of(p->curves, k, i);
        sum += base + (p->curves->stacked ? curve->y[i] / 2 : curve->y[i]);
    }
    return at_y(p, sum / (double)(curve->count - from));
}

static void draw_names(const plot *p) {
    name names[NAMES_MAX];
    size_t count = 0;
    for (size_t k = 0; k < p->curves->count && count < NAMES_MAX; k++) {
        if (p->curves->items[k].count > 0)
            names[count++] = (name){height_at_the_end(p, k), k};
    }
    qsort(names, count, sizeof *names, from_the_top);
    for (size_t i = 0; i < count; i++) { /* move names down, so that they do not overlap */
        double least = i == 0 ? TOP + 4 : names[i - 1].y + LINE;
        names[i].y = names[i].y < least ? least : names[i].y;
    }
    for (size_t i = count; i-- > 0;) { /* move names up that are below the plot */
        double most = i + 1 == count ? BOTTOM : names[i + 1].y - LINE;
        names[i].y = names[i].y > most ? most : names[i].y;
    }
    for (size_t i = 0; i < count; i++) {
        size_t k = names[i].curve;
        bool area = p->curves->stacked || p->curves->count == 1;
        if (area)
            fprintf(p->out,
                    "<rect class=\"f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\"/>\n",
                    k % SL_PICTURE_COLOURS, RIGHT + 8, names[i].y - 5);
        else
            fprintf(p->out, "<path class=\"line s%zu%s\" d=\"M%.1f %.1fh14\"/>\n",
                    k % SL_PICTURE_COLOURS, dashes_of(k), RIGHT + 6, names[i].y);
        sl_picture_text(p->out, RIGHT + 24, names[i].y + 4, "label", "start",
                        p->curves->items[k].name, NAME_LETTERS);
    }
}

/* Draws invisible columns whose tooltips show the values. */
static void draw_readings(const plot *p) {
    const sl_curves *curves = p->curves;
    const sl_curve *first = &curves->items[0];
    char text[SL_HUMAN_ROOM];
    if (curves->count > 1 && !curves->stacked)
        return; /* the curves may have different borders */
    for (size_t i = 0; i < first->count; i++) {
        double x = at_x(p, first->x[i]);
        fprintf(p->out,
                "<rect class=\"none\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
                "<title>",
                x, TOP, at_x(p, first->x[i + 1]) - x, BOTTOM - TOP);
        fprintf(p->out, "%.1f to %.1f s", first->x[i], first->x[i + 1]);
        for (size_t k = 0; k < curves->count && k < NAMES_MAX; k++) {
            fputs("\n", p->out);
            sl_markup_text(p->out, curves->items[k].name, 40);
            fprintf(p->out, ": %s", sl_value_text(curves->items[k].y[i], curves->unit, text));
        }
        fputs("</title></rect>\n", p->out);
    }
}

void sl_picture_curves(FILE *out, const sl_curves *curves, const char *label) {
    plot p = {.out = out, .curves = curves, .end = sl_curves_end(curves)};
    if (!(p.end > 0) || curves->count == 0)
        return;
    p.ticks = sl_ticks_for(sl_curves_maximum(curves), 5, curves->unit);
    sl_picture_begin(out, HEIGHT, label);
    draw_bands(&p);
    draw_axes(&p);
    for (size_t k = 0; k < curves->count; k++)
        draw_curve(&p, k);
    draw_readings(&p);
    draw_names(&p);
    sl_picture_end(out);
}
