/* SPDX-License-Identifier: Apache-2.0 */
/* The option table of shardload. */
#ifndef SHARDLOAD_LOAD_OPTIONS_H
#define SHARDLOAD_LOAD_OPTIONS_H

#include "options.h"

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
};

extern const sl_option_row sl_load_rows[];

#endif
