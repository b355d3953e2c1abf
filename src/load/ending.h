/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a load: interrupts, and the balancer, which is restored however the load ends.
 * Internal to src/load. */
#ifndef SHARDLOAD_ENDING_H
#define SHARDLOAD_ENDING_H

#include "record.h"

/* Stops the balancer; sl_load_restore_balancer restores it, once, whichever thread calls it. */
bool sl_load_stop_balancer(sl_load *load, sl_error *error);
bool sl_load_restore_balancer(sl_load *load, sl_error *error);

/* Has a failed load changed nothing, neither in the cluster nor in its output? Then its work
 * directory is removed. */
bool sl_load_is_unused(const sl_load *load);
/* Can --resume complete the load, which ended for the reason `why`? It can even if this run ended
 * before it began, as long as it resumed an earlier run: the journal of that run is kept. */
bool sl_load_may_be_resumed(const sl_load *load, const sl_error *why);
/* Logs the command that completes a load which ended early. */
void sl_load_log_how_to_complete(const sl_load *load, const sl_error *why);

/* For sl_interrupt_listen; `context` is the sl_load. */
bool sl_load_on_first_request(void *context);
void sl_load_on_second_request(void *context);

#endif
