/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts of the calling thread's context (context.h). The first request ends a load after its
 * current blocks and batches. The second ends it at once, after the balancer has been restored, and
 * is made only by a program that ends itself then. The programs request interrupts for the signals
 * SIGINT (Ctrl-C), SIGTERM and SIGHUP (src/cli/program.c). */
#ifndef SHARDLOAD_INTERRUPT_H
#define SHARDLOAD_INTERRUPT_H

#include <stdbool.h>

#include "context.h"
#include "error.h"

/* Makes the first request; has no effect when it has been made. Calls the `first` functions of all
 * listeners. True when a listener has nothing to complete, so that a program may end at once: the
 * command may be waiting for a server. Any thread, not a signal handler. */
bool sl_interrupt_request(sl_context *context);

/* Makes the second request: calls the `second` functions of all listeners. The process must end
 * after that, since changes of the cluster stay blocked. */
void sl_interrupt_request_at_once(sl_context *context);

/* Begins to listen. `first` is called on the first request and returns whether the process may end
 * at once; `second` (may be NULL) is called on the second request. Both run in the thread that
 * requests.
 *
 * Calls can be nested, up to SL_LISTENERS_MAX deep: a trial listens, and so do its loads. A request
 * then calls the functions of all listeners, the innermost first. The outermost listener starts the
 * handling of signals (sl_surroundings), before any other thread is created. */
#define SL_LISTENERS_MAX 4
bool sl_interrupt_listen(bool (*first)(void *context), void (*second)(void *context), void *context,
                         sl_error *error);
/* Ends the innermost listener; waits until none of its functions is running. */
void sl_interrupt_stop_listening(void);

/* Has an interrupt been requested? If signals are handled: since the outermost listener began. Any
 * thread of the context. */
bool sl_interrupt_requested(void);

/* ---- changes to the cluster, none of which may begin after the second request ---- */

/* Enclose each change of the cluster: a batch, or a step of the preparation. After the second
 * request sl_interrupt_begin_change never returns: the process is about to end, and a collection
 * that a handler drops must stay dropped. Do not hold a lock that a handler may take. Any thread,
 * also without a listener. Changes must not be nested. */
void sl_interrupt_begin_change(void);
void sl_interrupt_end_change(void);

/* For `second`: waits until all changes that have begun have ended, for at most `seconds`. False
 * when a change has not ended by then. */
bool sl_interrupt_await_changes(double seconds);

#endif
