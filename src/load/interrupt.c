/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts. The signals are blocked everywhere and awaited by one thread, which may therefore do
 * what a signal handler may not: speak to the server, write to the log.
 *
 * A hangup that was ignored when the program began (nohup) stays ignored; sigwait would otherwise
 * take even an ignored signal. Once the second signal is being served, which may mean waiting for a
 * server, the third one kills as if nobody had listened.
 *
 * To stop listening, the flag `over` is set and one of the signals is sent to the thread, which
 * then ends. Signals stay blocked afterwards: what is left of the program is a few lines of
 * output, and a Ctrl-C in them should not lose the summary. */
#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static struct {
    pthread_t thread;
    bool listening; /* main thread only */
    _Atomic bool requested;
    _Atomic bool over;
    sigset_t signals;
    void (*first)(void *context);
    void (*second)(void *context);
    void *context;
} state;

static void *listen_for_signals(void *unused) {
    (void)unused;
    for (;;) {
        int signal_number;
        if (sigwait(&state.signals, &signal_number) != 0)
            continue;
        if (atomic_load(&state.over))
            return NULL;
        if (!atomic_exchange(&state.requested, true)) {
            state.first(state.context);
        } else {
            signal(SIGINT, SIG_DFL);
            signal(SIGTERM, SIG_DFL);
            pthread_sigmask(SIG_UNBLOCK, &state.signals, NULL);
            state.second(state.context);
            _exit(SL_EXIT_INTERRUPTED);
        }
    }
}

static bool is_ignored(int signal_number) {
    struct sigaction action;
    return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool sl_interrupt_listen(void (*first)(void *context), void (*second)(void *context), void *context,
                      sl_error *error) {
    state.first = first;
    state.second = second;
    state.context = context;
    atomic_store(&state.requested, false);
    atomic_store(&state.over, false);
    sigemptyset(&state.signals);
    sigaddset(&state.signals, SIGINT);
    sigaddset(&state.signals, SIGTERM);
    if (!is_ignored(SIGHUP))
        sigaddset(&state.signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &state.signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of the write, with words */
    int code = pthread_create(&state.thread, NULL, listen_for_signals, NULL);
    state.listening = code == 0;
    return code == 0 || sl_error_set(error, SL_EXIT_USAGE, "cannot start a thread: %s",
                                     strerror(code));
}

void sl_interrupt_stop_listening(void) {
    if (!state.listening)
        return;
    state.listening = false;
    atomic_store(&state.over, true);
    pthread_kill(state.thread, SIGTERM);
    pthread_join(state.thread, NULL);
}

bool sl_interrupt_requested(void) {
    return atomic_load(&state.requested);
}
