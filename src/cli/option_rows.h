/* SPDX-License-Identifier: Apache-2.0 */
/* Short forms for the fields that most rows of an option table set:
 *
 *     {.name = "repeat", SL_ROW_COUNT("N", 1, 1000), SL_ROW_OF(RUN, "Queries"), .help = "..."} */
#ifndef SHARDLOAD_OPTION_ROWS_H
#define SHARDLOAD_OPTION_ROWS_H

#include "options.h"

#define SL_ROW_FLAG .kind = SL_OPTION_FLAG
#define SL_ROW_TEXT(value) .kind = SL_OPTION_STRING, .argument = value
#define SL_ROW_LIST(value) .kind = SL_OPTION_LIST, .argument = value
#define SL_ROW_TIME .kind = SL_OPTION_SECONDS, .argument = "TIME"
#define SL_ROW_CHOICE(value, words) .kind = SL_OPTION_CHOICE, .argument = value, .choices = words
#define SL_ROW_COUNT(value, low, high)                                                             \
    .kind = SL_OPTION_COUNT, .argument = value, .minimum = low, .maximum = high
#define SL_ROW_BYTES(low, high)                                                                    \
    .kind = SL_OPTION_BYTES, .argument = "SIZE", .minimum = low, .maximum = high
/* The commands that take the option, and its heading in --help. */
#define SL_ROW_OF(mask, heading) .commands = mask, .group = heading

/* Compressors: the choices of --compressor and --wire-compression. */
#define SL_COMPRESSORS "none|snappy|zlib|zstd"

#endif
