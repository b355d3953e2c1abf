/* SPDX-License-Identifier: Apache-2.0 */
/* The log of the calling thread's context (context.h): lines on its screen, in its callback and,
 * with a timestamp, in the work directory's log file. Any thread may call these functions. Texts
 * that a format inserts are escaped (print.h); insert the message of an error with SL_LINES.
 * Callers redact URIs first: log lines never contain credentials. */
#ifndef SHARDLOAD_LOG_H
#define SHARDLOAD_LOG_H

#include <stdbool.h>

#include "error.h"

typedef enum sl_log_level {
    SL_LOG_ERROR,
    SL_LOG_WARNING,
    SL_LOG_RESULT, /* what the command was given for: written to the output instead of the screen */
    SL_LOG_INFO,
    SL_LOG_DETAIL, /* not needed for a command that soon ends: see sl_log_show_details */
    SL_LOG_DEBUG
} sl_log_level;

/* Sets the least serious level that is written to the output, the screen and the callback; default
 * SL_LOG_DETAIL. Returns the previous level. */
sl_log_level sl_log_set_level(sl_log_level level);

/* Also appends lines of all levels to `path`, a private file (private_file.h), beginning with the
 * lines logged so far (up to 64 KiB). False with error (SL_EXIT_USAGE) when it cannot be opened. */
bool sl_log_open_file(const char *path, sl_error *error);
void sl_log_close_file(void);

/* Sets a function that is called, under the log's lock, with true before and with false after a
 * line is written to the screen, so that it can erase and redraw a progress line. NULL:
 * none. */
void sl_log_set_screen_hook(void (*hook)(bool before, void *context), void *context);

/* Logs one line; the format needs no newline. */
void sl_log(sl_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Details are kept from the screen until the command has run for two seconds; --verbose shows them
 * at once. Each line that is logged later, and this function, then show those that were kept. */
void sl_log_show_details(void);

/* Logs a row of a summary, a result: a label, and a value at the right. The row is 53 columns wide,
 * or as wide as a narrower screen. */
void sl_log_row(const char *label, const char *value);

#define sl_log_error(...) sl_log(SL_LOG_ERROR, __VA_ARGS__)
#define sl_log_warning(...) sl_log(SL_LOG_WARNING, __VA_ARGS__)
#define sl_log_result(...) sl_log(SL_LOG_RESULT, __VA_ARGS__)
#define sl_log_info(...) sl_log(SL_LOG_INFO, __VA_ARGS__)
#define sl_log_detail(...) sl_log(SL_LOG_DETAIL, __VA_ARGS__)
#define sl_log_debug(...) sl_log(SL_LOG_DEBUG, __VA_ARGS__)

#endif
