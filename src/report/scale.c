/* SPDX-License-Identifier: Apache-2.0 */
#include "scale.h"

#include <stdio.h>

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
