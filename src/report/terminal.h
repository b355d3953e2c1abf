/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the pictures of a page with characters. */
#ifndef SHARDLOAD_REPORT_TERMINAL_H
#define SHARDLOAD_REPORT_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "page.h"

typedef struct sl_screen {
    FILE *out;
    size_t columns;
    bool ascii;
} sl_screen;

/* Writes text in exactly `width` characters, safe on a terminal: padded with spaces, or shortened
 * with "...". */
void sl_put_letters(const sl_screen *screen, const char *text, size_t width, bool right);
void sl_put_repeated(const sl_screen *screen, const char *text, size_t count);
/* Writes a bar of `length` characters, to an eighth of a character. */
void sl_put_bar(const sl_screen *screen, double length);

/* sl_terminal_curves and so on: draw a picture. */
#define SL_PICTURE_DRAWN(kind, name)                                                               \
    void sl_terminal_##name(const sl_screen *screen, const sl_##name *name);
SL_PICTURES(SL_PICTURE_DRAWN)
#undef SL_PICTURE_DRAWN

#endif
