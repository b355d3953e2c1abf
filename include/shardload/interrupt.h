/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts: Ctrl-C, SIGTERM and SIGHUP once ask the load to finish what is in flight; twice stop
 * it at once, but not before the balancer has been put back. */
#ifndef SHARDLOAD_INTERRUPT_H
#define SHARDLOAD_INTERRUPT_H

#include <stdbool.h>

#include <shardload/error.h>

/* Starts to listen. Call before any other thread is made, so that no other thread gets the signals.
 * `first` runs on the first signal, `second` on the second, both in a thread of their own; after
 * `second` the process ends with SL_EXIT_INTERRUPTED.
 *
 * Who listens already may run what listens too (a trial its loads, SL_LISTENERS_MAX deep): all of
 * them are told, the innermost first; and the request for an end holds until the outermost stops
 * listening. */
#define SL_LISTENERS_MAX 4
bool sl_interrupt_listen(void (*first)(void *context), void (*second)(void *context), void *context,
                      sl_error *error);
/* The innermost stops listening, waiting for a handler that is running. */
void sl_interrupt_stop_listening(void);

/* Has there been a signal since the outermost began to listen? Any thread. */
bool sl_interrupt_requested(void);

/* ---- what must not come behind the second signal ---- */

/* What changes the cluster for a load, a batch or a step of the preparation, stands between these
 * two. From the second signal on the first one does not return any more: the process is about to
 * end, and what a handler removes must stay removed. So call it without a lock that a handler may
 * want. Any thread, also while nobody listens; one such change never within another. */
void sl_interrupt_begin_change(void);
void sl_interrupt_end_change(void);

/* For `second`: waits until all changes that had begun have ended, `seconds` at most. False when
 * some have not. */
bool sl_interrupt_await_changes(double seconds);

#endif
