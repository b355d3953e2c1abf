/* SPDX-License-Identifier: Apache-2.0 */
/* What a load says of itself at its end: the summary on the screen and run.json. */
#ifndef SHARDLOAD_LOAD_RECORD_H
#define SHARDLOAD_LOAD_RECORD_H

#include "engine.h"

void sl_record_start(sl_load *load, const char *command);
void sl_record_server(sl_load *load);

/* Checks the accounting, prints the summary, writes the record's files. Takes the exit code so far
 * and returns the final one. */
sl_exit sl_record_end(sl_load *load, sl_exit code);

#endif
