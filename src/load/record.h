/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a load on the screen, and its run record, run.json. */
#ifndef SHARDLOAD_LOAD_RECORD_H
#define SHARDLOAD_LOAD_RECORD_H

#include "engine.h"

/* Records the start of `command`. */
void sl_record_start(sl_load *load, const char *command);
/* Logs and records the server, once connected. */
void sl_record_server(sl_load *load);

/* Checks the totals, prints the summary, and writes run.json and the reports. `code` is the exit
 * code so far; returns the final one. */
sl_exit sl_record_end(sl_load *load, sl_exit code);

#endif
