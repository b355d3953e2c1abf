/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options of shardload's commands. */
#ifndef SHARDLOAD_LOAD_OPTIONS_H
#define SHARDLOAD_LOAD_OPTIONS_H

#include <bson/bson.h>

#include <shardload/options.h>

/* The commands' bits in sl_option_row.commands. */
enum {
    SL_COMMAND_LOAD = 1,
    SL_COMMAND_INSPECT = 2,
    SL_COMMAND_VERIFY = 4,
    SL_COMMAND_PLAN = 8,
    SL_COMMAND_TUNE = 16,
    SL_COMMAND_RELOAD = 32,
    SL_COMMAND_REPORT = 64,
};

extern const sl_option_row sl_load_rows[];

/* The key of an index or of sharding that an option's text gives: an object with at least one field,
 * each a direction or a kind of index. NULL when it is none; else destroy it. */
bson_t *sl_option_key(const char *text);

#define SL_PARTS_MAX 9999
/* Reads "K/N" of --part. False when it is none. */
bool sl_option_parse_part(const char *text, unsigned *part, unsigned *parts);

/* The share, above 0 and up to 1, that "5%" or "0.05" stands for; 0 when it is neither. */
double sl_option_share(const char *text);

#endif
