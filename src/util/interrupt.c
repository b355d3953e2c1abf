/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts. SIGINT, SIGTERM and SIGHUP are blocked in all threads and awaited by one thread. Its
 * handlers may therefore do what a signal handler may not: send commands, write to the log.
 *
 * A hangup that was ignored when the program began (nohup) stays ignored; sigwait would otherwise
 * take even an ignored signal. While the second signal is handled, which may mean waiting for a
 * server, a third one kills the process, as without handlers.
 *
 * To stop listening, the flag `over` is set and the signal WAKE is sent to the thread, which then
 * ends. If it is handling the second signal, it ends the process instead, and the caller that joins
 * it never returns. SIGINT could not be used for this, since the third one must kill. Signals stay
 * blocked afterwards: only a few lines of output remain, and a Ctrl-C should not lose the summary.
 *
 * Changes. A collection that a handler of the second signal drops would be created again by a later
 * insert, so there must be none. A thread that is about to send one adds 1 to `changing` and then
 * reads `at_once`; the thread that handles the signal sets `at_once` and then reads `changing`:
 *
 *     worker     changing + 1,  then  at_once?        yes: changing - 1, and wait for the end
 *     handler    at_once = true,  then  changing = 0?  no: wait for changing - 1
 *
 * All four operations have one order for both threads (sequentially consistent). If the worker
 * reads after the handler's write, it sees the write and sends nothing. If it reads before, its
 * addition came before, too, so the handler sees the addition and waits. So no insert follows the
 * drop, unless waiting for it has timed out. */
#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define WAKE SIGRTMIN

typedef struct listener {
    void (*first)(void *context);
    void (*second)(void *context);
    void *context;
} listener;

static struct {
    pthread_t thread;
    _Atomic bool requested;
    _Atomic bool over;
    _Atomic bool at_once;      /* the second signal has come; see above */
    _Atomic unsigned changing; /* threads that are changing the cluster */
    sigset_t signals;          /* SIGINT, SIGTERM, SIGHUP */
    sigset_t awaited;          /* these, and WAKE */
    pthread_mutex_t lock;      /* held while handlers run; guards the fields below */
    listener listeners[SL_LISTENERS_MAX];
    unsigned count;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void call_handlers(bool second) {
    pthread_mutex_lock(&state.lock);
    for (unsigned i = state.count; i-- > 0;) {
        const listener *one = &state.listeners[i];
        (second ? one->second : one->first)(one->context);
    }
    pthread_mutex_unlock(&state.lock);
}

static void *listen_for_signals(void *unused) {
    (void)unused;
    for (;;) {
        int signal_number;
        if (sigwait(&state.awaited, &signal_number) != 0)
            continue;
        if (atomic_load(&state.over))
            return NULL;
        if (!atomic_exchange(&state.requested, true)) {
            call_handlers(false);
        } else {
            signal(SIGINT, SIG_DFL);
            signal(SIGTERM, SIG_DFL);
            pthread_sigmask(SIG_UNBLOCK, &state.signals, NULL);
            atomic_store(&state.at_once, true);
            call_handlers(true);
            _exit(SL_EXIT_INTERRUPTED);
        }
    }
}

static bool is_ignored(int signal_number) {
    struct sigaction action;
    return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static bool start_thread(sl_error *error) {
    atomic_store(&state.requested, false);
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
    int code = pthread_create(&state.thread, NULL, listen_for_signals, NULL);
    return code == 0 || sl_error_set(error, sl_exit_of_errno(code, SL_EXIT_USAGE),
                                     "cannot start a thread: %s", strerror(code));
}

bool sl_interrupt_listen(void (*first)(void *context), void (*second)(void *context), void *context,
                         sl_error *error) {
    pthread_mutex_lock(&state.lock);
    unsigned depth = state.count;
    bool room = depth < SL_LISTENERS_MAX;
    if (room)
        state.listeners[state.count++] = (listener){first, second, context};
    pthread_mutex_unlock(&state.lock);
    if (!room)
        return sl_error_set(error, SL_EXIT_USAGE, "too many nested loads");
    if (depth > 0 || start_thread(error))
        return true;
    state.count = 0;
    return false;
}

void sl_interrupt_stop_listening(void) {
    pthread_mutex_lock(&state.lock);
    bool last = state.count == 1;
    state.count -= state.count > 0;
    pthread_mutex_unlock(&state.lock);
    if (!last)
        return;
    atomic_store(&state.over, true);
    pthread_kill(state.thread, WAKE);
    pthread_join(state.thread, NULL);
}

bool sl_interrupt_requested(void) {
    return atomic_load(&state.requested);
}

void sl_interrupt_begin_change(void) {
    atomic_fetch_add(&state.changing, 1);
    if (!atomic_load(&state.at_once))
        return;
    atomic_fetch_sub(&state.changing, 1);
    for (;;)
        pause();
}

void sl_interrupt_end_change(void) {
    atomic_fetch_sub(&state.changing, 1);
}

bool sl_interrupt_await_changes(double seconds) {
    int64_t start = sl_clock_ns();
    while (atomic_load(&state.changing) > 0 && sl_seconds_since(start) < seconds)
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    return atomic_load(&state.changing) == 0;
}
