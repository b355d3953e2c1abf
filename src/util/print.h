/* SPDX-License-Identifier: Apache-2.0 */
/* printf with escaped arguments. The format is copied unchanged. The texts that %s and %c insert
 * may come from data, file names, servers or users, and are made safe by sl_text_next_printable
 * (text.h): control characters, line ends and marks of text direction in them are escaped.
 *
 * Log lines and error messages are formatted by the same functions, so callers need not escape.
 * Insert a text of several lines that was formatted by these functions, such as an error's message,
 * with SL_LINES, which keeps its line ends:
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

/* %s with the flag '-', which has no meaning without a width. */
#define SL_LINES "%-s"

/* sl_print prints to the output of the thread's context (context.h), sl_print_to to `out`. Call
 * ferror to find out whether printing failed. */
void sl_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sl_print_to(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes at most `room`-1 bytes and a NUL (nothing when room is 0). Longer text is truncated
 * between characters. Returns the number of bytes before the NUL, so that calls can append to one
 * another. */
size_t sl_print_text(char *out, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
size_t sl_print_text_v(char *out, size_t room, const char *format, va_list arguments);

#endif
