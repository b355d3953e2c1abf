/* SPDX-License-Identifier: Apache-2.0 */
/* Draws bars with their spread, and strips: rows of consecutive parts along a common axis. */
#include "picture.h"

#include <string.h>

#include "scale.h"

#define ROW 26.0
#define BAR 17.0
#define LABEL_LETTERS 36
#define RIGHT ((double)SL_PICTURE_WIDTH - 14)

/* The x coordinate after the labels; the longest has `letters` characters. */
static double labels_end(size_t letters) {
    if (letters == 0)
        return 8;
    return 14 + SL_PICTURE_CHARACTER * (double)(letters < LABEL_LETTERS ? letters : LABEL_LETTERS);
}

/* ---- bars ---- */

void sl_picture_bars(FILE *out, const sl_bars *bars, const char *label) {
    size_t letters = 0, words = 0;
    double maximum = 0;
    for (size_t i = 0; i < bars->count; i++) {
        const sl_bar *bar = &bars->items[i];
        size_t width = sl_markup_width(bar->label, LABEL_LETTERS);
        letters = width > letters ? width : letters;
        width = sl_markup_width(bar->text, LABEL_LETTERS);
        words = width > words ? width : words;
        maximum = bar->value > maximum ? bar->value : maximum;
        maximum = bar->high > maximum ? bar->high : maximum;
    }
    if (bars->count == 0)
        return;
    double left = labels_end(letters);
    double right = RIGHT - 14 - SL_PICTURE_CHARACTER * (double)words;
    double scale = maximum > 0 ? (right - left) / maximum : 0;
    sl_picture_begin(out, ROW * (double)bars->count + 8, label);
    for (size_t i = 0; i < bars->count; i++) {
        const sl_bar *bar = &bars->items[i];
        double y = 4 + ROW * (double)i, middle = y + BAR / 2, end = left;
        sl_picture_text(out, left - 8, middle + 4, "label", "end", bar->label, LABEL_LETTERS);
        if (bar->value >= 0) {
            end = left + scale * bar->value;
            fprintf(out,
                    "<rect class=\"f0\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                    left, y, end - left > 1 ? end - left : 1, BAR);
        }
        if (bar->low >= 0 && bar->high >= bar->low) {
            double low = left + scale * bar->low, high = left + scale * bar->high;
            fprintf(out,
                    "<path class=\"whisker\" d=\"M%.1f %.1fH%.1fM%.1f %.1fv8M%.1f %.1fv8\"/>\n",
                    low, middle, high, low, middle - 4, high, middle - 4);
            end = high > end ? high : end;
        }
        sl_picture_text(out, end + 8, middle + 4, "label", "start", bar->text, LABEL_LETTERS);
    }
    fprintf(out, "<path class=\"axis\" d=\"M%.1f 0V%.1f\"/>\n", left,
            ROW * (double)bars->count + 4);
    sl_picture_end(out);
}

/* ---- strips ---- */

#define NAMES_MAX 1024
#define GREY (SL_PICTURE_COLOURS - 1) /* the common colour of small parts */

typedef struct rail {
    FILE *out;
    const sl_strips *strips;
    double left, scale, top;
    double largest[NAMES_MAX]; /* the largest part of each name */
    unsigned char colour[NAMES_MAX];
} rail;

/* Assigns colours to names. A run may have more phases than there are colours: then the phases with
 * the largest parts get a colour each, in the order of the names, and all others are grey. */
static void choose_colours(rail *r) {
    size_t count = r->strips->name_count < NAMES_MAX ? r->strips->name_count : NAMES_MAX;
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
        r->colour[name] = count > SL_PICTURE_COLOURS && larger >= GREY ? GREY : next++;
    }
}

static unsigned colour_of(const rail *r, size_t name) {
    return name < NAMES_MAX ? r->colour[name] : GREY;
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
                    colour_of(r, part->name), x, y, width, BAR);
            sl_markup_text(r->out, name, 60);
            fprintf(r->out, ": %s", sl_value_text(part->value, r->strips->unit, text));
            if (r->strips->unit != SL_UNIT_SHARE)
                fprintf(r->out, ", %s", sl_share_text(sum > 0 ? part->value / sum : 0, share));
            fputs("</title></rect>\n", r->out);
        }
        if (width > SL_PICTURE_CHARACTER * (double)sl_markup_width(name, 60) + 10)
            sl_picture_text(r->out, x + width / 2, y + BAR / 2 + 4, "inside", "middle", name, 60);
        x += width;
    }
    if (strip->low >= 0 && strip->high >= strip->low) {
        double low = r->left + r->scale * strip->low, high = r->left + r->scale * strip->high;
        double below = y + BAR + 4;
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

void sl_picture_strips(FILE *out, const sl_strips *strips, const char *label) {
    size_t letters = 0;
    double maximum = sl_strips_maximum(strips);
    for (size_t i = 0; i < strips->count; i++) {
        size_t width = sl_markup_width(strips->items[i].label, LABEL_LETTERS);
        letters = width > letters ? width : letters;
    }
    if (!(maximum > 0))
        return;
    bool limit = strips->limit > 0;
    rail r = {.out = out, .strips = strips, .left = labels_end(letters), .top = limit ? 22 : 4};
    choose_colours(&r);
    r.scale = (RIGHT - r.left - 14) / maximum;
    double bottom = r.top + ROW * (double)strips->count;
    sl_picture_begin(out, bottom + 26, label);
    for (size_t i = 0; i < strips->count; i++) {
        double y = r.top + ROW * (double)i;
        sl_picture_text(out, r.left - 8, y + BAR / 2 + 4, "label", "end", strips->items[i].label,
                        LABEL_LETTERS);
        draw_strip(&r, &strips->items[i], y);
    }
    const sl_axis scale = {.left = r.left,
                           .width = r.scale * maximum,
                           .end = maximum,
                           .unit = strips->unit,
                           .first_right = true};
    sl_picture_scale(out, &scale, bottom);
    fprintf(out, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", r.left, bottom,
            r.left + scale.width);
    if (limit) {
        double x = r.left + r.scale * strips->limit;
        fprintf(out, "<path class=\"limit\" d=\"M%.1f %.1fV%.1f\"/>\n", x, r.top - 4, bottom);
        sl_picture_text(out, x, r.top - 8, "label", x > SL_PICTURE_WIDTH / 2 ? "end" : "start",
                        strips->limit_name, 60);
    }
    sl_picture_end(out);
    write_legend(&r);
}
