/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of the programs. The first SIGINT (Ctrl-C), SIGTERM or SIGHUP interrupts the context, the
 * second ends the process (util/interrupt.h). */
#ifndef SHARDLOAD_CLI_SIGNALS_H
#define SHARDLOAD_CLI_SIGNALS_H

#include "util/context.h"

/* For sl_surroundings. Call sl_signals_start before any other thread is created, so that no other
 * thread receives the signals. A process has one context with signals at a time. */
bool sl_signals_start(sl_context *context, sl_error *error);
void sl_signals_stop(sl_context *context);

#endif
