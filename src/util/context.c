/* SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "context_state.h"

static _Thread_local sl_context *bound;

/* The locale "C", made once; 0 without memory. It is never freed, because threads use it. */
static locale_t c_locale;
static pthread_once_t c_locale_made = PTHREAD_ONCE_INIT;

static void make_c_locale(void) {
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

sl_context *sl_context_create(const sl_surroundings *surroundings) {
    pthread_once(&c_locale_made, make_c_locale);
    sl_context *context = c_locale ? calloc(1, sizeof *context) : NULL;
    if (!context)
        return NULL;
    context->surroundings = *surroundings;
    context->nowhere = fopen("/dev/null", "we");
    pthread_mutex_init(&context->log.lock, NULL);
    pthread_mutex_init(&context->interrupt.lock, NULL);
    context->log.level = SL_LOG_INFO;
    context->log.file = -1;
    if (context->nowhere)
        return context;
    sl_context_destroy(context);
    return NULL;
}

void sl_context_destroy(sl_context *context) {
    if (!context)
        return;
    if (context->log.file >= 0)
        close(context->log.file);
    if (context->nowhere)
        fclose(context->nowhere);
    pthread_mutex_destroy(&context->log.lock);
    pthread_mutex_destroy(&context->interrupt.lock);
    free(context);
}

sl_binding sl_context_bind(sl_context *context) {
    sl_binding before = {bound, uselocale(c_locale)};
    bound = context;
    return before;
}

void sl_context_restore(sl_binding before) {
    bound = before.context;
    uselocale(before.locale);
}

sl_context *sl_context_current(void) {
    return bound;
}

const sl_surroundings *sl_context_surroundings(const sl_context *context) {
    return &context->surroundings;
}

void sl_context_first_error(sl_context *context, char *text, size_t room) {
    pthread_mutex_lock(&context->log.lock);
    memccpy(text, context->log.first_error, '\0', room - 1);
    text[room - 1] = '\0';
    pthread_mutex_unlock(&context->log.lock);
}

void sl_context_begin(sl_context *context) {
    atomic_store(&context->changed, false);
    atomic_store(&context->trial, false);
    pthread_mutex_lock(&context->log.lock);
    context->log.first_error[0] = '\0';
    pthread_mutex_unlock(&context->log.lock);
}

void sl_context_changes(void) {
    if (bound && !atomic_load(&bound->trial))
        atomic_store(&bound->changed, true);
}

void sl_context_is_trial(void) {
    if (bound)
        atomic_store(&bound->trial, true);
}

sl_exit sl_context_exit(sl_exit code) {
    return bound && code == SL_EXIT_USAGE && atomic_load(&bound->changed) ? SL_EXIT_RESOURCES
                                                                          : code;
}

FILE *sl_output(void) {
    if (!bound)
        return stdout;
    return bound->surroundings.output ? bound->surroundings.output : bound->nowhere;
}

void sl_context_progress_to_output(sl_context *context) {
    sl_surroundings *around = &context->surroundings;
    around->progress_stream = around->output;
    around->output = around->screen;
}

FILE *sl_progress_stream(void) {
    if (!bound)
        return stdout;
    return bound->surroundings.progress_stream ? bound->surroundings.progress_stream
                                               : bound->nowhere;
}

FILE *sl_screen_stream(void) {
    if (!bound)
        return stderr;
    return bound->surroundings.screen ? bound->surroundings.screen : bound->nowhere;
}

unsigned sl_screen_columns(void) {
    struct winsize size = {0};
    bool known = ioctl(fileno(sl_screen_stream()), TIOCGWINSZ, &size) == 0 && size.ws_col > 20;
    return known ? size.ws_col : 80;
}

bool sl_screen_is_terminal(void) {
    return isatty(fileno(sl_screen_stream())) == 1;
}

/* ---- threads ---- */

typedef struct beginning {
    sl_context *context;
    void *(*run)(void *argument);
    void *argument;
} beginning;

static void *run_bound(void *allocated) {
    const beginning begin = *(beginning *)allocated;
    free(allocated);
    sl_context_bind(begin.context);
    return begin.run(begin.argument);
}

int sl_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument) {
    beginning *begin = malloc(sizeof *begin);
    if (!begin)
        return ENOMEM;
    *begin = (beginning){bound, run, argument};
    int code = pthread_create(thread, NULL, run_bound, begin);
    if (code != 0)
        free(begin);
    return code;
}
