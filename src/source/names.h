/* SPDX-License-Identifier: Apache-2.0 */
/* Many short strings in few allocations: the paths of hundreds of thousands of files; and how paths
 * are shown to people. */
#ifndef SHARDLOAD_SOURCE_NAMES_H
#define SHARDLOAD_SOURCE_NAMES_H

#include <stddef.h>

typedef struct sl_name_chunk sl_name_chunk;

/* All zero: empty. */
typedef struct sl_names {
    sl_name_chunk *last;
} sl_names;

/* A copy that stays where it is until sl_names_clear; NULL without memory. */
const char *sl_names_add(sl_names *names, const char *name);
void sl_names_clear(sl_names *names);

/* A path as messages have it: control bytes escaped, so that a file's name can neither act on a
 * terminal nor begin a line of its own; of a long one the end, which tells most. Returns out. */
#define SL_SHOWN_ROOM 512
char *sl_path_shown(const char *path, char out[SL_SHOWN_ROOM]);

#endif
