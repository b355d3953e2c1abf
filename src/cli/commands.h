/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of shardload. Each logs its errors and returns the exit code. `record`, if it is not
 * NULL, receives the command's record. */
#ifndef SHARDLOAD_COMMANDS_H
#define SHARDLOAD_COMMANDS_H

#include <bson/bson.h>

#include "options.h"

int sl_command_load(const sl_options *options, bson_t *record);
int sl_command_verify(const sl_options *options, bson_t *record);
int sl_command_inspect(const sl_options *options);
int sl_command_plan(const sl_options *options, bson_t *record);
int sl_command_doctor(const sl_options *options);
int sl_command_report(const sl_options *options);
int sl_command_reload(const sl_options *options);
int sl_command_tune(const sl_options *options);
int sl_command_verify_dump(const sl_options *options);
int sl_command_status(const sl_options *options);
int sl_command_restore(const sl_options *options, bson_t *record);

#endif
