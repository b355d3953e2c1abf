/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as values: what went wrong, in words for the user, and the exit code it leads to. */
#ifndef SHARDLOAD_ERROR_H
#define SHARDLOAD_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include <shardload/print.h>

/* The programs' exit codes. The same numbers classify an sl_error. */
typedef enum sl_exit {
    SL_EXIT_OK = 0,            /* everything loaded, every answer right */
    SL_EXIT_REJECTS = 1,       /* loaded, with rejects within the limit */
    SL_EXIT_USAGE = 2,         /* wrong options or configuration */
    SL_EXIT_SOURCE = 3,        /* a source cannot be read or understood */
    SL_EXIT_CLUSTER = 4,       /* the server cannot be reached or refuses */
    SL_EXIT_VERIFICATION = 5,  /* counts or answers are not what they must be */
    SL_EXIT_INTERRUPTED = 130, /* stopped by the user */
} sl_exit;

typedef struct sl_error {
    sl_exit code;       /* SL_EXIT_OK while nothing is wrong */
    char message[1200]; /* one line or a few: what, where, why, what to do. NUL-ended */
    bool no_resume;     /* of a load: --resume cannot complete it, and the message says what can */
} sl_error;

/* Sets `error` (may be NULL) from a printf format; texts that it inserts are made safe to show, so
 * that line ends in the message are those of the format only (print.h; insert the message of
 * another error with SL_LINES). Always returns false, so that a failing function can say `return
 * sl_error_set(error, SL_EXIT_SOURCE, "...")`. */
bool sl_error_set(sl_error *error, sl_exit code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "<text>: " in front of the message of an error that is already set. Always returns false. */
bool sl_error_prefix(sl_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Out of memory while doing `what`. Always returns false. */
bool sl_error_memory(sl_error *error, const char *what);

#endif
