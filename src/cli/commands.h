/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of shardload. Each logs its errors and returns the exit code. `record`, if it is not
 * NULL, receives the command's record. */
#ifndef SHARDLOAD_COMMANDS_H
#define SHARDLOAD_COMMANDS_H

#include <bson/bson.h>

#include "options.h"

/* The option table of shardload (load_options.c). */
extern const sl_option_row sl_load_rows[];

/* The commands' bits in sl_option_row.commands. */
enum {
    SL_COMMAND_LOAD = 1,
    SL_COMMAND_INSPECT = 2,
    SL_COMMAND_VERIFY = 4,
    SL_COMMAND_PLAN = 8,
    SL_COMMAND_TUNE = 16,
    SL_COMMAND_RELOAD = 32,
    SL_COMMAND_REPORT = 64,
    SL_COMMAND_RESTORE = 128,
    SL_COMMAND_STATUS = 256,
    SL_COMMAND_DOCTOR = 512,
    SL_COMMAND_FORGET = 1024,
};

int sl_command_load(const sl_options *options, bson_t *record);
int sl_command_verify(const sl_options *options, bson_t *record);
int sl_command_inspect(const sl_options *options);
int sl_command_plan(const sl_options *options, bson_t *record);
int sl_command_doctor(const sl_options *options);
int sl_command_report(const sl_options *options);
int sl_command_reload(const sl_options *options);
int sl_command_tune(const sl_options *options);
int sl_command_status(const sl_options *options);
int sl_command_forget(const sl_options *options);
int sl_command_restore(const sl_options *options, bson_t *record);

#endif
