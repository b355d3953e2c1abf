/* SPDX-License-Identifier: Apache-2.0 */
/* Stores many short strings in few allocations (a set may have hundreds of thousands of paths), and
 * makes paths safe to print. */
#ifndef SHARDLOAD_SOURCE_NAMES_H
#define SHARDLOAD_SOURCE_NAMES_H

#include <stddef.h>

typedef struct sl_name_chunk sl_name_chunk;

/* All zero: empty. */
typedef struct sl_names {
    sl_name_chunk *last;
} sl_names;

/* Copies `name`; the copy is valid until sl_names_clear. NULL without memory. */
const char *sl_names_add(sl_names *names, const char *name);
void sl_names_clear(sl_names *names);

/* Writes a path for messages: control bytes are escaped, so that a file name can neither control
 * the terminal nor begin a new line; only the end of a long path is shown. Returns out. */
#define SL_SHOWN_ROOM 512
char *sl_path_shown(const char *path, char out[SL_SHOWN_ROOM]);

/* The last component of a path: a pointer into it. */
const char *sl_base_name(const char *path);

#endif
