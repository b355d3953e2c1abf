/* SPDX-License-Identifier: Apache-2.0 */
/* Errors as values: a message for the user, and the program's exit code. */
#ifndef SHARDLOAD_ERROR_H
#define SHARDLOAD_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "print.h"

/* The exit codes, one row each: the name in SL_EXIT_X, the code, its meaning for `shardload` and
 * for `shardquery` in --help, and for a report of a command that ended with it the tone (SL_TONE_X)
 * and the first words. The same numbers classify an sl_error. */
/* clang-format off */
#define SL_EXITS(row)                                                                              \
    row(OK, 0, "success", "success", GOOD, "Everything was loaded")                                \
    row(REJECTS, 1, "loaded, but some records were rejected", "compare: the new side is slower",   \
        WARNING, "Loaded, with rejects")                                                           \
    row(USAGE, 2, "wrong options", "wrong options, or the command of --during failed",             \
        BAD, "Stopped by wrong options or a file that could not be written")                       \
    row(SOURCE, 3, "a source cannot be read",                                                      \
        "a suite, an answers file or a report cannot be read",                                     \
        BAD, "Stopped by a source that could not be read or understood")                           \
    row(CLUSTER, 4, "the cluster cannot be reached, or refuses a command",                         \
        "the server cannot be reached, or a query failed",                                         \
        BAD, "Stopped because the cluster could not be reached or refused")                        \
    row(VERIFICATION, 5, "verification failed, or doctor found a problem",                         \
        "an answer is wrong; compare: a query is not comparable",                                  \
        BAD, "The counts are wrong, so do not trust the loaded data")                              \
    row(RESOURCES, 6, "no memory, disk space, threads or open files left",                         \
        "no memory, disk space, threads or open files left",                                       \
        BAD, "Stopped because memory, disk space, threads or open files were exhausted")           \
    row(INTERRUPTED, 130, "interrupted", "interrupted", WARNING, "Interrupted")
/* clang-format on */

#define SL_EXIT_NAME(name, code, shardload, shardquery, tone, words) SL_EXIT_##name = code,
typedef enum sl_exit { SL_EXITS(SL_EXIT_NAME) } sl_exit;
#undef SL_EXIT_NAME

/* Is the work complete, perhaps with rejects? */
static inline bool sl_exit_is_complete(sl_exit code) {
    return code == SL_EXIT_OK || code == SL_EXIT_REJECTS;
}

typedef struct sl_error {
    sl_exit code;       /* SL_EXIT_OK: no error */
    char message[1200]; /* a few lines: what failed, where, why, what to do. NUL-terminated */
    bool no_resume;     /* --resume cannot complete the load; the message names another command */
    bool afresh; /* nor can it here, because the source or the options must change: a new load is
                    needed */
    bool loaded_before; /* the sources are stored, and none of their records was rejected */
    bool recognised;    /* of a source: it has this format, but cannot be loaded */
    bool skippable;     /* --skip-other lets --resume complete the load */
    int server_code;    /* of a server's reply; 0: another error */
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
