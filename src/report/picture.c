/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that all pictures use: escaped text, the SVG element, and sizes of their content. */
#include "picture.h"

#include <string.h>

#include "scale.h"

#define TEXT_ROOM 4000

void sl_markup_text(FILE *out, const char *text, size_t most) {
    static const char specials[] = "<>&\"'";
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
    char shown[TEXT_ROOM];
    size_t length = sl_text_printable(sl_text_of(text ? text : ""), shown, sizeof shown);
    size_t width = sl_markup_width(shown, SIZE_MAX), done = 0;
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

size_t sl_markup_width(const char *text, size_t most) {
    size_t width = 0;
    for (; text && *text && width < most; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

void sl_picture_begin(FILE *out, double height, const char *label) {
    fprintf(out, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", SL_PICTURE_WIDTH,
            height);
    sl_markup_text(out, label, 200);
    fputs("\">\n", out);
}

void sl_picture_end(FILE *out) {
    fputs("</svg>\n", out);
}

void sl_picture_text(FILE *out, double x, double y, const char *class, const char *anchor,
                     const char *text, size_t most) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, class,
            anchor);
    sl_markup_text(out, text, most);
    if (sl_markup_width(text, SIZE_MAX) > most) {
        fputs("<title>", out);
        sl_markup_text(out, text, 1000);
        fputs("</title>", out);
    }
    fputs("</text>\n", out);
}

void sl_picture_scale(FILE *out, const sl_axis *axis, double y) {
    char text[SL_HUMAN_ROOM];
    sl_ticks ticks = sl_ticks_for(axis->end, 8, axis->unit);
    for (unsigned i = 0; i <= ticks.count && i * ticks.step <= axis->end * (1 + 1e-9); i++) {
        double x = axis->left + axis->width * i * ticks.step / axis->end;
        fprintf(out, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>\n", x, y);
        sl_picture_text(out, x, y + 17, "tick", i == 0 && axis->first_right ? "start" : "middle",
                        sl_tick_text(i * ticks.step, &ticks, axis->unit, text), 20);
    }
}

/* ---- sizes ---- */

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
