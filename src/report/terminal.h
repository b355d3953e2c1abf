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

/* The number of UTF-8 characters (not bytes). */
size_t sl_letters(const char *text);
/* Writes text in exactly `width` characters, safe on a terminal: padded with spaces, or shortened
 * with "...". */
void sl_put_letters(const sl_screen *screen, const char *text, size_t width, bool right);
void sl_put_repeated(const sl_screen *screen, const char *text, size_t count);
/* Writes a bar of `length` characters, to an eighth of a character. */
void sl_put_bar(const sl_screen *screen, double length);

void sl_terminal_curves(const sl_screen *screen, const sl_curves *curves);
void sl_terminal_bars(const sl_screen *screen, const sl_bars *bars);
void sl_terminal_strips(const sl_screen *screen, const sl_strips *strips);
void sl_terminal_grid(const sl_screen *screen, const sl_grid *grid);

#endif
