/* SPDX-License-Identifier: Apache-2.0 */
/* A context holds what a command shares with its caller: the log, the output streams, the request
 * to stop, and the functions that receive progress. There are no globals for these, so two commands
 * that run in two contexts do not affect each other.
 *
 * A context is bound to a thread while a command runs in it: sl_log_info(), sl_print() and
 * sl_interrupt_requested() concern the context of the thread that calls them. Threads that are
 * started by sl_thread_start() have the context of the thread that starts them; no thread may be
 * started otherwise. A thread without a context (in a unit test) logs nothing, prints to standard
 * output, and is never interrupted.
 *
 * A thread to which a context is bound has the locale "C", whatever the locale of the process is
 * and becomes: numbers are read and written with a decimal point, by the C library and by the
 * driver's functions for JSON. */
#ifndef SHARDLOAD_CONTEXT_H
#define SHARDLOAD_CONTEXT_H

#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "error.h"
#include "log.h"

typedef struct sl_context sl_context;

/* What the caller of a command provides. All members may be 0. Streams and `data` are borrowed. */
typedef struct sl_surroundings {
    const char *program;   /* begins error lines on the screen: "shardload: ..." */
    FILE *output;          /* receives results (tables, documents) */
    FILE *screen;          /* receives log lines and the progress line */
    FILE *progress_stream; /* receives progress as JSON, and nothing else */
    /* Receives log lines, from any thread, one at a time; `text` has no line end. It must not call
     * functions of this context. */
    void (*log)(void *data, sl_log_level level, const char *text);
    /* Receives progress about once a second, as a JSON object. */
    void (*progress)(void *data, const char *json);
    void *data;
    /* Called when the first listener for interrupts begins, and after the last one has ended
     * (interrupt.h). The programs begin and end to handle signals here. */
    bool (*start_signals)(sl_context *context, sl_error *error);
    void (*stop_signals)(sl_context *context);
} sl_surroundings;

/* NULL without memory. */
sl_context *sl_context_create(const sl_surroundings *surroundings);
void sl_context_destroy(sl_context *context); /* NULL is fine */

/* What a thread had before a context was bound to it. */
typedef struct sl_binding {
    sl_context *context;
    locale_t locale;
} sl_binding;

/* Binds a context (NULL: none) and the locale "C" to the calling thread. Returns what
 * sl_context_restore gives back to the thread. */
sl_binding sl_context_bind(sl_context *context);
void sl_context_restore(sl_binding before);
/* The calling thread's context, or NULL. */
sl_context *sl_context_current(void);
const sl_surroundings *sl_context_surroundings(const sl_context *context);
/* From now on, progress is written as JSON to the output stream, and results to the screen. Called
 * before a command begins. */
void sl_context_progress_to_output(sl_context *context);
/* From now on, standard output receives documents, and the calling thread's context writes results
 * to the screen. Called before the workers begin. */
void sl_context_results_to_screen(void);

/* How much a command prints. */
typedef enum sl_verbosity {
    SL_NORMAL,
    SL_QUIET,  /* errors only: no results, no progress, no warnings */
    SL_VERBOSE /* also what is left out of the output of a command that soon ends */
} sl_verbosity;
/* Called before a command begins. */
void sl_context_set_verbosity(sl_context *context, sl_verbosity verbosity);
/* Has the command of the calling thread run for ten seconds, or is it verbose? Then its summary has
 * all tables. */
bool sl_context_is_long(void);
/* Does the command of the calling thread print errors only? */
bool sl_context_is_quiet(void);

/* Before each command of a context: forgets the first error and the changes of the last command. */
void sl_context_begin(sl_context *context);
/* The first error that was logged since sl_context_begin, for callers that show errors
 * themselves. */
void sl_context_first_error(sl_context *context, char *text, size_t room);

/* The command of the calling thread is about to store or remove documents, to change a collection
 * of the user, or to write the file of --sink. From then on, it cannot end with the exit code 2,
 * which means that nothing was changed. Called before a load reads its first block, and where
 * collections are dropped or changed. */
void sl_context_changes(void);
/* The command of the calling thread changes only its own temporary collections from now on: these
 * changes do not count. */
void sl_context_is_trial(void);
/* Logs that a table of the calling thread's command cannot be printed for lack of memory. */
void sl_context_lost_output(void);
/* The exit code of the calling thread's command: SL_EXIT_RESOURCES instead of SL_EXIT_USAGE after a
 * change, and instead of SL_EXIT_OK after lost output; otherwise `code`. Exit codes go through this
 * function where they leave the program or the library, or enter a record. */
sl_exit sl_context_exit(sl_exit code);

/* The streams for results and progress lines of the calling thread; never NULL. */
FILE *sl_output(void);
FILE *sl_screen_stream(void);
FILE *sl_progress_stream(void);
/* The screen's number of columns; 80 if it is not known. */
unsigned sl_screen_columns(void);
/* Is the screen a terminal, on which a line can be drawn again? */
bool sl_screen_is_terminal(void);

/* Starts a thread with the context of the calling thread. Returns 0 or an errno. */
int sl_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
