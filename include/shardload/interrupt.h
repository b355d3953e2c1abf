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

#endif
