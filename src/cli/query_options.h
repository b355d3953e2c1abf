/* SPDX-License-Identifier: Apache-2.0 */
/* The option table of shardquery. */
#ifndef SHARDLOAD_CLI_QUERY_OPTIONS_H
#define SHARDLOAD_CLI_QUERY_OPTIONS_H

#include "options.h"

/* The commands' bits in sl_option_row.commands. */
enum { SL_QUERY_RUN = 1, SL_QUERY_COMPARE = 2, SL_QUERY_LIST = 4 };

extern const sl_option_row sl_query_rows[];

#endif
