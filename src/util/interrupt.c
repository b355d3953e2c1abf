/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts of a context.
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
#include "interrupt.h"

#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "context_state.h"

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
        const sl_listener *one = &state->listeners[i];
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
        state->listeners[state->count++] = (sl_listener){first, second, context};
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
