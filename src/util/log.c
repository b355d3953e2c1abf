/* SPDX-License-Identifier: Apache-2.0 */
/* The log. One lock keeps lines of several threads apart. The screen hook runs under it, so that it
 * can erase a progress line before the log line and draw it again after, with nothing in
 * between. */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "print.h"
#include "private_file.h"

/* Room for lines logged before the file is opened; they are written to it first. */
#define EARLY_BYTES ((size_t)64 << 10)

static struct {
    pthread_mutex_t lock;
    _Atomic sl_log_level level;
    int file;    /* -1: not open; this and the fields below: under `lock` */
    bool opened; /* a file has been opened */
    char early[EARLY_BYTES];
    size_t early_used;
    void (*hook)(bool before, void *context);
    void *hook_context;
} logger = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = SL_LOG_INFO, .file = -1};

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* Ignores failures, which cannot be reported anywhere. */
static void write_all(int file, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(file, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        bytes += written;
        length -= (size_t)written;
    }
}

sl_log_level sl_log_set_level(sl_log_level level) {
    return atomic_exchange(&logger.level, level);
}

bool sl_log_open_file(const char *path, sl_error *error) {
    int file = sl_private_file_open(path, O_WRONLY | O_APPEND, error);
    if (file < 0)
        return false;
    pthread_mutex_lock(&logger.lock);
    if (logger.file >= 0)
        close(logger.file);
    logger.file = file;
    write_all(file, logger.early, logger.early_used);
    logger.early_used = 0;
    logger.opened = true;
    pthread_mutex_unlock(&logger.lock);
    return true;
}

void sl_log_close_file(void) {
    pthread_mutex_lock(&logger.lock);
    if (logger.file >= 0)
        close(logger.file);
    logger.file = -1;
    pthread_mutex_unlock(&logger.lock);
}

void sl_log_set_screen_hook(void (*hook)(bool before, void *context), void *context) {
    pthread_mutex_lock(&logger.lock);
    logger.hook = hook;
    logger.hook_context = context;
    pthread_mutex_unlock(&logger.lock);
}

void sl_log(sl_log_level level, const char *format, ...) {
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(text, sizeof text, format, arguments);
    va_end(arguments);

    char line[2200];
    pthread_mutex_lock(&logger.lock);
    if (logger.file >= 0 || !logger.opened) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        struct tm utc;
        gmtime_r(&now.tv_sec, &utc);
        char stamp[32];
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
        int length = snprintf(line, sizeof line, "%s.%03ldZ %s %s\n", stamp, now.tv_nsec / 1000000,
                              level_names[level], text);
        if (length > 0 && logger.file >= 0) {
            write_all(logger.file, line, (size_t)length);
        } else if (length > 0 && logger.early_used + (size_t)length <= EARLY_BYTES) {
            memcpy(logger.early + logger.early_used, line, (size_t)length);
            logger.early_used += (size_t)length;
        }
    }
    if (level <= logger.level) {
        const char *prefix = level == SL_LOG_ERROR     ? "shardload: "
                             : level == SL_LOG_WARNING ? "warning: "
                                                       : "";
        int length = snprintf(line, sizeof line, "%s%s\n", prefix, text);
        if (logger.hook)
            logger.hook(true, logger.hook_context);
        if (length > 0)
            write_all(STDERR_FILENO, line, (size_t)length);
        if (logger.hook)
            logger.hook(false, logger.hook_context);
    }
    pthread_mutex_unlock(&logger.lock);
}
