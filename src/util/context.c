/* SPDX-License-Identifier: Apache-2.0 */
#include "context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "interrupt.h"
#include "print.h"
#include "private_file.h"

/* Room for lines logged before the file is opened; they are written to it first. */
#define SL_LOG_EARLY_BYTES ((size_t)64 << 10)
/* Room for details that are kept from the screen. */
#define SL_LOG_KEPT_BYTES ((size_t)8 << 10)

/* A command that runs for so many seconds shows details, and all tables of its summary. */
#define SL_DETAIL_SECONDS 2
#define SL_LONG_SECONDS 10

typedef struct sl_log_state {
    pthread_mutex_t lock;
    _Atomic sl_log_level level;
    int file;    /* -1: not open; `lock` guards this and the fields below */
    bool opened; /* a file has been opened */
    char early[SL_LOG_EARLY_BYTES];
    size_t early_used;
    char kept[SL_LOG_KEPT_BYTES]; /* lines, each with its line end */
    size_t kept_used;
    void (*hook)(bool before, void *context);
    void *hook_context;
    char first_error[1200];
} sl_log_state;

typedef struct listener {
    bool (*first)(void *context);
    void (*second)(void *context);
    void *context;
} listener;

typedef struct sl_interrupt_state {
    _Atomic bool requested;
    _Atomic bool at_once;      /* the second request has come */
    _Atomic unsigned changing; /* threads that are changing the cluster */
    pthread_mutex_t lock;      /* held while handlers run; guards the fields below */
    listener listeners[SL_LISTENERS_MAX];
    unsigned count;
} sl_interrupt_state;

struct sl_context {
    sl_surroundings surroundings;
    FILE *nowhere;        /* the stream of a missing output or screen */
    _Atomic bool changed; /* see sl_context_changes */
    _Atomic bool lost;    /* see sl_context_lost_output */
    _Atomic bool trial;   /* see sl_context_is_trial */
    sl_verbosity verbosity;
    int64_t begun; /* the command, by sl_clock_ns */
    sl_log_state log;
    sl_interrupt_state interrupt;
};

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
    context->begun = sl_clock_ns();
    context->log.level = SL_LOG_DETAIL;
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
    atomic_store(&context->lost, false);
    atomic_store(&context->trial, false);
    context->begun = sl_clock_ns();
    context->verbosity = SL_NORMAL;
    pthread_mutex_lock(&context->log.lock);
    context->log.first_error[0] = '\0';
    context->log.kept_used = 0;
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

void sl_context_lost_output(void) {
    sl_log_error("out of memory: a table could not be printed");
    if (bound)
        atomic_store(&bound->lost, true);
}

sl_exit sl_context_exit(sl_exit code) {
    if (bound && ((code == SL_EXIT_USAGE && atomic_load(&bound->changed)) ||
                  (code == SL_EXIT_OK && atomic_load(&bound->lost))))
        return SL_EXIT_RESOURCES;
    return code;
}

void sl_context_set_verbosity(sl_context *context, sl_verbosity verbosity) {
    context->verbosity = verbosity;
}

/* Has the command run for so long, or does it print everything? */
static bool is_long(const sl_context *context, double seconds) {
    return context->verbosity == SL_VERBOSE || sl_seconds_since(context->begun) >= seconds;
}

bool sl_context_is_quiet(void) {
    return bound && bound->verbosity == SL_QUIET;
}

bool sl_context_is_long(void) {
    return !bound || is_long(bound, SL_LONG_SECONDS);
}

void sl_context_progress_to_output(sl_context *context) {
    sl_surroundings *around = &context->surroundings;
    around->progress_stream = around->output;
    around->output = around->screen;
}

void sl_context_results_to_screen(void) {
    if (bound)
        bound->surroundings.output = bound->surroundings.screen;
}

/* A stream of the calling thread's context; `without`: of a thread that has none. */
static FILE *stream_of(FILE *stream, FILE *without) {
    if (!bound)
        return without;
    return stream && bound->verbosity != SL_QUIET ? stream : bound->nowhere;
}

FILE *sl_output(void) {
    return stream_of(bound ? bound->surroundings.output : NULL, stdout);
}

FILE *sl_progress_stream(void) {
    return stream_of(bound ? bound->surroundings.progress_stream : NULL, stdout);
}

FILE *sl_screen_stream(void) {
    return stream_of(bound ? bound->surroundings.screen : NULL, stderr);
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

/* ---- the log ----
 *
 * The log of a context. One lock keeps lines of several threads apart. The screen hook runs under
 * it, so that it can erase a progress line before the log line and draw it again after, with
 * nothing in between. */

static const char *const level_names[] = {"error", "warning", "info", "info", "info", "debug"};

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

/* Writes lines to the stream, before the progress line is drawn again. Under the lock. */
static void write_lines(sl_log_state *logger, FILE *stream, const char *lines, size_t length) {
    if (logger->hook)
        logger->hook(true, logger->hook_context);
    fwrite(lines, 1, length, stream); /* a stream of the library may have no descriptor */
    fflush(stream);
    if (logger->hook)
        logger->hook(false, logger->hook_context);
}

/* Under the lock. */
static void show_kept(sl_context *context) {
    sl_log_state *logger = &context->log;
    if (logger->kept_used > 0 && context->surroundings.screen)
        write_lines(logger, context->surroundings.screen, logger->kept, logger->kept_used);
    logger->kept_used = 0;
}

/* Writes the line to the screen or the output, or keeps it. Under the lock. */
static void log_to_streams(sl_context *context, sl_log_level level, const char *text) {
    sl_log_state *logger = &context->log;
    const sl_surroundings *to = &context->surroundings;
    FILE *stream = level == SL_LOG_RESULT ? to->output : to->screen;
    char line[2200];
    if (!stream || (context->verbosity == SL_QUIET && level != SL_LOG_ERROR))
        return;
    const char *before = level == SL_LOG_ERROR     ? to->program
                         : level == SL_LOG_WARNING ? "warning"
                                                   : "";
    int length = snprintf(line, sizeof line, "%s%s%s\n", before, *before ? ": " : "", text);
    if (length <= 0)
        return;
    bool shown = is_long(context, SL_DETAIL_SECONDS);
    if (shown)
        show_kept(context);
    if (level != SL_LOG_DETAIL || shown) {
        write_lines(logger, stream, line, (size_t)length);
    } else if (logger->kept_used + (size_t)length <= SL_LOG_KEPT_BYTES) {
        memcpy(logger->kept + logger->kept_used, line, (size_t)length);
        logger->kept_used += (size_t)length;
    }
}

void sl_log_show_details(void) {
    sl_context *context = sl_context_current();
    if (!context || !is_long(context, SL_DETAIL_SECONDS))
        return;
    pthread_mutex_lock(&context->log.lock);
    show_kept(context);
    pthread_mutex_unlock(&context->log.lock);
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
    if (level <= logger->level)
        log_to_streams(context, level, text);
    if (level <= logger->level && to->log)
        to->log(to->data, level, text);
    pthread_mutex_unlock(&logger->lock);
}

void sl_log_row(const char *label, const char *value) {
    enum { VALUE = 12, BLANKS = 3, LABEL_MOST = 38 };
    int left = (int)sl_screen_columns() - VALUE - BLANKS - 1;
    sl_log_result("  %-*s %*s", left < LABEL_MOST ? left : LABEL_MOST, label, VALUE, value);
}

/* ---- requests to stop ----
 *
 * Interrupts of a context.
 *
 * Changes. A later insert would create a collection again that a handler of the second request has
 * dropped, so no insert may follow the drop. A thread that is about to send an insert adds 1 to
 * `changing` and then reads `at_once`; the thread that handles the request sets `at_once` and then
 * reads `changing`:
 *
 *     worker     changing + 1,  then  at_once?        yes: changing - 1, and wait for the end
 *     handler    at_once = true,  then  changing = 0?  no: wait for changing - 1
 *
 * All four operations have one order for both threads (sequentially consistent). If the worker
 * reads after the handler's write, it sees the write and sends nothing. If it reads before the
 * write, its addition also precedes the handler's read, so the handler sees the addition and waits.
 * So no insert follows the drop, unless waiting for it has timed out. */

/* The state of the calling thread's context, or NULL. */
static sl_interrupt_state *state_here(void) {
    sl_context *context = sl_context_current();
    return context ? &context->interrupt : NULL;
}

/* Returns true when any handler of the first request allows the process to end. */
static bool call_handlers(sl_interrupt_state *state, bool second) {
    bool may_end = false;
    pthread_mutex_lock(&state->lock);
    for (unsigned i = state->count; i-- > 0 && !may_end;) {
        const listener *one = &state->listeners[i];
        if (!second)
            may_end = one->first(one->context);
        else if (one->second)
            one->second(one->context);
    }
    pthread_mutex_unlock(&state->lock);
    return may_end;
}

bool sl_interrupt_request(sl_context *context) {
    sl_interrupt_state *state = &context->interrupt;
    sl_binding before = sl_context_bind(context);
    bool may_end = !atomic_exchange(&state->requested, true) && call_handlers(state, false);
    sl_context_restore(before);
    return may_end;
}

void sl_interrupt_request_at_once(sl_context *context) {
    sl_interrupt_state *state = &context->interrupt;
    sl_binding before = sl_context_bind(context);
    atomic_store(&state->at_once, true);
    call_handlers(state, true);
    sl_context_restore(before);
}

bool sl_interrupt_listen(bool (*first)(void *context), void (*second)(void *context), void *context,
                         sl_error *error) {
    sl_context *here = sl_context_current();
    if (!here)
        return true;
    sl_interrupt_state *state = &here->interrupt;
    pthread_mutex_lock(&state->lock);
    unsigned depth = state->count;
    bool room = depth < SL_LISTENERS_MAX;
    if (room)
        state->listeners[state->count++] = (listener){first, second, context};
    pthread_mutex_unlock(&state->lock);
    if (!room)
        return sl_error_set(error, SL_EXIT_USAGE, "too many nested loads");
    if (depth > 0 || !here->surroundings.start_signals)
        return true;
    atomic_store(&state->requested, false);
    if (here->surroundings.start_signals(here, error))
        return true;
    state->count = 0;
    return false;
}

void sl_interrupt_stop_listening(void) {
    sl_context *here = sl_context_current();
    if (!here)
        return;
    sl_interrupt_state *state = &here->interrupt;
    pthread_mutex_lock(&state->lock);
    bool last = state->count == 1;
    state->count -= state->count > 0;
    pthread_mutex_unlock(&state->lock);
    if (last && here->surroundings.stop_signals)
        here->surroundings.stop_signals(here);
}

bool sl_interrupt_requested(void) {
    const sl_interrupt_state *state = state_here();
    return state && atomic_load(&state->requested);
}

void sl_interrupt_begin_change(void) {
    sl_interrupt_state *state = state_here();
    if (!state)
        return;
    atomic_fetch_add(&state->changing, 1);
    if (!atomic_load(&state->at_once))
        return;
    atomic_fetch_sub(&state->changing, 1);
    for (;;)
        pause();
}

void sl_interrupt_end_change(void) {
    sl_interrupt_state *state = state_here();
    if (state)
        atomic_fetch_sub(&state->changing, 1);
}

bool sl_interrupt_await_changes(double seconds) {
    const sl_interrupt_state *state = state_here();
    int64_t start = sl_clock_ns();
    while (state && atomic_load(&state->changing) > 0 && sl_seconds_since(start) < seconds)
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    return !state || atomic_load(&state->changing) == 0;
}
