/* SPDX-License-Identifier: Apache-2.0 */
/* A load: from opening the sources to a verified collection. */
#ifndef SHARDLOAD_LOAD_H
#define SHARDLOAD_LOAD_H

#include "job/load_config.h"
#include "util/error.h"

/* Runs the load and logs its progress, summary and errors. Returns the exit code. */
sl_exit sl_load_run(const sl_load_config *config);

/* Logs the command that completes a load of several tables. */
void sl_log_how_to_resume(const char *directory);

#endif
