/* SPDX-License-Identifier: Apache-2.0 */
/* Stores many short strings in few allocations (a set may have hundreds of thousands of paths),
 * finds repeated paths, and makes paths safe to print. */
#ifndef SHARDLOAD_SOURCE_NAMES_H
#define SHARDLOAD_SOURCE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_name_chunk sl_name_chunk;

/* All zero: empty. */
typedef struct sl_names {
    sl_name_chunk *last;
} sl_names;

/* Copies `name`; the copy is valid until sl_names_clear. NULL without memory. */
const char *sl_names_add(sl_names *names, const char *name);
void sl_names_clear(sl_names *names);

/* A set of paths in 8 bytes each: their 64-bit hashes. Two paths that are the same file after
 * unpacking are equal: `a/b`, `./a//b`, `/a/b`. Two different paths are taken as equal with a
 * probability of 1 to 10^19 for each pair. */
typedef struct sl_path_set {
    uint64_t *hashes; /* open addressing; 0: free */
    size_t count, room;
    size_t most; /* of paths; 0: SL_PATH_SET_MOST */
} sl_path_set;

#define SL_PATH_SET_MOST ((size_t)12 << 20) /* paths: at most 128 MiB */

typedef enum sl_path_added {
    SL_PATH_NEW,
    SL_PATH_KNOWN,
    SL_PATH_TOO_MANY,
    SL_PATH_NO_MEMORY,
} sl_path_added;

sl_path_added sl_path_set_add(sl_path_set *set, const char *path);
bool sl_path_set_has(const sl_path_set *set, const char *path);
bool sl_path_same(const char *a, const char *b);
void sl_path_set_clear(sl_path_set *set);

/* Writes a path for messages: control bytes are escaped, so that a file name can neither control
 * the terminal nor begin a new line; only the end of a long path is shown. Returns out. */
#define SL_SHOWN_ROOM 512
char *sl_path_shown(const char *path, char out[SL_SHOWN_ROOM]);

/* The last component of a path: a pointer into it. */
const char *sl_base_name(const char *path);

#endif
