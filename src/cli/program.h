/* SPDX-License-Identifier: Apache-2.0 */
/* What both programs do around their commands: context, streams, signals, memory of libraries. */
#ifndef SHARDLOAD_CLI_PROGRAM_H
#define SHARDLOAD_CLI_PROGRAM_H

#include "options.h"
#include "util/context.h"

/* The `main` of a program: parses the words, runs the command with a context on standard output and
 * standard error, and returns the exit code. `signals`: interrupt commands that listen;
 * otherwise the program handles signals itself. */
int sl_program_main(const sl_program *program, bool signals, int count, char **words);

/* Signals of the programs, for sl_surroundings: the first SIGINT (Ctrl-C), SIGTERM or SIGHUP
 * interrupts the context, the second ends the process (util/interrupt.h). Call sl_signals_start
 * before any other thread is created, so that no other thread receives the signals. A process has
 * one context with signals at a time. */
bool sl_signals_start(sl_context *context, sl_error *error);
void sl_signals_stop(sl_context *context);

#endif
