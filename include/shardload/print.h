/* SPDX-License-Identifier: Apache-2.0 */
/* Formatted text in which foreign text is harmless. The functions take the formats of printf. The
 * format is the program's own and is copied as it is; the texts that %s inserts may come from data,
 * file names, servers or users, and are made safe by sl_text_next_printable (text.h): no control
 * character, line end or mark of text direction in them reaches the output raw.
 *
 * Log lines and error messages are made by the same function, so a caller need not escape anything.
 * A text of several lines that the program composed by these functions, such as an error's message,
 * is inserted by SL_LINES, which leaves its line ends:
 *
 *     sl_log_warning(SL_LINES "; skipped", error.message);
 *
 * Widths and precisions: a width counts characters, a precision bytes of the text before it is made
 * safe. Not supported: %n, %p, wide characters, positional arguments. */
#ifndef SHARDLOAD_PRINT_H
#define SHARDLOAD_PRINT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* The conversion for such texts of several lines: %s with a flag that has no effect there. */
#define SL_LINES "%-s"

/* Prints to standard output, or to `out`. Errors show in ferror. */
void sl_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sl_print_to(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes at most `room`-1 bytes and a NUL (nothing when room is 0). Returns the number of bytes
 * before the NUL: less than `room`, so that texts can be put behind each other. Longer text is cut
 * between characters. */
size_t sl_print_text(char *out, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
size_t sl_print_text_v(char *out, size_t room, const char *format, va_list arguments);

#endif
