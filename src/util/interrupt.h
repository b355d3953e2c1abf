/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts. The first SIGINT (Ctrl-C), SIGTERM or SIGHUP ends a load after its current blocks and
 * batches. The second ends it at once, after the balancer has been restored. */
#ifndef SHARDLOAD_INTERRUPT_H
#define SHARDLOAD_INTERRUPT_H

#include <stdbool.h>

#include "error.h"

/* Starts handling the signals. Call it before any other thread is created, so that no other thread
 * receives them. `first` is called on the first signal, `second` on the second, both in a separate
 * thread; after `second` the process ends with SL_EXIT_INTERRUPTED.
 *
 * Calls can be nested, up to SL_LISTENERS_MAX deep: a trial listens, and so do its loads. A signal
 * then calls the handlers of all listeners, the innermost first. */
#define SL_LISTENERS_MAX 4
bool sl_interrupt_listen(void (*first)(void *context), void (*second)(void *context), void *context,
                         sl_error *error);
/* Ends the innermost listener; waits for a handler that is running. */
void sl_interrupt_stop_listening(void);

/* Has a signal arrived since the outermost listener started? Any thread. */
bool sl_interrupt_requested(void);

/* ---- changes to the cluster, none of which may begin after the second signal ---- */

/* Enclose each change of the cluster: a batch, or a step of the preparation. After the second
 * signal sl_interrupt_begin_change never returns: the process is about to end, and a collection
 * that a handler drops must stay dropped. Do not hold a lock that a handler may take. Any thread,
 * also without a listener. Changes must not be nested. */
void sl_interrupt_begin_change(void);
void sl_interrupt_end_change(void);

/* For `second`: waits until all changes that have begun have ended, for at most `seconds`. False
 * when a change has not ended by then. */
bool sl_interrupt_await_changes(double seconds);

#endif
