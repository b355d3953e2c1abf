/* SPDX-License-Identifier: Apache-2.0 */
/* Signals. SIGINT, SIGTERM and SIGHUP are blocked in all threads; one thread waits for them. An
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
#include "signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "util/interrupt.h"

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

static bool is_ignored(int signal_number) {
    struct sigaction action;
    return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool sl_signals_start(sl_context *context, sl_error *error) {
    state.context = context;
    atomic_store(&state.over, false);
    sigemptyset(&state.signals);
    sigaddset(&state.signals, SIGINT);
    sigaddset(&state.signals, SIGTERM);
    if (!is_ignored(SIGHUP))
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
