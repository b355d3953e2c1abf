/* SPDX-License-Identifier: Apache-2.0 */
/* What both programs do around their commands: context, streams, signals, memory of libraries. */
#ifndef SHARDLOAD_CLI_PROGRAM_H
#define SHARDLOAD_CLI_PROGRAM_H

#include "options.h"
#include "util/context.h"

/* The `main` of a program: parses the words, runs the command with a context on standard output and
 * standard error, and returns the exit code. `signals`: interrupt commands that listen (signals.h);
 * otherwise the program handles signals itself. */
int sl_program_main(const sl_program *program, bool signals, int count, char **words);

#endif
