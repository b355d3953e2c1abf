/* SPDX-License-Identifier: Apache-2.0 */
/* What both programs do around their commands: memory of libraries, signals, standard files. */
#include "program.h"

#include <bson/bson.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/connection.h"
#include "util/interrupt.h"

#include "secrets.h"

/* ---- memory ----
 *
 * libbson ends the process by abort() when an allocation fails, libarchive by exit(1). The programs
 * exit with SL_EXIT_RESOURCES instead. A load that ends in this way can be resumed, as after
 * SIGKILL. Nothing is allocated or locked after a failed allocation, because the thread may hold
 * any lock. An exit before the end of main comes from libarchive, which has printed the reason. */

static void *checked(void *memory, size_t bytes) {
    static const char text[] =
        "shardload: out of memory while encoding documents or messages; use fewer threads or "
        "smaller batches\n";
    if (memory || bytes == 0)
        return memory;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(SL_EXIT_RESOURCES);
}

static void *allocate(size_t bytes) {
    return checked(malloc(bytes), bytes);
}

static void *allocate_zero(size_t count, size_t bytes) {
    return checked(calloc(count, bytes), count && bytes);
}

static void *reallocate(void *memory, size_t bytes) {
    return checked(realloc(memory, bytes), bytes);
}

#if BSON_CHECK_VERSION(1, 23, 0)
static void *allocate_aligned(size_t alignment, size_t bytes) {
    return checked(aligned_alloc(alignment, bytes), bytes);
}
#endif

static bool ended; /* main is about to return */

static void on_exit_of_a_library(void) {
    if (!ended)
        _exit(SL_EXIT_RESOURCES);
}

/* Called once, at the beginning of main. */
static void begin_memory(void) {
    static const bson_mem_vtable_t functions = {
        .malloc = allocate,
        .calloc = allocate_zero,
        .realloc = reallocate,
        .free = free,
#if BSON_CHECK_VERSION(1, 23, 0)
        .aligned_alloc = allocate_aligned,
#endif
    };
    bson_mem_set_vtable(&functions);
    atexit(on_exit_of_a_library);
}

/* The driver's library may initialise the driver before main, which may print a warning: so the
 * driver is silenced before all libraries. */
static void (*const before_libraries[])(void)
    __attribute__((section(".preinit_array"), used)) = {sl_driver_silence};

/* ---- signals ----
 *
 * SIGINT, SIGTERM and SIGHUP are blocked in all threads; one thread waits for them. An
 * interrupt's functions may therefore do what a signal handler may not: send commands, write to the
 * log.
 *
 * A hangup that was ignored when the program began (nohup) stays ignored; sigwait would otherwise
 * receive even an ignored signal. While the second signal is handled, which may mean waiting for a
 * server, a third one kills the process, as without handlers.
 *
 * To stop listening, the flag `over` is set and the signal WAKE is sent to the thread, which then
 * ends. If it is handling the second signal, it ends the process instead, and the caller that joins
 * it never returns. SIGINT could not be used for this, because a third SIGINT must kill the
 * process. Signals stay blocked afterwards: a Ctrl-C while the summary is printed must not end
 * the program. */

#define WAKE SIGRTMIN

/* Signals concern the process, and so does this state. */
static struct {
    pthread_t thread;
    _Atomic bool over;
    sigset_t signals; /* SIGINT, SIGTERM, SIGHUP */
    sigset_t awaited; /* these, and WAKE */
    sl_context *context;
} state;

static void *listen_for_signals(void *unused) {
    bool interrupted = false;
    (void)unused;
    for (;;) {
        int signal_number;
        if (sigwait(&state.awaited, &signal_number) != 0)
            continue;
        if (atomic_load(&state.over))
            return NULL;
        if (!interrupted) {
            interrupted = true;
            if (sl_interrupt_request(state.context))
                _exit(SL_EXIT_INTERRUPTED);
        } else {
            signal(SIGINT, SIG_DFL);
            signal(SIGTERM, SIG_DFL);
            pthread_sigmask(SIG_UNBLOCK, &state.signals, NULL);
            sl_interrupt_request_at_once(state.context);
            _exit(SL_EXIT_INTERRUPTED);
        }
    }
}

bool sl_signals_start(sl_context *context, sl_error *error) {
    state.context = context;
    atomic_store(&state.over, false);
    sigemptyset(&state.signals);
    sigaddset(&state.signals, SIGINT);
    sigaddset(&state.signals, SIGTERM);
    struct sigaction hangup;
    if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN)
        sigaddset(&state.signals, SIGHUP);
    state.awaited = state.signals;
    sigaddset(&state.awaited, WAKE);
    pthread_sigmask(SIG_BLOCK, &state.awaited, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* beyond a limit on file sizes, the write fails with an error */
    int code = sl_thread_start(&state.thread, listen_for_signals, NULL);
    return code == 0 ||
           sl_error_set(error, SL_EXIT_RESOURCES, "cannot start a thread: %s", strerror(code));
}

void sl_signals_stop(sl_context *context) {
    (void)context;
    atomic_store(&state.over, true);
    pthread_kill(state.thread, WAKE);
    pthread_join(state.thread, NULL);
}

/* ---- the program ---- */

/* When standard input, output or error is closed at the start, the next file that is opened gets
 * its descriptor, and messages or documents would be written into that file. So closed descriptors
 * are opened on /dev/null, for reading only: reads return no data, writes fail. */
static void open_standard_files(void) {
    int file;
    do
        file = open("/dev/null", O_RDONLY);
    while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0)
        close(file);
}

int sl_program_main(const sl_program *program, bool signals, int count, char **words) {
    static const char no_memory[] = "out of memory at the start\n";
    sl_surroundings around = {.program = program->name, .output = stdout, .screen = stderr};
    if (signals) {
        around.start_signals = sl_signals_start;
        around.stop_signals = sl_signals_stop;
    }
    sl_secret_guard_process(); /* before the first secret is read */
    begin_memory();
    open_standard_files();
    signal(SIGCHLD, SIG_DFL); /* ignored, as some supervisors leave it, it hides exit statuses */
    sl_context *context = sl_context_create(&around);
    if (!context) {
        ssize_t written = write(STDERR_FILENO, no_memory, sizeof no_memory - 1);
        (void)written;
        ended = true;
        return SL_EXIT_RESOURCES;
    }
    sl_context_bind(context);
    int code = (int)sl_context_exit((sl_exit)sl_options_main(program, count, words));
    sl_context_bind(NULL);
    sl_context_destroy(context);
    ended = true;
    return code;
}
