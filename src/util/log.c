/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a context. One lock keeps lines of several threads apart. The screen hook runs under
 * it, so that it can erase a progress line before the log line and draw it again after, with
 * nothing in between. */
#include "log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "context_state.h"
#include "print.h"
#include "private_file.h"

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* The calling thread's log, or NULL. */
static sl_log_state *log_here(void) {
    sl_context *context = sl_context_current();
    return context ? &context->log : NULL;
}

sl_log_level sl_log_set_level(sl_log_level level) {
    sl_log_state *logger = log_here();
    return logger ? atomic_exchange(&logger->level, level) : level;
}

bool sl_log_open_file(const char *path, sl_error *error) {
    sl_log_state *logger = log_here();
    if (!logger)
        return true;
    int file = sl_private_file_open(path, O_WRONLY | O_APPEND, error);
    if (file < 0)
        return false;
    pthread_mutex_lock(&logger->lock);
    if (logger->file >= 0)
        close(logger->file);
    logger->file = file;
    sl_write_all(file, logger->early, logger->early_used);
    logger->early_used = 0;
    logger->opened = true;
    pthread_mutex_unlock(&logger->lock);
    return true;
}

void sl_log_close_file(void) {
    sl_log_state *logger = log_here();
    if (!logger)
        return;
    pthread_mutex_lock(&logger->lock);
    if (logger->file >= 0)
        close(logger->file);
    logger->file = -1;
    pthread_mutex_unlock(&logger->lock);
}

void sl_log_set_screen_hook(void (*hook)(bool before, void *context), void *context) {
    sl_log_state *logger = log_here();
    if (!logger)
        return;
    pthread_mutex_lock(&logger->lock);
    logger->hook = hook;
    logger->hook_context = context;
    pthread_mutex_unlock(&logger->lock);
}

/* Writes the line with the time to the file, or keeps it until the file is opened. Call it under
 * the lock. */
static void log_to_file(sl_log_state *logger, sl_log_level level, const char *text) {
    char line[2200], stamp[32];
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    int length = snprintf(line, sizeof line, "%s.%03ldZ %s %s\n", stamp, now.tv_nsec / 1000000,
                          level_names[level], text);
    if (length > 0 && logger->file >= 0) {
        sl_write_all(logger->file, line, (size_t)length);
    } else if (length > 0 && logger->early_used + (size_t)length <= SL_LOG_EARLY_BYTES) {
        memcpy(logger->early + logger->early_used, line, (size_t)length);
        logger->early_used += (size_t)length;
    }
}

/* Under the lock. */
static void log_to_screen(sl_log_state *logger, const sl_surroundings *to, sl_log_level level,
                          const char *text) {
    char line[2200];
    bool error = level == SL_LOG_ERROR;
    int length = snprintf(line, sizeof line, "%s%s%s\n",
                          error                     ? to->program
                          : level == SL_LOG_WARNING ? "warning"
                                                    : "",
                          level <= SL_LOG_WARNING ? ": " : "", text);
    if (logger->hook)
        logger->hook(true, logger->hook_context);
    if (length > 0)
        sl_write_all(fileno(to->screen), line, (size_t)length);
    if (logger->hook)
        logger->hook(false, logger->hook_context);
}

void sl_log(sl_log_level level, const char *format, ...) {
    sl_context *context = sl_context_current();
    if (!context)
        return;
    sl_log_state *logger = &context->log;
    const sl_surroundings *to = &context->surroundings;
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&logger->lock);
    if (level == SL_LOG_ERROR && !logger->first_error[0])
        sl_print_text(logger->first_error, sizeof logger->first_error, SL_LINES, text);
    if (logger->file >= 0 || !logger->opened)
        log_to_file(logger, level, text);
    if (level <= logger->level && to->screen)
        log_to_screen(logger, to, level, text);
    if (level <= logger->level && to->log)
        to->log(to->data, level, text);
    pthread_mutex_unlock(&logger->lock);
}

void sl_log_row(const char *label, const char *value) {
    enum { VALUE = 12, BLANKS = 3, LABEL_MOST = 38 };
    int left = (int)sl_screen_columns() - VALUE - BLANKS - 1;
    sl_log_info("  %-*s %*s", left < LABEL_MOST ? left : LABEL_MOST, label, VALUE, value);
}
