/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a page as one HTML file, without scripts or external files, for light and dark mode and
 * for print; its pictures are SVG. Text from records is escaped; should that fail, the page's
 * content security policy forbids scripts and requests. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory_stream.h"
#include "util/private_file.h"

#include "page.h"
#include "sections.h"

/* ---- pictures: text, the SVG element, axes ---- */

/* Pictures are WIDTH units wide and scale with the page. Colours are classes of the page's style
 * sheet (f0 and so on for fill, s0 and so on for stroke), so that a picture works in light mode,
 * dark mode and print. Tooltips are <title> elements; there is no script. */
#define WIDTH 900
#define COLOURS 8
#define CHARACTER 7.0 /* approximate width of a character of a label */
#define TEXT_ROOM 4000

/* The number of characters (not bytes) that sl_markup_text shows, at most `most`. */
static size_t markup_width(const char *text, size_t most) {
    size_t width = 0;
    for (; text && *text && width < most; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

/* The larger of `width` and the width of a text. */
static size_t wider(size_t width, const char *text, size_t most) {
    size_t own = markup_width(text, most);
    return own > width ? own : width;
}

void sl_markup_text(FILE *out, const char *text, size_t most) {
    static const char specials[] = "<>&\"'";
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
    char shown[TEXT_ROOM];
    size_t length = sl_text_printable(sl_text_of(text ? text : ""), shown, sizeof shown);
    size_t width = markup_width(shown, SIZE_MAX), done = 0;
    for (size_t i = 0; i < length; i++) {
        bool begins = ((unsigned char)shown[i] & 0xC0) != 0x80;
        if (begins && width > most && done + 1 >= most) {
            fputs("\xE2\x80\xA6", out); /* an ellipsis */
            return;
        }
        done += begins;
        const char *special = strchr(specials, shown[i]);
        if (special)
            fputs(entities[special - specials], out);
        else
            fputc(shown[i], out);
    }
}

/* Write the start and end tags of <svg>; `label` is the text for screen readers. */
static void picture_begin(FILE *out, double height, const char *label) {
    fprintf(out, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", WIDTH, height);
    sl_markup_text(out, label, 200);
    fputs("\">\n", out);
}

static void picture_end(FILE *out) {
    fputs("</svg>\n", out);
}

/* Writes <text class="CLASS" ...>, shortened to `most` characters; `anchor`: start, middle or
 * end. */
static void picture_text(FILE *out, double x, double y, const char *class, const char *anchor,
                         const char *text, size_t most) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, class,
            anchor);
    sl_markup_text(out, text, most);
    if (markup_width(text, SIZE_MAX) > most) {
        fputs("<title>", out);
        sl_markup_text(out, text, 1000);
        fputs("</title>", out);
    }
    fputs("</text>\n", out);
}

typedef struct picture_axis {
    double left, width;
    double end; /* the value at the right end, above 0 */
    sl_unit unit;
    bool first_right; /* the first value is to the right of its tick, not centred */
} picture_axis;

/* Draws the ticks of a horizontal axis at `y`, with their values below. */
static void picture_scale(FILE *out, const picture_axis *axis, double y) {
    char text[SL_HUMAN_ROOM];
    sl_ticks ticks = sl_ticks_for(axis->end, 8, axis->unit);
    for (unsigned i = 0; i <= ticks.count && i * ticks.step <= axis->end * (1 + 1e-9); i++) {
        double x = axis->left + axis->width * i * ticks.step / axis->end;
        fprintf(out, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>\n", x, y);
        picture_text(out, x, y + 17, "tick", i == 0 && axis->first_right ? "start" : "middle",
                     sl_tick_text(i * ticks.step, &ticks, axis->unit, text), 20);
    }
}

/* ---- curves ----
 *
 * Draws curves over time: one step per interval, stacked or overlaid, with the names of the curves
 * at the right edge. */

#define CURVES_HEIGHT 270
#define CURVES_LEFT 64.0
#define CURVES_RIGHT 752.0 /* of the plot; the names are to the right of it */
#define CURVES_TOP 30.0
#define CURVES_BOTTOM 228.0
#define NAME_LINE 15.0 /* from name to name */
#define NAMES_MAX 16
#define NAME_LETTERS 17

typedef struct plot {
    FILE *out;
    const sl_curves *curves;
    double end;     /* of the time axis, seconds */
    sl_ticks ticks; /* of the y axis */
} plot;

static double at_x(const plot *p, double seconds) {
    return CURVES_LEFT + (CURVES_RIGHT - CURVES_LEFT) * seconds / p->end;
}

static double at_y(const plot *p, double value) {
    return CURVES_BOTTOM - (CURVES_BOTTOM - CURVES_TOP) * value / p->ticks.top;
}

static void draw_axes(const plot *p) {
    char text[SL_HUMAN_ROOM];
    for (unsigned i = 0; i <= p->ticks.count; i++) {
        double value = i * p->ticks.step, y = at_y(p, value);
        fprintf(p->out, "<path class=\"rule\" d=\"M%.1f %.1fH%.1f\"/>\n", CURVES_LEFT, y,
                CURVES_RIGHT);
        picture_text(p->out, CURVES_LEFT - 6, y + 4, "tick", "end",
                     sl_tick_text(value, &p->ticks, p->curves->unit, text), 20);
    }
    const picture_axis time = {.left = CURVES_LEFT,
                               .width = CURVES_RIGHT - CURVES_LEFT,
                               .end = p->end,
                               .unit = SL_UNIT_SECONDS};
    picture_scale(p->out, &time, CURVES_BOTTOM);
    fprintf(p->out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", CURVES_LEFT, CURVES_BOTTOM,
            CURVES_RIGHT);
    picture_text(p->out, CURVES_RIGHT, CURVES_BOTTOM + 34, "name", "end", "time", 20);
    picture_text(p->out, 4, 14, "name", "start", p->curves->y_name, 60);
}

/* Draws the phases: a tint for every second phase, its name if it fits. */
static void draw_bands(const plot *p) {
    for (size_t i = 0; i < p->curves->band_count; i++) {
        const sl_band *band = &p->curves->bands[i];
        double from = at_x(p, band->from), width = at_x(p, band->to) - from;
        size_t letters = markup_width(band->name, 40);
        if (width < 0.5)
            continue;
        fprintf(p->out,
                "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
                "<title>",
                i % 2 ? "band" : "none", from, CURVES_TOP, width, CURVES_BOTTOM - CURVES_TOP);
        sl_markup_text(p->out, band->name, 40);
        fputs("</title></rect>\n", p->out);
        if (width > CHARACTER * (double)letters + 4)
            picture_text(p->out, from + width / 2, CURVES_TOP - 4, "name", "middle", band->name,
                         40);
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
    size_t colour = k % COLOURS;
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

typedef struct curve_name {
    double y;
    size_t curve;
} curve_name;

static int from_the_top(const void *left, const void *right) {
    const curve_name *a = left, *b = right;
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
    curve_name names[NAMES_MAX];
    size_t count = 0;
    for (size_t k = 0; k < p->curves->count && count < NAMES_MAX; k++) {
        if (p->curves->items[k].count > 0)
            names[count++] = (curve_name){height_at_the_end(p, k), k};
    }
    qsort(names, count, sizeof *names, from_the_top);
    for (size_t i = 0; i < count; i++) { /* move names down, so that they do not overlap */
        double least = i == 0 ? CURVES_TOP + 4 : names[i - 1].y + NAME_LINE;
        names[i].y = names[i].y < least ? least : names[i].y;
    }
    for (size_t i = count; i-- > 0;) { /* move names up that are below the plot */
        double most = i + 1 == count ? CURVES_BOTTOM : names[i + 1].y - NAME_LINE;
        names[i].y = names[i].y > most ? most : names[i].y;
    }
    for (size_t i = 0; i < count; i++) {
        size_t k = names[i].curve;
        bool area = p->curves->stacked || p->curves->count == 1;
        if (area)
            fprintf(p->out,
                    "<rect class=\"f%zu\" x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\"/>\n",
                    k % COLOURS, CURVES_RIGHT + 8, names[i].y - 5);
        else
            fprintf(p->out, "<path class=\"line s%zu%s\" d=\"M%.1f %.1fh14\"/>\n", k % COLOURS,
                    dashes_of(k), CURVES_RIGHT + 6, names[i].y);
        picture_text(p->out, CURVES_RIGHT + 24, names[i].y + 4, "label", "start",
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
                x, CURVES_TOP, at_x(p, first->x[i + 1]) - x, CURVES_BOTTOM - CURVES_TOP);
        fprintf(p->out, "%.1f to %.1f s", first->x[i], first->x[i + 1]);
        for (size_t k = 0; k < curves->count && k < NAMES_MAX; k++) {
            fputs("\n", p->out);
            sl_markup_text(p->out, curves->items[k].name, 40);
            fprintf(p->out, ": %s", sl_value_text(curves->items[k].y[i], curves->unit, text));
        }
        fputs("</title></rect>\n", p->out);
    }
}

static void picture_curves(FILE *out, const sl_curves *curves, const char *label) {
    plot p = {.out = out, .curves = curves, .end = sl_curves_end(curves)};
    if (!(p.end > 0) || curves->count == 0)
        return;
    p.ticks = sl_ticks_for(sl_curves_maximum(curves), 5, curves->unit);
    picture_begin(out, CURVES_HEIGHT, label);
    draw_bands(&p);
    draw_axes(&p);
    for (size_t k = 0; k < curves->count; k++)
        draw_curve(&p, k);
    draw_readings(&p);
    draw_names(&p);
    picture_end(out);
}

/* ---- bars and strips ----
 *
 * Draws bars with their spread, and strips: rows of consecutive parts along a common axis. */

#define BAR_ROW 26.0
#define BAR_HEIGHT 17.0
#define LABEL_LETTERS 36
#define BARS_RIGHT ((double)WIDTH - 14)

/* The x coordinate after the labels; the longest has `letters` characters. */
static double labels_end(size_t letters) {
    if (letters == 0)
        return 8;
    return 14 + CHARACTER * (double)(letters < LABEL_LETTERS ? letters : LABEL_LETTERS);
}

/* ---- bars ---- */

static void picture_bars(FILE *out, const sl_bars *bars, const char *label) {
    size_t letters = 0, words = 0;
    double maximum = 0;
    for (size_t i = 0; i < bars->count; i++) {
        const sl_bar *bar = &bars->items[i];
        letters = wider(letters, bar->label, LABEL_LETTERS);
        words = wider(words, bar->text, LABEL_LETTERS);
        maximum = bar->value > maximum ? bar->value : maximum;
        maximum = bar->high > maximum ? bar->high : maximum;
    }
    if (bars->count == 0)
        return;
    double left = labels_end(letters);
    double right = BARS_RIGHT - 14 - CHARACTER * (double)words;
    double scale = maximum > 0 ? (right - left) / maximum : 0;
    picture_begin(out, BAR_ROW * (double)bars->count + 8, label);
    for (size_t i = 0; i < bars->count; i++) {
        const sl_bar *bar = &bars->items[i];
        double y = 4 + BAR_ROW * (double)i, middle = y + BAR_HEIGHT / 2, end = left;
        picture_text(out, left - 8, middle + 4, "label", "end", bar->label, LABEL_LETTERS);
        if (bar->value >= 0) {
            end = left + scale * bar->value;
            fprintf(out,
                    "<rect class=\"f0\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                    left, y, end - left > 1 ? end - left : 1, BAR_HEIGHT);
        }
        if (bar->low >= 0 && bar->high >= bar->low) {
            double low = left + scale * bar->low, high = left + scale * bar->high;
            fprintf(out,
                    "<path class=\"whisker\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8\"/>\n",
                    low, middle, high, low, middle - 4, high, middle - 4);
            end = high > end ? high : end;
        }
        picture_text(out, end + 8, middle + 4, "label", "start", bar->text, LABEL_LETTERS);
    }
    fprintf(out, "<path class=\"axis\" d=\"M%.1f 0V%.1f\"/>\n", left,
            BAR_ROW * (double)bars->count + 4);
    picture_end(out);
}

/* ---- strips ---- */

#define LEGEND_MAX 1024
#define GREY (COLOURS - 1) /* the common colour of small parts */

typedef struct rail {
    FILE *out;
    const sl_strips *strips;
    double left, scale, top;
    double largest[LEGEND_MAX]; /* the largest part of each name */
    unsigned char colour[LEGEND_MAX];
} rail;

/* Assigns colours to names. A run may have more phases than there are colours: then the phases with
 * the largest parts get a colour each, in the order of the names, and all others are grey. */
static void choose_colours(rail *r) {
    size_t count = r->strips->name_count < LEGEND_MAX ? r->strips->name_count : LEGEND_MAX;
    for (size_t row = 0; row < r->strips->count; row++) {
        const sl_strip *strip = &r->strips->items[row];
        for (size_t i = 0; i < strip->count; i++) {
            size_t name = strip->parts[i].name;
            if (name < count && strip->parts[i].value > r->largest[name])
                r->largest[name] = strip->parts[i].value;
        }
    }
    unsigned char next = 0;
    for (size_t name = 0; name < count; name++) {
        size_t larger = 0;
        for (size_t other = 0; other < count; other++)
            larger += r->largest[other] > r->largest[name] ||
                      (other < name && !(r->largest[other] < r->largest[name]));
        r->colour[name] = count > COLOURS && larger >= GREY ? GREY : next++;
    }
}

static unsigned colour_of(const rail *r, size_t name) {
    return name < LEGEND_MAX ? r->colour[name] : GREY;
}

static void draw_strip(const rail *r, const sl_strip *strip, double y) {
    char text[SL_HUMAN_ROOM], share[SL_HUMAN_ROOM];
    double x = r->left, sum = sl_strip_sum(strip);
    for (size_t i = 0; i < strip->count; i++) {
        const sl_part *part = &strip->parts[i];
        double width = r->scale * part->value;
        const char *name = r->strips->names[part->name];
        if (width >= 0.3) {
            fprintf(r->out,
                    "<rect class=\"part f%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                    "height=\"%.1f\"><title>",
                    colour_of(r, part->name), x, y, width, BAR_HEIGHT);
            sl_markup_text(r->out, name, 60);
            fprintf(r->out, ": %s", sl_value_text(part->value, r->strips->unit, text));
            if (r->strips->unit != SL_UNIT_SHARE)
                fprintf(r->out, ", %s", sl_share_text(sum > 0 ? part->value / sum : 0, share));
            fputs("</title></rect>\n", r->out);
        }
        if (width > CHARACTER * (double)markup_width(name, 60) + 10)
            picture_text(r->out, x + width / 2, y + BAR_HEIGHT / 2 + 4, "inside", "middle", name,
                         60);
        x += width;
    }
    if (strip->low >= 0 && strip->high >= strip->low) {
        double low = r->left + r->scale * strip->low, high = r->left + r->scale * strip->high;
        double below = y + BAR_HEIGHT + 4;
        fprintf(r->out, "<path class=\"whisker\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv6M%.1f %.1fv6\"/>\n",
                low, below, high, low, below - 3, high, below - 3);
    }
}

/* Writes the names of the parts with their colours, as a list that wraps. */
static void write_legend(const rail *r) {
    fputs("<ul class=\"legend\">", r->out);
    for (size_t i = 0; i < r->strips->name_count; i++) {
        fprintf(r->out, "<li><i class=\"b%u\"></i>", colour_of(r, i));
        sl_markup_text(r->out, r->strips->names[i], 60);
        fputs("</li>", r->out);
    }
    fputs("</ul>\n", r->out);
}

static void picture_strips(FILE *out, const sl_strips *strips, const char *label) {
    size_t letters = 0;
    double maximum = sl_strips_maximum(strips);
    for (size_t i = 0; i < strips->count; i++)
        letters = wider(letters, strips->items[i].label, LABEL_LETTERS);
    if (!(maximum > 0))
        return;
    bool limit = strips->limit > 0;
    rail r = {.out = out, .strips = strips, .left = labels_end(letters), .top = limit ? 22 : 4};
    choose_colours(&r);
    r.scale = (BARS_RIGHT - r.left - 14) / maximum;
    double bottom = r.top + BAR_ROW * (double)strips->count;
    picture_begin(out, bottom + 26, label);
    for (size_t i = 0; i < strips->count; i++) {
        double y = r.top + BAR_ROW * (double)i;
        picture_text(out, r.left - 8, y + BAR_HEIGHT / 2 + 4, "label", "end",
                     strips->items[i].label, LABEL_LETTERS);
        draw_strip(&r, &strips->items[i], y);
    }
    const picture_axis scale = {.left = r.left,
                                .width = r.scale * maximum,
                                .end = maximum,
                                .unit = strips->unit,
                                .first_right = true};
    picture_scale(out, &scale, bottom);
    fprintf(out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", r.left, bottom,
            r.left + scale.width);
    if (limit) {
        double x = r.left + r.scale * strips->limit;
        fprintf(out, "<path class=\"limit\" d=\"M%.1f %.1fV%.1f\"/>\n", x, r.top - 4, bottom);
        picture_text(out, x, r.top - 8, "label", x > WIDTH / 2 ? "end" : "start",
                     strips->limit_name, 60);
    }
    picture_end(out);
    write_legend(&r);
}

/* ---- grids ----
 *
 * Draws grids: cells with figures, or many small cells over time. The value sets the opacity of one
 * colour, which works on white, on black and in print. */

#define GRID_TOP 40.0
#define GRID_LEVELS 16

/* Opacities: the palest visible cell; and from STRONG on, text in a cell has the page's colour. */
#define PALEST 0.07
#define STRONG 0.64

static double rows_end(const sl_grid *grid) {
    size_t letters = markup_width(grid->row_name, 24);
    for (size_t i = 0; i < grid->row_count; i++)
        letters = wider(letters, grid->rows[i], 24);
    return 16 + CHARACTER * (double)letters;
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
    double opacity = PALEST + (0.92 - PALEST) * sl_grid_strength(grid, cell->value);
    const char *class = opacity > STRONG ? "over" : "label";
    const char *small = opacity > STRONG ? "over small" : "small";
    size_t room = (size_t)(width / 5.4);
    fprintf(out,
            "<rect class=\"heat%s\" fill-opacity=\"%.2f\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"/>\n",
            cell->mark ? " marked" : "", opacity, x + 1, y + 1, width - 2, height - 2);
    double line = y + height / 2 + (cell->mark ? -9 : cell->more ? -2 : 4);
    if (cell->text)
        picture_text(out, x + width / 2, line, class, "middle", cell->text, room);
    if (cell->more)
        picture_text(out, x + width / 2, line + 14, small, "middle", cell->more, room);
    if (cell->mark)
        picture_text(out, x + width / 2, line + 27, small, "middle", cell->mark, room);
}

static void draw_table(FILE *out, const sl_grid *grid, const char *label) {
    double left = rows_end(grid);
    double width = (WIDTH - left - 8) / (double)grid->column_count;
    double height = 50;
    width = width > 150 ? 150 : width;
    picture_begin(out, GRID_TOP + height * (double)grid->row_count + 6, label);
    picture_text(out, left - 8, GRID_TOP - 8, "name", "end", grid->row_name, 24);
    picture_text(out, left, 14, "name", "start", grid->column_name, 60);
    for (size_t i = 0; i < grid->column_count; i++)
        picture_text(out, left + width * ((double)i + 0.5), GRID_TOP - 8, "tick", "middle",
                     grid->columns[i], (size_t)(width / CHARACTER) + 1);
    for (size_t row = 0; row < grid->row_count; row++) {
        double y = GRID_TOP + height * (double)row;
        picture_text(out, left - 8, y + height / 2 + 4, "tick", "end", grid->rows[row], 24);
        for (size_t i = 0; i < grid->column_count; i++)
            draw_cell(out, grid, &grid->cells[row * grid->column_count + i],
                      left + width * (double)i, y, width, height);
    }
    picture_end(out);
}

/* Draws all cells of one strength as one path, so that a page with 64 shards stays small. */
static void draw_levels(FILE *out, const sl_grid *grid, double left, double width, double height) {
    for (unsigned level = 0; level < GRID_LEVELS; level++) {
        bool any = false;
        for (size_t i = 0; i < grid->row_count * grid->column_count; i++) {
            double strength = sl_grid_strength(grid, grid->cells[i].value);
            unsigned of = (unsigned)(strength * (GRID_LEVELS - 1) + 0.5);
            if (!(grid->cells[i].value >= 0) || of != level)
                continue;
            if (!any)
                fprintf(out, "<path class=\"heat crisp\" fill-opacity=\"%.2f\" d=\"",
                        PALEST / 2 + (0.95 - PALEST / 2) * level / (GRID_LEVELS - 1));
            any = true;
            fprintf(out, "M%.1f %.1fh%.1fv%.1fh-%.1fz",
                    left + width * (double)(i % grid->column_count),
                    GRID_TOP / 2 + height * (double)(i / grid->column_count), width, height, width);
        }
        if (any)
            fputs("\"/>\n", out);
    }
}

static void draw_dense(FILE *out, const sl_grid *grid, const char *label) {
    char text[SL_HUMAN_ROOM];
    double left = rows_end(grid), right = WIDTH - 24;
    double height = 420 / (double)grid->row_count;
    height = height > 18 ? 18 : height < 2 ? 2 : height;
    double width = (right - left) / (double)grid->column_count;
    double bottom = GRID_TOP / 2 + height * (double)grid->row_count;
    size_t every = (size_t)(13 / height) + 1; /* rows from name to name */
    picture_begin(out, bottom + 26, label);
    for (size_t row = 0; row < grid->row_count; row += every)
        picture_text(out, left - 8, GRID_TOP / 2 + height * ((double)row + 0.5) + 4, "tick", "end",
                     grid->rows[row], 24);
    draw_levels(out, grid, left, width, height);
    const picture_axis time = {
        .left = left, .width = right - left, .end = grid->seconds, .unit = SL_UNIT_SECONDS};
    picture_scale(out, &time, bottom);
    picture_end(out);
    fprintf(out, "<p class=\"note\">The strongest colour is %s per second.</p>\n",
            sl_value_text(grid->maximum, SL_UNIT_COUNT, text));
}

static void picture_grid(FILE *out, const sl_grid *grid, const char *label) {
    if (grid->row_count == 0 || grid->column_count == 0)
        return;
    if (grid->dense && grid->seconds > 0)
        draw_dense(out, grid, label);
    else
        draw_table(out, grid, label);
}

/* ---- the page ---- */

/* The colours of series are distinguishable with colour blindness (after Okabe and Ito), on white
 * and, in lighter variants, on black. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'\">\n";

static const char style[] =
    "<style>\n"
    ":root{--paper:#fff;--ink:#1b1f24;--soft:#5a636e;--rule:#dfe3e8;--tint:#f3f5f7;--heat:#0b4f8a;"
    "--good:#00664b;--warning:#8a5a00;--bad:#a8321a;"
    "--c0:#0072b2;--c1:#d55e00;--c2:#008a64;--c3:#b5548c;--c4:#b07800;--c5:#2c86bd;--c6:#6f6a1f;"
    "--c7:#808890}\n"
    "@media (prefers-color-scheme:dark){:root{--paper:#14181c;--ink:#e6e9ec;--soft:#a3acb5;"
    "--rule:#343b42;--tint:#1d2227;--heat:#8cc8f5;--good:#4fd0a6;--warning:#f0b848;--bad:#ff8d73;"
    "--c0:#56aee2;--c1:#ff8d47;--c2:#2fc797;--c3:#e39ac6;--c4:#efb93f;--c5:#9bd4f8;--c6:#c2b85a;"
    "--c7:#a5adb5}}\n"
    "@media print{:root{--paper:#fff;--ink:#000;--soft:#444;--rule:#ccc;--tint:#f3f5f7;"
    "--heat:#0b4f8a;--good:#00664b;--warning:#8a5a00;--bad:#a8321a;--c0:#0072b2;--c1:#d55e00;"
    "--c2:#008a64;--c3:#b5548c;--c4:#b07800;--c5:#2c86bd;--c6:#6f6a1f;--c7:#808890}"
    "figure,table tr,.facts{break-inside:avoid}h2,h3,figcaption b{break-after:avoid}"
    "body{max-width:none;padding:0}}\n"
    "*{box-sizing:border-box;print-color-adjust:exact;-webkit-print-color-adjust:exact}\n"
    "body{margin:0 auto;max-width:62rem;padding:1rem 1.2rem 3rem;background:var(--paper);"
    "color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',"
    "sans-serif;overflow-wrap:break-word}\n"
    "h1{font-size:1.5rem;margin:.6rem 0}h2{font-size:1.3rem;margin:2.2rem 0 .6rem;"
    "border-bottom:2px solid var(--ink)}h3{font-size:1.1rem;margin:1.8rem 0 .4rem}\n"
    ".verdict{padding:.6rem .9rem;border-left:.4rem solid var(--soft);background:var(--tint);"
    "font-size:1.1rem}.good{border-color:var(--good)}.warning{border-color:var(--warning)}"
    ".bad{border-color:var(--bad)}\n"
    ".facts{display:flex;flex-wrap:wrap;gap:.6rem;margin:1rem 0}.facts div{background:var(--tint);"
    "padding:.4rem .8rem}.facts dt{color:var(--soft);font-size:.85rem}.facts dd{margin:0;"
    "font-size:1.25rem;font-variant-numeric:tabular-nums}\n"
    "figure{margin:1.4rem 0}figcaption{margin-bottom:.3rem}figcaption span,.note{color:var(--soft);"
    "font-size:.9rem;display:block;margin:0}\n"
    ".wide{overflow-x:auto}svg{display:block;width:100%;min-width:40rem;height:auto}\n"
    "table{border-collapse:collapse;margin:.8rem 0;font-size:.92rem;"
    "font-variant-numeric:tabular-nums}caption{text-align:left;font-weight:bold}"
    "th,td{padding:.15rem .9rem .15rem 0;text-align:right;vertical-align:top;"
    "border-bottom:1px solid var(--rule)}th{color:var(--soft);font-weight:normal}"
    ".l{text-align:left;min-width:4rem;max-width:30rem}.r{white-space:nowrap}"
    "th.r{white-space:normal}.em td{font-weight:bold}\n"
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
    "fill:var(--ink)}.tick,.name{fill:var(--soft)}.small{font-size:10.5px}"
    ".over{fill:var(--paper);font-weight:600}.inside{fill:var(--paper);font-weight:600}\n"
    ".axis{stroke:var(--soft);fill:none}.rule{stroke:var(--rule);fill:none}.band{fill:var(--soft);"
    "fill-opacity:.09}.none{fill:none;pointer-events:all}.empty{fill:none;stroke:var(--rule);"
    "stroke-dasharray:3 3}\n"
    ".area{fill-opacity:.75}.line{fill:none;stroke-width:1.6}.dash{stroke-dasharray:7 3}"
    ".dots{stroke-dasharray:2 3}.part{stroke:var(--paper)}.whisker{stroke:var(--ink);"
    "stroke-width:1.4;fill:none}.limit{stroke:var(--bad);stroke-width:2;stroke-dasharray:6 3}"
    ".heat{fill:var(--heat)}.crisp{shape-rendering:crispEdges}"
    ".marked{stroke:var(--c1);stroke-width:3}\n"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:.2rem 0;padding:0;"
    "font-size:.88rem}.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}\n"
    "footer{margin-top:3rem;color:var(--soft);font-size:.85rem}\n";

static void write_style(FILE *out) {
    fputs(style, out);
    for (unsigned i = 0; i < COLOURS; i++)
        fprintf(out, ".f%u{fill:var(--c%u)}.s%u{stroke:var(--c%u)}.b%u{background:var(--c%u)}\n", i,
                i, i, i, i, i);
    fputs("</style>\n", out);
}

static void write_element(FILE *out, const char *tag, const char *class, const char *text) {
    fprintf(out, "<%s", tag);
    if (class)
        fprintf(out, " class=\"%s\"", class);
    fputs(">", out);
    sl_markup_text(out, text, 2000);
    fprintf(out, "</%s>\n", tag);
}

static void write_facts(FILE *out, const sl_page_table *facts) {
    if (facts->count < 2)
        return; /* HTML requires at least one item */
    fputs("<dl class=\"facts\">\n", out);
    for (size_t i = 0; i + 1 < facts->count; i += 2) {
        fputs("<div>", out);
        write_element(out, "dt", NULL, facts->cells[i]);
        write_element(out, "dd", NULL, facts->cells[i + 1]);
        fputs("</div>\n", out);
    }
    fputs("</dl>\n", out);
}

static void write_table(FILE *out, const char *title, const sl_page_table *table) {
    fputs("<div class=\"wide\"><table>\n", out);
    if (title)
        write_element(out, "caption", NULL, title);
    fputs("<thead><tr>", out);
    for (size_t i = 0; i < table->columns; i++)
        write_element(out, "th", table->left[i] ? "l" : "r", table->titles[i]);
    fputs("</tr></thead>\n<tbody>\n", out);
    for (size_t row = 0; row < table->count / table->columns; row++) {
        fputs(row == table->emphasized ? "<tr class=\"em\">" : "<tr>", out);
        for (size_t i = 0; i < table->columns; i++)
            write_element(out, "td", table->left[i] ? "l" : "r",
                          table->cells[row * table->columns + i]);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static void write_picture(FILE *out, const sl_page_block *block) {
    fputs("<figure>\n<figcaption>", out);
    write_element(out, "b", NULL, block->text);
    if (block->caption)
        write_element(out, "span", NULL, block->caption);
    fputs("</figcaption>\n<div class=\"wide\">\n", out);
#define DRAW(kind, name)                                                                           \
    case SL_BLOCK_##kind:                                                                          \
        picture_##name(out, block->of.name, block->text);                                          \
        break;
    switch (block->kind) {
        SL_PICTURES(DRAW)
    default:
        break;
    }
#undef DRAW
    fputs("</div>\n</figure>\n", out);
}

static const char *const tones[] = {"verdict", "verdict good", "verdict warning", "verdict bad"};

static void write_block(FILE *out, const sl_page_block *block) {
    switch (block->kind) {
    case SL_BLOCK_CHAPTER:
        write_element(out, "h2", NULL, block->text);
        break;
    case SL_BLOCK_HEADING:
        write_element(out, "h3", NULL, block->text);
        break;
    case SL_BLOCK_VERDICT:
        write_element(out, "p", tones[block->tone], block->text);
        break;
    case SL_BLOCK_TEXT:
        write_element(out, "p", NULL, block->text);
        break;
    case SL_BLOCK_FACTS:
        write_facts(out, block->of.table);
        break;
    case SL_BLOCK_TABLE:
        write_table(out, block->text, block->of.table);
        break;
    default:
        write_picture(out, block);
    }
}

static void write_page(FILE *out, const sl_page *page, const char *title) {
    fputs(head, out);
    write_element(out, "title", NULL, title);
    write_style(out);
    fputs("</head>\n<body>\n", out);
    write_element(out, "h1", NULL, title);
    for (const sl_page_block *block = sl_page_first(page); block; block = block->next)
        write_block(out, block);
    fputs("<footer>Made by shardload from the records of the runs. Times of day are UTC; 1 kB is "
          "1,000 bytes.</footer>\n</body>\n</html>\n",
          out);
}

char *sl_report_html(const sl_report *report, sl_error *error) {
    char *text = NULL;
    size_t length = 0;
    const char *title = NULL;
    sl_page *page = sl_page_create();
    bool ok = page ? sl_sections_fill(page, report, &title, error)
                   : sl_error_memory(error, "making a report");
    if (ok) {
        FILE *out = sl_memory_stream(&text, &length);
        if (out)
            write_page(out, page, title);
        if (!out || fclose(out) != 0)
            sl_error_memory(error, "making a report");
    }
    sl_page_destroy(page);
    return text;
}

bool sl_report_html_write(const bson_t *const *records, size_t count, const char *title,
                          const char *path, sl_error *error) {
    sl_report report = {.records = records, .count = count, .title = title};
    char *text = sl_report_html(&report, error);
    bool ok = text && sl_private_file_replace(path, text, strlen(text), error);
    free(text);
    return ok;
}
