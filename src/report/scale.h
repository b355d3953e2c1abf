/* SPDX-License-Identifier: Apache-2.0 */
/* Scales: positions of ticks, and their numbers. */
#ifndef SHARDLOAD_REPORT_SCALE_H
#define SHARDLOAD_REPORT_SCALE_H

#include "util/text.h"

#include "page.h"

/* Ticks at 0, step, 2 step ... (count) step, which is at or above the maximum. */
typedef struct sl_ticks {
    double step;
    double top; /* count * step */
    unsigned count;
} sl_ticks;

/* About `count` ticks for values from 0 to `maximum`, at 1, 2 or 5 times a power of ten; for
 * seconds at divisions of minutes, hours and days. A maximum that is not above 0 gives ticks from 0
 * to 1. */
sl_ticks sl_ticks_for(double maximum, unsigned count, sl_unit unit);

/* A value with its unit, short, for an axis. For text see sl_value_text. */
char *sl_tick_text(double value, const sl_ticks *ticks, sl_unit unit, char out[SL_HUMAN_ROOM]);

#endif
