/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of shardload that have a file of their own. Each prints its errors and returns the exit
 * code. */
#ifndef SHARDLOAD_COMMANDS_H
#define SHARDLOAD_COMMANDS_H

#include "options.h"

int sl_command_plan(const sl_options *options);
int sl_command_report(const sl_options *options);
int sl_command_reload(const sl_options *options);
int sl_command_tune(const sl_options *options);

#endif
