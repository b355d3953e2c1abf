/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts and options, which every command takes.
 *
 * A command runs in the thread that calls it, and returns when it has ended. It handles no signals,
 * never ends the process (libbson and libarchive do when an allocation fails), keeps no state
 * outside its context, and writes only the files that its options name. A context has one command
 * at a time; commands with different contexts may run at the same time. Programs should ignore
 * SIGPIPE.
 *
 * Numbers have a decimal point in all inputs and outputs, whatever the locale of the program: while
 * a command runs, its threads use the locale "C". The calling thread has its own again afterwards.
 *
 * An argument that is NULL where this is not allowed is the error SHARDLOAD_USAGE. */
#ifndef SHARDLOAD_PUBLIC_CONTEXT_H
#define SHARDLOAD_PUBLIC_CONTEXT_H

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shardload_context shardload_context;

typedef enum shardload_level {
    SHARDLOAD_LOG_ERROR,
    SHARDLOAD_LOG_WARNING,
    SHARDLOAD_LOG_INFO
} shardload_level;

/* Receivers of the output of a context's commands. All members may be 0; streams and `data` are
 * borrowed and must outlive the context. Functions are called in threads with the locale "C". */
typedef struct shardload_receivers {
    /* Receives log lines, without a line end. Called by any thread, one call at a time. It must not
     * call functions of the library. */
    void (*log)(void *data, shardload_level level, const char *text);
    /* Receives the progress of a load about once a second, as a JSON object with the keys of
     * `shardload load --progress json`. Called by the thread that called shardload_load. */
    void (*progress)(void *data, const char *json);
    void *data;
    FILE *output; /* receives the tables that the programs print to standard output */
} shardload_receivers;

/* Creates a context. `receivers` is copied; NULL: no receivers. Returns NULL without memory; free
 * the result with shardload_context_destroy. */
shardload_context *shardload_context_create(const shardload_receivers *receivers);
void shardload_context_destroy(shardload_context *context); /* NULL is fine */

/* Lets the command end early, like one Ctrl-C: a load completes its blocks and batches in flight,
 * restores the balancer, and returns SHARDLOAD_INTERRUPTED; a query run ends after the current
 * query. Later commands of the context end at once. Any thread may call it, but not a signal
 * handler. */
void shardload_stop(shardload_context *context);

/* An option by the name that it has on the command line, without "--". The value of a flag is
 * "true". To repeat an option, give several entries. Texts are borrowed for the call. Environment
 * variables are not read. A list of options ends with an entry whose name is NULL; the list itself
 * may be NULL. */
typedef struct shardload_option {
    const char *name;
    const char *value;
} shardload_option;

/* Frees a text that a command returned. NULL is fine. */
void shardload_free(char *text);

#ifdef __cplusplus
}
#endif

#endif
