/* SPDX-License-Identifier: Apache-2.0 */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

bool sl_error_set(sl_error *error, sl_exit code, const char *format, ...) {
    if (!error)
        return false;
    error->code = code;
    error->no_resume = false;
    error->loaded_before = false;
    error->afresh = error->recognised = false;
    error->server_code = 0;
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return false;
}

bool sl_error_prefix(sl_error *error, const char *format, ...) {
    if (!error)
        return false;
    char old[sizeof error->message];
    memcpy(old, error->message, sizeof old);
    va_list arguments;
    va_start(arguments, format);
    size_t used = sl_print_text_v(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    if (used + 3 < sizeof error->message) {
        size_t room = sizeof error->message - used - 3; /* for the old message, whose end is
                                                           truncated */
        size_t length = strlen(old) < room ? strlen(old) : room;
        memcpy(error->message + used, ": ", 2);
        memcpy(error->message + used + 2, old, length);
        error->message[used + 2 + length] = '\0';
    }
    return false;
}

bool sl_error_memory(sl_error *error, const char *activity) {
    return sl_error_set(error, SL_EXIT_RESOURCES,
                        "out of memory while %s; use fewer threads or smaller batches", activity);
}

bool sl_error_errno(sl_error *error, sl_exit otherwise, const char *format, ...) {
    char text[sizeof error->message];
    int code = errno;
    va_list arguments;
    va_start(arguments, format);
    sl_print_text_v(text, sizeof text, format, arguments);
    va_end(arguments);
    return sl_error_set(error, sl_exit_of_errno(code, otherwise), SL_LINES ": %s", text,
                        strerror(code));
}

sl_exit sl_exit_of_errno(int code, sl_exit otherwise) {
    static const int exhausted[] = {ENOMEM, ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE};
    for (size_t i = 0; i < sizeof exhausted / sizeof exhausted[0]; i++) {
        if (code == exhausted[i])
            return SL_EXIT_RESOURCES;
    }
    return otherwise;
}

bool sl_error_missing(sl_error *error, const char *activity) {
    if (error->code)
        return false;
    return sl_error_set(error, SL_EXIT_RESOURCES,
                        "%s failed without a reason, most likely because memory is short; use "
                        "fewer threads or smaller batches",
                        activity);
}
