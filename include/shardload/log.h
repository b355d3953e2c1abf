/* SPDX-License-Identifier: Apache-2.0 */
/* The log: lines on standard error and, with a time, in the work directory's log file. Any thread
 * may call these functions. Control characters in inserted texts are escaped (print.h), since a
 * file name may hold any; insert the message of an error, which may have several lines, with
 * SL_LINES. Lines never contain credentials: callers redact URIs first. */
#ifndef SHARDLOAD_LOG_H
#define SHARDLOAD_LOG_H

#include <stdbool.h>

#include <shardload/error.h>

typedef enum sl_log_level { SL_LOG_ERROR, SL_LOG_WARNING, SL_LOG_INFO, SL_LOG_DEBUG } sl_log_level;

/* Sets the level that reaches standard error, with all more serious ones. Default SL_LOG_INFO.
 * Returns the level before. */
sl_log_level sl_log_set_level(sl_log_level level);

/* Also appends every line (all levels) to `path`, a private file (private_file.h), beginning with
 * up to 64 KiB of lines that were logged before. False with `error` set (SL_EXIT_USAGE) when it
 * cannot be opened. */
bool sl_log_open_file(const char *path, sl_error *error);
void sl_log_close_file(void);

/* `hook` is called with true before and with false after a line is written to standard error, under
 * the log's lock, so that a progress line can be cleared and drawn again. NULL removes it. */
void sl_log_set_screen_hook(void (*hook)(bool before, void *context), void *context);

/* One line; no newline needed. */
void sl_log(sl_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define sl_log_error(...) sl_log(SL_LOG_ERROR, __VA_ARGS__)
#define sl_log_warning(...) sl_log(SL_LOG_WARNING, __VA_ARGS__)
#define sl_log_info(...) sl_log(SL_LOG_INFO, __VA_ARGS__)
#define sl_log_debug(...) sl_log(SL_LOG_DEBUG, __VA_ARGS__)

#endif
