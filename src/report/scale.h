/* SPDX-License-Identifier: Apache-2.0 */
/* Scales: where ticks go, how numbers are written, which colour follows which. */
#ifndef SHARDLOAD_REPORT_SCALE_H
#define SHARDLOAD_REPORT_SCALE_H

#include <shardload/text.h>

#include "page.h"

/* Ticks at 0, step, 2 step ... (count) step, which is at or above the maximum. */
typedef struct sl_ticks {
    double step;
    double top; /* count * step */
    unsigned count;
} sl_ticks;

/* About `wanted` ticks for values from 0 to `maximum`, at round numbers: 1, 2, 5 times a power of
 * ten, and for seconds what clocks are divided into. A maximum of 0 or less, or none, gives 0 to 1. */
sl_ticks sl_ticks_for(double maximum, unsigned wanted, sl_unit unit);

/* A value with its unit, for an axis (short) or to be read (with thousands separators). */
char *sl_tick_text(double value, const sl_ticks *ticks, sl_unit unit, char out[SL_HUMAN_ROOM]);
char *sl_value_text(double value, sl_unit unit, char out[SL_HUMAN_ROOM]);
/* 0, 12, 345, 1.2k, 45.6M: four figures at most. */
char *sl_short_text(double value, char out[SL_HUMAN_ROOM]);

/* "12.3 %", with as many decimals as the value deserves. */
char *sl_share_text(double share, char out[SL_HUMAN_ROOM]);

#endif
