/* SPDX-License-Identifier: Apache-2.0 */
/* Results of commands. The codes are the exit codes of the programs. */
#ifndef SHARDLOAD_PUBLIC_ERROR_H
#define SHARDLOAD_PUBLIC_ERROR_H

typedef enum shardload_code {
    SHARDLOAD_OK = 0,           /* all records loaded, all answers correct */
    SHARDLOAD_REJECTS = 1,      /* loaded, with rejects within the limit */
    SHARDLOAD_USAGE = 2,        /* wrong options or configuration */
    SHARDLOAD_SOURCE = 3,       /* a source cannot be read, or its format is not recognised */
    SHARDLOAD_CLUSTER = 4,      /* the server cannot be reached, or refuses a command */
    SHARDLOAD_VERIFICATION = 5, /* counts or answers differ from the expected ones */
    SHARDLOAD_RESOURCES = 6,    /* no memory, disk space, threads or open files left */
    SHARDLOAD_INTERRUPTED = 130 /* shardload_stop */
} shardload_code;

typedef struct shardload_error {
    shardload_code code;
    char message[1200]; /* one or a few lines: what failed, where, why, what to do; "" without an
                           error. NUL-terminated */
} shardload_error;

#endif
