/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as values: a message for the user, and the program's exit code. */
#ifndef SHARDLOAD_ERROR_H
#define SHARDLOAD_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "print.h"

/* The programs' exit codes. The same numbers classify an sl_error. */
typedef enum sl_exit {
    SL_EXIT_OK = 0,            /* all records loaded, all answers correct */
    SL_EXIT_REJECTS = 1,       /* loaded, with rejects within the limit */
    SL_EXIT_USAGE = 2,         /* wrong options or configuration */
    SL_EXIT_SOURCE = 3,        /* a source cannot be read, or its format is not recognised */
    SL_EXIT_CLUSTER = 4,       /* the server cannot be reached, or refuses a command */
    SL_EXIT_VERIFICATION = 5,  /* counts or answers differ from the expected ones */
    SL_EXIT_RESOURCES = 6,     /* no memory, disk space, threads or open files left */
    SL_EXIT_INTERRUPTED = 130, /* stopped by the user */
} sl_exit;

typedef struct sl_error {
    sl_exit code;       /* SL_EXIT_OK: no error */
    char message[1200]; /* a few lines: what failed, where, why, what to do. NUL-terminated */
    bool no_resume;     /* --resume cannot complete the load; the message names another command */
} sl_error;

/* Sets `error` (may be NULL) from a printf format. Inserted texts are escaped, so all line ends of
 * the message come from the format (print.h; insert the message of another error with SL_LINES).
 * Always returns false, for `return sl_error_set(error, SL_EXIT_SOURCE, "...")`. */
bool sl_error_set(sl_error *error, sl_exit code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Inserts "<text>: " before the message of an error that is already set. Always returns false. */
bool sl_error_prefix(sl_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets the error "out of memory while <activity>", SL_EXIT_RESOURCES. Always returns false. */
bool sl_error_memory(sl_error *error, const char *activity);

/* Sets the error "<text>: <text of errno>" for a failed system call. Its class is that of
 * sl_exit_of_errno(errno, otherwise). Always returns false. */
bool sl_error_errno(sl_error *error, sl_exit otherwise, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The class of a failed system call: SL_EXIT_RESOURCES when `code`, an errno, shows that memory,
 * disk space or open files are exhausted, and `otherwise` for all other codes. (A thread that
 * cannot be started is always of the class SL_EXIT_RESOURCES.) */
sl_exit sl_exit_of_errno(int code, sl_exit otherwise);

/* Sets the error of a phase, `activity`, that failed without an error; leaves any other error
 * unchanged. Always returns false. Such a phase is a defect of this program, most likely in the
 * handling of a failed allocation, and must not count as a success. */
bool sl_error_missing(sl_error *error, const char *activity);

#endif
